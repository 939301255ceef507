"""Calls of packages whose arguments are all known: Python makes them when a program is traced.

It makes them again whenever their tape is about to run: the result is a constant of the tape as
long as it is the same. So nothing need be known of what they read. What they write would be written
at other times than the program says, so a call that changes anything is refused.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import pickle
import random
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.eager.build import Run as Watched
from fwdad.eager.build import generator_state
from fwdad.eager.calls.dispatch import call
from fwdad.errors import FwdadError, UntraceableError, message_of
from fwdad.frontend.calls.kinds import CONTAINERS
from fwdad.frontend.calls.made_objects import adopted, held_by
from fwdad.frontend.guards import CONSTANT, OpaqueError, contents, kind_of, made, outcome
from fwdad.frontend.slots import is_stand_in
from fwdad.frontend.syntax.frame import Closure, Method
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import Held, OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol, UnknownText
from fwdad.rules.core.registry import function_name
from fwdad.tangents.namespaces import namespace_of

_UNKNOWN = (Symbol, UnknownText, Held, OfTrace, Closure, Method)
"""What stands for values of the program."""
_AT_MOST = 20_000  # objects that are looked at


def known_call(tracer: Tracer, f: Any, args: Any, kwargs: Any) -> Any:
    """The result of a call of what is known.

    Raises UntraceableError if its result cannot be compared, or it changes something.
    """
    outside = tracer.outside
    own = containers_of_the_program(tracer, (f, args, kwargs))
    given = _copied(tracer, args), _copied(tracer, kwargs)
    try:
        first = _first(tracer, f, (args, kwargs), own)
        again = made(lambda: f(*given[0], **given[1]))
        kept = first[0] is again[0] and kind_of(first[0]) > CONSTANT
        key = outcome(*again, kept=kept)
        if outcome(*first, kept=kept) != key:
            raise UntraceableError("it returns something else each time")
    except OpaqueError as error:
        raise UntraceableError(f"it is given, or its result is or holds, {error.why}") from None
    except FwdadError as error:
        raise UntraceableError(message_of(error)) from None
    place = ("called", f, *given, kept)
    outside.guard(place, key)
    outside.kept_paths.append(place)
    outside.known_calls.append((tracer.position.location(), own))
    y, raised = first
    del first
    if raised is not None:
        raise AlwaysRaises(raised)
    return adopted(tracer, y, again[0], function_name(f))


def _first(tracer: Tracer, f: Any, given: tuple[Any, Any], own: list[Any]) -> tuple[Any, Any]:
    """What the first call returns or raises; it is watched, so that all that it writes is seen."""
    args, kwargs = given
    in_python = isinstance(f, (types.FunctionType, types.MethodType, type))
    before = None if in_python else contents((f, args, tuple(kwargs.items())))
    found = _unless_it_writes(f, args, kwargs)
    if found is None:
        made(lambda: f(*args, **kwargs))  # what it keeps for all later calls, it keeps by now
        if not tracer.outside.stands():
            raise UntraceableError("it writes what the program has read before")
        found = _unless_it_writes(f, args, kwargs)
    if found is None:
        raise UntraceableError(_WRITES)
    changed = not in_python and contents((f, args, tuple(kwargs.items()))) != before
    if changed or tracer.recorder.journal.have_changed(own):
        raise UntraceableError("it changes what it is given")
    return found


_WRITES = "it writes outside of it, or draws random numbers"


def _unless_it_writes(f: Any, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
    """What a call returns or raises; None if only the first of such calls writes outside of it.

    Raises UntraceableError if each of them does.
    """
    with watched() as (run, existed):
        found = made(lambda: call(f, *args, **kwargs))
        if not run.log.reaches(existed) and not draws(run):
            run.log.clear()  # what was written is new, and stays
            return found
        with watched() as (second, existed):
            made(lambda: call(f, *args, **kwargs))
            if second.log.reaches(existed) or run.log.arrays() or draws(run):
                raise UntraceableError(_WRITES)
    return None


def containers_of_the_program(tracer: Tracer, x: Any) -> list[Any]:
    """The containers of the program's own among what a call is given, with their contents.

    Raises UntraceableError if what is given holds anything that is unknown when it is traced.
    """
    journal = tracer.recorder.journal
    own: list[Any] = []
    waiting, seen = [x], set()
    while waiting:
        o = waiting.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        if isinstance(o, _UNKNOWN) or is_stand_in(type(o)) or len(seen) > _AT_MOST:
            raise UntraceableError("it is given what is known only when the program runs")
        held = namespace_of(o)
        own += [c for c in (o, held) if journal.is_own(c)]
        waiting += _parts(o)
        if tracer.outside.is_made(o):
            waiting += held_by(o)
        elif isinstance(held, dict) and journal.is_own(held):
            waiting += held.values()
    return journal.contents_of(own)


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


def _copied(tracer: Tracer, x: Any) -> Any:
    """An argument as it will be found whenever the tape runs: the program's own are copied."""
    if type(x) is tuple:
        return tuple(_copied(tracer, item) for item in x)
    if type(x) in CONTAINERS and (type(x) is dict or tracer.recorder.journal.is_own(x)):
        if type(x) is dict:
            return {key: _copied(tracer, item) for key, item in x.items()}
        return type(x)(_copied(tracer, item) for item in x)
    return x


@contextlib.contextmanager
def watched() -> Iterator[tuple[Watched, set[int]]]:
    """Run what leaves the world as it was; with the ids of the objects that exist before it."""
    existed = set(map(id, gc.get_objects()))
    with Watched(1, stays=False, tentative=True, watches=True) as run, run:
        for generator in _GLOBAL:
            run.note_generator(generator)
        yield run, existed


def draws(run: Watched) -> bool:
    """Whether a run has drawn random numbers."""
    return any(
        pickle.dumps(generator_state(o)) != pickle.dumps(state)
        for o, state in run.generators.values()
    )


_GLOBAL = (np.random.mtrand._rand, random._inst)
"""The generators that libraries draw from if they are given none."""
