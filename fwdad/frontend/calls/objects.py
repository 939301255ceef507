"""Objects: what ``object`` and ``type`` do themselves, and copies."""

from __future__ import annotations

import copy
import enum
import functools
import operator
import types
from typing import Any

import numpy as np

from fwdad.core.containers import of_class
from fwdad.core.getters import got_attributes, got_items, method_called
from fwdad.errors import UntraceableError, type_in_words
from fwdad.frontend.arguments import new_object, traced_object
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import CALLED, builtin
from fwdad.frontend.slots import has_slots
from fwdad.frontend.syntax import static_arrays
from fwdad.frontend.syntax.frame import Closure
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.growing_lists.making import list_of
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.merge import is_object
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.symbols import OfFunction
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import is_static_array
from fwdad.tangents.namespaces import namespace_of


@builtin(object.__setattr__)
def _setattr(tracer: Interpreter, o: Any, name: str, value: Any) -> None:
    tracer.attributes.set_plain_attribute(o, name, value)


@builtin(object.__new__)
def _new(tracer: Tracer, cls: type, *_args: Any, **_kwargs: Any) -> Any:
    instance = native(object.__new__, cls)
    if has_slots(cls):
        instance = traced_object(cls)
    tracer.recorder.journal.own(vars(instance), namespace=True)
    return instance


@builtin(type.__call__)
def _instance(tracer: Interpreter, cls: type, *args: Any, **kwargs: Any) -> Any:
    return tracer.classes.make_instance(cls, args, kwargs)


@builtin(functools.update_wrapper)
def _update_wrapper(
    tracer: Tracer,
    wrapper: Any,
    wrapped: Any,
    assigned: Any = functools.WRAPPER_ASSIGNMENTS,
    updated: Any = functools.WRAPPER_UPDATES,
) -> Any:
    if not isinstance(wrapper, Closure):
        return native(functools.update_wrapper, wrapper, wrapped, assigned, updated)
    wrapper_names = wrapper.held
    for name in ("__module__", "__name__", "__doc__"):
        if name in assigned:
            tracer.recorder.journal.bind(wrapper_names, name, tracer.attribute(wrapped, name))
    attributes = wrapped.held if isinstance(wrapped, Closure) else _attributes_of(wrapped)
    for name in list(attributes) if updated else []:
        tracer.recorder.journal.bind(wrapper_names, name, tracer.attribute(wrapped, name))
    tracer.recorder.journal.bind(wrapper_names, "__wrapped__", wrapped)
    return wrapper


def _attributes_of(f: Any) -> dict[str, Any]:
    """The namespace of a function, or of the one that a bound method has."""
    return namespace_of(f.like if isinstance(f, OfFunction) else f) or {}


# -- copies


@builtin(copy.copy)
def _copy(tracer: Tracer, x: Any) -> Any:
    special = tracer.values.python_method(x, "__copy__")
    if special is not None:
        return tracer.call(special, (x,), {})
    array_copy = _of_array(tracer, x)
    if array_copy is not None:
        return array_copy
    if isinstance(x, Items) or type(x) is list:
        return list_of(tracer, x.copied() if isinstance(x, Items) else x.copy())
    if type(x) in (dict, set):
        return tracer.recorder.journal.fresh(x.copy())
    if _is_plain(tracer, x):
        return _object(tracer, x, _attributes(tracer, x))
    return tracer.values.made(native(copy.copy, x))


@builtin(copy.deepcopy)
def _deepcopy(tracer: Tracer, x: Any, memo: Any = None) -> Any:
    return _deep(tracer, x, {} if memo is None else memo)


def _deep(tracer: Tracer, x: Any, memo: dict[int, Any]) -> Any:
    if id(x) in memo:
        return memo[id(x)][1]
    special = tracer.values.python_method(x, "__deepcopy__")
    if special is not None:
        return _noted(memo, x, tracer.call(special, (x, memo), {}))
    duplicate = _of_array(tracer, x)
    if duplicate is not None:
        return _noted(memo, x, duplicate)
    if isinstance(x, Items):
        return _noted(memo, x, list_of(tracer, x.deeply_copied()))
    if type(x) is list:
        duplicate = _noted(memo, x, tracer.recorder.journal.fresh([]))
        duplicate.extend(_deep(tracer, item, memo) for item in x)
        return duplicate
    if type(x) is dict:
        duplicate = _noted(memo, x, tracer.recorder.journal.fresh({}))
        duplicate.update({_deep(tracer, k, memo): _deep(tracer, v, memo) for k, v in x.items()})
        return duplicate
    if isinstance(x, tuple):
        parts = [_deep(tracer, item, memo) for item in x]
        new, cls = type(x).__new__, type(x)
        if new is not tuple.__new__:  # as `copy` does, it is asked
            given = parts if hasattr(x, "_fields") else [tuple(parts)]
            return _noted(memo, x, tracer.call(new, (cls, *given), {}))
        if all(a is b for a, b in zip(parts, x, strict=True)):
            return x
        return _noted(memo, x, of_class(cls, parts))
    if _is_plain(tracer, x):
        duplicate = _noted(memo, x, _object(tracer, x, {}))
        held = _attributes(tracer, x)
        vars(duplicate).update({name: _deep(tracer, v, memo) for name, v in held.items()})
        return duplicate
    return tracer.values.made(native(copy.deepcopy, x))


def _attributes(tracer: Tracer, x: Any) -> dict[str, Any]:
    """What an object holds; of one from outside each attribute is read as by its name."""
    held = vars(x)
    if tracer.recorder.journal.is_own(held):
        return dict(held)
    return {name: tracer.attribute(x, name) for name in held}


def _noted(memo: dict[int, Any], x: Any, made: Any) -> Any:
    memo[id(x)] = (x, made)  # x is kept, and with it its address
    return made


def _of_array(tracer: Tracer, x: Any) -> Any:
    """A copy of an array, or a number or function itself; None for anything else."""
    if type(x) is Symbol and not x.is_array:
        return x
    if is_static_array(x):
        return static_arrays.made(tracer, native(copy.deepcopy, x))
    if type(x) is Symbol or isinstance(x, np.ndarray):
        options = {"order": "K"}
        return tracer.recorder.apply(np.ndarray.copy, (tracer.recorder.as_symbol(x),), options)
    return x if isinstance(x, (Closure, types.FunctionType, type, enum.Enum)) else None


def _is_plain(tracer: Tracer, x: Any) -> bool:
    """Whether an object is copied by copying its attributes."""
    if not is_object(x):
        return False
    for name in ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__"):
        method = getattr(type(x), name, None)
        if method is not getattr(object, name, None):
            if (
                type(x) is types.SimpleNamespace
                or getattr(method, "__module__", "") == "dataclasses"
            ):
                continue
            if mentions_symbols(x):
                message = f"copying {type_in_words(x)}, which defines {name}, cannot be traced"
                raise UntraceableError(message, tracer.position.location())
            return False
    return True


def _object(tracer: Tracer, like: Any, held: dict[str, Any]) -> Any:
    new = new_object(type(like))
    vars(new).update(held)
    tracer.recorder.journal.own(vars(new), namespace=True)
    return new


# -- objects that call


def _itemgetter(tracer: Tracer, f: Any, args: Any, _kwargs: Any) -> Any:
    return got_items(f, args[0], tracer.subscript)


def _attrgetter(tracer: Tracer, f: Any, args: Any, _kwargs: Any) -> Any:
    return got_attributes(f, args[0], tracer.attribute)


def _methodcaller(tracer: Tracer, f: Any, args: Any, _kwargs: Any) -> Any:
    name, given, options = method_called(f)
    return tracer.call(tracer.attribute(args[0], name), given, options)


CALLED[operator.itemgetter] = _itemgetter
CALLED[operator.attrgetter] = _attrgetter
CALLED[operator.methodcaller] = _methodcaller
