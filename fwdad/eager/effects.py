"""Effects outside of Python's objects: what f prints, logs, draws or writes into files.

They are made once for all the runs of one derivative call, with plain values. The first run makes
them, and enters what they have returned into a journal; a run that repeats it reads it there.
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

    Parameters
    ----------
    journal : list or None
        Those of the first of several runs; None if there is only one.
    repeats : bool
        Whether all that this run does has been done before.
    silent : bool
        Whether none may be made: the run is not one that the user has asked for.
    tentative : bool
        Whether another run follows if this one raises: it would make them again.

    Attributes
    ----------
    journals : list of list
        What is entered into: the run's journal, and those of calls that will be made once more.
    given : list
        The objects that effects were given: they may hold duals.
    texts : set of str
        The numbers that carry derivatives and have become text.
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
        """Make an effect, or return what it has returned before."""
        if self.tentative:
            message = f"it calls {function_name(f)}, which a second run would call once more"
            raise UntraceableError(message)
        if self._next < len(self._known):
            known, y, error = self._known[self._next]
            if known is not f and known != f:
                raise _another(f, f"has called {function_name(known)} there in its first run")
            self._next += 1
            for journal in self.journals[1:]:
                journal.append((known, y, error))
            if error is not None:
                raise error
            return y
        if self.repeats:
            raise _another(f, "has not called it in its first run")
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
        """What only puts something out is left out; what returns something cannot be."""
        name = getattr(f, "__name__", "")
        if name.startswith(("open", "read", "input", "mkstemp", "fork", "load", "from")):
            message = (
                f"f is run here only to look at it, and it calls {function_name(f)}, which reads "
                "or opens what is outside: ask this of a function that is given what it reads"
            )
            raise UnsupportedTypeError(message)

    # -- derivatives that have left, and must not be read back as plain numbers

    def note_text(self, text: str | bytes) -> None:
        """Note a number that carries a derivative and has become text."""
        self.texts.add(_as_text(text))

    def check_text(self, text: Any) -> None:
        """Refuse to read a number that carried a derivative out of a text."""
        if self.texts and isinstance(text, (str, bytes)):
            read = _as_text(text)
            if read in self.texts:
                message = (
                    f"the text {read!r} is a number that carries a derivative, and is "
                    "read as a plain one: the derivative would be lost. Keep the number itself; "
                    "or say fwdad.stop_gradient(x) before it becomes text"
                )
                raise DualLeakError(message)

    def note_file(self, file: Any) -> None:
        """Note a file into which a value that carries a derivative was written."""
        for key in _names_of(file):
            self._written[key] = file

    def check_file(self, file: Any) -> None:
        """Refuse to read such a file."""
        if self._written and any(key in self._written for key in _names_of(file)):
            message = (
                "a file is read into which this call has written values that carry derivatives: "
                "they would be lost. Keep the values themselves"
            )
            raise DualLeakError(message)


def _as_text(text: str | bytes) -> str:
    return (text if isinstance(text, str) else text.decode(errors="replace")).strip()


def _names_of(file: Any) -> list[Any]:
    """What a file is known by: the object, and the path."""
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
        f"the function is run more than once for this derivative, and calls {function_name(f)} in "
        f"a later run, where it {instead}: it depends on something that fwdad cannot set back. Use "
        "chunk=None, which runs it once"
    )
    return NondeterministicFunctionError(message)
