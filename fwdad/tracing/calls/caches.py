"""``functools.lru_cache``: what a function answers to known arguments is traced once.

A result is kept for the block of the program in which it is written, and the blocks inside that.
Somewhere else the function is traced again: what it wrote there would not have run.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass, field
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.tape.ops import Block, Load, Op, walk
from fwdad.tape.recorder import Recorder
from fwdad.tape.symbol import UNBOUND, Symbol
from fwdad.tape.types import number_type
from fwdad.tracing.calls.tables import CALLED, builtin
from fwdad.tracing.syntax.frame import Closure, names_of
from fwdad.tracing.syntax.merge import container_of
from fwdad.tracing.syntax.symbols import OfTrace


@dataclass
class _Kept:
    """A result, and where it was written."""

    value: Any
    block: Block
    at: int
    last: Op | None
    read: list[Any] = field(default_factory=list)  # what the function could see

    def is_there(self, recorder: Recorder) -> bool:
        """Whether what has been written ran before what is written now."""
        if all(b is not self.block for b in recorder.blocks[recorder.first_block :]):
            return False
        ops = self.block.ops
        return self.last is None or (len(ops) >= self.at and ops[self.at - 1] is self.last)


@dataclass(eq=False)
class Cached(OfTrace):
    """A function of the trace under ``functools.lru_cache``."""

    function: Any
    kept: dict[Any, _Kept] = field(default_factory=dict)


class Decorator(OfTrace):
    """What ``functools.lru_cache(maxsize=…)`` answers."""


@builtin(functools.lru_cache, functools.cache)
def _lru_cache(_tracer: Any, maxsize: Any = None, *_args: Any, **_kwargs: Any) -> Any:
    return Decorator() if maxsize is None or number_type(maxsize) is not None else Cached(maxsize)


CALLED[Decorator] = lambda _tracer, _f, args, _kwargs: Cached(*args)


def _of_trace(tracer: Any, f: Cached, args: Any, kwargs: Any) -> Any:
    return _call(tracer, f.function, f.kept, args, kwargs)


def _from_outside(tracer: Any, f: Any, args: Any, kwargs: Any) -> Any:
    _, kept = tracer.caches.setdefault(id(f), (f, {}))
    return _call(tracer, f.__wrapped__, kept, args, kwargs)


CALLED[Cached] = _of_trace
CALLED[functools._lru_cache_wrapper] = _from_outside


def _call(tracer: Any, function: Any, kept: dict[Any, _Kept], args: Any, kwargs: Any) -> Any:
    if not all(map(_is_plain, (*args, *kwargs.values()))):
        return tracer.call(function, args, kwargs)
    given = (*args, *(x for pair in sorted(kwargs.items()) for x in pair))
    key = (len(args), *((type(x), x) for x in given))
    found = kept.get(key)
    recorder = tracer.recorder
    if found is None or not found.is_there(recorder):
        read = _read_by(function)
        if found is not None and not _same(recorder, found.read, read):
            message = (
                "a function under `functools.lru_cache` is called again in another iteration or "
                "branch, where what it reads may have changed: Python would keep its first answer. "
                "This cannot be traced"
            )
            raise UntraceableError(message, tracer.location())
        block, begin, before = recorder.block, len(recorder.block.ops), recorder.contents()
        tracer.remembered = True
        value = tracer.call(function, args, kwargs)
        tracer.remembered = False
        if recorder.have_changed(before) or _writes_outside(recorder, block.ops[begin:]):
            message = (
                "a function under `functools.lru_cache` that changes what it has not made cannot "
                "be traced: it does so at its first call only"
            )
            raise UntraceableError(message, tracer.location())
        if recorder.block is not block:
            return value
        last = block.ops[-1] if block.ops else None
        found = kept[key] = _Kept(value, block, len(block.ops), last, read)
    return found.value


def _read_by(function: Any) -> list[Any]:
    """What the names of enclosing functions hold that a function reads, and what lists hold."""
    if not isinstance(function, Closure):
        return []
    own = names_of(function.node).own
    names = {n.id for n in ast.walk(function.node) if isinstance(n, ast.Name)} - own
    found: list[Any] = []
    for name in sorted(names):
        home = function.frame.home(name)
        if home is not None:
            x = home.locals.get(name, UNBOUND)
            held = container_of(x)
            found.append(x)
            found.extend((held.values() if isinstance(held, dict) else held) if held else ())
    return found


def _same(recorder: Recorder, before: list[Any], now: list[Any]) -> bool:
    """Whether a function that is called again reads what it has read; arrays may be written."""

    def same(a: Any, b: Any) -> bool:
        if type(a) is Symbol and type(b) is Symbol:
            written = a.is_array and recorder.made_by(a.value) is not None
            return a.value is b.value and not written
        return a is b

    return len(before) == len(now) and all(map(same, before, now))


def _writes_outside(recorder: Recorder, ops: list[Op]) -> bool:
    """Whether operations write into arrays that they have not made."""
    run = list(walk(Block(ops=ops)))
    made = {v for op in run for v in op.outputs}
    for v in [v for op in run for v in op.writes()]:
        root, op = v, recorder.made_by(v)
        while isinstance(op, Load):
            root, op = op.array, recorder.made_by(op.array)
        if root not in made:
            return True
    return False


def _is_plain(x: Any) -> bool:
    """Whether an argument is known, and nothing that may change."""
    return x is None or isinstance(x, (bool, int, float, complex, str))
