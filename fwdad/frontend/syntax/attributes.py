"""Attributes of arrays, of numbers, and of the user's objects."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import operator
import types
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fwdad.eager.lifting.source import find_source
from fwdad.errors import UntraceableError, is_library_file, type_in_words, with_article
from fwdad.frontend.calls.tables import ATTRIBUTES_OF
from fwdad.frontend.guards import is_users
from fwdad.frontend.numpy_sources.row_by_row import Flat
from fwdad.frontend.slots import attribute_after, class_attribute, is_stand_in, may_have, original
from fwdad.frontend.syntax import static_arrays
from fwdad.frontend.syntax.bound_methods import METHODS, array_method
from fwdad.frontend.syntax.flags import Flags
from fwdad.frontend.syntax.frame import Closure, Frame, Method
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.iterators import CLASSES, Iterator, Range
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.subscripts import Subscripts
from fwdad.frontend.syntax.symbols import Maybe, OfFunction, OfTrace, Optional, Poison
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.ways import always_comes_by
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import Number, is_static_array
from fwdad.rules.core.registry import function_name
from fwdad.tangents.namespaces import namespace_of


class Attributes:
    """Access to attributes."""

    def __init__(self, tracer: Tracer, subscripts: Subscripts) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.values = tracer.values
        self.subscripts = subscripts

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        o = self.tracer.evaluate(node.value)
        self.position.at(node)
        return self.attribute(o, self.position.frame.mangled(node.attr))

    def attribute(self, o: Any, name: str) -> Any:
        """``o.name``."""
        if is_static_array(o):
            return static_arrays.attribute(self.tracer, o, name)
        if isinstance(o, np.ndarray):
            o = self.recorder.as_symbol(o)
        if isinstance(o, (Optional, Poison)):
            o = self.values.number(o)
        if type(o) is Symbol:
            return self._symbol_attribute(o, name)
        if isinstance(o, types.ModuleType):
            return self.outside.of_module(o, name, self._got(o, name))
        if isinstance(o, SuperOf):
            return o.attribute(self.tracer, name)
        if isinstance(o, Closure):
            return self._closure_attribute(o, name)
        if type(o) is Range and name in ("start", "stop", "step"):
            return getattr(o, name)
        if type(o) in CLASSES and type(o) is not Iterator:
            kinds = " or ".join(with_article(cls.__name__) for cls in CLASSES[type(o)])
            message = f"`{name}` of {kinds} that is unknown until run time cannot be traced"
            raise UntraceableError(message, self.position.location())
        if isinstance(o, OfTrace):
            otherwise = _of_function if isinstance(o, OfFunction) else refuse_attribute
            read: Callable[..., Any] = ATTRIBUTES_OF.get(type(o), otherwise)
            return read(self.tracer, o, name)
        if self.values.python_method(o, "__getattribute__") is not None:
            self.refuse_getattribute(type(o))
        missing = self.values.python_method(o, "__getattr__")
        try:
            return self._plain_attribute(o, name)
        except AlwaysRaises as raised:
            if missing is None or not raised.is_a(AttributeError):
                raise
            self._guard_missing(o, name)
            return self.tracer.call(missing, (o, name), {})

    def _guard_missing(self, o: Any, name: str) -> None:
        """Note that neither an object nor its class has an attribute, or that it raises there."""
        held = class_attribute(type(o), name)
        if self.recorder.journal.is_own(namespace_of(o)):
            self.outside.guard_class(type(o), name, held)
        else:
            self.outside.guard(("hooked", o, name), held)

    def _closure_attribute(self, f: Closure, name: str) -> Any:
        """An attribute of a function that is defined in a traced program."""
        if name in f.held:
            return self.values.readable(f.held[name], name, f.held)
        known: dict[str, Any] = {
            "__name__": f.__name__,
            "__module__": f.frame.globals.get("__name__"),
            "__defaults__": f.defaults or None,
            "__kwdefaults__": f.kw_defaults or None,
            "__dict__": f.held,
            "__call__": f,
            "__doc__": None if isinstance(f.node, ast.Lambda) else ast.get_docstring(f.node, False),
        }
        if name in known:
            return known[name]
        if hasattr(types.FunctionType, name):
            message = f"`{name}` of a function defined inside the traced one cannot be traced"
            raise UntraceableError(message, self.position.location())
        raise AlwaysRaises(AttributeError, (f"'function' object has no attribute {name!r}",))

    def refuse_getattribute(self, cls: type) -> NoReturn:
        """Refuse a class with its own ``__getattribute__``, which our own look-ups would run."""
        message = f"{cls.__name__} defines __getattribute__, which cannot be traced"
        raise UntraceableError(message, self.position.location())

    def _refuse_circumstances(self, name: str) -> None:
        """Refuse what Python notes of an exception when it is raised: a trace does not."""
        if name in ("__cause__", "__context__", "__suppress_context__", "__traceback__"):
            message = (
                f"`{name}` of an exception cannot be traced: keep what is needed of it in an "
                "attribute of your own"
            )
            raise UntraceableError(message, self.position.location())

    def _plain_attribute(self, o: Any, name: str) -> Any:
        """The attribute that ``object.__getattribute__`` returns."""
        attribute = class_attribute(type(o), name)
        held: Any = namespace_of(o)
        own = isinstance(held, dict) and self.recorder.journal.is_own(held)
        if own and isinstance(o, BaseException):
            self._refuse_circumstances(name)
        method = isinstance(attribute, types.FunctionType)
        if isinstance(attribute, _BINDING) and (own or not method):  # or the object is asked
            self.outside.guard_special(o, name)
        if isinstance(attribute, property) and isinstance(attribute.fget, types.FunctionType):
            return self.tracer.call(attribute.fget, (o,), {})
        read = None if isinstance(o, type) else self.values.python_method(attribute, "__get__")
        if read is not None:
            self.outside.guard_special(o, name)
            if is_library_file(read.__code__.co_filename):
                read = None
        if read is not None and hasattr(type(attribute), "__set__"):
            return self.tracer.call(read, (attribute, o, type(o)), {})
        if isinstance(held, dict) and name in held:
            if not own:
                return self.outside.captured(held[name], ("attribute", o, name), name)
            self.outside.guard_stored(o, name)
            if attribute is not None and isinstance(held[name], Maybe) and not is_stand_in(type(o)):
                message = (
                    f"`{name}` is an attribute of the object on one path and of its class on "
                    "another, which cannot be traced: set it on every path"
                )
                raise UntraceableError(message, self.position.location())
            message = f"{class_of(o).__name__!r} object has no attribute {name!r}"
            return self.values.readable(held[name], name, held, (AttributeError, message))
        if own and name in ("__class__", "__dict__") and is_stand_in(type(o)):
            return class_of(o) if name == "__class__" else self._dict_beside_slots(o)
        if name == "__dict__" and own:
            return held
        if method and not isinstance(o, type):
            if not own and is_users(type(o)):
                self.outside.guard(("method", o, name), attribute)
            return Method(attribute, o)
        if read is not None:
            if not own:
                self.outside.guard(("method", o, name), attribute)
            return self.tracer.call(read, (attribute, o, type(o)), {})
        if isinstance(attribute, functools.cached_property) and own:
            value = self.tracer.call(attribute.func, (o,), {})
            self.recorder.journal.bind(held, name, value)
            return value
        if not isinstance(o, type) and self.values.python_method(o, "__getattr__") is not None:
            value = native(object.__getattribute__, o, name)
        else:
            value = self._got(o, name)
        if isinstance(o, tuple) and type(attribute) is _FIELD:
            return value  # an item, as `o[k]` is
        if isinstance(value, _BOUND):
            if isinstance(o, type):
                self.outside.guard_class(o, name, class_attribute(o, name))
            return value
        if own:  # what the object holds by this name later is another value: its class's is meant
            of = original(type(o))
            o = of if getattr(of, name, o) is value else o
        return self.outside.captured(value, ("attribute", o, name), name)

    def _got(self, o: Any, name: str) -> Any:
        """What ``getattr`` finds; what has no such attribute must go on to have none."""
        try:
            return native(getattr, o, name)
        except AlwaysRaises as raised:
            if raised.is_a(AttributeError):
                self.outside.guard_absence(o, name)
            raise

    def _dict_beside_slots(self, o: Any) -> NoReturn:
        """Raise for the ``__dict__`` of an object with slots, which is missing or incomplete."""
        if class_of(o).__dictoffset__ == 0:
            message = f"{class_of(o).__name__!r} object has no attribute '__dict__'"
            raise AlwaysRaises(AttributeError, (message,))
        message = f"`__dict__` of a {class_of(o).__name__}, which also has slots, cannot be traced"
        raise UntraceableError(message, self.position.location())

    def set_updated(self, o: Any, name: str, value: Any) -> None:
        """The end of ``o.name op= …``, which sets the attribute.

        That shows if its class overrides how, or if computing the value has set it, too.
        """
        attribute, namespace = self.outside.guard_stored(o, name), namespace_of(o)
        acts = (
            isinstance(attribute, property)
            or self.values.python_method(attribute, "__set__") is not None
            or (self.recorder.journal.is_own(namespace) and namespace.get(name) is not value)
        )
        if acts or isinstance(self.outside.guard_special(o, "__setattr__"), types.FunctionType):
            self.set_attribute(o, name, value)

    def set_attribute(self, o: Any, name: str, value: Any) -> None:
        """``o.name = value``."""
        if type(o) is Symbol or isinstance(o, np.ndarray):
            if type(o) is Symbol and o.is_array and name == "imag" and o.dtype.kind != "c":
                message = "array does not have imaginary part to set"
                raise AlwaysRaises(TypeError, (message,))
            if type(o) is Symbol and o.is_array and name in ("real", "imag"):
                part = self._symbol_attribute(o, name)
                if type(value) is not Symbol or value.value is not part.value:
                    self.recorder.store(part, Ellipsis, value)
                return
            if name == "flat":
                self.subscripts.set_subscript(self.attribute(o, name), slice(None), value)
                return
            message = f"setting the attribute `{name}` of an array cannot be traced"
            raise UntraceableError(message, self.position.location())
        if isinstance(o, Closure):
            self.recorder.journal.bind(o.held, name, value)
            return
        attribute = self.outside.guard_special(o, "__setattr__")
        if isinstance(attribute, types.FunctionType) and not isinstance(o, type):
            parameters = getattr(type(o), "__dataclass_params__", None)
            if parameters is not None and parameters.frozen and find_source(attribute) is None:
                message = f"cannot assign to field {name!r}"
                raise AlwaysRaises(dataclasses.FrozenInstanceError, (message,))
            self.tracer.call(attribute, (o, name, value), {})
            return
        if attribute is dict.__setitem__ and isinstance(o, dict):
            self.subscripts.set_subscript(o, name, value)
            return
        if getattr(attribute, "__name__", "__setattr__") != "__setattr__":  # borrowed
            how = attribute.__qualname__
            message = f"{type(o).__name__} sets attributes by {how}, which cannot be traced"
            raise UntraceableError(message, self.position.location())
        self.set_plain_attribute(o, name, value)

    def set_plain_attribute(self, o: Any, name: str, value: Any) -> None:
        """Set an attribute as ``object.__setattr__`` does."""
        attribute = self.outside.guard_stored(o, name)
        if isinstance(attribute, property):
            if attribute.fset is None:
                message = f"property {name!r} of {type(o).__name__!r} object has no setter"
                raise AlwaysRaises(AttributeError, (message,))
            self.tracer.call(attribute.fset, (o, value), {})
            return
        write = self.values.python_method(attribute, "__set__")
        if write is not None:
            self.tracer.call(write, (attribute, o, value), {})
            return
        if is_stand_in(type(o)) and not may_have(type(o), name):
            what = "has no attribute" if attribute is None else "attribute"
            end = "" if attribute is None else " is read-only"
            message = f"{type(o).__name__!r} object {what} {name!r}{end}"
            raise AlwaysRaises(AttributeError, (message,))
        if isinstance(o, defaultdict) and name == "default_factory":
            self._set_factory(o, value)
            return
        self.recorder.journal.bind(self._attributes(o), name, value)

    def _set_factory(self, o: defaultdict[Any, Any], factory: Any) -> None:
        """Bind what makes missing items: a merge of two paths has no place for two of them."""
        self.outside.may_change(o)
        if not always_comes_by(self.recorder):
            message = (
                "the default_factory of a defaultdict is set on one path only, which cannot be "
                "traced: set it on every path, or make another dict"
            )
            raise UntraceableError(message, self.position.location())
        self.recorder.journal.touch(o)
        native(setattr, o, "default_factory", factory)

    def delete_attribute(self, o: Any, name: str) -> None:
        """``del o.name``."""
        attribute = self.outside.guard_stored(o, name)
        special = self.values.python_method(attribute, "__delete__")
        hook = self.outside.guard_special(o, "__delattr__")
        if hook is dict.__delitem__ and isinstance(o, dict):
            self.subscripts.delete_subscript(o, name)
            return
        borrowed = getattr(hook, "__name__", "__delattr__") != "__delattr__"
        own = borrowed or isinstance(hook, types.FunctionType)
        if special or own or isinstance(attribute, property):
            message = f"`del` of `{name}`, which the class defines itself, cannot be traced"
            raise UntraceableError(message, self.position.location())
        namespace = self._attributes(o)
        if namespace.get(name, UNBOUND) is UNBOUND:
            raise AlwaysRaises(AttributeError, (name,))
        self.values.readable(namespace[name], name, namespace, (AttributeError, name))
        self.recorder.journal.bind(namespace, name, UNBOUND)

    def _attributes(self, o: Any) -> dict[str, Any]:
        """The attributes of an object, which must be one that the traced program may change."""
        namespace = namespace_of(o)
        if not isinstance(namespace, dict):
            message = f"attributes of {type_in_words(o)} cannot be changed in a traced function"
            raise UntraceableError(message, self.position.location())
        if not self.recorder.journal.is_own(namespace):
            message = (
                f"an attribute of {type_in_words(o)} that existed before the call is changed, "
                "which cannot be traced: pass the object as an argument"
            )
            raise UntraceableError(message, self.position.location())
        return namespace

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
                lambda a, b: self.tracer.binary(operator.mul, a, b),
                self.recorder.shape(o) or (1,),
            )
        if name == "T":
            return self.recorder.apply(np.transpose, (o,), {})
        if name == "mT":
            return self.recorder.apply(np.swapaxes, (o, -1, -2), {})
        if name in ("real", "imag"):
            if t.dtype.kind != "c" and name == "real":
                is_truth = isinstance(t, Number) and t.python and t.dtype.kind == "b"
                return self.recorder.apply(int, (o,), {}) if is_truth else o
            if isinstance(t, Number) and t.python:
                cls = int if t.dtype.kind in "biu" else float
                part = self.recorder.apply(getattr(np, name), (o,), {})
                return self.recorder.apply(cls, (part,), {})
            return self.recorder.apply(getattr(np, name), (o,), {})
        if name == "flat":
            return self.tracer.call(Flat, (o,), {})
        if name == "__class__":
            return class_of(o)
        if name == "flags" and o.is_array:
            return Flags(o)
        if name == "device":
            return "cpu"
        if name == "itemsize":
            return t.dtype.itemsize
        if name == "nbytes":
            return self.tracer.binary(operator.mul, self.attribute(o, "size"), t.dtype.itemsize)
        if name not in METHODS and not hasattr(class_of(o), name):
            kind = function_name(class_of(o))
            raise AlwaysRaises(AttributeError, (f"{kind!r} object has no attribute {name!r}",))
        return array_method(o, name)

    def super(self) -> Any:
        """``super()`` in a method."""
        frame: Frame | None = self.position.frame
        while frame is not None and frame.owner is None:
            frame = frame.outer
        if frame is None:
            raise AlwaysRaises(RuntimeError, ("super(): __class__ cell not found",))
        assert isinstance(frame.node, (ast.FunctionDef, ast.Lambda))
        first = frame.node.args.args[0].arg
        return SuperOf(frame.owner.cell_contents, frame.locals[first])


def refuse_attribute(tracer: Tracer, o: Any, name: str) -> NoReturn:
    """Refuse to read an attribute."""
    message = f"`{name}` of {type_in_words(o)} cannot be traced"
    raise UntraceableError(message, tracer.position.location())


def _of_function(tracer: Tracer, f: OfFunction, name: str) -> Any:
    """An attribute of a stand-in for a function or a bound method."""
    if name in ("__class__", "__call__"):
        return f.kind if name == "__class__" else f
    bound = issubclass(f.kind, _BOUND)
    if bound and name == "__self__":
        return f.owner
    if f.kind is types.MethodType:
        return f.like if name == "__func__" else tracer.attribute(f.like, name)
    if name in functools.WRAPPER_ASSIGNMENTS:
        return native(getattr, f.like, name) if bound else tracer.attribute(f.like, name)
    if not bound or class_attribute(f.kind, name) is not None:
        refuse_attribute(tracer, f, name)
    raise AlwaysRaises(AttributeError, (f"{f.kind.__name__!r} object has no attribute {name!r}",))


class SuperOf:
    """``super()``: attributes of the classes after one, bound to an object."""

    def __init__(self, cls: type, owner: Any) -> None:
        self.cls = cls
        self.owner = owner

    def attribute(self, tracer: Tracer, name: str) -> Any:
        tracer.outside.guard_type(self.owner)
        kind = original(type(self.owner))
        if isinstance(self.owner, type) and issubclass(self.owner, self.cls):
            kind = self.owner  # in a class method, and in __new__
        path, found = ("after", kind, self.cls, name), attribute_after(kind, self.cls, name)
        if isinstance(found, types.MemberDescriptorType):
            return tracer.attribute(self.owner, name)
        read = tracer.values.python_method(found, "__get__")
        if found is not UNBOUND and read is None and not isinstance(found, _BOUND_BY_SUPER):
            return tracer.outside.captured(found, path, name)
        if is_users(kind):
            tracer.outside.guard(path, found)
        if found is UNBOUND:
            raise AlwaysRaises(AttributeError, (f"'super' object has no attribute {name!r}",))
        if read is not None:
            return tracer.call(read, (found, None if kind is self.owner else self.owner, kind), {})
        return self._bound(tracer, found, kind, name)

    def _bound(self, tracer: Tracer, found: Any, kind: type, name: str) -> Any:
        """What is found in a class, as it is bound to the object, or its class."""
        if isinstance(found, staticmethod):  # __new__ is one
            return found.__func__
        if isinstance(found, classmethod):
            return Method(found.__func__, kind)
        if kind is self.owner:
            return found
        if isinstance(found, property):
            return tracer.call(found.fget, (self.owner,), {})
        if isinstance(found, functools.cached_property):
            refuse_attribute(tracer, self, name)
        return (lambda: None) if found is object.__init__ else Method(found, self.owner)


def class_of(x: Any) -> type:
    """``type(x)``, also of symbols and of stand-ins for Python's objects."""
    if isinstance(x, Items):
        return x.like
    if isinstance(x, OfFunction):
        return x.kind
    if type(x) is not Symbol:
        return original(type(x))
    if x.is_array:
        return np.ndarray
    t = x.type
    if isinstance(t, Number) and t.python:
        return {"b": bool, "i": int, "f": float, "c": complex}[t.dtype.kind]
    return t.dtype.type


_FIELD: type = type(inspect.FullArgSpec.args)  # of named tuples
_BOUND = (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)
_BINDING = (types.FunctionType, property, staticmethod, classmethod, functools.cached_property)
"""What a class holds that becomes another object when it is asked for."""

_BOUND_BY_SUPER = (*_BINDING, types.WrapperDescriptorType, types.MethodDescriptorType)
