"""Derivatives of functions that have tapes, as those under ``jit`` do: who computes them.

``drivers`` keep the tapes and stand above the evaluators, so they are registered here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fwdad.evaluation.transformed import Transformed


class ByTape(NamedTuple):
    """How ``evaluate(f, argnums, args, kwargs, options)`` is computed by the tapes of an f.

    Both call their last argument where there is no tape; ``quickly`` takes no ``kwargs``, and has a
    result for calls like an earlier one alone.
    """

    quickly: Callable[[Any, Any, Any, Any, Any, Callable[[], Any]], Any]
    or_else: Callable[[Any, Any, Any, Any, Any, Any, Callable[[], Any]], Any]


_BY_TAPE: dict[type, ByTape] = {}


def differentiated_by(cls: type, how: ByTape) -> None:
    """Register how functions of a class are differentiated."""
    _BY_TAPE[cls] = how


def by_tape(f: Any) -> ByTape | None:
    """What computes derivatives of a function, or of a derivative of one; None for most."""
    while type(f) is Transformed:
        f = f.__wrapped__
    return _BY_TAPE.get(type(f))
