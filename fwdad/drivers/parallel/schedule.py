"""The tasks of a job: few under way at a time, taken as they finish."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from fwdad.drivers.parallel.jobs import Failed
from fwdad.drivers.parallel.pools import TRIES, LostTask, Pool
from fwdad.errors import ExecutorError

At = tuple[Any, ...]


class Schedule:
    """The tasks of a pool that has taken a job; ``take(at, result)`` gets what each returns.

    Where a task fails, or the user interrupts, what is finished is taken first; tasks that have
    not begun are cancelled.
    """

    def __init__(self, pool: Pool, take: Callable[[At, Any], None]) -> None:
        self._pool = pool
        self._take = take
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._under_way: dict[int, tuple[Any, At]] = {}
        self._tries: dict[Any, int] = {}  # by the first item, which no other task has

    def run(self, tasks: Iterable[At]) -> None:
        """Do all tasks."""
        waiting, again = iter(tasks), deque[At]()
        try:
            while True:
                self._fill(waiting, again)
                if not self._under_way:
                    return
                at, result = self._next(again)
                if at is None:
                    continue
                self._take(at, returned(result))
        except BaseException:
            self._stop()
            raise

    def _fill(self, waiting: Any, again: deque[At]) -> None:
        while len(self._under_way) < self._pool.room():
            at = again.popleft() if again else next(waiting, None)
            if at is None:
                return
            future = self._pool.send(*at)
            self._under_way[id(future)] = future, at
            future.add_done_callback(self._done.put)

    def _next(self, again: deque[At]) -> tuple[Any, Any]:
        """The next that is done: its task and result, or None if its worker is lost."""
        future = self._done.get()
        _, at = self._under_way.pop(id(future))
        try:
            return at, self._pool.result(future)
        except LostTask:
            self._tries[at[0]] = self._tries.get(at[0], 1) + 1
            if self._tries[at[0]] > TRIES:
                raise ExecutorError(
                    f"the workers of a task were lost {TRIES} times: were they killed, for want "
                    "of memory? Take larger workers or a smaller chunk="
                ) from None
            self._pool.renew()
            again.append(at)
            return None, None

    def _stop(self) -> None:
        for future, _ in self._under_way.values():
            future.cancel()
        while True:
            try:
                future = self._done.get_nowait()
            except queue.Empty:
                return
            _, at = self._under_way.pop(id(future), (None, None))
            # the first exception is the one that is raised
            with contextlib.suppress(Exception):
                if at is not None and not future.cancelled():
                    self._take(at, returned(self._pool.result(future)))


def returned(result: Any) -> Any:
    """What a task has returned; raises what f has raised."""
    if isinstance(result, Failed):
        raise result.error
    return result
