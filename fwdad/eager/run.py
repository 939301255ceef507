"""The state of one derivative call: its tag, its undo log, and which call a thread is in."""

from __future__ import annotations

import itertools
import operator
import threading
from collections.abc import Callable
from typing import Any

from fwdad.tangents.scaling import MAX_SCALAR_TERMS

_order = itertools.count(1)


class Tag:
    """The identity of one derivative call: duals of different calls never mix.

    Calls nest, and inner ones have a higher ``order``. In an ``eager`` call the tangents of numbers
    are multiplied out, with one coefficient per lane, because a sum of scaled lanes would have as
    many terms as there are directed numbers in it. ``most`` is how many terms the tangent of a
    number may have, 1 once some have arrays of coefficients; ``largest`` the bytes of the largest
    array that a rule returned. A call with a ``record`` writes tangents down there, and has no
    lanes. ``call`` is the dispatcher, by which duals call methods of their primals.
    """

    __slots__ = ("alive", "call", "eager", "largest", "most", "n", "order", "record")

    def __init__(
        self,
        n: int,
        *,
        eager: bool = False,
        record: Any = None,
        call: Callable[..., Any] = operator.call,
    ) -> None:
        self.order = next(_order)
        self.n = n
        self.eager = eager
        self.most = 1 if eager and n > 1 else MAX_SCALAR_TERMS
        self.largest = 0
        self.alive = True
        self.record = record
        self.call = call


LEFT = Tag(0)
"""Of numbers that an earlier call has left outside: they may be asked for, but not be used."""
LEFT.alive = False


class _State(threading.local):
    """Each thread's innermost derivative call, ``run``.

    ``hidden`` are the calls whose rules are running: a rule sees the values of its arguments, and
    not what their memory holds for the call that the rule is applied for.
    """

    run: Any = None
    hidden: tuple[Tag, ...] = ()


STATE = _State()


class Hiding:
    """A context manager that hides a call's tangents in the memory of arrays.

    If its end is interrupted, the end of the enclosing :class:`Run` restores what it has set.
    """

    __slots__ = ("_found", "_tag")

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._found = STATE.hidden

    def __enter__(self) -> None:
        STATE.hidden = (*self._found, self._tag)

    def __exit__(self, *_details: object) -> None:
        STATE.hidden = self._found
