"""Reverse mode on a tape: the program, followed by its reverse pass.

Every operation is linearized by its frule and transposed, in the opposite order: calls by partials
and transposes, stores by taking cotangents, loops and branches as loops and branches. What the
reverse pass needs of an iteration is recomputed or kept (``residuals``); what was overwritten is
restored only where it is read (``memory``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.analysis.alias import Roots
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.clone import Cloner
from fwdad.ir.ops import (
    Apply,
    Block,
    Call,
    Op,
    Operand,
    Value,
    is_array,
    values_in,
)
from fwdad.ir.primitives.scatter_add import target_of
from fwdad.ir.primitives.stacks import pop, push, thin, top, turn
from fwdad.ir.rewrite import blocks_of, defined_by, written_outside
from fwdad.ir.symbol import Symbol
from fwdad.transforms.passes.lengths import share_lengths_in
from fwdad.transforms.reverse.dead_restores import hidden_stores
from fwdad.transforms.reverse.lengths import check_lengths, equal_lengths
from fwdad.transforms.reverse.normalize.array_phis import Choices
from fwdad.transforms.reverse.normalize.copy_insertion import copy_taken_over
from fwdad.transforms.reverse.normalize.loop_views import copy_views
from fwdad.transforms.reverse.normalize.lowering import lower
from fwdad.transforms.reverse.normalize.view_phis import tell_views_apart
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.residuals import Place
from fwdad.transforms.reverse.sinking import sink_updates
from fwdad.transforms.reverse.structure import Structure
from fwdad.transforms.reverse.tbr import Overwriting

_ATTEMPTS = 100
_ON_STACKS = (push, pop, top, thin)


class Facts:
    """What the reverse pass finds out, and the forward pass needs.

    ``restored`` are the stores and updates that restore what they overwrite, ``groups`` the called
    programs with their reverse passes.
    """

    def __init__(self) -> None:
        self.restored: set[Op] = set()
        self.groups: dict[Any, Any] = {}


class Pullback(Overwriting):
    """A block recorded on a tape, to be reversed.

    Values from outside are constants. The block may write into its arguments, ``given``; ``active``
    says which of these carry derivatives. ``facts`` come from earlier attempts; ``roots`` and
    ``natural`` are those of :class:`Structure`, for the arguments' values.
    """

    def __init__(
        self,
        recorder: Recorder,
        block: Block,
        given: list[Symbol],
        active: list[bool],
        facts: Facts,
        roots: Roots | None = None,
        natural: Iterable[Value] = (),
    ) -> None:
        cloner = Cloner({p: s.value for p, s in zip(block.params, given, strict=True)})
        params = [s.value for s in given]
        self.outside = _on_copies(recorder, block, cloner)
        params += self.outside.values()  # active values may be stored into them
        self.facts = facts
        self.first = len(recorder.block.ops)
        ops = [cloner.op(op) for op in block.ops]
        source = Block(params, ops, [cloner.operand(r) for r in block.results])
        copy_views(source)
        share_lengths_in(source)
        wrt = [s.value for s, is_on in zip(given, active, strict=True) if is_on]
        structure = Structure(source, wrt, cloner.origin, roots, natural)
        self.choices = Choices(structure)
        if self.choices.added:
            structure = Structure(source, wrt, cloner.origin, roots, natural)
        super().__init__(recorder, structure, Region(source, recorder.block))
        self.given = given
        self.kept: dict[Op, Value] = {}
        self.certain: set[Op] = set()
        self.lengths: dict[Any, Value] = {}
        self.stacks: list[Op] = []
        self.stack_values = {}
        self.bar_stacks: dict[Value, Value] = {}
        self.read: list[tuple[Place, Block, int]] = []
        self.views: dict[Value, list[Place]] = {}
        recorder.block.ops.extend(source.ops)
        self.results = source.results

    def pull(
        self,
        bars: list[Any],
        begin: Callable[[Pullback], None] = lambda _: None,
        *,
        alike: bool = False,
        stays: Callable[[Value], bool] | None = None,
    ) -> list[Any]:
        """Record the reverse pass; return the arguments' cotangents, None where there is none.

        ``bars`` has None for results without cotangent. ``begin(self)`` runs first, and may say
        where cotangents are kept. ``alike``: cotangents have their results' shapes, whatever the
        types say. ``stays`` selects the arrays outside that keep what the program writes into them.
        """
        recorder, region = self.recorder, self.region
        source = region.source
        outer_block = recorder.block
        way_forward = outer_block.ops[self.first :]
        before = outer_block.ops[: self.first]
        # the source block is what keeps the operations of the forward pass from here on
        back = Block()
        region.block = recorder.block = back
        later = way_forward[len(source.ops) :]
        for op in source.ops:
            for v in (*values_in(op.operands()), *defined_by(op)):  # captures among them
                recorder.measure(v)
        outer_same, equal = recorder.same, equal_lengths(source)
        check_lengths(recorder, equal, source)
        recorder.same = {**outer_same, **equal}
        begin(self)
        for r, bar in zip(self.results, bars, strict=True):
            if bar is not None and isinstance(r, Value):
                self.add(r, bar, alike=alike)
        self.reverse(region)
        params = [symbol.value for symbol in self.given]
        found = [self.take(p) if self.structure.is_active(p) else None for p in params]
        sink_updates(back)
        recorder.block, recorder.same = outer_block, outer_same
        turned = [Apply(turn, ())] if recorder.turns else []
        outer_block.ops[:] = [*before, *self.stacks, *source.ops, *later]
        if stays:
            recorder.leave_outside(self.outside, stays, self.first)
        outer_block.ops += [*turned, *back.ops]
        return found

    def restored_results(self) -> list[int]:
        """The results that are memory which the reverse pass changes."""
        touched = {
            root
            for op, target in self.stores()
            if self.structure.source_of[op] in self.facts.restored or self.runs_again(op)
            for root in self.structure.roots(target.array)
        }
        return [
            k
            for k, r in enumerate(self.results)
            if isinstance(r, Value) and is_array(r) and self.structure.roots(r) & touched
        ]

    def needed(self) -> set[Op]:
        """The stores whose old contents the reverse pass reads."""
        found = []
        for op, target in self.stores():
            roots = self.structure.roots(target.array)
            if any(
                place.root in roots and self.overwrites(op, target, place, block, position)
                for place, block, position in self.read
            ):
                found.append(op)
        self._check_other_writers()
        reads = [(place.root, block, position) for place, block, position in self.read]
        once = [op for op in found if not self.runs_again(op)]
        gone = hidden_stores(self.structure, once, reads)
        found = [op for op in found if op not in gone]
        if self.restores:
            params = set(self.region.source.params)
            found += [op for op, t in self.stores() if self.structure.roots(t.array) & params]
        return {self.structure.source_of[op] for op in found}

    def _check_other_writers(self) -> None:
        """Refuse a function that overwrites what the reverse pass reads, which is not restored."""
        for block in blocks_of(self.structure.top):
            for op in block.ops:
                if target_of(op) is not None or op not in self.structure.source_of:
                    continue
                if isinstance(op, Call) or (isinstance(op, Apply) and op.function in _ON_STACKS):
                    continue
                roots = {root for v in op.writes() for root in self.structure.roots(v)}
                if self.restores and roots & set(self.region.source.params):
                    self.op = op
                    self.fail("a function overwrites an argument that the reverse pass reads")
                for place, where, position in self.read:
                    if place.root in roots and (
                        self.is_before(where, position, op) or self.share_loop(where, op)
                    ):
                        self.op = op
                        self.fail("a function overwrites an array that the reverse pass reads")


def pull_block(
    recorder: Recorder,
    block: Block,
    given: list[Symbol],
    active: list[bool],
    seeds: Any,
    *,
    stays: Callable[[Value], bool] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Record a block and its reverse pass; return its results and its parameters' cotangents.

    ``given`` is memory that the block may write; values from outside are constants. ``seeds`` maps
    the results to their cotangents, None for those without; cotangents that nothing depends on are
    None. ``NotReversibleError`` if the tape cannot be reversed.
    """
    facts = Facts()
    lower(recorder, block)
    tell_views_apart(block, rows=recorder.rows)
    copy_taken_over(block)
    outer, mark, first = recorder.block, recorder.mark(), len(recorder.block.ops)
    place, same = recorder.place, recorder.same
    recorder.derives = True
    try:
        for _ in range(_ATTEMPTS):
            writer = Pullback(recorder, block, given, active, facts)
            recorder.place = _placed(writer, place)
            results = list(writer.results)
            primals = [_symbols(recorder, r) for r in results]
            for k in writer.restored_results():
                primals[k] = recorder.apply(np.ndarray.copy, (primals[k],), {})
            bars = writer.pull(seeds(primals), stays=stays)
            needed = writer.needed()
            if needed <= facts.restored:
                return primals, bars
            facts.restored |= needed
            recorder.block = outer
            del outer.ops[first:]
            recorder.forget(mark)
    finally:
        recorder.place, recorder.same = place, same
    message = "what the reverse pass reads does not settle"
    raise UntraceableError(message)


def write_block(
    recorder: Recorder,
    block: Block,
    given: list[Symbol],
    left: dict[Value, Value] | None = None,
) -> list[Any]:
    """Record a block again, on copies of the arrays outside that it writes; return its results.

    ``given`` is memory that the block may write. ``left`` is filled with the copies, by array.
    """
    cloner = Cloner({p: s.value for p, s in zip(block.params, given, strict=True)})
    outside = _on_copies(recorder, block, cloner)
    if left is not None:
        left.update(outside)
    for op in block.ops:
        made = cloner.op(op)
        recorder.block.ops.append(made)
        for v in defined_by(made):
            recorder.measure(v)
    return [_symbols(recorder, cloner.operand(r)) for r in block.results]


def _on_copies(recorder: Recorder, block: Block, cloner: Cloner) -> dict[Value, Value]:
    """Let a block write into copies of the arrays from outside; return the copies by array."""
    outside = {}
    for v in written_outside(block):
        copy = recorder.apply(np.ndarray.copy, (Symbol(v, recorder),), {})
        cloner.mapping[v] = outside[v] = copy.value
    return outside


def _placed(writer: Pullback, place: Any) -> Any:
    """A function for the location of the operation that is being reversed."""
    return lambda: (writer.op and writer.op.location) or place()


def _symbols(recorder: Recorder, r: Operand) -> Any:
    return Symbol(r, recorder) if isinstance(r, Value) else r
