"""The example's values of what has been recorded, found by running the operations on the way.

Each operation runs once, when the first value behind it is asked for: what a trace that follows the
example at many branches asks for is found in time that grows with the program's length.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Block, Effect, Op, Program, Value, is_array, walk
from fwdad.ir.primitives.identity import identity
from fwdad.ir.rewrite import all_used
from fwdad.ir.symbol import UNBOUND
from fwdad.tangents.alike import alike

_MOST = 1 << 26  # bytes of results that are kept; the program itself would free most of them

Inputs = list[tuple[Value, Any]]


class ExampleRun:
    """What a recorder has written, run for the example."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._gives_up = False
        self._begin()

    def _begin(self) -> None:
        self._values: dict[Value, Any] = {}
        self._known: set[Value] = set()  # what has been run, or can be
        self._seen: list[tuple[Block, list[Op]]] = []  # of each open block
        self._pending: list[Op] = []  # which have been seen, and not run
        self._written: set[Op] = set()  # those run that write into memory
        self._kept = 0

    def value(self, v: Value, inputs: Inputs) -> Any:
        """The value in the example; UNBOUND if that is unknown."""
        if self._gives_up:  # what is on another way than the example's may raise
            return self._alone(v, inputs)
        self._see(inputs)
        if v not in self._known:
            return UNBOUND
        if v not in self._values:
            self._run()
        return self._alone(v, inputs) if self._gives_up else self._values.get(v, UNBOUND)

    def _see(self, inputs: Inputs) -> None:
        """Look at what has been written since the last time."""
        gone = self._gone()
        self._pending = [op for op in self._pending if op not in gone]
        if gone & self._written:
            self._begin()
        for value, x in inputs:
            if value not in self._known:
                self._known.add(value)
                self._values[value] = alike(x) if isinstance(x, np.ndarray) else x
        self._seen += [(block, []) for block in self._recorder.blocks[len(self._seen) :]]
        for block, seen in self._seen:
            self._pending += self._of_arguments(block, self._known)
            self._pending += _runnable(block.ops[len(seen) :], self._known)
            seen += block.ops[len(seen) :]

    def _gone(self) -> set[Op]:
        """Forget the operations that are in no open block any more; returns them."""
        blocks, gone = self._recorder.blocks, set[Op]()
        for depth, (block, seen) in enumerate(self._seen):
            open_still = depth < len(blocks) and blocks[depth] is block
            if open_still and block.ops[: len(seen)] == seen:
                continue
            same = zip(seen, block.ops, strict=False)
            kept = sum(1 for _ in itertools.takewhile(lambda two: two[0] is two[1], same))
            first = kept if open_still else 0
            gone.update(seen[first:], *(ops for _, ops in self._seen[depth + 1 :]))
            del seen[first:], self._seen[depth + open_still :]
            break
        return gone

    def _run(self) -> None:
        """Run what has been seen."""
        ops, self._pending = self._pending, []
        made = list({out for op in ops for out in op.outputs})
        used = dict.fromkeys(u for op in ops for u in all_used(op) if u in self._values)
        block = Block([*used], ops, [*made])
        try:
            results = _results(block, [self._values[u] for u in used])
        except Exception:  # noqa: BLE001  (what the program itself raises for the example)
            self._gives_up = True
            return
        self._values.update(zip(made, results, strict=True))
        self._written.update(op for op in ops if op.writes())
        self._kept += sum(y.nbytes for y in results if isinstance(y, np.ndarray))
        self._gives_up = self._kept > _MOST

    def _of_arguments(self, block: Block, known: set[Value]) -> list[Op]:
        """Copies that stand for the arguments of a function that is differentiated."""
        ops: list[Op] = []
        for p in block.params:
            outer = self._recorder.given.get(p)
            if p not in known and outer in known:
                copied: Any = np.ndarray.copy if is_array(p) else identity
                ops.append(Apply(copied, (outer,), outputs=(p,)))
                known.add(p)
        return ops

    def _alone(self, v: Value, inputs: Inputs) -> Any:
        """A value by running no more than it depends on."""
        known, ops = {value for value, _ in inputs}, list[Op]()
        for block in self._recorder.blocks:
            ops += self._of_arguments(block, known)
            ops += _runnable(block.ops, known)
        if v not in known:
            return UNBOUND
        block = Block([value for value, _ in inputs], self._needed(v, ops), [v])
        given = [alike(x) if isinstance(x, np.ndarray) else x for _, x in inputs]
        try:
            return _results(block, given)[0]
        except Exception:  # noqa: BLE001  (what the program itself raises for the example)
            return UNBOUND

    def _needed(self, v: Value, ops: list[Op]) -> list[Op]:
        """The operations that a value depends on, with those that write into its memory."""
        owners = self._recorder.definitions.owners
        values, memory, kept = {v}, set(owners(v)), []
        for op in reversed(ops):
            written = {o for w in op.writes() for o in owners(w)}
            if values.isdisjoint(op.outputs) and memory.isdisjoint(written):
                continue
            kept.append(op)
            used = all_used(op)
            values |= used
            memory.update(o for u in used if is_array(u) for o in owners(u))
        return kept[::-1]


def _runnable(ops: list[Op], known: set[Value]) -> list[Op]:
    """The operations of known values that put nothing out; what they return is known then."""
    found = []
    for op in ops:
        puts_out = any(isinstance(each, Effect) for each in walk(Block(ops=[op])))
        if all_used(op) <= known and not puts_out:
            found.append(op)
            known.update(op.outputs)
    return found


def _results(block: Block, given: list[Any]) -> Any:
    return compiled(numpy_source(Program("example", block)))(*given)
