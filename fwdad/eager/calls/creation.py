"""Arrays made from duals: ``numpy.array([a, b])`` and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import isinstance_dual, split, top_tag
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.memory.stale import check_lists
from fwdad.eager.run import Tag
from fwdad.errors import DualLeakError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.laws.listing import dense, would_lose_it
from fwdad.tangents.plain import plain
from fwdad.tangents.scaling import MAX_ARRAY_TERMS
from fwdad.tangents.zero import Undefined


def make_array(values: Any, dtype: Any = None) -> Any:
    """``numpy.array(values)`` for values that hold duals at any depth."""
    check_lists((values,))
    if type(values) is list and dtype is None:
        kinds = set(map(type, values))
        if Scalar in kinds and kinds <= _NUMBERS:
            tag = top_tag(values)
            assert tag is not None
            return _from_scalars(values, tag)
    if dtype is not None and np.dtype(dtype).kind == "O":
        return _object_array(values)
    values = explicit(values)
    if isinstance_dual(values):
        return cast(as_array(values), dtype, copy=True)
    if SHADOWED:
        values = explicit_items(values)
    tag = top_tag(values)
    if tag is None:
        return np.array(values, dtype)
    items = list(values)
    if _NUMBERS.issuperset(map(type, items)):
        return cast(_from_scalars(items, tag), dtype, copy=False)
    rows = [make_array(v) if _holds(v) else np.asarray(v) for v in items]
    return cast(_stack(rows, tag), dtype, copy=False)


def explicit_items(values: Any) -> Any:
    """A nested list with the tangents in the memory of its arrays made explicit."""
    if isinstance(values, (list, tuple)):
        return [explicit_items(v) for v in values]
    return explicit(values)


def _holds(v: Any) -> bool:
    return isinstance_dual(v) or (isinstance(v, (list, tuple)) and top_tag(v) is not None)


def _object_array(values: Any) -> np.ndarray:
    if not isinstance_dual(values):
        array = np.empty(len(values), object)
        for k, v in enumerate(values):
            array[k] = v
        return array
    array = np.empty_like(plain(values), object)
    for index in np.ndindex(array.shape):
        array[index] = values[index] if type(values) is Array else values
    return array


_NUMBERS = {Scalar, float, int, complex, bool, np.float64, np.float32, np.complex128, np.int64}


def _from_scalars(items: list[Any], tag: Tag) -> Array:
    primals = [x.p if type(x) is Scalar and x.tag is tag else x for x in items]
    nested = Scalar in set(map(type, primals))
    p = make_array(primals) if nested else np.array(primals)
    dtype = plain(p).dtype
    if dtype.kind not in "fc":
        p = p.astype(float)
        dtype = p.dtype
    if tag.record is not None:
        rows = [x.terms if type(x) is Scalar and x.tag is tag else None for x in items]
        return Array(p, tag.record.gather(rows, dtype), tag)
    if nested:
        return Array(p, _general(items, tag, p), tag)
    positions: list[int] = []
    values: list[Any] = []
    m = len(items)
    for k, x in enumerate(items):
        if type(x) is Scalar and x.tag is tag:
            terms = x.terms
            positions += [held.lane * m + k for held in terms]
            values += terms.values()
    if np.ndarray in map(type, values):  # a coefficient for each lane
        zero = np.zeros(tag.n, dtype)
        columns = [x.t.lanes if type(x) is Scalar and x.tag is tag else zero for x in items]
        return Array(p, Chunk(np.stack(columns, axis=-1)), tag)
    if positions and min(positions) < 0:  # some lanes are no unit direction
        return Array(p, _general(items, tag, p), tag)
    # Seeds of a basis: the coefficients are the Jacobian's entries.
    lanes = np.zeros(tag.n * m, dtype)
    lanes[positions] = values
    return Array(p, Chunk(lanes.reshape(tag.n, m)), tag)


def _general(items: list[Any], tag: Tag, p: Any) -> Chunk:
    columns: dict[Lanes, list[Any]] = {}
    for k, x in enumerate(items):
        if type(x) is Scalar and x.tag is tag:
            for lanes, d in x.terms.items():
                columns.setdefault(lanes, [0.0] * len(items))[k] = d
    terms = {}
    for lanes, column in columns.items():
        d = make_array(column)
        if plain(d).dtype != plain(p).dtype and plain(d).dtype.kind == "f":
            d = d.astype(plain(p).dtype)
        terms[Lanes(lanes.array.reshape(tag.n, 1))] = d
    chunk = Chunk.of(tag.n, (len(items),), terms)
    if len(terms) <= MAX_ARRAY_TERMS:
        if all(lanes.finite for lanes in columns if lanes.known):
            return chunk
    else:
        product = Lanes(chunk.lanes)
        if not product.known or product.finite:
            return Chunk(product.array)
    # Lanes that are not finite move their own items, and not those where their coefficient is zero.
    zero = np.zeros(tag.n, plain(p).dtype)
    rows = [x.t.lanes if type(x) is Scalar and x.tag is tag else zero for x in items]
    return Chunk(np.stack(rows, axis=-1))


def as_array(x: Any) -> Any:
    """A dual scalar as a 0-d dual array."""
    if type(x) is not Scalar:
        return x
    return Array(np.asarray(x.p) if not isinstance_dual(x.p) else as_array(x.p), x.t, x.tag)


def _stack(rows: list[Any], tag: Tag) -> Array:
    pairs = [split(row, tag) for row in rows]
    if len({np.shape(p) for p, _ in pairs}) > 1:
        np.array([plain(p) for p, _ in pairs])  # raises NumPy's error
    chunks = []
    for p, t in pairs:
        if isinstance(t, Undefined):
            t.use()
        chunks.append(dense(t, p, tag.n))
    p = np.stack([p for p, _ in pairs])
    return Array(p, np.stack(chunks), tag)  # type: ignore[call-overload]


def cast(x: Any, dtype: Any, *, copy: bool) -> Any:
    """``x.astype(dtype)`` for a dual array; raises for dtypes that would lose the tangent."""
    if dtype is not None:
        if isinstance(dtype, type) and issubclass(dtype, np.dtype):
            dtype = dtype()
        dtype = np.dtype(dtype)
        if dtype != plain(x).dtype:
            if dtype.kind not in "fc":
                raise DualLeakError(would_lose_it(dtype))
            return _cast(x, dtype)
    return copied(x, "K") if copy else x


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    if type(x) is not Array:
        return x.astype(dtype)
    t = x.t
    p = _cast(x.p, dtype)
    return Array(p, t.astype(dtype) if isinstance(t, Chunk) else t, x.tag)


def copied(x: Any, order: Any = "C") -> Any:
    """A copy of an array with the tangents of its own dual; a scalar itself."""
    return x if isinstance(x, Scalar) else with_values(x, plain(x).copy(order))


def with_values(x: Any, values: Any) -> Any:
    """A dual array on NumPy's own array: of another layout, or rounded otherwise."""
    return Array(with_values(x.p, values), x.t, x.tag) if type(x) is Array else values
