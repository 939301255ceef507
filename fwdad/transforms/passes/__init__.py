"""Passes: each rewrites a program in place and returns whether it changed anything."""

from __future__ import annotations

from collections.abc import Callable

from fwdad.ir.ops import Call, Program
from fwdad.transforms.passes.copies import drop_copies
from fwdad.transforms.passes.cse import cse
from fwdad.transforms.passes.dead import dead
from fwdad.transforms.passes.extremes import find_extremes
from fwdad.transforms.passes.fold import fold
from fwdad.transforms.passes.hoist import hoist
from fwdad.transforms.passes.in_place import read_in_place
from fwdad.transforms.passes.inline import inline
from fwdad.transforms.passes.lengths import share_lengths
from fwdad.transforms.passes.simplify import simplify
from fwdad.transforms.passes.small import SMALL, split_arrays, unroll_short

PASSES = (fold, simplify, cse, find_extremes, share_lengths, dead, drop_copies, read_in_place)
_ROUNDS = 20  # nested loops settle from the inside to the outside, one round a level


def _run(run: Callable[[Program], bool], program: Program) -> bool:
    return run(program)


def optimise(
    program: Program, run: Callable[[Callable[[Program], bool], Program], bool] = _run
) -> bool:
    """Run all passes on a program and its callees until nothing changes; whether anything did.

    ``run`` runs one pass, as :func:`fwdad.ir.check.checked` does.
    """
    changed = [_settle(each, run) for each in called_from(program)]
    return any(changed)


def _settle(program: Program, run: Callable[[Callable[[Program], bool], Program], bool]) -> bool:
    changed, settled = False, 0  # how many passes one after the other have changed nothing
    for p in PASSES * _ROUNDS:
        settled = 0 if run(p, program) else settled + 1
        changed |= not settled
        if settled == len(PASSES):
            if not run(hoist, program):
                break
            changed, settled = True, 0
    return changed


def called_from(program: Program) -> list[Program]:
    """A program and all that it calls, each once."""
    found = [program]
    for each in found:
        for op in each.walk():
            if isinstance(op, Call) and op.program not in found:
                found.append(op.program)
    return found


__all__ = [
    "PASSES", "SMALL", "called_from", "cse", "dead", "drop_copies", "find_extremes", "fold",
    "hoist", "inline", "optimise", "read_in_place", "share_lengths", "simplify", "split_arrays",
    "unroll_short",
]  # fmt: skip
