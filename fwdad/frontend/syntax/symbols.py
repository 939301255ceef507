"""Contents of names while a program is traced, other than values and symbols."""

from __future__ import annotations

from typing import Any, NoReturn

from fwdad.errors import Location, UntraceableError, type_in_words


class Held:
    """A stand-in for a content that must not be used as a value itself."""

    __slots__ = ()
    in_words = "what cannot be traced"

    def __bool__(self) -> bool:
        raise TypeError(f"{type_in_words(self)} is taken for a value")

    def __eq__(self, other: object) -> bool:
        """Refuse comparisons, since C code that compares items would find nothing equal to this."""
        if self is not other:
            raise self._refusal("is compared by code that has no Python source")
        return True

    def __hash__(self) -> int:
        raise self._refusal("cannot be a key of a dict or set")

    def _refuse_text(self, *_: object) -> NoReturn:
        raise self._refusal("is needed as a text")

    __repr__ = __str__ = __format__ = _refuse_text

    def _refuse_items(self, *_: object) -> NoReturn:
        raise self._refusal("is read by code that has no Python source")

    __iter__ = __len__ = __getitem__ = __contains__ = _refuse_items

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or pickled, as by ``copy.deepcopy`` of a container."""
        raise self._refusal("is copied or pickled")

    def _refusal(self, why: str) -> UntraceableError:
        recorder = getattr(getattr(self, "flag", None), "recorder", None)
        place = None if recorder is None else recorder.place()
        return UntraceableError(f"{self.in_words} {why}", place)


class OfTrace:
    """A base of objects that have no meaning after their trace."""


class OfFunction(OfTrace):
    """A stand-in for a function or a bound method, of which Python's questions are asked.

    ``kind`` is the class of what it stands for, ``like`` a function with the same attributes, and
    ``owner`` what a method is bound to.
    """

    kind: type
    like: Any
    owner: Any


class Refusing(OfTrace):
    """A stand-in whose special methods refuse what Python, or code in C, would do with it."""


class Mergeable(OfTrace):
    """A stand-in that consists of values of the tape, which may be others on another path."""

    rebuilt = True  # whether it can be made anew; else it stays what it is

    @property
    def own(self) -> dict[str, Any] | None:
        """What can be changed, by all who have it."""
        return None

    def is_like(self, other: Any) -> bool:
        """Whether this one and another of its class can be one."""
        raise NotImplementedError

    def parts(self, held: Any = None) -> tuple[Any, ...]:
        """The values; ``held`` is what a path has left in ``own``."""
        raise NotImplementedError

    def anew(self, parts: Any) -> Any:
        """The same with other values."""
        raise NotImplementedError


class Maybe(Held):
    """The content of a name that is bound on some paths only: ``value`` if ``flag`` holds."""

    __slots__ = ("flag", "value")
    in_words = "a value that may be unbound"

    def __init__(self, flag: Any, value: Any) -> None:
        self.flag = flag
        self.value = value


class Optional(Held):
    """None on some paths, a number or array on others: ``best = None`` before a loop."""

    __slots__ = ("flag", "value")
    in_words = "a value that may be None"

    def __init__(self, flag: Any, value: Any) -> None:
        self.flag = flag
        self.value = value


class KindsDifferError(UntraceableError):
    """A value of two kinds, as different paths leave them, is used."""


class Poison(Held):
    """The content of a name whose values on two paths cannot be merged: it raises when read.

    ``reason`` is the end of a sentence about the name, ``place`` is that of the branch, ``values``
    are the two.
    """

    __slots__ = ("place", "reason", "values")
    made = False  # whether there has ever been one
    in_words = "a value that differs in kind between paths"

    def __init__(
        self, reason: str, place: Location | None = None, values: tuple[Any, ...] = ()
    ) -> None:
        self.reason = reason
        self.place = place
        self.values = values
        Poison.made = True


class AppendedTo:
    """A list from outside that is looked up in order to be appended to."""

    def __init__(self, items: Any) -> None:
        self.items = items
