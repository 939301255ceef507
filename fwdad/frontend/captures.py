"""Captures: the inputs of a program that come from outside, and where they are found."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import FwdadError, UntraceableError, type_in_words
from fwdad.frontend.arguments import (
    Flattened,
    Lengths,
    leaf_key,
    leaf_type,
    refuse_subclass,
)
from fwdad.frontend.guards import OpaqueError, contents, held_by_partial, made, outcome
from fwdad.frontend.slots import attribute_after, class_attribute
from fwdad.ir.builder.array_contents import may_be_option
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Value
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import ArrayType, Number
from fwdad.tangents.namespaces import namespace_of

_CAPTURED_AT_MOST = 512


def fetch(path: Any) -> Any:
    """What is found at a path in the outside world; ``UNBOUND`` if nothing is."""
    kind, *where = path
    if kind == "cell":
        try:
            return where[0].cell_contents
        except ValueError:  # it is empty by now
            return UNBOUND
    if kind == "item":
        return where[0].get(where[1], UNBOUND)
    if kind == "structure":
        try:
            return Flattened((where[0],), {}, outside=True).key
        except UntraceableError:
            return UNBOUND
    if kind == "inside":
        return _inside(where[0], where[1])
    if kind == "attribute":
        return getattr(where[0], where[1], UNBOUND)
    if kind == "asked":
        return hasattr(where[0], where[1])
    if kind == "class":
        return class_attribute(where[0], where[1])
    if kind == "kind":
        return type(class_attribute(where[0], where[1]))
    if kind == "after":
        return attribute_after(*where)
    if kind == "dispatched":
        return where[0](where[1])
    if kind == "subclasses":
        return tuple(type.__subclasses__(where[0]))
    if kind == "type":
        return type(where[0])
    if kind == "method":
        return _of_class(*where)
    if kind == "hooked":
        return _without_hook(*where)
    if kind == "contents":
        return _contents(fetch(where[0]))
    if kind == "lengths":
        found = fetch(where[0])
        return UNBOUND if found is UNBOUND else np.shape(found)
    if kind == "defaults":
        return held_by_partial(functools.partial(where[0], **(where[0].__kwdefaults__ or {})))
    if kind == "partial":
        return held_by_partial(where[0])
    if kind == "called":
        return _outcome(*where)
    return where[0]


COMPARED = ("structure", "contents", "lengths", "partial", "defaults", "called", "subclasses")
"""Kinds of places of which what is there is compared by value; at all others it is the object."""


def found_again(path: Any, held: Any) -> bool:
    """Whether what is found at a path now is what was found there."""
    now = fetch(path)
    return now is held or (path[0] in COMPARED and bool(now == held))


def _contents(x: Any) -> Any:
    """What an object holds; ``UNBOUND`` if that can no longer be determined."""
    try:
        return contents(x)
    except OpaqueError:
        return UNBOUND


def _of_class(o: Any, name: str) -> Any:
    """What the class of an object has by a name; ``UNBOUND`` if the object has it itself."""
    return UNBOUND if name in (namespace_of(o) or ()) else class_attribute(type(o), name)


def _without_hook(o: Any, name: str) -> Any:
    """What the class of an object that lacks an attribute has by that name; ``UNBOUND`` if set."""
    attribute = _of_class(o, name)
    if isinstance(attribute, types.MemberDescriptorType):
        try:
            attribute.__get__(o)
        except AttributeError:  # the slot is empty
            return attribute
        return UNBOUND
    return attribute


def _outcome(f: Any, args: Any, kwargs: Any, kept: bool) -> Any:
    """What a call returns or raises; ``UNBOUND`` if it cannot be compared."""
    try:
        return outcome(*made(lambda: f(*args, **kwargs)), kept=kept)
    except (OpaqueError, FwdadError):
        return UNBOUND


def _inside(x: Any, keys: tuple[Any, ...]) -> Any:
    """A leaf of a container; ``UNBOUND`` if it is no longer there."""
    for key in keys:
        try:
            x = x[key]
        except (LookupError, TypeError):
            return UNBOUND
    return x


@dataclass
class Capture:
    """A value from outside that a program reads: its path and its input."""

    path: Any
    value: Value
    key: Any

    def fetch(self) -> Any:
        """The present value."""
        return fetch(self.path)


class Captures:
    """The captures of a program, each place and each array once."""

    def __init__(self, recorder: Recorder, arguments: int, lengths: Lengths) -> None:
        self.recorder = recorder
        self.arguments = arguments
        self.lengths = lengths
        self.found: list[Capture] = []
        self.structures: list[tuple[Any, Any]] = []
        self.same: list[tuple[Any, Any]] = []
        self._by_place: dict[Any, Symbol] = {}
        self._names: dict[int, list[Any]] = {}  # the places of each array
        self._containers: dict[int, Any] = {}

    def value(self, x: Any, path: Any, name: str) -> Symbol:
        refuse_subclass(x, self.recorder.place())
        place = _place_of(path)
        if isinstance(x, np.ndarray):
            place = ("array", id(x))
            self._note_name(x, path)
        if place not in self._by_place:
            k = self.arguments + len(self.found)
            value = Value(leaf_type(x, k, lengths=self.lengths), name)
            if isinstance(value.type, Number) or may_be_option(x):
                self.recorder.examples.of[value] = (k, x)
            self.recorder.lengths.measure_input(value)
            self.found.append(Capture(path, value, leaf_key(x)))
            self._by_place[place] = Symbol(value, self.recorder)
        return self._by_place[place]

    def stand(self) -> bool:
        """Whether each place still has the number or the array that was found there."""
        for c in self.found:
            now = c.fetch()
            if isinstance(now, np.ndarray):
                symbol = self._by_place.get(("array", id(now)))
                if symbol is None or symbol.value is not c.value:
                    return False
            elif contents(now) != contents(self.recorder.examples.of[c.value][1]):
                return False
        return True

    def _note_name(self, x: np.ndarray, path: Any) -> None:
        """Note each path at which an array is found; the tape has one input for all of them."""
        first, *others = self._names.setdefault(id(x), [path])
        known = {_place_of(p) for p in (first, *others)}
        if _place_of(path) not in known:
            self._names[id(x)].append(path)
            self.same.append((first, path))

    def assumed(self, arguments: list[Any]) -> list[tuple[int, int, int]]:
        """The lengths for which the tape is written."""
        return [
            (k, axis, n)
            for k, x in enumerate([*arguments, *(c.fetch() for c in self.found)])
            if isinstance(x, np.ndarray)
            for axis, n in enumerate(x.shape)
            if n > 1 and self.lengths.assumes(x, k, axis)
        ]

    def container(self, x: Any, path: Any, name: str) -> Any:
        """A list or dict from outside: its leaves become inputs, its structure must not change."""
        if id(x) not in self._containers:
            try:
                flat = Flattened((x,), {}, outside=True)
            except UntraceableError as error:
                message = f"in `{name}`, defined outside the function: {error.msg}"
                raise UntraceableError(message, self.recorder.place()) from error
            if len(flat.leaves) > _CAPTURED_AT_MOST:
                message = (
                    f"`{name}`, defined outside the function, is {type_in_words(x)} of more than "
                    f"{_CAPTURED_AT_MOST} numbers: make it an array"
                )
                raise UntraceableError(message, self.recorder.place())
            self.structures.append((("structure", x), flat.key))
            leaves = [
                self.value(leaf, ("inside", x, keys), name)
                for keys, leaf in zip(flat.paths, flat.leaves, strict=True)
            ]
            known = {k: self._containers.get(id(c)) for k, c in enumerate(flat.containers)}
            known = {k: made for k, made in known.items() if made is not None}
            (made,), _, rebuilt = flat.rebuild(leaves, known)
            self._containers |= zip(map(id, flat.containers), rebuilt, strict=True)
            self._containers[id(x)] = made
        return self._containers[id(x)]

    def array(self, x: np.ndarray) -> Symbol:
        """An array that is a constant of the program; the object itself is kept."""
        refuse_subclass(x, self.recorder.place())
        place = ("array", id(x))
        self._note_name(x, ("object", x))
        if place not in self._by_place:
            value = Value(ArrayType(x.dtype, x.shape), "a")
            if may_be_option(x):
                self.recorder.examples.of[value] = (self.arguments + len(self.found), x)
            self.found.append(Capture(("object", x), value, leaf_key(x)))
            self.recorder.lengths.measure_input(value)
            self._by_place[place] = Symbol(value, self.recorder)
        return self._by_place[place]


def _place_of(path: Any) -> Any:
    return (path[0], id(path[1]), *path[2:])
