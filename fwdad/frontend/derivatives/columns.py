"""Columns of a Jacobian, a chunk at a time: a loop whose iterations are independent.

Each iteration runs the function with some of the directions. Under ``jit(parallel=True)`` the
iterations run on several cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.evaluation.arguments import width_of
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.analysis.dependence import loops_in
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Block, Loop, Program, Value
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import INT, Number, Size
from fwdad.tangents.zero import ZERO
from fwdad.transforms.forward import Basis, push_block

_FEWEST = 16
"""Columns for which a second run of the function may be worth it."""

_WIDEST = 64
"""Columns that travel together: as many lanes as may live in registers."""


def width_of_chunks(block: Block, n: int, threads: int, chunk: Any) -> int:
    """The number of columns that travel together; all n unless several threads gain.

    ``chunk`` is the user's, ``threads`` at least two. Without a loop a Jacobian is known entry by
    entry, and chunks would hide that.
    """
    if chunk != "auto":
        width = width_of(chunk, n, [])
        assert isinstance(width, int)
        return min(width, n)
    if n < _FEWEST or not loops_in(block):
        return n
    return min(n, _WIDEST, 8 * math.ceil(n / threads / 8))


def push_in_chunks(
    recorder: Recorder,
    block: Block,
    own: Sequence[Symbol],
    seeds: Sequence[Any],
    n: int,
    width: int,
) -> tuple[list[Any], list[Any]] | None:
    """Write a block with n tangents, ``width`` of them in each iteration of a loop.

    ``seeds`` has lanes, a :class:`Basis` or ``ZERO`` for each of ``own``, the block's arguments.
    Returns primals and lanes of the results; None if their lengths are not known before the loop.
    """
    count = math.ceil(n / width)
    body = Block([Value(INT)])
    k: Any = Symbol(body.params[0], recorder)
    written = written_parameters(Program("", block))
    with recorder.region(body):
        lanes = recorder.apply(np.add, (recorder.apply(np.arange, (width,), {}), k * width), {})
        given = [
            (recorder.apply(np.ndarray.copy, (x,), {}) if w else x, _some(recorder, s, lanes, n))
            for x, w, s in zip(own, written, seeds, strict=True)
        ]
        primals, found = push_block(recorder, block, width, given)
    results = [_Stacked(recorder, p, count) for p in primals]
    columns = [_Stacked(recorder, t, count) for t in found]
    try:
        for each in (*results, *columns):
            each.allocate()
    except UntraceableError:
        return None
    with recorder.region(body):
        for each in (*results, *columns):
            each.store(k)
    recorder.emit(Loop((0, count, 1), [], body))
    return [a.first() for a in results], [c.joined(n) for c in columns]


def _some(recorder: Recorder, seed: Any, lanes: Symbol, n: int) -> Any:
    """The tangents of one argument in some of n directions; those beyond the last are arbitrary."""
    if seed is ZERO:
        return ZERO
    if type(seed) is Symbol:
        return recorder.load(seed, (recorder.apply(np.minimum, (lanes, n - 1), {}),))
    assert isinstance(seed, Basis)
    places = np.arange(math.prod(seed.shape)).reshape(seed.shape) - seed.start
    at = recorder.apply(np.reshape, (lanes, (-1, *[1] * len(seed.shape))), {})
    is_one = recorder.apply(np.equal, (at, recorder.as_symbol(places)), {})
    return recorder.apply(np.where, (is_one, 1.0, 0.0), {})


class _Stacked:
    """One result of each iteration, in an array with an axis for the iterations."""

    def __init__(self, recorder: Recorder, x: Any, count: int) -> None:
        self.recorder = recorder
        self.x = x
        self.count = count
        self.array: Any = None

    def allocate(self) -> None:
        """Make room; raises if a length is known only inside the loop."""
        if type(self.x) is Symbol:
            shape = [self.recorder.length_symbol(d) if isinstance(d, Size) else d
                     for d in self.x.type.shape]  # fmt: skip
            shape_and_dtype = ((self.count, *shape), self.x.type.dtype)
            self.array = self.recorder.apply(np.empty, shape_and_dtype, {})

    def store(self, k: Symbol) -> None:
        """Store the result of an iteration."""
        if self.array is not None:
            self.recorder.store(self.array, (k,), self.x)

    def first(self) -> Any:
        """The result of the first iteration."""
        if self.array is None:
            return self.x
        value = self.recorder.load(self.array, 0)
        python = isinstance(self.x.type, Number) and self.x.type.python
        kinds: dict[str, Callable[..., Any]] = {"b": bool, "i": int, "f": float, "c": complex}
        kind = kinds[self.x.type.dtype.kind] if python else None
        return value if kind is None else self.recorder.apply(kind, (value,), {})

    def joined(self, n: int) -> Any:
        """All results, concatenated along one axis."""
        if self.array is None:
            return self.x
        rest = [self.recorder.length(self.array, k) for k in range(2, self.array.type.ndim)]
        whole = self.recorder.apply(np.reshape, (self.array, (-1, *rest)), {})
        return self.recorder.load(whole, (slice(0, n),))
