"""Lengths that are equal because of the program's operations.

Two arrays that are added, or multiplied as matrices, have lengths in common, whatever their types
say. Where the reverse pass knows that, it need not sum over axes that might have been broadcast.
The operation may be removed later, so every equality in use is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from fwdad.errors import Location
from fwdad.ir.abstract_eval.broadcasting import BROADCASTING
from fwdad.ir.analysis.reassociation import is_product
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Block, is_array
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Dimension, Size

_MESSAGE = "operands could not be broadcast together"


def equal_lengths(block: Block) -> dict[Size, Size]:
    """For lengths of arguments, the representative of all that are equal.

    Only operations directly in the block count, since those inside it need not run.
    """
    equal: dict[Size, Size] = {}

    def leader(d: Size) -> Size:
        while d in equal:
            d = equal[d]
        return d

    for op in block.ops:
        if not isinstance(op, Apply):
            continue
        for lengths in _together(op):
            sure = [leader(d) for d in lengths if isinstance(d, Size) and not d.may_be_one]
            first = min(sure, key=lambda d: d.number, default=None)
            equal.update((d, first) for d in sure if first is not None and d is not first)
    return {d: leader(d) for d in equal}


def _is_product(op: Apply) -> bool:
    """Whether a call sums over the last axis of one array and the last but one of another."""
    return is_product(op) or op.function is np.dot


def _together(op: Apply) -> list[list[Dimension]]:
    """The lengths that one operation requires to be equal."""
    shapes = [a.type.shape for a in op.args if is_array(a) and a.type.shape]
    if len(shapes) < 2:
        return []
    if _is_product(op) and len(op.args) == 2 and not op.kwargs:
        left, right = shapes
        return [[left[-1], right[-2] if len(right) > 1 else right[0]]]
    by_element = isinstance(op.function, np.ufunc) and op.function.signature is None
    if by_element or op.function in BROADCASTING:
        rank = max(map(len, shapes))
        padded = [(1,) * (rank - len(s)) + s for s in shapes]
        return [list(lengths) for lengths in zip(*padded, strict=True)]
    return []


@contextmanager
def equal_inside(recorder: Recorder, op: Apply) -> Iterator[None]:
    """While an operation is reversed, treat the lengths that it sums over as one."""
    outer = recorder.lengths.same
    plain = len(op.args) == 2 and not op.kwargs  # `axes` says otherwise
    if _is_product(op) and plain and all(map(is_array, op.args)):
        left, right = (Symbol(a, recorder) for a in op.args)
        if left.ndim and right.ndim:
            at = left.ndim - 1, max(right.ndim - 2, 0)
            m, n = (
                recorder.lengths.resolved(s.type).shape[k]
                for s, k in zip((left, right), at, strict=True)
            )
            if isinstance(m, Size) and isinstance(n, Size) and m is not n:
                same = recorder.length(left, at[0]) == recorder.length(right, at[1])
                recorder.check(same, ValueError, (_MESSAGE,), op.location)
                recorder.lengths.same = {**outer, m: n}
    try:
        yield
    finally:
        recorder.lengths.same = outer


def check_lengths(recorder: Recorder, equal: dict[Size, Size], block: Block) -> None:
    """Record checks of the equalities that :func:`equal_lengths` finds in a block."""
    for d, first in equal.items():
        same = recorder.length_symbol(d) == recorder.length_symbol(first)
        recorder.check(same, ValueError, (_MESSAGE,), _place_of(d, block))


def _place_of(d: Size, block: Block) -> Location | None:
    """Where a length is first required to equal another one."""
    for op in block.ops:
        if isinstance(op, Apply) and any(
            any(x is d for x in lengths)
            and any(isinstance(x, Size) and x is not d for x in lengths)
            for lengths in _together(op)
        ):
            return op.location
    return None
