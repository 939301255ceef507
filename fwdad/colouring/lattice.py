"""Colourings of stencils on grids by linear forms: the colour of (x, y, z) is x + a y + b z mod p.

A greedy colouring of a grid rarely has the fewest colours, and a linear form often has: 5 instead
of 7 for the Jacobian of the five-point Laplacian, 7 instead of 12 for that of the seven-point one.
Source: Goldfarb and Toint (1984), "Optimal estimation of Jacobian and Hessian matrices that arise
in finite difference calculations", Mathematics of Computation 43.

The grid is guessed from the distances of the entries from the diagonal. A form is sought for the
stencil, and then tried on the pattern itself: a wrong guess costs time and nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from fwdad.colouring.graphs import Indices, canonical_pattern, row_indices
from fwdad.colouring.recovery import alone, recover_stars, recover_trees

_MOST_OFFSETS = 40  # of a stencil: 27 in three dimensions, and some more
_MOST_GRIDS = 3  # that are tried
_MOST_TRIALS = 4  # of forms on the pattern, for each grid
_MOST_COLOURS = 40
_MOST_PAIRS = 5_000  # of columns that a form is sought for


def column_lattice(pattern: sp.csr_array, bound: int, most: int) -> Indices | None:
    """Colours of the columns of a stencil, from ``bound`` to ``most`` of them, or None."""
    rows = row_indices(pattern)
    for grid, _ in grids(pattern):
        steps = column_steps(pattern, grid)

        def fits(forms: Any, p: int, steps: Any = steps) -> Any:
            return np.all(forms @ steps.T % p != 0, axis=1)

        def holds(colours: Indices) -> bool:
            return bool(np.all(alone(rows, colours[pattern.indices], pattern.shape[0])))

        found = _search(pattern, grid, range(bound, most + 1), fits, holds)
        if found is not None:
            return found
    return None


def symmetric_lattice(pattern: sp.csr_array, kind: str, bound: int, most: int) -> Indices | None:
    """Colours of a symmetric stencil for a star or an acyclic colouring, or None."""
    for grid, stencil in grids(pattern):
        edges = stencil[np.any(stencil != 0, axis=1)]
        if not edges.size:
            return None
        fits = _star_forms(edges) if kind == "star" else _acyclic_forms(edges)
        recover = recover_stars if kind == "star" else recover_trees

        def holds(colours: Indices, recover: Callable[..., Any] = recover) -> bool:
            return not recover(pattern, colours).unknown.size

        found = _search(pattern, grid, range(bound, most + 1), fits, holds)
        if found is not None:
            return found
    return None


def column_steps(pattern: sp.csr_array, grid: Any) -> Any:
    """The steps along a grid between columns that share a row, for a sample of the rows."""
    lengths = np.diff(pattern.indptr)
    number = _MOST_PAIRS // max(int(np.max(lengths, initial=1)) ** 2, 1) + 1
    sample = np.unique(np.linspace(0, lengths.size - 1, number).astype(int))
    ends = pattern.indptr[sample + 1]
    starts = pattern.indptr[sample]
    pairs = [
        np.stack(np.meshgrid(*[pattern.indices[a:b]] * 2))
        for a, b in zip(starts, ends, strict=True)
    ]
    one, other = np.concatenate([x.reshape(2, -1) for x in pairs], axis=1)
    steps = coordinates(one, grid) - coordinates(other, grid)
    # each step is one number, which is faster to sort
    bases = np.append(1, np.cumprod(2 * np.max(np.abs(steps), axis=0) + 1)[:-1])
    _, first = np.unique(steps @ bases, return_index=True)
    steps = steps[np.sort(first)]
    return steps[np.any(steps != 0, axis=1)]


def coordinates(places: Any, grid: Any) -> Any:
    """Where places are along each direction of a grid; along the last one they have no bound."""
    lengths = grid[1:] // grid[:-1]
    inner = [places // s % n for s, n in zip(grid[:-1], lengths, strict=True)]
    return np.stack([*inner, places // grid[-1]]).T


def grids(pattern: sp.csr_array) -> Iterator[tuple[Any, Any]]:
    """Guesses of a grid, the best ones first: its strides, and the stencil's steps along each.

    A good guess makes the steps short. An unknown of several at each point is one more direction.
    """
    m, n = pattern.shape
    offsets = pattern.indices.astype(np.int64) - row_indices(pattern)
    counts = np.bincount(offsets + m, minlength=m + n)
    # the ends of a grid that is closed to a ring are fewer, and some forms hold for them
    found = np.flatnonzero(4 * counts > np.max(counts, initial=1)) - m
    if not 2 <= found.size <= _MOST_OFFSETS or n < 4 * found.size:
        return
    lengths = [int(x) for x in np.unique(np.abs(found)) if x > 1]
    guesses: list[tuple[int, ...]] = [(1,), *((1, a) for a in lengths)]
    guesses += [(1, a, b) for a, b in itertools.combinations(lengths, 2) if b % a == 0]
    steps = [_steps(found, guess) for guess in guesses]
    costs = [int(np.sum(np.abs(x))) for x in steps]
    for k in np.argsort(costs, kind="stable")[:_MOST_GRIDS]:
        yield np.array(guesses[k]), steps[k]


def _steps(offsets: Any, strides: tuple[int, ...]) -> Any:
    """The steps along each stride that lead to some offsets."""
    steps, rest = [], offsets
    for stride in reversed(strides):
        step = np.round(rest / stride).astype(np.int64)
        steps.append(step)
        rest = rest - step * stride
    return np.stack(steps[::-1], axis=1)


def _search(
    pattern: sp.csr_array, strides: Any, numbers: range, fits: Callable[..., Any],
    holds: Callable[..., bool],
) -> Indices | None:  # fmt: skip
    """Colours by the first form that fits the stencil and holds for the pattern."""
    places = coordinates(np.arange(pattern.shape[1]), strides)
    trials = 0
    for p in numbers:
        if p > _MOST_COLOURS:
            return None
        ranges = [range(1, 2), *(range(p) for _ in strides[1:])]
        forms = np.array(list(itertools.product(*ranges)))
        for form in forms[fits(forms, p)]:
            if trials == _MOST_TRIALS:
                return None
            trials += 1
            values = sum(a * x for a, x in zip(form, places.T, strict=True))
            colours = (values % p).astype(pattern.indices.dtype)
            if holds(colours):
                return colours
    return None


def _star_forms(edges: Any) -> Callable[..., Any]:
    """Which forms colour no two neighbours alike, and no path of four with two colours."""
    d = edges.shape[1]
    two = edges[:, None] + edges[None]  # from the first to the third vertex of a path
    first, second, third = np.meshgrid(*[np.arange(len(edges))] * 3, indexing="ij")
    proper = np.any(two[first, second] != 0, axis=-1) & np.any(two[second, third] != 0, axis=-1)
    paths = np.concatenate([two[first, second], two[second, third]], axis=-1)[proper]
    paths = np.unique(paths, axis=0)

    def fits(forms: Any, p: int) -> Any:
        one, other = forms @ paths[:, :d].T % p == 0, forms @ paths[:, d:].T % p == 0
        return np.all(forms @ edges.T % p != 0, axis=1) & ~np.any(one & other, axis=1)

    return fits


def _acyclic_forms(edges: Any) -> Callable[..., Any]:
    """Which forms colour no two neighbours alike, and no cycle of a small grid with two colours."""
    d = edges.shape[1]
    size = {1: 24, 2: 10}.get(d, 6)
    points = np.array(list(itertools.product(range(size), repeat=d)))
    ends = points[:, None] + edges[None]
    start, edge = np.nonzero(np.all((ends >= 0) & (ends < size), axis=-1))
    weights = size ** np.arange(d - 1, -1, -1)
    shape = (len(points), len(points))
    entries = (np.ones(start.size, bool), (start, ends[start, edge] @ weights))
    block = canonical_pattern(sp.coo_array(entries, shape=shape))

    def fits(forms: Any, p: int) -> Any:
        proper = np.all(forms @ edges.T % p != 0, axis=1)
        for k in np.flatnonzero(proper):
            colours = (points @ forms[k] % p).astype(block.indices.dtype)
            proper[k] = not recover_trees(block, colours).unknown.size
        return proper

    return fits
