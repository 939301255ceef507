"""Functions of vectors of neighbouring elements, and those that read and write them, by name.

Importing this module needs Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from fwdad.codegen.llvm.checks import require
from fwdad.codegen.llvm.scalars import DOMAIN, RANGE, is_nan
from fwdad.codegen.llvm.vector_exp import exponential, has_feature
from fwdad.codegen.llvm.vectors import (
    FLOATS,
    VectorType,
    common,
    constant,
    flat,
    llvm_type,
    mask_of_floats,
    same_float,
    splat,
    spread,
    vector_read,
    vector_write,
)
from fwdad.codegen.runtime import libmvec

types: Any = _types
_INT32 = ir.IntType(32)


def _function(
    arity: int, result: Callable[..., Any], code: Callable[..., Any], doc: str, name: str
) -> Any:
    """An intrinsic of vectors, some of which may be scalars."""

    def made(_typing, *given):
        given = flat(given)
        t = common(*given) if len(given) == arity else None
        result_type = None if t is None else result(t)
        if t is None or result_type is None:
            raise TypingError(f"{name} of {', '.join(map(str, given))}")

        def lower(context, builder, sig, args):
            items = cgutils.unpack_tuple(builder, args[0], arity)
            pairs = zip(sig.args[0], items, strict=True)
            return code(builder, t, *[spread(context, builder, a, x, t) for a, x in pairs])

        return result_type(types.StarArgTuple.from_types(given)), lower

    return _named(made, name, doc)


def _named(made: Any, name: str, doc: str) -> Any:
    """An intrinsic, of a function that types calls, under the name that code calls it by."""
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    return intrinsic(made)


def _call(builder: Any, name: str, t: VectorType, *args: Any) -> Any:
    module, vector = builder.module, llvm_type(t)
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(vector, [vector] * len(args)), name)
        function.attributes.add("nounwind")
        function.attributes.add("readnone")
    return builder.call(function, args)


def _of_library(name: str) -> Any:
    def code(builder: Any, t: VectorType, *args: Any) -> Any:
        symbol = libmvec.symbol(name, t.dtype.bitwidth // 8, t.n)
        if symbol is None:
            raise NotImplementedError(f"no vector function {name} of {t}")
        if name == "exp" and t.dtype == types.float64 and has_feature("fma"):
            return exponential(builder, *args)
        return _call(builder, symbol, t, *args)

    doc = f"``{name}`` of each element, by the C library's vector function: exact to 4 ulp."
    return _function(libmvec.ARGUMENTS[name], same_float, code, doc, f"vector_{name}")


def _suffix(t: VectorType) -> str:
    return f"v{t.n}{'f64' if t.dtype == types.float64 else 'f32'}"


def _of_llvm(name: str, intrinsic_name: str | None = None, arity: int = 1) -> Any:
    def code(builder: Any, t: VectorType, *args: Any) -> Any:
        return _call(builder, f"llvm.{intrinsic_name or name}.{_suffix(t)}", t, *args)

    doc = f"``np.{name}`` of each element."
    return _function(arity, same_float, code, doc, f"vector_{name}")


def _extreme(symbol: str, *, skip_nan: bool) -> Callable[..., Any]:
    def code(builder: Any, _t: VectorType, x: Any, y: Any) -> Any:
        first = builder.or_(
            builder.fcmp_ordered(symbol, x, y), is_nan(builder, y if skip_nan else x)
        )
        return builder.select(first, x, y)

    return code


def _sign(builder: Any, t: VectorType, x: Any) -> Any:
    zero = constant(t, 0.0)
    positive = builder.fcmp_ordered(">", x, zero)
    negative = builder.fcmp_ordered("<", x, zero)
    rest = builder.select(is_nan(builder, x), x, zero)
    below = builder.select(negative, constant(t, -1.0), rest)
    return builder.select(positive, constant(t, 1.0), below)


def _compared_with_inf(symbol: str) -> Callable[..., Any]:
    def code(builder: Any, t: VectorType, x: Any) -> Any:
        size = _call(builder, f"llvm.fabs.{_suffix(t)}", t, x)
        return builder.fcmp_ordered(symbol, size, constant(t, float("inf")))

    return code


def _scaled(builder: Any, t: VectorType, d: Any, x: Any) -> Any:
    zero = constant(t, 0.0)
    return builder.select(builder.fcmp_ordered("==", x, zero), zero, builder.fmul(d, x))


@intrinsic
def vector_where(_typing, condition, a, b):
    """Select elements of one of two, by a mask or a bool."""
    t = common(a, b)
    is_mask = isinstance(condition, VectorType) and condition.dtype == types.boolean
    if t is None:
        float_types = {x for x in (a, b) if isinstance(x, types.Float)}
        if not is_mask or len(float_types) != 1:
            return None
        t = VectorType(float_types.pop(), condition.n)
    if not is_mask and not isinstance(condition, types.Boolean):
        return None

    def code(context, builder, sig, args):
        mask = spread(context, builder, sig.args[0], args[0], VectorType(types.boolean, t.n))
        x, y = (spread(context, builder, sig.args[k], args[k], t) for k in (1, 2))
        return builder.select(mask, x, y)

    return t(condition, a, b), code


def _converted(to: Any, name: str) -> Any:
    def made(_typing, x):
        if not isinstance(x, VectorType):
            return None
        result = VectorType(to, x.n)

        def lower(_context, builder, sig, args):
            given, vector = sig.args[0].dtype, llvm_type(result)
            if given == to:
                return args[0]
            if given in FLOATS:
                widen = given == types.float32
                return (builder.fpext if widen else builder.fptrunc)(args[0], vector)
            signed = given != types.boolean and given.signed
            return (builder.sitofp if signed else builder.uitofp)(args[0], vector)

        return result(x), lower

    return _named(made, name, f"Each element as a {to}.")


@intrinsic(prefer_literal=True)
def vector_filled(_typing, width, x):
    """A vector of W equal numbers."""
    if not isinstance(width, types.IntegerLiteral) or not isinstance(x, types.Float):
        return None
    vector = VectorType(x, width.literal_value)

    def code(context, builder, sig, args):
        return spread(context, builder, sig.args[1], args[1], vector)

    return vector(width, x), code


@intrinsic
def vector_total(_typing, vector):
    """The sum of W numbers."""
    if not isinstance(vector, VectorType) or same_float(vector) is None:
        return None

    def code(_context, builder, _sig, args):
        (total,), n = args, vector.n
        while n > 1:
            n //= 2
            unset = ir.Constant(total.type, ir.Undefined)
            parts = [
                builder.shuffle_vector(
                    total,
                    unset,
                    ir.Constant(ir.VectorType(_INT32, n), list(range(k, k + n))),
                )
                for k in (0, n)
            ]
            total = builder.fadd(*parts)
        return builder.extract_element(total, _INT32(0))

    return vector.dtype(vector), code


@intrinsic
def vector_added(_typing, total, vector, stop, i):
    """``total`` plus those of W numbers whose index is below stop, added one after the other."""
    if total != types.float64 or vector != VectorType(types.float64, getattr(vector, "n", 0)):
        return None

    def code(context, builder, sig, args):
        start, value, n = args[0], args[1], sig.args[1].n
        stop, i = (context.cast(builder, args[k], sig.args[k], types.intp) for k in (2, 3))
        left = builder.sub(stop, i)
        count = ir.VectorType(left.type, n)
        lanes = ir.Constant(count, list(range(n)))
        there = builder.icmp_signed("<", lanes, splat(builder, left, n))
        value = builder.select(there, value, constant(sig.args[1], -0.0))  # x + -0.0 is x
        slot = cgutils.alloca_once(builder, value.type)
        builder.store(value, slot)
        # via memory, opaque to LLVM: extracting elements of a register takes longer
        pointers = ir.FunctionType(ir.VoidType(), [slot.type])
        builder.asm(pointers, "", "r,~{memory}", [slot], True)
        items = builder.bitcast(slot, start.type.as_pointer())
        for k in range(n):
            start = builder.fadd(start, builder.load(builder.gep(items, [_INT32(k)])))
        return start

    return total(total, vector, stop, i), code


def _any(builder: Any, mask: Any) -> Any:
    """Whether any bit of a mask is set."""
    n = mask.type.count
    bits = builder.bitcast(mask, ir.IntType(n))
    return builder.icmp_unsigned("!=", bits, bits.type(0))


def _checked(name: str, *raised: tuple[Callable[..., Any], Any]) -> Any:
    """An intrinsic that checks W results of a function of :mod:`math`, and its argument."""

    def made(_typing, r, x):
        if not isinstance(r, VectorType) or r != x or same_float(r) is None:
            return None

        def lower(context, builder, _sig, args):
            result, given = args
            odd = is_nan(builder, builder.fsub(result, result))  # NaN where it is not finite
            with builder.if_then(_any(builder, odd), likely=False):
                for wrong, (exception, message) in raised:
                    fails = _any(builder, wrong(builder, r, result, given))
                    require(context, builder, builder.not_(fails), exception, message)
            return context.get_dummy_value()

        return types.void(r, x), lower

    return _named(
        made, name, "Raise what a function of :mod:`math` raises if one of W results is such."
    )


def _nan_made(builder: Any, _t: VectorType, r: Any, x: Any) -> Any:
    return builder.and_(is_nan(builder, r), builder.not_(is_nan(builder, x)))


def _infinity_made(builder: Any, t: VectorType, r: Any, x: Any) -> Any:
    infinite = _compared_with_inf("==")(builder, t, r)
    return builder.and_(infinite, _compared_with_inf("<")(builder, t, x))


def _items(builder: Any, vector: Any, n: int) -> list[Any]:
    return [builder.extract_element(vector, _INT32(k)) for k in range(n)]


def _of_row(symbol: str, name: str) -> Any:
    def made(_typing, best, odd):
        if same_float(best) is None or odd != VectorType(types.boolean, best.n):
            return None

        def lower(context, builder, _sig, args):
            value, *rest = _items(builder, args[0], best.n)
            is_odd, *others = _items(builder, args[1], best.n)
            for item, other in zip(rest, others, strict=True):
                value = builder.select(builder.fcmp_ordered(symbol, item, value), item, value)
                is_odd = builder.or_(is_odd, other)
            nan = context.get_constant(best.dtype, float("nan"))
            return builder.select(is_odd, nan, value)

        return best.dtype(best, odd), lower

    return _named(made, name, "The extreme of W numbers, or NaN if one of a mask's bits is set.")


def _place(symbol: str, name: str) -> Any:
    def made(_typing, best, where):
        if same_float(best) is None or where != VectorType(types.float64, best.n):
            return None

        def lower(context, builder, _sig, args):
            value, at = None, None
            places = _items(builder, args[1], best.n)
            for k, item in enumerate(_items(builder, args[0], best.n)):
                place = builder.fadd(places[k], context.get_constant(types.float64, k))
                if value is None:
                    value, at = item, place
                    continue
                odd, both = is_nan(builder, item), builder.fcmp_ordered("==", item, value)
                both = builder.or_(both, builder.and_(odd, is_nan(builder, value)))
                earlier = builder.and_(both, builder.fcmp_ordered("<", place, at))
                more = builder.fcmp_ordered(symbol, item, value)
                more = builder.or_(more, builder.and_(odd, builder.not_(is_nan(builder, value))))
                taken = builder.or_(more, earlier)
                value = builder.select(taken, item, value)
                at = builder.select(taken, place, at)
            return builder.fptosi(at, context.get_value_type(types.int64))

        return types.int64(best, where), lower

    return _named(made, name, "Where the first extreme of W numbers was found, or their first NaN.")


_TWO: dict[str, tuple[Callable[..., Any], str]] = {
    "scale": (_scaled, "``d * x``; an element of x that is zero stays zero, whatever d is."),
    "maximum": (_extreme(">=", skip_nan=False), "The larger one, or the NaN."),
    "minimum": (_extreme("<=", skip_nan=False), "The smaller one, or the NaN."),
    "fmax": (_extreme(">=", skip_nan=True), "The larger one that is a number."),
    "fmin": (_extreme("<=", skip_nan=True), "The smaller one that is a number."),
}
_ASKED: dict[str, tuple[Callable[..., Any], str]] = {
    "isnan": (lambda b, _t, x: is_nan(b, x), "Whether it is NaN."),
    "isfinite": (_compared_with_inf("<"), "Whether it is a finite number."),
    "isinf": (_compared_with_inf("=="), "Whether it is infinite."),
}

FUNCTIONS: dict[str, Any] = {
    f.__name__: f
    for f in (
        vector_read,
        vector_write,
        vector_where,
        vector_filled,
        vector_total,
        _of_row(">", "vector_largest"),
        _of_row("<", "vector_smallest"),
        _place(">", "vector_place_of_largest"),
        _place("<", "vector_place_of_smallest"),
        vector_added,
        _checked("vector_in_domain", (_nan_made, DOMAIN), (_infinity_made, DOMAIN)),
        _checked("vector_in_range", (_nan_made, DOMAIN), (_infinity_made, RANGE)),
        _converted(types.float64, "vector_float64"),
        _converted(types.float32, "vector_float32"),
        *(_function(2, same_float, c, doc, f"vector_{f}") for f, (c, doc) in _TWO.items()),
        *(_function(1, mask_of_floats, c, doc, f"vector_{f}") for f, (c, doc) in _ASKED.items()),
        _function(1, same_float, _sign, "-1, 0 or 1, or the NaN.", "vector_sign"),
        *map(_of_llvm, ("sqrt", "floor", "ceil", "trunc", "rint")),
        _of_llvm("abs", "fabs"),
        _of_llvm("copysign", arity=2),
        *map(_of_library, sorted(libmvec.ARGUMENTS)),
    )
}
"""What generated code may call, by name."""
