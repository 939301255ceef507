"""What belongs to one derivative call: its tag, its undo log, and which call a thread is in."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from fwdad.tangents.scaling import MAX_SCALAR_TERMS

_order = itertools.count(1)


class Tag:
    """The identity of one derivative call: duals of different calls never mix.

    Attributes
    ----------
    order : int
        Calls nest: the one that began later is the inner one.
    n : int
        The number of lanes.
    eager : bool
        Whether numbers have their tangents multiplied out, with one coefficient for each lane. A
        sum of scaled lanes would have as many terms as there are directed numbers in it.
    most : int
        How many terms the tangent of a number may have; 1 once some have arrays of coefficients.
    alive : bool
        False once the call has ended.
    largest : int
        Bytes of the largest array that a rule has returned.
    record : object or None
        Where tangents are written down, instead of being computed; then there are no lanes.
    """

    __slots__ = ("alive", "eager", "largest", "most", "n", "order", "record")

    def __init__(self, n: int, *, eager: bool = False, record: Any = None) -> None:
        self.order = next(_order)
        self.n = n
        self.eager = eager
        self.most = 1 if eager and n > 1 else MAX_SCALAR_TERMS
        self.largest = 0
        self.alive = True
        self.record = record


LEFT = Tag(0)
"""Of numbers that an earlier call has left outside: they may be asked for, but not be used."""
LEFT.alive = False


class _State(threading.local):
    """Each thread's innermost derivative call.

    Attributes
    ----------
    run : Run or None
        The call.
    hidden : tuple of Tag
        The calls whose rules are being run: a rule sees the values of its arguments, and not what
        their memory holds for the call that the rule is applied for.
    """

    run: Any = None
    hidden: tuple[Tag, ...] = ()


STATE = _State()


class Hiding:
    """Leave a call's tangents in the memory of arrays unseen.

    Where its end is interrupted, the end of the :class:`Run` around it restores what it has set.
    """

    __slots__ = ("_found", "_tag")

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._found = STATE.hidden

    def __enter__(self) -> None:
        STATE.hidden = (*self._found, self._tag)

    def __exit__(self, *_details: object) -> None:
        STATE.hidden = self._found
