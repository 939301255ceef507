"""What numbers with exact updates have in common: they are stored as multiples of a power of two.

Doubles that are multiples of ``2**-bits`` below ``2**(53 - bits)`` have exact sums and differences.
Rounding to them has the derivative 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import Registration, register
from fwdad.tangents.straight import with_derivative_of

_DIGITS = 53  # of a double


def on_grid(x: Any, scale: float) -> Any:
    """The multiple of ``1 / scale`` next to x; it moves as x does."""
    return with_derivative_of(np.rint(x * scale) * (1.0 / scale), x)


class Grid:
    """Multiples of ``2**-bits`` that a double holds exactly: the base of the formats."""

    def __init__(self, bits: int) -> None:
        if type(bits) is not int or not 1 <= bits < _DIGITS:
            message = f"{type(self).__name__} numbers have 1 to {_DIGITS - 1} bits; got {bits!r}"
            raise UnsupportedTypeError(message)
        self.bits = bits
        self.scale = 2.0**bits
        self.limit = 2.0 ** (_DIGITS - bits)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.bits))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.bits})"


def real_values(value: Any) -> Any:
    """A value as a float or an array of floats; raises if it is complex."""
    numbers = np.multiply(value, 1.0)  # a float, or an array of floats
    if numbers.dtype.kind != "f":
        message = f"real numbers are expected; got {numbers.dtype}"
        raise UnsupportedTypeError(message)
    return numbers


class ExactNumber:
    """A number or an array whose updates are exact: what is stored, and in which format."""

    __fwdad_record__ = "stored"  # the attribute whose tangents are the number's

    def __init__(self, stored: Any, format: Any) -> None:  # noqa: A002  (what it is)
        self.stored = stored
        self.format = format

    @property
    def value(self) -> Any:
        """A float, or an array of floats."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the value."""
        return np.shape(self.stored)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return np.ndim(self.stored)

    @property
    def size(self) -> int:
        """The number of elements."""
        return np.size(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: Any) -> ExactNumber:
        return self.like(self.stored[index])

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(len(self))])

    def like(self, stored: Any) -> Any:
        """Another number of the format."""
        return exact_number(type(self), stored, self.format)

    def copy(self) -> Any:
        """A copy."""
        return self.like(np.positive(self.stored))

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            message = (
                f"the values of {type(self).__name__} numbers are computed when asked for: "
                "copy=False is impossible"
            )
            raise ValueError(message)
        return np.array(self.value, dtype)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, ExactNumber):
            if self.format != other.format:
                return NotImplemented
            return self.stored == other.stored
        return self.value == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.format!r}({value_text(self.value)})"


def value_text(value: Any) -> str:
    """A value in a ``repr``, without its tangents."""
    value = plain(value)
    return repr(value if np.ndim(value) else float(value))


def exact_number(cls: type, stored: Any, form: Any) -> Any:
    """A number of a class that stores this."""
    number: Any = object.__new__(cls)
    ExactNumber.__init__(number, stored, form)
    return number


def register_number(cls: type) -> None:
    """Have derivatives taken of what is stored of numbers of a class."""
    register(
        cls,
        Registration(
            lambda x: ((x.stored,), x.format),
            lambda form, parts: exact_number(cls, parts[0], form),
            tangent=lambda _, parts: parts[0],  # with respect to the value: a plain float
        ),
    )
