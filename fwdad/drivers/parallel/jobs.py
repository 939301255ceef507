"""Jobs: what workers do many times, with other numbers each time; and what they send back."""

from __future__ import annotations

import pickle
from typing import Any

from fwdad.drivers.parallel.pickles import cloudpickle
from fwdad.eager.lifting.reached import Carrier
from fwdad.errors import ExecutorError, Location, note_place, place_of, type_in_words


class Job(Carrier):
    """Work on a function of the user's, the same for all tasks: sent once, with f's source.

    ``given`` is pickled with the function. Subclasses have ``run``, to which each task gives
    arguments of its own.
    """

    def __init__(self, f: Any, *given: Any) -> None:
        self.__wrapped__ = f
        self.given = given

    def _made_by(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), (self.__wrapped__, *self.given)

    def call_plainly(self, *at: Any) -> Any:
        """Run f once as a task does, on copies of what it is given, to see what else it writes."""
        raise NotImplementedError

    def run(self, *at: Any) -> Any:
        """What a task returns."""
        raise NotImplementedError


class Failed:
    """What a task returns in place of a result: the exception that it has raised.

    It is returned and not raised, since Dask would log it, and all executors lose the line of f.
    In this process it is the exception itself, with its traceback.
    """

    def __init__(self, error: Exception, place: Location | None = None) -> None:
        self.error = error
        self.place = place

    @classmethod
    def by(cls, error: Exception) -> Failed:
        """With the user's line, which is lost with the traceback when it is pickled."""
        place = place_of(error)
        note_place(error, place)
        return cls(error, place)

    def __reduce__(self) -> Any:
        return _failed, (self._pickled(),)

    def _pickled(self) -> bytes:
        for how in (cloudpickle() or pickle, pickle):
            try:
                made: bytes = how.dumps(self.error)
                pickle.loads(made)  # noqa: S301  (what was pickled the line before)
            except Exception:  # noqa: BLE001, S112  (whatever a class of the user's raises)
                continue
            return made
        words = f"f raised {type_in_words(self.error)}, which cannot be pickled: {self.error}"
        return pickle.dumps(ExecutorError(words, self.place))


def _failed(made: bytes) -> Failed:
    return Failed(pickle.loads(made))  # noqa: S301  (from a worker, as all results are)


def attempted(job: Job, at: tuple[Any, ...]) -> Any:
    """The result of a task, or what says that it has failed."""
    try:
        return job.run(*at)
    except Exception as error:  # noqa: BLE001  (raised again where the results are collected)
        return Failed.by(error)
