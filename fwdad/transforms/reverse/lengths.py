"""Lengths that the program's operations show to be equal.

Two arrays that are added up, or multiplied as matrices, have lengths in common, whatever their
types say. Where the reverse pass knows that, nothing has to be summed over what might have been
broadcast. The operation may be left out later: what is made use of here is checked.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from fwdad.errors import Location
from fwdad.ir.abstract_eval.broadcasting import BROADCASTING
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Block, is_array
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Dimension, Size

_MESSAGE = "operands could not be broadcast together"
_PRODUCTS = {operator.matmul, np.matmul, np.dot}


def equal_lengths(block: Block) -> dict[Size, Size]:
    """For lengths of arguments the one that stands for all that are equal.

    Parameters
    ----------
    block : Block
        Whose operations have run; not those of blocks inside it.
    """
    found: dict[Size, Size] = {}

    def leader(d: Size) -> Size:
        while d in found:
            d = found[d]
        return d

    for op in block.ops:
        if not isinstance(op, Apply):
            continue
        for lengths in _together(op):
            sure = [leader(d) for d in lengths if isinstance(d, Size) and not d.may_be_one]
            first = min(sure, key=lambda d: d.number, default=None)
            found.update((d, first) for d in sure if first is not None and d is not first)
    return {d: leader(d) for d in found}


def _together(op: Apply) -> list[list[Dimension]]:
    """The lengths that one operation wants to be equal."""
    shapes = [a.type.shape for a in op.args if is_array(a) and a.type.shape]
    if len(shapes) < 2:
        return []
    if op.function in _PRODUCTS and len(op.args) == 2 and not op.kwargs:
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
    """While an operation is run backwards, take the lengths that it sums over for one.

    Parameters
    ----------
    recorder : Recorder
        Writes.
    op : Apply
        It has run.
    """
    outer = recorder.same
    plain = len(op.args) == 2 and not op.kwargs  # `axes` says otherwise
    if op.function in _PRODUCTS and plain and all(map(is_array, op.args)):
        left, right = (Symbol(a, recorder) for a in op.args)
        if left.ndim and right.ndim:
            at = left.ndim - 1, max(right.ndim - 2, 0)
            m, n = (
                recorder.resolved(s.type).shape[k] for s, k in zip((left, right), at, strict=True)
            )
            if isinstance(m, Size) and isinstance(n, Size) and m is not n:
                same = recorder.length(left, at[0]) == recorder.length(right, at[1])
                recorder.check(same, ValueError, (_MESSAGE,), op.location)
                recorder.same = {**outer, m: n}
    try:
        yield
    finally:
        recorder.same = outer


def check_lengths(recorder: Recorder, equal: dict[Size, Size], block: Block) -> None:
    """Write down that lengths are equal.

    Parameters
    ----------
    recorder : Recorder
        Writes.
    equal : dict
        As :func:`equal_lengths` returns.
    block : Block
        Of which it does.
    """
    for d, first in equal.items():
        same = recorder.length_symbol(d) == recorder.length_symbol(first)
        recorder.check(same, ValueError, (_MESSAGE,), _place_of(d, block))


def _place_of(d: Size, block: Block) -> Location | None:
    """Where a length is first asked to be that of another."""
    for op in block.ops:
        if isinstance(op, Apply) and any(
            any(x is d for x in lengths)
            and any(isinstance(x, Size) and x is not d for x in lengths)
            for lengths in _together(op)
        ):
            return op.location
    return None
