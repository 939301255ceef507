"""Indexing by arrays, for the Numba source: gathering, storing, and adding up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fwdad.codegen.loops.arrays.functions import (
    as_array,
    handles,
    name_text,
    write_where,
)
from fwdad.codegen.loops.notation import Leaf, length_text, lengths_of, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import INT64, Term, numpy_number
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Load, Operand, Store, Update, Value, is_array
from fwdad.ir.primitives.scatter_add import last_writes
from fwdad.ir.types import Dimension, Number, Size, sliced


class _Part(NamedTuple):
    """What selects along one axis: an array of ints, or one int."""

    axis: int
    leaf: Leaf | None
    number: str
    inside: bool  # its indices are known to be inside
    clipped: bool = False  # those outside are the nearest ones inside


class _Places(NamedTuple):
    """The elements that an index with arrays selects.

    ``view`` is the array after the slices of the index. Of the result's axes, those from ``first``
    on, ``rank`` of them, belong to the index arrays. ``lengths`` are the result's as source,
    ``dims`` as the tape knows them; ``steps`` are those of index arrays that may be broadcast.
    """

    view: Leaf
    parts: list[_Part]
    first: int
    rank: int
    lengths: list[str]
    dims: list[Dimension]
    steps: dict[tuple[str, int], str]


def is_index_array(i: Operand) -> bool:
    """Whether a part of an index is an array, or a list."""
    return is_array(i) or isinstance(i, (list, np.ndarray))


def _places(w: Parts, a: Value, index: Sequence[Operand], copied: bool = False) -> _Places:
    """Write what an index needs before its loops; ``copied`` if `a` is going to be written."""
    items = _expanded(w, a, index)
    view, shape = _windowed(w, a, items)
    parts: list[_Part] = []
    at: list[int] = []
    axis = 0
    for k, i in enumerate(items):
        if isinstance(i, Value) and is_array(i):
            name = _own_name(w, i, a if copied else None)
            if i.type.dtype.kind == "b":
                lengths = [f"{view}.shape[{axis + j}]" for j in range(i.type.ndim)]
                parts += _true_places(w, i, name, axis, lengths)
                axis += i.type.ndim
            elif i.type.dtype.kind in "iu":
                parts.append(_Part(axis, Leaf(name, i.type.shape, i), "", inside=False))
                axis += 1
            else:
                raise w.operands.cannot("an index array that is neither of ints nor of bools")
            at.append(k)
        elif i is None or isinstance(i, slice):
            axis += 1
        else:
            number = w.operands.atom(w.operands.term(i)).text
            parts.append(_Part(axis, None, number, inside=False))
            axis += 1
            at.append(k)
    leaves = [p.leaf for p in parts if p.leaf is not None]
    rank = max(len(leaf.shape) for leaf in leaves)
    inner, steps = w.elements.lengths(leaves, rank)
    inner = [name_text(w, n, "n") for n in inner]
    w.elements.compare(leaves, inner, steps)
    chosen = {p.axis for p in parts}
    together = at == list(range(at[0], at[-1] + 1))
    first = min(chosen) if together else 0
    rest = [k for k in range(len(shape)) if k not in chosen]
    lengths = [length_text(shape[k], view, k) for k in rest]
    dims = [shape[k] for k in rest]
    lengths[first:first] = inner
    dims[first:first] = _broadcast_dims(w, leaves, rank)
    return _Places(Leaf(view, tuple(shape), a), parts, first, rank, lengths, dims, steps)


def _expanded(w: Parts, a: Value, index: Sequence[Operand]) -> list[Any]:
    """An index with one item for each axis (masks aside), and lists as arrays."""
    items = [as_array(w, i) if is_index_array(i) else i for i in index]
    for i in items:
        if isinstance(i, (bool, np.bool_)) or (
            isinstance(i, Value) and i.type.dtype.kind == "b" and not i.type.shape
        ):
            raise w.operands.cannot("an index that is a bool")
    used = sum(_rank_used(i) for i in items)
    missing = a.type.ndim - used
    if Ellipsis in [i for i in items if i is Ellipsis]:
        k = next(k for k, i in enumerate(items) if i is Ellipsis)
        if not missing and any(map(is_array, items[:k])) and any(map(is_array, items[k + 1 :])):
            raise w.operands.cannot("an ellipsis between index arrays")
        items[k : k + 1] = [slice(None)] * missing
    else:
        items += [slice(None)] * missing
    return items


def _rank_used(i: Any) -> int:
    if i is None or i is Ellipsis:
        return 0
    return i.type.ndim if is_array(i) and i.type.dtype.kind == "b" else 1


def _windowed(w: Parts, a: Value, items: list[Any]) -> tuple[str, list[Dimension]]:
    """The array after the slices and new axes of an index, and its lengths."""
    name = w.operands.array(a)
    rest = list(a.type.shape)
    shape: list[Dimension] = []
    basic: list[Any] = []
    for i in items:
        if i is None:
            shape.append(1)
            basic.append(None)
        elif isinstance(i, slice):
            shape.append(sliced(rest.pop(0), i))
            basic.append(i)
        else:
            for _ in range(_rank_used(i)):
                shape.append(rest.pop(0))
                basic.append(slice(None))
    if all(isinstance(i, slice) and i == slice(None) for i in basic):
        return name, shape
    view = w.names.temporary("view")
    w.code.line(f"{view} = {name}[{w.stores.view_index(tuple(basic))}]")
    return view, shape


def _own_name(w: Parts, i: Value, written: Value | None) -> str:
    """The name of an index array, or of a copy if it may change while it is used."""
    name = w.operands.array(i)
    if written is None or not w.memory.may_overlap(i, written):
        return str(name)
    copy = w.names.temporary("copy")
    w.code.line(f"{copy} = {name}.copy()")
    return str(copy)


def _true_places(w: Parts, mask: Value, name: str, axis: int, lengths: list[str]) -> list[_Part]:
    """A mask as arrays of ints, one for each of its axes."""
    _check_mask(w, mask, name, lengths)
    made, size = [w.names.temporary("at") for _ in lengths], Size()
    write_where(
        w, lengths, lambda loop: f"{name}[{subscript(loop)}]", lambda loop: loop, made, INT64
    )
    return [_Part(axis + k, Leaf(n, (size,), None), "", inside=True) for k, n in enumerate(made)]


def _check_mask(w: Parts, mask: Value, name: str, lengths: list[str]) -> None:
    for k, (d, n) in enumerate(zip(mask.type.shape, lengths, strict=True)):
        length = length_text(d, name, k)
        if length != n:
            w.code.line(f"if {length} != {n}:")
            w.code.line("    raise IndexError('boolean index did not match indexed array')")


def _broadcast_dims(w: Parts, leaves: list[Leaf], rank: int) -> list[Dimension]:
    """What is known of the lengths to which index arrays broadcast."""
    lengths: list[Dimension] = []
    for axis in range(rank):
        long_lengths = {
            w.facts.length_of(leaf.shape[axis - rank])
            for leaf in leaves
            if len(leaf.shape) >= rank - axis
        } - {1}
        lengths.append(
            long_lengths.pop() if len(long_lengths) == 1 else Size() if long_lengths else 1
        )
    return lengths


@contextmanager
def _each(w: Parts, p: _Places) -> Iterator[tuple[list[str], str]]:
    """Loops over the result: their indices, and the selected element as source."""
    loop = w.loops.index_names(len(p.lengths), inner=True)
    indices: dict[int, str] = {}
    for depth in range(len(loop) + 1):
        if depth == p.first + p.rank:
            counters = loop[p.first : p.first + p.rank]
            for part in p.parts:
                indices[part.axis] = _place(w, p, part, counters)
        if depth < len(loop):
            w.code.line(f"for {loop[depth]} in range({p.lengths[depth]}):")
            w.code.indent += 1
    rest = iter([*loop[: p.first], *loop[p.first + p.rank :]])
    at = [indices[k] if k in indices else next(rest) for k in range(len(p.view.shape))]
    yield loop, f"{p.view.name}[{subscript(at)}]"
    w.loops.close(loop)


def _place(w: Parts, p: _Places, part: _Part, loop: list[str]) -> str:
    """The index along one axis, as a name that needs no further check."""
    text = part.number
    if part.leaf is not None:
        name, shape, _ = part.leaf
        text = f"{name}[{subscript(w.elements.index_into(name, shape, loop, p.steps))}]"
    if part.clipped:  # without a branch, so that the loop can be vectorised
        text = f"min(max({text}, 0), {p.view.name}.shape[{part.axis}] - 1)"
    elif not part.inside:
        text = f"{w.helpers.use('place')}({text}, {p.view.name}.shape[{part.axis}])"
    place = w.names.temporary("place")
    w.loops.inside.append(place)
    w.code.line(f"{place} = {text}")
    return str(place)


# -- what is stored


def _stored_value(w: Parts, p: _Places, value: Operand, dtype: np.dtype[Any] | None = None) -> Any:
    """A function from the indices of the loops to the term that is stored there."""
    if not is_array(value) or not value.type.ndim:
        item = w.operands.number(value)
        if dtype is not None and not is_array(value):
            item = w.operands.converted(item, dtype, item=False)
        item = w.operands.atom(item)
        return lambda _: item
    rank = len(p.dims)
    if value.type.ndim > rank:
        raise w.operands.cannot("an array that is stored into one of lower rank")
    if value in w.elements.lazy:
        waits = _waiting(w, p, value)
        if waits is not None:
            return waits
    name = _own_name(w, value, p.view.value)
    steps: dict[tuple[str, int], str] = {}
    leaf = Leaf(name, value.type.shape, value)
    w.elements.stretch(leaf, p.dims, p.lengths, steps)
    w.elements.compare([leaf], p.lengths, steps)
    t = numpy_number(value.type.dtype)
    return lambda loop: Term(
        f"{name}[{subscript(w.elements.index_into(name, leaf.shape, loop, steps))}]", ATOM, t
    )


def _waiting(w: Parts, p: _Places, value: Value) -> Any:
    """The same for a deferred value that has the result's lengths and no overlap; else None."""
    assert p.view.value is not None
    same = len(value.type.shape) == len(p.dims) and all(
        w.facts.length_of(d) == w.facts.length_of(e)
        for d, e in zip(value.type.shape, p.dims, strict=True)
    )
    read = w.elements.leaf_values(value)
    if not same or any(w.memory.may_overlap(v, p.view.value) for v in read):
        return None
    leaves = w.elements.prepare(w.elements.lazy[value])
    if value not in w.elements.lazy:
        return None
    own, steps = w.elements.lengths(leaves, value.type.ndim)
    for n, wanted in zip(own, p.lengths, strict=True):
        if n != wanted:
            w.code.line(f"{w.helpers.use('equal_length')}({n}, {wanted})")
    w.elements.compare(leaves, own, steps)
    return lambda loop: w.elements.element(value, loop, steps)


def _write(w: Parts, p: _Places, value: Operand, function: Any) -> None:
    """Store elements, or combine them with the old ones, one after the other."""
    assert p.view.value is not None
    dtype = p.view.value.type.dtype
    item = _stored_value(w, p, value, None if function else dtype)
    with _each(w, p) as (loop, target):
        w.code.line(f"{target} = {w.operands.updated(target, function, item(loop), dtype)}")
    if is_array(value):
        w.elements.done(value)


# -- masks of all axes


def _only_mask(index: Sequence[Operand], a: Value) -> Value | None:
    """The mask of all axes that an index is, or None."""
    if len(index) == 1 and isinstance(index[0], Value) and is_array(index[0]):
        t = index[0].type
        if t.dtype.kind == "b" and t.ndim == a.type.ndim and t.ndim:
            return index[0]
    return None


def _count(w: Parts, name: str, lengths: list[str]) -> str:
    count = w.names.temporary("count")
    w.code.line(f"{count} = 0")
    with w.loops.nest(lengths) as loop:
        w.code.line(f"if {name}[{subscript(loop)}]:")
        w.code.line(f"    {count} += 1")
    return str(count)


def _load_masked(w: Parts, op: Load, mask: Value) -> None:
    array, name = w.operands.array(op.array), w.names.name(op.outputs[0])
    where = w.operands.array(mask)
    lengths = lengths_of(op.array, array)
    _check_mask(w, mask, where, lengths)

    def item(loop: list[str]) -> list[str]:
        return [f"{array}[{subscript(loop)}]"]

    dtype = op.outputs[0].type.dtype
    write_where(w, lengths, lambda loop: f"{where}[{subscript(loop)}]", item, [name], dtype)


def _store_masked(w: Parts, op: Store | Update, mask: Value, function: Any) -> None:
    array, dtype = w.operands.array(op.array), op.array.type.dtype
    lengths = lengths_of(op.array, array)
    where = _own_name(w, mask, op.array)
    _check_mask(w, mask, where, lengths)
    count = step = None
    if is_array(op.value) and op.value.type.ndim:
        if op.value.type.ndim > 1:
            raise w.operands.cannot("a matrix that is stored through a mask")
        source, count = _own_name(w, op.value, op.array), _count(w, where, lengths)
        step = w.names.temporary("step")
        w.code.line(f"{step} = {w.helpers.use('check_length')}({source}.shape[0], {count})")
        w.code.line(f"{count} = 0")
        value = Term(f"{source}[{count} * {step}]", ATOM, numpy_number(op.value.type.dtype))
    else:
        value = w.operands.number(op.value)
        if function is None and not is_array(op.value):
            value = w.operands.converted(value, dtype, item=False)
        value = w.operands.atom(value)
    with w.loops.nest(lengths) as loop:
        target = f"{array}[{subscript(loop)}]"
        w.code.line(f"if {where}[{subscript(loop)}]:")
        w.code.line(f"    {target} = {w.operands.updated(target, function, value, dtype)}")
        if count is not None:
            w.code.line(f"    {count} += 1")


# -- loads, stores and sums


def fancy_load(w: Parts, op: Load) -> None:
    """``a[ix]`` as a copy."""
    (out,) = op.outputs
    mask = _only_mask(op.index, op.array)
    if mask is not None:
        _load_masked(w, op, mask)
        return
    _gather(w, out, op.array, op.index)


def _gather(
    w: Parts, out: Value, a: Value, index: Sequence[Operand], *, clipped: bool = False
) -> None:
    p = _places(w, a, index)
    if clipped:
        p = p._replace(parts=[part._replace(clipped=True) for part in p.parts])
        for part in p.parts:  # of no element there is no nearest one
            n = f"{p.view.name}.shape[{part.axis}]"
            w.code.line(f"if {n} == 0 and {' * '.join(p.lengths) or '1'} > 0:")
            w.code.line(f"    {w.helpers.use('place')}(0, {n})")
    if len(p.lengths) != out.type.ndim:
        raise w.operands.cannot("this index")
    if isinstance(out.type, Number):
        with _each(w, p) as (_, source):
            w.code.line(f"{w.names.name(out)} = {source}")
        return
    w.arrays.new(out, p.lengths)
    with _each(w, p) as (loop, source):
        w.code.line(f"{w.names.name(out)}[{subscript(loop)}] = {source}")


def fancy_store(w: Parts, op: Store | Update) -> None:
    """``a[ix] = value`` and ``a[ix] op= value``."""
    function = op.function if isinstance(op, Update) else None
    mask = _only_mask(op.index, op.array)
    if mask is not None:
        _store_masked(w, op, mask, function)
        return
    p = _places(w, op.array, op.index, copied=True)
    if function is None:
        _write(w, p, op.value, None)
        return
    # an element selected twice keeps the last result, computed from its old value
    dtype = op.array.type.dtype
    item = _stored_value(w, p, op.value)
    name = w.names.temporary("new")
    w.code.line(f"{name} = {w.arrays.empty(p.lengths, dtype)}")
    with _each(w, p) as (loop, source):
        text = w.operands.updated(source, function, item(loop), dtype)
        w.code.line(f"{name}[{subscript(loop)}] = {text}")
    with _each(w, p) as (loop, target):
        w.code.line(f"{target} = {name}[{subscript(loop)}]")
    if is_array(op.value):
        w.elements.done(op.value)


@handles(np.add.at, np.subtract.at)
def _accumulate(w: Parts, op, a, at, value):
    index = at if isinstance(at, tuple) else (at,)
    if not any(map(is_index_array, index)):
        raise TypeError("at an index without arrays")
    ufunc = np.add if op.function == np.add.at else np.subtract
    _write(w, _places(w, a, index, copied=True), value, ufunc)


@handles(np.take)
def _take(w: Parts, op, a, indices, axis=None, mode="raise"):
    modes = ("raise", "clip")
    if not is_array(a) or mode not in modes or not isinstance(axis, (int, type(None))):
        raise TypeError("of a list, in another mode, or along an axis that is no int")
    dtype = indices.type.dtype if isinstance(indices, Value) else np.asarray(indices).dtype
    if dtype.kind == "b":  # zeros and ones here
        raise TypeError("at truth values")
    if mode == "clip" and dtype == np.uint64:  # the nearest of these and of ints is a float
        raise TypeError("clipped, at unsigned ints of 64 bits")
    (out,) = op.outputs
    if axis is None and a.type.ndim != 1:
        raise TypeError("of a matrix without an axis")
    axis = (axis or 0) % a.type.ndim
    clipped = mode == "clip"
    _gather(w, out, a, (*[slice(None)] * axis, as_array(w, indices)), clipped=clipped)


@handles(last_writes)
def _last_writes(w: Parts, op, a, index, values):  # noqa: ARG001 (they have the result's shape)
    (out,) = op.outputs
    p = _places(w, a, index)
    whole, count = w.names.temporary("last"), w.names.temporary("count")
    array = p.view.name
    lengths = [length_text(d, array, k) for k, d in enumerate(p.view.shape)]
    w.code.line(f"{whole} = {w.arrays.empty(lengths, INT64)}")
    over = p._replace(view=p.view._replace(name=whole))
    w.code.line(f"{count} = 0")
    with _each(w, over) as (_, place):
        w.code.line(f"{place} = {count}")
        w.code.line(f"{count} += 1")
    w.arrays.new(out, p.lengths)
    w.code.line(f"{count} = 0")
    with _each(w, over) as (loop, place):
        w.code.line(f"{w.names.name(out)}[{subscript(loop)}] = {place} == {count}")
        w.code.line(f"{count} += 1")


@handles(np.copyto)
def _copyto(w: Parts, op, target, value, casting="same_kind", where=True):  # noqa: ARG001 (types are known)
    if where is not True or not is_array(target):
        raise TypeError("with where=")
    w.stores.write_over(target, value)
