"""Loops reversed from checkpoints: some states are kept, from which the loop runs again.

In the forward pass a loop saves its state at the beginning of some iterations, and nothing else. In
the reverse pass it runs again from the last of these states, saving further ones, until a few
iterations are left (a *leaf*); these run once more, now saving their residuals, and are reversed. A
state is the carried values, and those arrays written by the loop that an iteration reads and a
later one overwrites. ``checkpoint_schedule.py`` says which states are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.ir.analysis.indices import intervals
from fwdad.ir.ops import Block, Branch, Load, Loop, Missing, Op, Update, Value
from fwdad.ir.symbol import Symbol
from fwdad.transforms.reverse.checkpointing.calls import Called
from fwdad.transforms.reverse.checkpointing.loop_states import State, inside
from fwdad.transforms.reverse.checkpointing.recompute import Rerun
from fwdad.transforms.reverse.loops import Loops
from fwdad.transforms.reverse.normalize.array_phis import written
from fwdad.transforms.reverse.rematerialize import read_by
from fwdad.transforms.reverse.residuals import Place

_ATTEMPTS = 100


class Checkpoints(Loops):
    """Reverses loops that run again."""

    facts: Any

    def _loop(self, op: Loop) -> None:
        state = None if op.checkpoint is None else State(self, op)
        if state is None or not self._can_run_again(op, state):
            super()._loop(op)
        elif state.any or self._matters(op):
            self._note_body(op)
            (Called if op.sealed else Rerun)(self, op, state).write()

    def _can_run_again(self, op: Loop, state: State) -> bool:
        """Whether copies of what a loop carries are as good as the arrays themselves."""
        if op.sealed:  # what it returns is made inside
            made = [op.body.results[k] for k in state.written]
            return len(set(made)) == len(made) and all(
                self.structure.home.get(r) is op.body and self.structure.roots(r) == {r}
                for r in made
            )
        if any(isinstance(op.initial[k], Missing) for k in state.written):
            return False
        if not written(op, self.structure) <= self.choices.threaded[op]:
            return False
        return not any(self.structure.roots(v) & state.carried_roots for v in state.free_written)

    def _note_body(self, op: Loop) -> None:
        """Note what is read when the loop runs again."""
        for inner in inside(op):
            block, position = self.structure.block_of[inner], self.structure.position[inner]
            for place in self._read_again(inner):
                self.read.append((place, block, position))

    def _read_again(self, op: Op) -> Iterator[Place]:
        structure = self.structure
        if isinstance(op, (Branch, Loop)):
            return
        if isinstance(op, (Load, Update)) and not (isinstance(op, Load) and op.view):
            part = intervals(op.index, op.array.type.ndim, structure)
            for root in structure.roots(op.array) & structure.written:
                yield Place(root, op.array, part)
            value = [op.value] if isinstance(op, Update) else []
            yield from self.places_of([*op.index, *value])
            return
        yield from self.places_of(list(read_by(op)))

    def share(self, cotangents: dict[Value, Symbol]) -> None:
        """Keep the cotangents of arguments in the given memory."""
        for v, bar in cotangents.items():
            if self.structure.is_memory(v):
                self.refs[v] = bar
            else:
                self.region.bars[v] = bar
                self.region.owned.add(v)

    def pulled(
        self, block: Block, active: list[bool], roots: Any, natural: list[Value], bars: list[Any],
        begin: Callable[[Any], None],
    ) -> list[Any]:  # fmt: skip
        """Record a block and its reverse pass; return its parameters' cotangents.

        The parameters are existing values. ``bars`` are the cotangents of the results; ``active``,
        ``roots``, ``natural`` and ``begin`` are those of :class:`Pullback` and its ``pull``.
        """
        recorder, facts = self.recorder, type(self.facts)()
        given = [Symbol(p, recorder) for p in block.params]
        make: Any = type(self)
        for _ in range(_ATTEMPTS):
            first = len(recorder.block.ops)
            with recorder.own_lengths():
                writer = make(recorder, block, given, active, facts, dict(roots), natural)
                writer.in_loop = self._is_inside_loop()
                turns, recorder.turns = recorder.turns, False  # it is not the program's end
                found = writer.pull(bars, begin, alike=True)
                recorder.turns = turns
            needed = writer.needed()
            if needed <= facts.restored:
                return found
            facts.restored |= needed
            del recorder.block.ops[first:]
        message = "what the reverse pass reads does not settle"
        raise UntraceableError(message)
