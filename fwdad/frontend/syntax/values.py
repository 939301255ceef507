"""Values in the places where they are used: as numbers, as what must be known, as contents."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NoReturn

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.outside import Outside
from fwdad.frontend.syntax.position import Position
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import (
    Held,
    KindsDifferError,
    Maybe,
    OfFunction,
    Optional,
    Poison,
    Refusing,
)
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.symbol import UNBOUND, Symbol, UnknownText
from fwdad.ir.types import BOOL


class Values:
    """What a value is where it is used."""

    def __init__(self, recorder: Recorder, position: Position, outside: Outside) -> None:
        self.recorder = recorder
        self.position = position
        self.outside = outside
        self.one_in_memory: Callable[[tuple[Any, ...]], None] | None = None

    def number(self, x: Any) -> Any:
        """A value used as a number; an optional one is checked not to be None."""
        if type(x) is Poison:
            self.refuse_poison(x, "this value")
        if isinstance(x, Optional):
            message = "unsupported operand type(s): 'NoneType'"
            self.recorder.check(x.flag, TypeError, (message,))
            return self.number(x.value)
        return x

    def numbers(self, x: Any) -> Any:
        """An argument of code without a source: a number, or a list of what may be None."""
        if type(x) in (list, tuple) and _holds_optional(x):
            return type(x)(map(self.numbers, x))
        return self.number(x)

    def python_bool(self, x: Any) -> Any:
        """A truth value as Python's ``bool``, where NumPy's comparisons give NumPy's."""
        known = type(x) is not Symbol or x.type == BOOL
        return x if known else self.recorder.apply(bool, (x,), {})

    def made(self, x: Any) -> Any:
        """The result of code without a Python source, with lists and the like marked as new."""
        return self.recorder.journal.fresh(x) if type(x) in (list, dict, set) else x

    def readable(
        self,
        held: Any,
        name: str,
        namespace: dict[str, Any],
        missing: tuple[type[Exception], Any] | None = None,
    ) -> Any:
        """The value of a name with the content ``held``, or the exception that Python would raise.

        ``missing`` is that exception and its argument; the default is that of a local name.
        """
        message = f"cannot access local variable {name!r} where it is not associated with a value"
        cls, message = missing or (UnboundLocalError, message)
        if held is UNBOUND:
            raise AlwaysRaises(cls, (message,))
        if isinstance(held, Poison):
            self.refuse_poison(held, f"`{name}`")
        if isinstance(held, Maybe):
            self.recorder.check(held.flag, cls, (message,))
            self.recorder.journal.bind(namespace, name, held.value)
            return held.value
        return held

    def known(self, x: Any) -> Any:
        """A value that must be known at tracing time; an input is assumed to keep its value."""
        if type(x) is Poison:
            self.refuse_poison(x, "this value")
        if type(x) is Symbol:
            return self.force(x)
        if isinstance(x, Optional):
            return self.known(self.settled(x))
        if isinstance(x, UnknownText):
            return self._known_text(x)
        if isinstance(x, tuple):
            return tuple(self.known(item) for item in x)
        if isinstance(x, slice):
            return slice(self.known(x.start), self.known(x.stop), self.known(x.step))
        return x

    def force(self, x: Any) -> Any:
        """The value of a symbol in the example, which the tape assumes from now on."""
        if type(x) is not Symbol:
            return x
        forced = self.recorder.examples.forced(x.value)
        if forced is UNBOUND and self.recorder.ways is not None:
            forced = self.recorder.ways.assumed(x)
        if forced is UNBOUND:
            message = (
                "a value computed at run time is needed at trace time, as a length, an axis, a "
                "key or an option"
            )
            raise UntraceableError(message, self.position.location())
        return forced

    def _known_text(self, text: UnknownText) -> Any:
        """A text that must be known, of numbers that are assumed."""
        if text.recipe is None:
            self.refuse_text()
        make, *parts = text.recipe
        parts = [self.known(part) for part in parts]
        if mentions_symbols(parts):  # in a list, or an object
            self.refuse_text()
        return native(make, *parts)

    def decided(self, held: Any, undecided: str) -> bool:
        """A truth that must be known when traced: as in the example, which the tape checks.

        ``undecided`` is what is said where the example cannot tell, or too much depends on it.
        """
        if type(held) is not Symbol:
            return bool(held)
        ways = self.recorder.ways
        found = UNBOUND if ways is None else ways.decided(held)
        if found is not UNBOUND:
            return bool(found)
        error = UntraceableError(undecided, self.position.location())
        raise error if ways is None else ways.needed(None, error)

    def settled(self, x: Any) -> Any:
        """A value that may be None as what it is in the example, which the tape checks."""
        if not isinstance(x, Optional):
            return x
        undecided = "whether this value is None must be known at trace time: use a number instead"
        return self.settled(x.value) if self.decided(x.flag, undecided) else None

    def refuse_poison(self, x: Poison, name: str) -> NoReturn:
        """Refuse a value of two kinds; where the example can tell, the trace begins anew.

        So it does where two lists can be one in memory.
        """
        if self.one_in_memory is not None:
            self.one_in_memory(x.values)
        error = KindsDifferError(
            f"{name} cannot be used here: {x.reason}", self.position.location()
        )
        ways = self.recorder.ways
        raise error if ways is None else ways.needed(x.place, error)

    def check_kinds(self, *given: Any) -> None:
        """Refuse values of two kinds among what C code is given, also in containers."""
        if not Poison.made:
            return
        waiting, seen = list(given), set()
        while waiting:
            x = waiting.pop()
            if type(x) is Poison:
                self.refuse_poison(x, "an argument")
            if isinstance(x, (list, tuple, dict, set, frozenset)) and id(x) not in seen:
                seen.add(id(x))
                # by `+=` a list of a class of its own would answer
                waiting.extend(x.values() if isinstance(x, dict) else x)

    def refuse_text(self) -> NoReturn:
        """Refuse a text of unknown numbers, which may only be used in messages."""
        message = (
            "the string of a number that is unknown until run time can only be the message of an "
            "error: as a key or a name use something known at trace time, such as the counter of "
            "a loop over range(3)"
        )
        raise UntraceableError(message, self.position.location())

    def python_method(self, x: Any, name: str) -> Any:
        """A special method that the user's class defines in Python, or None."""
        cls = type(x)
        if cls is Symbol or isinstance(x, (OfFunction, Refusing, Held)):
            return None
        method = getattr(cls, name, None)
        found = isinstance(method, types.FunctionType)
        if found or name not in _HOOKS:
            self.outside.guard_special(x, name)
        return method if found else None


# these are asked for at each access, so that a guard of their absence would cost each call
_HOOKS = ("__getattribute__", "__getattr__")


def _holds_optional(x: Any) -> bool:
    return isinstance(x, Optional) or (type(x) in (list, tuple) and any(map(_holds_optional, x)))
