"""Tapes for arguments of a kind, and tapes of their own for few elements where loops gain from it.

A tape serves all lengths, or all that are equal where those of the first call were: arrays of one
length are one loop. Other lengths get a second tape, which serves all. A loop whose state is a
small array is an exception: with its length known, the state becomes numbers, which live in
registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.tape.garbage import no_collection
from fwdad.tape.ops import Block, Loop, Op, Program, Value, is_array, walk
from fwdad.tape.passes import SMALL, inline, optimise, split_arrays
from fwdad.tape.types import Size
from fwdad.tracing.arguments import Flattened
from fwdad.tracing.trace import Tape, trace_flat

Shapes = tuple[tuple[int, tuple[int, ...]], ...]


def trace_optimised(
    f: Callable[..., Any],
    flat: Flattened,
    *,
    small: bool = False,
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
    small : bool
        Whether the lengths of small arrays are taken as those of the example.
    equal : bool
        Whether lengths of arguments that are equal in the example are assumed to be equal.
    threads : int
        How many cores chunks of columns are spread over.
    rows : bool
        Whether arrays are assumed to lie row by row, where it is seen how they lie, if those of the
        example do.
    """
    with no_collection():
        at_most = SMALL if small else 0
        tape = trace_flat(f, flat, at_most, equal=equal, threads=threads, rows=rows)
        inline(tape.program)
        optimise(tape.program)
        if not tape.program.quiet:  # derivatives are of functions split before; lanes stay
            found = split_arrays(tape.program)
            tape.split += found.in_loops
            if found:
                optimise(tape.program)
    return tape


def small_shapes(leaves: list[Any]) -> Shapes:
    """Which inputs are small arrays, and their shapes."""
    arrays = [(k, x) for k, x in enumerate(leaves) if isinstance(x, np.ndarray)]
    return tuple((k, x.shape) for k, x in arrays if 1 < x.size <= SMALL)


def may_gain(program: Program) -> bool:
    """Whether a loop has arrays whose lengths are not known."""
    return any(
        isinstance(d, Size)
        for op in walk(program.block)
        if isinstance(op, Loop)
        for v in _arrays_in(op)
        for d in v.type.shape
    )


def _arrays_in(loop: Op) -> Iterator[Value]:
    blocks: list[Block] = loop.blocks()
    made = [v for b in blocks for v in (*b.params, *(o for op in walk(b) for o in op.outputs))]
    return (v for v in made if is_array(v))
