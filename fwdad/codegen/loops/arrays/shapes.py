"""Views and rearrangements of arrays, for the Numba source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fwdad.codegen.loops.arrays.functions import (
    as_array,
    axes_of,
    filled,
    handles,
    lengths_like,
    name_text,
    shape_text,
)
from fwdad.codegen.loops.notation import dtype_text, length_text, lengths_of, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import literal
from fwdad.ir.notation import ATOM, tuple_text
from fwdad.ir.ops import Apply, Operand, Value, is_array
from fwdad.ir.primitives.view_mirrors import give_back, is_view, view_or_copy, view_or_zeros
from fwdad.ir.types import Size


def _reshaped(w: Parts, a: Value, shape: str) -> str:
    if a in w.elements.lazy:
        return f"{w.operands.array(a)}.reshape({shape})"
    name = w.operands.array(a)
    if w.memory.is_written_later(a):
        if not w.arrays.is_in_order(a):
            raise TypeError("of an array that is not C-contiguous and is written")
        return f"{_in_rows(w, a)}.reshape({shape})"  # only a view will do
    return f"np.ascontiguousarray({name}).reshape({shape})"


def _in_rows(w: Parts, a: Value) -> str:
    """An array of which only a view will do, typed as C-contiguous if it is known to be.

    Other layouts do not compile. A merged array has an open layout, even if all arrays that it may
    stand for are C-contiguous.
    """
    name = w.operands.array(a)
    if w.memory.is_c_contiguous(a) and w.arrays.is_in_order(a):
        return f"{w.helpers.use('by_rows')}({name})"
    if a in w.arrays.loose:
        raise TypeError("of an array that may not be C-contiguous, and is written")
    return name


@handles(np.reshape)
def _reshape(w: Parts, op, a, shape, order="C"):
    if order != "C" or isinstance(a, (list, tuple)):
        raise TypeError(f"in order {order}")
    lengths = shape_text(w, shape)
    if not is_array(a) or not a.type.ndim:
        dtype = op.outputs[0].type.dtype
        ones = ["1" if n == "-1" else n for n in lengths]
        if is_array(a) and (w.memory.is_written(op.outputs[0]) or w.memory.is_written_later(a)):
            return f"{w.operands.array(a)}.reshape({tuple_text(ones)})"
        fill = w.operands.stored(w.operands.number(a), dtype)
        return f"np.full({tuple_text(ones)}, {fill}, {dtype_text(dtype)})"
    result = _reshaped(w, a, tuple_text(lengths))
    if w.memory.is_written_later(op.outputs[0]) and not w.memory.is_written_later(a):
        return f"{result}.copy()"
    return result


@handles(np.ravel)
def _ravel(w: Parts, op, a, order="C"):
    a = as_array(w, a)
    rows = w.memory.is_c_contiguous(a)
    if order != "C" and not (rows and order in ("K", "A")):
        raise TypeError(f"in order {order}")
    if w.memory.is_written(op.outputs[0]) and not w.memory.is_written_later(a) and a.type.ndim:
        return f"{_reshaped(w, a, '-1')}.copy()"  # the original is not written: a copy will do
    if w.memory.is_written(op.outputs[0]):
        if not rows:
            raise TypeError("of an array that may not be C-contiguous, and is written")
        return f"{_in_rows(w, a)}.reshape(-1)"
    return _reshaped(w, a, "-1") if a.type.ndim else f"{w.operands.array(a)}.reshape(1)"


@handles(view_or_zeros, view_or_copy)
def _view_beside(w: Parts, op, mirrored, held, v, base):  # noqa: ARG001
    if not w.memory.is_c_contiguous(base):
        raise TypeError("of an array that may not be C-contiguous")
    return w.operands.array(mirrored)


@handles(give_back)
def _give_back(w: Parts, op, held, own, order, stacked=False):  # noqa: ARG001
    defining_ops = (o for o in w.program.walk() if own in o.outputs or held in o.outputs)
    bases = [
        o.args[3] for o in defining_ops if isinstance(o, Apply) and o.function is view_or_zeros
    ]
    if not any(map(w.memory.is_c_contiguous, bases)):
        raise TypeError("of an array that may not be C-contiguous")
    # a view: updates of it reach the array


@handles(is_view)
def _is_view(w: Parts, op, v, base):  # noqa: ARG001
    if not w.memory.is_c_contiguous(base):
        raise TypeError("of an array that may not be C-contiguous")
    return "True"


@handles(np.ndarray.flatten)
def _flatten(w: Parts, op, a, order="C"):  # noqa: ARG001
    if order != "C" or not a.type.ndim:
        raise TypeError(f"in order {order}")
    return f"{w.operands.array(a)}.copy().reshape(-1)"


@handles(np.transpose, np.matrix_transpose, np.swapaxes, np.moveaxis)
def _transpose(w: Parts, op, a, *axes, **options):
    a = as_array(w, a)  # a number becomes a 0-d array
    ndim = a.type.ndim
    labels = np.empty((1,) * ndim)
    order = list(range(ndim))
    if op.function is np.matrix_transpose:
        order[-2:] = order[:-3:-1]
    elif op.function is np.transpose:
        permutation = axes[0] if axes else options.get("axes")
        order = order[::-1] if permutation is None else [k % ndim for k in permutation]
    else:
        marked = op.function(np.empty(tuple(range(2, ndim + 2))), *axes, **options).shape
        order = [n - 2 for n in marked]
    if labels.ndim != len(order):
        raise TypeError("with axes that are no permutation")
    if order == list(range(ndim)):
        return w.operands.text(a)
    if order == list(range(ndim))[::-1]:
        return f"{w.operands.array(a)}.T"
    return f"{w.operands.array(a)}.transpose({tuple_text([str(k) for k in order])})"


@handles(np.squeeze)
def _squeeze(w: Parts, op, a, axis=None):  # noqa: ARG001
    axes = (
        [k for k, d in enumerate(a.type.shape) if d == 1]
        if axis is None
        else axes_of(axis, a.type.ndim)
    )
    if any(a.type.shape[k] != 1 for k in axes) or (axis is None and any(
        isinstance(d, Size) for d in a.type.shape)) or len(axes) == a.type.ndim:  # fmt: skip
        raise TypeError("of axes whose lengths are not known")
    parts = ["0" if k in axes else ":" for k in range(a.type.ndim)]
    return f"{w.operands.array(a)}[{', '.join(parts)}]"


@handles(np.expand_dims)
def _expand_dims(w: Parts, op, a, axis):
    if not is_array(a):
        filled(w, op, shape_text(w, (1,) * op.outputs[0].type.ndim), a)
        return None
    axes = axes_of(axis, op.outputs[0].type.ndim)
    parts = ["None" if k in axes else ":" for k in range(op.outputs[0].type.ndim)]
    return f"{w.operands.array(a)}[{', '.join(parts)}]"


@handles(np.broadcast_to)
def _broadcast_to(w: Parts, op, a, shape, subok=False):  # noqa: ARG001
    dtype = op.outputs[0].type.dtype
    if not op.outputs[0].type.ndim and not (is_array(a) and w.memory.is_written_later(a)):
        return f"np.full((), {w.operands.stored(w.operands.number(a), dtype)}, {dtype_text(dtype)})"
    if not is_array(a):
        filled(w, op, shape_text(w, shape), a)
        return None
    # a read-only view, as in NumPy; broadcast axes have a stride of zero
    return f"np.broadcast_to({w.operands.array(a)}, {tuple_text(shape_text(w, shape))})"


@handles(np.flip, np.flipud, np.fliplr)
def _flip(w: Parts, op, a, axis=None):
    axis = {np.flipud: 0, np.fliplr: 1}.get(op.function, axis)
    axes = axes_of(axis, a.type.ndim)
    parts = ["::-1" if k in axes else ":" for k in range(a.type.ndim)]
    return f"{w.operands.array(a)}[{', '.join(parts)}]"


@handles(np.roll)
def _roll(w: Parts, op, a, shift, axis=None):
    if isinstance(shift, tuple) or isinstance(axis, tuple) or (axis is None and a.type.ndim != 1):
        raise TypeError("of several axes")
    (along,) = axes_of(axis, a.type.ndim)
    name, source, lengths = w.names.name(op.outputs[0]), w.operands.array(a), lengths_like(w, a)
    n = name_text(w, lengths[along], "n")
    by = w.names.temporary("shift")
    w.code.line(f"{by} = {w.operands.index_text(shift)} % {n} if {n} else 0", op)
    w.arrays.new(op.outputs[0], lengths)
    index, place = w.loops.index_names(a.type.ndim, inner=True), w.names.temporary("place")
    w.loops.inside.append(place)
    to = [place if k == along else i for k, i in enumerate(index)]
    with w.loops.over(index, lengths, range(along)):
        for part, moved in ((f"0, {n} - {by}", by), (f"{n} - {by}, {n}", f"{by} - {n}")):
            sizes = [part if k == along else length for k, length in enumerate(lengths)]
            with w.loops.over(index, sizes, range(along, a.type.ndim)):
                w.code.line(f"{place} = {index[along]} + ({moved})")
                w.code.line(f"{name}[{subscript(to)}] = {source}[{subscript(index)}]")


@handles(np.real)
def _real(w: Parts, op, a):  # noqa: ARG001
    if w.operands.type_of(a).dtype.kind != "c":
        return w.operands.text(a)
    return f"{w.operands.array(a) if is_array(a) else w.operands.term(a).at(ATOM)}.real"


@handles(np.imag)
def _imag(w: Parts, op, a):
    if w.operands.type_of(a).dtype.kind != "c":
        if is_array(a):
            w.arrays.new(op.outputs[0], lengths_like(w, a), zeros=True)
            return None
        return literal(0, op.outputs[0].type)
    return f"{w.operands.array(a) if is_array(a) else w.operands.term(a).at(ATOM)}.imag"


def _join(w: Parts, op: Apply, parts: Sequence[Operand], axis: int, new: bool) -> None:
    out = op.outputs[0]
    values = [as_array(w, p) for p in parts]
    names = [w.operands.array(v) for v in values]
    ndim = values[0].type.ndim
    first = [length_text(d, names[0], k) for k, d in enumerate(values[0].type.shape)]
    for v, n in zip(values[1:], names[1:], strict=True):
        for k, d in enumerate(v.type.shape):
            if (new or k != axis) and d != values[0].type.shape[k]:
                w.code.line(f"if {length_text(d, n, k)} != {first[k]}:")
                w.code.line("    raise ValueError('all the input arrays must have the same shape')")
    if new:
        lengths = [*first[:axis], str(len(values)), *first[axis:]]
    else:
        total = [
            length_text(v.type.shape[axis], n, axis) for v, n in zip(values, names, strict=True)
        ]
        lengths = [*first[:axis], " + ".join(total), *first[axis + 1 :]]
    name, moved = w.names.name(out), w.names.temporary("place")
    w.arrays.new(out, lengths)
    w.loops.inside.append(moved)
    offset = "0"
    for k, (v, n) in enumerate(zip(values, names, strict=True)):
        part_lengths = lengths_of(v, n)
        with w.loops.nest(part_lengths, inner=True) as index:
            if new:
                place = [*index[:axis], str(k), *index[axis:]]
            else:
                place = [*index]
                if offset != "0":
                    place[axis] = moved
                    w.code.line(f"{moved} = {index[axis]} + {offset}")
            text = w.operands.stored(w.elements.element(v, index), out.type.dtype)
            w.code.line(f"{name}[{subscript(place)}] = {text}")
        if not new:
            end = part_lengths[axis] if offset == "0" else f"{offset} + {part_lengths[axis]}"
            offset = name_text(w, end, "offset") if k + 1 < len(values) else offset
    if not ndim and not new:
        raise TypeError("of 0-d arrays")


def _default_cast(dtype, casting):
    """Refuse casting options other than the defaults that rules pass on."""
    if dtype is not None or casting != "same_kind":
        raise TypeError("with dtype= or casting=")


@handles(np.concatenate)
def _concatenate(w: Parts, op, parts, axis=0, *, dtype=None, casting="same_kind"):
    _default_cast(dtype, casting)
    ndim = op.outputs[0].type.ndim
    if axis is None:
        raise TypeError("of flattened arrays")
    _join(w, op, parts, axes_of(axis, ndim)[0], new=False)


@handles(np.stack)
def _stack(w: Parts, op, parts, axis=0, *, dtype=None, casting="same_kind"):
    _default_cast(dtype, casting)
    _join(w, op, parts, axes_of(axis, op.outputs[0].type.ndim)[0], new=True)


def _common_rank(parts):
    """The rank of arrays that are joined; raises if they differ."""
    ranks = {p.type.ndim for p in parts if is_array(p)}
    if len(ranks) != 1 or not all(is_array(p) for p in parts) or 0 in ranks:
        raise TypeError("of numbers, or of arrays of several ranks")
    return ranks.pop()


@handles(np.hstack)
def _hstack(w: Parts, op, parts):
    _join(w, op, parts, 0 if _common_rank(parts) == 1 else 1, new=False)


@handles(np.vstack)
def _vstack(w: Parts, op, parts):
    _join(w, op, parts, 0, new=_common_rank(parts) == 1)


@handles(np.diff)
def _diff(w: Parts, op, a, n=1, axis=-1):
    if n != 1 or a.type.ndim != 1 or axis not in (-1, 0) or a.type.dtype.kind == "b":
        raise TypeError("of higher order, of a matrix, or of bools")
    name, out = w.operands.array(a), w.names.name(op.outputs[0])
    length = length_text(a.type.shape[0], name, 0)
    shorter = f"{w.helpers.use('larger')}({length} - 1, 0)"
    w.arrays.new(op.outputs[0], [shorter])
    with w.loops.nest([f"{length} - 1"], inner=True) as index:
        w.loops.inside.append(f"{index[0]} + 1")
        w.code.line(f"{out}[{index[0]}] = {name}[{index[0]} + 1] - {name}[{index[0]}]")
