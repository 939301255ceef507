"""Calls of classes, which make objects in a traced program."""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import enum
import inspect
import types
import typing
import warnings
from typing import Any

import numpy as np

from fwdad.eager.lifting.source import find_source
from fwdad.errors import UntraceableError
from fwdad.frontend.arguments import traced_object
from fwdad.frontend.calls.kinds import CONTAINERS, mentions_symbols
from fwdad.frontend.calls.made_objects import own_what_it_holds
from fwdad.frontend.calls.operations import OperationCalls
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.guards import is_users
from fwdad.frontend.slots import class_attribute, has_slots, original
from fwdad.frontend.syntax.attributes import Attributes
from fwdad.frontend.syntax.raising import AlwaysRaises, has_source, native
from fwdad.frontend.syntax.texts import known_part
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import UnknownText
from fwdad.tangents import sparse
from fwdad.tangents.namespaces import namespace_of


def _of_builtin_exceptions(cls: type) -> None:
    """Give ``super().__init__(...)`` and ``__new__`` of the exceptions of a class their meaning."""
    if "__init__" in vars(cls):

        @builtin(vars(cls)["__init__"])
        def init(_tracer: Tracer, exception: Any, *args: Any, **kwargs: Any) -> None:
            native(lambda: vars(cls)["__init__"](exception, *args, **kwargs))

    if "__new__" in vars(cls):

        @builtin(vars(cls)["__new__"])
        def new(tracer: Tracer, made: Any, *args: Any, **kwargs: Any) -> Any:
            instance = native(lambda: vars(cls)["__new__"](made, *args, **kwargs))
            tracer.recorder.journal.own(vars(instance), namespace=True)
            return instance


for _cls in vars(builtins).values():
    if isinstance(_cls, type) and issubclass(_cls, BaseException):
        _of_builtin_exceptions(_cls)


_OF_PROTOCOLS = getattr(typing, "_no_init_or_replace_init", None)
"""The ``__init__`` of protocols: at its first call it gives the class that of its next base."""


class ClassCalls:
    """Calls of classes."""

    def __init__(self, tracer: Tracer, attributes: Attributes, operations: OperationCalls) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.values = tracer.values
        self.attributes = attributes
        self.operations = operations

    def call_class(self, cls: type, args: Any, kwargs: Any) -> Any:
        if cls.__name__ == "prange" and cls.__module__.startswith("numba."):
            return self.tracer.call(range, args, kwargs)
        if issubclass(cls, np.generic) or cls in (int, float, complex, bool):
            return self.operations.call_native(cls, args, kwargs)
        if issubclass(cls, BaseException):
            return self._make_exception(cls, args, kwargs)
        if cls in (np.errstate, warnings.catch_warnings, contextlib.suppress):
            return native(lambda: cls(*args, **kwargs))
        if issubclass(cls, enum.Enum):
            return native(lambda: cls(*(self.values.known(a) for a in args), **kwargs))
        if sparse.is_of_sparse_arrays(cls) and mentions_symbols((args, kwargs)):
            raise UntraceableError(sparse.UNTRACED, self.position.location())
        meta = self.outside.guard_special(cls, "__call__")
        if isinstance(meta, types.FunctionType) and find_source(meta) is not None:
            return self.tracer.call(meta, (cls, *args), kwargs)
        return self.make_instance(cls, args, kwargs)

    def make_instance(self, cls: type, args: Any, kwargs: Any) -> Any:
        """The instance that ``type.__call__`` makes; what is written in Python is traced."""
        new: Any = cls.__new__
        init = self._guarded_init(cls)
        if isinstance(class_attribute(cls, "__getattribute__"), types.FunctionType):
            self.attributes.refuse_getattribute(cls)
        if isinstance(new, types.FunctionType):
            instance = self.tracer.call(new, (cls, *args), kwargs)
            if isinstance(instance, cls) and issubclass(type(instance), cls):
                init = type(instance).__init__  # of a subclass, where __new__ has made one
            if isinstance(instance, cls) and isinstance(init, types.FunctionType):
                self.tracer.call(init, (instance, *args), kwargs)
            return instance
        if has_slots(cls) and (new, init) == (object.__new__, object.__init__):
            native(lambda: cls(*args, **kwargs))  # whether it can be made of these
            instance = self._blank(cls)
            self.recorder.journal.own(vars(instance), namespace=True)
            return instance
        parameters = getattr(cls, "__dataclass_params__", None)
        if parameters is not None and parameters.init and not has_source(init):
            return self._make_dataclass(cls, init, args, kwargs)
        if sparse.is_of_sparse_arrays(cls) or not isinstance(init, types.FunctionType):
            return self._make_in_c(cls, args, kwargs)
        if new is not object.__new__:
            message = (
                f"{cls.__name__} defines __new__, which cannot be traced: compute what is "
                "needed of it outside, and pass the numbers, arrays, lists or dicts"
            )
            raise UntraceableError(message, self.position.location())
        instance = self._blank(cls)
        self.recorder.journal.own(instance.__dict__, namespace=True)
        self.tracer.call(init, (instance, *args), kwargs)
        return instance

    def _guarded_init(self, cls: type) -> Any:
        """The ``__init__`` of a class, which must stay as its ``__new__``."""
        for name in ("__new__", "__init__"):
            method = getattr(cls, name)
            self.outside.guard_class(cls, name, class_attribute(cls, name))
            if isinstance(method, types.FunctionType) and is_users(cls):
                self.outside.guard_function(method)
        init: Any = cls.__init__  # type: ignore[misc]
        if init is _OF_PROTOCOLS and not getattr(cls, "_is_protocol", False):
            found = (vars(c).get("__init__", init) for c in cls.__mro__)
            return next(method for method in found if method is not init)  # at last object's
        return init

    def _make_in_c(self, cls: type, args: Any, kwargs: Any) -> Any:
        """The instance that code without a source makes of values that are known."""
        if cls is str and mentions_symbols((args, kwargs)):
            return UnknownText(self.position.location(), known_part(args[0]) if args else "…")
        self.operations.refuse_impure(cls)
        for x in (*args, *kwargs.values()):
            self.outside.read_whole(x)
        try:
            instance = native(lambda: cls(*args, **kwargs))
        except AlwaysRaises as raised:
            if not mentions_symbols((args, kwargs)):
                raise
            message = (
                f"{cls.__name__} cannot be called with values that are unknown at trace time: "
                f"{raised.exception}"
            )
            raise UntraceableError(message, self.position.location()) from raised
        if namespace_of(instance) is not None or isinstance(instance, CONTAINERS):
            own_what_it_holds(self.tracer, instance)
        return instance

    def _make_exception(self, cls: type, args: Any, kwargs: Any) -> Any:
        """An exception, by its class's own methods if they are written in Python."""
        new: Any = cls.__new__
        init = class_attribute(cls, "__init__")
        if isinstance(new, types.FunctionType):
            return self.make_instance(cls, args, kwargs)
        if not isinstance(init, types.FunctionType):
            return native(lambda: cls(*args, **kwargs))
        self._guarded_init(cls)
        instance = native(lambda: new(cls, *args, **kwargs))
        self.recorder.journal.own(vars(instance), namespace=True)
        self.tracer.call(init, (instance, *args), kwargs)
        return instance

    def _blank(self, cls: type) -> Any:
        """An object that has no attributes yet."""
        new: Any = cls.__new__
        instance = native(new, cls)  # not of an abstract class
        return traced_object(cls) if has_slots(cls) else instance

    def _make_dataclass(self, cls: Any, init: Any, args: Any, kwargs: Any) -> Any:
        """The instance that a generated ``__init__`` makes."""
        instance = self._blank(cls)
        self.recorder.journal.own(vars(instance), namespace=True)
        self.fill_dataclass(cls, instance, init, args, kwargs)
        return instance

    def fill_dataclass(self, cls: Any, instance: Any, init: Any, args: Any, kwargs: Any) -> None:
        """Do what a generated ``__init__`` of a class does to an instance."""
        fields = cls.__dataclass_fields__
        if any(f._field_type.name == "_FIELD_INITVAR" for f in fields.values()):
            message = (
                f"{cls.__name__} has an InitVar, and cannot be instantiated in a traced function: "
                "make the object outside"
            )
            raise UntraceableError(message, self.position.location())
        signature = inspect.signature(init)
        bound = native(lambda: signature.bind(instance, *args, **kwargs))
        given = set(bound.arguments)
        bound.apply_defaults()
        frozen = cls.__dataclass_params__.frozen
        store = self.attributes.set_plain_attribute if frozen else self.attributes.set_attribute
        for field in dataclasses.fields(cls):
            value = bound.arguments.get(field.name, field.default) if field.init else field.default
            made = not field.init or value is dataclasses._HAS_DEFAULT_FACTORY  # type: ignore[attr-defined]
            if made and field.default_factory is not dataclasses.MISSING:
                value = self.tracer.call(field.default_factory, (), {})
            elif value is dataclasses.MISSING or not (field.init or has_slots(cls)):
                continue  # the class has it
            elif field.name not in given:
                value = self.outside.bound(value, field.name)
            store(instance, field.name, value)
        if "__post_init__" in init.__code__.co_names:  # the class had one when this was generated
            self.tracer.call(self.tracer.attribute(instance, "__post_init__"), (), {})


def generated_for(f: types.FunctionType, args: tuple[Any, ...]) -> Any:
    """The dataclass whose generated ``__init__`` a function is, called on an instance; or None."""
    if f.__name__ != "__init__" or not args or find_source(f) is not None:
        return None
    for cls in original(type(args[0])).__mro__:
        parameters = cls.__dict__.get("__dataclass_params__")
        if parameters is not None and parameters.init and cls.__dict__.get("__init__") is f:
            return cls
    return None
