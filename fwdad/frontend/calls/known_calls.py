"""Calls of packages whose arguments are all known: Python makes them when a program is traced.

It makes them again whenever their tape is about to run: the result is a constant of the tape as
long as it is the same. So nothing need be known of what they read. What they write would be written
at other times than the program says, so a call that changes anything is refused.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import random
import types
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.core.existing_objects import Existing
from fwdad.eager.build import Run as Watched
from fwdad.eager.build import generator_state
from fwdad.eager.calls.dispatch import call
from fwdad.errors import FwdadError, UntraceableError, message_of
from fwdad.frontend.arguments import new_object
from fwdad.frontend.calls.kinds import CONTAINERS
from fwdad.frontend.calls.made_objects import adopted, held_by
from fwdad.frontend.guards import CONSTANT, OpaqueError, contents, kind_of, made, outcome
from fwdad.frontend.slots import is_stand_in, original
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import Held, OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol, UnknownText
from fwdad.rules.core.registry import function_name
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of, set_attributes

_UNKNOWN = (Symbol, UnknownText, Held, OfTrace)
"""What stands for values of the program."""
_AT_MOST = 20_000  # objects that are looked at


def known_call(tracer: Tracer, f: Any, args: Any, kwargs: Any) -> Any:
    """The result of a call of what is known.

    Raises UntraceableError if its result cannot be compared, or it changes something.
    """
    outside = tracer.outside
    own, kept_own = containers_of_the_program(tracer, (f, args, kwargs))
    given, later = Given(tracer), Given(tracer, copies=True)
    at_each_run = later.of(args), later.of(kwargs)
    try:
        first = _first(tracer, f, (given.of(args), given.of(kwargs)), own)
        given.check_unchanged()
        again = made(lambda: f(*at_each_run[0], **at_each_run[1]))
        kept = first[0] is again[0] and kind_of(first[0]) > CONSTANT
        key = outcome(*again, kept=kept)
        if outcome(*first, kept=kept) != key:
            raise UntraceableError("it returns something else each time")
    except OpaqueError as error:
        raise UntraceableError(f"it is given, or its result is or holds, {error.why}") from None
    except FwdadError as error:
        raise UntraceableError(message_of(error)) from None
    y, raised = first
    if given.made and _holds_one_of(y, given.made):
        raise UntraceableError("it returns an object with slots that it is given")
    place = ("called", f, *at_each_run, kept)
    outside.guard(place, key)
    outside.kept_paths.append(place)
    outside.known_calls.append((tracer.position.location(), kept_own))
    del first, given
    if raised is not None:
        raise AlwaysRaises(raised)
    return adopted(tracer, y, again[0], function_name(f))


def are_known(tracer: Tracer, x: Any) -> bool:
    """Whether nothing that a call is given is unknown when it is traced."""
    try:
        containers_of_the_program(tracer, x)
    except UntraceableError:
        return False
    return True


def _first(tracer: Tracer, f: Any, given: tuple[Any, Any], own: list[Any]) -> tuple[Any, Any]:
    """What the first call returns or raises; it is watched, so that all that it writes is seen."""
    args, kwargs = given
    if not isinstance(f, (types.FunctionType, types.MethodType, type)):  # in C: nothing is seen
        before = contents((f, args, tuple(kwargs.items())))
        y = made(lambda: f(*args, **kwargs))
        if contents((f, args, tuple(kwargs.items()))) != before:
            raise UntraceableError(_CHANGES)
        return y
    found = _unless_it_writes(f, args, kwargs)
    if found is None:
        with watched():
            made(lambda: call(f, *args, **kwargs))
            stands = tracer.outside.stands()
        if not stands:
            raise UntraceableError("it writes what the program has read before")
        made(lambda: f(*args, **kwargs))  # what it keeps for all later calls, it keeps by now
        found = _unless_it_writes(f, args, kwargs)
    if found is None:
        raise UntraceableError(WRITES)
    if tracer.recorder.journal.have_changed(own):
        raise UntraceableError(_CHANGES)
    return found


_CHANGES = "it changes what it is given"
WRITES = "it writes outside of it, or draws random numbers"


def _unless_it_writes(f: Any, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
    """What a call returns or raises; None if only the first of such calls writes outside of it.

    Raises UntraceableError if each of them does.
    """
    with watched() as (run, existed):
        found = made(lambda: call(f, *args, **kwargs))
        if not run.log.reaches(existed) and not draws(run, existed):
            run.log.clear()  # what was written is new, and stays
            return found
        with watched() as (second, existed_by_now):
            made(lambda: call(f, *args, **kwargs))
            if second.log.reaches(existed_by_now) or run.log.arrays() or draws(run, existed):
                raise UntraceableError(WRITES)
    return None


def containers_of_the_program(tracer: Tracer, x: Any) -> tuple[list[Any], list[Any]]:
    """The containers of the program's own among what a call is given, with their contents.

    And those among them that are found as they are whenever the tape runs: of others it has copies.
    Raises UntraceableError if what is given holds anything that is unknown when it is traced.
    """
    journal = tracer.recorder.journal
    own: list[Any] = []
    kept: list[Any] = []
    waiting, seen = [(x, True)], set()
    while waiting:
        o, replaceable = waiting.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        standing_in = is_stand_in(type(o))
        if isinstance(o, _UNKNOWN) or len(seen) > _AT_MOST or (standing_in and not replaceable):
            raise UntraceableError("it is given what is known only when the program runs")
        held = namespace_of(o)
        found = [c for c in (o, held) if journal.is_own(c)]
        replaceable = replaceable and (standing_in or type(o) in _REBUILT)
        own += found
        kept += [] if replaceable else found
        waiting += [(part, replaceable) for part in _parts(o)]
        if tracer.outside.is_made(o) and not standing_in:
            waiting += [(part, False) for part in held_by(o)]
        elif isinstance(held, dict) and journal.is_own(held):
            waiting += [(part, replaceable) for part in held.values()]
    return journal.contents_of(own), journal.contents_of(kept)


_REBUILT = (tuple, *CONTAINERS)


class Given:
    """Arguments as Python is given them: objects with slots instead of what stands in for them.

    With ``copies``, the program's own containers as they are now. ``made`` are such objects, and
    what holds them.
    """

    def __init__(self, tracer: Tracer, *, copies: bool = False) -> None:
        self.made: list[Any] = []
        self._is_own = tracer.recorder.journal.is_own
        self._copies = copies
        self._known: dict[int, Any] = {}
        self._standing_in: list[tuple[Any, dict[str, Any]]] = []

    def check_unchanged(self) -> None:
        """Refuse what Python has written into such objects: the program's own do not have it."""
        for o, before in self._standing_in:
            now = attributes_of(o)
            if now.keys() != before.keys() or any(now[k] is not before[k] for k in now):
                raise UntraceableError(_CHANGES)

    def of(self, x: Any) -> Any:
        """One of them, or what holds some."""
        if id(x) not in self._known:
            self._known[id(x)] = x  # of what refers to itself: it is the program's own
            self._known[id(x)] = self._built(x)
        return self._known[id(x)]

    def _built(self, x: Any) -> Any:
        if is_stand_in(type(x)):
            made = new_object(original(type(x)))
            self._known[id(x)] = made
            set_attributes(made, {name: self.of(item) for name, item in vars(x).items()})
            self._standing_in.append((made, dict(attributes_of(made))))
        elif type(x) is dict:
            made = {key: self.of(item) for key, item in x.items()}
            if not self._is_replaced(x, x.values(), made.values()):
                return x
        elif type(x) in _REBUILT:
            made = type(x)(map(self.of, x))
            if not self._is_replaced(x, x, made):
                return x
        else:
            return x
        self.made.append(made)
        return made

    def _is_replaced(self, x: Any, items: Any, made: Any) -> bool:
        if self._copies and self._is_own(x):
            return True
        return any(a is not b for a, b in zip(items, made, strict=True))


def _holds_one_of(x: Any, wanted: list[Any]) -> bool:
    """Whether one of some objects can be reached from a result."""
    ids = set(map(id, wanted))
    waiting: list[Any] = [x]
    seen: set[int] = set()
    while waiting:
        o = waiting.pop()
        if id(o) in ids or len(seen) > _AT_MOST:
            return True
        if id(o) not in seen:
            seen.add(id(o))
            waiting += held_by(o)
    return False


def _parts(o: Any) -> list[Any]:
    """What is a part of an object whoever holds it."""
    if isinstance(o, dict):
        return [*dict.keys(o), *dict.values(o)]
    if isinstance(o, (list, tuple, set, frozenset, deque)):
        return list(o)
    if isinstance(o, slice):
        return [o.start, o.stop, o.step]
    if isinstance(o, functools.partial):
        return [o.func, o.args, o.keywords]
    if isinstance(o, types.MethodType):
        return [o.__func__, o.__self__]
    if isinstance(o, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return [o.__self__]
    if isinstance(o, types.FunctionType):
        return [o.__defaults__, o.__kwdefaults__, *map(_content_of_cell, o.__closure__ or ())]
    return []


def _content_of_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


@contextlib.contextmanager
def watched() -> Iterator[tuple[Watched, Existing]]:
    """Run what leaves the world as it was; with the objects that exist before it."""
    with (
        Existing() as existed,
        existed,
        Watched(1, stays=False, tentative=True, watches=True) as run,
        run,
    ):
        for generator in _GLOBAL:
            run.note_generator(generator)
        yield run, existed


def draws(run: Watched, existed: Existing) -> bool:
    """Whether a run has drawn random numbers from a generator that it has not made."""
    return any(o in existed for o in drawn_from(run))


def drawn_from(run: Watched) -> list[Any]:
    """The generators of random numbers that a run has drawn from."""
    return [
        o
        for o, state in run.generators.values()
        if pickle.dumps(generator_state(o)) != pickle.dumps(state)
    ]


_GLOBAL = (np.random.mtrand._rand, random._inst)
"""The generators that libraries draw from if they are given none."""


def numbers_kept(run: Watched, existed: Existing) -> Counter[Any] | None:
    """The numbers that a run has put where they outlive it; None if it has written into arrays."""
    if run.log.arrays():
        return None
    numbers: Counter[Any] = Counter()
    waiting, seen = run.log.newly_held(), set()
    while waiting:
        o = waiting.pop()
        if id(o) in seen or (o in existed and not isinstance(o, np.ndarray)):
            continue
        seen.add(id(o))
        if isinstance(o, (float, complex, np.inexact)):
            numbers[repr(o)] += 1
        elif isinstance(o, np.ndarray) and not o.dtype.hasobject:
            numbers[o.tobytes()] += 1
        elif isinstance(o, types.FunctionType):
            waiting += _parts(o)
        else:
            waiting += held_by(o)
    return numbers
