"""Values flattened into the numbers and arrays of a tape, and rebuilt from them."""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable
from types import MethodType
from typing import Any

import numpy as np

from fwdad.errors import Location, SeedError, UntraceableError, type_in_words, with_article
from fwdad.frontend.arguments import is_record, traced_object
from fwdad.frontend.slots import original
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.iterators import Iterator, Mapped
from fwdad.frontend.syntax.symbols import Maybe, Optional, Poison
from fwdad.ir.symbol import Symbol, kind_in_words
from fwdad.ir.types import ArrayType, Number, Type, number_type
from fwdad.tangents import composite
from fwdad.tangents.fields import constants_of, fields_of, is_composite, why_not_plain
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of
from fwdad.tangents.registrations import registration_of
from fwdad.tangents.seeds import check_one_array
from fwdad.tangents.zero import NoTangent, NoTangentType, Zero

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

    def by_leaf(self, parts: list[Any]) -> list[Any]:
        """The part for each leaf, of one for each place; SeedError if two for a leaf differ."""
        found: dict[int, Any] = {}
        for k, part in zip(self.places, parts, strict=True):
            if found.setdefault(k, part) is not part:
                raise SeedError(
                    "an array in two places of the argument has one tangent: the seed must have "
                    "one array there, too"
                )
        return [found[k] for k in range(len(found))]

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
        if isinstance(x, (Iterator, Mapped)):
            raise UntraceableError(
                "an iterator is passed to, or returned by, a recursive or differentiated "
                "function, which cannot be traced: make a list of it"
            )
        if isinstance(x, Poison):
            raise UntraceableError(f"what is returned cannot be traced: {x.reason}", self.place)
        if isinstance(x, (Maybe, Optional)):
            message = (
                "a value that may be None or unbound is used as a whole: return a number or an "
                "array on every path"
            )
            raise UntraceableError(message, self.place)
        if type(x) is MethodType and id(x.__self__) in self._known:
            owner, f = self._again(x.__self__), x.__func__
            return lambda values, t, made: NoTangent if t else MethodType(f, owner(values, t, made))
        return self._object(x) if self.records and _is_object(x) else self._constant(x)

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
        if self.records:
            self._check_constant(x)
        self.constants.append(x)
        return _kept(x)

    def _check_constant(self, x: Any) -> None:
        """Raise if a value that is no composite here has parts with tangents."""
        cls, why = original(type(x)), "its class has a __del__, or is a library's"
        known = is_composite(cls)
        if known and composite.flatten(x)[0]:
            raise UntraceableError(f"{type_in_words(x)} cannot be traced: {why}", self.place)
        if any(type(v) is Symbol for v in _held_by(x, apart=known or is_record(x))):
            if not known:
                registered = registration_of(cls) is not None
                why = "it is registered" if registered else why_not_plain(cls) or ""
            what = f"{type_in_words(x)} holds traced values, and is no composite of its fields"
            raise UntraceableError(f"{what}{why and f': {why}'}", self.place)


def _held_by(x: Any, *, apart: bool) -> list[Any]:
    """What an object holds, flattened if its class is one of the user's."""
    if not apart:
        return list((namespace_of(x) or {}).values())
    found: list[Any] = []
    waiting, seen = list(attributes_of(x).values()), {id(x)}
    while waiting:
        part = waiting.pop()
        if is_leaf(part):
            found.append(part)
        elif id(part) not in seen:
            seen.add(id(part))
            waiting += _parts_of(part)
    return found


def _parts_of(x: Any) -> list[Any]:
    """The items of a container, or the attributes of an object."""
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, (tuple, list)):
        return list(x)
    return list(attributes_of(x).values()) if is_record(x) else []


def _is_object(x: Any) -> bool:
    """Whether an object is differentiated field by field, and its attributes are traced."""
    cls = original(type(x))
    return is_record(x) and (is_composite(cls) or hasattr(cls, "__fwdad_record__"))


def _kept(x: Any) -> _Build:
    """A part without a tangent."""
    return lambda _, t, __: NoTangent if t else x


def matched(x: Any, v: Any, what: str = "seed", whose: str = "argument") -> list[Any]:
    """The part of v at each place of a number or array of x, in the order of :func:`flatten`.

    ``ZERO`` stands for zeros at all places of a composite. SeedError if the structures differ, or
    if v differs where x is one list, dict or object in two places.
    """
    found: list[Any] = []
    _match(x, v, (what, whose), found, {})
    return found


def _match(x: Any, v: Any, names: tuple[str, str], found: list[Any], seen: dict[int, Any]) -> None:
    what, whose = names
    if is_leaf(x):
        if has_tangents(x):
            check_one_array(v, what)
        found.append(v)
        return
    if id(x) in seen:
        if seen[id(x)] is not v:
            raise SeedError(
                f"the {whose} has {with_article(type(x).__name__)} in two places: the {what} must "
                "have one object there, too"
            )
        return
    if not isinstance(x, tuple):
        seen[id(x)] = v
    pairs = _pairs_of(x, v, names)
    for part, given in pairs:
        _match(part, given, names, found, seen)


def _pairs_of(x: Any, v: Any, names: tuple[str, str]) -> list[tuple[Any, Any]]:
    """The parts of a container or an object, each with the part of v at its place."""
    what, whose = names
    if not isinstance(x, (dict, tuple, list)):
        return _fields_of_both(x, v, names) if _is_object(x) else []
    items = list(x.values() if isinstance(x, dict) else x)
    if isinstance(v, (Zero, NoTangentType)):
        return [(item, v) for item in items]
    if isinstance(x, dict) and isinstance(v, dict):
        if set(x) != set(v):
            raise SeedError(f"the {what} has the keys {list(v)}, the {whose} {list(x)}")
        return [(item, v[key]) for key, item in x.items()]
    if type(x) is not type(v) or len(x) != len(v):
        raise SeedError(
            f"the {what} must be {with_article(type(x).__name__)} of length {len(x)}, like the "
            f"{whose}; got {kind_in_words(v)}"
        )
    return list(zip(items, v, strict=True))


def _fields_of_both(x: Any, v: Any, names: tuple[str, str]) -> list[tuple[Any, Any]]:
    what, whose = names
    constants = constants_of(original(type(x)))
    own = {name: part for name, part in fields_of(x).items() if name not in constants}
    record = getattr(type(x), "__fwdad_record__", None)
    if isinstance(v, (Zero, NoTangentType)):
        return [(part, v) for part in own.values()]
    if record is not None and not is_record(v):  # the number that it stands for
        return [(own[record], v)]
    given = fields_of(v) if is_record(v) else {}
    # one without a tangent space need not be there
    given = {name: NoTangent for name, part in own.items() if not _is_active(part)} | given
    if set(own) - set(given) or set(given) - set(own) - constants:
        came = f"the fields {list(fields_of(v))}" if is_record(v) else kind_in_words(v)
        raise SeedError(f"the {what} is, or has, {came}; the {whose} has the fields {list(own)}")
    return [(part, given[name]) for name, part in own.items()]


def _is_active(x: Any) -> bool:
    return any(has_tangents(leaf) for leaf in flatten(x, records=True, once=True)[0])


def has_tangents(x: Any) -> bool:
    """Whether a leaf has a tangent space."""
    if isinstance(x, (Symbol, np.ndarray)):
        return x.dtype.kind in "fc"
    number = number_type(x)
    return number is not None and number.dtype.kind in "fc"


def made_in(recorder: Any, x: Any) -> Any:
    """Mark the lists, dicts and objects of a value as made by the traced program."""
    _mark(recorder, x, set())
    return x


def _mark(recorder: Any, x: Any, seen: set[int]) -> None:
    if is_leaf(x) or id(x) in seen:
        return
    seen.add(id(x))
    if not isinstance(x, (tuple, list, dict)) and not is_record(x):
        return
    for part in _parts_of(x):
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
