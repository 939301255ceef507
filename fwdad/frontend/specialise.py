"""Tapes for arguments of a kind, and tapes of their own for few elements where loops gain from it.

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
) -> Tape:
    """A tape after all passes.

    Parameters
    ----------
    f : callable
        The function.
    flat : Flattened
        Its arguments.
    lengths : Lengths
        Those that are taken as those of the example.
    equal : bool
        Whether lengths of arguments that are equal in the example are assumed to be equal.
    threads : int
        How many cores chunks of columns are spread over.
    rows : bool
        Whether arrays are assumed to be C-contiguous, where it is seen how they lie, if those of
        the example do.
    """
    with NoCollection() as resting, resting:
        tape = trace_flat(f, flat, lengths, equal=equal, threads=threads, rows=rows)
        inline(tape.program)
        optimise(tape.program)
        if not tape.program.quiet:  # derivatives are of functions split before; lanes stay
            found = split_arrays(tape.program)
            tape.split += found.in_loops
            if found:
                optimise(tape.program)
    return tape


def known_lengths(leaves: list[Any], lengths: Lengths) -> Shapes:
    """The lengths that a tape of its own takes from its inputs."""
    return tuple(
        (k, axis, n)
        for k, x in enumerate(leaves)
        if isinstance(x, np.ndarray)
        for axis, n in enumerate(x.shape)
        if n > 1 and lengths.assumes(x, k, axis)
    )


def gaining(program: Program, leaves: list[Any]) -> Lengths | None:
    """Which lengths loops may gain from: those of small arrays, and of what makes small arrays.

    Where a loop has an array that is small by the lengths of some axes, as rows of a long matrix
    are, these are taken, and with them all that are no first axis and not long: parts of such axes
    are small, too.

    Parameters
    ----------
    program : Program
        That serves all lengths.
    leaves : list
        Its inputs.

    Returns
    -------
    Lengths or None
        None if no array in a loop has a length that is not known.
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
    """Whether an array is small where lengths are those of the example."""
    found = [(d.hint or 0) if isinstance(d, Size) else d for d in shape]
    return bool(found) and 0 < math.prod(found) <= SMALL


def _arrays_in(loop: Op) -> Iterator[Value]:
    blocks: list[Block] = loop.blocks()
    made = [v for b in blocks for v in (*b.params, *(o for op in walk(b) for o in op.outputs))]
    return (v for v in made if is_array(v))
