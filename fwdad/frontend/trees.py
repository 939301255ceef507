"""Values flattened into the numbers and arrays of a tape, and rebuilt from them."""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable
from types import MethodType
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError
from fwdad.frontend.arguments import is_record, traced_object
from fwdad.frontend.slots import original
from fwdad.frontend.syntax.growing_lists.growing import Items
from fwdad.frontend.syntax.iterators import Iterator
from fwdad.frontend.syntax.symbols import Maybe, Optional, Poison
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Type, number_type
from fwdad.tangents.fields import constants_of, fields_of
from fwdad.tangents.objects import attributes_of
from fwdad.tangents.zero import NoTangent

_Build = Callable[[list[Any], bool, dict[int, Any]], Any]


class Tree:
    """The structure of a flattened value, which rebuilds it from leaves.

    ``places`` has the leaf of each place, in order, and ``constants`` the parts without tangents
    that may refer to others.
    """

    def __init__(self, build: _Build, places: list[int], constants: list[Any]) -> None:
        self._build = build
        self.places = places
        self.constants = constants

    def __call__(self, leaves: list[Any]) -> Any:
        """The value with other leaves."""
        return self._build(leaves, False, {})

    def tangent(self, leaves: list[Any]) -> Any:
        """A tangent from its leaves; that of a number in a special format is a float."""
        return self._build(leaves, True, {})


def flatten(
    x: Any, *, records: bool = False, once: bool = False, place: Location | None = None
) -> tuple[list[Any], Tree]:
    """The numbers and arrays of a value, and the tree that rebuilds it from others.

    With ``records``, the user's objects are flattened, too. With ``once``, an array, list, dict or
    object in two places is taken once. ``UntraceableError``, at ``place``, if a part may be None or
    missing.
    """
    flat = _Flattening(records=records, once=once, place=place)
    build = flat.take(x)
    return flat.leaves, Tree(build, flat.places, flat.constants)


class _Flattening:
    """A value that is being flattened."""

    def __init__(self, *, records: bool, once: bool, place: Location | None) -> None:
        self.records = records
        self.once = once
        self.place = place
        self.leaves: list[Any] = []
        self.places: list[int] = []
        self.constants: list[Any] = []
        self._known: dict[int, Any] = {}  # the leaf of an array, or how a container is built

    def take(self, x: Any) -> _Build:
        if is_leaf(x):
            return self._leaf(x)
        if self.once and id(x) in self._known:
            return self._again(x)
        if isinstance(x, (tuple, list)):
            return self._sequence(x)
        if isinstance(x, dict):
            return self._dict(x)
        if isinstance(x, Items):
            x.refused("taking or returning, in a differentiated function,")
        if isinstance(x, Iterator):
            raise UntraceableError(
                "an iterator is passed to, or returned by, a recursive or differentiated "
                "function, which cannot be traced: make a list of it"
            )
        if isinstance(x, (Maybe, Optional, Poison)):
            message = (
                "a value that may be None or unbound is used as a whole: return a number or an "
                "array on every path"
            )
            raise UntraceableError(message, self.place)
        if type(x) is MethodType and id(x.__self__) in self._known:
            owner, f = self._again(x.__self__), x.__func__
            return lambda values, t, made: NoTangent if t else MethodType(f, owner(values, t, made))
        return self._object(x) if self.records and is_record(x) else self._constant(x)

    def _leaf(self, x: Any) -> _Build:
        is_array = isinstance(x, np.ndarray) or (type(x) is Symbol and x.is_array)
        k = self._known.get(id(x)) if self.once and is_array else None
        if k is None:
            k = self._known[id(x)] = len(self.leaves)
            self.leaves.append(x)
        self.places.append(k)
        return lambda values, _, __: values[k]

    def _again(self, x: Any) -> _Build:
        """The build of a container that has been taken, or is being taken."""
        known, address = self._known, id(x)

        def build(values: list[Any], t: bool, made: dict[int, Any]) -> Any:
            return made[address] if address in made else known[address](values, t, made)

        return build

    def _sequence(self, x: Any) -> _Build:
        parts: list[_Build] = []
        cls, address = type(x), id(x)

        def fill(values: list[Any], t: bool, made: dict[int, Any]) -> Any:
            held = made[address] = cls()
            held.extend([p(values, t, made) for p in parts])
            return held

        if isinstance(x, list):
            self._known[address] = fill
        parts += [self.take(item) for item in x]
        if isinstance(x, list):
            return fill
        return lambda values, t, made: tuple.__new__(cls, [p(values, t, made) for p in parts])

    def _dict(self, x: Any) -> _Build:
        parts: dict[Any, _Build] = {}
        cls = type(x) if isinstance(x, collections.OrderedDict) else dict
        address = id(x)

        def fill(values: list[Any], t: bool, made: dict[int, Any]) -> Any:
            held = made[address] = cls()
            held.update((key, p(values, t, made)) for key, p in parts.items())
            return held

        self._known[address] = fill
        self.constants += x
        for key, item in x.items():
            parts[key] = self.take(item)
        return fill

    def _object(self, x: Any) -> _Build:
        fields: dict[str, _Build] = {}
        cls, address = type(x), id(x)
        record = getattr(cls, "__fwdad_record__", None)

        def fill(values: list[Any], t: bool, made: dict[int, Any]) -> Any:
            if t and record is not None:
                return fields[record](values, t, made)
            held = made[address] = traced_object(cls)
            for name, part in fields.items():
                object.__setattr__(held, name, part(values, t, made))
            return held

        self._known[address] = fill
        constants = constants_of(original(cls))
        for name, part in fields_of(x).items():
            fields[name] = _kept(part) if name in constants else self.take(part)
        return fill

    def _constant(self, x: Any) -> _Build:
        self.constants.append(x)
        return _kept(x)


def _kept(x: Any) -> _Build:
    """A part without a tangent."""
    return lambda _, t, __: NoTangent if t else x


def made_in(recorder: Any, x: Any) -> Any:
    """Mark the lists, dicts and objects of a value as made by the traced program."""
    _mark(recorder, x, set())
    return x


def _mark(recorder: Any, x: Any, seen: set[int]) -> None:
    if is_leaf(x) or id(x) in seen:
        return
    seen.add(id(x))
    if isinstance(x, (tuple, list)):
        parts = list(x)
    elif isinstance(x, dict):
        parts = list(x.values())
    elif is_record(x):
        parts = list(attributes_of(x).values())
    else:
        return
    for part in parts:
        _mark(recorder, part, seen)
    if not isinstance(x, tuple):
        recorder.journal.own(vars(x) if is_record(x) and not isinstance(x, (list, dict)) else x)


def is_leaf(x: Any) -> bool:
    """Whether a value is one number or array."""
    return type(x) is Symbol or isinstance(x, np.ndarray) or number_type(x) is not None


def signature(x: Any) -> Hashable:
    """The static part of a value: structure, ranks, dtypes and everything that is no leaf."""
    if is_leaf(x):
        return kind(_type(x))
    if isinstance(x, (tuple, list)):
        return (type(x), *(signature(item) for item in x))
    if isinstance(x, dict):
        return (dict, *((key, signature(item)) for key, item in x.items()))
    try:
        hash(x)
    except TypeError:
        return id(x)
    return x


def _type(x: Any) -> Type:
    if type(x) is Symbol:
        return x.type
    if isinstance(x, np.ndarray):
        return ArrayType(x.dtype, x.shape)
    number = number_type(x)
    assert number is not None
    return number


def kind(t: Type) -> Hashable:
    """A type without its lengths."""
    return (t.dtype, t.python) if isinstance(t, Number) else (t.dtype, t.ndim, "array")
