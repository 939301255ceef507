"""The hooks of operators: ``a + b``, ``-a``, ``a < b``, ``item in a``, ``a += b``."""

from __future__ import annotations

import operator
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.operators import BINARY, COMPARISONS, Operator, numpy_defers
from fwdad.eager.activity import is_active
from fwdad.eager.calls import numpy_calls, protocols
from fwdad.eager.calls.apply import primal_part
from fwdad.eager.calls.creation import make_array
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals import array_operators as _array_operators  # noqa: F401  (it gives duals theirs)
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.dual import OPAQUE
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import top_tag
from fwdad.eager.hooks.iteration import iterate, mapping
from fwdad.eager.hooks.known_types import NATIVE, has_python
from fwdad.eager.memory import store
from fwdad.eager.memory.containers import CONTAINERS, log_container
from fwdad.eager.memory.reach import check_objects
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.memory.stale import ARRAYS, check_array, check_lists
from fwdad.eager.run import STATE

_DIRECT = {int, float, complex, bool, np.float64, Scalar, Array, np.ndarray}

_PLAIN_ARITHMETIC = {int, float, complex, str, bytes, bool, np.float64, Scalar}

_SIMPLE = {int, float, complex, str, bytes, bool, type(None), np.float64, np.int64, np.bool_,
           Scalar,
           Array, np.ndarray, list, tuple, dict, set, type}  # fmt: skip


_ARRAYS = {Array, np.ndarray}
_LISTS = {list, tuple, range}


def _as_operand(b: Any) -> Any:
    """A list beside an array, as the array that NumPy makes of it, with the tangents in it."""
    check_lists((b,))
    return make_array(b) if is_active((b,)) else b


def _binary(of: Operator) -> Callable[[Any, Any], Any]:
    function, forward, reflected = of.function, of.method, of.reflected
    formats = function is operator.mod  # "%.2f" % x shows the primal
    repeats = function is operator.mul
    of_scalar = getattr(Scalar, forward, function)
    of_array = getattr(Array, forward, function)
    reflected_of_array = getattr(Array, reflected, lambda b, a: function(a, b))

    def hook(a: Any, b: Any) -> Any:
        t, u = type(a), type(b)
        if t is Scalar and (u is Scalar or u is float):  # what Python would find by itself
            return of_scalar(a, b)
        if t is Array:
            if u is Array or u is float or u is int or u is np.ndarray:
                if ARRAYS and u is np.ndarray:
                    check_array(b)
                return of_array(a, b)
        elif u is Array and (t is np.ndarray or t is float or t is int):
            if ARRAYS and t is np.ndarray:
                check_array(a)
            return reflected_of_array(b, a)
        if t in _DIRECT and u in _DIRECT:
            if not (SHADOWED or ARRAYS) or (t is not np.ndarray and u is not np.ndarray):
                return function(a, b)
        if formats and (t is str or t is bytes):
            text = function(a, primal_part(b))
            if STATE.run is not None and top_tag((b,)) is not None:
                STATE.run.effects.note_text(text)
            return text
        if (
            repeats
            and (t in _LISTS or u in _LISTS)
            and (issubclass(t, np.integer) or issubclass(u, np.integer))
        ):
            return function(a, b)  # of a sequence, not of an array
        if u in _LISTS and (t in _ARRAYS or issubclass(t, np.generic)):
            b = _as_operand(b)
        elif t in _LISTS and (u in _ARRAYS or issubclass(u, np.generic)):
            a = _as_operand(a)
        a, b = explicit(a), explicit(b)
        if SHADOWED:
            check_objects(function, (a, b))
        if (t not in NATIVE or u not in NATIVE) and (SHADOWED or has_python(u, reflected)):
            a, b = _read_by_arrays(a, b, forward, reflected)
            t, u = type(a), type(b)
        if has_python(t, forward) or has_python(u, reflected):
            return _dunder(function, forward, reflected, a, b)
        return function(a, b)

    return hook


def _dunder(function: Any, forward: str, reflected: str, a: Any, b: Any) -> Any:
    """The operands' methods tried in Python's order, each through the dispatcher."""
    t, u = type(a), type(b)
    order = [(t, forward, a, b), (u, reflected, b, a)]
    if (
        u is not t
        and isinstance(u, type)
        and issubclass(u, t)
        and getattr(u, reflected, None) is not getattr(t, reflected, None)
    ):
        order.reverse()
    elif isinstance(a, np.generic) and has_python(u, reflected):
        order.reverse()  # NumPy's numbers make an object array, which calls the other operand
    if t is u:
        order = order[:1]
    for cls, name, x, y in order:
        method = getattr(cls, name, None)
        if method is None:
            continue
        value = call(method, x, y)
        if value is not NotImplemented:
            return value
    symbol = function.__name__.rstrip("_")
    message = f"unsupported operand type(s) for {symbol}: {t.__name__!r} and {u.__name__!r}"
    raise TypeError(message)


def neg(a: Any) -> Any:
    """``-a``."""
    if type(a) is Scalar:
        return -a
    a = explicit(a)
    if has_python(type(a), "__neg__"):
        return call(type(a).__neg__, a)
    return -a


def pos(a: Any) -> Any:
    """``+a``."""
    a = explicit(a)
    return call(type(a).__pos__, a) if has_python(type(a), "__pos__") else +a


def invert(a: Any) -> Any:
    """``~a``."""
    return call(type(a).__invert__, a) if has_python(type(a), "__invert__") else ~a


def _read_by_arrays(a: Any, b: Any, forward: str, reflected: str) -> tuple[Any, Any]:
    """The operands, of which NumPy converts one beside its own to an array."""
    if _is_numpy(a):
        left = hasattr(type(b), reflected) and numpy_defers(
            b, number=not isinstance(a, (np.ndarray, Array))
        )
        return a, b if left else _as_numpy_takes(b)
    if _is_numpy(b) and not hasattr(type(a), forward):
        return _as_numpy_takes(a), b
    return a, b


def _is_numpy(x: Any) -> bool:
    return isinstance(x.p if type(x) is Scalar else x, (np.ndarray, np.generic, Array))


def _as_numpy_takes(o: Any) -> Any:
    """An operand beside an array as NumPy reads it: also a list of a class of its own."""
    if isinstance(o, (list, tuple)) and not hasattr(type(o), "__array__"):
        return make_array(list(o))
    return protocols.as_numpy_reads(o)


def _compare(of: Operator) -> Callable[[Any, Any], Any]:
    function, forward, reflected = of.function, of.method, of.reflected

    def hook(a: Any, b: Any) -> Any:
        t, u = type(a), type(b)
        if t in _SIMPLE and u in _SIMPLE:
            return function(a, b)
        if OPAQUE and (t in OPAQUE or u in OPAQUE):
            top_tag((a, b))  # raises for one that has outlived its call
            return function(primal_part(a), primal_part(b))
        if has_python(t, forward) or has_python(u, reflected):
            try:
                return _dunder(function, forward, reflected, a, b)
            except TypeError:
                return function(a, b)  # Python's own last resort, or its own message
        return function(a, b)

    return hook


def compare_then(compare: Any, a: Any, b: Any, then: Any) -> Any:
    """``a < b < …`` where the syntax allows no name for ``b``: ``then(b)`` is the rest."""
    value = compare(a, b)
    return then(b) if value else value


def contains(item: Any, container: Any) -> Any:
    """``item in container``."""
    if has_python(type(container), "__contains__"):
        return bool(call(type(container).__contains__, container, item))
    return item in container


def _inplace(of: Operator) -> Callable[[Any, Any], Any]:
    function, method, plain_function = of.in_place, of.in_place_method, of.function
    assert function is not None
    binary = _binary(of)

    def hook(a: Any, b: Any) -> Any:
        t = type(a)
        if t in _PLAIN_ARITHMETIC:
            return binary(a, b)
        if t is np.ndarray or t is Array:
            u = type(b)
            if u not in NATIVE and (SHADOWED or has_python(u, of.reflected)):
                if numpy_defers(b) and not hasattr(u, "__array_ufunc__"):
                    return binary(a, b)
                b = _as_numpy_takes(b)
            return _array_inplace(function, plain_function, a, b)
        if isinstance(a, CONTAINERS) and not isinstance(
            getattr(t, method, None), types.FunctionType
        ):
            log_container(a)
            if type(b) is np.ndarray:
                b = explicit(b)
            elif isinstance(a, (list, deque)):
                b = iterate(b)
            elif isinstance(a, dict):
                b = mapping(b)
            return function(a, b)
        if isinstance(getattr(t, method, None), types.FunctionType):
            value = call(getattr(t, method), a, b)
            if value is not NotImplemented:
                return value
            return binary(a, b)
        if hasattr(t, method):
            return function(a, b)
        return binary(a, b)

    return hook


def _array_inplace(function: Any, plain_function: Any, a: Any, b: Any) -> Any:
    """An in-place operator on an array, which stays the same object."""
    if type(b) in _LISTS:
        b = _as_operand(b)
    if type(a) is np.ndarray:
        if type(b) is Array and plain_function in _SUMS and store.accumulate(a, b, plain_function):
            return a
        b = explicit(b)
        active = top_tag((b,)) is not None or (SHADOWED and find_shadow(a) is not None)
        if not active or a.dtype.kind == "O":
            if ARRAYS:
                check_array(a)
            if STATE.run is not None:
                STATE.run.writes(a)
            return function(a, b)
        if plain_function in _SUMS and store.accumulate(a, b, plain_function):
            return a
    value = plain_function(explicit(a), b)
    return numpy_calls.write_out(a, value)


_SUMS = (operator.add, operator.sub)


OPERATORS: dict[Any, Callable[..., Any]] = (
    {o.function: _binary(o) for o in BINARY}
    | {o.in_place: _inplace(o) for o in BINARY}
    | {o.function: _compare(o) for o in COMPARISONS}
    | {operator.neg: neg, operator.pos: pos, operator.invert: invert}
)
"""The hooks of operators, by their functions."""
