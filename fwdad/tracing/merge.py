"""Making one value out of what several ways through a program leave in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fwdad.tape.ops import Missing
from fwdad.tape.recorder import Recorder
from fwdad.tape.symbol import UNBOUND, Symbol
from fwdad.tape.types import BOOL, Type, join, number_type
from fwdad.tracing.symbols import Maybe, Optional, Poison

Build = Callable[[list[Any]], Any]


@dataclass
class Leaf:
    """One value of the tape that differs between two ways: what each has, and the joined type."""

    first: Any
    second: Any
    type: Type


class Merger:
    """Merges pairs of contents; what differs is collected in ``leaves``.

    Parameters
    ----------
    recorder : Recorder
        Knows how to capture arrays.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.leaves: list[Leaf] = []
        self._memo: dict[tuple[int, int], Build] = {}
        self._kept: list[Any] = []

    def pair(self, a: Any, b: Any) -> Build:
        """Answer how to build the merged value from the symbols of the leaves."""
        if a is b:
            return lambda _: a
        key = (id(a), id(b))
        if key not in self._memo:
            self._kept.append((a, b))
            made: list[Any] = []
            # a container that is met again inside itself, or twice, is one container
            self._memo[key] = lambda symbols: made[0] if made else _late(made, build, symbols)
            build = self._merged(a, b)
            shared = _once(build) if isinstance(a, (list, dict)) else build
            self._memo[key] = shared
        return self._memo[key]

    def _leaf(self, a: Any, b: Any, t: Type) -> Build:
        k = len(self.leaves)
        self.leaves.append(Leaf(a, b, t))
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
        if type(a) is type(b):
            if isinstance(a, (tuple, list)) and len(a) == len(b):
                parts = [self.pair(x, y) for x, y in zip(a, b, strict=True)]
                return lambda symbols: _sequence(a, [part(symbols) for part in parts])
            if isinstance(a, dict) and list(a) == list(b):
                items = {key: self.pair(a[key], b[key]) for key in a}
                return lambda symbols: {key: part(symbols) for key, part in items.items()}
            if isinstance(a, slice):
                bounds = self.pair((a.start, a.stop, a.step), (b.start, b.stop, b.step))
                return lambda symbols: slice(*bounds(symbols))
            if dataclasses.is_dataclass(a) and a.__dataclass_params__.frozen:  # type: ignore[attr-defined]
                held = self.pair(dict(vars(a)), dict(vars(b)))
                return lambda symbols: _instance(type(a), held(symbols))
            if _equal(a, b):
                return lambda _: a
        reason = (
            f"it is {_kind(a)} on one way through the program and {_kind(b)} on another, which "
            "cannot be one value of a tape"
        )
        return lambda _: Poison(reason)

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
        joined = join(s, t)
        if joined is None:
            reason = f"it is a {s} on one way through the program and a {t} on another"
            return lambda _: Poison(reason)
        return self._leaf(a, b, joined)

    def _flagged(self, a: Any, b: Any, absent: Any, cls: type) -> Build:
        """Present on some ways only: a flag, and the value where it is present."""
        flags = [_flag(x, absent, cls) for x in (a, b)]
        values = [x.value if isinstance(x, cls) else x for x in (a, b)]
        values = [UNBOUND if x is absent else x for x in values]
        if values[0] is UNBOUND and values[1] is UNBOUND:
            return lambda _: absent
        known = values[1] if values[0] is UNBOUND else values[0]
        value = (
            self.pair(*values)
            if UNBOUND not in [v for v in values if v is UNBOUND]
            else self._one_sided(known, first=values[1] is UNBOUND)
        )
        flag = flags[0] if flags[0] is flags[1] else None
        if flag is None:
            k = len(self.leaves)
            self.leaves.append(Leaf(flags[0], flags[1], BOOL))
            return lambda symbols: cls(symbols[k], value(symbols))
        return lambda symbols: cls(flag, value(symbols))

    def _one_sided(self, x: Any, *, first: bool) -> Build:
        """A value that only one way has."""
        t = self._type(x)
        if t is not None:
            return self._leaf(x, Missing(t), t) if first else self._leaf(Missing(t), x, t)
        if isinstance(x, (tuple, list)):
            parts = [self._one_sided(item, first=first) for item in x]
            return lambda symbols: _sequence(x, [part(symbols) for part in parts])
        return lambda _: x


def _once(build: Build) -> Build:
    """Build a mutable container one time for one set of symbols."""
    made: list[Any] = []

    def shared(symbols: list[Any]) -> Any:
        if not made or made[0] is not symbols:
            made[:] = [symbols, build(symbols)]
        return made[1]

    return shared


def _late(made: list[Any], build: Build, symbols: list[Any]) -> Any:
    made.append(build(symbols))
    return made[0]


def _flag(x: Any, absent: Any, cls: type) -> Any:
    if x is absent:
        return False
    return x.flag if isinstance(x, cls) else True


def _sequence(like: Any, items: list[Any]) -> Any:
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def _instance(cls: type, held: dict[str, Any]) -> Any:
    made = cls.__new__(cls)
    made.__dict__.update(held)
    return made


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b) or repr(a) == repr(b)
    except (TypeError, ValueError):
        return False


def _kind(x: Any) -> str:
    return "None" if x is None else f"a {type(x).__name__}"
