"""Opaque calls: rules whose bodies cannot be recorded, run as one operation at run time.

Such a body branches on values, loops over lengths, or calls compiled code that accepts only plain
arrays. The operation runs the rule on arrays and chunks, as the evaluator without a tape does, so
that the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.fallbacks import blame, is_refusal, report
from fwdad.errors import Location, Running, UntraceableError, message_of
from fwdad.ir.ops import Apply, Program
from fwdad.rules.core.registry import function_name


class Whole:
    """A function that runs as one opaque operation, and is differentiated as one.

    ``makes_its_own``: its result is never a view of an argument, whatever the function returns.
    ``differentiates``: its first argument are the arguments of ``function``.
    ``mistaken``: the rule failed by mistake instead of refusing; ``blame`` says whose mistake.
    """

    function: Callable[..., Any]
    location: Location | None = None
    makes_its_own = False
    differentiates = True
    reason = ""
    mistaken = False
    blame = ""
    _mistake: Exception | None = None

    def because(self, reason: Exception | str, location: Location | None) -> None:
        """Note why it runs as one operation, and where the user calls it.

        An exception of the rule that is no refusal is reported once the function has run.
        """
        self.reason, self.location = str(reason), location
        if isinstance(reason, Exception):
            self.reason = f"{type(reason).__name__}: {message_of(reason)}"
        if isinstance(reason, Exception) and not is_refusal(reason):
            self.mistaken, self._mistake, self.blame = True, reason, blame(reason)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run it; an error shows the user's location."""
        with Running(self.location) as place, place:
            result = self.run(*args, **kwargs)
        if self._mistake is not None:  # what raises here, too, is no mistake of the library's
            what = f"the rule of {function_name(self.function)} on a tape"
            report(what, self._mistake, "It is run whole", self.location)
            self._mistake = None
        return result

    def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        raise NotImplementedError

    def pushed(self, _args: Any, _kwargs: Any, _dots: Any) -> tuple[Any, Any] | None:
        """Values and tangents, if it is linear in the active arguments and can tell; else None."""
        return None


def check_rank(function: Callable[..., Any], value: Any, rank: int) -> None:
    """Raise if a value that a function has returned is not of the rank that it was traced with."""
    own = len(np.shape(value))
    if own != rank:
        raise UntraceableError(
            f"{function_name(function)} returns a value of rank {own} here, and the program was "
            f"traced for rank {rank}: the rank depends on values"
        )


def check_kind(function: Callable[..., Any], dtype: np.dtype[Any], kind: str) -> None:
    """Raise if what a function has returned is not of the kind that it was traced with."""
    if dtype.kind != kind:
        raise UntraceableError(
            f"{function_name(function)} returns dtype {dtype} here, and the program was traced "
            f"for {_KINDS.get(kind, kind)}: the dtype depends on values"
        )


_KINDS = {"f": "real numbers", "c": "complex numbers", "i": "integers", "b": "truth values"}


def mistakes(program: Program) -> str:
    """The rules that could not be recorded because of a mistake of the library, one per line."""
    lines = {
        f"\n  {function_name(op.function.function)} is run whole, because its rule "
        f"raised {op.function.reason}. {op.function.blame}"
        for op in program.walk()
        if isinstance(op, Apply) and isinstance(op.function, Whole) and op.function.mistaken
    }
    return "".join(sorted(lines))
