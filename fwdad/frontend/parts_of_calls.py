"""The source text that flattens the arguments of a call, and tests that each part is as it was.

It does what ``Flattened`` does, for calls like one that is known: the same structures and objects
of the same classes, the same shapes and types, the same static values.
"""

from __future__ import annotations

import itertools
import types
from typing import Any, NamedTuple

import numpy as np

from fwdad.errors import FwdadError
from fwdad.frontend.arguments import is_record, static_key
from fwdad.ir.types import number_type
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of

_MOST = 64  # parts: beyond, flattening is no more than a run of the program
_LONGEST = 8 * _MOST  # key, from which on structures are no longer looked into
_PLAIN = (float, int, bool, complex, np.float64, type(None))


class Place(NamedTuple):
    """A part of a call: its name in the text, and what it was."""

    name: str
    example: Any


class Parts:
    """The lines that flatten a call, in a function that returns ``miss`` for other calls.

    ``leaves`` and ``containers`` are those of ``Flattened``, as places. ``possible`` becomes False
    where a text of a line or two does not do.
    """

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"ndarray": np.ndarray}
        self.leaves: list[Place] = []
        self.containers: list[Place] = []
        self.possible = True
        self._lines: list[str] = []
        self._tests: list[str] = []
        self._count = 0

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The places of the arguments of a call, ``args`` and ``kwargs`` in the text."""
        self._tests.append(f"len(args) == {len(args)}")
        self._tests.append(f"[*kwargs] == {[*kwargs]!r}" if kwargs else "not kwargs")
        given = self._unpacked("args", args)
        named = self._unpacked("kwargs.values()", kwargs.values())
        return given, dict(zip(kwargs, named, strict=True))

    def items(self, place: Any) -> tuple[Any, ...]:
        """The places of the items of a tuple."""
        if type(place) is not Place:
            return tuple(place)
        return self._items(place, tuple)

    def named(self, place: Any) -> dict[str, Any]:
        """The places of the values of a dict, by their keys."""
        if type(place) is not Place:
            return dict(place)
        self._tests.append(f"type({place.name}) is dict")
        return self._values(place.name, place.example)

    def example(self, place: Any) -> Any:
        """What is at a place now."""
        return place.example if type(place) is Place else place

    def static(self, place: Any) -> Any:
        """What is at a place, and assumed to be there in the calls to come."""
        if type(place) is not Place:
            return place
        x, held = place.example, self._held(place.example)
        if type(x) in (int, bool, str, tuple):
            same = f"type({place.name}) is type({held}) and {place.name} == {held}"
            self._tests.append(f"({place.name} is {held} or {same})")
        else:
            self._tests.append(f"{place.name} is {held}")
        return x

    def take(self, arguments: list[Place]) -> None:
        """Flatten the arguments of a tape, in order."""
        for place in arguments:
            arrays: dict[int, str] = {}  # an array is one within an argument, not beyond
            self._take(place, arrays)
            self._are_distinct([*arrays.values()])
        self._are_distinct([c.name for c in self.containers])

    def lines(self) -> list[str]:
        """The text."""
        self._flush()
        return self._lines

    def _take(self, place: Place, arrays: dict[int, str]) -> None:
        name, x = place
        if self._count > _MOST:
            self.possible = False
        if not self.possible:
            return
        if type(x) is np.ndarray and id(x) in arrays:
            self._tests.append(f"{name} is {arrays[id(x)]}")
        elif type(x) is np.ndarray or number_type(x) is not None:
            self._tests.append(self.same(name, x))
            self.leaves.append(place)
            if type(x) is np.ndarray:
                arrays[id(x)] = name
        elif isinstance(x, (np.ndarray, types.MethodType)):
            self.possible = False
        elif type(x) is tuple:
            self._take_all(self._items(place, tuple), arrays)
        elif isinstance(x, (list, dict)) or is_record(x):
            self._container(place, arrays)
        else:
            self._constant(place)

    def _take_all(self, places: Any, arrays: dict[int, str]) -> None:
        for place in places:
            self._take(place, arrays)

    def _container(self, place: Place, arrays: dict[int, str]) -> None:
        name, x = place
        for known in self.containers:
            if known.example is x:  # the same object again
                self._tests.append(f"{name} is {known.name}")
                return
        self.containers.append(place)
        if type(x) is list:
            self._take_all(self._items(place, list), arrays)
        elif type(x) is dict:
            self._tests.append(f"type({name}) is dict")
            self._take_all(self._values(name, x).values(), arrays)
        elif _is_plain_object(x):
            self._tests.append(f"type({name}) is {self._held(type(x))}")
            self._take_all(self._values(f"{name}.__dict__", vars(x)).values(), arrays)
        else:
            self.possible = False

    def _items(self, place: Place, cls: type) -> tuple[Place, ...]:
        self._tests.append(f"type({place.name}) is {cls.__name__}")
        self._tests.append(f"len({place.name}) == {len(place.example)}")
        return self._unpacked(place.name, place.example)

    def _values(self, text: str, held: dict[Any, Any]) -> dict[Any, Place]:
        self._tests.append(f"[*{text}] == {self._held(list(held))}")
        return dict(zip(held, self._unpacked(f"{text}.values()", held.values()), strict=True))

    def _constant(self, place: Place) -> None:
        """A value that a tape assumes; by its contents, where it is no constant, only in full."""
        try:
            key = static_key(place.example)
        except FwdadError:
            key = None
        if isinstance(key, tuple) and key[0] == "static":
            self.static(place)
        else:
            self.possible = False

    def _unpacked(self, text: str, items: Any) -> tuple[Place, ...]:
        places = tuple(Place(self._new(), x) for x in items)
        self._flush()
        if places:
            names = ", ".join(place.name for place in places)
            self._lines.append(f"{names}{',' if len(places) == 1 else ''} = {text}")
        return places

    def _are_distinct(self, names: list[str]) -> None:
        if len(names) == 2:
            self._tests.append(f"{names[0]} is not {names[1]}")
        elif len(names) > 2:
            ids = ", ".join(f"id({name})" for name in names)
            self._tests.append(f"len({{{ids}}}) == {len(names)}")

    def same(self, name: str, a: Any) -> str:
        """A text that tests whether a number or an array is like another one."""
        test = f"type({name}) is {self._held(type(a))}"
        if type(a) is not np.ndarray:
            return test
        dtype = self._held(a.dtype)
        of_dtype = f"({name}.dtype is {dtype} or {name}.dtype == {dtype})"
        return f"{test} and {of_dtype} and {name}.shape == {self._held(a.shape)}"

    def _held(self, x: Any) -> str:
        name = f"held{len(self.namespace)}"
        self.namespace[name] = x
        return name

    def _new(self) -> str:
        self._count += 1
        return f"x{self._count}"

    def _flush(self) -> None:
        if self._tests:
            self._lines += [f"if not ({' and '.join(self._tests)}):", "    return miss"]
            self._tests = []


def _is_plain_object(x: Any) -> bool:
    """Whether an object has the attributes in its ``__dict__`` alone, which can be read."""
    namespace, reads = namespace_of(x), getattr(type(x), "__getattribute__", None)
    if namespace is None or reads is not object.__getattribute__:
        return False
    return vars(x) is namespace and attributes_of(x) is namespace


def key_of(args: Any, kwargs: Any) -> Any:
    """A key that is equal for calls that can take the same shortcut."""
    key: list[Any] = []
    for x in args:
        _enter(key, x)
    for name, x in kwargs.items():
        key.append(name)
        _enter(key, x)
    return tuple(key)


def _enter(key: list[Any], x: Any) -> None:
    cls = type(x)
    if cls is np.ndarray:
        key += (x.dtype, x.shape)
        return
    key.append(cls)
    if cls in _PLAIN or len(key) > _LONGEST:
        return
    if cls is str:
        key.append(x)
    elif cls is tuple or cls is list:
        key.append(len(x))
        for item in x[:_MOST]:
            _enter(key, item)
    elif cls is dict or is_record(x):
        held = x if cls is dict else attributes_of(x)
        key.append(len(held))
        for name in itertools.islice(held, _MOST):
            key.append(name)
            _enter(key, held[name])
