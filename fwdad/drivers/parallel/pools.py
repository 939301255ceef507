"""The executors: threads, processes, Dask's clusters and others, each as a pool of workers."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections import OrderedDict
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from pathlib import Path
from typing import Any, NamedTuple

from fwdad.drivers.parallel.jobs import Failed, Job, attempted
from fwdad.drivers.parallel.pickles import Content, pickled, read
from fwdad.drivers.parallel.shared_writes import check_shared_writes, shared_write
from fwdad.errors import ExecutorError, type_in_words

_KEPT = 2  # jobs in a worker: this one, and one of another caller
_INLINE = 16 * 1024  # bytes that are sent with each task rather than by a file
TRIES = 4
"""Of a task whose worker was lost, where the pool lives on."""


class LostTask(Exception):  # noqa: N818  (no error as yet: the task is sent again)
    """A task whose data was lost with a worker."""


class Ticket(NamedTuple):
    """By which a worker finds the job: sent with each task."""

    key: str
    content: Content | None = None
    path: str = ""
    places: tuple[tuple[int, int], ...] = ()

    def load(self) -> Any:
        """What it stands for."""
        if self.content is not None:
            return self.content.load()
        return read(self.path, self.places)


class _Loaded:
    """The jobs that a worker process has loaded, the latest few."""

    def __init__(self) -> None:
        self.jobs: OrderedDict[str, tuple[Job, Any]] = OrderedDict()
        self.lock = threading.Lock()
        self.turn = threading.Lock()

    def find(self, ticket: Ticket, at: tuple[Any, ...], threads: int) -> tuple[Job, Any]:
        """The job of a ticket, and what to enter while one of its tasks runs.

        Where a worker has several threads, and f writes what they share, they take turns.
        """
        with self.lock:
            if ticket.key not in self.jobs:
                job = ticket.load()
                in_turn = threads > 1 and shared_write(job, at) is not None
                turn = self.turn if in_turn else contextlib.nullcontext()
                self.jobs[ticket.key] = job, turn
                while len(self.jobs) > _KEPT:
                    self.jobs.popitem(last=False)
            self.jobs.move_to_end(ticket.key)
            return self.jobs[ticket.key]


_LOADED = _Loaded()


def work(ticket: Ticket, at: tuple[Any, ...], threads: int = 1) -> Any:
    """What a worker process does."""
    try:
        at = tuple(a.load() if isinstance(a, Ticket) else a for a in at)
        job, turn = _LOADED.find(ticket, at, threads)
    except Exception as error:  # noqa: BLE001  (raised again where the results are collected)
        return Failed.by(error)
    with turn:
        return attempted(job, at)


class Pool:
    """Workers that have been given one job; this one has none, and works at once by itself."""

    in_turn = True
    """Whether a task is done when it is sent."""

    shares_memory = True
    """Whether the workers are in this process."""

    def __init__(self, executor: Any = None) -> None:
        self.executor = executor
        self.job: Job | None = None

    @property
    def workers(self) -> int:
        """How many tasks are worked on at once."""
        return 1

    def room(self) -> int:
        """How many tasks may be under way: as many as keep the workers busy, and few results."""
        return 1 if self.in_turn else 2 * self.workers + 2

    def take(self, job: Job) -> None:
        """Take a job on, before its tasks."""
        self.job = job

    def send(self, *at: Any) -> Any:
        """The future of a task."""
        future: Future[Any] = Future()
        assert self.job is not None  # noqa: S101  (taken before)
        future.set_result(attempted(self.job, at))
        return future

    def result(self, future: Any) -> Any:
        """The result of a future that is done."""
        try:
            return future.result()
        except (KeyboardInterrupt, SystemExit):
            raise
        except CancelledError as error:
            raise ExecutorError(_CANCELLED) from error
        except BrokenExecutor as error:
            raise ExecutorError(_BROKEN.format(error)) from error
        except Exception as error:
            raise ExecutorError(_FAILED.format(type(error).__name__, error)) from error

    def share(self, x: Any) -> Any:
        """What stands for an argument that many tasks have, until it is dropped."""
        return x

    def drop(self, shared: Any) -> None:
        """Remove what was made to share an argument."""

    def renew(self) -> None:
        """Send the job once more, where all workers that had it are lost."""

    def end(self) -> None:
        """Remove what was made for the job."""


_CANCELLED = (
    "a task was cancelled: the executor was shut down while it worked. Keep it open until the "
    "derivative is there; with checkpoint_to= the same call goes on where this one stopped"
)
_BROKEN = (
    "the executor has lost a worker, and takes no more work ({}): was one killed, for want of "
    "memory? Make a new executor, with fewer workers or a smaller chunk=; with checkpoint_to= the "
    "same call goes on where this one stopped"
)
_FAILED = "the executor could not run a task, or not send its result back: {}: {}"
_SHUT = "the executor takes no work ({}): it was shut down, or is broken. Make a new one"


class _ExecutorPool(Pool):
    """What ``concurrent.futures`` has in common."""

    in_turn = False

    def __init__(self, executor: Executor) -> None:
        super().__init__(executor)
        self._submit(_nothing)  # before anything is written

    @property
    def workers(self) -> int:
        """See :class:`Pool`."""
        return getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1

    def _submit(self, *call: Any) -> Any:
        try:
            return self.executor.submit(*call)
        except RuntimeError as error:  # BrokenExecutor is one
            raise ExecutorError(_SHUT.format(error)) from error


class _Threads(_ExecutorPool):
    """A pool of threads, which share f and all that it reads."""

    _checked = False

    def send(self, *at: Any) -> Any:
        """See :class:`Pool`; refuses an f whose threads would write the same memory."""
        assert self.job is not None  # noqa: S101  (taken before)
        if not self._checked:
            check_shared_writes(self.job, at)
            self._checked = True
        return self._submit(attempted, self.job, at)


class _Processes(_ExecutorPool):
    """Processes of this machine, which read a large job from a file that they share."""

    same_machine = True
    shares_memory = False
    _folder = ""
    _ticket: Ticket | None = None

    def take(self, job: Job) -> None:
        """See :class:`Pool`."""
        self._ticket = self._to_all(pickled(job, job.__wrapped__))

    def _to_all(self, content: Content) -> Ticket:
        key = uuid.uuid4().hex
        if not self.same_machine or content.nbytes <= _INLINE:
            return Ticket(key, content.in_own_memory())
        self._folder = self._folder or tempfile.mkdtemp(prefix="fwdad-job-")
        path = Path(self._folder) / key
        return Ticket(key, None, str(path), content.write(path))

    def share(self, x: Any) -> Any:
        """See :class:`Pool`."""
        return self._to_all(pickled(x, None))

    def drop(self, shared: Any) -> None:
        """See :class:`Pool`."""
        if shared.path:
            Path(shared.path).unlink(missing_ok=True)

    def send(self, *at: Any) -> Any:
        """See :class:`Pool`."""
        return self._submit(work, self._ticket, at)

    def end(self) -> None:
        """See :class:`Pool`; who has read the file keeps its pages."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""


class _Elsewhere(_Processes):
    """Any other executor: its workers may be on other machines."""

    same_machine = False


class DaskPool(Pool):
    """A Dask cluster: the job is scattered once, and workers get it from each other."""

    in_turn = False
    shares_memory = False
    shared: Any = None
    _sent: Any = None
    _content: Content | None = None

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        if getattr(client, "asynchronous", False):
            raise ExecutorError(
                "the client is asynchronous, and a derivative waits for its blocks: make a "
                "distributed.Client without asynchronous=True, of the same address"
            )
        if client.status != "running":
            raise ExecutorError(_SHUT.format(f"the client is {client.status}"))

    @property
    def workers(self) -> int:
        """The threads that there are now: workers may come and go."""
        return max(1, sum(self.executor.nthreads().values()))

    def take(self, job: Job) -> None:
        """See :class:`Pool`."""
        self._content = pickled(job, job.__wrapped__)
        self._key = uuid.uuid4().hex
        self._scatter()

    def share(self, x: Any) -> Any:
        """See :class:`Pool`."""
        self.shared = x
        return self._to_all(x)

    def submit(self, f: Any, *args: Any) -> Any:
        """The future of a call with what other futures give."""
        return self.executor.submit(f, *args, pure=False)

    def _scatter(self) -> None:
        assert self._content is not None  # noqa: S101  (taken before)
        self._sent = self._to_all(self._content.in_own_memory())

    def _to_all(self, x: Any) -> Any:
        # the loss of one worker is not that of the job
        return self.scattered(x, broadcast=True)

    def scattered(self, x: Any, *, broadcast: bool = False) -> Any:
        """The future of data that is with one of the workers, or with all that are there now."""
        for _ in range(TRIES):
            try:
                (sent,) = self.executor.scatter([x], broadcast=broadcast, hash=False)
            except TimeoutError as error:
                raise ExecutorError(
                    "the cluster has no worker to send the function or its data to: start some, "
                    "and call again"
                ) from error
            except OSError as error:  # one that it is sent to is being lost
                lost = error
                time.sleep(1)  # until the scheduler knows, too
            else:
                return sent
        raise ExecutorError(f"the cluster could not be sent the function or its data: {lost}")

    def send(self, *at: Any) -> Any:
        """See :class:`Pool`."""
        if self.executor.status != "running":
            raise ExecutorError(_SHUT.format(f"the client is {self.executor.status}"))
        return self.executor.submit(_work_of_dask, self._key, self._sent, at, pure=False)

    def result(self, future: Any) -> Any:
        """See :class:`Pool`."""
        try:
            return super().result(future)
        except ExecutorError as error:
            cancelled = isinstance(error.__cause__, CancelledError)
            if cancelled and self.executor.status == "running":
                raise LostTask from error
            raise

    def renew(self) -> None:
        """See :class:`Pool`."""
        self._scatter()

    def end(self) -> None:
        """See :class:`Pool`."""
        self._sent = None


def _work_of_dask(key: str, content: Content, at: tuple[Any, ...]) -> Any:
    from distributed import get_worker  # noqa: PLC0415  (an extra; here it is)

    return work(Ticket(key, content), at, get_worker().state.nthreads)


def _nothing() -> None:
    """The first task: whether there is somebody to do it."""


def pool_of(executor: Any) -> Pool:
    """The pool of an executor; without one this thread does the work."""
    if executor is None:
        return Pool()
    home = type(executor).__module__
    if home.partition(".")[0] == "distributed" and hasattr(executor, "scatter"):
        return DaskPool(executor)
    if not isinstance(executor, Executor):
        came = f"the class {executor.__name__}" if isinstance(executor, type) else None
        raise ExecutorError(
            f"executor= is {came or type_in_words(executor)}: pass an executor of "
            "concurrent.futures or loky, or a distributed.Client"
        )
    if isinstance(executor, concurrent.futures.ThreadPoolExecutor):
        if type(executor).__name__ == "InterpreterPoolExecutor":
            raise ExecutorError(
                "executor= is an InterpreterPoolExecutor, and NumPy cannot be imported in a "
                "second interpreter: take a ProcessPoolExecutor"
            )
        return _Threads(executor)
    local = isinstance(executor, concurrent.futures.ProcessPoolExecutor)
    return _Processes(executor) if local or "loky" in home else _Elsewhere(executor)
