"""Methods of arrays, and NumPy functions that query an array or return it unchanged."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, with_article
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import CALLED, builtin, method
from fwdad.frontend.syntax.attributes import class_of
from fwdad.frontend.syntax.bound_methods import METHODS, BoundArrayMethod
from fwdad.frontend.syntax.growing_lists import filled
from fwdad.frontend.syntax.growing_lists.making import list_of
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.iterators import Mapped
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number, Size
from fwdad.rules.core.registry import find_rule


def _as_array(tracer: Tracer, x: Any) -> Any:
    """A list of values as the array that NumPy makes of it; of what may be None, what it is."""
    x = tracer.values.settled(x)
    listed = isinstance(x, (list, tuple)) and mentions_symbols(x)
    return tracer.call(np.asarray, (x,), {}) if listed else x


@builtin(np.ndim)
def _ndim(tracer: Tracer, x: Any) -> Any:
    x = _as_array(tracer, x)
    return x.type.ndim if type(x) is Symbol else native(np.ndim, x)


@builtin(np.shape)
def _shape(tracer: Tracer, x: Any) -> Any:
    x = _as_array(tracer, x)
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    return tracer.recorder.shape(x) if type(x) is Symbol else native(np.shape, x)


@builtin(np.size)
def _size(tracer: Tracer, x: Any, axis: Any = None) -> Any:
    x = _as_array(tracer, x)
    if type(x) is Symbol or isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
        if axis is not None:
            return tracer.recorder.length(x, tracer.values.known(axis))
        return tracer.attribute(x, "size")
    return native(np.size, x)


@builtin(np.squeeze)
def _squeeze(tracer: Tracer, a: Any, axis: Any = None) -> Any:
    if axis is None and type(a) is Symbol and a.is_array:
        axis = tuple(k for k, d in enumerate(a.type.shape) if _is_one(tracer, a, k, d))
    return tracer.recorder.apply(np.squeeze, (a,) if axis is None else (a, axis), {})


def _is_one(tracer: Tracer, a: Symbol, axis: int, d: int | Size) -> bool:
    """Whether a length is 1, which the tape then assumes, or checks, if it is unknown."""
    if not isinstance(d, Size) or not d.may_be_one:
        return d == 1
    n = tracer.recorder.length(a, axis)
    try:
        return bool(tracer.values.known(n) == 1)
    except UntraceableError:
        message = "np.squeeze finds a length of 1 that is computed at run time: give it the `axis`"
        place = tracer.position.location()
        tracer.recorder.check(n != 1, UntraceableError, (message,), place)
        return False


@builtin(np.asarray, np.asanyarray)
def _asarray(tracer: Tracer, x: Any, dtype: Any = None, **options: Any) -> Any:
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    same = type(x) is Symbol and x.is_array and (dtype is None or np.dtype(dtype) == x.dtype)
    if same and not options.get("copy"):
        return _in_order(tracer, x, options.get("order"))
    with_dtype = options if dtype is None else {"dtype": np.dtype(dtype), **options}
    return tracer.recorder.apply(np.asarray, (x,), with_dtype)


def _as_it_is(f: Any, n_for: int) -> None:
    """Register a function that returns its argument itself for one value of n."""

    @builtin(f)
    def handle(tracer: Interpreter, a: Any, *args: Any, **options: Any) -> Any:
        if type(a) is Symbol and a.is_array and len(args) + len(options) == 1:
            n = tracer.values.known(args[0] if args else options.get("n"))
            if n == n_for:
                return a
        call = tracer.calls.call_numpy if find_rule(f) is None else tracer.operations.call_native
        return call(f, (a, *args), options)


_as_it_is(np.linalg.matrix_power, 1)


# -- methods


@method("copy")
def _copy(tracer: Tracer, a: Symbol, order: str = "C") -> Any:
    if not a.is_array:
        return a
    return tracer.recorder.apply(np.ndarray.copy, (a,), {} if order == "C" else {"order": order})


@method("__array__")
def _array(tracer: Tracer, a: Symbol, dtype: Any = None, **options: Any) -> Any:
    return tracer.call(np.asarray, (a,) if dtype is None else (a, dtype), options)


@method("__array_namespace__")
def _namespace(_tracer: Tracer, _a: Symbol, *, api_version: Any = None) -> Any:
    return native(lambda: np.zeros(0).__array_namespace__(api_version=api_version))


@method("fill")
def _fill(tracer: Tracer, a: Symbol, value: Any) -> None:
    if a.is_array:  # NumPy's numbers have the method, too, which does nothing
        tracer.recorder.store(a, Ellipsis, value)


@method("astype")
def _astype(tracer: Tracer, a: Symbol, dtype: Any, **options: Any) -> Any:
    if not a.is_array:
        return tracer.recorder.apply(np.dtype(dtype).type, (a,), {})
    if np.dtype(dtype) == a.dtype and options.get("copy") is False:
        return _in_order(tracer, a, options.get("order"))
    return tracer.recorder.apply(np.ndarray.astype, (a, np.dtype(dtype)), options)


def _in_order(tracer: Tracer, a: Symbol, order: str | None) -> Symbol:
    """The array itself, or a copy in a memory order that is asked for."""
    function = {"C": np.ascontiguousarray, "F": np.asfortranarray}.get(order or "K")
    return a if function is None else tracer.recorder.apply(function, (a,), {})


@method("item")
def _item(tracer: Tracer, a: Symbol, *index: Any) -> Any:
    if len(index) == 1 and type(index[0]) is tuple:
        (index,) = index
    if len(index) == 1 and a.type.ndim != 1:
        a = tracer.recorder.apply(np.reshape, (a, -1), {})
    if not index and a.type.ndim > 0:
        size = tracer.attribute(a, "size")
        only = (
            size == 1
            if isinstance(size, int)
            else tracer.recorder.apply(operator.eq, (size, 1), {})
        )
        message = "can only convert an array of size 1 to a Python scalar"
        if only is not True:
            tracer.recorder.check(only, ValueError, (message,), tracer.position.location())
        index = (0,) * a.type.ndim
    if index:
        a = tracer.recorder.load(a, index[0] if len(index) == 1 else tuple(index))
    cls = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[a.type.dtype.kind]
    return tracer.recorder.apply(cls, (a,), {})


@method("flatten")
def _flatten(tracer: Tracer, a: Symbol, order: str = "C") -> Any:
    if not a.is_array:
        return tracer.recorder.apply(np.ravel, (a,), {})
    return tracer.recorder.apply(np.ndarray.flatten, (a,), {} if order == "C" else {"order": order})


@method("reshape")
def _reshape(tracer: Tracer, a: Symbol, *shape: Any, **options: Any) -> Any:
    new = shape[0] if len(shape) == 1 else shape
    return tracer.call(np.reshape, (a, new), options)


@method("transpose")
def _transpose(tracer: Tracer, a: Symbol, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 else axes or None
    return tracer.call(np.transpose, (a,) if order is None else (a, order), {})


@method("conj")
@method("conjugate")
def _conjugate(tracer: Tracer, a: Symbol, out: Any = None) -> Any:
    if out is not None:
        return tracer.call(np.conjugate, (a,), {"out": out})
    if a.is_array:
        return a.conj()
    python = isinstance(a.type, Number) and a.type.python
    if a.dtype.kind != "c":  # itself; that of a truth value of Python's is an int
        return tracer.recorder.apply(int, (a,), {}) if python and a.dtype.kind == "b" else a
    value = tracer.recorder.apply(np.conjugate, (a,), {})
    return tracer.recorder.apply(class_of(a), (value,), {}) if python else value


@builtin(np.nonzero)
def _nonzero(tracer: Tracer, a: Any) -> Any:
    a = tracer.recorder.as_symbol(a)
    if a.type.ndim == 1:
        return (tracer.recorder.apply(np.flatnonzero, (a,), {}),)
    return tracer.recorder.apply(np.nonzero, (a,), {})


@method("dot")
def _dot(tracer: Tracer, a: Symbol, b: Any, out: Any = None) -> Any:
    return tracer.call(np.dot, (a, b), {} if out is None else {"out": out})


@method("tolist")
def _tolist(tracer: Tracer, a: Symbol) -> Any:
    if not a.is_array:
        return _item(tracer, a)
    made = filled.list_all(tracer, Mapped(a, lambda: functools.partial(_tolist, tracer)))
    if a.type.ndim == 1:
        return list_of(tracer, made)
    return tracer.recorder.journal.fresh(made) if type(made) is list else made


@method("clip")
def _clip(tracer: Tracer, a: Symbol, *args: Any, **kwargs: Any) -> Any:
    renamed = {{"min": "a_min", "max": "a_max"}.get(key, key): x for key, x in kwargs.items()}
    named = dict(zip(("a_min", "a_max"), args, strict=False))
    bounds = {"a_min": None, "a_max": None, **named, **renamed}
    return tracer.call(np.clip, (a,), bounds)


@method("is_integer")
def _is_integer(tracer: Tracer, a: Symbol) -> Any:
    return tracer.recorder.apply(float.is_integer, (a,), {})


def _call(tracer: Tracer, f: BoundArrayMethod, args: Any, kwargs: Any) -> Any:
    """Call a bound method of an array or number."""
    handle = METHODS.get(f.name)
    if handle is not None:
        return handle(tracer, f.owner, *args, **kwargs)
    if not hasattr(np, f.name):
        kind = class_of(f.owner).__name__
        message = (
            f"the method {f.name!r} of {with_article(kind)} that is unknown until run time "
            "cannot be traced"
        )
        raise UntraceableError(message, tracer.position.location())
    return tracer.call(getattr(np, f.name), (f.owner, *args), kwargs)


CALLED[BoundArrayMethod] = _call
