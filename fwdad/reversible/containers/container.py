"""What stacks and dictionaries have in common: memory for numbers, and a count of them.

Where Python runs a reversible program, one without a capacity of its own grows: the run begins
again with more room, which is invisible, since arguments are copied.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np

from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.tangents.registrations import Registration, register

FIRST_ROOM = 64
"""How many numbers there is room for at first, without a capacity."""


class Container:
    """Memory for numbers, and how many there are; without a capacity it may grow."""

    __slots__ = ("fixed",)  # whether it does not grow; no field of a program
    __fwdad_record__ = "values"  # the attribute whose tangents are the container's
    __fwdad_fields__: ClassVar[tuple[str, ...]]

    values: Any
    count: int

    def __init__(self, capacity: int | None = None, dtype: Any = float) -> None:
        if isinstance(capacity, int) and capacity < 0:
            message = f"the capacity is {capacity}: it must not be negative"
            raise ValueError(message)
        memory = np.zeros(FIRST_ROOM if capacity is None else capacity, dtype)
        self.values = memory  # noqa: PLE0237  (subclasses have a __dict__)
        if self.values.ndim != 1 or self.values.dtype.kind not in "biufc":
            message = (
                f"{type_in_words(self)} takes an int as its capacity and a dtype of numbers; got "
                f"{capacity!r} and {dtype!r}"
            )
            raise UnsupportedTypeError(message)
        self.count = 0  # type: ignore[misc]  # noqa: PLE0237
        self.fixed = capacity is not None

    def __init_subclass__(cls) -> None:
        CONTAINERS[cls] = cls.__fwdad_fields__
        register(cls, Registration(_parts, _made, tangent=lambda _, parts: parts[0]))

    def __len__(self) -> int:
        return self.count

    def make_room(self) -> None:
        """Make room for twice as many numbers."""
        for name in self.__fwdad_fields__:
            if name != "count":
                memory = getattr(self, name)
                more = np.zeros(max(len(memory), FIRST_ROOM), memory.dtype)
                setattr(self, name, np.concatenate([memory, more]))


CONTAINERS: dict[type, tuple[str, ...]] = {}
"""Classes of ancillas that are several variables, one for each field; the count begins at zero."""


def _parts(x: Container) -> tuple[tuple[Any, ...], Any]:
    rest = copy.copy(x)
    del rest.values
    return (x.values,), rest


def _made(rest: Container, parts: tuple[Any, ...]) -> Container:
    container = copy.copy(rest)
    container.values = parts[0]
    return container


def may_grow(x: Any) -> bool:
    """Whether something is a container without a capacity of its own."""
    return isinstance(x, Container) and not getattr(x, "fixed", False)
