"""Seeds: the directions in which a derivative is taken, a chunk at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.errors import SeedError, type_in_words
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import Structure
from fwdad.tangents.lanes import basis_lanes, hot_lanes
from fwdad.tangents.matching import match
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.zero import ZERO, NoTangent, Zero

ONE_OR_SEVERAL = "one has the value's shape, K of them have (K, *shape)"
"""What shapes cotangents have."""

NO_SEED = "got {} as the seed of an argument that has tangents: write ZERO for no change"
"""Where nothing was given."""


def leaf_shape(leaf: Any) -> tuple[int, ...]:
    """The shape of a leaf; numbers have ``()``."""
    if OWN and type(plain(leaf)) in OWN:
        return ()
    return tuple(getattr(leaf, "shape", ()))


def leaf_dtype(leaf: Any) -> np.dtype[Any]:
    """The dtype that a leaf's tangent has."""
    if OWN and type(plain(leaf)) in OWN:
        return np.dtype(object)
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None:
        return dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)
    return np.dtype(complex if isinstance(leaf, complex) else float)


# Among more given numbers than this, sums of scaled lanes are longer than it costs to multiply them
# out. The choice must not depend on the number of directions: its roundings differ.
_FEW = 8
_DOUBLE = np.dtype(np.float64)


class BasisSeeds:
    """Every unit direction, leaf after leaf, in C order."""

    eager = False  # a number's coefficients are the entries of its row already

    def __init__(self, leaves: list[Any]) -> None:
        self.shapes = [leaf_shape(leaf) for leaf in leaves]
        self.dtypes = [leaf_dtype(leaf) for leaf in leaves]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.count = sum(self.sizes)
        self.single = False
        if any(dtype.kind == "O" for dtype in self.dtypes):
            raise SeedError(
                "the argument contains an instance of a class with a tangent class of its own, "
                "for which fwdad knows no basis: pass the directions, jvp(f, x, v)"
            )

    def lanes(self, start: int, stop: int) -> list[Any]:
        """The tangents of the leaves for directions ``start`` to ``stop``."""
        made: list[Any] = []
        offset = 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, self.sizes, strict=True):
            if offset < stop and offset + size > start:
                n, first = stop - start, start - offset
                lanes = (
                    basis_lanes(n, first, shape, dtype) if shape else hot_lanes(n, -first, dtype)
                )
                made.append(Chunk.of(n, shape, {lanes: None}))
            else:
                made.append(ZERO)
            offset += size
        return made


class GivenSeeds:
    """Directions given by the caller: one, or K stacked in front; ``ZERO`` is a zero direction.

    Raises SeedError if a seed's structure, shape or kind of number does not fit its leaf.
    """

    eager = False

    def __init__(self, leaves: list[Any], structure: Structure, v: Any) -> None:
        seeds = match(structure, v)
        self.arrays: list[Any] = []
        counts: list[int | None] = []
        for leaf, seed in zip(leaves, seeds, strict=True):
            if isinstance(seed, Zero):
                self.arrays.append(ZERO)
                continue
            array, count = fit_doubles(leaf, seed) or _fit(leaf, seed)
            self.arrays.append(array)
            counts.append(count)
        if len(counts) > 1 and len(set(counts)) > 1:
            message = f"the seeds of the leaves have different numbers of directions: {counts}"
            raise SeedError(message)
        count = counts[0] if counts else None
        self.single = count is None
        self.count = 1 if count is None else count
        if len(leaves) == 1 and type(leaves[0]) is np.ndarray:
            size = leaves[0].size
        else:
            size = sum([math.prod(leaf_shape(x)) for x in leaves])
        self.eager = multiplies_out(size) and _all_doubles(self.arrays)

    def lanes(self, start: int, stop: int) -> list[Any]:
        """The tangents of the leaves for directions ``start`` to ``stop``."""
        return [a if a is ZERO else Chunk(a[start:stop]) for a in self.arrays]


def multiplies_out(size: int) -> bool:
    """Whether numbers taken out of so many have their tangents multiplied out."""
    return size > _FEW


def _all_doubles(arrays: list[Any]) -> bool:
    for a in arrays:
        if a is not ZERO and (type(a) is not np.ndarray or a.dtype is not _DOUBLE):
            return False
    return True


def fit_doubles(leaf: Any, seed: Any) -> tuple[Any, int | None] | None:
    """:func:`_fit` where there is nothing to convert, the commonest; None elsewhere."""
    if type(seed) is not np.ndarray or type(leaf) is not np.ndarray:
        return None
    if seed.dtype is not _DOUBLE or leaf.dtype is not _DOUBLE:
        return None
    if seed.shape == leaf.shape:
        return seed[None].copy(), None  # the function may write into it
    return (seed.copy(), len(seed)) if seed.ndim and seed.shape[1:] == leaf.shape else None


def _fit(leaf: Any, seed: Any) -> tuple[Any, int | None]:
    """A seed as ``(K, *shape)`` lanes of the leaf's dtype, and K (None for one direction)."""
    shape, dtype = leaf_shape(leaf), leaf_dtype(leaf)
    if dtype.kind == "O":
        return _fit_own(OWN[type(plain(leaf))].tangent, seed)
    if not hasattr(seed, "__fwdad_tag__"):
        if seed is None or seed is NoTangent:
            raise SeedError(NO_SEED.format(seed))
        check_one_array(seed, "seed")
        check_unmasked(seed, "seed")
        seed = np.asarray(seed)
        check_kind(seed.dtype, dtype)
        seed = seed.astype(dtype)  # a copy: the function may write into what came
    elif leaf_shape(seed):
        seed = seed.copy()
    seed_shape = leaf_shape(seed)
    if seed_shape == shape:
        return seed.reshape((1, *shape)) if shape else np.reshape(seed, (1,)), None
    if seed_shape[1:] == shape and len(seed_shape) == len(shape) + 1:
        return seed, seed_shape[0]
    stacked = f"{('K', *shape)}".replace("'", "")
    raise SeedError(
        f"got a seed of shape {seed_shape} for an argument of shape {shape}: one direction has "
        f"that shape, K directions are stacked along a new first axis, {stacked}"
    )


def check_kind(seed: np.dtype[Any], argument: np.dtype[Any]) -> None:
    """Raise for a seed that is no number, or a complex one for a real argument."""
    if seed.kind == "c" and argument.kind != "c":
        raise SeedError(f"got a complex seed for a real argument of dtype {argument}")
    if seed.kind not in "biufc":
        raise SeedError(f"expected a float array; got a seed of dtype {seed}")


def check_one_array(items: Any, what: str) -> None:
    """Raise for a tuple, or a list with arrays in it, in the place of one array or number.

    NumPy would make an array with an axis more of it, which is that of several directions. A list
    of numbers, or of such lists, is one array.
    """
    if type(items) in (tuple, dict) or (type(items) is list and not _has_numbers(items)):
        many = "" if len(items) == 1 else "; stack several along a new first axis, np.stack(…)"
        raise SeedError(
            f"got {type_in_words(items)} of length {len(items)} as the {what} of one array or "
            f"number: pass the {what} itself{many}"
        )


def _has_numbers(items: Any) -> bool:
    """Whether no innermost item of nested lists is an array, tuple or dict."""
    return all(
        _has_numbers(item) if type(item) is list else not np.ndim(item) and type(item) is not dict
        for item in items
    )


def check_unmasked(x: Any, what: str) -> None:
    """Raise for a masked array that leaves elements out: what is under the mask would be taken."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise SeedError(f"got a {what} with masked elements: write x.filled(0.0)")


def _fit_own(cls: type, seed: Any) -> tuple[Any, int | None]:
    """Seeds of a leaf whose tangents have a class of their own: one, or a sequence of K."""
    single = type(seed) is cls
    directions = (
        [seed] if single else list(seed) if isinstance(seed, (list, tuple, np.ndarray)) else []
    )
    if not directions or any(type(t) is not cls for t in directions):
        raise SeedError(
            f"got {type_in_words(seed)} as the seed of an argument whose tangents are "
            f"{cls.__qualname__}: pass one, or a sequence of K"
        )
    lanes = np.empty(len(directions), object)
    lanes[:] = directions
    return lanes, None if single else len(directions)


def random_seeds(leaves: list[Any], count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random directions ``(count, *shape)`` for each leaf, normal in every real part."""
    seeds = []
    for leaf in leaves:
        shape, dtype = leaf_shape(leaf), leaf_dtype(leaf)
        v = rng.standard_normal((count, *shape))
        if dtype.kind == "c":
            v = v + 1j * rng.standard_normal((count, *shape))
        seeds.append(v.astype(dtype))
    return seeds
