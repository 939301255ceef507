"""The hooks that lifted code calls: operators, attributes, subscripts, iteration, stores."""

from __future__ import annotations

import array
import functools
import operator
import random
import types
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from fwdad.builder import methods, numpy_calls, opaque, protocols, store
from fwdad.builder import operators as _operators  # noqa: F401  (it gives duals their operators)
from fwdad.builder.apply import primal_part
from fwdad.builder.creation import as_array
from fwdad.builder.dispatch import (
    ATTR,
    BY_NAME,
    CONTAINER_METHODS,
    METHOD,
    _note_generator,
    call,
    call_ufunc,
)
from fwdad.builder.dual import (
    OPAQUE,
    Array,
    Scalar,
    explicit,
    isinstance_dual,
    leak,
    same_terms,
    top_tag,
    wrap,
)
from fwdad.builder.lift import LIFTED, install_hooks
from fwdad.builder.memory import SHADOWED, find_shadow, untouched
from fwdad.builder.rewrite import PREFIX
from fwdad.builder.run import STATE
from fwdad.errors import DualLeakError, is_library_file
from fwdad.tangents.chunk import Chunk, plain
from fwdad.tangents.composite import is_leaf

_PLAIN = {int, float, complex, str, bytes, bool, np.float64, Scalar, tuple, list, dict, type(None)}
_PLAIN_ARITHMETIC = {int, float, complex, str, bytes, bool, np.float64, Scalar}
_DIRECT = {int, float, complex, bool, np.float64, Scalar, Array, np.ndarray}

CONTAINERS = (list, dict, set, deque, bytearray, array.array)

CONTAINER_METHODS.update(
    {
        list: frozenset(("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse",
                         "__setitem__", "__delitem__", "__iadd__", "__imul__")),
        dict: frozenset(("update", "pop", "popitem", "setdefault", "clear", "__setitem__",
                         "__delitem__", "__ior__")),
        set: frozenset(("add", "discard", "remove", "pop", "clear", "update", "__ior__", "__iand__",
                        "__isub__", "__ixor__", "intersection_update", "difference_update",
                        "symmetric_difference_update")),
        deque: frozenset(("append", "appendleft", "extend", "extendleft", "pop", "popleft", "clear",
                          "rotate", "insert", "remove", "reverse", "__setitem__", "__delitem__")),
        array.array: frozenset(("append", "extend", "insert", "pop", "remove", "reverse",
                                "fromlist", "frombytes", "byteswap", "clear")),
        bytearray: frozenset(("append", "extend", "insert", "pop", "remove", "clear", "reverse")),
    }
)  # fmt: skip


# -- operators


def _binary(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)
    stem = name.rstrip("_")
    forward, reflected = f"__{stem}__", f"__r{stem}__"
    formats = name == "mod"  # "%.2f" % x shows the primal
    of_scalar = getattr(Scalar, forward, function)
    of_array = getattr(Array, forward, function)
    reflected_of_array = getattr(Array, reflected, lambda b, a: function(a, b))

    def hook(a: Any, b: Any) -> Any:
        t, u = type(a), type(b)
        if t is Scalar and (u is Scalar or u is float):  # what Python would find by itself
            return of_scalar(a, b)
        if t is Array:
            if u is Array or u is float or u is int or u is np.ndarray:
                return of_array(a, b)
        elif u is Array and (t is np.ndarray or t is float or t is int):
            return reflected_of_array(b, a)
        if t in _DIRECT and u in _DIRECT:
            if not SHADOWED or (t is not np.ndarray and u is not np.ndarray):
                return function(a, b)
        if formats and (t is str or t is bytes):
            return function(a, primal_part(b))
        if SHADOWED:
            a, b = explicit(a), explicit(b)
            if t not in _NATIVE or u not in _NATIVE:
                a, b = _read_by_arrays(a, b, forward, reflected)
        if _has_python(t, forward) or _has_python(u, reflected):
            return _dunder(function, forward, reflected, a, b)
        return function(a, b)

    return hook


def _has_python(t: type, name: str) -> bool:
    """Whether a class of the user's defines a special method in Python."""
    if t in _NATIVE:
        return False
    return isinstance(getattr(t, name, None), types.FunctionType)


_SIMPLE = {int, float, complex, str, bytes, bool, type(None), np.float64, np.int64, np.bool_,
           Scalar,
           Array, np.ndarray, list, tuple, dict, set, type}  # fmt: skip
_NATIVE = {np.ndarray, Array, Scalar, int, float, complex, str, list, tuple, dict, np.float64, bool}


def _dunder(function: Any, forward: str, reflected: str, a: Any, b: Any) -> Any:
    """Python's own order of trying the operands' methods, each through the dispatcher."""
    t, u = type(a), type(b)
    order = [(t, forward, a, b), (u, reflected, b, a)]
    if (
        u is not t
        and isinstance(u, type)
        and issubclass(u, t)
        and getattr(u, reflected, None) is not getattr(t, reflected, None)
    ):
        order.reverse()
    elif isinstance(a, np.generic) and _has_python(u, reflected):
        order.reverse()  # NumPy's numbers make an object array, which asks the other operand
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
    if SHADOWED:
        a = explicit(a)
    if _has_python(type(a), "__neg__"):
        return call(type(a).__neg__, a)
    return -a


def pos(a: Any) -> Any:
    """``+a``."""
    if SHADOWED:
        a = explicit(a)
    return call(type(a).__pos__, a) if _has_python(type(a), "__pos__") else +a


def invert(a: Any) -> Any:
    """``~a``."""
    return call(type(a).__invert__, a) if _has_python(type(a), "__invert__") else ~a


def _read_by_arrays(a: Any, b: Any, forward: str, reflected: str) -> tuple[Any, Any]:
    """What an array would read of the other operand, which does not know the operator."""
    if isinstance(a, np.ndarray) and not hasattr(type(b), reflected):
        return a, protocols.as_numpy_reads(b)
    if isinstance(b, np.ndarray) and not hasattr(type(a), forward):
        return protocols.as_numpy_reads(a), b
    return a, b


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _compare(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)
    forward, reflected = f"__{name}__", f"__{_MIRRORED[name]}__"

    def hook(a: Any, b: Any) -> Any:
        t, u = type(a), type(b)
        if t in _SIMPLE and u in _SIMPLE:
            return function(a, b)
        if OPAQUE and (t in OPAQUE or u in OPAQUE):
            top_tag((a, b))  # raises for one that has outlived its call
            return function(primal_part(a), primal_part(b))
        if _has_python(t, forward) or _has_python(u, reflected):
            try:
                return _dunder(function, forward, reflected, a, b)
            except TypeError:
                return function(a, b)  # Python's own last resort, or its own message
        return function(a, b)

    return hook


def compare_then(compare: Any, a: Any, b: Any, then: Any) -> Any:
    """``a < b < …`` where the language allows no name for ``b``: ``then(b)`` is the rest."""
    value = compare(a, b)
    return then(b) if value else value


def contains(item: Any, container: Any) -> Any:
    """``item in container``."""
    if _has_python(type(container), "__contains__"):
        return bool(call(type(container).__contains__, container, item))
    return item in container


def _inplace(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, "i" + name.rstrip("_"))
    plain_function = getattr(operator, name)
    method = f"__i{name.rstrip('_')}__"
    binary = _binary(name)

    def hook(a: Any, b: Any) -> Any:
        t = type(a)
        if t in _PLAIN_ARITHMETIC:
            return binary(a, b)
        if t is np.ndarray or t is Array:
            return _array_inplace(function, plain_function, a, b)
        if isinstance(a, CONTAINERS) and not isinstance(
            getattr(t, method, None), types.FunctionType
        ):
            _log_container(a)
            if type(b) is np.ndarray:
                b = explicit(b)
            elif isinstance(a, (list, deque)):
                b = iterate(b)
            elif isinstance(a, dict):
                b = protocols.mapping(b)
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
    """An in-place operator on an array: the array stays the same object."""
    if SHADOWED and type(b) not in _NATIVE:
        b = protocols.as_numpy_reads(b)
    if type(a) is np.ndarray:
        if type(b) is Array and plain_function in _SUMS and store.accumulate(a, b, plain_function):
            return a
        b = explicit(b)
        active = top_tag((b,)) is not None or (SHADOWED and find_shadow(a) is not None)
        if not active or a.dtype.kind == "O":
            if STATE.run is not None:
                STATE.run.log.array(a)
            return function(a, b)
        if plain_function in _SUMS and store.accumulate(a, b, plain_function):
            return a
    value = plain_function(explicit(a), b)
    return numpy_calls.write_out(a, _fitting(a, value))


_SUMS = (operator.add, operator.sub)


def _fitting(a: Any, value: Any) -> Any:
    if np.shape(value) != a.shape and len(np.shape(value)) > a.ndim:
        message = (
            f"non-broadcastable output operand with shape {a.shape} doesn't match the broadcast "
            f"shape {np.shape(value)}"
        )
        raise ValueError(message)
    return value


# -- attributes


def attr(o: Any, name: str) -> Any:
    """``o.name``; properties and other descriptors written in Python are lifted."""
    t = type(o)
    if t is types.ModuleType:
        return getattr(o, name)
    if t is np.ndarray:
        return _array_attribute(o, name)
    if t is Array or t is Scalar:
        return methods.attribute(o, name)
    if isinstance(o, type):
        return getattr(o, name)
    if t is super:
        return _super_attribute(o, name)
    if OPAQUE and t in OPAQUE:
        return opaque.attribute(o, name)
    found = _class_attribute(t, name)
    kind = type(found)
    if kind is property:
        return call(found.fget, o) if found.fget is not None else getattr(o, name)
    if kind is functools.cached_property:
        return _cached(o, found, name)
    if kind is types.FunctionType or found is None:
        return _instance_attribute(o, t, name)
    get = getattr(kind, "__get__", None)
    if isinstance(get, types.FunctionType):
        held = getattr(o, "__dict__", {})
        if name in held and not hasattr(kind, "__set__"):
            return held[name]
        return call(get, found, o, t)
    return getattr(o, name)


def _super_attribute(o: Any, name: str) -> Any:
    """``super().name``: a property of a base class is lifted, too."""
    order = o.__self_class__.__mro__ if o.__self_class__ is not None else ()
    for cls in order[order.index(o.__thisclass__) + 1 :] if order else ():
        if name in cls.__dict__:
            found = cls.__dict__[name]
            if type(found) is property and found.fget is not None:
                return call(found.fget, o.__self__)
            break
    return getattr(o, name)


def _class_attribute(t: type, name: str) -> Any:
    for cls in t.__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return None


def _instance_attribute(o: Any, t: type, name: str) -> Any:
    lookup = _class_attribute(t, "__getattribute__")
    if isinstance(lookup, types.FunctionType):
        return call(lookup, o, name)
    fallback = _class_attribute(t, "__getattr__")
    if isinstance(fallback, types.FunctionType):
        try:
            return object.__getattribute__(o, name)
        except AttributeError:
            return call(fallback, o, name)
    return getattr(o, name)


def _cached(o: Any, found: Any, name: str) -> Any:
    held = o.__dict__
    if name not in held:
        if STATE.run is not None:
            STATE.run.log.attributes(o)
        held[found.attrname or name] = call(found.func, o)
    return held[found.attrname or name]


_LEAVES = {"ctypes", "data", "__array_interface__", "__array_struct__"}


def _array_attribute(o: np.ndarray, name: str) -> Any:
    if SHADOWED and find_shadow(o) is not None and name in _LEAVES:
        raise DualLeakError(leak(f"a plain array (through .{name})", wrap(o, copy=False)))
    return getattr(o, name)


def set_attr(value: Any, o: Any, name: str) -> None:
    """``o.name = value``; what the object held is kept, to be put back when the call ends."""
    t = type(o)
    if OPAQUE and t in OPAQUE:
        opaque.refuse_write(o, name)
    found = _class_attribute(t, name) if not isinstance(o, (type, types.ModuleType)) else None
    if type(found) is property and found.fset is not None:
        call(found.fset, o, value)
        return
    setter = getattr(type(found), "__set__", None)
    if isinstance(setter, types.FunctionType):
        call(setter, found, o, value)
        return
    if t is np.ndarray or t is Array:
        methods.set_array_attribute(o, name, value)
        return
    run = STATE.run
    if isinstance(o, (type, types.ModuleType)):
        if run is not None:
            run.log_namespace(o, name)
        setattr(o, name, value)
        return
    if run is not None:
        if isinstance(o, random.Random):  # its attributes are its state, which is not put back
            run.note_generator(o)
        else:
            run.log.attributes(o)
    own = _class_attribute(t, "__setattr__")
    if isinstance(own, types.FunctionType):
        call(own, o, name, value)
        return
    setattr(o, name, value)


def del_attr(o: Any, name: str) -> None:
    """``del o.name``."""
    if OPAQUE and type(o) in OPAQUE:
        opaque.refuse_write(o, name)
    found = None if isinstance(o, (type, types.ModuleType)) else _class_attribute(type(o), name)
    if type(found) is property and found.fdel is not None:
        call(found.fdel, o)
        return
    if STATE.run is not None:
        if isinstance(o, (type, types.ModuleType)):
            STATE.run.log_namespace(o, name)
        else:
            STATE.run.log.attributes(o)
    delattr(o, name)


# -- subscripts


def getitem(o: Any, index: Any) -> Any:
    """``o[index]``."""
    t = type(o)
    if t is Array:
        u = type(index)
        if (u is int or u is slice) and o.tag.alive and isinstance(o._t, Chunk):
            p = o.p
            if type(p) is np.ndarray and (not SHADOWED or untouched(p)):
                if u is slice:
                    return o.part(index)
                if p.ndim == 1:
                    return o.element(index)
        return store.load_dual(o, index)
    if t is np.ndarray:
        if type(index) is slice or type(index) is str:
            return o[index]  # a view: its memory has what tangents it has
        if SHADOWED:
            shadow = find_shadow(o)
            if shadow is not None:
                return store.load(o, index, shadow)
        return o[index]
    if t is np.flatiter:
        return methods.flat_load(o, index)
    if SHADOWED and t in protocols.BUFFERS:
        protocols.check_buffer(o)
    if isinstance(o, dict):
        if type(index) in _KEYS:
            check_key(o, index)
        missing = getattr(t, "__missing__", None)
        if isinstance(missing, types.FunctionType) and index not in o:
            return call(missing, o, index)
        if missing is not None:
            _log_container(o)
    if t is Scalar and isinstance(plain(o), np.generic):
        return store.load_dual(as_array(o), index)
    if t in _PLAIN:
        return o[index]
    method = getattr(t, "__getitem__", None)
    if isinstance(method, types.FunctionType):
        return call(method, o, index)
    return o[index]


def setitem(value: Any, o: Any, index: Any) -> None:
    """``o[index] = value``."""
    t = type(o)
    if t is np.ndarray and type(value) is Scalar:
        run = STATE.run
        if run is not None:
            run.log.array(o)
        if store.store_number(o, index, value):
            return
    if t is np.ndarray or t is Array:
        if SHADOWED and type(value) not in _NATIVE:
            value = protocols.as_number(protocols.as_numpy_reads(value))
        store.store(o, index, value)
        return
    if isinstance(o, CONTAINERS) and not isinstance(
        getattr(t, "__setitem__", None), types.FunctionType
    ):
        _log_container(o)
        if isinstance(index, slice) and isinstance(o, list):
            value = list(iterate(value))
        o[index] = value
        return
    if t is np.flatiter or t is methods.Flat:
        methods.flat_store(o, index, value)
        return
    method = getattr(t, "__setitem__", None)
    if isinstance(method, types.FunctionType):
        call(method, o, index, value)
        return
    _log_object(o)
    o[index] = value


def aug_setitem(o: Any, index: Any, old: Any, new: Any) -> None:
    """The store of ``o[index] += v``; a view that was updated in place is there already."""
    if new is old and type(o) in (np.ndarray, Array) and type(old) in (np.ndarray, Array):
        if _shares(o, old):
            return
    setitem(new, o, index)


def _shares(o: Any, view: Any) -> bool:
    a, b = store.plain(o), store.plain(view)
    base = b.base
    return base is not None and (base is a or base is a.base or np.may_share_memory(a, b))


def delitem(o: Any, index: Any) -> None:
    """``del o[index]``."""
    method = getattr(type(o), "__delitem__", None)
    if isinstance(method, types.FunctionType):
        call(method, o, index)
        return
    if isinstance(o, CONTAINERS):
        _log_container(o)
    else:
        _log_object(o)
    del o[index]


_LOOKUPS = {"get", "pop", "setdefault", "__getitem__"}


_KEYS = {Scalar, float, np.float64, tuple}
"""Types of keys that may be, or be equal to, a number with a derivative."""


def check_key(table: dict[Any, Any], key: Any) -> None:
    """Refuse a look-up that finds what was stored under an equal number of another derivative."""
    if not table:
        return
    probe = protocols.Probe(key)
    if probe not in table:
        return
    held = probe.found
    value = table[held]
    if type(key) is tuple and type(held) is tuple:
        wrong = any(_is_another(h, k, value) for h, k in zip(held, key, strict=True))
    else:
        wrong = _is_another(held, key, value)
    if wrong:
        message = (
            f"a number that carries a derivative ({primal_part(key)!r}) meets an equal key of a "
            "dict that carries another derivative (or none): the answer would have the wrong "
            "derivative. Key the dict by an index instead, or say fwdad.stop_gradient(x) for the "
            "key"
        )
        raise DualLeakError(message)


def _is_another(held: Any, key: Any, value: Any) -> bool:
    if held is key:
        return False
    if type(key) is not Scalar:  # a constant finds the entry of a dual
        return type(held) is Scalar and top_tag((value,)) is not None
    if not is_leaf(value):
        return False
    if type(held) is Scalar:
        return held.tag is not key.tag or not same_terms(held, key)
    return not isinstance_dual(value)


def _log_container(o: Any) -> None:
    run = STATE.run
    if run is not None:
        run.log.container(o)


def _log_object(o: Any) -> None:
    run = STATE.run
    if run is not None and hasattr(o, "copy"):
        run.log.container(o)


# -- methods


def method(o: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """``o.name(*args, **kwargs)``."""
    t = type(o)
    if t is types.ModuleType:
        f = getattr(o, name)
        return call_ufunc(f, args, kwargs) if type(f) is np.ufunc else call(f, *args, **kwargs)
    if t is Array or t is Scalar:
        if SHADOWED and args:
            args = _read_by_method(name, args)
        return methods.call_method(o, name, args, kwargs)
    if t is np.ndarray:
        if SHADOWED and args:
            args = _read_by_method(name, args)
        return methods.call_plain_method(o, name, args, kwargs)
    if args and type(args[0]) in _KEYS and isinstance(o, dict) and name in _LOOKUPS:
        check_key(o, args[0])
    if t is np.flatiter:
        return _flat_method(o, name, args, kwargs)
    if t in protocols.BUFFERS:
        if SHADOWED and name not in ("cast", "release", "toreadonly"):
            protocols.check_buffer(o)
        if t is memoryview:
            return getattr(o, name)(*args, **kwargs)
    mutating = CONTAINER_METHODS.get(t)
    if mutating is not None:
        if name in mutating:
            _log_container(o)
            if name == "sort" and kwargs.get("key") is not None:
                kwargs["key"] = functools.partial(call, kwargs["key"])
            if name == "__setitem__":
                return setitem(args[1], o, args[0])
            if name in _FED and args:
                first = protocols.mapping(args[0])
                args = (first if isinstance(first, dict) else iterate(first), *args[1:])
        return getattr(o, name)(*args, **kwargs)
    if t in _PLAIN:
        return getattr(o, name)(*args, **kwargs)
    if t is ContextVar:
        value = getattr(o, name)(*args, **kwargs)
        if name == "set" and STATE.run is not None:
            STATE.run.log.context(value)
        return value
    _note_generator(o)
    if isinstance(o, CONTAINERS):
        _log_container(o)
    return call(attr(o, name), *args, **kwargs)


def _flat_method(o: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of ``a.flat`` by its name."""
    own = _FLAT_METHODS.get(name)
    if own is not None:
        return own(o, *args)
    return getattr(o, name)(*args, **kwargs)


_FLAT_METHODS: dict[str, Callable[..., Any]] = {
    "__setitem__": lambda o, index, value: setitem(value, o, index),
    "__getitem__": getitem,
    "__next__": lambda o: call(next, o),
    "__array__": lambda o, *args: call(np.array, np.ravel(explicit(o.base)), *args),
    "copy": lambda o: call(np.array, np.ravel(explicit(o.base))),
}


def _read_by_method(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    args = protocols.all_as_numpy_reads(args)
    if name in ("__setitem__", "fill"):
        args = (*args[:-1], protocols.as_number(args[-1]))
    return args


_FED = {"extend", "extendleft", "update", "__iadd__", "__ior__", "difference_update",
        "intersection_update", "symmetric_difference_update"}  # fmt: skip
"""Methods of containers that take their items out of an argument."""


# -- iteration, with, decorators, names


def iterate(o: Any) -> Any:
    """An iterable that yields duals where ``o`` has tangents."""
    t = type(o)
    if t in _PLAIN or t is Array or t is range:
        return o
    if t is types.GeneratorType:
        check_generator(o)
        return o
    if SHADOWED and t in protocols.BUFFERS:
        protocols.check_buffer(o)
    if t is np.ndarray:
        return _elements(o) if o.dtype.kind in "fc" and o.ndim else o
    if t is np.flatiter:
        return (methods.flat_load(o, k) for k in range(o.base.size))
    method_ = getattr(t, "__iter__", None)
    if isinstance(method_, types.FunctionType):
        made = call(method_, o)
        if type(made) is types.GeneratorType:
            return made
        step = getattr(type(made), "__next__", None)
        return _steps(made, step) if isinstance(step, types.FunctionType) else made
    if method_ is None and isinstance(getattr(t, "__getitem__", None), types.FunctionType):
        return _by_index(o)
    return o


def check_generator(o: Any) -> None:
    """Refuse a generator that was made outside the call, and would read arrays without tangents."""
    if SHADOWED and id(o.gi_code) not in LIFTED and not is_library_file(o.gi_code.co_filename):
        message = (
            f"the generator {o.__qualname__} was made outside of this derivative call, and arrays "
            "that it may read carry derivatives now: make it inside the function"
        )
        raise DualLeakError(message)


def iterate_deep(o: Any) -> Any:
    """As :func:`iterate`, for a target that unpacks the items again."""
    for item in iterate(o):
        yield _deep(item) if SHADOWED else item


def _deep(item: Any) -> Any:
    """What an item is unpacked into; one that holds no array with tangents is itself."""
    if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
        parts = [_deep(i) for i in item]
        if all(part is i for part, i in zip(parts, item, strict=True)):
            return item
        return tuple(parts) if isinstance(item, tuple) else parts
    return explicit(item)


def own_names(names: Any) -> Any:
    """What ``locals()`` answers without the variables that lifting adds."""
    if isinstance(names, dict):
        return {k: v for k, v in names.items() if not str(k).startswith(PREFIX)}
    return [k for k in names if not str(k).startswith(PREFIX)]


def check_eval() -> None:
    """Refuse ``eval`` and ``exec`` where the code could read arrays without their tangents."""
    if SHADOWED:
        message = (
            "eval or exec is called while arrays carry derivatives in their memory: the code runs "
            "without them. Call a function instead"
        )
        raise DualLeakError(message)


def _elements(o: np.ndarray) -> Any:
    """Rows of a plain array, looked up one by one: a store in the loop may make them active."""
    for k in range(len(o)):
        if SHADOWED and find_shadow(o) is not None:
            value = store.load(o, k)
            yield explicit(value)
        else:
            yield o[k]


def _steps(o: Any, step: Any) -> Any:
    while True:
        try:
            value = call(step, o)
        except StopIteration:
            return
        yield value


def _by_index(o: Any) -> Any:
    k = 0
    while True:
        try:
            value = getitem(o, k)
        except IndexError:
            return
        yield value
        k += 1


class _Manager:
    """A context manager whose methods are called through the dispatcher."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return call(type(self.manager).__enter__, self.manager)

    def __exit__(self, *details: object) -> Any:
        return call(type(self.manager).__exit__, self.manager, *details)


def enter(manager: Any) -> Any:
    """The manager of a ``with`` statement."""
    if isinstance(getattr(type(manager), "__enter__", None), types.FunctionType):
        return _Manager(manager)
    return manager


def decorate(decorator: Any) -> Any:
    """A decorator that is applied through the dispatcher."""
    return functools.partial(call, decorator)


def write_cells(reader: Any) -> None:
    """Keep the variables of a ``nonlocal`` statement before the function writes them."""
    run = STATE.run
    if run is not None:
        for cell in reader.__closure__ or ():
            run.log.cell(cell)


def write_global(namespace: dict[str, Any], *names: str) -> None:
    """Keep the variables of a ``global`` statement before the function writes them."""
    run = STATE.run
    if run is not None:
        for name in names:
            run.log.name(namespace, name)


_NAMES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
          "lshift", "rshift", "or_", "xor", "and_")  # fmt: skip
OPERATORS = {name: _binary(name) for name in _NAMES}
INPLACE = {"i" + name.rstrip("_"): _inplace(name) for name in _NAMES}

METHOD[:] = [method]
protocols.ITERATE[:] = [iterate]
BY_NAME.update({methods.Flat, ContextVar})
methods.INPLACE_HOOKS.update(INPLACE)
ATTR[:] = [attr]
COMPARISONS = {name: _compare(name) for name in _MIRRORED}
install_hooks(
    {
        "slice": slice,
        "call": call,
        "method": method,
        "attr": attr,
        "getitem": getitem,
        "setitem": setitem,
        "delitem": delitem,
        "set_attr": set_attr,
        "del_attr": del_attr,
        "neg": neg,
        "pos": pos,
        "invert": invert,
        "contains": contains,
        "compare_then": compare_then,
        "mapping": protocols.mapping,
        "iterate_deep": iterate_deep,
        "check_eval": check_eval,
        "own_names": own_names,
        **COMPARISONS,
        "iterate": iterate,
        "enter": enter,
        "decorate": decorate,
        "write_cells": write_cells,
        "write_global": write_global,
        "aug_setitem": aug_setitem,
        **OPERATORS,
        **INPLACE,
    }
)
