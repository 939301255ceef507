"""Every exception of the library, each able to show the user's own line and column.

The located errors derive from :class:`SyntaxError`, because Python prints the source line and a
caret for it by itself once it knows the file, line and column.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import threading
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from fwdad.generated import PLACES
from fwdad.put_back import EnteredTwice

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_EXAMPLES = os.path.join(PACKAGE, "examples") + os.sep
_LIBRARIES = tuple(
    {
        path + os.sep
        for path in (
            sysconfig.get_paths()["stdlib"],
            sysconfig.get_paths()["platstdlib"],
            os.path.dirname(os.__file__),
        )
    }
)
_THIRD_PARTY = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


@dataclass(frozen=True)
class Location:
    """A place in somebody's source: ``column`` counts from 1, in characters."""

    filename: str
    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None

    @property
    def text(self) -> str | None:
        """The source line, or None when the source cannot be read."""
        return linecache.getline(self.filename, self.line) or None


@lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """Whether a file belongs to the standard library, an installed package, or fwdad itself."""
    if filename.startswith(PACKAGE):
        return not filename.startswith(_EXAMPLES)
    if filename.startswith(("<frozen", "<fwdad ")):  # the latter: generated from a tape
        return True
    return filename.startswith(_LIBRARIES) or any(part in filename for part in _THIRD_PARTY)


def _columns(
    code: CodeType, instruction: int
) -> tuple[int | None, int | None, int | None, int | None]:
    for index, position in enumerate(code.co_positions()):
        if index == instruction // 2:
            return position
    return (None, None, None, None)


def _characters(line: str, utf8_offset: int) -> int:
    return len(line.encode()[:utf8_offset].decode(errors="replace"))


def note_place(error: BaseException, place: Location | None) -> None:
    """Tell the user's line in a note, where the traceback does not go through it.

    Parameters
    ----------
    error : BaseException
        Python's or NumPy's, raised by a tape.
    place : Location or None
        Where in the user's code.
    """
    if place is not None:
        text = (place.text or "").strip()
        note = f'File "{place.filename}", line {place.line}\n  {text}'
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


def place_of(error: BaseException) -> Location | None:
    """The user's line that an exception was raised in or below; None if it met none.

    Parameters
    ----------
    error : BaseException
        With its traceback.
    """
    trace, found = error.__traceback__, None
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if not is_library_file(filename):
            found = Location(filename, trace.tb_lineno, 1)
        trace = trace.tb_next
    return found


class _Running(threading.local):
    place: Location | None = None


_RUNNING = _Running()


class Running(EnteredTwice):
    """While generated source runs one operation, know the user's place that it came from.

    Parameters
    ----------
    place : Location or None
        None tells nothing; the line of the generated source does then.
    """

    def __init__(self, place: Location | None) -> None:
        self._place = place
        self._found = _RUNNING.place

    def begin(self) -> None:
        """See the class."""
        _RUNNING.place = self._place

    def end(self) -> None:
        """See the class."""
        _RUNNING.place = self._found


def locate(frame: FrameType | None = None) -> Location | None:
    """Find the innermost frame of user code, and the expression that it is running.

    Parameters
    ----------
    frame : frame, optional
        Where to start; the caller by default.

    Returns
    -------
    Location or None
        None when no frame of user code is on the stack.
    """
    frame = frame or sys._getframe(1)
    fallback = None
    while frame is not None:
        filename = frame.f_code.co_filename
        if not is_library_file(filename):
            return _frame_location(frame)
        places = PLACES.get(filename)
        if places is not None:
            place = _RUNNING.place or places[frame.f_lineno - 1]
            if place is not None:
                return place
        if fallback is None and not filename.startswith((PACKAGE, "<frozen", "<fwdad ")):
            fallback = frame
        frame = frame.f_back
    return _frame_location(fallback) if fallback is not None else None


def _frame_location(frame: FrameType) -> Location:
    filename = frame.f_code.co_filename
    line, end_line, column, end_column = _columns(frame.f_code, frame.f_lasti)
    line = line or frame.f_lineno
    text = linecache.getline(filename, line)
    if column is None or not text:
        return Location(filename, line, 1)
    end_text = linecache.getline(filename, end_line) if end_line else text
    end = None if end_column is None else _characters(end_text, end_column) + 1
    return Location(filename, line, _characters(text, column) + 1, end_line, end)


class _Note(threading.local):
    """Where a thread's derivative call keeps the errors that user code might swallow."""

    sink: list[FwdadError] | None = None


NOTE = _Note()


def _raised_by_user_code() -> bool:
    """Whether the innermost frame outside this package is the user's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame is not None and not is_library_file(frame.f_code.co_filename)


def with_article(name: str) -> str:
    """A class's name with its article."""
    vowel = name[:1].lower() in ("a", "e", "i", "o") or name == "ndarray"
    return f"{'an' if vowel else 'a'} {name}"


def type_in_words(x: Any) -> str:
    """What came, by its class: for messages."""
    return "None" if x is None else with_article(type(x).__name__)


def returned_nothing(name: str) -> str:
    """The message for a function that has returned None."""
    return (
        f'{name} returned None. If it updates its arguments in place, say outputs="mutated" '
        "(jvp, jacobian, jacfwd, jacrev), or let it return what it has updated"
    )


class FwdadError(SyntaxError):
    """Base of every error that points at a place in the user's code.

    Parameters
    ----------
    message : str
        What came, and what to do.
    location : Location, optional
        Where; the innermost frame of user code by default.
    """

    noted = False
    """Whether an ``except`` of the user's would turn the error into a wrong branch."""
    refuses = True
    """Whether it says that something is not supported, or meant; not that the library is wrong."""

    def __init__(self, message: str, location: Location | None = None) -> None:
        if self.noted and NOTE.sink is not None and _raised_by_user_code():
            NOTE.sink.append(self)
        location = location or locate(sys._getframe(1))
        if location is None:
            super().__init__(message)
            return
        super().__init__(
            message,
            (
                location.filename,
                location.line,
                location.column,
                location.text,
                location.end_line,
                location.end_column,
            ),
        )

    def __reduce__(self) -> tuple[object, ...]:
        location = None
        if self.filename is not None:
            location = Location(
                self.filename, self.lineno or 0, self.offset or 1, self.end_lineno, self.end_offset
            )
        return (type(self), (self.msg, location))


class MissingRuleError(FwdadError):
    """A function with an active argument has no frule, and none can be built from its source."""

    noted = True


class MissingTransposeError(FwdadError):
    """A linear primitive has no transpose, so it cannot be run backwards."""

    noted = True


class DuplicateRuleError(FwdadError):
    """A function was given a second rule without ``override=True``."""


class NonlinearTangentError(FwdadError, ArithmeticError):
    """A rule uses its tangent in a nonlinear way, such as ``x_dot * x_dot``."""

    refuses = False


class ChunkOperationError(FwdadError, TypeError):
    """A ``Chunk`` was given to a function that is not in the closed list of linear operations."""

    refuses = False


class ChunkMismatchError(FwdadError, ValueError):
    """Chunks of different widths, or of the wrong shape, meet in one operation."""

    refuses = False


class RuleError(FwdadError, ValueError):
    """A function does with memory what its rule does not say: it writes, or returns a view."""


class NondeterministicFunctionError(FwdadError):
    """A function's value differs from one chunk of tangents, or from one call, to the next."""


class NotHolomorphicError(FwdadError, ValueError):
    """``holomorphic=True`` was asked for, but J(iv) = iJ(v) does not hold."""


class DualLeakError(FwdadError, TypeError):
    """A dual would lose its tangent: as an int, as a plain float, or in code written in C."""

    noted = True


class DeadDualError(FwdadError, RuntimeError):
    """A dual outlived the derivative call that made it."""


class SeedError(FwdadError, ValueError):
    """A seed does not fit the argument that it belongs to."""


class NonScalarOutputError(FwdadError, ValueError):
    """A gradient was asked of a function whose output is not one real number."""


class UnsupportedTypeError(FwdadError, TypeError):
    """A value has no tangent type, or not one that a derivative can be taken with respect to."""


class NoOutputError(FwdadError, TypeError):
    """The function returned None."""


class UndefinedDerivativeError(FwdadError, ArithmeticError):
    """A derivative that does not exist mathematically was used."""


class AliasedArgumentError(FwdadError, ValueError):
    """The function writes into one of two arguments that share memory."""


class IrreversibleError(FwdadError):
    """A statement of a reversible function has no inverse, or breaks a rule of the language."""


class InvertibilityError(FwdadError, ArithmeticError):
    """A reversible program broke a promise while it ran, so its inverse would be wrong.

    Attributes
    ----------
    variable : str
        What was found to be different.
    line : int
        In the user's file.
    expected, found : object
        The value that it should have, and the one that it has.
    """

    def __init__(
        self,
        what: str,
        variable: str = "",
        filename: str = "",
        line: int = 0,
        expected: object = None,
        found: object = None,
    ) -> None:
        location = None
        if filename:
            text = linecache.getline(filename, line)
            column = len(text) - len(text.lstrip()) + 1
            location = Location(filename, line, column, line, len(text.rstrip()) + 1)
        message = f"{what} is {found}; it must be {expected}" if variable else what
        super().__init__(message, location)
        self.variable = variable
        self.line = line
        self.expected = expected
        self.found = found


class CapacityError(InvertibilityError):
    """A stack or a dictionary of a reversible program is full."""


class UntraceableError(FwdadError):
    """A program cannot be written down as a tape: a value would have to be known beforehand."""
