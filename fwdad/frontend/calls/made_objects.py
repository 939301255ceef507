"""Objects that code without a source, or a known call, has made when a program is traced.

What such an object alone holds is the program's own, as if it had been made line by line: its
lists, dicts and attributes may be changed.
"""

from __future__ import annotations

import sys
import types
from collections import Counter
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import CONTAINERS
from fwdad.frontend.guards import CONSTANT, INPUT, arrays_inside, kind_of
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.types import type_of
from fwdad.tangents.namespaces import namespace_of, referents

_SHARED = (type, types.ModuleType, types.FunctionType, types.CodeType, types.BuiltinFunctionType)
"""What is no part of the object that refers to it."""
_AT_MOST = 20_000  # objects that are looked at
_FEW_ARRAYS = 64  # that are compared in pairs
_OURS = 2  # references: of ``parts``, and of the argument of ``getrefcount``


def adopted(tracer: Tracer, y: Any, again: Any, name: str) -> Any:
    """The result of a call that is made at trace time, and what another such call returns.

    What is the same object in both is kept somewhere: it is read as what is found outside.
    """
    if isinstance(y, np.ndarray) and type_of(y) is not None:
        kept = np.may_share_memory(y, again)
        return tracer.outside.bound(y, name) if kept else _constant(tracer, y)
    if isinstance(y, tuple) and not namespace_of(y):
        if _share_memory([x for x in y if isinstance(x, np.ndarray)]):
            raise UntraceableError("it returns views of one array")
        pairs = zip(y, again, strict=True)
        return tuple.__new__(type(y), [adopted(tracer, a, b, name) for a, b in pairs])
    if kind_of(y) in (INPUT, CONSTANT) or tracer.recorder.journal.is_own(y):
        return y
    if y is again:
        return tracer.outside.bound(y, name)
    own_what_it_holds(tracer, y)
    return y


def own_what_it_holds(tracer: Tracer, x: Any) -> None:
    """Note what a new object alone holds as the program's own.

    Its arrays are made at each run; those that somebody else may see, too, must not be written.
    """
    journal, outside = tracer.recorder.journal, tracer.outside
    alone, inside = _exclusively_held(x)
    held: dict[int, Any] = {}
    for part in alone.values():
        outside.made[id(part)] = part
        namespace = namespace_of(part)
        if isinstance(part, CONTAINERS):
            journal.own(part)
            held[id(part)] = part
        if isinstance(namespace, dict):
            journal.own(namespace, namespace=True)
            held[id(namespace)] = namespace
    places = [(c, key, a) for c in held.values() for key, a in _arrays_in(c)]
    counts = Counter(id(a) for _, _, a in places)
    arrays = arrays_inside(x)
    renewed = {
        id(a): _constant(tracer, a)
        for a in _apart(arrays, alone)
        if counts[id(a)] == inside.get(id(a))
    }
    for container, key, a in places:
        if id(a) in renewed:
            container[key] = renewed[id(a)]
    outside.made_arrays.extend(a for a in arrays if id(a) not in renewed)


def held_by(o: Any) -> list[Any]:
    """The parts of an object, as the garbage collector sees them."""
    namespace_of(o)  # there may be no such dict before it is asked for
    if isinstance(o, np.ndarray):
        return [] if o.base is None else [o.base]
    return [r for r in referents(o) if not isinstance(r, _SHARED)]


def _constant(tracer: Tracer, a: np.ndarray) -> Any:
    return tracer.operations.constants(a)  # type: ignore[attr-defined]


def _arrays_in(container: Any) -> list[tuple[Any, np.ndarray]]:
    """The arrays among the items of a list or a dict, each with its key."""
    if not isinstance(container, (list, dict)):
        return []
    items = enumerate(container) if isinstance(container, list) else container.items()
    return [(key, item) for key, item in items if isinstance(item, np.ndarray)]


def _apart(arrays: list[np.ndarray], alone: dict[int, Any]) -> list[np.ndarray]:
    """The arrays without other references, each with memory of its own."""
    if len(arrays) > _FEW_ARRAYS:
        return []
    return [
        a
        for a in arrays
        if id(a) in alone
        and type_of(a) is not None
        and (a.base is None or id(a.base) in alone)
        and not any(np.may_share_memory(a, b) for b in arrays if b is not a)
    ]


def _share_memory(arrays: list[np.ndarray]) -> bool:
    return any(np.may_share_memory(a, b) for k, a in enumerate(arrays) for b in arrays[:k])


def _exclusively_held(x: Any) -> tuple[dict[int, Any], dict[int, int]]:
    """A new object and what is reached from it only; and how often each is referred to inside.

    As a garbage collector finds them: the references from inside are counted, and where there are
    more, somebody else has one.
    """
    parts: dict[int, Any] = {id(x): x}
    inside: dict[int, int] = {}
    referred: dict[int, list[int]] = {}
    waiting = [x]
    while waiting and len(parts) < _AT_MOST:
        o = waiting.pop()
        found = held_by(o)
        referred[id(o)] = [id(r) for r in found]
        for r in found:
            inside[id(r)] = inside.get(id(r), 0) + 1
            if id(r) not in parts:
                parts[id(r)] = r
                waiting.append(r)
        del found
    if waiting:
        return {id(x): x}, {}
    o = r = None
    shared = {k for k in inside if k != id(x) and sys.getrefcount(parts[k]) > inside[k] + _OURS}
    seen = list(shared)
    while seen:
        for k in referred.get(seen.pop(), ()):
            if k not in shared and k != id(x):
                shared.add(k)
                seen.append(k)
    return {k: part for k, part in parts.items() if k not in shared}, inside
