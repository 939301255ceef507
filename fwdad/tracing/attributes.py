"""Attributes: of arrays, of numbers, of the user's objects."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, is_library_file
from fwdad.tape.recorder import Recorder
from fwdad.tape.symbol import Symbol
from fwdad.tape.types import Number
from fwdad.tracing.control import AlwaysRaises
from fwdad.tracing.frame import Method
from fwdad.tracing.numpy_sources import Flat
from fwdad.tracing.symbols import Optional

METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays and numbers: ``handle(tracer, symbol, *args, **kwargs)``."""


class Attributes:
    """Reads and sets attributes."""

    recorder: Recorder
    frame: Any

    def attribute(self, o: Any, name: str) -> Any:
        """``o.name``."""
        if isinstance(o, np.ndarray):
            o = self.recorder.as_symbol(o)
        if isinstance(o, Optional):
            o = self.number(o)
        if type(o) is Symbol:
            return self._symbol_attribute(o, name)
        if isinstance(o, types.ModuleType):
            found = self.native(getattr, o, name)
            if is_library_file(getattr(o, "__file__", None) or "<frozen"):
                return found
            return self.captured(found, ("attribute", o, name), name)
        if isinstance(o, SuperOf):
            return o.attribute(self, name)
        found = class_attribute(type(o), name)
        if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
            return self.call(found.fget, (o,), {})
        held = getattr(o, "__dict__", None)
        if isinstance(held, dict) and name in held:
            if not self.recorder.is_own(held):
                return self.captured(held[name], ("attribute", o, name), name)
            return self.readable(held[name], name, held)
        if isinstance(found, types.FunctionType) and not isinstance(o, type):
            return Method(found, o)
        value = self.native(getattr, o, name)
        if isinstance(value, (types.MethodType, types.BuiltinFunctionType)):
            return value
        return self.captured(value, ("attribute", o, name), name)

    def set_attribute(self, o: Any, name: str, value: Any) -> None:
        """``o.name = value``."""
        if type(o) is Symbol or isinstance(o, np.ndarray):
            if type(o) is Symbol and o.is_array and name in ("real", "imag"):
                part = self._symbol_attribute(o, name)
                if type(value) is not Symbol or value.value is not part.value:
                    self.recorder.store(part, Ellipsis, value)
                return
            message = f"the attribute `{name}` of an array is set, which cannot be traced"
            raise UntraceableError(message, self.location())
        found = class_attribute(type(o), name)
        if isinstance(found, property) and isinstance(found.fset, types.FunctionType):
            self.call(found.fset, (o, value), {})
            return
        held = getattr(o, "__dict__", None)
        if not isinstance(held, dict):
            message = f"attributes of a {type(o).__name__} cannot be set in a traced program"
            raise UntraceableError(message, self.location())
        self.may_change(held)
        self.recorder.bind(held, name, value)

    def _symbol_attribute(self, o: Symbol, name: str) -> Any:
        t = o.type
        if name == "shape":
            return self.recorder.shape(o)
        if name == "ndim":
            return t.ndim
        if name == "dtype":
            return t.dtype
        if name == "size":
            return functools.reduce(
                lambda a, b: self.binary(operator.mul, a, b),
                self.recorder.shape(o) or (1,),
            )
        if name == "T":
            return self.recorder.apply(np.transpose, (o,), {})
        if name == "mT":
            return self.recorder.apply(np.matrix_transpose, (o,), {})
        if name in ("real", "imag"):
            if t.dtype.kind != "c" and name == "real":
                return o
            if isinstance(t, Number) and t.python:
                cls = int if t.dtype.kind in "biu" else float
                part = self.recorder.apply(getattr(np, name), (o,), {})
                return self.recorder.apply(cls, (part,), {})
            return self.recorder.apply(getattr(np, name), (o,), {})
        if name == "flat":
            return self.call(Flat, (o,), {})
        if name in METHODS or (hasattr(np.ndarray, name) and hasattr(np, name)):
            return BoundArrayMethod(o, name)
        if isinstance(t, Number) and hasattr(_EXAMPLES[t.dtype.kind], name):
            return BoundArrayMethod(o, name)
        message = f"'{name}' of a {t} cannot be traced"
        raise UntraceableError(message, self.location())

    def super(self) -> Any:
        """``super()`` in a method."""
        frame = self.frame
        while frame is not None and frame.owner is None:
            frame = frame.outer
        if frame is None:
            raise AlwaysRaises(RuntimeError, ("super(): __class__ cell not found",))
        first = frame.node.args.args[0].arg
        return SuperOf(frame.owner.cell_contents, frame.locals[first])


class SuperOf:
    """``super()``: attributes of the classes after one, bound to an object."""

    def __init__(self, cls: type, owner: Any) -> None:
        self.cls = cls
        self.owner = owner

    def attribute(self, tracer: Any, name: str) -> Any:
        order = type(self.owner).__mro__
        for cls in order[order.index(self.cls) + 1 :]:
            if name in cls.__dict__:
                found = cls.__dict__[name]
                if isinstance(found, property):
                    return tracer.call(found.fget, (self.owner,), {})
                if isinstance(found, types.FunctionType):
                    return Method(found, self.owner)
                if name == "__init__":
                    return lambda: None
                return found
        message = f"'super' object has no attribute {name!r}"
        raise AlwaysRaises(AttributeError, (message,))


class BoundArrayMethod:
    """A method of an array or number that is not known."""

    def __init__(self, owner: Symbol, name: str) -> None:
        self.owner = owner
        self.name = name

    def call(self, tracer: Any, args: Any, kwargs: Any) -> Any:
        handle = METHODS.get(self.name)
        if handle is not None:
            return handle(tracer, self.owner, *args, **kwargs)
        return tracer.call(getattr(np, self.name), (self.owner, *args), kwargs)


def class_attribute(t: type, name: str) -> Any:
    """What a class or its bases hold under a name, not bound; None if nothing."""
    for cls in t.__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return None


_EXAMPLES = {"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1j}
