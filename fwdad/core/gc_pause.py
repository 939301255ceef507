"""The collector of garbage rests while programs are written, optimised and compiled.

Of all that is made then, most stays until the end, and the collector would look at it again and
again: a tenth of the time that a large gradient takes to compile.
"""

from __future__ import annotations

import gc
import threading

from fwdad.core.reentrant_context import EnteredTwice

_LOCK = threading.Lock()
_resting: dict[object, bool] = {}  # for each that is under way: whether the collector was on


class NoCollection(EnteredTwice):
    """The collector is off, and on again if it was on when nobody wants it off any more."""

    def begin(self) -> None:
        """See the class."""
        with _LOCK:
            _resting[self] = gc.isenabled() or any(_resting.values())
            gc.disable()

    def end(self) -> None:
        """See the class."""
        with _LOCK:
            if _resting.get(self) and len(_resting) == 1:
                gc.enable()
            _resting.pop(self, None)
