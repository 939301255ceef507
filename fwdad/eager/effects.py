"""Effects outside of Python's objects: what f prints, logs, draws or writes into files.

They are made once for all the runs of one derivative call, with plain values. The first run makes
them, and enters their results into a journal; a run that repeats it reads them there.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

from fwdad.errors import (
    DualLeakError,
    NondeterministicFunctionError,
    UnsupportedTypeError,
    UntraceableError,
)
from fwdad.rules.core.registry import function_name

Journal = list[tuple[Any, Any, "BaseException | None"]]
"""Each effect of a run: the function, what it has returned, and what it has raised."""


class Effects:
    """The effects of one run.

    ``journal`` has those of the first of several runs. If the run ``repeats``, all that it does has
    been done before; if it is ``silent``, no effects are made, since the user has not asked for it;
    if it is ``tentative``, another run follows should it raise, so an effect raises. ``journals``
    also has those of calls that will be run again. ``given`` are objects passed to effects, which
    may hold duals; ``texts`` are numbers that carry derivatives and became text.
    """

    def __init__(
        self, journal: Journal | None, *, repeats: bool, silent: bool, tentative: bool = False
    ) -> None:
        self.repeats = repeats
        self.silent = silent
        self.tentative = tentative
        self.journals: list[Journal] = [] if journal is None else [journal]
        self.given: list[Any] = []
        self.texts: set[str] = set()
        self._known = list(journal or ())
        self._next = 0
        self._written: dict[Any, Any] = {}  # what holds derivatives that nobody can read back

    def make(
        self, f: Any, perform: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make an effect, or return its earlier result."""
        if self.tentative:
            message = f"it calls {function_name(f)}, which a second run would call again"
            raise UntraceableError(message)
        if self._next < len(self._known):
            known, y, error = self._known[self._next]
            if known is not f and known != f:
                raise _another(f, f"called {function_name(known)}")
            self._next += 1
            for journal in self.journals[1:]:
                journal.append((known, y, error))
            if error is not None:
                raise error
            return y
        if self.repeats:
            raise _another(f, "did not call it")
        if self.silent:
            return self._leave_out(f)
        y, error = None, None
        try:
            y = perform(*args, **kwargs)
        except Exception as raised:
            error = raised
            raise
        finally:
            for journal in self.journals:
                journal.append((f, y, error))
        return y

    @staticmethod
    def _leave_out(f: Any) -> None:
        """Skip a call that only produces output; refuse one that returns something."""
        name = getattr(f, "__name__", "")
        if name.startswith(("open", "read", "input", "mkstemp", "fork", "load", "from")):
            message = (
                f"f runs here only to be inspected, but it calls {function_name(f)}, which opens "
                "or reads something outside the program. Load it before, and pass it to f as an "
                "argument"
            )
            raise UnsupportedTypeError(message)

    # -- derivatives that have left, and must not be read back as plain numbers

    def note_text(self, text: str | bytes) -> None:
        """Note that a number that carries a derivative has become text."""
        self.texts.add(_as_text(text))

    def check_text(self, text: Any) -> None:
        """Refuse to parse a number that carried a derivative from a text."""
        if self.texts and isinstance(text, (str, bytes)):
            read = _as_text(text)
            if read in self.texts:
                message = (
                    f"the text {read!r} was made from a number that carries a derivative, and is "
                    "converted back to a plain one, which would lose the derivative. Keep the "
                    "number itself, or use fwdad.stop_gradient(x) before it becomes text"
                )
                raise DualLeakError(message)

    def note_file(self, file: Any) -> None:
        """Note that a value that carries a derivative was written into a file."""
        for key in _names_of(file):
            self._written[key] = file

    def check_file(self, file: Any) -> None:
        """Refuse to read a file into which derivatives were written."""
        if self._written and any(key in self._written for key in _names_of(file)):
            message = (
                "a file is read into which this call has written values that carry derivatives, "
                "and the derivatives would be lost. Keep the values themselves"
            )
            raise DualLeakError(message)


def _as_text(text: str | bytes) -> str:
    return (text if isinstance(text, str) else text.decode(errors="replace")).strip()


def _names_of(file: Any) -> list[Any]:
    """The keys of a file: the object, and the path."""
    keys: list[Any] = []
    name = file
    if isinstance(file, io.IOBase):
        keys.append(id(file))
        name = getattr(file, "name", None)
    if isinstance(name, (str, bytes, os.PathLike)):
        path = os.path.realpath(os.fsdecode(name))
        keys += [path, path + ".npy", path + ".npz"]  # which NumPy adds
    return keys


def _another(f: Any, instead: str) -> NondeterministicFunctionError:
    message = (
        "the function runs more than once for this derivative, and a later run calls "
        f"{function_name(f)} where the first run {instead}: it depends on something that fwdad "
        "cannot reset. Use chunk=None, which runs it once"
    )
    return NondeterministicFunctionError(message)
