"""Neighbouring elements of arrays as one value: a Numba type that is an LLVM vector.

Generated loops read W elements, compute with them in registers, and write W results. The last
elements of an axis may be fewer: nothing is read or written beyond them, and the value is filled up
with the first of them. Values never leave registers, so they have no form in memory. No fast-math
flags: what is exact in one element is exact in all.

Importing this module needs Numba.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.core.errors import TypingError
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from fwdad.codegen.llvm.checks import require_inside
from fwdad.codegen.llvm.outlining import casts
from fwdad.codegen.numba_support import CHECK_BOUNDS

types: Any = _types
_INT32 = ir.IntType(32)
_BIT = ir.IntType(1)
FLOATS: dict[Any, Any] = {types.float64: ir.DoubleType(), types.float32: ir.FloatType()}
_ANY = 1  # the alignment of arrays, which may start anywhere
NUMBERS = (types.Float, types.Integer, types.Boolean)


class VectorType(types.Type):
    """W elements of one dtype (a float, an integer or a boolean); vectors of bool are masks."""

    def __init__(self, dtype: Any, n: int, name: str = "") -> None:
        self.dtype = dtype
        self.n = n
        super().__init__(name=name or f"Vector({dtype}, {n})")


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: VectorType) -> None:
        super().__init__(manager, vector, llvm_type(vector))


def _item(dtype: Any) -> ir.Type:
    if dtype == types.boolean:
        return _BIT
    return FLOATS.get(dtype) or ir.IntType(dtype.bitwidth)


def llvm_type(vector: VectorType) -> ir.Type:
    """The LLVM type of a vector."""
    return ir.VectorType(_item(vector.dtype), vector.n)


def splat(builder: Any, x: Any, n: int) -> Any:
    """A vector of n copies of an LLVM value."""
    unset = ir.Constant(ir.VectorType(x.type, n), ir.Undefined)
    first = builder.insert_element(unset, x, _INT32(0))
    mask = ir.Constant(ir.VectorType(_INT32, n), [0] * n)
    return builder.shuffle_vector(first, unset, mask)


def constant(vector: VectorType, x: float) -> Any:
    """A constant vector of W equal numbers."""
    return ir.Constant(llvm_type(vector), [_item(vector.dtype)(x)] * vector.n)


def spread(context: Any, builder: Any, t: Any, x: Any, like: VectorType) -> Any:
    """An operand as a vector; a scalar is repeated W times."""
    if isinstance(t, VectorType):
        return x
    scalar = context.cast(builder, x, t, like.dtype)
    if like.dtype == types.boolean:
        scalar = builder.trunc(scalar, _BIT) if scalar.type != _BIT else scalar
    return splat(builder, scalar, like.n)


def common(*given: Any) -> VectorType | None:
    """The one vector type among some arguments, if the rest are numbers; else None."""
    vector_types = {t for t in given if isinstance(t, VectorType)}
    fits = all(isinstance(t, (VectorType, *NUMBERS)) for t in given)
    return vector_types.pop() if len(vector_types) == 1 and fits else None


def _is_float(t: VectorType | None) -> bool:
    return t is not None and t.dtype in FLOATS


# -- operators

_PAIRS = [(VectorType, VectorType), *((VectorType, t) for t in NUMBERS),
          *((t, VectorType) for t in NUMBERS)]  # fmt: skip


def _operator(op: Any, result: Callable[[Any], Any], code: Callable[..., Any]) -> None:
    """Define a binary operator on vectors; one of the operands may be a number."""

    def typer(a: Any, b: Any) -> Any:
        t = common(a, b)
        return None if t is None else result(t)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = common(*sig.args)
        assert t is not None
        x, y = (spread(context, builder, a, v, t) for a, v in zip(sig.args, args, strict=True))
        return code(builder, x, y)

    type_callable(op)(lambda _context: typer)
    for pair in _PAIRS:
        lower_builtin(op, *pair)(lower)


def same_float(t: VectorType) -> VectorType | None:
    """The result type of operations that keep the operands' float type."""
    return t if _is_float(t) else None


def _same_mask(t: VectorType) -> VectorType | None:
    return t if t.dtype == types.boolean else None


def mask_of_floats(t: VectorType) -> VectorType | None:
    """The result type of predicates of floats."""
    return VectorType(types.boolean, t.n) if _is_float(t) else None


def _instruction(name: str) -> Callable[..., Any]:
    return lambda builder, x, y: getattr(builder, name)(x, y)


def _comparison(symbol: str) -> Callable[..., Any]:
    if symbol == "!=":
        return lambda builder, x, y: builder.fcmp_unordered("!=", x, y)
    return lambda builder, x, y: builder.fcmp_ordered(symbol, x, y)


for _op, _name in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"),
    (operator.truediv, "fdiv"), (operator.iadd, "fadd"), (operator.isub, "fsub"),
    (operator.imul, "fmul"), (operator.itruediv, "fdiv"),
):  # fmt: skip
    _operator(_op, same_float, _instruction(_name))
for _op, _name in ((operator.and_, "and_"), (operator.or_, "or_"), (operator.xor, "xor")):
    _operator(_op, _same_mask, _instruction(_name))
for _op, _name in (
    (operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">="),
    (operator.eq, "=="), (operator.ne, "!="),
):  # fmt: skip
    _operator(_op, mask_of_floats, _comparison(_name))


def _unary(op: Any, code: Callable[[Any, Any], Any]) -> None:
    """Define an operator on one vector."""

    def lower(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return code(builder, args[0])

    type_callable(op)(lambda _context: lambda a: a if isinstance(a, VectorType) else None)
    lower_builtin(op, VectorType)(lower)


_unary(operator.neg, lambda builder, x: builder.fneg(x))
_unary(operator.pos, lambda _builder, x: x)
_unary(operator.invert, lambda builder, x: builder.not_(x))


# -- memory


def _elements(
    context: Any, builder: Any, array_type: Any, array: Any, at: list[Any], count: Any
) -> tuple[Any, Any]:
    """The address of the first of some elements, known to be inside, and their stride."""
    ary = context.make_array(array_type)(context, builder, array)
    if CHECK_BOUNDS:
        lengths = cgutils.unpack_tuple(builder, ary.shape, array_type.ndim)
        for k, (i, length) in enumerate(zip(at, lengths, strict=True)):
            require_inside(context, builder, i, length, count if k == len(at) - 1 else None)
    pointer = cgutils.get_item_pointer(context, builder, array_type, ary, at)
    stride = cgutils.unpack_tuple(builder, ary.strides, array_type.ndim)[-1]
    return pointer, stride


def _each(builder: Any, pointer: Any, stride: Any, count: Any, body: Callable[..., None]) -> None:
    """Call ``body(k, pointer to element k)`` in a loop."""
    base = builder.ptrtoint(pointer, stride.type)
    with cgutils.for_range(builder, count) as loop:
        moved = builder.add(base, builder.mul(stride, loop.index))
        body(loop.index, builder.inttoptr(moved, pointer.type))


def _stored_type(dtype: Any) -> ir.Type:
    return ir.IntType(8) if dtype == types.boolean else _item(dtype)


def _check_place(a: Any, index: Any, *, write: bool) -> None:
    if not isinstance(a, types.Array) or a.ndim != len(index):
        raise TypingError(f"{len(index)} indices of {a}")
    if write and not a.mutable:
        raise TypingError(f"{a} cannot be written")


def index_of(context: Any, builder: Any, given: Any, index: Any) -> list[Any]:
    """The LLVM values of an index that is a tuple."""
    indices = cgutils.unpack_tuple(builder, index, len(given))
    return casts(context, builder, given, indices, types.intp)


def flat(index: Any) -> tuple[Any, ...]:
    """The types of a starred parameter, which Numba passes one by one or as one tuple."""
    return tuple(index[0]) if index and isinstance(index[0], types.BaseTuple) else tuple(index)


def _loaded(builder: Any, pointer: Any, dtype: Any, n: int) -> Any:
    vector = ir.VectorType(_stored_type(dtype), n)
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=_ANY)


def _store(builder: Any, given: Any, pointer: Any) -> None:
    builder.store(given, builder.bitcast(pointer, given.type.as_pointer()), align=_ANY)


def _is_masked(t: Any) -> bool:
    """Whether the last elements of a row are read and written at once, by masked instructions."""
    return t.layout == "C" and t.dtype != types.boolean


def _first(builder: Any, count: Any, n: int) -> Any:
    """A mask of the first elements of a vector."""
    places = ir.Constant(ir.VectorType(count.type, n), list(range(n)))
    return builder.icmp_signed("<", places, splat(builder, count, n))


def _call_masked(builder: Any, verb: str, pointer: Any, mask: Any, vector: Any) -> Any:
    """LLVM's masked load, whose other elements are the vector's, or store."""
    t, place = vector.type, builder.bitcast(pointer, vector.type.as_pointer())
    name = f"llvm.masked.{verb}.v{t.count}{t.element.intrinsic_name}.p0"
    align = ir.IntType(32)(_ANY)
    kinds, given = [place.type, align.type, mask.type], [place, align, mask]
    at = 0 if verb == "store" else 3
    kinds.insert(at, t)
    given.insert(at, vector)
    function_type = ir.FunctionType(ir.VoidType() if verb == "store" else t, kinds)
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), given)


def _is_fast(builder: Any, array_type: Any, i: Any, stop: Any, stride: Any, n: int) -> Any:
    """Whether there are W elements, next to each other."""
    whole = builder.icmp_signed("<=", builder.add(i, i.type(n)), stop)
    if array_type.layout == "C":
        return whole
    size = getattr(array_type.dtype, "bitwidth", 8) // 8  # a bool takes a byte
    return builder.and_(whole, builder.icmp_signed("==", stride, stride.type(size)))


def _count(builder: Any, i: Any, stop: Any, n: int) -> Any:
    left = builder.sub(stop, i)
    return builder.select(builder.icmp_signed("<", left, left.type(n)), left, left.type(n))


def _all_or_rest(context: Any, builder: Any, t: Any, stop: Any, i: Any, n: int) -> Any:
    """Where bounds are checked: how many of W elements there are before a stop."""
    if not CHECK_BOUNDS:
        return None
    if isinstance(t, types.NoneType):
        return i.type(n)
    return _count(builder, i, context.cast(builder, stop, t, types.intp), n)


@intrinsic(prefer_literal=True)
def vector_read(_typing, width, stop, a, *index):
    """``a[..., i : i + width]`` as one value; only elements below stop are read.

    The indices are not checked: ``i < stop <= a.shape[-1]`` must hold. A stop of None means that
    all elements are inside.
    """
    index = flat(index)
    _check_place(a, index, write=False)
    if not isinstance(width, types.IntegerLiteral):
        return None
    n = width.literal_value
    vector_type = VectorType(a.dtype, n)

    def code(context, builder, sig, args):
        at = index_of(context, builder, sig.args[3], args[3])
        count = _all_or_rest(context, builder, sig.args[1], args[1], at[-1], n)
        pointer, stride = _elements(context, builder, sig.args[2], args[2], at, count)

        def rest(stop):
            if _is_masked(a):
                first = splat(builder, builder.load(pointer, align=_ANY), n)
                mask = _first(builder, _count(builder, at[-1], stop, n), n)
                return _call_masked(builder, "load", pointer, mask, first)
            item = _stored_type(a.dtype)
            slot = cgutils.alloca_once(builder, ir.VectorType(item, n))
            builder.store(splat(builder, builder.load(pointer, align=_ANY), n), slot)
            items = builder.bitcast(slot, item.as_pointer())
            _each(builder, pointer, stride, _count(builder, at[-1], stop, n),
                  lambda k, place: builder.store(builder.load(place, align=_ANY),
                                                 builder.gep(items, [k])))  # fmt: skip
            return builder.load(slot)

        if isinstance(sig.args[1], types.NoneType):
            value = _loaded(builder, pointer, a.dtype, n)
        else:
            stop = context.cast(builder, args[1], sig.args[1], types.intp)
            fast = _is_fast(builder, sig.args[2], at[-1], stop, stride, n)
            with builder.if_else(fast, likely=True) as (then, otherwise):
                with then:
                    together, there = _loaded(builder, pointer, a.dtype, n), builder.block
                with otherwise:
                    apart, elsewhere = rest(stop), builder.block
            value = builder.phi(together.type)
            value.add_incoming(together, there)
            value.add_incoming(apart, elsewhere)
        return builder.trunc(value, llvm_type(vector_type)) if a.dtype == types.boolean else value

    return vector_type(width, stop, a, types.StarArgTuple.from_types(index)), code


@intrinsic(prefer_literal=True)
def vector_write(_typing, value, stop, a, *index):
    """``a[..., i : i + W] = value``, for the elements below stop."""
    index = flat(index)
    _check_place(a, index, write=True)
    if not isinstance(value, VectorType) or value.dtype != a.dtype:
        raise TypingError(f"{value} is written into {a}")
    n = value.n

    def code(context, builder, sig, args):
        at = index_of(context, builder, sig.args[3], args[3])
        count = _all_or_rest(context, builder, sig.args[1], args[1], at[-1], n)
        pointer, stride = _elements(context, builder, sig.args[2], args[2], at, count)
        vector = args[0]
        if a.dtype == types.boolean:
            vector = builder.zext(vector, ir.VectorType(_stored_type(a.dtype), n))

        def store_rest(stop):
            if _is_masked(a):
                mask = _first(builder, _count(builder, at[-1], stop, n), n)
                _call_masked(builder, "store", pointer, mask, vector)
                return
            slot = cgutils.alloca_once(builder, vector.type)
            builder.store(vector, slot)
            items = builder.bitcast(slot, vector.type.element.as_pointer())
            _each(builder, pointer, stride, _count(builder, at[-1], stop, n),
                  lambda k, place: builder.store(builder.load(builder.gep(items, [k])),
                                                 place, align=_ANY))  # fmt: skip

        if isinstance(sig.args[1], types.NoneType):
            _store(builder, vector, pointer)
            return context.get_dummy_value()
        stop = context.cast(builder, args[1], sig.args[1], types.intp)
        fast = _is_fast(builder, sig.args[2], at[-1], stop, stride, n)
        with builder.if_else(fast, likely=True) as (then, otherwise):
            with then:
                _store(builder, vector, pointer)
            with otherwise:
                store_rest(stop)
        return context.get_dummy_value()

    return types.void(value, stop, a, types.StarArgTuple.from_types(index)), code
