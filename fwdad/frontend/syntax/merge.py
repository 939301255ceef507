"""The merging of what several paths through a program leave in one place into one value."""

from __future__ import annotations

import functools
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fwdad.core.containers import of_class
from fwdad.errors import Location, UntraceableError, type_in_words
from fwdad.frontend.arguments import new_object, refuse_attributes
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.slots import original
from fwdad.frontend.syntax.symbols import Maybe, Mergeable, Optional, Poison
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Missing
from fwdad.ir.symbol import UNBOUND, Symbol, kind_in_words
from fwdad.ir.types import (
    BOOL,
    Number,
    Type,
    holds,
    is_static_array,
    join,
    joined_paths,
    number_type,
)
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import has_fields

Build = Callable[[list[Any]], Any]


@dataclass
class Leaf:
    """A value of the tape that differs between two paths: both values, and the joined type."""

    first: Any
    second: Any
    type: Type
    guards: tuple[Any, Any] = (None, None)  # whether each is there, where that is not known


class Merger:
    """A merger of pairs of contents; what differs is collected in ``leaves``.

    Two lists (dicts, objects) become a new one only where nobody else can see that they were two:
    each was made on its path (``first`` and ``second`` have their ids), or is what the place held
    before and no other place does. ``changes`` are those of the two paths: the heap itself is as it
    was before.
    """

    def __init__(
        self,
        recorder: Recorder,
        first: set[int],
        second: set[int],
        here: Location | None = None,
        changes: tuple[Any, Any] = ((), ()),
    ) -> None:
        self.recorder = recorder
        self.here = here  # where the branch is
        self.leaves: list[Leaf] = []
        self._fresh = (first, second)
        self._now = [{id(o): now for o, _, now in each} for each in changes]
        self._memo: dict[tuple[int, int], Build] = {}
        self._partners: dict[int, int] = {}
        self._kept: list[Any] = []
        self._before: set[int] = set()
        self._counts: Counter[int] | None = None
        self._guards: tuple[Any, Any] = (None, None)

    def place(self, before: Any, a: Any, b: Any) -> Build:
        """The result of :meth:`pair` for the contents of a place that held ``before``."""
        self._before = set(mutables(before))
        try:
            return self.pair(a, b)
        finally:
            self._before = set()

    def pair(self, a: Any, b: Any) -> Build:
        """A function that builds the merged value from the symbols of the leaves."""
        if a is b:
            return lambda _: a
        key = (id(a), id(b))
        if key not in self._memo:
            self._kept.append((a, b))
            merged: list[Any] = []
            # a container that is met again inside itself, or twice, is one container
            self._memo[key] = lambda symbols: merged[0] if merged else _late(merged, build, symbols)
            build = self._merged(a, b)
            self._memo[key] = _once(build) if container_of(a) is not None else build
        return self._memo[key]

    def _may_be_one(self, a: Any, b: Any) -> bool:
        """Whether two containers of the same kind can become one new container."""
        for x, partner, fresh in ((a, b, self._fresh[0]), (b, a, self._fresh[1])):
            key = id(container_of(x))
            if key not in fresh and not (key in self._before and self._references(key) <= 1):
                return False
            if self._partners.setdefault(key, id(container_of(partner))) != id(
                container_of(partner)
            ):
                return False
        return True

    def _references(self, held: int) -> int:
        """How many places of the program's own heap hold a container."""
        if self._counts is None:
            self._counts = Counter()
            for o in self.recorder.journal.heap():
                for item in o.values() if isinstance(o, dict) else o:
                    self._counts.update(shallow(item))
        return self._counts[held]

    def _leaf(self, a: Any, b: Any, t: Type) -> Build:
        k = len(self.leaves)
        self.leaves.append(Leaf(a, b, t, self._guards))
        return lambda symbols: symbols[k]

    def _merged(self, a: Any, b: Any) -> Build:
        if isinstance(a, Poison) or isinstance(b, Poison):
            poison = a if isinstance(a, Poison) else b
            return lambda _: poison
        if a is UNBOUND or b is UNBOUND or isinstance(a, Maybe) or isinstance(b, Maybe):
            return self._flagged(a, b, UNBOUND, Maybe)
        if a is None or b is None or isinstance(a, Optional) or isinstance(b, Optional):
            return self._flagged(a, b, None, Optional)
        s, t = self._type(a), self._type(b)
        if s is not None and t is not None:
            return self._numbers(a, b, s, t)
        if type(a) is type(b) and not is_static_array(a):
            merged = self._alike(a, b)
            if merged is not None:
                return merged
        first, second = kind_in_words(a), kind_in_words(b)
        reason = (
            f"it is {first} on one path and {second} on another; make it the same kind of value "
            "on every path"
        )
        if first == second:
            reason = (
                f"it is {first} on one path and another one on the other, and values can choose "
                "between numbers and arrays only: use it inside of the branch"
            )
        return lambda _: Poison(reason, self.here, (a, b))

    def _alike(self, a: Any, b: Any) -> Build | None:
        """A builder for two contents of the same class; None if they cannot be merged."""
        if isinstance(a, tuple) and len(a) == len(b):
            refuse_attributes(a, self.recorder.place())
            parts = [self.pair(x, y) for x, y in zip(a, b, strict=True)]
            return lambda symbols: of_class(type(a), [part(symbols) for part in parts])
        if isinstance(a, slice):
            bounds = self.pair((a.start, a.stop, a.step), (b.start, b.stop, b.step))
            return lambda symbols: slice(*bounds(symbols))
        if container_of(a) is not None and not _frozen(a) and not self._may_be_one(a, b):
            reason = (
                f"which {_class_name(a)} it is depends on a value; choose between numbers or "
                "arrays instead"
            )
            return lambda _: Poison(reason, self.here, (a, b))
        fresh = self.recorder.journal.fresh
        first, second = (
            now.get(id(o), o) if (o := container_of(x)) is not None else ()
            for now, x in zip(self._now, (a, b), strict=True)
        )
        if isinstance(a, Mergeable):
            if not a.rebuilt or not a.is_like(b):
                return None
            parts = [self.pair(x, y) for x, y in zip(a.parts(first), b.parts(second), strict=True)]
            return lambda symbols: a.anew([part(symbols) for part in parts])
        if type(a) is list and len(first) == len(second):
            parts = [self.pair(x, y) for x, y in zip(first, second, strict=True)]
            place = self._place(a) or self._place(b)
            return lambda symbols: self._listed([part(symbols) for part in parts], place)
        if type(a) is dict and list(first) == list(second):
            items = {key: self.pair(first[key], second[key]) for key in first}
            return lambda symbols: fresh({key: part(symbols) for key, part in items.items()})
        if is_object(a) and _can_be_made_anew(a) and list(first) == list(second):
            attributes = {key: self.pair(first[key], second[key]) for key in first}
            return lambda symbols: self._instance(type(a), attributes, symbols)
        return (lambda _: a) if not isinstance(a, (list, dict)) and _equal(a, b) else None

    def _place(self, x: list[Any]) -> Any:
        """Where a list is made, if that is known."""
        made, place = self.recorder.places.get(id(x), (None, None))
        return place if made is x else None

    def _listed(self, items: list[Any], place: Any) -> list[Any]:
        """A list that is merged of two, one of which is made at a place."""
        self.recorder.places[id(items)] = (items, place)
        made: list[Any] = self.recorder.journal.fresh(items)
        return made

    def _instance(self, cls: Any, held: dict[str, Build], symbols: list[Any]) -> Any:
        instance = new_object(cls)
        vars(instance).update({key: part(symbols) for key, part in held.items()})
        self.recorder.journal.own(vars(instance), namespace=True)
        return instance

    def _type(self, x: Any) -> Type | None:
        if type(x) is Symbol:
            return x.type
        if isinstance(x, Missing):
            return x.type
        return number_type(x)

    def _numbers(self, a: Any, b: Any, s: Type, t: Type) -> Build:
        if not isinstance(a, (Symbol, Missing)) and not isinstance(b, (Symbol, Missing)):
            if s == t and _equal(a, b):
                return lambda _: a
        joined = _joined(a, b, s, t)
        if joined is None:
            reason = f"its type is {s} on one path and {t} on another"
            return lambda _: Poison(reason, self.here)
        return self._leaf(a, b, joined)

    def _flagged(self, a: Any, b: Any, absent: Any, cls: Any) -> Build:
        """A builder for a value that some paths lack: a flag, and the value where there is one."""
        flags = [_flag(x, absent, cls) for x in (a, b)]
        values = [x.value if isinstance(x, cls) else x for x in (a, b)]
        values = [UNBOUND if x is absent else x for x in values]
        if values[0] is UNBOUND and values[1] is UNBOUND:
            return lambda _: absent
        known = values[1] if values[0] is UNBOUND else values[0]
        outer = self._guards
        now = [x if type(x) is Symbol else old for x, old in zip(flags, outer, strict=True)]
        self._guards = (now[0], now[1])
        value = (
            self.pair(*values)
            if UNBOUND not in [v for v in values if v is UNBOUND]
            else self._one_sided(known, first=values[1] is UNBOUND)
        )
        self._guards = outer
        flag = flags[0] if flags[0] is flags[1] else None
        if flag is None:
            k = len(self.leaves)
            self.leaves.append(Leaf(flags[0], flags[1], BOOL))
            return lambda symbols: cls(symbols[k], value(symbols))
        return lambda symbols: cls(flag, value(symbols))

    def _one_sided(self, x: Any, *, first: bool) -> Build:
        """A builder for a value that only one path has."""
        t = self._type(x)
        if t is not None:
            return self._leaf(x, Missing(t), t) if first else self._leaf(Missing(t), x, t)
        if isinstance(x, tuple):
            refuse_attributes(x, self.recorder.place())
            parts = [self._one_sided(item, first=first) for item in x]
            return lambda symbols: of_class(type(x), [part(symbols) for part in parts])
        if isinstance(x, slice):
            bounds = self._one_sided((x.start, x.stop, x.step), first=first)
            return lambda symbols: slice(*bounds(symbols))
        if isinstance(x, (Maybe, Optional)):
            return self._one_sided_flagged(x, first=first)
        if isinstance(x, functools.partial) and mentions_symbols((x.args, x.keywords)):
            reason = f"it is {kind_in_words(x)} that is made on one path only"
            return lambda _: Poison(reason, self.here)
        if isinstance(x, Mergeable) and x.own is None:
            return self._copied(x, first=first) if x.rebuilt else lambda _: x
        container = container_of(x)
        if container is None or id(container) not in self._fresh[0 if first else 1]:
            return lambda _: x  # it was there before, and is itself
        if self._partners.setdefault(id(container), 0) != 0:
            reason = f"it is {type_in_words(x)} that is a different object on another path"
            return lambda _: Poison(reason, self.here)
        if not isinstance(x, Mergeable) and not _can_be_made_anew(x):
            reason = f"it is {type_in_words(x)}, with state in C, that is made on one path only"
            return lambda _: Poison(reason, self.here)
        memo = (id(container), 0)
        if memo not in self._memo:
            self._kept.append(x)
            self._memo[memo] = _once(self._copied(x, first=first))
        return self._memo[memo]

    def _one_sided_flagged(self, x: Maybe | Optional, *, first: bool) -> Build:
        """A builder for a value that only one path has, and that not always."""
        outer = self._guards
        flag = x.flag if type(x.flag) is Symbol else None
        self._guards = (flag, outer[1]) if first else (outer[0], flag)
        value = self._one_sided(x.value, first=first)
        self._guards = outer
        k = len(self.leaves)
        self.leaves.append(Leaf(x.flag, False, BOOL) if first else Leaf(False, x.flag, BOOL))
        cls: Any = type(x)
        return lambda symbols: cls(symbols[k], value(symbols))

    def _copied(self, x: Any, *, first: bool) -> Build:
        """A builder for a container that was made on one path only."""
        if isinstance(x, Mergeable):
            own = self._now[0 if first else 1].get(id(x.own), x.own)
            parts = [self._one_sided(part, first=first) for part in x.parts(own)]
            return lambda symbols: x.anew([part(symbols) for part in parts])
        if isinstance(x, list):
            items = [self._one_sided(item, first=first) for item in x]
            return lambda symbols: self.recorder.journal.fresh([item(symbols) for item in items])
        held = x if isinstance(x, dict) else vars(x)
        fields = {key: self._one_sided(item, first=first) for key, item in held.items()}
        if isinstance(x, dict):
            return lambda symbols: self.recorder.journal.fresh(
                {k: p(symbols) for k, p in fields.items()}
            )
        return lambda symbols: self._instance(type(x), fields, symbols)


def _joined(a: Any, b: Any, s: Type, t: Type) -> Type | None:
    """The type of two contents; NumPy's where it holds a constant of Python's."""
    for x, one, other in ((a, s, t), (b, t, s)):
        if isinstance(one, Number) and isinstance(other, Number) and holds(other, x):
            return replace(other, paths=joined_paths(one, other))
    return join(s, t)


_NOT_OBJECTS = (
    type, types.ModuleType, types.FunctionType, types.MethodType, Symbol, Poison, Maybe, Optional
)  # fmt: skip


def _class_name(x: Any) -> str:
    return kind_in_words(x) if isinstance(x, Mergeable) else type(x).__name__


def is_object(x: Any) -> bool:
    """Whether a content is an object that consists of its attributes."""
    if isinstance(x, _NOT_OBJECTS):
        return False
    ours = type(x).__module__.startswith("fwdad.") and not hasattr(type(x), "__fwdad_record__")
    if ours or type(x).__module__.startswith(("numpy", "functools", "builtins")):
        return False
    return isinstance(namespace_of(x), dict) and not isinstance(x, (list, dict, tuple))


def container_of(x: Any) -> Any:
    """A mutable's contents: a list or dict itself, an object's ``__dict__``; None for others."""
    if type(x) in (list, dict):
        return x
    if isinstance(x, Mergeable):
        return x.own
    return vars(x) if is_object(x) else None


def shallow(x: Any) -> Iterator[int]:
    """The ids of the containers that a content refers to directly."""
    if isinstance(x, tuple):
        for item in x:
            yield from shallow(item)
    elif isinstance(x, (Maybe, Optional)):
        yield from shallow(x.value)
    else:
        container = container_of(x)
        if container is not None:
            yield id(container)


def mutables(x: Any, seen: set[int] | None = None) -> set[int]:
    """The ids of all containers that can be reached from a content."""
    seen = set() if seen is None else seen
    if isinstance(x, tuple):
        for item in x:
            mutables(item, seen)
    elif isinstance(x, (Maybe, Optional)):
        mutables(x.value, seen)
    else:
        container = container_of(x)
        if container is not None and id(container) not in seen:
            seen.add(id(container))
            for item in container.values() if isinstance(container, dict) else container:
                mutables(item, seen)
    return seen


def _can_be_made_anew(x: Any) -> bool:
    """Whether the attributes of an object are all that it holds."""
    cls = original(type(x))
    return cls in (list, dict) or has_fields(cls) or issubclass(cls, BaseException)


def _frozen(x: Any) -> bool:
    parameters = getattr(type(x), "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


def _once(build: Build) -> Build:
    """A builder that builds a mutable container once for each set of symbols."""
    made: list[Any] = []

    def shared(symbols: list[Any]) -> Any:
        if not made or made[0] is not symbols:
            made[:] = [symbols, build(symbols)]
        return made[1]

    return shared


def _late(made: list[Any], build: Build, symbols: list[Any]) -> Any:
    made.append(build(symbols))
    return made[0]


def _flag(x: Any, absent: Any, cls: Any) -> Any:
    if x is absent:
        return False
    return x.flag if isinstance(x, cls) else True


def _equal(a: Any, b: Any) -> bool:
    """Whether two known objects are equal; their texts do not tell of what is unknown in them."""
    if mentions_symbols((a, b)):
        return False
    try:
        return bool(a == b) or repr(a) == repr(b)
    except (TypeError, ValueError, UntraceableError):
        return False
