"""What a name can hold while a program is traced, beside values and symbols."""

from __future__ import annotations

from typing import Any


class Held:
    """What stands for a content: nobody may take it for one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        message = f"a {type(self).__name__} is taken for a value"
        raise TypeError(message)


class OfTrace:
    """Base of what has no meaning when its trace has ended."""


class Maybe(Held):
    """The content of a name that is bound on some ways only.

    Parameters
    ----------
    flag : Symbol
        Whether it is bound.
    value : object
        Its content if so.
    """

    __slots__ = ("flag", "value")

    def __init__(self, flag: Any, value: Any) -> None:
        self.flag = flag
        self.value = value


class Optional(Held):
    """None on some ways, a number or array on others: ``best = None`` before a loop."""

    __slots__ = ("flag", "value")

    def __init__(self, flag: Any, value: Any) -> None:
        self.flag = flag
        self.value = value


class Poison(Held):
    """The content of a name whose values on two ways cannot be one value: raises when read.

    Parameters
    ----------
    reason : str
        Why, as the end of a sentence about the name.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason
