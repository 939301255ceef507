"""Jacobians block by block: by the workers of an executor, from and into a checkpoint, or both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.core.progress import Progress
from fwdad.drivers.jacobian_rows import rows_in_structures, rows_pay
from fwdad.drivers.parallel.blocks import Block, BlockJob, Columns, Generators, Head, Rows
from fwdad.drivers.parallel.checkpoints import Checkpoint, Work
from fwdad.drivers.parallel.destinations import Matrix
from fwdad.drivers.parallel.pools import Pool, pool_of
from fwdad.drivers.parallel.schedule import Schedule
from fwdad.eager.arguments import Arguments, check_outputs, check_read_again
from fwdad.eager.outcomes import Outcome
from fwdad.eager.run import STATE
from fwdad.errors import CheckpointError, NondeterministicFunctionError, UnsupportedTypeError
from fwdad.evaluation.arguments import (
    argument_numbers,
    arguments_of,
    check_chunk,
    check_holomorphic,
)
from fwdad.evaluation.evaluators import assembled
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.tangents.composite import flatten

_RESULTS = ("has_aux", "outputs")


def value_and_blocks(
    f: Function,
    x: Any,
    argnums: Argnums,
    args: Any,
    kwargs: Any,
    options: dict[str, Any],
    *,
    executor: Any = None,
    checkpoint_to: Any = None,
    out: Any = None,
    progress: bool = False,
) -> Any:
    """The value of a function and its Jacobian, as :func:`value_and_jacobian` returns them.

    ``out`` is an array, a memory map or a Zarr array for the Jacobian of one array by one array.
    """
    check_outside("executor= and checkpoint_to=")
    check_chunk(options["chunk"])
    check_outputs(options["outputs"])
    arguments, single = arguments_of(f, x, args, kwargs, argnums)
    check_read_again((arguments.args, arguments.kwargs))
    results = {key: options[key] for key in _RESULTS}
    check_holomorphic(f, arguments, options["holomorphic"], **results)
    pool = pool_of(executor)
    argnums = argument_numbers(argnums)
    kind = _kind(f, arguments, argnums, options)
    drawn = None if pool.shares_memory else Generators()
    into = None if out is None else Matrix(out, by_rows=kind is Rows)
    if into is not None:
        into.check(options["chunk"], [a for _, a in arguments.arrays()])
    written = into if into is not None and into.by_workers else None
    job = kind(f, arguments.args, arguments.kwargs, argnums, options, drawn, written)
    with Progress(shown=progress, of="jacobian") as bar:
        run = _Run(job, pool, _checkpoint(job, checkpoint_to), into, bar)
        head = run.all_blocks()
    if out is not None:
        return (head.y, out, head.aux) if options["has_aux"] else (head.y, out)
    if kind is Rows:
        stack = options["stack"]
        J = rows_in_structures(head.y, run.lanes, arguments, single=single, stack=stack)
        return (head.y, J, head.aux) if options["has_aux"] else (head.y, J)
    leaves, structure = flatten(head.y)
    outcome = Outcome(head.y, head.aux, leaves, structure, run.lanes)
    asked: dict[str, Any] = {"has_aux": options["has_aux"], "stack": options["stack"]}
    return assembled(outcome, arguments, single=single, **asked)


def check_outside(what: str) -> None:
    """Refuse work for others from inside a derivative: its duals live in this thread alone."""
    if STATE.run is not None:
        raise UnsupportedTypeError(
            f"{what} inside another derivative: tangents cannot be sent to other workers. Give it "
            "to the outermost derivative"
        )


def _kind(f: Function, arguments: Arguments, argnums: Any, options: dict[str, Any]) -> type:
    """By columns or by rows, as :func:`jacobian` chooses."""
    mode = options["mode"]
    if options["holomorphic"] or mode == "forward":
        return Columns
    if mode == "reverse":
        return Rows
    results = {key: options[key] for key in _RESULTS}
    return Columns if rows_pay(f, arguments, argnums, results) is not None else Rows


def _checkpoint(job: BlockJob, path: Any) -> Checkpoint | None:
    if path is None:
        return None
    options = {key: job.options[key] for key in ("chunk", "holomorphic", *_RESULTS)}
    options |= {"argnums": job.argnums, "by": type(job).__name__.lower()}
    if job.into is not None:
        options["out"] = str(job.into.out.store_path)
    work = Work(job.__wrapped__, (job.args, job.kwargs), options)
    return Checkpoint(path, work)


class _Run:
    """One call: its blocks as they come, in the arrays of the result."""

    def __init__(
        self,
        job: BlockJob,
        pool: Pool,
        checkpoint: Checkpoint | None,
        into: Matrix | None,
        bar: Progress,
    ) -> None:
        self.lanes: list[Any] = []
        self._job = job
        self._pool = pool
        self._checkpoint = checkpoint
        self._into = into
        self._bar = bar
        self._head: Head | None = None
        self._mark: bytes | None = None
        self._finished: set[int] = set()  # the starts of blocks
        self._before: dict[int, Block] = {}
        self._shown = False
        self._x = job.arguments()[0].leaves[0]

    def all_blocks(self) -> Head:
        """Find all blocks, or have them made; returns what the first one tells."""
        if self._checkpoint is None:
            return self._made()
        self._checkpoint.open()
        try:
            self._resume(self._checkpoint)
            return self._made()
        finally:
            self._checkpoint.close()

    def _resume(self, checkpoint: Checkpoint) -> None:
        self._head = checkpoint.head()
        if self._head is None:
            return
        for start, stop in self._cuts(self._head):
            block = checkpoint.block(start, stop)
            if block is not None and block.written:
                self._before[start] = block  # a worker looks whether it is still there
            elif block is not None:
                self._store(block)
                self._finished.add(start)

    def _made(self) -> Head:
        tasks = None if self._head is None else self._left(self._head)
        if tasks == []:
            return self._known()
        try:
            self._pool.take(self._job)
            schedule = Schedule(self._pool, self._take)
            if tasks is None:
                schedule.run([(0, None)])
                tasks = self._left(self._known())
            schedule.run(tasks)
        finally:
            self._pool.end()
        return self._known()

    def _known(self) -> Head:
        if self._head is None:
            raise CheckpointError("the first block has no value")
        return self._head

    def _left(self, head: Head) -> list[tuple[int, int, Block | None]]:
        cuts = [cut for cut in self._cuts(head) if cut[0] not in self._finished]
        return [(*cut, self._before.get(cut[0])) for cut in cuts]

    def _cuts(self, head: Head) -> Iterator[tuple[int, int]]:
        """The first block may be narrower than the others, whose width the value tells."""
        stop = min(head.first, head.total)
        yield 0, stop
        while stop < head.total:
            start, stop = stop, min(stop + head.width, head.total)
            yield start, stop

    def _take(self, _at: Any, block: Block) -> None:
        if block.head is not None:
            self._head = block.head
        self._store(block)
        self._finished.add(block.start)
        if self._checkpoint is not None and block != self._before.get(block.start):
            self._checkpoint.keep(block)

    def _store(self, block: Block) -> None:
        if self._mark is None:
            self._mark = block.mark
        if self._mark != block.mark:
            raise NondeterministicFunctionError(_DIFFERS)
        if not self._shown:
            self._bar.begin(self._known().total, type(self._job).__name__.lower())
            self._shown = True
        self._bar.update(block.stop - block.start)
        if block.written:
            return
        if self._into is not None:
            self._into.check_shape(self._known().y, self._x)
            self._into.write(block.start, block.stop, block.lanes, self._known().total)
            return
        if not self.lanes:
            total = self._known().total
            self.lanes = [np.empty((total, *part.shape[1:]), part.dtype) for part in block.lanes]
        for whole, part in zip(self.lanes, block.lanes, strict=True):
            whole[block.start : block.stop] = part


_DIFFERS = (
    "the function's value differs between two blocks of its Jacobian: it depends on something that "
    "fwdad cannot reset (a clock, the operating system's entropy, what an earlier call left in a "
    "worker), or the workers' machines or libraries round in different ways"
)
