"""Optimised tapes for arguments of a kind, and special ones for small arrays if loops gain from it.

A tape serves all lengths, or all that are equal where those of the first call were: arrays of one
length are one loop. Other lengths get a second tape, which serves all. A loop whose state is a
small array, or that takes short rows of a long one, is an exception: with its length known, it
becomes numbers, which live in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.core.gc_pause import NoCollection
from fwdad.frontend.arguments import UNKNOWN, Flattened, Lengths
from fwdad.frontend.tape import Tape
from fwdad.frontend.trace import trace_flat
from fwdad.ir.ops import Block, Loop, Op, Program, Value, is_array, walk
from fwdad.ir.types import Dimension, Size
from fwdad.transforms.passes import SMALL, inline, optimise, split_arrays

Shapes = tuple[tuple[int, int, int], ...]

_SHORT = 64  # an axis that parts are taken of, where loops have small arrays


def trace_optimised(
    f: Callable[..., Any],
    flat: Flattened,
    *,
    lengths: Lengths = UNKNOWN,
    equal: bool = False,
    threads: int = 1,
    rows: bool = False,
    follows: bool = False,
) -> Tape:
    """A tape after all passes.

    The tape takes ``lengths`` from the example. ``equal``: lengths that agree in the example are
    assumed to be equal. ``rows``: arrays are assumed to be C-contiguous if those of the example
    are, wherever it matters. ``follows``: where a tape cannot hold both ways of a branch, it holds
    the example's. ``threads``: the cores that chunks of columns are spread over.
    """
    with NoCollection() as resting, resting:
        if isinstance(f, Tape):  # it was traced already
            tape = f.again(flat)
        else:
            tape = trace_flat(
                f, flat, lengths, equal=equal, threads=threads, rows=rows, follows=follows
            )
        inline(tape.program)
        optimise(tape.program)
        if not tape.program.quiet:  # derivatives are of functions split before; lanes stay
            split = split_arrays(tape.program)
            tape.split += split.in_loops
            if split:
                optimise(tape.program)
    return tape


def known_lengths(leaves: list[Any], lengths: Lengths) -> Shapes:
    """The lengths of inputs for which a tape of their own is made."""
    return tuple(
        (k, axis, n)
        for k, x in enumerate(leaves)
        if isinstance(x, np.ndarray)
        for axis, n in enumerate(x.shape)
        if n > 1 and lengths.assumes(x, k, axis)
    )


def gaining(program: Program, leaves: list[Any]) -> Lengths | None:
    """The lengths that loops may gain from: of small arrays, and of what makes small arrays.

    Where an array in a loop is small because of some axes, such as rows of a long matrix, these
    axes are taken, and all that are neither first nor long, since parts along them are small, too.
    None if no array in a loop has an unknown length.
    """
    loops = [op for op in walk(program.block) if isinstance(op, Loop)]
    shapes = {v.type.shape for op in loops for v in _arrays_in(op)}
    if not any(isinstance(d, Size) for shape in shapes for d in shape):
        return None
    wanted = {d for shape in shapes if _is_small(shape) for d in shape if isinstance(d, Size)}
    axes = {
        (k, axis): d
        for k, (v, x) in enumerate(zip(program.block.params, leaves, strict=True))
        if isinstance(x, np.ndarray) and x.size > SMALL
        for axis, d in enumerate(v.type.shape)
        if isinstance(d, Size)
    }
    if not wanted.intersection(axes.values()):
        return Lengths(SMALL)
    taken = (
        (k, axis)
        for (k, axis), d in axes.items()
        if d in wanted or (axis and leaves[k].shape[axis] <= _SHORT)
    )
    return Lengths(SMALL, frozenset(taken))


def _is_small(shape: tuple[Dimension, ...]) -> bool:
    """Whether an array is small with the lengths of the example."""
    sizes = [(d.hint or 0) if isinstance(d, Size) else d for d in shape]
    return bool(sizes) and 0 < math.prod(sizes) <= SMALL


def _arrays_in(loop: Op) -> Iterator[Value]:
    blocks: list[Block] = loop.blocks()
    values = [v for b in blocks for v in (*b.params, *(o for op in walk(b) for o in op.outputs))]
    return (v for v in values if is_array(v))
