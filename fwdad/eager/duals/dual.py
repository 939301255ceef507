"""The base of dual numbers and arrays, and how they refuse to decay into plain values."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from fwdad.eager.run import LEFT, STATE, Tag
from fwdad.errors import DeadDualError, DualLeakError, StaleValueError, type_in_words
from fwdad.tangents.plain import plain

OPAQUE: set[type] = set()
"""The dual classes of values whose tangents have a class of their own (see ``opaque.py``)."""


class Dual:
    """The base of scalar and array duals: they look like the primal, and never decay into it."""

    __slots__ = ()
    __fwdad_tag__ = True
    p: Any
    tag: Tag

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return type(plain(self))

    @__class__.setter
    def __class__(self, value: Any) -> None:
        message = "the class of a dual cannot be changed"
        raise TypeError(message)

    def __repr__(self) -> str:
        return _noted(repr(self.p))

    def __str__(self) -> str:
        return _noted(str(self.p))

    def __format__(self, spec: str) -> str:
        return _noted(format(self.p, spec))

    def __bool__(self) -> bool:
        return bool(self.p)

    def __float__(self) -> NoReturn:
        raise DualLeakError(leak("a float", self))

    def __complex__(self) -> NoReturn:
        raise DualLeakError(leak("a complex", self))

    def __int__(self) -> NoReturn:
        raise DualLeakError(leak("an int", self))

    def __index__(self) -> NoReturn:
        operator.index(self.p)  # raises for a float as the primal does (NumPy 2.0's ** calls it)
        raise DualLeakError(leak("an index", self))

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise DualLeakError(leak("a plain array", self))

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        raise DualLeakError(leak("a pickle", self))

    @property
    def __array_interface__(self) -> NoReturn:
        raise DualLeakError(leak("a plain array", self))

    @property
    def __array_struct__(self) -> NoReturn:
        raise DualLeakError(leak("a plain array", self))


def _noted(text: str) -> str:
    """The text of a dual, which is noted: a number parsed from it would have lost its tangent."""
    if STATE.run is not None:
        STATE.run.effects.note_text(text)
    return text


def leak(what: str, x: Any) -> str:
    """The message for a dual that is about to lose its tangent."""
    return (
        f"a value that carries a derivative ({type_in_words(plain(x))}, {plain(x)!r:.60}) would "
        f"become {what} and lose it. If that is intended, use fwdad.stop_gradient(x); if it "
        "happens inside a function written in C, write an frule for that function"
    )


def was_left(what: str) -> str:
    """The message for a value that an earlier derivative call has left outside."""
    return (
        f"{what} is read that carried a derivative when it was stored outside, in an earlier "
        "derivative call or by a function that a solver ran: it is a plain value now, and the "
        "derivative would be lost silently. If it is a constant here (a starting guess), use "
        "fwdad.stop_gradient(value); if it is a cached result, compute it again (from what the "
        "solver returns), or clear it before each call"
    )


def check_alive(tag: Tag) -> None:
    """Raise if a call has ended."""
    if not tag.alive:
        if tag is LEFT:
            raise StaleValueError(was_left("a number"))
        message = (
            "a value of a derivative call is used after that call has ended: it was stored where "
            "fwdad could not see it. Return it from the function instead"
        )
        raise DeadDualError(message)
