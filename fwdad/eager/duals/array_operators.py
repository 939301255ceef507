"""The operators of dual arrays.

For small arrays the detour through a rule costs more than the arithmetic. So sums and products of
two arrays of one call and shape, or of one and a plain number or array, are computed here; the
fastest case is two arrays whose tangents are one term each, with the same lanes.
"""

from __future__ import annotations

import operator
from operator import call
from typing import Any

import numpy as np

from fwdad.eager.calls import apply
from fwdad.eager.calls.apply import apply_elementwise
from fwdad.eager.calls.numpy_calls import write_out
from fwdad.eager.duals.array import Array, is_simple, one_term
from fwdad.eager.duals.operators import is_numeric, slow, slow_reflected
from fwdad.eager.duals.scalar import DOUBLE
from fwdad.eager.memory import store
from fwdad.eager.memory.shadow import SHADOWED, untouched
from fwdad.rules.core.registry import RULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.quiet import QUIET, inside, quiet
from fwdad.tangents.scaling import MAX_ARRAY_TERMS

# -- what may take a shortcut


def _beside(a: Array, b: np.ndarray) -> bool:
    """Whether a is simple, and b a plain array of its shape; both in double precision."""
    p = a.p
    return (
        is_simple(a)
        and b.shape == p.shape
        and b.dtype is DOUBLE
        and p.dtype is DOUBLE
        and (not SHADOWED or untouched(b))
    )


def _alike(a: Array, b: Array) -> bool:
    """Whether both are simple, of one call and of one shape."""
    s, r, tag = a.held, b.held, a.tag
    if (type(s) is not tuple and type(s) is not Chunk) or tag is not b.tag or not tag.alive:
        return False
    if type(r) is not tuple and type(r) is not Chunk:
        return False
    p, q = a.p, b.p
    if type(p) is not np.ndarray or type(q) is not np.ndarray or not p.ndim or p.shape != q.shape:
        return False
    return not SHADOWED or (untouched(p) and untouched(q))


def _terms(a: Array) -> dict[Any, Any]:
    """The terms of a tangent, which must not be changed."""
    t = a.held
    return {t[0]: t[1]} if type(t) is tuple else t.terms


def _in_one(a: Array, b: Array) -> Any:
    """The common lanes of two one-term arrays of one call and shape, and their scalings.

    ``(lanes, scaling of a, scaling of b, shape)``, or None.
    """
    s, r, tag = a.held, b.held, a.tag
    if type(s) is not tuple:
        s = one_term(a)
        if s is None:
            return None
    if type(r) is not tuple:
        r = one_term(b)
        if r is None:
            return None
    if tag is not b.tag or not tag.alive:
        return None
    lanes, d, shape = s
    other, e, beside = r
    if lanes is not other or shape != beside:
        return None
    if SHADOWED and not (untouched(a.p) and untouched(b.p)):
        return None
    return lanes, d, e, shape


# -- tangents whose lanes are one


def _product(d: Any, e: Any, p: np.ndarray, q: np.ndarray) -> Any:
    # no names for the products: NumPy adds into a large one
    return (q if d is None else d * q) + (p if e is None else e * p)


def _sum(d: Any, e: Any) -> Any:
    return (1.0 if d is None else d) + (1.0 if e is None else e)


def _difference(d: Any, e: Any) -> Any:
    return (1.0 if d is None else d) - (1.0 if e is None else e)


def _multiple(t: Any, b: float) -> Any:
    """A held tangent times a number."""
    if type(t) is not tuple:
        return _scaled_by(t, b)
    lanes, d, shape = t
    if d is None:
        return lanes, b, shape
    if type(d) is float:
        return lanes, d * b, shape
    return lanes, (call if inside() else QUIET.run)(operator.mul, d, b), shape  # arrays can warn


def _opposite(t: Any) -> Any:
    if type(t) is not tuple:
        return -t
    lanes, d, shape = t
    return lanes, -1.0 if d is None else -d, shape


# -- tangents of several terms


def _scaled_by(t: Chunk, b: float) -> Chunk:
    if type(t) is not Chunk:
        return t.scale(b)
    terms: dict[Any, Any] = {}
    for lanes, d in t.terms.items():
        if d is None:
            terms[lanes] = b
        else:  # arrays can warn
            terms[lanes] = d * b if type(d) is float else quiet()(operator.mul, d, b)
    return Chunk.of(t.n, t.shape, terms)


def _chunk(a: Array, terms: dict[Any, Any]) -> Chunk:
    chunk = Chunk.of(a.tag.n, a.p.shape, terms)
    return Chunk(chunk.lanes) if len(terms) > MAX_ARRAY_TERMS else chunk


def _product_tangent(a: Array, b: Array, p: np.ndarray, q: np.ndarray) -> Chunk:
    mine, others = _terms(a), _terms(b)
    # a lanes' scaling must be its own: what is neither multiplied nor added is copied
    terms = {}
    for lanes, d in mine.items():
        part = q if d is None else d * q
        terms[lanes] = q.copy() if part is q and lanes not in others else part
    for lanes, d in others.items():
        if lanes in terms:
            terms[lanes] = terms[lanes] + (p if d is None else d * p)
        else:
            terms[lanes] = p.copy() if d is None else d * p
    return _chunk(a, terms)


def _sum_tangent(a: Array, b: Array) -> Any:
    n, shape = a.tag.n, a.p.shape
    return Chunk.of(n, shape, _terms(a)) + Chunk.of(n, shape, _terms(b))


def _difference_tangent(a: Array, b: Array) -> Chunk:
    terms = dict(_terms(a))
    for lanes, d in _terms(b).items():
        if lanes in terms:
            held = terms[lanes]
            terms[lanes] = (1.0 if held is None else held) - (1.0 if d is None else d)
        else:
            terms[lanes] = -1.0 if d is None else -d
    return _chunk(a, terms)


def _by_array(t: Any, b: np.ndarray) -> Any:
    if type(t) is tuple:
        lanes, d, shape = t
        return lanes, b.copy() if d is None else d * b, shape
    if type(t) is not Chunk:
        return t.scale_quietly(b.copy(), t.shape)
    terms = {lanes: b.copy() if d is None else d * b for lanes, d in t.terms.items()}
    return Chunk.of(t.n, t.shape, terms)


def _by_quotient(t: Any, b: np.ndarray) -> Any:
    d = 1 / b
    if type(t) is tuple:
        lanes, scaling, shape = t
        return lanes, d if scaling is None else scaling * d, shape
    if type(t) is not Chunk:
        return t.scale_quietly(d, t.shape)
    terms = {lanes: d if scaling is None else scaling * d for lanes, scaling in t.terms.items()}
    return Chunk.of(t.n, t.shape, terms)


# -- the operators


def _a_add(a: Array, b: Any) -> Any:
    t = type(b)
    if t is Array:
        one = _in_one(a, b)
        if one is not None:
            lanes, d, e, shape = one
            both = (call if inside() else QUIET.run)(_sum, d, e)
            return Array(a.p + b.p, (lanes, both, shape), a.tag)
        if _alike(a, b):
            return Array(a.p + b.p, quiet()(_sum_tangent, a, b), a.tag)
    elif ((t is float or t is int) and is_simple(a)) or (t is np.ndarray and _beside(a, b)):
        return Array(a.p + b, a.held, a.tag)
    return slow("add", a, b)


def _a_radd(a: Array, b: Any) -> Any:
    t = type(b)
    if ((t is float or t is int) and is_simple(a)) or (t is np.ndarray and _beside(a, b)):
        return Array(b + a.p, a.held, a.tag)
    return slow_reflected("add", a, b)


def _a_sub(a: Array, b: Any) -> Any:
    t = type(b)
    if t is Array:
        one = _in_one(a, b)
        if one is not None:
            lanes, d, e, shape = one
            both = (call if inside() else QUIET.run)(_difference, d, e)
            return Array(a.p - b.p, (lanes, both, shape), a.tag)
        if _alike(a, b):
            return Array(a.p - b.p, quiet()(_difference_tangent, a, b), a.tag)
    elif ((t is float or t is int) and is_simple(a)) or (t is np.ndarray and _beside(a, b)):
        return Array(a.p - b, a.held, a.tag)
    return slow("sub", a, b)


def _a_rsub(a: Array, b: Any) -> Any:
    t = type(b)
    if ((t is float or t is int) and is_simple(a)) or (t is np.ndarray and _beside(a, b)):
        return Array(b - a.p, quiet()(_opposite, a.held), a.tag)
    return slow_reflected("sub", a, b)


def _a_mul(a: Array, b: Any) -> Any:
    t = type(b)
    if t is Array:
        one = _in_one(a, b)
        if one is not None:
            lanes, d, e, shape = one
            p, q = a.p, b.p
            value = p * q
            both = (call if inside() else QUIET.run)(_product, d, e, p, q)
            return Array(value, (lanes, both, shape), a.tag)
        if _alike(a, b):
            return Array(a.p * b.p, quiet()(_product_tangent, a, b, a.p, b.p), a.tag)
    elif t is float or t is int:
        if is_simple(a):
            return Array(a.p * b, _multiple(a.held, float(b)), a.tag)
    elif t is np.ndarray and _beside(a, b):
        return Array(a.p * b, quiet()(_by_array, a.held, b), a.tag)
    return slow("mul", a, b)


def _a_rmul(a: Array, b: Any) -> Any:
    t = type(b)
    if t is float or t is int:
        if is_simple(a):
            return Array(b * a.p, _multiple(a.held, float(b)), a.tag)
    elif t is np.ndarray and _beside(a, b):
        return Array(b * a.p, quiet()(_by_array, a.held, b), a.tag)
    return slow_reflected("mul", a, b)


def _a_truediv(a: Array, b: Any) -> Any:
    t = type(b)
    if t is float or t is int:
        if b and is_simple(a):
            return Array(a.p / b, _multiple(a.held, 1.0 / b), a.tag)
    elif t is np.ndarray and _beside(a, b):
        return Array(a.p / b, quiet()(_by_quotient, a.held, b), a.tag)
    return slow("truediv", a, b)


def _a_neg(a: Array) -> Any:
    if is_simple(a):
        return Array(-a.p, _opposite(a.held), a.tag)
    return apply_elementwise(RULES[np.negative], operator.neg, (a,))


def _inplace(name: str) -> Any:
    function = getattr(operator, name)

    def method(a: Array, b: Any) -> Any:
        if not is_numeric(b) and not isinstance(b, (list, tuple)):
            return NotImplemented
        return write_out(a, function(a, b))

    return method


Array.__add__ = _a_add  # type: ignore[attr-defined]
Array.__radd__ = _a_radd  # type: ignore[attr-defined]
Array.__sub__, Array.__rsub__ = _a_sub, _a_rsub  # type: ignore[attr-defined]
Array.__mul__, Array.__rmul__ = _a_mul, _a_rmul  # type: ignore[attr-defined]
Array.__truediv__ = _a_truediv  # type: ignore[attr-defined]
Array.__rtruediv__ = lambda a, b: slow_reflected("truediv", a, b)  # type: ignore[attr-defined]
Array.__neg__ = _a_neg  # type: ignore[attr-defined]
for _name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "matmul"):
    setattr(Array, f"__i{_name}__", _inplace(_name))


def _len(a: Array) -> int:
    return len(a.p)


def _iter(a: Array) -> Any:
    if not a.p.shape:
        message = "iteration over a 0-d array"
        raise TypeError(message)
    return (store.load_dual(a, i) for i in range(len(a.p)))


Array.__len__ = _len  # type: ignore[attr-defined]
Array.__iter__ = _iter  # type: ignore[attr-defined]
Array.__getitem__ = store.load_dual  # type: ignore[attr-defined,misc]
Array.__setitem__ = store.store  # type: ignore[attr-defined]
Array.__contains__ = lambda a, x: apply.primal_part(x) in apply.primal_part(a)  # type: ignore[attr-defined]
