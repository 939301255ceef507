"""Residuals: values of the forward pass that the reverse pass needs, recomputed or kept.

When a loop or a branch is reversed, the values of that iteration, or side, are gone. A value that
is needed is recomputed where everything that it depends on is available, and that is cheap;
otherwise it is kept: a branch returns it, a loop pushes it onto a stack.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from fwdad.ir.analysis.costs import cost_of
from fwdad.ir.builder.shape_env import length_if_any, length_of
from fwdad.ir.ops import Apply, Block, Effect, Load, Op, Operand, Value, is_array, values_in
from fwdad.ir.rewrite import all_used, key_of, substitute
from fwdad.ir.symbol import Symbol
from fwdad.transforms.reverse.kept import Kept
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.reads import Reads
from fwdad.transforms.reverse.region import Region, Segment
from fwdad.transforms.reverse.rematerialize import DEAR, Resolver
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Residuals:
    """Resolves the values of the program that are used in a region."""

    def __init__(
        self,
        sweep: Sweep,
        view_cotangents: ViewCotangents,
        overwriting: Overwriting,
        reads: Reads,
        kept: Kept,
    ) -> None:
        self.sweep = sweep
        self.view_cotangents = view_cotangents
        self.overwriting = overwriting
        self.reads = reads
        self.kept = kept

    def end_segment(
        self, region: Region, start: int, position: int, results: tuple[Operand, ...] = ()
    ) -> None:
        """Note what the operations since ``start`` read, which reverse one operation.

        ``position`` is that of the operation in the region's source block, ``results`` what the
        region returns besides cotangents.
        """
        self._prune(region, start, results)
        ops, home = region.block.ops[start:], self.sweep.structure.home
        self.reads.note(ops, region, position)
        bars = [b.value for b in region.bars.values() if type(b) is Symbol]
        bars = [v for v in bars if home.get(v) is region.source]
        region.segments.append(Segment(ops, position, self.sweep.op, bars))

    def resolve(self, region: Region) -> None:
        """Resolve what a region uses of its source block, and the regions inside it."""
        if region.parent is None:  # where everything is still there
            for inner in region.inside.values():
                self.resolve(inner)
            return
        ops, region.block.ops = region.block.ops, []
        ops = self._shared(ops, region)
        for op in ops:
            if not (isinstance(op, Apply) and op.function in (length_of, length_if_any)):
                region.needed |= all_used(op)
        left = set(ops)
        segments = [s._replace(ops=[op for op in s.ops if op in left]) for s in region.segments]
        end = ops[sum(len(s.ops) for s in segments) :]  # what follows the last segment
        for segment in (*segments, Segment(end, -1, None, [])):
            resolver = self._resolve(region, segment)
        region.block.results = [resolver.operand(r) for r in region.block.results]
        region.block.ops += resolver.take()
        region.close()

    def _shared(self, ops: list[Op], region: Region) -> list[Op]:
        """Take what the program has computed before: the sine that the cosine's rule needs.

        An array is taken if it is kept anyway.
        """
        if not any(map(_is_dear, ops)):
            return ops
        needed: set[Value] = set().union(*map(all_used, ops))
        known: dict[Hashable, Value] = {}
        outer: Region | None = region
        while outer is not None:
            for op in outer.source.ops:
                if _is_dear(op):
                    (v,) = op.outputs
                    arrays = [x for x in (*op.outputs, *op.operands()) if is_array(x)]
                    written = any(map(self.sweep.structure.is_memory, arrays))
                    if not arrays or (v in needed and not written):
                        known.setdefault(_key(op), v)
            outer = outer.parent
        instead: dict[Value, Operand] = {
            op.outputs[0]: known[_key(op)] for op in ops if _is_dear(op) and _key(op) in known
        }
        left = Block(
            region.block.params, [op for op in ops if instead.keys().isdisjoint(op.outputs)]
        )
        left.results = region.block.results
        substitute(left, instead)
        region.block.results = left.results
        return left.ops

    def _resolve(self, region: Region, segment: Segment) -> Resolver:
        """Resolve what one segment uses; return what has resolved it."""
        outer, self.sweep.op = self.sweep.op, segment.op
        resolved, position = region.block.ops, segment.position
        resolver = Resolver(self.sweep, self.overwriting, self.kept, region, position)
        for op in segment.ops:
            for block in op.blocks():
                if id(block) in region.inside:
                    self.resolve(region.inside[id(block)])
            _rewrite(op, resolver)
            resolved += [*resolver.take(), op]
        for v in segment.bars:  # which the region may return as they are
            resolver.value(v)
            resolved += resolver.take()
        self.sweep.op = outer
        return resolver

    def _prune(self, region: Region, start: int, results: tuple[Operand, ...]) -> None:
        """Remove unused operations, whose operands would be kept."""
        alive = set(values_in(list(results)))
        alive.update(symbol.value for symbol in self.view_cotangents.refs.values())
        inner: Region | None = region
        while inner is not None:
            symbols = [*inner.bars.values(), *inner.buffers.values()]
            alive.update(x.value for x in symbols if type(x) is Symbol)
            inner = inner.parent
        kept: list[Op] = []
        gone: set[Value] = set()
        for op in reversed(region.block.ops[start:]):
            if isinstance(op, (Apply, Load)) and op.pure and not alive.intersection(op.outputs):
                gone.update(op.outputs)
                continue
            kept.append(op)
            alive |= all_used(op)
        region.block.ops[start:] = kept[::-1]
        self.sweep.recorder.lengths.unmeasure(gone)


def _is_dear(op: Op) -> bool:
    """Whether an operation computes one value by a function that takes longer than to keep it."""
    if not isinstance(op, Apply) or isinstance(op, Effect) or op.kwargs or op.mutated:
        return False
    return len(op.outputs) == 1 and cost_of(op) in DEAR


def _key(op: Any) -> Hashable:
    return op.function, key_of(op.args)


def _rewrite(op: Op, resolver: Resolver) -> None:
    """Resolve what an operation uses."""
    if isinstance(op, Apply) and op.function in (length_of, length_if_any):
        resolver.length(op)
        return
    op.replace(resolver.value)
    for inner in op.blocks():
        _rewrite_block(inner, resolver)


def _rewrite_block(block: Block, resolver: Resolver) -> None:
    for op in block.ops:
        _rewrite(op, resolver)
    block.results = [resolver.operand(r) for r in block.results]
