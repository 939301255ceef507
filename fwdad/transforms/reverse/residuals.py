"""Residuals: values of the forward pass that the reverse pass needs, recomputed or kept.

When a loop or a branch is reversed, the values of that iteration, or side, are gone. A value that
is needed is recomputed where everything that it depends on is available, and that is cheap;
otherwise it is kept: a branch returns it, a loop pushes it onto a stack.
"""

from __future__ import annotations

from fwdad.ir.builder.shape_env import length_if_any, length_of
from fwdad.ir.ops import Apply, Block, Load, Op, Operand, Value, values_in
from fwdad.ir.rewrite import all_used
from fwdad.ir.symbol import Symbol
from fwdad.transforms.reverse.kept import Kept
from fwdad.transforms.reverse.reads import Reads
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.rematerialize import Resolver
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.tbr import Overwriting
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

    def settle(
        self, region: Region, start: int, position: int, results: tuple[Operand, ...] = ()
    ) -> None:
        """Resolve what the operations since ``start`` use of the region's source block.

        ``position`` is that of the source operation that they reverse, ``results`` what the region
        returns besides cotangents.
        """
        self._prune(region, start, results)
        made = region.block.ops[start:]
        self.reads.note(made, region, position)
        if region.parent is None:
            return
        del region.block.ops[start:]
        resolver = Resolver(self.sweep, self.overwriting, self.reads, self.kept, region, position)
        for op in made:
            _rewrite(op, resolver)
            region.block.ops.extend(resolver.take())
            region.block.ops.append(op)
        structure, recorder = self.sweep.structure, self.sweep.recorder
        for v, bar in list(region.bars.items()):  # which the region may return as it is
            if type(bar) is Symbol and structure.home.get(bar.value) is region.source:
                found = resolver.value(bar.value)
                region.block.ops.extend(resolver.take())
                region.bars[v] = Symbol(found, recorder) if isinstance(found, Value) else found

    def _prune(self, region: Region, start: int, results: tuple[Operand, ...]) -> None:
        """Remove unused operations, whose operands would be kept."""
        alive = set(values_in(list(results)))
        alive.update(symbol.value for symbol in self.view_cotangents.refs.values())
        inner: Region | None = region
        while inner is not None:
            held = [*inner.bars.values(), *inner.buffers.values()]
            alive.update(x.value for x in held if type(x) is Symbol)
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
