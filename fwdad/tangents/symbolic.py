"""Helpers for rules and laws whose arguments may be symbols: values known when a tape runs.

NumPy's functions dispatch on such symbols by themselves; these helpers are for what does not:
making arrays, and functions of SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import Undefined


def recorder_of(*values: Any) -> Any:
    """The recorder of the tape of a symbol among the values, or in a list of them, or None."""
    for x in values:
        if hasattr(type(x), "__fwdad_symbolic__"):
            return x.recorder
        if isinstance(x, (list, tuple)):
            recorder = recorder_of(*x)
            if recorder is not None:
                return recorder
    return None


def apply(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function without side effects that does not dispatch; on symbols, record the call."""
    recorder = recorder_of(*args, *kwargs.values())
    return function(*args, **kwargs) if recorder is None else recorder.apply(function, args, kwargs)


def array_of(x: Any) -> Any:
    """A primal as an array without tangents of enclosing derivatives; a symbol is itself."""
    x = plain(x)
    return x if hasattr(type(x), "__fwdad_symbolic__") else np.asarray(x)


def zeros(shape: tuple[Any, ...], dtype: Any, beside: Any = None) -> Any:
    """Zeros of a shape with lengths that may be unknown, or which are combined with ``beside``."""
    recorder = recorder_of((shape, beside))
    return (
        np.zeros(shape, dtype) if recorder is None else recorder.apply(np.zeros, (shape, dtype), {})
    )


def arange(n: Any) -> Any:
    """The numbers below a length that may be unknown."""
    recorder = recorder_of(n)
    return np.arange(n) if recorder is None else recorder.apply(np.arange, (n,), {})


def defined(x: Any, bad: Any, reason: str) -> Any:
    """The values x that a derivative is made of; raises if it is used where ``bad`` holds.

    x is not the tangent itself. What a rule knows at once it declares by :func:`fwdad.undefined`.
    On a tape ``bad`` is known only at run time: then this is an operation, dropped together with
    the derivative.
    """
    recorder = recorder_of(x, bad)
    if recorder is not None:
        return recorder.apply_typed(defined, (x, bad, reason), x.type)
    if bad:
        Undefined(reason).use()
    return x


def as_traced(x: Any, bad: Any, reason: str) -> Any:
    """The values x if what a tape takes for granted holds: it is refused where ``bad`` does."""
    recorder = recorder_of(x, bad)
    if recorder is not None:
        return recorder.apply_typed(as_traced, (x, bad, reason), x.type)
    if bad:
        raise UntraceableError(reason)
    return x


def is_known(*lengths: Any) -> bool:
    """Whether lengths, or products of them, are numbers by now."""
    for n in lengths:  # noqa: SIM110  (a generator costs as much as what it asks)
        if type(n) is not int and recorder_of(n) is not None:
            return False
    return True
