"""Indices that are arrays, for the Numba source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.backends.array_functions import (
    as_array,
    handles,
    length_text,
)
from fwdad.backends.elementwise import Term, numpy_number
from fwdad.tape.notation import ATOM
from fwdad.tape.ops import Load, Operand, Store, Update, Value, is_array
from fwdad.tape.types import Number

Writer = Any  # the NumbaWriter: it knows this module, not the other way round


def _index_array(w: Writer, index: Sequence[Operand]) -> tuple[int, Value]:
    """The only array in an index, and its place; everything else is a full slice."""
    found = [(k, as_array(w, i)) for k, i in enumerate(index)
             if is_array(i) or isinstance(i, (list, np.ndarray))]  # fmt: skip
    full = all(isinstance(i, slice) and i == slice(None) for k, i in enumerate(index)
               if k not in [at for at, _ in found])  # fmt: skip
    if len(found) != 1 or not full:
        raise w.cannot("this index")
    return found[0]


def fancy_load(w: Writer, op: Load, array: str) -> None:
    """``a[ix]`` as a copy."""
    (out,) = op.outputs
    index = op.index
    place, at = _index_array(w, index)
    if not hasattr(out.type, "shape") or isinstance(out.type, Number):
        raise w.cannot("this index")
    name, where = w.name(out), w.array(at)
    shape = op.array.type.shape
    lengths = [length_text(d, array, k) for k, d in enumerate(shape)]
    if at.type.dtype.kind == "b":
        if place != 0 or at.type.ndim != len(shape):
            raise w.cannot("a mask of some of the axes")
        _check_same(w, where, at, array, op.array)
        count = w.temporary("count")
        for last in (False, True):
            w.line(f"{count} = 0")
            loop = w.open_loops(lengths)
            w.line(f"if {where}[{w.at(loop)}]:")
            if last:
                w.line(f"    {name}[{count}] = {array}[{w.at(loop)}]")
            w.line(f"    {count} += 1")
            w.close_loops(loop)
            if not last:
                w.line(f"{name} = {w.empty([count], out.type.dtype)}")
        return
    if at.type.dtype.kind not in "iu":
        raise w.cannot("this index")
    inner = [length_text(d, where, k) for k, d in enumerate(at.type.shape)]
    made = [*lengths[:place], *inner, *lengths[place + 1 :]]
    w.line(f"{name} = {w.empty(made, out.type.dtype)}")
    loop = w.open_loops(made)
    taken = loop[place : place + len(inner)]
    source = [*loop[:place], f"{where}[{w.at(taken)}]", *loop[place + len(inner) :]]
    w.line(f"{name}[{w.at(loop)}] = {array}[{w.at(source)}]")
    w.close_loops(loop)


def _check_same(w: Writer, m: str, a: Value, n: str, b: Value) -> None:
    for k, (d, e) in enumerate(zip(a.type.shape, b.type.shape, strict=True)):
        if d != e:
            w.line(f"if {length_text(d, m, k)} != {length_text(e, n, k)}:")
            w.line("    raise IndexError('boolean index did not match indexed array')")


def fancy_store(w: Writer, op: Store | Update, function: Any) -> None:
    """``a[ix] = value`` and ``a[ix] op= value``."""
    place, at = _index_array(w, op.index)
    array, where = w.array(op.array), w.array(at)
    dtype, shape = op.array.type.dtype, op.array.type.shape
    lengths = [length_text(d, array, k) for k, d in enumerate(shape)]
    if w.may_overlap(at, op.array):
        raise w.cannot("an index that is being written")
    if is_array(op.value) and (w.may_overlap(op.value, op.array) or op.value.type.ndim > 1):
        raise w.cannot("this store")
    if at.type.dtype.kind == "b":
        if is_array(op.value) or at.type.ndim != len(shape):
            raise w.cannot("a store of an array through a mask")
        _check_same(w, where, at, array, op.array)
        value = w.atom(w.number(op.value))
        loop = w.open_loops(lengths)
        target = f"{array}[{w.at(loop)}]"
        w.line(f"if {where}[{w.at(loop)}]:")
        text = w.stored(value, dtype)
        if function is not None:
            text = w.combined(function, Term(target, ATOM, numpy_number(dtype)), value, dtype)
        w.line(f"    {target} = {text}")
        w.close_loops(loop)
        return
    if at.type.ndim != 1 or len(shape) != 1 or at.type.dtype.kind not in "iu" or place:
        raise w.cannot("this store")
    (i,) = w.index_names(1)
    n = length_text(at.type.shape[0], where, 0)
    item: Any = None if is_array(op.value) else w.atom(w.number(op.value))
    if item is None:
        source = w.array(op.value)
        length = length_text(op.value.type.shape[0], source, 0) if op.value.type.ndim else "1"
        w.line(f"if {length} != {n}:")
        w.line("    raise ValueError('shape mismatch: value array does not fit the index')")
        item = Term(f"{source}[{i}]", ATOM, numpy_number(op.value.type.dtype))
    old = array
    if function is not None:
        old = w.temporary("old")
        w.line(f"{old} = {array}.copy()")
    w.line(f"for {i} in range({n}):")
    text = w.stored(item, dtype)
    if function is not None:
        before = Term(f"{old}[{where}[{i}]]", ATOM, numpy_number(dtype))
        text = w.combined(function, before, item, dtype)
    w.line(f"    {array}[{where}[{i}]] = {text}")


@handles(np.copyto)
def _copyto(w, op, target, value, casting="same_kind", where=True):  # noqa: ARG001 (types are known)
    if where is not True or not is_array(target):
        message = "under a mask"
        raise TypeError(message)
    w.write_over(target, value)


@handles(np.add.at, np.subtract.at)
def _accumulate(w, op, a, at, value):
    if not is_array(at) or at.type.dtype.kind not in "iu" or at.type.ndim != 1 or a.type.ndim != 1:
        message = "of such an index"
        raise TypeError(message)
    array, where = w.array(a), w.array(at)
    ufunc = np.add if op.function == np.add.at else np.subtract
    (i,) = w.index_names(1)
    if is_array(value):
        if value.type.ndim != 1 or w.may_overlap(value, a):
            message = "of such a value"
            raise TypeError(message)
        source = w.array(value)
        w.line(f"if {source}.shape[0] != {where}.shape[0]:")
        w.line("    raise ValueError('array is not broadcastable to correct shape')")
        item = Term(f"{source}[{i}]", ATOM, numpy_number(value.type.dtype))
    else:
        item = w.atom(w.number(value))
    place = f"{array}[{where}[{i}]]"
    old = Term(place, ATOM, numpy_number(a.type.dtype))
    w.line(f"for {i} in range({where}.shape[0]):")
    w.line(f"    {place} = {w.combined(ufunc, old, item, a.type.dtype)}")
