"""Calls of functions and methods that are written in C."""

from __future__ import annotations

import os
import types
from collections import deque
from contextvars import ContextVar
from typing import Any

import numpy as np

from fwdad.core.containers import CHANGING
from fwdad.eager.activity import is_active
from fwdad.eager.calls import effectful, numpy_calls, protocols
from fwdad.eager.calls.callbacks import with_bound_callbacks
from fwdad.eager.calls.classes import call_class
from fwdad.eager.calls.dispatch import HANDLERS, is_hashable, on_call
from fwdad.eager.calls.missing import missing_rule
from fwdad.eager.calls.transparent import TRANSPARENT
from fwdad.eager.duals import flat, methods
from fwdad.eager.duals.explicit import explicit, with_explicit
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.hooks.method_calls import method
from fwdad.eager.memory.draws import log_drawn_into, note_generator
from fwdad.eager.memory.reach import check_reach, is_foreign
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.run import STATE
from fwdad.errors import UnsupportedTypeError
from fwdad.rules.core.by_position import by_position
from fwdad.rules.core.registry import find_rule


@on_call(
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
def _call_builtin(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs:
        args, kwargs = by_position(f, args, kwargs)
    special = HANDLERS.get(f) if is_hashable(f) else None
    if special is not None:
        return special(args, kwargs)
    owner = getattr(f, "__self__", None)
    if type(f) is types.MethodWrapperType:  # `o.__setattr__`: a class's slot, bound
        special = HANDLERS.get(vars(f.__objclass__).get(f.__name__))
        if special is not None:
            return special((owner, *args), kwargs)
    if owner is not None and not isinstance(owner, types.ModuleType):
        y = _of_object(f, owner, args, kwargs)
        if y is not _AS_A_FUNCTION:
            return y
    elif isinstance(f, (types.MethodDescriptorType, types.WrapperDescriptorType)) and args:
        y = _of_class(f, args, kwargs)
        if y is not _AS_A_FUNCTION:
            return y
    if getattr(f, "__module__", None) in effectful.IN_C and f is not os.fspath:
        return effectful.effect(f, args, kwargs)
    if SHADOWED and getattr(f, "__module__", None) in ("math", "cmath"):
        args = tuple([protocols.as_number(a) for a in args])
    if not is_active((*args, *kwargs.values())):
        if SHADOWED and f is not np.frombuffer:
            protocols.check_buffers(args)
            if is_foreign(f):
                check_reach(f, (owner, *args, *kwargs.values()))
        reads = not (is_hashable(f) and f in TRANSPARENT)
        numpy_calls.note_inactive(f, args, kwargs, reads=reads)
        return f(*with_bound_callbacks(f, args), **kwargs)
    if is_hashable(f) and f in TRANSPARENT:
        return f(*with_explicit(args), **{k: explicit(v) for k, v in kwargs.items()})
    rule = find_rule(f)
    if rule is None and owner is not None:  # a method in C may have a rule under its class
        rule = find_rule(getattr(type(owner), f.__name__, None))
        args = args if rule is None else (owner, *args)
    if rule is not None:
        return numpy_calls.with_out(rule, args, kwargs)
    raise missing_rule(f, args, kwargs)


def _of_object(f: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an object's method, or ``_AS_A_FUNCTION`` to call it as any function."""
    if isinstance(owner, np.ufunc):
        if SHADOWED:
            args = protocols.all_as_numpy_reads(args)
        return numpy_calls.call_ufunc(owner, f.__name__, args, kwargs)
    t = type(owner)
    if methods.is_number_operator(owner, f.__name__, args):
        return methods.number_operator(owner, f.__name__, args)
    if t is types.GeneratorType:
        return f(*args, **kwargs)
    if t in _BY_NAME or isinstance_dual(owner) or t in CHANGING:
        return method(owner, f.__name__, *args, **kwargs)
    if t.__module__ in effectful.IN_C:
        return effectful.effect(f, args, kwargs)
    if effectful.is_file(owner):
        return effectful.file_method(f, args, kwargs, owner)
    if f.__name__ == "__reduce_ex__":  # in C it would call the user's __reduce__ unlifted
        return HANDLERS[object.__reduce_ex__]((owner, *args), kwargs)
    if _writes_container(owner) or isinstance(f, types.MethodWrapperType):
        if f.__name__ == "__call__" and isinstance(owner, type):
            return call_class(owner, args, kwargs, by_metaclass=False)
        return f(*args, **kwargs)
    if isinstance(owner, np.ndarray):
        explicit(owner)  # a subclass cannot carry tangents
        if t is np.memmap:
            return method(np.asarray(owner), f.__name__, *args, **kwargs)
        if is_active((*args, *kwargs.values())):
            message = (
                f"a {t.__name__} cannot carry derivatives: use a plain array, "
                "numpy.asarray(x), and a['field'] for a field"
            )
            raise UnsupportedTypeError(message)
    if note_generator(owner):
        log_drawn_into((*args, *kwargs.values()))
    return _AS_A_FUNCTION


def _of_class(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a method of a class, like ``list.append``; or ``_AS_A_FUNCTION``."""
    if _writes_container(args[0]):
        return f(*args, **kwargs)
    if effectful.is_file(args[0]):
        return effectful.file_method(f, args, kwargs, args[0])
    if f is type.__call__:
        return call_class(args[0], args[1:], kwargs, by_metaclass=False)
    if f in _TRANSPARENT_SLOTS or isinstance(args[0], BaseException):
        return f(*args, **kwargs)
    by_number = methods.is_number_operator(args[0], f.__name__, args[1:])
    if by_number or type(args[0]) in _BY_NAME or isinstance_dual(args[0]):
        return method(args[0], f.__name__, *args[1:], **kwargs)
    if note_generator(args[0]):
        log_drawn_into((*args[1:], *kwargs.values()))
    return _AS_A_FUNCTION


_AS_A_FUNCTION = object()  # it is called as functions are

_BY_NAME = {np.ndarray, np.flatiter, memoryview, flat.Flat, ContextVar}
"""Types whose methods are known by their names."""

_TRANSPARENT_SLOTS: set[Any] = {object.__init__, object.__init_subclass__}


def _writes_container(o: Any) -> bool:
    """Whether o is a container, whose content is then kept because its method in C may write."""
    if isinstance(o, _CONTAINERS):
        if STATE.run is not None:
            STATE.run.log.container(o)
        return True
    return False


_CONTAINERS = (list, dict, set, deque, bytearray)
