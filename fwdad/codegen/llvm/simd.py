"""The lanes of one scalar in SIMD registers: a Numba type that is an LLVM vector.

A value is ``<n x double>``; three lanes are padded to four and five to seven to eight, because LLVM
emits poor code for other widths. In memory it is ``[n x double]``: containers align their items to
8 bytes, and a vector loaded at its natural alignment from there would crash. No fast-math flags:
they break the NaN policy, and gain nothing. Importing this module needs Numba.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model

from fwdad.codegen.llvm.checks import require
from fwdad.codegen.llvm.outlining import casts
from fwdad.codegen.llvm.vectors import (
    NUMBERS,
    VectorType,
    constant,
    flat,
    index_of,
    llvm_type,
    splat,
)
from fwdad.codegen.runtime.lanes import LaneFunctions

types: Any = _types
_DOUBLE = ir.DoubleType()
_INT32 = ir.IntType(32)


class LanesType(VectorType):
    """N lanes of float64, in a vector as wide as the register that holds them."""

    def __init__(self, n: int) -> None:
        self.lanes = n
        super().__init__(types.float64, _register_width(n), f"Lanes({n})")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    """A vector as a value, an array of doubles in memory and across calls."""

    def __init__(self, manager: Any, lanes: LanesType) -> None:
        super().__init__(manager, lanes, llvm_type(lanes))

    def get_data_type(self) -> ir.Type:
        return ir.ArrayType(_DOUBLE, self._fe_type.lanes)

    get_return_type = get_data_type

    def as_data(self, builder: Any, value: Any) -> Any:
        data = ir.Constant(self.get_data_type(), ir.Undefined)
        for k in range(self._fe_type.lanes):
            data = builder.insert_value(data, builder.extract_element(value, _INT32(k)), k)
        return data

    def from_data(self, builder: Any, value: Any) -> Any:
        vector = _zeros(self._fe_type.lanes)
        for k in range(self._fe_type.lanes):
            vector = builder.insert_element(vector, builder.extract_value(value, k), _INT32(k))
        return vector

    as_return = as_data
    from_return = from_data

    def load_from_data_pointer(self, builder: Any, ptr: Any, align: int | None = None) -> Any:  # noqa: ARG002
        return _load_vector(builder, ptr, self._fe_type.lanes)


def _register_width(n: int) -> int:
    """The width of the register that holds n lanes; spare lanes are never read."""
    return next((width for width in (1, 2, 4, 8) if width >= n), n)


def _zeros(n: int) -> Any:
    return constant(LanesType(n), 0.0)


def _picked(builder: Any, v: Any, w: Any, lanes: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_INT32, len(lanes)), lanes)
    return builder.shuffle_vector(v, w, mask)


def _load_vector(builder: Any, pointer: Any, n: int) -> Any:
    narrow = ir.VectorType(_DOUBLE, n)
    v = builder.load(builder.bitcast(pointer, narrow.as_pointer()), align=8)
    spare = _register_width(n) - n
    if not spare:
        return v
    # spare lanes are zero: arbitrary register contents may be slow to compute with
    return _picked(builder, v, ir.Constant(narrow, [_DOUBLE(0.0)] * n), [*range(n), *[n] * spare])


def _store_vector(builder: Any, lanes: Any, pointer: Any, n: int) -> None:
    if _register_width(n) != n:
        lanes = _picked(builder, lanes, lanes, list(range(n)))
    narrow = ir.VectorType(_DOUBLE, n)
    builder.store(lanes, builder.bitcast(pointer, narrow.as_pointer()), align=8)


def _splat(builder: Any, x: Any, n: int) -> Any:
    return splat(builder, x, _register_width(n))


# -- memory


def _place(
    context: Any, builder: Any, array_type: Any, array: Any, at: list[Any], n: int
) -> tuple[Any, Any]:
    """The address of lane 0 of an element, and the stride of lanes in bytes; bounds are checked."""
    ary = context.make_array(array_type)(context, builder, array)
    lengths = cgutils.unpack_tuple(builder, ary.shape, array_type.ndim)
    right = builder.icmp_signed("==", lengths[0], lengths[0].type(n))
    require(context, builder, right, IndexError, f"the array's first axis does not hold {n} lanes")
    index = [lengths[0].type(0)]
    for axis, (i, length) in enumerate(zip(at, lengths[1:], strict=True)):
        negative = builder.icmp_signed("<", i, i.type(0))
        i = builder.select(negative, builder.add(i, length), i)
        inside = builder.icmp_unsigned("<", i, length)
        require(context, builder, inside, IndexError, f"index is out of bounds for axis {axis}")
        index.append(i)
    pointer = cgutils.get_item_pointer(context, builder, array_type, ary, index)
    return pointer, cgutils.unpack_tuple(builder, ary.strides, array_type.ndim)[0]


def _adjacent(array_type: Any) -> bool:
    """Whether the layout alone implies that lanes are neighbours in memory."""
    return array_type.layout == "F" or (array_type.layout == "C" and array_type.ndim == 1)


def _lane_pointer(builder: Any, pointer: Any, stride: Any, k: int) -> Any:
    address = builder.ptrtoint(pointer, stride.type)
    moved = builder.add(address, builder.mul(stride, stride.type(k)))
    return builder.inttoptr(moved, pointer.type)


def _read(builder: Any, array_type: Any, pointer: Any, stride: Any, n: int) -> Any:
    if _adjacent(array_type) or n == 1:
        return _load_vector(builder, pointer, n)
    result = cgutils.alloca_once(builder, llvm_type(LanesType(n)))
    near = builder.icmp_signed("==", stride, stride.type(8))
    with builder.if_else(near) as (together, apart):
        with together:
            builder.store(_load_vector(builder, pointer, n), result)
        with apart:
            vector = _zeros(n)
            for k in range(n):
                x = builder.load(_lane_pointer(builder, pointer, stride, k), align=8)
                vector = builder.insert_element(vector, x, _INT32(k))
            builder.store(vector, result)
    return builder.load(result)


def _write(builder: Any, array_type: Any, pointer: Any, stride: Any, lanes: Any, n: int) -> None:
    def whole() -> None:
        _store_vector(builder, lanes, pointer, n)

    if _adjacent(array_type) or n == 1:
        whole()
        return
    near = builder.icmp_signed("==", stride, stride.type(8))
    with builder.if_else(near) as (together, apart):
        with together:
            whole()
        with apart:
            for k in range(n):
                x = builder.extract_element(lanes, _INT32(k))
                builder.store(x, _lane_pointer(builder, pointer, stride, k), align=8)


def _check_array(a: Any, index: Any, n: int, *, write: bool) -> None:
    fits = isinstance(a, types.Array) and a.dtype == types.float64 and a.ndim == 1 + len(index)
    if not fits or not a.aligned or (write and not a.mutable):
        kind = "a writable float64" if write else "a float64"
        raise TypingError(f"{n} lanes need {kind} array of {1 + len(index)} dimensions, not {a}")


@functools.cache
def compiled_lanes(n: int) -> LaneFunctions:
    """The functions on N lanes, for the Numba source."""
    lanes = LanesType(n)
    sizes = types.float64

    @intrinsic
    def load(_typing: Any, a: Any, *index: Any) -> Any:
        index = flat(index)
        _check_array(a, index, n, write=False)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            at = index_of(context, builder, sig.args[1], args[1])
            where, stride = _place(context, builder, sig.args[0], args[0], at, n)
            return _read(builder, sig.args[0], where, stride, n)

        return lanes(a, types.StarArgTuple.from_types(index)), code

    @intrinsic
    def store(_typing: Any, a: Any, value: Any, *index: Any) -> Any:
        index = flat(index)
        _check_array(a, index, n, write=True)
        if value != lanes:
            raise TypingError(f"{lanes} are stored, not {value}")

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            at = index_of(context, builder, sig.args[2], args[2])
            where, stride = _place(context, builder, sig.args[0], args[0], at, n)
            _write(builder, sig.args[0], where, stride, args[1], n)
            return context.get_dummy_value()

        return types.void(a, value, types.StarArgTuple.from_types(index)), code

    @intrinsic
    def zeros(_typing: Any) -> Any:
        return lanes(), lambda *_: _zeros(n)

    @intrinsic
    def splat(_typing: Any, _x: Any) -> Any:
        return lanes(sizes), lambda _context, builder, _sig, args: _splat(builder, args[0], n)

    @intrinsic
    def scale(_typing: Any, _d: Any, value: Any) -> Any:
        if value != lanes:
            raise TypingError(f"{lanes} are scaled, not {value}")

        def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            zero = _zeros(n)
            product = builder.fmul(_splat(builder, args[0], n), args[1])
            # in this order it is one instruction, a product under a mask
            moves = builder.fcmp_unordered("!=", args[1], zero)
            return builder.select(moves, product, zero)

        return lanes(sizes, value), code

    @intrinsic
    def unit(_typing: Any, _k: Any) -> Any:
        def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            vector = _zeros(n)
            for j in range(n):
                hit = builder.icmp_signed("==", args[0], args[0].type(j))
                x = builder.select(hit, _DOUBLE(1.0), _DOUBLE(0.0))
                vector = builder.insert_element(vector, x, _INT32(j))
            return vector

        return lanes(types.intp), code

    @intrinsic
    def build(_typing: Any, *items: Any) -> Any:
        items = flat(items)
        if len(items) != n or not all(isinstance(t, NUMBERS) for t in items):
            raise TypingError(f"{lanes} are built of {n} numbers, not of {items}")

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vector = _zeros(n)
            lane_values = cgutils.unpack_tuple(builder, args[0], n)
            for k, x in enumerate(casts(context, builder, sig.args[0], lane_values, types.float64)):
                vector = builder.insert_element(vector, x, _INT32(k))
            return vector

        return lanes(types.StarArgTuple.from_types(items)), code

    return LaneFunctions(load, store, zeros, splat, scale, unit, build)
