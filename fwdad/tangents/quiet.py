"""Running derivative arithmetic without floating-point warnings, at the price of a function call.

A fault of the user's arithmetic is reported by the primal; ``0 * inf`` among partials is policy.
``numpy.errstate`` costs about a microsecond, as much as a product of small arrays; a context in
which the error state is set already is entered in a tenth of that.
"""

from __future__ import annotations

import contextvars
import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

_INSIDE: contextvars.ContextVar[bool] = contextvars.ContextVar("fwdad_quiet", default=False)


# NumPy copies a short row that is multiplied into many lanes side by side until its buffer is full,
# 8192 elements by default. For rows of 1000 the copies cost half as much as the product.
_BUFFER = 1024


class _Quiet(threading.local):
    """Each thread's quiet context: a context can be entered once at a time."""

    def __init__(self) -> None:
        self.run = contextvars.copy_context().run
        self.run(np.seterr, all="ignore")
        self.run(np.setbufsize, _BUFFER)
        self.run(_INSIDE.set, True)


QUIET = _Quiet()
inside = _INSIDE.get


def quiet() -> Callable[..., Any]:
    """A caller of functions with NumPy's floating-point warnings off: ``quiet()(f, *args)``.

    For the operators of arrays: passing ``*args`` on, as :func:`quietly` does, takes longer than
    entering the context.
    """
    return operator.call if inside() else QUIET.run


def quietly(f: Callable[..., Any], *args: Any) -> Any:
    """Call ``f(*args)`` with NumPy's floating-point warnings off."""
    return quiet()(f, *args)
