"""``functools.lru_cache``: the result of a function for known arguments is traced once.

A result is kept for the block of the program in which it is written, and the blocks inside that.
Anywhere else the function is traced again, because what it wrote would not have run there. Python
keeps its first result, so this is right as long as neither the result nor anything that it was made
of changes. Where that is uncertain, the function is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.seen import same_seen, seen_by
from fwdad.frontend.calls.tables import CALLED, builtin
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.merge import container_of
from fwdad.frontend.syntax.symbols import OfFunction, OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.builder.shape_env import length_if_any, length_of
from fwdad.ir.ops import Apply, Block, Load, Op, Value, is_array, values_in, walk
from fwdad.ir.rewrite import all_inside, all_used
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import number_type

_WRITES = (
    "a function under `functools.lru_cache` that changes objects it has not made cannot be "
    "traced, since Python does so at its first call only: call it without the cache"
)
_READS = (
    "a function under `functools.lru_cache` is called where what it reads may have changed, and "
    "Python would return its first result. This cannot be traced: pass what changes as an argument"
)
_WRITTEN = (
    "that a function under `functools.lru_cache` reads, or has returned, and Python would return "
    "its first result. This cannot be traced: pass what changes as an argument"
)
_LENGTHS = (length_of, length_if_any)


@dataclass
class _Kept:
    """A result, and where it was written."""

    value: Any
    block: Block
    at: int
    last: Op | None

    def is_there(self, recorder: Recorder) -> bool:
        """Whether its operations run before those that are written now."""
        if all(b is not self.block for b in recorder.blocks[recorder.first_block :]):
            return False
        ops = self.block.ops
        return self.last is None or (len(ops) >= self.at and ops[self.at - 1] is self.last)


@dataclass(eq=False, repr=False)
class Cached(OfFunction):
    """A function under ``functools.lru_cache``, of the trace or from outside.

    ``around`` are the blocks open when the cache was made: what they define is one value for it.
    ``kept`` and ``keys`` have results and types by known arguments; ``seen`` has what the function
    could see at each call, by known arguments and by None for others.
    """

    kind = functools._lru_cache_wrapper

    function: Any
    around: list[Block]
    kept: dict[Any, _Kept] = field(default_factory=dict)
    seen: dict[Any, list[list[Any]]] = field(default_factory=dict)
    keys: dict[Any, Any] = field(default_factory=dict)

    @property
    def like(self) -> Any:
        """The function itself."""
        return self.function


class Decorator(OfTrace):
    """The result of ``functools.lru_cache(maxsize=…)``."""


@builtin(functools.lru_cache, functools.cache)
def _lru_cache(tracer: Tracer, maxsize: Any = None, *_args: Any, **_kwargs: Any) -> Any:
    if maxsize is None or number_type(maxsize) is not None:
        return Decorator()
    return Cached(maxsize, list(tracer.recorder.blocks))


def _decorate(tracer: Tracer, _f: Decorator, args: Any, _kwargs: Any) -> Any:
    (function,) = args
    return Cached(function, list(tracer.recorder.blocks))


CALLED[Decorator] = _decorate


def _from_outside(tracer: Interpreter, f: Any, args: Any, kwargs: Any) -> Any:
    caches = tracer.inline.kept.caches
    if id(f) not in caches:
        caches[id(f)] = f, Cached(f.__wrapped__, tracer.recorder.blocks[:1])
    return _call(tracer, caches[id(f)][1], args, kwargs)


def _call(tracer: Interpreter, f: Cached, args: Any, kwargs: Any) -> Any:
    known = all(map(_is_plain, (*args, *kwargs.values())))
    key_arguments = (len(args), *args, *(x for pair in sorted(kwargs.items()) for x in pair))
    key = tuple((type(x), x) for x in key_arguments) if known else None
    kept_result = f.kept.get(key)
    if kept_result is None or not kept_result.is_there(tracer.recorder):
        place = key_arguments if known else None  # 2 and 2.0 are one key of Python's
        kept_result = _traced(tracer, f, args, kwargs, place, key)
    for returned in tracer.inline.kept.returned:
        returned.update(_values_inside(kept_result.value))
    return kept_result.value


CALLED[Cached] = _call
CALLED[functools._lru_cache_wrapper] = _from_outside


def _traced(tracer: Interpreter, f: Cached, args: Any, kwargs: Any, place: Any, key: Any) -> _Kept:
    """Write a call, and ensure that Python runs the function in the same way."""
    recorder, kept = tracer.recorder, tracer.inline.kept
    read = seen_by(recorder.journal, f.function)
    alike = f.seen.get(place, [])
    others = f.seen.get(None, []) if place else [s for seen in f.seen.values() for s in seen]
    if (
        not all(same_seen(before, read) for before in (*alike, *others))
        or f.keys.get(place, key) != key
    ):
        raise UntraceableError(_READS, tracer.position.location())
    f.seen.setdefault(place, []).append(read)
    f.keys[place] = key
    block, begin, before = recorder.block, len(recorder.block.ops), recorder.journal.contents()
    kept.returned.append(_values_inside([*args, *kwargs.values()]))
    kept.remembered = place is not None
    try:
        value = tracer.call(f.function, args, kwargs)
    finally:
        kept.remembered = False
        own = kept.returned.pop()
    if recorder.block is not block:  # it is left in the middle of one of its branches
        raise UntraceableError(_READS, tracer.position.location())
    new_ops = block.ops[begin:]
    if recorder.journal.have_changed(before) or _writes_outside(recorder, new_ops):
        raise UntraceableError(_WRITES, tracer.position.location())
    _keeps_its_result(tracer, f, new_ops, own, value)
    found = _Kept(value, block, len(block.ops), block.ops[-1] if block.ops else None)
    if key is not None:
        f.kept[key] = found
    return found


def _keeps_its_result(
    tracer: Tracer, f: Cached, made: list[Op], own: set[Value], value: Any
) -> None:
    """Raise if the result may differ at another call, and ensure that it stays unchanged.

    ``made`` are the operations of the call, ``own`` its arguments and the results of other
    functions with a cache.
    """
    recorder, inside = tracer.recorder, all_inside(Block(ops=made))
    run = set(walk(Block(ops=made)))
    asked = [op for op in made if not (isinstance(op, Apply) and op.function in _LENGTHS)]
    read = set().union(*map(all_used, asked)) - inside - own
    deeper = [b for b in recorder.blocks if all(b is not a for a in f.around)]
    varying = {v for b in deeper for v in (*b.params, *(v for op in b.ops for v in op.outputs))}
    arrays = {v for v in (read | own | _values_inside(value)) if is_array(v)}
    owners = set().union(*map(recorder.definitions.owners, arrays))
    written = [op for b in recorder.blocks for op in walk(b) if op.writes() and op not in run]
    if read & varying or any(_may_write(recorder, op, owners - inside) for op in written):
        raise UntraceableError(_READS, tracer.position.location())
    recorder.unwritten.update(dict.fromkeys(owners, _WRITTEN))
    containers = [c for c in _containers(value) if recorder.journal.is_own(c)]
    recorder.unchanged.append(
        (recorder.journal.contents_of(containers), tracer.position.location())
    )


def check_results(recorder: Recorder) -> None:
    """Raise where a returned list, dict or object is changed later."""
    for held, place in recorder.unchanged:
        if recorder.journal.have_changed(held):
            raise UntraceableError(_READS, place)


def _may_write(recorder: Recorder, op: Op, arrays: set[Value]) -> bool:
    return any(not recorder.definitions.owners(v).isdisjoint(arrays) for v in op.writes())


def _writes_outside(recorder: Recorder, ops: list[Op]) -> bool:
    """Whether operations write into arrays that they have not made."""
    values = all_inside(Block(ops=ops))
    waiting = [v for op in walk(Block(ops=ops)) for v in op.writes()]
    known: set[Value] = set()
    while waiting:
        v = waiting.pop()
        if v in known:
            continue
        known.add(v)
        if v not in values:
            return True
        op = recorder.definitions.made_by(v)
        if isinstance(op, Load) and op.view:
            waiting.append(op.array)
        elif isinstance(op, Apply):
            waiting.extend(a for a in values_in(aliased_arguments(op)) if is_array(a))
        elif op is None or op.nests:  # a name that means several arrays
            return True
    return False


def _values_inside(x: Any) -> set[Value]:
    """The values in a result or among arguments, and in their containers."""
    symbols_found = {x.value} if type(x) is Symbol else set()
    for held in _containers(x):
        inside = held.values() if isinstance(held, dict) else held
        symbols_found.update(v.value for v in _flat(inside) if type(v) is Symbol)
    return symbols_found | {v.value for v in _flat((x,)) if type(v) is Symbol}


def _flat(items: Any) -> Iterator[Any]:
    for x in items:
        if isinstance(x, tuple):
            yield from _flat(x)
        else:
            yield x


def _containers(x: Any) -> list[Any]:
    """The containers that can be reached from a value."""
    by_identity: dict[int, Any] = {}
    waiting = list(_flat((x,)))
    while waiting:
        container = container_of(waiting.pop())
        if container is not None and id(container) not in by_identity:
            by_identity[id(container)] = container
            waiting.extend(_flat(container.values() if isinstance(container, dict) else container))
    return list(by_identity.values())


def _is_plain(x: Any) -> bool:
    """Whether an argument is known and immutable."""
    return x is None or isinstance(x, (bool, int, float, complex, str))
