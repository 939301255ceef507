"""What belongs to one derivative call: its tag, its undo log, and which call a thread is in."""

from __future__ import annotations

import itertools
import threading
from typing import Any

_order = itertools.count(1)


class Tag:
    """The identity of one derivative call: duals of different calls never mix.

    Attributes
    ----------
    order : int
        Calls nest: the one that began later is the inner one.
    n : int
        The number of lanes.
    alive : bool
        False once the call has ended.
    """

    __slots__ = ("alive", "n", "order")

    def __init__(self, n: int) -> None:
        self.order = next(_order)
        self.n = n
        self.alive = True


class _State(threading.local):
    """Each thread's innermost derivative call."""

    run: Any = None


STATE = _State()
