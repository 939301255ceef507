"""Failures of the library that a slower method makes up for: the result stays right, and is logged.

A tape that cannot be made, or that raises, is no error for whoever asks for a derivative: the
function is run in another way. The same holds for a rule that cannot be recorded. This is meant for
refusals, which have errors of their own, and for programs that raise. Any other exception is a bug
of ours: it goes to the logger ``fwdad.fallbacks``, once for each place, and with ``FWDAD_STRICT=1``
it is raised.

Whose exception it is depends on where it was raised: on the innermost frame outside other
libraries.
"""

from __future__ import annotations

import dis
import functools
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import CodeType, TracebackType
from typing import NamedTuple, TypeVar

from fwdad.core.generated_source import PLACES
from fwdad.errors import (
    BoundsError,
    ChunkMismatchError,
    FwdadError,
    InternalError,
    Location,
    PlaceNote,
    RuleError,
    is_library_file,
    is_own_file,
    locate,
    message_of,
    place_of,
)

LOG = logging.getLogger("fwdad.fallbacks")

F = TypeVar("F", bound=Callable[..., object])

_MOST = 1000
_TOLD: set[tuple[object, ...]] = set()
_LOCK = threading.Lock()
_FOR_PROGRAMS: set[CodeType] = set()
_RAISE = dis.opmap["RAISE_VARARGS"]


class Raised(Enum):
    """Whose code raised an exception."""

    USER = "code of the user, which Python ran unchanged"
    PROGRAM = "fwdad, at a `raise` of the program, or an operation that raises"
    TAPE = "source that was generated from a program"
    MEANT = "a `raise` in fwdad"
    MISTAKE = "fwdad"
    NOWHERE = "nobody"


class Origin(NamedTuple):
    """Where an exception was raised: whose code, and the user's line that it came from."""

    by: Raised
    place: Location | None


def for_programs(f: F) -> F:
    """Register a function of ours that raises what the user's program would."""
    _FOR_PROGRAMS.add(f.__code__)
    return f


def origin(error: BaseException) -> Origin:
    """Where an exception was raised, from its traceback."""
    noted = [n.place for n in getattr(error, "__notes__", ()) if isinstance(n, PlaceNote)]
    place: Location | None = None
    innermost: TracebackType | None = None
    by_program = False
    trace = error.__traceback__
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        places = PLACES.get(filename)
        if places is not None:
            place = places[trace.tb_lineno - 1] or place
        elif not is_library_file(filename):  # the user's code: run as it is, or lifted
            place = Location(filename, trace.tb_lineno, 1)
        if is_own_file(filename) or not is_library_file(filename):
            innermost = trace
        by_program |= trace.tb_frame.f_code in _FOR_PROGRAMS
        trace = trace.tb_next
    place = noted[-1] if noted else place
    if innermost is None:
        return Origin(Raised.NOWHERE, place)
    code = innermost.tb_frame.f_code
    if not is_own_file(code.co_filename):
        return Origin(Raised.USER, Location(code.co_filename, innermost.tb_lineno, 1))
    if by_program:
        return Origin(Raised.PROGRAM, place)
    if code.co_filename.startswith("<"):
        return Origin(Raised.TAPE, place)
    meant = code.co_code[innermost.tb_lasti] == _RAISE and not isinstance(error, AssertionError)
    ours = type(error).__module__.startswith("fwdad.")  # none of which should arrive
    return Origin(Raised.MEANT if meant and not ours else Raised.MISTAKE, place)


def is_own(error: Exception) -> bool:
    """Whether an exception that reaches a public function is a bug of the library."""
    # the depth of calls and the amount of memory are the user's decision
    if isinstance(error, (FwdadError, MemoryError, RecursionError)):
        return isinstance(error, InternalError)
    return origin(error).by is Raised.MISTAKE


def is_refusal(error: BaseException) -> bool:
    """Whether an exception says that something is not supported."""
    return isinstance(error, FwdadError) and error.refuses


def internal(what: str, error: BaseException, location: Location | None = None) -> InternalError:
    """The ``InternalError`` that says that ``what`` failed, to be raised from ``error``."""
    raised = f"{type(error).__name__}: {message_of(error)} (raised at {_raised_at(error)})"
    return InternalError(f"{what} failed: {raised}. {please_report()}", location or place_of(error))


@functools.cache
def please_report() -> str:
    """A sentence that says this is a bug, and where the package's metadata wants it reported."""
    from importlib import metadata  # noqa: PLC0415  (it imports much, and is rarely needed)

    try:
        urls = metadata.metadata("fwdad").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:  # run from a checkout
        urls = []
    named = [url.split(",", 1)[-1].strip() for url in urls]
    issues = [a for a, url in zip(named, urls, strict=True) if "issue" in url.lower()]
    addresses = (issues or named)[:1]
    to = f"at {addresses[0]}" if addresses else "to whoever gave you fwdad"
    return f"This is a mistake in fwdad, please report it {to}"


def report(what: str, error: BaseException, instead: str, location: Location | None = None) -> None:
    """Log a bug once for each place, at level DEBUG with the traceback; strict runs raise it.

    ``instead`` says what is done in its place; ``location`` defaults to the user's innermost frame.
    ``BoundsError`` is always raised again; with ``FWDAD_STRICT=1`` an ``InternalError`` is raised
    unless user code has raised. Running out of memory is not reported.
    """
    if isinstance(error, MemoryError):  # nobody's mistake
        return
    if isinstance(error, BoundsError):  # whoever checks bounds wants to know
        raise error
    place = location or locate()
    by_user = _is_by_user(error)
    _log(what, error, instead, place)
    if is_strict() and not by_user:
        if isinstance(error, InternalError):
            raise error
        raise internal(what, error, place) from error


def blame(error: BaseException) -> str:
    """A sentence about whose bug an exception is."""
    if not _is_by_user(error):
        return please_report()
    place = origin(error).place
    return (
        ""
        if place is None
        else (f"The error comes from code outside fwdad: {place.filename}:{place.line}")
    )


def _is_by_user(error: BaseException) -> bool:
    return origin(error).by is Raised.USER and not isinstance(error, FwdadError)


def is_strict() -> bool:
    """Whether bugs of the library are raised where a slower method would make up for them."""
    return os.environ.get("FWDAD_STRICT", "0") not in ("", "0")


def _log(what: str, error: BaseException, instead: str, place: Location | None) -> None:
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
        "%s failed%s: %s: %s (raised at %s). %s: the result is correct, but takes longer. %s",
        what, where, type(error).__name__, message_of(error), raised, instead, blame(error),
        exc_info=error if LOG.isEnabledFor(logging.DEBUG) else None,
    )  # fmt: skip


def forget() -> None:
    """Report every place again."""
    with _LOCK:
        _TOLD.clear()


def _raised_at(error: BaseException) -> str:
    """The file and line that raised an exception."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return where


class Untraced:
    """No result from one method of computing a function's derivative, such as its tape.

    ``error`` is what the method has raised, if anything, ``reason`` says why without one; a
    ``RuleError`` is raised again at once, because a broken promise is not made up for. ``refuse``
    is called if the tape is to blame and need not be tried again. ``catches``: the function may
    catch what its tape raises.
    """

    def __init__(
        self,
        f: Callable[..., object],
        error: Exception | None = None,
        refuse: Callable[[], None] | None = None,
        *,
        reason: str = "",
        catches: bool = False,
    ) -> None:
        if isinstance(error, RuleError):
            raise error
        self.f = f
        self.catches = catches
        self.error = error
        self.refuse = refuse
        self._reason = reason
        self.blame = ""  # whose mistake it is, if it was reported as one

    @property
    def reason(self) -> str:
        """Why there is none, with the user's line."""
        error = self.error
        if error is None:
            return self._reason
        if is_refusal(error) or not _was_run(error):
            return _in_full(error)
        return f"its tape raises {type(error).__name__}: {message_of(error)}"

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Run the function in another way, and report what the tape has raised.

        Refusals are not reported, nor is an exception that the function itself raises now, nor a
        lack of memory or of calls for the tape.
        """
        error = self.error
        if error is None:
            yield
            return
        try:
            yield
        except Exception as own:  # whatever f raises, compared with what its tape has raised
            # a rule whose tangents do not fit: its author sees that error
            if not (_is_of_same_place(own, error) or isinstance(own, ChunkMismatchError)):
                self._blame(error, own)
            raise
        self._blame(error)

    def _blame(self, error: Exception, own: Exception | None = None) -> None:
        if isinstance(error, (MemoryError, RecursionError)):  # the next call may need less
            return
        if self.catches and not is_own(error):
            return
        if self.refuse is not None:
            self.refuse()
        by_program = own is not None and origin(error).by in (Raised.USER, Raised.PROGRAM)
        if is_refusal(error) or by_program:
            return
        self.blame = blame(error)
        name = getattr(self.f, "__name__", "f")
        report(f"the tape of {name}", error, "The function runs without it")


def _in_full(error: Exception) -> str:
    """An error's message, with the user's line."""
    place, line = getattr(error, "filename", None), getattr(error, "lineno", None)
    text = (getattr(error, "text", None) or "").strip()
    what = getattr(error, "msg", None) or f"{type(error).__name__}: {error}"
    head = f"{place}:{line}: " if place and line else ""
    return f"{head}{what}" + (f"\n    {text}" if text else "")


def _was_run(error: Exception) -> bool:
    """Whether an exception comes from running generated source, not from making it."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<fwdad "):
            return True
        trace = trace.tb_next
    return False


def _is_of_same_place(own: Exception, error: Exception) -> bool:
    """Whether a program and its tape raised for the same reason: the user's line decides."""
    if isinstance(own, FwdadError) != isinstance(error, FwdadError):
        return False
    if not isinstance(error, FwdadError) and _was_run(error):
        return True  # lanes and cotangents may raise in a line of their own, or of a caller
    place = origin(error).place
    if isinstance(error, FwdadError) and error.filename is not None:
        place = Location(error.filename, error.lineno or 0, 1)
    there = place_of(own)
    if place is None or there is None:
        return place is there
    end = max(place.line, place.end_line or 0)
    return place.filename == there.filename and place.line <= there.line <= end
