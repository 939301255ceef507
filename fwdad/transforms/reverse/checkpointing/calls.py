"""A call that runs again in the reverse pass, so that its residuals need not be kept until then."""

from __future__ import annotations

from typing import Any

from fwdad.ir.clone import Cloner
from fwdad.ir.ops import Block, Loop, Operand, Value
from fwdad.ir.primitives.stacks import pop, push
from fwdad.ir.symbol import Symbol
from fwdad.transforms.reverse.checkpointing.code import Code, Inner
from fwdad.transforms.reverse.checkpointing.loop_states import State
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Called:
    """Records a call's forward pass, with copies of what it overwrites, and its reverse pass.

    ``op`` is a loop that runs once and stands for the call, ``state`` what it reads and changes.
    """

    def __init__(
        self,
        sweep: Sweep,
        view_cotangents: ViewCotangents,
        cotangents: Cotangents,
        inner: Inner,
        op: Loop,
        state: State,
    ) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder
        self.code = Code(sweep)
        self.structure = sweep.structure
        self.view_cotangents = view_cotangents
        self.cotangents = cotangents
        self.inner = inner
        self.op = op
        self.state = state
        self.kept = [self.code.stack(v.type, v.name) for v in state.kept]
        op.checkpoint = None

    def write(self) -> None:
        """Record both passes."""
        ops, results = list(self.op.body.ops), list(self.op.body.results)
        self._write_down()
        old = [
            self.code.latest(s, v.type, pop)
            for s, v in zip(self.kept, self.state.kept, strict=True)
        ]
        self._restore(old)
        self._reverse(ops, results)
        self._restore(old)

    def _write_down(self) -> None:
        recorder = self.recorder
        outer, mark, recorder.block = recorder.block, recorder.lengths.mark(), Block()
        for stack, v in zip(self.kept, self.state.kept, strict=True):
            recorder.mutate(push, (Symbol(stack, recorder), self.code.own(v)), {})
        self.op.body.ops[:0] = recorder.block.ops
        recorder.block = outer
        recorder.lengths.forget(mark)

    def _restore(self, old: list[Symbol]) -> None:
        """Restore the arrays that the call overwrites and that something reads."""
        for x, v in zip(old, self.state.kept, strict=True):
            self.recorder.store(Symbol(v, self.recorder), Ellipsis, x)

    def _reverse(self, ops: list[Any], results: list[Any]) -> None:
        state, op, cloner = self.state, self.op, Cloner({}, again=True)
        outside = list(dict.fromkeys((*state.free_arrays, *state.free_written)))
        params: list[Value] = [*state.free_numbers, *outside]
        active = [*(True for _ in state.free_numbers), *(v in state.free_arrays for v in outside)]
        block = Block(params, cloner.ops(ops))
        block.results = [cloner.operand(r) for r in results]
        bars = [
            self.cotangents.take(v) if k in state.numbers or k in state.arrays else None
            for k, v in enumerate(op.outputs)
        ]
        memory = {k: self.view_cotangents.memory_of(op.outputs[k]) for k in state.memory}
        cotangents = {v: self.cotangents.in_memory(v) for v in state.free_arrays}
        running = {v: self.cotangents.current(v) for v in state.free_numbers}

        def begin(inner: Cotangents, results: list[Operand]) -> None:
            for v, bar in running.items():
                if bar is not None:
                    inner.sweep.region.bars[v] = bar
            inner.share(cotangents)
            for k, bar in memory.items():
                inner.become(results[k], bar)

        roots = {v: set(self.structure.roots(v)) for v in outside}
        x_bars = self.inner.pulled(block, active, roots, [], bars, begin)
        for v, bar in zip(state.free_numbers, x_bars, strict=False):
            if bar is not None:
                self.sweep.region.bars[v] = bar
