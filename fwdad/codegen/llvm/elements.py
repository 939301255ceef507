"""Elements of arrays and views of them in LLVM code, for the programs that fwdad writes.

An index is checked at most once, and a view is a pointer with lengths and strides. Importing this
module needs Numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite.ir import Constant
from llvmlite.ir.instructions import InsertValue
from numba.core import cgutils
from numba.core import types as _types
from numba.np.arrayobj import get_itemsize as _get_itemsize
from numba.np.arrayobj import load_item, store_item

from fwdad.codegen.llvm.checks import require, require_inside

types: Any = _types


_PARTS = "fwdad_parts"  # the attribute of an LLVM value that holds its parts


_SIZES: dict[Any, int] = {}


def get_itemsize(context: Any, array_type: Any) -> int:
    """The bytes of an element, cached: Numba asks LLVM anew for each array."""
    if array_type.dtype not in _SIZES:
        _SIZES[array_type.dtype] = _get_itemsize(context, array_type)
    return _SIZES[array_type.dtype]


class Held(NamedTuple):
    """An array in LLVM code: its type, a pointer to its first element, lengths, strides in bytes.

    ``steps`` is empty where the type's layout implies the strides.
    """

    type: Any
    data: Any
    lengths: list[Any]
    steps: list[Any]


def held(context: Any, builder: Any, array_type: Any, array: Any) -> Held:
    """The parts of an array that are needed to access its elements."""
    known = vars(array).get(_PARTS) if hasattr(array, "__dict__") else None
    if known is not None:
        return known[0]._replace(type=array_type)
    model = context.data_model_manager[array_type]
    lengths, steps = (
        cgutils.unpack_tuple(builder, model.get(builder, array, name), array_type.ndim)
        if name == "shape" or array_type.layout == "A"
        else []
        for name in ("shape", "strides")
    )
    return Held(array_type, model.get(builder, array, "data"), lengths, steps)


def element(context: Any, builder: Any, array: Held, index: list[tuple[Any, Any, bool]]) -> Any:
    """A pointer to an element; the index is checked, and negative indices count from the end.

    For each axis ``index`` has Numba's type and the LLVM value, or None and a Python int; and
    whether it is known to be inside.
    """
    places = checked_places(context, builder, array.lengths, index)
    return cgutils.get_item_pointer2(
        context, builder, array.data, array.lengths, array.steps, array.type.layout, places
    )


def item_of(builder: Any, held: Any, k: int) -> Any:
    """An item of a tuple in LLVM code: the value that was inserted, if that can be found."""
    made = held
    while isinstance(made, InsertValue):
        whole, item = made.operands
        if made.indices == [k]:
            return item
        if made.indices[0] == k:
            break
        made = whole
    return builder.extract_value(held, k)


def _known_length(n: Any) -> int | None:
    """The constant that a length is, or None."""
    constant = n.constant if isinstance(n, Constant) else None
    return constant if type(constant) is int else None


def checked_places(
    context: Any, builder: Any, lengths: list[Any], index: list[tuple[Any, Any, bool]]
) -> list[Any]:
    """Indices counted from the start; raises where one is outside."""
    places = []
    inside = None
    for (t, given, is_inner), n in zip(index, lengths, strict=False):
        if is_inner:
            places.append(context.cast(builder, given, t, types.intp))
            require_inside(context, builder, places[-1], n)
            continue
        if t is None:
            known = _known_length(n)
            if known is not None and -known <= given < known:  # there is nothing to check
                places.append(n.type(given % known))
                continue
            i = n.type(given)
            i = builder.add(i, n) if given < 0 else i
        else:
            i = context.cast(builder, given, t, types.intp)
            if t.signed:
                i = builder.select(builder.icmp_signed("<", i, n.type(0)), builder.add(i, n), i)
        places.append(i)
        fits = builder.icmp_unsigned("<", i, n)
        inside = fits if inside is None else builder.and_(inside, fits)
    if inside is not None:
        require(context, builder, inside, IndexError, "index is out of bounds")
    return places


def all_steps(context: Any, builder: Any, array: Held) -> list[Any]:
    """The strides of an array, also where only its layout implies them."""
    if array.steps:
        return array.steps
    size = context.get_constant(types.intp, get_itemsize(context, array.type))
    in_order = array.type.layout != "F"
    steps: list[Any] = []
    for n in reversed(array.lengths) if in_order else array.lengths:
        steps.append(size)
        size = builder.mul(size, n)
    return steps[::-1] if in_order else steps


def own_steps(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """The strides stored in an array, which its layout does not imply along axes of length 1."""
    model = context.data_model_manager[array_type]
    return cgutils.unpack_tuple(builder, model.get(builder, array, "strides"), array_type.ndim)


class Part(NamedTuple):
    """A slice's start and stop: Numba's type and an LLVM value, None and a Python int, or None."""

    start: tuple[Any, Any] | None
    stop: tuple[Any, Any] | None


class NewAxis:
    """An axis of length 1 that a view has and its base does not."""


NEW_AXIS = NewAxis()


def view(
    context: Any,
    builder: Any,
    array: Held,
    index: list[Part | NewAxis | tuple[Any, Any, bool]],
    t: Any,
) -> Held:
    """A basic-index view of an array, of type ``t``.

    For the first axes ``index`` has items as :func:`element` takes them, or parts; and new axes.
    """
    lengths, steps, starts = [], [], []
    known = all_steps(context, builder, array)
    given = sum(not isinstance(item, NewAxis) for item in index)
    axes = zip(array.lengths, known, strict=True)
    for item in [*index, *[Part(None, None)] * (array.type.ndim - given)]:
        if isinstance(item, NewAxis):
            lengths.append(context.get_constant(types.intp, 1))
            steps.append(context.get_constant(types.intp, 0))
            continue
        n, step = next(axes)
        if not isinstance(item, Part):
            starts += checked_places(context, builder, [n], [item])
            continue
        start = n.type(0) if item.start is None else _bound(context, builder, item.start, n)
        stop = n if item.stop is None else _bound(context, builder, item.stop, n)
        length = stop
        if item.start is not None:
            length = builder.sub(stop, start)
            is_empty = builder.icmp_signed("<", length, n.type(0))
            length = builder.select(is_empty, n.type(0), length)
        starts.append(start)
        lengths.append(length)
        steps.append(step)
    data = cgutils.get_item_pointer2(
        context, builder, array.data, array.lengths, known, array.type.layout, starts
    )
    return Held(t, data, lengths, steps)


def _bound(context: Any, builder: Any, given: tuple[Any, Any], n: Any) -> Any:
    """Where a slice starts or stops: clipped to the axis, negative values count from the end."""
    t, i = given
    zero = n.type(0)
    if t is None:
        known, i = i, n.type(i)
        if known < 0:
            i = builder.add(i, n)
    else:
        known, i = None, context.cast(builder, i, t, types.intp)
        i = builder.select(builder.icmp_signed("<", i, zero), builder.add(i, n), i)
    if known is None or known < 0:
        i = builder.select(builder.icmp_signed("<", i, zero), zero, i)
    return builder.select(builder.icmp_signed(">", i, n), n, i)


def as_array(context: Any, builder: Any, array: Held, owner: Any = None) -> Any:
    """An array as a Numba value.

    ``owner`` is the owner of its memory, whose reference is taken over; by default it has none.
    """
    model = context.data_model_manager[array.type]
    length = context.get_value_type(types.intp)
    size = context.get_constant(types.intp, 1)
    for k, n in enumerate(array.lengths):
        size = builder.mul(size, n) if k else n
    struct = cgutils.get_null_value(model.get_value_type())
    steps = all_steps(context, builder, array)
    parts = {
        "nitems": size,
        "itemsize": context.get_constant(types.intp, get_itemsize(context, array.type)),
        "data": array.data,
        "shape": cgutils.pack_array(builder, array.lengths, ty=length),
        "strides": cgutils.pack_array(builder, steps, ty=length),
    }
    if owner is not None:
        parts["meminfo"] = owner
    for name, value in parts.items():
        struct = model.set(builder, struct, value, name)
    setattr(struct, _PARTS, (Held(array.type, array.data, array.lengths, steps), owner))
    return struct


def as_view(context: Any, builder: Any, array: Held, of_type: Any, of: Any) -> Any:
    """A view of an array as a Numba value, with its own reference to the memory."""
    owner = owner_of(context, builder, of_type, of)
    view_of_data = as_array(context, builder, array, owner)
    model = context.data_model_manager[array.type]
    parent = context.data_model_manager[of_type].get(builder, of, "parent")
    parts = vars(view_of_data)[_PARTS]
    view_of_data = model.set(builder, view_of_data, parent, "parent")
    setattr(view_of_data, _PARTS, parts)
    context.nrt.incref(builder, types.MemInfoPointer(types.voidptr), owner)
    return view_of_data


def owner_of(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Numba's reference count of an array's memory; null if nobody owns it."""
    known = vars(array).get(_PARTS) if hasattr(array, "__dict__") else None
    if known is not None and known[1] is not None:
        return known[1]
    return context.data_model_manager[array_type].get(builder, array, "meminfo")


__all__ = [
    "NEW_AXIS", "Held", "NewAxis", "Part", "all_steps", "as_array", "as_view", "element",
    "get_itemsize", "held", "item_of", "load_item", "own_steps", "owner_of", "store_item", "view",
]  # fmt: skip
