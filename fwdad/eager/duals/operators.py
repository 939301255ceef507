"""The operators of duals, and NumPy's protocols on them."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fwdad.eager.calls import apply, numpy_calls
from fwdad.eager.calls.apply import apply_elementwise
from fwdad.eager.calls.creation import make_array
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array, is_simple
from fwdad.eager.duals.dual import check_alive
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.probe import Probe
from fwdad.eager.duals.scalar import Scalar, fewer
from fwdad.eager.duals.tags import top_tag
from fwdad.ops import record_of
from fwdad.rules.core.registry import RULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import quiet

# -- scalars: the sums of scaled lanes are combined in place, without a rule call


def _combined(first: Any, p: float, second: Any, q: float, tag: Any) -> dict[Any, Any]:
    """The terms of ``p * first + q * second``; array coefficients may cause warnings."""
    terms = {lanes: d * p for lanes, d in first.items()}
    for lanes, d in second.items():
        terms[lanes] = terms[lanes] + d * q if lanes in terms else d * q
    return terms if len(terms) <= tag.most else fewer(terms, tag)


def slow(name: str, a: Any, b: Any) -> Any:
    """An operator by its ufunc's rule."""
    if type(b) in _LISTS and takes_lists(name, a):
        b = make_array(b)
    if not is_numeric(b):
        return _BINARY[name][1](plain(a), b) if type(b) in _NEVER else NotImplemented
    if type(a) is Array is type(b) and a.tag is b.tag and a.tag.record is not None:
        t = _recorded(name, a, b)
        if t is not None:
            return t
    ufunc, function = _BINARY[name]
    return apply_elementwise(RULES[ufunc], function, (a, b))


def _recorded(name: str, a: Array, b: Array) -> Array | None:
    """The sum or product of two arrays of a call that records, without copies of the primals."""
    p, q = a.p, b.p
    if name == "truediv" or not (is_simple(a) and is_simple(b)) or p.shape != q.shape:
        return None
    if name == "mul":
        return Array(p * q, quiet()(a.tag.record.product, a._t, b._t, p, q), a.tag)
    if name == "add":
        return Array(p + q, a._t + b._t, a.tag)
    return Array(p - q, a._t - b._t, a.tag)


_LISTS = (list, tuple, range)


def takes_lists(name: str, a: Any) -> bool:
    """Whether a list beside a becomes an array, as it does beside arrays and NumPy's numbers.

    In products with lists NumPy's numbers act as Python's, which repeat the list.
    """
    return type(a) is Array or (
        type(a) is Scalar and name != "mul" and isinstance(plain(a), np.generic)
    )


_NEVER = {str, bytes, type(None), dict, set}
"""Classes that no number can be added to, and the like: the error is NumPy's or Python's own."""

_NUMERIC = {Scalar, Array, float, int, complex, bool, np.ndarray, np.float64}


def is_numeric(b: Any) -> bool:
    """Whether an operand is a number or an array; any other may define the operator itself."""
    # by type first: a dual's own __class__, which isinstance reads, is that of its primal
    t = type(b)
    return t in _NUMERIC or issubclass(t, (float, int, complex, np.generic, np.ndarray))


_QUICK = (float, int, np.float64)


def _s_add(a: Scalar, b: Any) -> Any:
    tag = a.tag
    if not tag.alive:
        check_alive(tag)
    t = type(b)
    if t is Scalar and b.tag is tag:
        if tag.most == 1:
            return Scalar(a.p + b.p, quiet()(_combined, a.terms, 1.0, b.terms, 1.0, tag), tag)
        terms = a.terms.copy()
        for lanes, d in b.terms.items():
            terms[lanes] = terms[lanes] + d if lanes in terms else d
        if len(terms) > tag.most:
            terms = fewer(terms, tag)
        return Scalar(a.p + b.p, terms, tag)
    if t in _QUICK:
        return Scalar(a.p + b, a.terms, tag)
    return slow("add", a, b)


def _s_radd(a: Scalar, b: Any) -> Any:
    if type(b) in _QUICK and a.tag.alive:
        return Scalar(b + a.p, a.terms, a.tag)
    return slow_reflected("add", a, b)


def _s_sub(a: Scalar, b: Any) -> Any:
    tag = a.tag
    if not tag.alive:
        check_alive(tag)
    t = type(b)
    if t is Scalar and b.tag is tag:
        if tag.most == 1:
            return Scalar(a.p - b.p, quiet()(_combined, a.terms, 1.0, b.terms, -1.0, tag), tag)
        terms = a.terms.copy()
        for lanes, d in b.terms.items():
            terms[lanes] = terms[lanes] - d if lanes in terms else -d
        if len(terms) > tag.most:
            terms = fewer(terms, tag)
        return Scalar(a.p - b.p, terms, tag)
    if t in _QUICK:
        return Scalar(a.p - b, a.terms, tag)
    return slow("sub", a, b)


def _s_rsub(a: Scalar, b: Any) -> Any:
    if type(b) in _QUICK and a.tag.alive:
        return Scalar(b - a.p, _scaled(a.terms, -1.0, a.tag), a.tag)
    return slow_reflected("sub", a, b)


def _scaled(terms: dict[Any, Any], q: float, tag: Any) -> dict[Any, Any]:
    if tag.most == 1:
        return quiet()(_combined, terms, q, {}, q, tag)
    scaled = {}
    for lanes, d in terms.items():  # a comprehension would cost another call
        scaled[lanes] = d * q
    return scaled


def _s_mul(a: Scalar, b: Any) -> Any:
    tag = a.tag
    if not tag.alive:
        check_alive(tag)
    t = type(b)
    if t is Scalar and b.tag is tag:
        p, q = a.p, b.p
        value = p * q
        # NumPy's scalars are three times as slow as Python's, and warn a second time
        if type(p) is np.float64:
            p = float(p)
        if type(q) is np.float64:
            q = float(q)
        if tag.eager and not (type(p) is type(q) is float):
            return slow("mul", a, b)
        if tag.most == 1:
            return Scalar(value, quiet()(_combined, a.terms, q, b.terms, p, tag), tag)
        terms = {}
        for lanes, d in a.terms.items():
            terms[lanes] = d * q
        for lanes, d in b.terms.items():
            terms[lanes] = terms[lanes] + d * p if lanes in terms else d * p
        if len(terms) > tag.most:
            terms = fewer(terms, tag)
        return Scalar(value, terms, tag)
    if t in _QUICK:
        return Scalar(a.p * b, _scaled(a.terms, float(b), tag), tag)
    return slow("mul", a, b)


def _s_rmul(a: Scalar, b: Any) -> Any:
    tag = a.tag
    if type(b) in _QUICK and tag.alive:
        q = float(b)
        if tag.most == 1:
            return Scalar(b * a.p, quiet()(_combined, a.terms, q, {}, q, tag), tag)
        terms = {}
        for lanes, d in a.terms.items():
            terms[lanes] = d * q
        return Scalar(b * a.p, terms, tag)
    return slow_reflected("mul", a, b)


def _s_truediv(a: Scalar, b: Any) -> Any:
    if type(b) in _QUICK and b and a.tag.alive:
        return Scalar(a.p / b, _scaled(a.terms, 1.0 / float(b), a.tag), a.tag)
    return slow("truediv", a, b)


def _s_neg(a: Scalar) -> Any:
    tag = a.tag
    if not tag.alive:
        check_alive(tag)
    return Scalar(-a.p, _scaled(a.terms, -1.0, a.tag), tag)


def slow_reflected(name: str, a: Any, b: Any) -> Any:
    """``b + a`` by the ufunc's rule, where Python asks a."""
    if type(b) in _LISTS and takes_lists(name, a):
        b = make_array(b)
    ufunc, function = _BINARY[name]
    if not is_numeric(b):
        return function(b, plain(a)) if type(b) in _NEVER else NotImplemented
    return apply_elementwise(RULES[ufunc], function, (b, a))


def _with_ufuncs(*functions: Any) -> dict[str, tuple[Any, Any]]:
    """The ufuncs that operators stand for, and these, by name."""
    return {f.__name__: (record_of(f).stands_for, f) for f in functions}


_BINARY = _with_ufuncs(operator.add, operator.sub, operator.mul, operator.truediv)
# operators whose rule is not elementwise, or rare enough to take the general path
_GENERAL = _with_ufuncs(operator.pow, operator.mod, operator.floordiv, operator.matmul, divmod)


def general_binary(name: str, a: Any, b: Any) -> Any:
    """An operator by its ufunc's rule; scalars keep Python's own value and exceptions."""
    ufunc, function = _GENERAL[name]
    if type(b) in _LISTS and takes_lists(name, a):
        b = make_array(b)
    elif type(a) in _LISTS and takes_lists(name, b):
        a = make_array(a)
    if not is_numeric(a) or not is_numeric(b):
        never = type(a) in _NEVER or type(b) in _NEVER
        return function(plain(a), plain(b)) if never else NotImplemented
    if name == "matmul" and not (isinstance(a, np.ndarray) or isinstance(b, np.ndarray)):
        return function(plain(a), plain(b))  # numbers have no `@`
    rule = RULES[ufunc]
    if rule.kind == "elementwise":
        return apply_elementwise(rule, function, (a, b))
    if rule.kind == "constant":
        return function(apply.primal_part(a), apply.primal_part(b))
    value = apply.apply_rule(rule, (explicit(a), explicit(b)), {})
    scalars = not (isinstance(a, np.ndarray) or isinstance(b, np.ndarray))
    if (
        scalars
        and top_tag((a.p if type(a) is Scalar else a, b.p if type(b) is Scalar else b)) is None
    ):
        own = function(plain(a), plain(b))
        if isinstance(value, tuple):
            return tuple(with_primal(v, p) for v, p in zip(value, own, strict=True))
        return with_primal(value, own)
    return value


def _attach(cls: type) -> None:
    def forward(name: str) -> Any:
        return lambda a, b: general_binary(name, a, b)

    def reflected(name: str) -> Any:
        return lambda a, b: general_binary(name, b, a)

    for name in _GENERAL:
        setattr(cls, f"__{name}__", forward(name))
        setattr(cls, f"__r{name}__", reflected(name))
    cls.__pow__ = _power
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(cls, f"__{name}__", _comparison(getattr(operator, name)))
    cls.__pos__ = lambda a: a if type(a) is Scalar else _by_rule(np.positive, a)  # type: ignore[attr-defined]
    cls.__abs__ = lambda a: _absolute(a)  # type: ignore[attr-defined]
    for name in ("round", "trunc", "floor", "ceil"):
        setattr(cls, f"__{name}__", _constant(name))
    cls.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
    cls.__array_function__ = _array_function  # type: ignore[attr-defined]


def _power(a: Any, b: Any, modulus: Any = None) -> Any:
    return NotImplemented if modulus is not None else general_binary("pow", a, b)


def _absolute(a: Any) -> Any:
    if type(a) is Scalar and not isinstance(plain(a), (complex, np.complexfloating)):
        return apply_elementwise(RULES[np.fabs], abs, (a,))
    value = apply.apply_rule(RULES[np.absolute], (a,), {})
    return with_primal(value, abs(a.p)) if type(a) is Scalar else value


def with_primal(value: Any, p: Any) -> Any:
    """A dual scalar with Python's own value, which may differ from NumPy's by rounding."""
    return Scalar(p, value.terms, value.tag) if type(value) is Scalar else p


def _by_rule(ufunc: Any, *args: Any) -> Any:
    return apply.apply_rule(RULES[ufunc], args, {})


_BY_THEMSELVES = (Chunk, Probe)
"""What knows how it compares to a dual."""


def _comparison(compare: Any) -> Any:
    def method(a: Any, b: Any) -> Any:
        check_alive(a.tag)
        if issubclass(type(b), _BY_THEMSELVES):
            return NotImplemented
        return compare(apply.primal_part(a), apply.primal_part(b))

    return method


def _constant(name: str) -> Any:
    function = round if name == "round" else getattr(math, name)

    def method(a: Any, *args: Any) -> Any:
        return function(apply.primal_part(a), *args)

    return method


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if any(issubclass(type(x), Chunk) for x in inputs):
        return NotImplemented
    return numpy_calls.call_ufunc(ufunc, method, inputs, kwargs)


def _array_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if any(issubclass(t, Chunk) for t in types):
        return NotImplemented
    return call(func, *args, **kwargs)


for _cls in (Scalar, Array):
    _attach(_cls)

Scalar.__add__, Scalar.__radd__ = _s_add, _s_radd  # type: ignore[attr-defined]
Scalar.__sub__, Scalar.__rsub__ = _s_sub, _s_rsub  # type: ignore[attr-defined]
Scalar.__mul__, Scalar.__rmul__ = _s_mul, _s_rmul  # type: ignore[attr-defined]
Scalar.__truediv__ = _s_truediv  # type: ignore[attr-defined]
Scalar.__rtruediv__ = lambda a, b: slow_reflected("truediv", a, b)  # type: ignore[attr-defined]
Scalar.__neg__ = _s_neg  # type: ignore[attr-defined]
