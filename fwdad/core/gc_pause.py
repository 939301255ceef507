"""A pause of the garbage collector while programs are traced, optimised and compiled.

Most of what is made then stays until the end, and the collector would look at it again and again: a
tenth of the time that a large gradient takes to compile.
"""

from __future__ import annotations

import gc
import threading

from fwdad.core.reentrant_context import EnteredTwice

_LOCK = threading.Lock()
_resting: dict[object, bool] = {}  # for each that is under way: whether the collector was on


class NoCollection(EnteredTwice):
    """Turn the collector off; the last to leave turns it on again if it was on."""

    def begin(self) -> None:
        """Turn the collector off."""
        with _LOCK:
            _resting[self] = gc.isenabled() or any(_resting.values())
            gc.disable()

    def end(self) -> None:
        """Turn it on again if nobody else wants it off and it was on before."""
        with _LOCK:
            if _resting.get(self) and len(_resting) == 1:
                gc.enable()
            _resting.pop(self, None)
