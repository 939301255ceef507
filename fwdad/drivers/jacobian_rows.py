"""Jacobians in reverse mode: the rows are unit cotangents, pulled back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.core.progress import Progress
from fwdad.drivers.pullback import Pullback, leaves_of_x, vjp
from fwdad.drivers.tape_cache import tape_at, traced
from fwdad.eager.activity import is_active
from fwdad.eager.arguments import Arguments
from fwdad.evaluation.arguments import arguments_of, width_of
from fwdad.evaluation.jacobian_layout import like_numbers
from fwdad.evaluation.out_arrays import JacobianOut
from fwdad.evaluation.signatures import Argnums, ChunkSize, Function, Outputs
from fwdad.frontend.derivatives.pulled import value_alone
from fwdad.tangents.composite import flatten, leaf_order, unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.zero import ZERO, NoTangent

_FEW = 64  # directions that forward mode takes at once
_RATIO = 4


def value_and_rows(
    f: Function,
    x: Any,
    *,
    chunk: ChunkSize,
    argnums: Argnums,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    has_aux: bool,
    outputs: Outputs,
    stack: bool,
    sink: JacobianOut | None = None,
    progress: Progress,
) -> Any:
    """Value and Jacobian of a function in reverse mode; parameters as for :func:`jacobian`."""
    result = vjp(
        f, x, argnums=argnums, args=args, kwargs=kwargs, has_aux=has_aux, outputs=outputs,
        chunk=chunk,
    )  # fmt: skip
    y, pullback = result[:2]
    leaves, _ = flatten(y)
    arguments, single = arguments_of(f, x, args, kwargs, argnums)
    progress.begin(sum(math.prod(leaf_shape(leaf)) for leaf in leaves), "rows")
    if sink is not None:
        given: Any = {"single": single, "chunk": chunk, "progress": progress}
        put_rows(sink, pullback, y, arguments, **given)
        return (y, sink.out, *result[2:])
    x_bar = pullback.of_leaves(unit_cotangents(leaves), progress.update)
    found = leaves_of_x(arguments, x_bar, single=single)
    return (y, rows_in_structures(y, found, arguments, single=single, stack=stack), *result[2:])


def rows_in_structures(
    y: Any, found: list[Any], arguments: Arguments, *, single: bool, stack: bool
) -> Any:
    """The Jacobian, of all cotangents of x's leaves for :func:`unit_cotangents` of y."""
    leaves, structure = flatten(y)
    sizes = [math.prod(leaf_shape(leaf)) for leaf in leaves]
    parts_of = zip(_rows_of_leaves(leaves, found), leaves, strict=True)
    rows = [[_as_precise(part, leaf) for part in parts] for parts, leaf in parts_of]
    if stack:
        wide = [
            np.concatenate([p.reshape(size, math.prod(p.shape[1:])) for p in parts], axis=1)
            for size, parts in zip(sizes, rows, strict=True)
        ]
        return np.concatenate([wide[k] for k in leaf_order(structure)])
    blocks = []
    for leaf, parts in zip(leaves, rows, strict=True):
        own = [p.reshape(leaf_shape(leaf) + p.shape[1:]) for p in parts]
        own = [
            like_numbers(part, leaf, arg) for part, arg in zip(own, arguments.leaves, strict=True)
        ]
        trees, at = [], 0
        for inner, count in zip(arguments.structures, arguments.counts, strict=True):
            trees.append(unflatten(inner, own[at : at + count], lambda _: NoTangent))
            at += count
        blocks.append(trees[0] if single else tuple(trees))
    return unflatten(structure, blocks, lambda _: NoTangent)


def put_rows(
    sink: JacobianOut,
    pullback: Pullback[Any],
    y: Any,
    arguments: Arguments,
    *,
    single: bool,
    chunk: ChunkSize,
    progress: Progress,
) -> None:
    """Write the Jacobian of a value into memory that is given, some rows at a time."""
    leaves, structure = flatten(y)
    complex_x = filter(_is_complex, arguments.leaves)
    dtypes = [leaf_dtype(plain(x)) for x in (*complex_x, *leaves)]
    sink.begin(leaves, structure, np.result_type(*dtypes))
    for k, leaf in enumerate(leaves):
        count = math.prod(leaf_shape(leaf))
        width = width_of(chunk, count, [leaf, *arguments.leaves])
        n = min(width if isinstance(width, int) else width(None), max(count, 1))
        for start, stop, bars in unit_vectors(leaf, count, n):

            def pulled(given: Any, k: int = k, stop: int = stop - start) -> list[Any]:
                parts: list[Any] = [ZERO] * len(leaves)
                parts[k] = given
                x_bar = pullback.of_leaves(parts)
                return [p[:stop] for p in leaves_of_x(arguments, x_bar, single=single)]

            rows = pulled(bars)
            if _is_complex(leaf):  # Re(conj(i) J) = Im J
                rows = [r + 1j * i for r, i in zip(rows, pulled(1j * bars), strict=True)]
            sink.put_rows(k, start, stop, rows)
            progress.update(stop - start)


def unit_vectors(like: Any, count: int, n: int) -> Iterator[tuple[int, int, Any]]:
    """The unit vectors in the shape of an array, n at a time, in the same memory.

    The last ones are filled up with zeros, such that one program takes all.
    """
    shape = leaf_shape(like)
    units = np.zeros((n, count), leaf_dtype(like))
    for start in range(0, count, n):
        stop = min(start + n, count)
        at = np.arange(stop - start), np.arange(start, stop)
        units[at] = 1
        yield start, stop, units.reshape(n, *shape)
        units[at] = 0


def unit_cotangents(
    leaves: list[Any], first: int = 0, last: int | None = None, n: int = 0
) -> list[np.ndarray]:
    """One row for each element of a value, and a second one, i times it, where it is complex.

    Of these the ``first`` to the ``last``, filled up with zeros to ``n``; by default all.
    """
    sizes = [math.prod(leaf_shape(leaf)) for leaf in leaves]
    counts = [size * (1 + _is_complex(leaf)) for size, leaf in zip(sizes, leaves, strict=True)]
    last = sum(counts) if last is None else last
    start, bars = 0, []
    for leaf, size, count in zip(leaves, sizes, counts, strict=True):
        rows = np.zeros((max(n, last - first), size), leaf_dtype(leaf))
        for begin, unit in ((start, 1), (start + size, 1j))[: count // max(size, 1)]:
            at = np.arange(max(begin, first), min(begin + size, last))
            rows[at - first, at - begin] = unit
        bars.append(rows.reshape(len(rows), *leaf_shape(leaf)))
        start += count
    return bars


def _rows_of_leaves(leaves: list[Any], parts: list[np.ndarray]) -> list[list[np.ndarray]]:
    """The rows of the Jacobian for each leaf of a value.

    A cotangent i times a unit gives the imaginary part: Re(conj(i) J) = Im J.
    """
    rows, start = [], 0
    for leaf in leaves:
        size = math.prod(leaf_shape(leaf))
        rows_of_leaf = [p[start : start + size] for p in parts]
        start += size
        if _is_complex(leaf):
            rows_of_leaf = [
                real + 1j * p[start : start + size]
                for real, p in zip(rows_of_leaf, parts, strict=True)
            ]
            start += size
        rows.append(rows_of_leaf)
    return rows


def _as_precise(rows: Any, y: Any) -> Any:
    """Rows in the precision of the value, which columns have."""
    wanted = leaf_dtype(plain(y))
    others = rows.dtype.kind == wanted.kind == "f" and rows.dtype != wanted
    return rows.astype(wanted) if others else rows


def _is_complex(leaf: Any) -> bool:
    return leaf_dtype(leaf).kind == "c"


def rows_pay(
    f: Function, arguments: Arguments, argnums: Argnums, options: dict[str, Any]
) -> Untraced | None:
    """None if rows are far fewer than columns and f can be traced; else why they do not pay."""
    columns = sum(math.prod(leaf_shape(leaf)) for leaf in arguments.leaves)
    reason = ""
    if columns <= _FEW:
        reason = f"reverse mode pays from {_FEW + 1} columns on, and there are {columns}"
    elif is_active((*arguments.args, *arguments.kwargs.values())):
        reason = "an argument carries tangents"
    elif options["outputs"] != "returned":
        reason = "the outputs include what f writes into its arguments"
    if reason:
        return Untraced(f, reason=reason)
    traced_of = (f, argnums, arguments.args, arguments.kwargs, options)
    at = tape_at(value_alone, *traced_of)
    if isinstance(at, Untraced):
        return at
    if any(at[0].tape.program.written):  # f is not run once more, only to count rows
        return Untraced(f, reason="it writes into arrays from outside")
    y = traced(value_alone, *traced_of)
    if isinstance(y, Untraced):
        return y
    leaves, _ = flatten(y[0] if options["has_aux"] else y)
    rows = sum(math.prod(leaf_shape(leaf)) for leaf in leaves)
    if 0 < rows * _RATIO <= columns:
        return None
    reason = (
        f"reverse mode pays from {_RATIO} times as many columns as rows on, and there are "
        f"{columns} columns and {rows} rows"
    )
    return Untraced(f, reason=reason)
