"""Running derivative arithmetic without floating-point warnings, at the price of a function call.

A fault of the user's arithmetic is reported by the primal; ``0 * inf`` among partials is policy.
``numpy.errstate`` costs about a microsecond, as much as a product of small arrays; a context in
which the error state is set already is entered in a tenth of that.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class _Quiet(threading.local):
    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.context.run(np.seterr, all="ignore")
        self.inside = False


_QUIET = _Quiet()


def quietly(f: Callable[..., Any], *args: Any) -> Any:
    """Call ``f(*args)`` with NumPy's floating-point warnings off."""
    state = _QUIET
    if state.inside:
        return f(*args)
    state.inside = True
    try:
        return state.context.run(f, *args)
    finally:
        state.inside = False
