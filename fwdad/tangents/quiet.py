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

_INSIDE: contextvars.ContextVar[bool] = contextvars.ContextVar("fwdad_quiet", default=False)


class _Quiet(threading.local):
    """Each thread's quiet context: a context can be entered once at a time."""

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.context.run(np.seterr, all="ignore")
        self.context.run(_INSIDE.set, True)


_QUIET = _Quiet()


def quietly(f: Callable[..., Any], *args: Any) -> Any:
    """Call ``f(*args)`` with NumPy's floating-point warnings off."""
    if _INSIDE.get():
        return f(*args)
    return _QUIET.context.run(f, *args)
