"""Failures of the library that a slower way makes good: the answer is right, and someone is told.

A tape that cannot be made, or that raises, is no error to who asks for a derivative: the function
is run in another way. So is a rule that cannot be written down. That is meant for what is refused
with an error of its own, and for programs that raise. Any other exception is a mistake of ours: it
goes to the logger ``fwdad.defects``, once for each place.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fwdad.errors import ChunkMismatchError, FwdadError, Location, RuleError, locate

LOG = logging.getLogger("fwdad.defects")

_MOST = 1000
_TOLD: set[tuple[object, ...]] = set()
_LOCK = threading.Lock()


def is_refusal(error: BaseException) -> bool:
    """Whether an exception says that something is not supported.

    Parameters
    ----------
    error : Exception
        What was raised on the way that was tried first.
    """
    return isinstance(error, FwdadError) and error.refuses


def is_mistake(error: Exception, run: Callable[[], object]) -> bool:
    """Whether an exception is neither a refusal nor raised by the user's program.

    Parameters
    ----------
    error : Exception
        What was raised on the way that was tried first.
    run : callable
        Runs the program in another way.
    """
    if is_refusal(error):
        return False
    try:
        run()
    except Exception as own:  # noqa: BLE001  (whatever it is, it is compared)
        return not _is_like(own, error)
    return True


def report(what: str, error: BaseException, instead: str, location: Location | None = None) -> None:
    """Log a mistake of the library, each place once; at level DEBUG with the traceback.

    Parameters
    ----------
    what : str
        What has failed.
    error : Exception
        What it has raised.
    instead : str
        What is done in its place.
    location : Location, optional
        Where in the user's code; the innermost frame of it by default.
    """
    if isinstance(error, MemoryError):  # nobody's mistake
        return
    place = location or locate()
    where = "" if place is None else f" ({place.filename}:{place.line})"
    raised = _raised_at(error)
    key = (what, type(error), raised, where)
    with _LOCK:
        if key in _TOLD:
            return
        if len(_TOLD) >= _MOST:
            _TOLD.clear()
        _TOLD.add(key)
    LOG.warning(
        "%s failed%s: %s: %s (raised at %s). %s: the answer is right, but it takes longer. This is "
        "a mistake in fwdad, please report it",
        what, where, type(error).__name__, error, raised, instead,
        exc_info=error if LOG.isEnabledFor(logging.DEBUG) else None,
    )  # fmt: skip


def forget() -> None:
    """Tell of each place again."""
    with _LOCK:
        _TOLD.clear()


def _raised_at(error: BaseException) -> str:
    """The file and line that raised an exception."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        found = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


class Untraced:
    """No answer from the tape of a function.

    Parameters
    ----------
    f : callable
        The function.
    error : Exception or None
        What the tape, or making it, has raised; None if there is none.
    refuse : callable, optional
        Called if it is the tape that is to blame: it need not be tried again.

    Raises
    ------
    RuleError
        If it is that: a broken promise is told, and not made good in another way.
    """

    def __init__(
        self,
        f: Callable[..., object],
        error: Exception | None = None,
        refuse: Callable[[], None] | None = None,
    ) -> None:
        if isinstance(error, RuleError):
            raise error
        self.f = f
        self.error = error
        self.refuse = refuse

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Run the function in another way, and report what the tape has raised.

        Nothing is reported of a refusal, or where the same exception is raised now: then it is that
        of the user's program; or where there was no memory for the tape.
        """
        error = self.error
        if error is None:
            yield
            return
        try:
            yield
        except Exception as own:  # whatever f raises, compared with what its tape has raised
            if not _is_like(own, error) and not isinstance(own, ChunkMismatchError):
                self._blame(error)  # else a rule's tangents do not fit: its author is told
            raise
        self._blame(error)

    def _blame(self, error: Exception) -> None:
        if isinstance(error, MemoryError):  # the next call may have more
            return
        if self.refuse is not None:
            self.refuse()
        if not is_refusal(error):
            name = getattr(self.f, "__name__", "f")
            report(f"the tape of {name}", error, "The function is run without it")


def _is_like(own: Exception, error: Exception) -> bool:
    """Whether two exceptions are of one class; ours are told from those of Python's they extend."""
    same = isinstance(own, FwdadError) == isinstance(error, FwdadError)
    return same and isinstance(own, type(error))
