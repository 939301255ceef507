"""Loops reversed from checkpoints: some states are kept, from which the loop runs again.

In the forward pass a loop saves its state at the beginning of some iterations, and nothing else. In
the reverse pass it runs again from the last of these states, saving further ones, until a few
iterations are left (a *leaf*); these run once more, now saving their residuals, and are reversed. A
state is the carried values, and those arrays written by the loop that an iteration reads and a
later one overwrites. ``checkpoint_schedule.py`` says which states are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from fwdad.ir.analysis.indices import intervals
from fwdad.ir.ops import Branch, Load, Loop, Missing, Op, Update, Value
from fwdad.transforms.reverse.checkpointing.calls import Called
from fwdad.transforms.reverse.checkpointing.code import Inner
from fwdad.transforms.reverse.checkpointing.loop_states import State, inside
from fwdad.transforms.reverse.checkpointing.recompute import Rerun
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.indices import Place, Read
from fwdad.transforms.reverse.loops import Loops
from fwdad.transforms.reverse.normalize.array_phis import written
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.reads import Reads, read_by
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Checkpoints:
    """Reverses loops and calls that run again, and leaves the others to ``loops``."""

    def __init__(
        self,
        sweep: Sweep,
        spaces: Spaces,
        view_cotangents: ViewCotangents,
        overwriting: Overwriting,
        cotangents: Cotangents,
        reads: Reads,
        loops: Loops,
        inner: Inner,
    ) -> None:
        self.sweep = sweep
        self.structure = sweep.structure
        self.spaces = spaces
        self.view_cotangents = view_cotangents
        self.overwriting = overwriting
        self.cotangents = cotangents
        self.reads = reads
        self.loops = loops
        self.inner = inner

    def reverse(self, op: Loop) -> None:
        """Reverse a loop, from its states if it is marked and they suffice."""
        if self.sweep.setting.is_called:
            op.checkpoint = None  # states would be between those of the calls inside
        state = None if op.checkpoint is None else State(self.structure, op)
        if state is None or not self._can_run_again(op, state):
            self.loops.reverse(op)
        elif state.any or self.structure.writes_inside(op):
            self._note_body(op)
            self.overwriting.run_again.add(op)
            state.restore(self._restored_by_states(op))
            self._run_again(op, state)

    def _restored_by_states(self, op: Loop) -> set[Value]:
        """The memory written in a loop whose old content may be read in the reverse pass.

        That of the loop itself is known, since all of it runs again; what precedes it is reversed
        later, and may read whatever it has read or computed.
        """
        reads = [*self.reads.noted, *self._possible_reads(op)]
        changed = self.overwriting.that_change(reads)
        stores = [(s, t) for s, t in self.overwriting.stores_in(op.body) if s in changed]
        self.overwriting.restored_by_states.update(store for store, _ in stores)
        return {root for _, target in stores for root in self.structure.roots(target.array)}

    def _possible_reads(self, loop: Loop) -> Iterator[Read]:
        """What the reverse pass of everything outside a loop may read."""
        structure, inside_loop = self.structure, set(inside(loop))
        for op, block in structure.block_of.items():
            if op in inside_loop or isinstance(op, (Branch, Loop, Load)):
                continue
            if structure.activity.any_active([*op.operands(), *op.outputs]):
                for place in self.reads.places_of([*op.operands(), *op.outputs]):
                    yield Read(place, block, structure.position[op])

    def _run_again(self, op: Loop, state: State) -> None:
        sweep, views, cotangents, inner = (
            self.sweep, self.view_cotangents, self.cotangents, self.inner,
        )  # fmt: skip
        if op.sealed:
            Called(sweep, views, cotangents, inner, op, state).write()
        else:
            Rerun(sweep, self.spaces, views, cotangents, inner, op, state).write()

    def _can_run_again(self, op: Loop, state: State) -> bool:
        """Whether copies of what a loop carries are as good as the arrays themselves."""
        if op.sealed:  # what it returns is made inside
            arrays = [op.body.results[k] for k in state.written]
            return len(set(arrays)) == len(arrays) and all(
                self.structure.home.get(r) is op.body and self.structure.roots(r) == {r}
                for r in arrays
            )
        if any(isinstance(op.initial[k], Missing) for k in state.written):
            return False
        if not written(op, self.structure) <= self.sweep.choices.threaded[op]:
            return False
        return not any(self.structure.roots(v) & state.carried_roots for v in state.free_written)

    def _note_body(self, op: Loop) -> None:
        """Note what is read when the loop runs again."""
        for inner in inside(op):
            block, position = self.structure.block_of[inner], self.structure.position[inner]
            for place in self._read_again(inner):
                self.reads.noted.append(Read(place, block, position))

    def _read_again(self, op: Op) -> Iterator[Place]:
        structure = self.structure
        if isinstance(op, (Branch, Loop)):
            return
        if isinstance(op, (Load, Update)) and not (isinstance(op, Load) and op.view):
            part = intervals(op.index, op.array.type.ndim, structure)
            for root in structure.roots(op.array) & structure.written:
                yield Place(root, op.array, part)
            value = [op.value] if isinstance(op, Update) else []
            yield from self.reads.places_of([*op.index, *value])
            return
        yield from self.reads.places_of(list(read_by(op)))
