"""To-be-recorded analysis: the stores whose old content the reverse pass reads.

The forward pass keeps what these overwrite, and the reverse pass restores it; all others lose their
old content (Hascoët, Naumann, Pascual 2005, "To be recorded" analysis in reverse-mode automatic
differentiation, doi:10.1016/j.future.2004.11.009). The adjoints of the operations are not
predicted: the analysis reads the reverse pass itself, before its residuals are resolved.
"""

from __future__ import annotations

from fwdad.ir.ops import Apply, Call, Op
from fwdad.ir.primitives.scatter_add import target_of
from fwdad.ir.primitives.stacks import pop, push, thin, top
from fwdad.ir.rewrite import blocks_of
from fwdad.transforms.reverse.dead_restores import hidden_stores
from fwdad.transforms.reverse.indices import Read
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.reads import Reads
from fwdad.transforms.reverse.sweep import Sweep

_ON_STACKS = (push, pop, top, thin)


def to_be_recorded(sweep: Sweep, overwriting: Overwriting, reads: Reads) -> set[Op]:
    """The stores to be restored; for a reverse pass that has been recorded as a whole."""
    structure, stores = sweep.structure, overwriting.stores
    recorded: set[Op] = set()
    if sweep.setting.restores:
        params = set(structure.top.params)
        recorded = {op for op, target in stores if structure.roots(target.array) & params}
    while True:  # what restores memory may read some in its turn: an index
        read = [r for r in reads.noted if r.stores is None or r.stores & recorded]
        changed = overwriting.that_change(read)
        once = [op for op in changed if not overwriting.runs_again(op)]
        changed -= hidden_stores(structure, once, read)
        if changed <= recorded:
            break
        recorded |= changed
    _check_other_writers(sweep, overwriting, read)
    if any(overwriting.runs_again(op) for op in recorded - overwriting.restored_by_states):
        sweep.fail("a loop that runs again overwrites what the reverse pass reads")
    return recorded


def _check_other_writers(sweep: Sweep, overwriting: Overwriting, read: list[Read]) -> None:
    """Refuse a function that overwrites what the reverse pass reads, which is not restored."""
    structure = sweep.structure
    for op in (op for block in blocks_of(structure.top) for op in block.ops):
        if not op.writes() or target_of(op) is not None or op not in structure.program:
            continue
        if isinstance(op, Call) or (isinstance(op, Apply) and op.function in _ON_STACKS):
            continue
        roots = {root for v in op.writes() for root in structure.roots(v)}
        if sweep.setting.restores and roots & set(structure.top.params):
            sweep.op = op
            sweep.fail("a function overwrites an argument that the reverse pass reads")
        for r in read:
            if r.place.root in roots and (
                overwriting.is_before(r.block, r.position, op)
                or overwriting.share_loop(r.block, op)
            ):
                sweep.op = op
                sweep.fail("a function overwrites an array that the reverse pass reads")
