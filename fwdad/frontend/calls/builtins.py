"""Builtins on objects and functions: ``isinstance``, ``getattr``, ``print``, ``partial``."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import types
from collections.abc import Callable
from typing import Any, NoReturn

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.purity import is_trusted
from fwdad.frontend.calls.tables import CALLED, builtin
from fwdad.frontend.slots import class_attribute, is_stand_in
from fwdad.frontend.syntax.attributes import SuperOf, class_of
from fwdad.frontend.syntax.bound_methods import example_of
from fwdad.frontend.syntax.control import branch
from fwdad.frontend.syntax.frame import Closure, Method
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.iterators import CLASSES
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import Maybe, OfFunction, OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.tangents.namespaces import namespace_of


@builtin(isinstance)
def _isinstance(tracer: Tracer, x: Any, classes: Any) -> Any:
    if type(x) is Symbol:
        return _symbol_is_a(tracer, x, classes)
    if isinstance(x, (OfFunction, Items)):
        return issubclass(class_of(x), classes)
    if type(x) in CLASSES:
        return _agreed(tracer, x, lambda cls: issubclass(cls, classes))
    return tracer.outside.is_a(x, classes)


@builtin(super)
def _super(tracer: Tracer, cls: Any, owner: Any = UNBOUND) -> Any:
    return native(super, cls) if owner is UNBOUND else SuperOf(cls, owner)


@builtin(issubclass)
def _issubclass(tracer: Tracer, cls: Any, classes: Any) -> bool:
    return tracer.outside.is_subclass(cls, classes)


@builtin(type.__subclasses__)
def _subclasses(tracer: Tracer, cls: type) -> Any:
    return tracer.recorder.journal.fresh(tracer.outside.subclasses(cls))


def _symbol_is_a(tracer: Tracer, x: Symbol, classes: Any) -> Any:
    """Whether a symbol is of a class; a class that decides by itself is asked about its value."""
    if isinstance(classes, types.UnionType):
        classes = classes.__args__
    if isinstance(classes, tuple):
        return any(_symbol_is_a(tracer, x, cls) for cls in classes)
    check = class_attribute(type(classes), "__instancecheck__")
    if isinstance(check, types.FunctionType) and not is_trusted(check):
        tracer.outside.guard_class(type(classes), "__instancecheck__", check)
        return tracer.call(check, (classes, x), {})
    return native(isinstance, example_of(x), classes)  # a protocol asks for attributes


def _agreed(tracer: Tracer, x: Any, ask: Callable[[type], Any]) -> Any:
    """The result for a stand-in of an iterable, if all the classes it may have agree on it."""
    first, *others = {ask(cls): None for cls in CLASSES[type(x)]}
    if others:
        message = (
            "the class of an iterator cannot be determined in a traced function: make a list of "
            "it first"
        )
        raise UntraceableError(message, tracer.position.location())
    return first


@builtin(type)
def _type(tracer: Tracer, x: Any, *rest: Any) -> Any:
    if rest:
        message = (
            "creating a class with `type` cannot be traced: define the class outside the function"
        )
        raise UntraceableError(message, tracer.position.location())
    if type(x) in CLASSES:
        return _agreed(tracer, x, lambda cls: cls)
    tracer.outside.read_class(x)
    return class_of(x)


def has_attribute(tracer: Tracer, o: Any, name: str) -> Any:
    """``hasattr(o, name)``: a bool, or a symbol of one for what is set on some paths only."""
    if type(o) is Symbol:
        return hasattr(class_of(o), name)
    if type(o) in CLASSES:
        return _agreed(tracer, o, lambda cls: hasattr(cls, name))
    if isinstance(o, OfFunction):
        if class_attribute(o.kind, name) is not None:
            return True
    elif not tracer.recorder.journal.is_own(namespace_of(o)):
        found = hasattr(o, name)
        if isinstance(name, str):
            tracer.outside.guard(("asked", o, name), found)
        return found
    held: Any = namespace_of(o)
    maybe = held.get(name) if isinstance(held, dict) else None
    if isinstance(maybe, Maybe) and class_attribute(type(o), name) is None:
        return maybe.flag
    try:
        tracer.attribute(o, name)
    except AlwaysRaises as raised:
        if raised.is_a(AttributeError):
            return False
        raise
    return True


@builtin(getattr)
def _getattr(tracer: Tracer, o: Any, name: str, *default: Any) -> Any:
    has = has_attribute(tracer, o, name) if default else True
    return branch(tracer.recorder, has, lambda: tracer.attribute(o, name), lambda: default[0])


builtin(hasattr)(has_attribute)


@builtin(inspect.signature)
def _signature(tracer: Interpreter, f: Any, **options: Any) -> Any:
    if isinstance(f, Closure):
        return native(lambda: f.__signature__)
    if isinstance(f, Method) and isinstance(f.function, types.FunctionType):
        f = types.MethodType(f.function, class_of(f.owner))  # whatever it is bound to
    elif isinstance(f, OfFunction) and f.kind is types.BuiltinMethodType:
        f = f.like
    by_source: Any = inspect.signature
    return tracer.inline.call_function(by_source, (f,), options)


@builtin(importlib.import_module)
def _import_module(tracer: Tracer, name: str, package: Any = None) -> Any:
    try:
        return native(importlib.import_module, name, package)
    finally:
        tracer.outside.guard_module(native(importlib.util.resolve_name, name, package))


@builtin(setattr)
def _setattr(tracer: Interpreter, o: Any, name: str, value: Any) -> None:
    tracer.attributes.set_attribute(o, name, value)


@builtin(delattr)
def _delattr(tracer: Interpreter, o: Any, name: str) -> None:
    tracer.attributes.delete_attribute(o, name)


@builtin(vars)
def _vars(tracer: Tracer, o: Any) -> Any:
    if is_stand_in(type(o)) and class_of(o).__dictoffset__ == 0:
        raise AlwaysRaises(TypeError, ("vars() argument must have __dict__ attribute",))
    return tracer.attribute(o, "__dict__")


@builtin(callable)
def _callable(tracer: Tracer, x: Any) -> bool:
    if type(x) is Symbol or isinstance(x, OfFunction):
        return type(x) is not Symbol
    tracer.values.python_method(x, "__call__")  # guarded, if only as missing
    return callable(x) or type(x) in CALLED


@builtin(functools.partial)
def _partial(tracer: Tracer, f: Any, *args: Any, **kwargs: Any) -> Any:
    return functools.partial(as_callable(f), *args, **kwargs)


def as_callable(f: Any) -> Any:
    """A function of the trace, or what stands for it where Python requires a callable object."""
    if isinstance(f, Method):
        return functools.partial(as_callable(f.function), f.owner)
    return f if callable(f) else _Called(f)


class _Called(OfTrace):
    """A callable for use in the trace only, where Python requires one."""

    def __init__(self, function: Any) -> None:
        self.function = function
        for name in ("__name__", "__signature__"):
            if hasattr(function, name):
                setattr(self, name, getattr(function, name))

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise UntraceableError(
            "a function defined inside the traced one is called by code without Python "
            "source, which cannot be traced"
        )


CALLED[_Called] = lambda tracer, f, args, kwargs: tracer.call(f.function, args, kwargs)
