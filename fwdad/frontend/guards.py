"""Guards of objects from outside: what a tape may keep of them, and how changes are detected.

A number or a plain array is an *input*, read at each call. A list, a dict and a tuple of such are a
*container*, whose structure is compared and whose leaves are inputs. A *constant* cannot change. Of
an object with *fields* each attribute that is read is captured by itself; where code without a
source reads the object, its contents are compared, as are those of all other objects that can be
inspected. What is *opaque*, such as state in C code, cannot be kept on a tape.
"""

from __future__ import annotations

import array
import datetime as dt
import decimal
import enum
import fractions
import functools
import operator
import random
import re
import sys
import threading
import types
import typing
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from pathlib import PurePath
from typing import Any

import numpy as np

from fwdad.eager.build import generator_state
from fwdad.errors import FwdadError, is_library_file, with_article
from fwdad.ir.abstract_eval.purity import FACTORS
from fwdad.ir.builder.array_contents import BYTES_AT_MOST
from fwdad.ir.types import is_static_array, number_type
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.namespaces import referents
from fwdad.tangents.objects import HEAP_TYPE, attributes_of, has_fields

INPUT, CONTAINER, CONSTANT, FIELDS, CONTENTS, OPAQUE = range(6)

_ITEM = 64  # what an item counts for
_REACHED_AT_MOST = 20_000  # objects that are searched for arrays

_C_FUNCTIONS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    np.ufunc,
    type(np.sum),
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
    type(functools.lru_cache(len)),
    functools.cached_property,
    property,
    staticmethod,
    classmethod,
)
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_CONSTANTS = (
    int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented),
    slice, range, type, types.FunctionType, types.ModuleType, types.CodeType, types.GenericAlias,
    types.UnionType,
    fractions.Fraction, decimal.Decimal, PurePath, dt.date, dt.time, dt.timedelta,
    dt.tzinfo, re.Pattern, re.Match, enum.Enum, np.dtype, np.generic, np.finfo, np.iinfo,
    typing.TypeVar, type(typing.Literal), type(typing.Literal[0]), type(np._NoValue),
    *_C_FUNCTIONS, *_LOCKS,
)  # fmt: skip
GENERATORS = (np.random.Generator, np.random.RandomState)
_OF_RANDOM = (*GENERATORS, random.Random, np.random.BitGenerator, np.random.SeedSequence)
_READS = ("__getitem__", "__iter__", "__len__", "__contains__", "__getattribute__", "__eq__", "get",
          "keys", "values", "items")  # fmt: skip
_BASES = (list, dict, tuple, set, frozenset, deque)


class OpaqueError(Exception):
    """An object whose changes cannot be detected."""

    def __init__(self, x: Any, why: str = "keeps state that cannot be inspected") -> None:
        self.why = f"{with_article(type(x).__name__)}, which {why}"
        super().__init__(self.why)


class Same:
    """An object as a part of a key, equal only to itself, and kept alive."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)


def kind_of(x: Any) -> int:
    """The kind of guard for an object from outside."""
    t = type(x)
    if t in weakref.ProxyTypes:  # what it stands for may be gone
        return OPAQUE
    if is_static_array(x):
        return CONTENTS
    if isinstance(x, np.ndarray) or (number_type(x) is not None and t is not bool):
        return INPUT
    if t is list or t is dict:
        return CONTAINER
    if t is types.BuiltinFunctionType:
        owner = x.__self__
        return CONSTANT if owner is None else min(max(kind_of(owner), CONSTANT), CONTENTS)
    if t is types.MethodWrapperType:
        return FIELDS
    if isinstance(x, _CONSTANTS):
        return CONSTANT
    if isinstance(x, tuple) and not getattr(x, "__dict__", None):
        kinds = (kind_of(item) for item in x)
        return max((kind for kind in kinds if kind != INPUT), default=CONSTANT)
    if t is frozenset and all(kind_of(item) <= CONSTANT for item in x):
        return CONSTANT
    if t is types.MethodType:
        return max(FIELDS, kind_of(x.__self__))
    if t is functools.partial:
        return CONSTANT  # what it holds is guarded where it is called
    if isinstance(x, _OF_RANDOM):
        return FIELDS  # drawing is refused with its own message
    if _is_unchanging(t) or is_callable_of_library(x) or t.__name__ in _CYTHON:
        return CONSTANT
    if t.__name__ == _FORTRAN and find_rule(x) is not None:
        return CONSTANT
    if _reader(t) is not None:
        return CONTENTS
    return FIELDS if has_fields(t) else OPAQUE


_FORTRAN = "fortran"  # of functions, but of Fortran's modules and their data, too
# each compiled module has types of its own
_CYTHON = ("cython_function_or_method", "fused_cython_function")


def _is_unchanging(cls: type) -> bool:
    """Whether no object of a class changes: our own, and factorisations kept by C code."""
    return cls.__module__.startswith("fwdad.") or cls.__name__ in FACTORS


def is_callable_of_library(x: Any) -> bool:
    """Whether something is a function under another name, such as Numba's."""
    module = type(x).__module__
    if module.startswith("numba.") or module == "uarray":
        return True
    wrapped = (
        getattr(x, "__wrapped__", None)
        if module in ("functools", "fwdad.drivers.jitted_function")
        else None
    )
    return wrapped is not None or (module == "numpy" and type(x).__name__ == "vectorize")


def contents(x: Any, arrays: list[Any] | None = None) -> Hashable:
    """All that can be read of an object, as a key that is equal as long as nothing changes.

    The arrays that were met are appended to ``arrays``. ``OpaqueError`` if the object holds
    something that cannot be inspected, or too much.
    """
    reading = _Reading([] if arrays is None else arrays)
    return reading.of(x)


def made(f: Callable[[], Any]) -> tuple[Any, Any]:
    """What a call returns, and what it raises instead."""
    try:
        return f(), None
    except FwdadError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever it raises)
        return None, error


def outcome(y: Any, raised: Any, *, kept: bool) -> Hashable:
    """A key of what a call has returned or raised, which is equal as long as it does the same.

    Of an object that is ``kept`` somewhere it is the object: what is read of it has guards.
    """
    if raised is not None:
        return ("raises", contents(raised))
    return ("returns", Same(y) if kept else contents(y))


def arrays_inside(x: Any) -> list[np.ndarray]:
    """The arrays that are reachable from an object, as the garbage collector sees it."""
    arrays: list[np.ndarray] = []
    waiting: list[Any] = [x]
    seen: set[int] = set()
    while waiting and len(seen) < _REACHED_AT_MOST:
        x = waiting.pop()
        if id(x) in seen or isinstance(x, _CONSTANTS):
            continue
        seen.add(id(x))
        if isinstance(x, np.ndarray):
            arrays.append(x)
        else:
            waiting.extend(referents(x))
    return arrays


def is_users(cls: Any) -> bool:
    """Whether a class is defined in one of the user's files."""
    module = sys.modules.get(cls.__module__)
    if cls.__module__ == "builtins":  # also of a text that is executed without a module's name
        return bool(cls.__flags__ & HEAP_TYPE)
    if module is None:
        return True
    return not is_library_file(getattr(module, "__file__", None) or "")


def is_trusted_module(x: types.ModuleType) -> bool:
    """Whether a module is Python's, NumPy's or SciPy's, whose functions are trusted to stay."""
    name = x.__name__.partition(".")[0]
    return name in ("numpy", "scipy", "fwdad") or name in sys.stdlib_module_names


class _Reading:
    """One traversal of all that an object refers to."""

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []  # an address means one object as long as the object is there
        self.classes: set[type] = set()
        self.bytes = 0

    def of(self, x: Any) -> Hashable:
        t = type(x)
        if t in (int, str, bytes, bool, type(None)):
            return (t, x)
        if t is float:
            return (t, x.hex())  # NaN is itself, and zeros have signs
        if isinstance(x, np.generic) and not x.dtype.hasobject:
            return (t, x.tobytes())
        if id(x) in self.seen:
            return ("again", self.seen[id(x)])
        self.seen[id(x)] = len(self.seen)
        self.kept.append(x)
        self.count(_ITEM, x)
        if isinstance(x, np.ndarray):
            return self._array(x)
        if t is types.FunctionType:
            return self._function(x)
        if t is types.MethodType:
            return (t, self.of(x.__func__), self.of(x.__self__))
        if t is types.BuiltinFunctionType or t is types.MethodWrapperType:
            owner = x.__self__
            if owner is None or isinstance(owner, (types.ModuleType, type)):
                return Same(x)
            return (t, x.__name__, self.of(owner))
        if t is functools.partial:
            return (t, self.of(x.func), self.of(x.args), self.of(x.keywords))
        if t is tuple or t is list:
            return (t, *map(self.of, x))
        if isinstance(x, type) and is_users(x):
            return self._class(x)
        if isinstance(x, _CONSTANTS) or _is_unchanging(t) or t.__name__ in _CYTHON:
            return Same(x)
        if is_callable_of_library(x):
            inner = getattr(x, "__wrapped__", None) or getattr(x, "py_func", None)
            return (Same(x), None if inner is None else self.of(inner))
        read = _reader(t)
        if read is not None:
            fields = () if read in _WHOLE else self._fields(x)
            return (self._class(t), read(self, x), fields)
        if not has_fields(t):
            raise OpaqueError(x)
        return (self._class(t), self._fields(x))

    def count(self, n: int, x: Any) -> None:
        self.bytes += n
        if self.bytes > BYTES_AT_MOST:
            raise OpaqueError(x, "holds more data than can be compared at each call")

    def _array(self, x: np.ndarray) -> Hashable:
        if x.dtype.hasobject:
            return (Same(type(x)), x.dtype.str, x.shape, *map(self.of, x.ravel().tolist()))
        self.count(x.nbytes, x)
        self.arrays.append(x)
        extra = self._fields(x) if type(x) is not np.ndarray else ()
        return (Same(type(x)), x.dtype.str, x.dtype.names, x.shape, x.tobytes(), extra)

    def _fields(self, x: Any) -> Hashable:
        attributes = attributes_of(x)
        if not isinstance(attributes, dict):
            raise OpaqueError(x)
        return tuple([(name, self.of(value)) for name, value in attributes.items()])

    def _class(self, cls: Any) -> Hashable:
        """A class; a user's with its methods, and what these can read."""
        if not is_users(cls) or cls in self.classes:
            return Same(cls)
        self.classes.add(cls)
        members: list[Hashable] = []
        for c in cls.__mro__:
            if not is_users(c):
                continue
            for name, value in list(vars(c).items()):
                if name in ("__dict__", "__weakref__", "__doc__", "__module__"):
                    continue
                inner = getattr(value, "__func__", value)
                if isinstance(value, property):
                    inner = (value.fget, value.fset)
                described = hasattr(type(inner), "__get__")  # by C code, if not by a function
                if (described or name[:2] == "__") and not isinstance(inner, types.FunctionType):
                    members.append((name, Same(inner)))
                else:
                    members.append((name, self.of(inner)))
        return (Same(cls), *members)

    def _function(self, f: types.FunctionType) -> Hashable:
        """A function; a user's with what it reads from outside."""
        code = f.__code__
        if is_library_file(code.co_filename):
            return Same(f)
        cells = []
        for cell in f.__closure__ or ():
            try:
                cells.append(self.of(cell.cell_contents))
            except ValueError:
                cells.append(None)
        read: list[Hashable] = []
        names = _names_of(code)
        for name in names:
            if name not in f.__globals__:
                continue
            value = f.__globals__[name]
            read.append((name, self.of(value)))
            if isinstance(value, types.ModuleType) and not is_trusted_module(value):
                read += [self.of(vars(value)[n]) for n in names if n in vars(value)]
        options = (self.of(f.__defaults__), self.of(f.__kwdefaults__))
        return (Same(f), Same(code), options, tuple(cells), tuple(read))


@functools.lru_cache(maxsize=1024)
def _names_of(code: types.CodeType) -> tuple[str, ...]:
    """The global names and attributes that some code, and code inside it, can look up."""
    names = dict.fromkeys(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names |= dict.fromkeys(_names_of(inner))
    return tuple(names)


# -- objects whose contents are known, beside those whose attributes are all


def held_by_partial(f: Any) -> Hashable:
    """What a partial function holds: numbers and texts by value, other objects by identity."""
    parts = (*f.args, *f.keywords, *f.keywords.values())
    return (Same(f.func), len(f.args), *map(_shallow, parts))


def _shallow(x: Any) -> Hashable:
    t = type(x)
    return contents(x) if t in (int, float, complex, str, bool) else Same(x)


def _items(reading: _Reading, x: Any, iterate: Any = None) -> Hashable:
    return tuple(map(reading.of, x if iterate is None else iterate(x)))


def _of_set(reading: _Reading, x: Any) -> Hashable:
    reading.count(_ITEM * len(x), x)
    order = tuple(set.__iter__(x) if isinstance(x, set) else frozenset.__iter__(x))
    return tuple(map(reading.of, order))


def _of_dict(reading: _Reading, x: Any) -> Hashable:
    pairs = [(reading.of(k), reading.of(v)) for k, v in dict.items(x)]
    return (*pairs, reading.of(getattr(x, "default_factory", None)))


def _of_buffer(reading: _Reading, x: Any) -> Hashable:
    reading.count(memoryview(x).nbytes, x)
    return (getattr(x, "typecode", ""), bytes(x))


def _of_mapping(reading: _Reading, x: Any) -> Hashable:
    return tuple([(reading.of(k), reading.of(v)) for k, v in x.items()])


def _of_exception(reading: _Reading, x: Any) -> Hashable:
    return _items(reading, x.args)


def _of_index(reading: _Reading, x: Any) -> Hashable:
    return (x.dtype.name, reading.of(list(x.names)), reading.of(x.to_numpy()))


def _of_series(reading: _Reading, x: Any) -> Hashable:
    return (reading.of(x.name), _of_index(reading, x.index), x.dtype.name, reading.of(x.to_numpy()))


def _of_frame(reading: _Reading, x: Any) -> Hashable:
    columns = [reading.of(x.iloc[:, k].to_numpy()) for k in range(x.shape[1])]
    types_ = tuple([t.name for t in x.dtypes])
    return (_of_index(reading, x.index), _of_index(reading, x.columns), types_, *columns)


def _of_generator(reading: _Reading, x: Any) -> Hashable:
    return reading.of(generator_state(x))


_READERS: dict[type, Any] = {
    set: _of_set,
    frozenset: _of_set,
    deque: lambda reading, x: (x.maxlen, _items(reading, x, deque.__iter__)),
    list: lambda reading, x: _items(reading, x, list.__iter__),
    tuple: lambda reading, x: _items(reading, x, tuple.__iter__),
    dict: _of_dict,
    array.array: _of_buffer,
    bytearray: _of_buffer,
    types.MappingProxyType: _of_mapping,
    BaseException: _of_exception,
    **dict.fromkeys(_OF_RANDOM, _of_generator),
    functools.partial: lambda reading, x: _items(reading, (x.func, x.args, x.keywords)),
}
_OF_PANDAS = {"Series": _of_series, "DataFrame": _of_frame, "Index": _of_index}
_WHOLE = (_of_generator, _of_series, _of_frame, _of_index)  # for these, attributes add nothing


def _reader(cls: Any) -> Any:
    """A function that reads the contents of a class's objects; None if their attributes are all."""
    reader = _READERS.get(cls)
    if reader is not None:
        return reader
    for base in cls.__mro__[:-1]:
        if base.__module__.startswith("pandas") and base.__name__ in _OF_PANDAS:
            return _OF_PANDAS[base.__name__]
        if base in _READERS:
            if base in _BASES and _overrides(cls):
                return None  # reading does not give what it holds
            return _READERS[base]
    return None


@functools.lru_cache(maxsize=512)
def _overrides(cls: Any) -> bool:
    """Whether a class of containers overrides how its items are read."""
    return any(
        isinstance(vars(c).get(name), types.FunctionType) and is_users(c)
        for c in cls.__mro__
        for name in _READS
    )
