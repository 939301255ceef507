"""Reverse mode on a tape: the program, followed by its reverse pass.

As in Griewank and Walther (2008, doi:10.1137/1.9780898717761), chapters 5 and 6: every operation is
linearized by its frule and transposed, in the opposite order; loops and branches become loops and
branches; what a store has overwritten is restored. First the block is brought into a normal form
(``normalize``), in which each name of an array that is written means one array. Then analyses say
which memory a name is (``alias``) and what is active (``activity``). The reverse pass is recorded
as if every value of the program were there for it; afterwards the to-be-recorded analysis (``tbr``)
decides what is restored, and values of inner blocks are recomputed or kept (``residuals``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from fwdad.errors import type_in_words
from fwdad.ir.analysis.alias import Roots
from fwdad.ir.builder.outside import leave_outside
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.clone import Cloner
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Effect,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.stacks import turn
from fwdad.ir.primitives.undef import missing_on_some_way
from fwdad.ir.rewrite import defined_by, substitute, written_outside
from fwdad.ir.symbol import Symbol
from fwdad.transforms.passes.lengths import share_lengths_in
from fwdad.transforms.reverse.bar_stacks import BarStacks
from fwdad.transforms.reverse.branches import Branches
from fwdad.transforms.reverse.checkpointing.loops import Checkpoints
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.kept import Kept
from fwdad.transforms.reverse.lengths import check_lengths, equal_lengths
from fwdad.transforms.reverse.loops import Loops
from fwdad.transforms.reverse.memory import Memory
from fwdad.transforms.reverse.normalize.array_phis import Choices
from fwdad.transforms.reverse.normalize.loop_views import copy_views
from fwdad.transforms.reverse.normalize.normal_form import normalize
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.reads import Reads
from fwdad.transforms.reverse.recursion import Group, Recursion
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.residuals import Residuals
from fwdad.transforms.reverse.restores import Restores
from fwdad.transforms.reverse.rules import Rules
from fwdad.transforms.reverse.sinking import sink_updates
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.structure import Structure
from fwdad.transforms.reverse.sweep import ALONE, Setting, Sweep
from fwdad.transforms.reverse.tbr import to_be_recorded
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Pullback:
    """A block, cloned into a tape, to be reversed.

    Values from outside are constants. The block may write into its arguments, ``given``; ``active``
    says which of these carry derivatives. ``roots`` and ``natural`` are those of
    :class:`Structure`, for the arguments' values; ``setting`` and ``group`` are those of
    :class:`Sweep` and :class:`Recursion`.
    """

    def __init__(
        self,
        recorder: Recorder,
        block: Block,
        given: list[Symbol],
        active: list[bool],
        roots: Roots | None = None,
        natural: Iterable[Value] = (),
        *,
        setting: Setting = ALONE,
        group: Group | None = None,
    ) -> None:
        self.outside = _on_copies(recorder, block)
        values = [s.value for s in given]
        cloner = Cloner({**dict(zip(block.params, values, strict=True)), **self.outside})
        self.first = len(recorder.block.ops)
        # active values may be stored into the copies, too
        source = Block([*values, *self.outside.values()], cloner.ops(block.ops))
        source.results = [cloner.operand(r) for r in block.results]
        copy_views(source)
        share_lengths_in(source)
        wrt = [s.value for s, is_on in zip(given, active, strict=True) if is_on]
        structure = Structure(source, wrt, roots, natural)
        choices = Choices(structure)
        self.recorder = recorder
        self.structure = structure
        self.given = given
        recorder.block.ops.extend(source.ops)
        self.results = source.results
        # the parts: each is given those above it that it uses
        region = Region(source, recorder.block)
        sweep = self.sweep = Sweep(recorder, structure, choices, region, setting)
        spaces = Spaces(sweep)
        view_cotangents = ViewCotangents(sweep, spaces)
        overwriting = self.overwriting = Overwriting(sweep, view_cotangents)
        cotangents = self.cotangents = Cotangents(
            sweep, spaces, view_cotangents, overwriting, by_rule=self
        )
        restores = self.restores = Restores(sweep)
        reads = self.reads = Reads(sweep, overwriting, restores)
        kept = Kept(sweep)
        residuals = self.residuals = Residuals(sweep, view_cotangents, overwriting, reads, kept)
        bar_stacks = BarStacks(sweep, spaces, cotangents)
        self.memory = Memory(
            sweep, spaces, view_cotangents, overwriting, cotangents, reads, restores
        )
        self.rules = Rules(sweep, spaces, view_cotangents, cotangents, bar_stacks, self.memory)
        self.branches = Branches(sweep, spaces, view_cotangents, cotangents, blocks=self)
        loops = Loops(
            sweep,
            spaces,
            view_cotangents,
            overwriting,
            restores,
            cotangents,
            residuals,
            blocks=self,
        )
        self.checkpoints = Checkpoints(
            sweep, spaces, view_cotangents, overwriting, cotangents, reads, loops, inner=self
        )
        self.recursion = Recursion(
            sweep,
            spaces,
            view_cotangents,
            overwriting,
            cotangents,
            bar_stacks,
            residuals,
            restores,
            blocks=self,
            new_pass=Pullback,
            group=group,
        )

    # -- from the last operation to the first

    def reverse(self, region: Region) -> None:
        """Reverse the operations of a region's source block, into the region."""
        source, sweep = region.source, self.sweep
        inside = [v for op in source.ops for v in defined_by(op)]
        absent: list[Value] = []  # what is no array yet in the first iteration
        if isinstance(region.owner, Loop):
            pairs = zip(region.owner.carried, region.owner.initial, strict=True)
            absent = [p for p, a in pairs if isinstance(a, Missing)]
        for v in (*(p for p in source.params if p not in absent), *inside):
            self.recorder.lengths.measure(v, anew=region.parent is not None)
        ops = list(source.ops)  # what keeps values is written beside them
        if region.parent is not None:  # the cotangents of its results may have read lengths
            self.residuals.end_segment(region, 0, len(ops))
        for op in reversed(ops):
            outer, sweep.op = sweep.op, op
            start = len(region.block.ops)
            self._reverse(op)
            self.residuals.end_segment(region, start, self.structure.position[op])
            sweep.op = outer

    def _reverse(self, op: Op) -> None:
        """Reverse one operation."""
        match op:
            case Check() | Effect():
                pass  # what held in the forward pass holds, and output is not repeated
            case Apply():
                self.rules.reverse(op)
            case Load():
                self.memory.load(op)
            case Store():
                self.memory.store(op)
            case Update():
                self.memory.update(op)
            case Branch():
                self.branches.reverse(op)
            case Loop():
                self.checkpoints.reverse(op)
            case Call():
                self.recursion.reverse(op)
            case _:
                self.sweep.fail(f"{type_in_words(op)} cannot be run backwards")

    def add_through(self, op: Apply, v: Value, x_bar: Any) -> None:
        """Add the contribution of one result of a call to the cotangents of the arguments."""
        self.rules.add_through(op, v, x_bar)

    # -- whole programs

    def finish(self) -> None:
        """Restore what the recorded reverse pass reads, and resolve what it uses."""
        restored = self.overwriting.restored = to_be_recorded(
            self.sweep, self.overwriting, self.reads
        )
        self.recursion.define_calls()
        self.restores.take_out(restored)
        self.memory.take_out_old(restored)
        self.residuals.resolve(self.sweep.region)

    def pull(
        self,
        bars: list[Any],
        begin: Callable[[Cotangents, list[Operand]], None] = lambda *_: None,
        *,
        alike: bool = False,
        stays: Callable[[Value], bool] | None = None,
    ) -> list[Any]:
        """Record the reverse pass; return the arguments' cotangents, None where there is none.

        ``bars`` has None for results without cotangent. ``begin``, which gets the cotangents and
        the results, runs first, and may say where cotangents are kept. ``alike``: cotangents have
        their results' shapes, whatever the types say. ``stays`` selects the arrays outside that
        keep what the program writes into them.
        """
        recorder, region = self.recorder, self.sweep.region
        source = region.source
        outer_block = recorder.block
        forward_pass = outer_block.ops[self.first :]
        before = outer_block.ops[: self.first]
        # the source block is what keeps the operations of the forward pass from here on
        back = Block()
        region.block = recorder.block = back
        later = forward_pass[len(source.ops) :]
        for op in source.ops:
            for v in (*values_in(op.operands()), *defined_by(op)):  # captures among them
                recorder.lengths.measure(v)
        outer_same, equal = recorder.lengths.same, equal_lengths(source)
        check_lengths(recorder, equal, source)
        recorder.lengths.same = {**outer_same, **equal}
        begin(self.cotangents, self.results)
        for r, bar in zip(self.results, bars, strict=True):
            if bar is not None and isinstance(r, Value):
                self.cotangents.add(r, bar, alike=alike)
        self.reverse(region)
        params = [symbol.value for symbol in self.given]
        active = self.structure.activity.is_active
        x_bars = [self.cotangents.take(p) if active(p) else None for p in params]
        self.finish()
        sink_updates(back)
        recorder.block, recorder.lengths.same = outer_block, outer_same
        turned = [Apply(turn, ())] if recorder.turns else []
        outer_block.ops[:] = [*before, *self.sweep.stacks, *source.ops, *later]
        if stays:
            leave_outside(recorder, self.outside, stays, self.first)
        outer_block.ops += [*turned, *back.ops]
        return x_bars

    def pulled(
        self,
        block: Block,
        active: list[bool],
        roots: Roots,
        natural: list[Value],
        bars: list[Any],
        begin: Callable[[Cotangents, list[Operand]], None],
    ) -> list[Any]:
        """Record a block and its reverse pass, in this one; return its parameters' cotangents.

        The parameters are existing values. ``bars`` are the cotangents of the results.
        """
        recorder = self.recorder
        given = [Symbol(p, recorder) for p in block.params]
        setting = Setting(in_loop=self.sweep.is_inside_loop())
        with recorder.lengths.own_lengths():
            inner = Pullback(recorder, block, given, active, roots, natural, setting=setting)
            turns, recorder.turns = recorder.turns, False  # it is not the program's end
            x_bars = inner.pull(bars, begin, alike=True)
            recorder.turns = turns
        return x_bars

    def written_results(self) -> list[int]:
        """The results that are memory which the program writes."""
        structure = self.structure
        results = enumerate(self.results)
        return [k for k, r in results if is_array(r) and structure.roots(r) & structure.written]

    def restored_results(self) -> list[int]:
        """The results that are memory which the recorded reverse pass changes."""
        structure, overwriting = self.structure, self.overwriting
        touched = {
            root
            for op, target in overwriting.stores
            if overwriting.is_restored(op) or overwriting.runs_again(op)
            for root in structure.roots(target.array)
        }
        return [
            k
            for k, r in enumerate(self.results)
            if isinstance(r, Value) and is_array(r) and structure.roots(r) & touched
        ]


def _mark_reverse(block: Block, forward: list[Op]) -> None:
    """Mark the locations of the operations behind the forward pass, which ends with ``forward``."""
    begins = next((k + 1 for k, op in enumerate(block.ops) if op in forward), 0)
    for op in walk(Block(ops=block.ops[begins:])):
        if op.location is not None:
            op.location = replace(op.location, reverse=True)


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
    normalize(recorder, block)
    place, same = recorder.place, recorder.lengths.same
    recorder.derives = True
    ways, recorder.ways = recorder.ways, None  # rules are for all values

    try:
        pullback = Pullback(recorder, block, given, active)
        recorder.place = lambda: (pullback.sweep.op and pullback.sweep.op.location) or place()
        results = [_symbols(recorder, r) for r in pullback.results]
        primals = list(results)
        forward = recorder.block.ops[-1:]
        for k in pullback.written_results():  # which the reverse pass may change
            primals[k] = recorder.apply(np.ndarray.copy, (results[k],), {})
        bars = pullback.pull(seeds(primals), stays=stays)
        changed = pullback.restored_results()
        copies = {
            copy.value: results[k].value
            for k, copy in enumerate(primals)
            if copy is not results[k] and k not in changed
        }
        block = recorder.block
        block.ops[:] = [op for op in block.ops if copies.keys().isdisjoint(op.outputs)]
        substitute(block, copies)
        _mark_reverse(block, forward)
        return _replaced(primals, copies), _replaced(bars, copies)
    finally:
        recorder.place, recorder.lengths.same, recorder.ways = place, same, ways


def _replaced(symbols: list[Any], copies: dict[Value, Value]) -> list[Any]:
    """The same symbols, of the originals instead of some copies."""
    return [
        Symbol(copies[x.value], x.recorder) if type(x) is Symbol and x.value in copies else x
        for x in symbols
    ]


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
    outside = _on_copies(recorder, block)
    cloner.mapping.update(outside)
    if left is not None:
        left.update(outside)
    missing = missing_on_some_way(Program("", block))
    for op in block.ops:
        written = cloner.op(op)
        recorder.block.ops.append(written)
        for before, v in zip(defined_by(op), defined_by(written), strict=True):
            recorder.lengths.measure(v, absent=before in missing)
    return [_symbols(recorder, cloner.operand(r)) for r in block.results]


def _on_copies(recorder: Recorder, block: Block) -> dict[Value, Value]:
    """Copies of the arrays from outside that a block writes, by array."""
    outside = [Symbol(v, recorder) for v in written_outside(block)]
    return {s.value: recorder.apply(np.ndarray.copy, (s,), {}).value for s in outside}


def _symbols(recorder: Recorder, r: Operand) -> Any:
    return Symbol(r, recorder) if isinstance(r, Value) else r
