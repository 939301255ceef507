"""Lane laws and transposes of functions that are registered by name.

``linear("scipy.fft.dct")`` registers without importing SciPy; what belongs to that rule has to
wait for the import, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from fwdad.rules.define import _PENDING, transpose
from fwdad.tangents.laws import law


def when_imported(dotted: str, attach: Callable[[Any], Any]) -> None:
    """Call ``attach(function)`` after the rule of that name: now, or once its module is imported.

    Parameters
    ----------
    dotted : str
        The name that a rule was registered by.
    attach : callable
        Takes the function itself.
    """
    register = _PENDING.get(dotted)
    if register is None:
        module, _, name = dotted.rpartition(".")
        attach(getattr(sys.modules[module], name))
        return

    def both(function: Any) -> None:
        register(function)
        attach(function)

    _PENDING[dotted] = both


def law_by_name(dotted: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function that is registered by name into the closed list."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        when_imported(dotted, lambda function: law(function)(body))
        return body

    return decorate


def transpose_by_name(
    dotted: str, *, argnum: int = 0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As :func:`fwdad.rules.define.transpose`, for a function that is registered by name."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        when_imported(dotted, lambda function: transpose(function, argnum=argnum)(body))
        return body

    return decorate
