"""The choice of how a derivative is computed: candidates in order, and the first that can.

Every driver lists its candidates here: a tape, a recorded run, forward mode. ``explain`` runs a
derivative under :class:`Watch`, and reads there what was chosen and why nothing before it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from fwdad.core.fallbacks import Untraced
from fwdad.core.reentrant_context import EnteredTwice


class Candidate(NamedTuple):
    """A method: its name, and what returns its result, or an ``Untraced`` that says why not."""

    name: str
    attempt: Callable[[], Any]


class Choice(NamedTuple):
    """What was computed of f, by which candidate, and why not by those before it.

    ``tape`` is the specialisation that was run, if one was, ``within`` what the candidate chose,
    ``raised`` what it has raised.
    """

    what: str
    f: Any
    taken: str
    why_not: tuple[Untraced, ...]
    tape: Any
    within: tuple[Choice, ...]
    raised: Exception | None = None


class _Thread(threading.local):
    watch: Watch | None = None


_THREAD = _Thread()
WATCHES: set[Watch] = set()
"""Those in any thread: while there are some, no call takes a shortcut, which makes no choices."""


class Watch(EnteredTwice):
    """Gathers the choices, and the tape, of what runs in this thread while it is entered."""

    def __init__(self) -> None:
        self.choices: list[Choice] = []
        self.tape: Any = None
        self._before = _THREAD.watch

    def begin(self) -> None:
        """Watch from here on."""
        WATCHES.add(self)
        _THREAD.watch = self

    def end(self) -> None:
        """Leave it to who watched before."""
        _THREAD.watch = self._before
        WATCHES.discard(self)

    def attempt(
        self, what: str, f: Any, candidate: Candidate, why_not: tuple[Untraced, ...]
    ) -> Any:
        """The result of a candidate, noted if it has one or raises."""
        result, raised = None, None
        with Watch() as own, own:
            try:
                result = candidate.attempt()
            except Exception as error:
                raised = error
                raise
            finally:
                if not isinstance(result, Untraced):
                    made = own.tape, tuple(own.choices), raised
                    self.choices.append(Choice(what, f, candidate.name, why_not, *made))
        return result


def note_tape(tape: Any) -> None:
    """Note the specialisation that the candidate which is being tried runs."""
    if _THREAD.watch is not None:
        _THREAD.watch.tape = tape


def first_that_can(
    what: str, f: Any, *candidates: Candidate, why_not: tuple[Untraced, ...] = ()
) -> Any:
    """The result of the first candidate that has one; ``why_not`` is of those tried before."""
    watch = _THREAD.watch
    if watch is None:
        result = candidates[0].attempt()
    else:
        result = watch.attempt(what, f, candidates[0], why_not)
    if not isinstance(result, Untraced):
        return result
    with result.instead():
        return first_that_can(what, f, *candidates[1:], why_not=(*why_not, result))
