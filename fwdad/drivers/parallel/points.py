"""The values of a function at many points, some points a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.drivers.parallel.jobs import Job
from fwdad.drivers.parallel.pools import pool_of
from fwdad.drivers.parallel.schedule import Schedule
from fwdad.drivers.parallel.shared_writes import no_draws
from fwdad.eager.arguments import copied
from fwdad.eager.build import run_on_duals
from fwdad.evaluation.signatures import Function

_TASKS = 4  # for each worker: those that finish early help the others, and few results are large

Point = Callable[[Any, Any, Any, int], tuple[tuple[Any, ...], dict[str, Any]]]
"""Of all positional arguments, their axes and the keyword arguments: those of point k."""


class PointsJob(Job):
    """The function, and the arguments of all points."""

    def __init__(self, f: Function, point: Point, args: Any, in_axes: Any, kwargs: Any) -> None:
        super().__init__(f, point, args, in_axes, kwargs)
        self._point = point
        self._of = args, in_axes, kwargs

    def call_plainly(self, start: int, _stop: int) -> Any:
        """See :class:`Job`."""
        return run_on_duals(self.__wrapped__, *copied(self._point(*self._of, start)))

    def run(self, start: int, stop: int) -> list[Any]:
        """The values at some points."""
        values = []
        with no_draws("the function under vmap"):
            for k in range(start, stop):
                args, kwargs = self._point(*self._of, k)
                values.append(self.__wrapped__(*args, **kwargs))
        return values


def values_by_workers(job: PointsJob, n: int, executor: Any) -> list[Any]:
    """The values at all n points, in order."""
    pool = pool_of(executor)
    step = max(1, -(-n // (_TASKS * pool.workers)))
    found: dict[int, list[Any]] = {}
    tasks = [(start, min(start + step, n)) for start in range(0, n, step)]
    try:
        pool.take(job)
        Schedule(pool, lambda at, values: found.update({at[0]: values})).run(tasks)
    finally:
        pool.end()
    return [value for start, _ in tasks for value in found[start]]
