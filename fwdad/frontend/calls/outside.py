"""What a traced program reads from outside."""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
from collections import deque
from typing import Any, NoReturn

import numpy as np

from fwdad.eager.calls.effectful import is_file
from fwdad.eager.lifting.source import find_source
from fwdad.errors import UntraceableError, is_library_file, type_in_words
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.purity import is_of_package
from fwdad.frontend.captures import Captures, fetch, found_again
from fwdad.frontend.guards import (
    CONSTANT,
    CONTAINER,
    CONTENTS,
    FIELDS,
    INPUT,
    OPAQUE,
    OpaqueError,
    contents,
    held_by_partial,
    is_trusted_module,
    is_users,
    kind_of,
    outcome,
)
from fwdad.frontend.slots import class_attribute, is_stand_in, original
from fwdad.frontend.syntax.bound_methods import array_method
from fwdad.frontend.syntax.merge import mutables
from fwdad.frontend.syntax.position import Position
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.symbols import AppendedTo
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import is_static_array, number_type
from fwdad.tangents.namespaces import namespace_of


def _is_of_trace(x: Any) -> bool:
    """Whether a container holds values that are unknown when the program is traced."""
    if isinstance(x, (list, tuple, dict)):
        return any(map(_is_of_trace, x.values() if isinstance(x, dict) else x))
    return not isinstance(x, np.ndarray) and mentions_symbols(x)


def _items(x: Any) -> Any:
    """The items of a Python container; empty for anything else."""
    if isinstance(x, dict):
        return (*x.keys(), *x.values())
    return x if isinstance(x, (list, tuple, set, frozenset, deque)) else ()


def _several(classes: Any) -> Any:
    """The classes of which ``isinstance`` is asked, also in tuples and unions."""
    inside = classes.__args__ if isinstance(classes, types.UnionType) else classes
    return [c for part in inside for c in _several(part)] if isinstance(inside, tuple) else [inside]


def _is_frozen(x: Any) -> bool:
    """Whether something is a frozen dataclass of constants, or of such dataclasses."""
    parameters = getattr(type(x), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return False
    values = [getattr(x, f.name, UNBOUND) for f in dataclasses.fields(x)]
    return all(
        number_type(v) is not None or (v is not UNBOUND and kind_of(v) == CONSTANT) or _is_frozen(v)
        for v in values
    )


def _is_users_function(x: Any) -> bool:
    return isinstance(x, types.FunctionType) and not is_library_file(x.__code__.co_filename)


def _is_table_of_scipy(x: Any, owner: Any) -> bool:
    """Whether something is a dict of whole numbers that a module of SciPy holds: codes by names."""
    if type(x) is not dict or not x or not isinstance(owner, dict):
        return False
    of_scipy = str(owner.get("__name__", "")).partition(".")[0] == "scipy"
    return of_scipy and all(type(v) is int for v in x.values())


def _is_in_package(owner: Any) -> bool:
    """Whether what holds a number is of a package: names of a module, a class, or an object."""
    if isinstance(owner, (dict, types.ModuleType)):
        names = owner if isinstance(owner, dict) else vars(owner)
        return is_library_file(str(names.get("__file__") or ""))
    cls = owner if isinstance(owner, type) else type(owner)
    return is_of_package(cls)


def _holds(x: Any, wanted: list[Any], seen: set[int]) -> bool:
    """Whether a container is, or holds, one of some lists."""
    if any(x is w for w in wanted):
        return True
    if id(x) in seen or not isinstance(x, (list, tuple, dict, deque)):
        return False
    seen.add(id(x))
    return any(_holds(item, wanted, seen) for item in (x.values() if isinstance(x, dict) else x))


_PLAIN = (int, float, complex, str, bytes, type(None), type)
_COMPARING = ("__eq__", "__hash__", "__lt__", "__gt__", "__le__", "__ge__")


class Outside:
    """Reads from outside, and what the tape assumes about them."""

    def __init__(self, recorder: Recorder, position: Position, captures: Captures) -> None:
        self.recorder = recorder
        self.position = position
        self.captures = captures
        self.guards: list[tuple[Any, Any]] = []  # (place, object): what is found there must stay
        self.guarded: set[Any] = set()  # their places
        self.compared: dict[int, Any] = {}  # objects from outside that are compared by contents
        self.read_arrays: list[np.ndarray] = []  # inside of them
        self.bound_arrays: list[np.ndarray] = []  # that are held outside by what has no name
        self.made_arrays: list[np.ndarray] = []  # inside of objects that are made when f is traced
        self.made: dict[int, Any] = {}  # these objects
        self.known_calls: list[tuple[Any, Any]] = []  # where, and what they were given
        self._asked: dict[Any, Any] = {}  # objects and classes, with the places of their guards
        self.kept_paths: list[Any] = []  # places made for guards: they keep their addresses
        self.appends = False  # whether the list that is looked up is appended to
        self.appended: list[Any] = []  # lists from outside that are
        self.containers: list[Any] = []  # lists and dicts from outside that are read

    def captured(self, x: Any, path: Any, name: str) -> Any:
        """A value from outside; numbers and arrays become inputs of the tape."""
        if path[0] == "attribute" and type(path[1]).__module__.startswith("fwdad."):
            return x  # our own objects' options
        kind = kind_of(x)
        number = kind == INPUT and type(x) is int and _is_in_package(path[1])  # an exponent, a mode
        if number or _is_table_of_scipy(x, path[1]):
            self.guard(("contents", path), contents(x))
            return x
        if kind == INPUT:
            return self.captures.value(x, path, name)
        if is_file(x):  # it is written to only
            self.guard(path, x)
            return x
        self._check_kept(x, kind, name)
        if path[0] == "attribute" and fetch(path) is not x:  # C code makes it at each access
            self.guard(("contents", path), self._contents_of(x, name))
        else:
            self.guard(path, x)
        if self.appends and type(x) in (list, deque):
            return AppendedTo(x)
        return self._kept(x, kind, path, name)

    def object_of(self, x: Symbol) -> Any:
        """The object that a number from outside is, which it must stay; UNBOUND if it is none."""
        found = next((c for c in self.captures.found if c.value is x.value), None)
        if found is None:
            return UNBOUND
        self.guard(found.path, held := found.fetch())
        return held

    def of_module(self, module: types.ModuleType, name: str, x: Any) -> Any:
        """An attribute of a module; what Python, NumPy and SciPy define is trusted to stay."""
        if is_trusted_module(module):
            number = number_type(x) is not None
            if number or kind_of(x) == CONSTANT or x is sys.modules:
                return x
        return self.captured(x, ("attribute", module, name), name)

    def note_append(self, x: Any) -> None:
        """Note that the program appends to a list from outside, which it then must not read."""
        if not any(x is known for known in self.appended):
            self.appended.append(x)
        self._check_not_read()

    def _check_not_read(self) -> None:
        """Refuse to read a list that the program appends to: the trace sees its earlier content."""
        if self.appended and any(_holds(c, self.appended, set()) for c in self.containers):
            message = (
                f"{type_in_words(self.appended[-1])} from outside the function is appended to, "
                "and is read, too, which cannot be traced: pass it as an argument, or do only one "
                "of the two"
            )
            raise UntraceableError(message, self.position.location())

    # -- objects

    def is_made(self, x: Any) -> bool:
        """Whether something is an object that code without a source has made for the trace."""
        return id(x) in self.made

    def _check_kept(self, x: Any, kind: int, name: str) -> None:
        """Refuse an object for which no tape can detect changes."""
        if kind == OPAQUE:
            self._refuse_opaque(OpaqueError(x), name)

    def _refuse_opaque(self, found: OpaqueError, name: str) -> NoReturn:
        message = (
            f"`{name}`, defined outside the function, is, or contains, {found.why}, so a tape "
            "cannot detect whether it has changed. Read what you need from it before the call, "
            "and pass that as an argument"
        )
        raise UntraceableError(message, self.position.location())

    def _kept(self, x: Any, kind: int, path: Any, name: str) -> Any:
        """An object from outside as the trace sees it; it is guarded by identity."""
        if kind == CONTAINER or (isinstance(x, tuple) and mutables(x)):
            self.containers.append(x)
            self._check_not_read()
            return self.captures.container(x, path, name)
        if kind == CONTENTS:
            self._guard_contents(x, name)
        owner = getattr(x, "__self__", None) if type(x) is types.BuiltinFunctionType else None
        if type(owner) is np.ndarray and not is_static_array(owner):
            return array_method(self.recorder.as_symbol(owner), x.__name__)
        return x

    def guard(self, path: Any, x: Any) -> None:
        """Note what must be found at a path whenever the tape runs."""
        place = tuple([p if isinstance(p, str) else id(p) for p in path])
        if place not in self.guarded:
            self.guarded.add(place)
            self.guards.append((path, x))

    def looked_up(self, o: Any, key: Any) -> None:
        """Guard what finding a key depends on: a module's name, or what keys compare themselves."""
        if o is sys.modules and isinstance(key, str):
            self.guard_module(key)
        elif isinstance(o, (dict, set, frozenset)) and not isinstance(key, _PLAIN):
            self.read_compared(key, tuple(o))

    def guard_module(self, name: str) -> None:
        """Note which module has a name now, or that none has; a package's own stay."""
        found = sys.modules.get(name, UNBOUND)
        of_package = is_library_file(self.position.frame.filename)
        if not (of_package and isinstance(found, types.ModuleType) and is_trusted_module(found)):
            self.guard(("item", sys.modules, name), found)

    def guard_class(self, cls: type, name: str, found: Any) -> None:
        """Note what a user's class holds under a name."""
        cls = original(cls)
        if is_users(cls) and class_attribute(cls, name) is found:  # a stand-in has its own
            self.guard(("class", cls, name), found)

    def guard_stored(self, o: Any, name: str) -> Any:
        """What the class of an object holds under the name of an attribute that the object has.

        Only whether it decides what is stored, or read, must stay: a default may change.
        """
        cls = original(type(o))
        found = class_attribute(cls, name)
        if found is None or hasattr(type(found), "__set__"):
            self.guard_class(cls, name, found)
        elif is_users(cls):
            self.guard(("kind", cls, name), type(found))
        return class_attribute(type(o), name)

    def guard_special(self, x: Any, name: str) -> Any:
        """What the class of an object holds under a name, which it must go on to find there."""
        found = class_attribute(type(x), name)
        self.guard_class(type(x), name, found)
        self.guard_type(x)
        return found

    def guard_type(self, x: Any) -> bool:
        """Note the class of an object from outside, which can be given another; if it is one."""
        cls = type(x)
        if not is_users(cls) or is_stand_in(cls) or kind_of(x) not in (FIELDS, CONTENTS):
            return False
        if self.recorder.journal.is_own(namespace_of(x)):
            return False
        self.guard(("type", x), cls)
        return True

    def guard_absence(self, o: Any, name: str) -> None:
        """Note that something has no attribute of a name; a package's modules stay as they are."""
        if self.recorder.journal.is_own(namespace_of(o)):
            self.guard_class(type(o), name, None)
            self.guard_class(type(o), "__getattr__", None)
        elif not (isinstance(o, types.ModuleType) and is_trusted_module(o)):
            self.guard(("asked", o, name), False)

    def dispatched(self, dispatch: Any, cls: type) -> Any:
        """The implementation of a generic function for a class: more can be registered."""
        self.guard(("dispatched", dispatch, cls), found := dispatch(cls))
        return found

    def guard_function(self, f: types.FunctionType) -> None:
        """Note a function's code and defaults, which can be replaced in place."""
        self.guard(("attribute", f, "__code__"), f.__code__)
        if f.__defaults__:
            self.guard(("attribute", f, "__defaults__"), f.__defaults__)
        if f.__kwdefaults__:
            bound = functools.partial(f, **f.__kwdefaults__)
            self.guard(("defaults", f), held_by_partial(bound))

    def _guard_contents(self, x: Any, name: str) -> None:
        """Note all that an object holds, because code without a source reads it."""
        path = ("object", x)
        if id(x) not in self.compared:
            self.compared[id(x)] = x
            self.containers.append(x)
            self._check_not_read()
            self.guard(("contents", path), self._contents_of(x, name))
            self.kept_paths.append(path)

    def _contents_of(self, x: Any, name: str) -> Any:
        """All that an object holds, as a key."""
        try:
            return contents(x, self.read_arrays)
        except OpaqueError as found:
            self._refuse_opaque(found, name)

    def read_whole(self, x: Any) -> None:
        """Guard the contents of an argument, or item, that code without a source is about to read.

        What the trace itself has made is not guarded.
        """
        kind = kind_of(x)
        if kind == INPUT or mentions_symbols(x):
            return
        attributes = getattr(x, "__dict__", None)
        if self.recorder.journal.is_own(x) or (
            attributes is not None and self.recorder.journal.is_own(attributes)
        ):
            items = attributes.values() if attributes is not None else ()
            for item in (*items, *_items(x)):
                self.read_whole(item)
        elif kind == CONTAINER or isinstance(x, tuple):
            for item in _items(x):
                self.read_whole(item)
        elif kind in (FIELDS, CONTENTS, OPAQUE) or _is_users_function(x):
            self._guard_contents(x, type(x).__name__)

    def in_c(self, f: Any, *args: Any) -> Any:
        """What a function in C makes of known values, of which it may read everything."""
        for x in args:
            self.read_whole(x)
        return native(f, *args)

    def read_compared(self, *xs: Any) -> None:
        """Guard what code in C compares: contents of objects that do so by methods in Python."""
        waiting, seen = list(xs), set()
        while waiting:
            x = waiting.pop()
            if id(x) in seen:
                continue
            seen.add(id(x))
            waiting += _items(x)
            methods: list[Any] = [getattr(type(x), name, None) for name in _COMPARING]
            methods = [m for m in methods if isinstance(m, types.FunctionType)]
            if methods and _is_frozen(x) and not any(map(find_source, methods)):
                waiting += self._fields(x)
            elif methods:
                self.read_whole(x)

    def _fields(self, x: Any) -> list[Any]:
        """What generated methods of a frozen dataclass compare; to compare its contents is slow."""
        held = {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
        for name in _COMPARING:
            self.guard_special(x, name)
        if self.guard_type(x):
            for name, value in held.items():
                self.guard(("attribute", x, name), value)
        return list(held.values())

    def read_class(self, x: Any) -> None:
        """Guard the class of an object from outside, and those that it inherits from."""
        if self.guard_type(x):
            self.guard(("attribute", type(x), "__mro__"), type(x).__mro__)

    def is_a(self, x: Any, classes: Any) -> bool:
        """``isinstance(x, classes)``, asked at each call where a class may decide by itself."""
        found = isinstance(x, classes)
        self.read_class(x)
        if not mentions_symbols(x):
            self._guard_decision(isinstance, x, classes, type(x), found)
        return found

    def is_subclass(self, cls: Any, classes: Any) -> bool:
        """``issubclass(cls, classes)``, which may be decided as ``isinstance`` is."""
        found: bool = native(issubclass, cls, classes)
        if is_users(cls):
            self.guard(("attribute", cls, "__mro__"), cls.__mro__)
        self._guard_decision(issubclass, cls, classes, cls, found)
        return found

    def _guard_decision(self, ask: Any, x: Any, classes: Any, cls: type, found: bool) -> None:
        """Ask again at each call where one of some classes may decide by itself."""
        decides = any(type(c) is not type and (is_users(c) or is_users(cls))
                      for c in _several(classes) if isinstance(c, type))  # fmt: skip
        if decides and (ask, id(x), id(classes)) not in self._asked:
            place: Any = ("called", ask, (x, classes), {}, False)
            self._asked[ask, id(x), id(classes)] = place
            self.guard(place, outcome(found, None, kept=False))

    def subclasses(self, cls: type) -> list[type]:
        """``cls.__subclasses__()``, of which there can be more."""
        found: list[type] = native(type.__subclasses__, cls)
        self.guard(("subclasses", cls), tuple(found))
        return found

    def stands(self) -> bool:
        """Whether what was read outside is there still."""
        found = [*self.guards, *self.captures.structures]
        return self.captures.stand() and all(found_again(path, x) for path, x in found)

    def check_known_calls(self, *, writes: bool) -> None:
        """Refuse what such calls could read, and the program changes: they are made before it runs.

        ``writes`` says whether it writes into arrays from outside, which anybody may read.
        """
        for place, given in self.known_calls:
            if writes or self.appended or self.recorder.journal.have_changed(given):
                message = (
                    "a package is called here with what is known at trace time, so the call is "
                    "made before the program runs, which changes what it may read: change it "
                    "before the call, or after it"
                )
                raise UntraceableError(message, place)

    def may_change(self, o: Any) -> None:
        """Refuse to change what existed before the trace."""
        if not self.recorder.journal.is_own(o):
            message = (
                f"{type_in_words(o)} that existed before the call is changed, which cannot be "
                "traced: pass it as an argument"
            )
            raise UntraceableError(message, self.position.location())

    def bound(self, x: Any, name: str) -> Any:
        """A default, or an item of a partial function; lists and dicts may change between calls."""
        if isinstance(x, np.ndarray):
            self.bound_arrays.append(x)
            return self.recorder.as_symbol(x)
        is_own = any(map(self.recorder.journal.is_own, x if isinstance(x, tuple) else (x,)))
        if is_own or _is_of_trace(x):
            return x
        kind = kind_of(x)
        if kind == INPUT:
            return x
        self._check_kept(x, kind, name)
        return self._kept(x, kind, ("object", x), name)
