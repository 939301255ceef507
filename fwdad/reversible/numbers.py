"""Numbers whose updates have exact inverses: fixed-point, and logarithms of fixed point.

Both are kept as doubles that are multiples of ``2**-bits`` below ``2**(53 - bits)``: sums and
differences of such doubles are exact. Rounding to them has the derivative 1. Tangents of a
logarithmic number are those of its value, not of the logarithm that is kept, so that they exist
at zero, too.
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


def log_of(x: Any, scale: float) -> Any:
    """What is kept of a logarithmic number x: its logarithm on the grid, -inf for 0."""
    zero = x == 0
    log = np.rint(np.log(np.where(zero, 1.0, x)) * scale) * (1.0 / scale)
    return with_derivative_of(np.where(zero, -np.inf, log), x)


def value_of(kept: Any) -> Any:
    """The number whose logarithm is kept."""
    with np.errstate(over="ignore"):
        return with_derivative_of(np.exp(kept), kept)


def times(kept: Any, x: Any, scale: float) -> Any:
    """A logarithmic number times x."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        new = kept + np.rint(np.log(x) * scale) * (1.0 / scale)
        return with_derivative_of(new, value_of(kept) * x)


def over(kept: Any, x: Any, scale: float) -> Any:
    """A logarithmic number divided by x."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        new = kept - np.rint(np.log(x) * scale) * (1.0 / scale)
        return with_derivative_of(new, value_of(kept) / x)


def times_kept(kept: Any, other: Any) -> Any:
    """The product of two logarithmic numbers."""
    with np.errstate(invalid="ignore", over="ignore"):
        return with_derivative_of(kept + other, value_of(kept) * value_of(other))


def over_kept(kept: Any, other: Any) -> Any:
    """The quotient of two logarithmic numbers."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return with_derivative_of(kept - other, value_of(kept) / value_of(other))


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


class Fixed(Grid):
    """A fixed-point format: ``F = fwdad.Fixed(43)``, numbers ``F(0.5)``, arrays ``F(np.zeros(3))``.

    In a reversible program ``x += e`` and ``x -= e`` of such numbers undo each other to the last
    bit: what is added is e, rounded to a multiple of ``2**-bits``, and the sum is exact. A read of
    x is a float.

    Parameters
    ----------
    bits : int
        Binary digits behind the point, 1 to 52. Numbers are smaller than ``2**(53 - bits)`` (1024
        for 43 bits); what would reach that raises, ``InvertibilityError`` in a program and
        ``OverflowError`` outside. With the checks off nothing wraps around, but what is beyond has
        lost digits, and is not undone to the last bit.

    Raises
    ------
    UnsupportedTypeError
        If ``bits`` is no int from 1 to 52.
    OverflowError
        When it makes a number that does not fit.

    Notes
    -----
    A number is kept as a double that is such a multiple, not as an int of 64 bits: so it is read
    without a conversion and carries tangents, and 53 digits are what there is for both sides of the
    point. A smaller ``bits`` leaves more room before it.

    The same bits are found again if the expression e has the same bits in both directions: run a
    function and its inverse in the same way, both compiled or both not. Derivatives are those of
    the program without rounding, at the rounded values.

    Examples
    --------
    >>> import fwdad
    >>> F = fwdad.Fixed(8)
    >>> F(0.3)
    Fixed(8)(0.30078125)
    """

    def __call__(self, value: Any) -> FixedNumber:
        """A number, or an array, rounded to the format."""
        kept = on_grid(_real(value), self.scale)
        if not np.all(np.abs(kept) < self.limit):
            message = f"a number of {self!r} is smaller than {self.limit:g}"
            raise OverflowError(message)
        return FixedNumber(kept, self)


class LogarithmicFormat(Grid):
    """How the logarithms of :class:`Logarithmic` numbers are kept."""

    def __repr__(self) -> str:
        return f"Logarithmic(bits={self.bits})"


def _real(value: Any) -> Any:
    given = np.multiply(value, 1.0)  # a float, or an array of floats
    if given.dtype.kind != "f":
        message = f"real numbers are wanted; got {given.dtype}"
        raise UnsupportedTypeError(message)
    return given


class ExactNumber:
    """A number or an array whose updates are exact: what is kept, and how."""

    __fwdad_record__ = "kept"  # the attribute whose tangents are the number's

    def __init__(self, kept: Any, format: Any) -> None:  # noqa: A002  (what it is)
        self.kept = kept
        self.format = format

    @property
    def value(self) -> Any:
        """A float, or an array of floats."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the value."""
        return np.shape(self.kept)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return np.ndim(self.kept)

    @property
    def size(self) -> int:
        """The number of elements."""
        return np.size(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: Any) -> ExactNumber:
        return self.like(self.kept[index])

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(len(self))])

    def like(self, kept: Any) -> Any:
        """Another number of the format."""
        return made_of(type(self), kept, self.format)

    def copy(self) -> Any:
        """A copy."""
        return self.like(np.positive(self.kept))

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            message = f"the values of {type(self).__name__} numbers are always new"
            raise ValueError(message)
        return np.array(self.value, dtype)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, ExactNumber):
            if self.format != other.format:
                return NotImplemented
            return self.kept == other.kept
        return self.value == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.format!r}({_text(self.value)})"


def _text(value: Any) -> str:
    value = plain(value)
    return repr(value if np.ndim(value) else float(value))


class FixedNumber(ExactNumber):
    """A fixed-point number or array; made by a :class:`Fixed` format."""

    @property
    def value(self) -> Any:
        """A float, or an array of floats."""
        return np.positive(self.kept)

    @property
    def scaled(self) -> Any:
        """The integer that it is a multiple of the smallest number by."""
        return np.asarray(self.kept * self.format.scale).astype(np.int64)[()]


class Logarithmic(ExactNumber):
    """A positive number or zero, or an array of such, kept as its logarithm in fixed point.

    In a reversible program ``x *= e`` and ``x /= e`` of such numbers undo each other to the last
    bit, for positive factors e. A read of x is a float. Zero stays zero.

    Parameters
    ----------
    value : float or array
        None of it negative.
    bits : int, default 43
        Binary digits behind the point of the logarithm: the number has a relative error of
        ``2**-(bits + 1)``, and a logarithm between ``-2**(53 - bits)`` and ``2**(53 - bits)``.

    Raises
    ------
    UnsupportedTypeError
        If ``bits`` is no int from 1 to 52.
    ValueError
        If a value is negative or not finite.
    OverflowError
        If its logarithm does not fit.

    Examples
    --------
    >>> import fwdad
    >>> print(f"{fwdad.Logarithmic(2.0).value:.10f}")
    2.0000000000
    """

    BITS = 43

    def __init__(self, value: Any, bits: int = BITS) -> None:
        form = LogarithmicFormat(bits)
        given = _real(value)
        if not np.all((given >= 0) & (given < np.inf)):
            message = "a logarithmic number is positive or zero, and finite"
            raise ValueError(message)
        kept = log_of(given, form.scale)
        if not np.all((np.abs(kept) < form.limit) | (given == 0)):
            message = f"the logarithm of a number of {form!r} is smaller than {form.limit:g}"
            raise OverflowError(message)
        super().__init__(kept, form)

    @property
    def value(self) -> Any:
        """A float, or an array of floats; inf where it is too large for one."""
        return value_of(self.kept)

    @property
    def log(self) -> Any:
        """The logarithm, as a constant: derivatives are those of the value."""
        return np.positive(plain(self.kept))

    def __repr__(self) -> str:
        bits = "" if self.format.bits == self.BITS else f", bits={self.format.bits}"
        return f"Logarithmic({_text(self.value)}{bits})"


def made_of(cls: type, kept: Any, form: Any) -> Any:
    """A number of a class by what is kept of it."""
    made: Any = object.__new__(cls)
    ExactNumber.__init__(made, kept, form)
    return made


def _register(cls: type) -> None:
    register(
        cls,
        Registration(
            lambda x: ((x.kept,), x.format),
            lambda form, parts: made_of(cls, parts[0], form),
            tangent=lambda _, parts: parts[0],  # with respect to the value: a plain float
        ),
    )


for _cls in (FixedNumber, Logarithmic):
    _register(_cls)
