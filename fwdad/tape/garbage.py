"""The collector of garbage rests while programs are written, optimised and compiled.

Of all that is made then, most stays until the end, and the collector would look at it again and
again: a tenth of the time that a large gradient takes to compile.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_resting: list[bool] = []  # for each that is under way: whether it has found the collector on


@contextmanager
def no_collection() -> Iterator[None]:
    """Switch the collector off, and on again if it was on, when nobody wants it off any more."""
    with _LOCK:
        _resting.append(gc.isenabled() or any(_resting))
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            was_on = _resting.pop()
            if was_on and not _resting:
                gc.enable()
