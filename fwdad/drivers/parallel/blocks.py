"""Blocks of a Jacobian as jobs: some columns by a run on duals, some rows by a reverse pass."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from fwdad.drivers.jacobian_rows import unit_cotangents
from fwdad.drivers.parallel.destinations import Matrix
from fwdad.drivers.parallel.jobs import Job
from fwdad.drivers.parallel.shared_writes import global_generators
from fwdad.drivers.pullback import leaves_of_x, vjp, width_of_rows
from fwdad.drivers.tape_cache import jitted_of
from fwdad.eager.arguments import Arguments, copied
from fwdad.eager.build import Run, generator_state, run_on_duals, set_generator_state
from fwdad.eager.forward import run_once
from fwdad.eager.outcomes import Collector
from fwdad.evaluation.arguments import arguments_of, width_of
from fwdad.evaluation.evaluators import jvp
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import flatten
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import BasisSeeds, leaf_dtype, leaf_shape


class Head(NamedTuple):
    """What the first block tells: the value, aux, and how the directions are cut.

    Of ``total`` directions ``first`` are in the first block, and ``width`` in each other one.
    """

    y: Any
    aux: Any
    total: int
    first: int
    width: int


class Block(NamedTuple):
    """Lanes of some directions: one array for each leaf, ``(stop - start, *leaf.shape)``.

    ``mark`` is equal for equal values of f; ``head`` comes with the first block. Where the worker
    has written the lanes itself, there are none, and ``written`` is the digest of what it wrote.
    """

    start: int
    stop: int
    lanes: list[Any]
    mark: bytes
    head: Head | None
    written: bytes = b""


class Generators:
    """The states of the global random generators, that each block of columns begins with."""

    def __init__(self) -> None:
        self.states = [generator_state(o) for o in global_generators()]

    @contextmanager
    def set(self) -> Iterator[None]:
        """Set them for a while."""
        before = Generators()
        self.restore()
        try:
            yield
        finally:
            before.restore()

    def restore(self) -> None:
        """Set them."""
        for o, state in zip(global_generators(), self.states, strict=True):
            set_generator_state(o, state)


class BlockJob(Job):
    """Blocks of the Jacobian of f at ``args`` and ``kwargs`` with respect to ``argnums``.

    The options are those of :func:`jacobian`. ``drawn`` are states of the generators that the
    workers of other processes set; None in this one. ``into`` is what workers write into.
    """

    def __init__(
        self,
        f: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: Any,
        options: dict[str, Any],
        drawn: Generators | None = None,
        into: Matrix | None = None,
    ) -> None:
        super().__init__(f, args, kwargs, argnums, options, drawn, into)
        self.args = args
        self.kwargs = kwargs
        self.argnums = argnums
        self.options = options
        self.drawn = drawn
        self.into = into
        self._lock = threading.Lock()

    def arguments(self) -> tuple[Arguments, bool]:
        """The flattened arguments, and whether ``argnums`` names a single one."""
        x, *more = self.args
        return arguments_of(self.__wrapped__, x, tuple(more), self.kwargs, self.argnums)

    def call_plainly(self, *_at: Any) -> Any:
        """See :class:`Job`."""
        return run_on_duals(self.__wrapped__, *copied((self.args, self.kwargs)))

    def run(self, start: int, stop: int | None, before: Block | None = None) -> Block:
        """The block ``(start, stop)``; the first one's stop may be None: as the options say.

        If it was written ``before``, in an earlier run, and is still there, it is that one.
        """
        if self.into is not None and before is not None:
            if self.into.digest(before.start, before.stop) == before.written:
                return before
        with self.drawn.set() if self.drawn is not None else nullcontext():
            block, total = self.block(start, stop)
        if self.into is None:
            return block
        start, stop = block.start, block.stop
        self.into.write(start, stop, block.lanes, total)
        return block._replace(lanes=[], written=self.into.digest(start, stop))

    def block(self, start: int, stop: int | None) -> tuple[Block, int]:
        """A block, and how many directions there are in all."""
        raise NotImplementedError


class Columns(BlockJob):
    """Blocks of columns, each by one run of f on duals, or of its compiled program."""

    def block(self, start: int, stop: int | None) -> tuple[Block, int]:
        """See :class:`BlockJob`; as far as can be seen f has not run."""
        arguments, _ = self.arguments()
        seeds = BasisSeeds(arguments.leaves)
        width = width_of(self.options["chunk"], seeds.count, arguments.leaves)
        n = width if isinstance(width, int) else width(None)
        stop = min(start + n, seeds.count) if stop is None else stop
        collector = Collector(seeds.count, latest=True)
        if self._is_compiled(arguments):
            largest = None
            self._push_compiled(arguments, collector, start, stop, n)
        else:
            largest = self._push(arguments, collector, start, stop)
        outcome = collector.outcome()
        head = None
        if start == 0:
            if largest is not None and not isinstance(width, int):
                n = width(outcome.leaves, largest)
            head = Head(copied(outcome.y), outcome.aux, seeds.count, stop, n)
        block = Block(start, stop, outcome.tangents, mark_of(outcome.leaves), head)
        return block, seeds.count

    def _is_compiled(self, arguments: Arguments) -> bool:
        """Whether one compiled program takes all blocks; the rule of ``jacobian``."""
        alone = isinstance(self.argnums, int) and len(arguments.leaves) == 1
        returned = self.options["outputs"] == "returned"
        return alone and returned and jitted_of(self.__wrapped__) is not None

    def _push(self, arguments: Arguments, collector: Collector, start: int, stop: int) -> int:
        seeds = BasisSeeds(arguments.leaves)
        results = {key: self.options[key] for key in ("has_aux", "outputs")}
        with Run(stop - start, eager=seeds.eager, stays=False, journal=[]) as run, run:
            for o in global_generators():
                run.note_generator(o)
            lanes = seeds.lanes(start, stop)
            made = run_once(self.__wrapped__, arguments, run, lanes, **results)
            collector.add(start, stop, *made)
        return run.tag.largest

    def _push_compiled(
        self, arguments: Arguments, collector: Collector, start: int, stop: int, n: int
    ) -> None:
        (x,) = arguments.leaves
        x0, *more = arguments.args
        v = np.zeros((n, collector.count), leaf_dtype(x))  # zeros behind: one program takes all
        v[np.arange(stop - start), np.arange(start, stop)] = 1
        given: dict[str, Any] = {"argnums": self.argnums, "args": tuple(more)}
        given |= {"kwargs": arguments.kwargs}
        given |= {key: self.options[key] for key in ("has_aux", "holomorphic")}
        y, y_dot, *aux = jvp(self.__wrapped__, x0, v.reshape(n, *leaf_shape(x)), **given)
        leaves, structure = flatten(y)
        parts, _ = flatten(y_dot)
        pairs = [(p, Chunk(t[: stop - start])) for p, t in zip(leaves, parts, strict=True)]
        collector.add(start, stop, pairs, structure, *(aux or [None]))


class _Pulled(NamedTuple):
    """A pullback, and what is known of its value."""

    pullback: Any
    leaves: list[Any]
    mark: bytes
    head: Head


class Rows(BlockJob):
    """Blocks of rows: f runs once in each worker, and what its reverse pass reads is kept there."""

    _free: list[_Pulled]

    def block(self, start: int, stop: int | None) -> tuple[Block, int]:
        """See :class:`BlockJob`; two threads never use one pullback."""
        with self._lock:
            free = self.__dict__.setdefault("_free", [])
            pulled = free.pop() if free else None
        pulled = pulled or self._pulled()
        try:
            return self._rows(pulled, start, stop), pulled.head.total
        finally:
            with self._lock:
                free.append(pulled)

    def _rows(self, pulled: _Pulled, start: int, stop: int | None) -> Block:
        count, n = pulled.head.total, pulled.head.width
        stop = min(start + n, count) if stop is None else stop
        arguments, single = self.arguments()
        bars = unit_cotangents(pulled.leaves, start, stop, n)
        found = leaves_of_x(arguments, pulled.pullback.of_leaves(bars), single=single)
        lanes = [part[: stop - start].copy() for part in found]
        return Block(start, stop, lanes, pulled.mark, None if start else pulled.head)

    def _pulled(self) -> _Pulled:
        x, *more = self.args
        options = {key: self.options[key] for key in ("has_aux", "outputs", "chunk")}
        y, pullback, *aux = vjp(
            self.__wrapped__, x, argnums=self.argnums, args=tuple(more), kwargs=self.kwargs,
            **options,
        )  # fmt: skip
        leaves, _ = flatten(y)
        complexes = [leaf_dtype(leaf).kind == "c" for leaf in leaves]
        sizes = [math.prod(leaf_shape(leaf)) for leaf in leaves]
        count = sum(size * (1 + c) for size, c in zip(sizes, complexes, strict=True))
        arguments, _ = self.arguments()
        n = min(max(count, 1), width_of_rows(self.options["chunk"], count, arguments.leaves))
        head = Head(copied(y), aux[0] if aux else None, count, n, n)
        return _Pulled(pullback, leaves, mark_of(leaves), head)


def mark_of(leaves: list[Any]) -> bytes:
    """A digest that is equal for equal values; all NaNs are one, and so are both zeros."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in leaves:
        a = np.ascontiguousarray(plain(leaf))
        digest.update(f"{a.dtype.str}{a.shape}".encode())
        if a.dtype.kind == "O":  # registered classes: their values are not compared
            continue
        a = a + np.zeros((), a.dtype)
        a[np.isnan(a)] = np.nan
        digest.update(a.tobytes())
    return digest.digest()
