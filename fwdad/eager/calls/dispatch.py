"""The dispatcher, which sends each call of lifted code to a rule, to lifted source, or onward."""

from __future__ import annotations

import functools
import operator
import os
import struct
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.lifted_code import LIFTED
from fwdad.core.register_into import enter_into
from fwdad.eager.activity import is_active, is_inert
from fwdad.eager.calls import apply, effectful, numpy_calls
from fwdad.eager.calls.missing import missing_rule
from fwdad.eager.calls.transparent import TRANSPARENT
from fwdad.eager.duals import opaque
from fwdad.eager.duals.dual import OPAQUE
from fwdad.eager.duals.explicit import explicit, with_explicit
from fwdad.eager.lifting.lift import lift, note_missing
from fwdad.eager.memory.draws import note_draw
from fwdad.eager.memory.reach import check_reach, holds_state
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.run import STATE
from fwdad.errors import PACKAGE, FwdadError, is_library_file, is_package_file
from fwdad.rules.core import binding, contract, recording
from fwdad.rules.core.by_position import by_position
from fwdad.rules.core.registry import Rule, find_rule

_IN_C = (
    type,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)

HANDLERS: dict[Any, Callable[[tuple[Any, ...], dict[str, Any]], Any]] = {}
"""Functions that the dispatcher treats in a way of their own: ``handler(args, kwargs)``."""


def handler(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a handler of calls of a function."""
    return enter_into(HANDLERS, functions)


def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``f(*args, **kwargs)``, differentiated where an argument is active."""
    t = type(f)
    if t is types.FunctionType:
        if id(f.__code__) in LIFTED:
            return f(*args, **kwargs)
        return call_function(f, args, kwargs)
    resolve = _BY_TYPE.get(t)
    if resolve is not None:
        return resolve(f, args, kwargs)
    return call_object(f, args, kwargs)


def bind(f: Any) -> Any:
    """A callable that may be handed to C code and still goes through the dispatcher."""
    if type(f) is types.FunctionType:
        return f if id(f.__code__) in LIFTED else functools.partial(call, f)
    if f is None or (isinstance(f, _IN_C) and f in TRANSPARENT and f not in HANDLERS):
        return f
    return functools.partial(call, f)


def call_function(f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Python function: by its rule, by its lifted source, or as it is."""
    if kwargs:
        args, kwargs = by_position(f, args, kwargs)
    special = HANDLERS.get(f)
    if special is not None:
        return special(args, kwargs)
    rule, filename = find_rule(f), f.__code__.co_filename
    if rule is not None:
        if is_active((*args, *kwargs.values())):
            return numpy_calls.with_out(rule, args, kwargs)
        symbol = _symbol_in((*args, *kwargs.values()))
        if symbol is not None and not filename.startswith(PACKAGE):  # ours know symbols
            return symbol.recorder.apply(f, args, kwargs)  # the body of a rule is being traced
        return _call_inactive(f, rule, args, kwargs)
    if is_library_file(filename):
        if filename.startswith(PACKAGE) and not _is_lifted_of_own(filename):
            return f(*args, **kwargs)
        if effectful.puts_out(f):
            return effectful.effect(f, args, kwargs)
        if effectful.drives_coroutines(f):
            return f(*args, **kwargs)
        passed_by = passes_by(filename, (*args, *kwargs.values()))
        if passed_by and (f.__closure__ is None or _closed(f)):
            return f(*args, **kwargs)
        if str(f.__globals__.get("__name__")).startswith("numba.") and is_active(
            (*args, *kwargs.values())
        ):
            raise missing_rule(f, args, kwargs)  # a method of a jitclass is machine code
    lifted = lift(f)
    if lifted is None:
        if OPAQUE:
            opaque.check_sourceless(f, args, kwargs)
        return _call_sourceless(f, args, kwargs)
    return lifted(*args, **kwargs)


def _call_inactive(f: Any, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function whose rule is not needed, as none of its arguments is active."""
    numpy_calls.note_inactive(f, args, kwargs)
    y = f(*args, **kwargs)
    apply.check_seen(rule, y, None)
    return y


def passes_by(filename: str, values: tuple[Any, ...]) -> bool:
    """Whether a library's code can run as it is: it can reach nothing active, nor the user's code.

    A run that is watched sees what packages write.
    """
    if not is_inert(values):
        return False
    return STATE.run is None or not STATE.run.watches or not is_package_file(filename)


def _call_sourceless(f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function on duals as it is."""
    try:
        return f(*with_explicit(args), **{k: explicit(v) for k, v in kwargs.items()})
    except (TypeError, BufferError, struct.error) as error:
        if not isinstance(error, FwdadError):
            note_missing(error, f)
        raise


def _symbol_in(values: Any) -> Any:
    """A symbol of the tape that is being traced, among values or nested in lists; or None."""
    for x in values:
        if hasattr(type(x), "__fwdad_symbolic__"):
            return x
        if type(x) is list or type(x) is tuple:
            symbol = _symbol_in(x)
            if symbol is not None:
                return symbol
    return None


def _closed(f: types.FunctionType) -> bool:
    """Whether a library function's closure cannot reach user code."""
    for cell in f.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if isinstance(value, types.FunctionType):
            if not is_library_file(value.__code__.co_filename):
                return False
            if value.__closure__ is not None and value is not f:
                return False  # it may hold something itself: better to inspect than to guess
        elif not is_inert((value,)):
            return False
    return True


_OWN_LIFTED = (
    os.path.join(PACKAGE, "rules") + os.sep,
    os.path.join(PACKAGE, "compat") + os.sep,
    os.path.join(PACKAGE, "examples") + os.sep,
    os.path.join(PACKAGE, "reversible", "numbers") + os.sep,
    os.path.join(PACKAGE, "testing", "programs.py"),
    os.path.join(PACKAGE, "scipy", "programs.py"),
)
# what recording makes outlives the call, and must not be restored when the call ends; binding and
# the contract look at values without their tangents
_RUN_AS_THEY_ARE = {module.__file__ for module in (recording, binding, contract)}


@functools.cache
def _is_lifted_of_own(filename: str) -> bool:
    """Whether code of a file of ours may meet duals: rules may, but not what records."""
    return filename.startswith(_OWN_LIFTED) and filename not in _RUN_AS_THEY_ARE


def _call_method(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if effectful.is_file(f.__self__):
        return effectful.file_method(f, args, kwargs, f.__self__)
    return call(f.__func__, f.__self__, *args, **kwargs)


_BY_TYPE: dict[type, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    types.MethodType: _call_method,
}
"""How callables of a type are called; other modules enter theirs by :func:`on_call`."""


def on_call(*classes: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register how objects of some classes are called: ``resolve(f, args, kwargs)``."""
    return enter_into(_BY_TYPE, classes)


def call_object(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call anything else: a class with a metaclass, an object with ``__call__``."""
    if isinstance(f, type):
        return _BY_TYPE[type](f, args, kwargs)
    if is_hashable(f):
        special = HANDLERS.get(f)
        if special is not None:
            return special(args, kwargs)
        rule = find_rule(f)
        if rule is not None:
            if is_active((*args, *kwargs.values())):
                return numpy_calls.with_out(rule, args, kwargs)
            symbol = _symbol_in((*args, *kwargs.values()))
            if symbol is not None:
                return symbol.recorder.apply(f, args, kwargs)
            note_draw(f, args, kwargs)
            return _call_inactive(f, rule, args, kwargs)
    method = getattr(type(f), "__call__", None)  # noqa: B004  (the method itself is wanted)
    by_numba = type(f).__module__.startswith("numba.")
    if by_numba and hasattr(f, "nin"):
        return _BY_TYPE[np.ufunc](f, args, kwargs)
    if isinstance(method, types.FunctionType) and not by_numba:
        filename = method.__code__.co_filename
        if is_library_file(filename) and passes_by(filename, (f, *args, *kwargs.values())):
            return f(*args, **kwargs)
        return call(method, f, *args, **kwargs)
    if isinstance(f, (staticmethod, classmethod)):
        return call(f.__func__, *args, **kwargs)
    python = python_inside(f)
    if python is not None and not is_inert((*args, *kwargs.values())):
        return call(python, *args, **kwargs)
    note_draw(f, args, kwargs)
    known = type(f) in _TRANSPARENT_TYPES or not callable(f)  # Python says that it is not
    if not known and is_active((*args, *kwargs.values())):
        raise missing_rule(f, args, kwargs)
    if SHADOWED and holds_state(type(f)):
        check_reach(f, (f, *args, *kwargs.values()))
    return f(*with_explicit(args), **{k: explicit(v) for k, v in kwargs.items()})


_TRANSPARENT_TYPES = {operator.itemgetter, type(functools.cmp_to_key(max))}


def python_inside(f: Any) -> types.FunctionType | None:
    """The Python function inside a compiled wrapper, such as Numba's dispatcher; or None."""
    if hasattr(f, "nin"):  # that of a ufunc is for one element
        return None
    if type(f).__module__ == "uarray":  # inside is only the argument extractor for SciPy's backends
        return None
    for name in ("py_func", "__wrapped__"):
        inner = getattr(f, name, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return None


def is_hashable(f: Any) -> bool:
    """Whether a callable can be looked up in the tables."""
    try:
        hash(f)
    except TypeError:
        return False
    return True
