"""Logarithmic numbers, whose products and quotients are exact.

Tangents are those of the value, not of the logarithm that is stored: they exist at zero, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.reversible.numbers.grid import (
    ExactNumber,
    Grid,
    real_values,
    register_number,
    value_text,
)
from fwdad.tangents.plain import plain
from fwdad.tangents.straight import with_derivative_of


def log_of(x: Any, scale: float) -> Any:
    """What is stored of a logarithmic number x: its logarithm on the grid, -inf for 0."""
    zero = x == 0
    log = np.rint(np.log(np.where(zero, 1.0, x)) * scale) * (1.0 / scale)
    return with_derivative_of(np.where(zero, -np.inf, log), x)


def value_of(stored: Any) -> Any:
    """The number whose logarithm is stored."""
    with np.errstate(over="ignore"):
        return with_derivative_of(np.exp(stored), stored)


def times(stored: Any, x: Any, scale: float) -> Any:
    """A logarithmic number times x."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        new = stored + np.rint(np.log(x) * scale) * (1.0 / scale)
        return with_derivative_of(new, value_of(stored) * x)


def over(stored: Any, x: Any, scale: float) -> Any:
    """A logarithmic number divided by x."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        new = stored - np.rint(np.log(x) * scale) * (1.0 / scale)
        return with_derivative_of(new, value_of(stored) / x)


def times_stored(stored: Any, other: Any) -> Any:
    """The product of two logarithmic numbers."""
    with np.errstate(invalid="ignore", over="ignore"):
        return with_derivative_of(stored + other, value_of(stored) * value_of(other))


def over_stored(stored: Any, other: Any) -> Any:
    """The quotient of two logarithmic numbers."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return with_derivative_of(stored - other, value_of(stored) / value_of(other))


class LogarithmicFormat(Grid):
    """How the logarithms of :class:`Logarithmic` numbers are stored."""

    def __repr__(self) -> str:
        return f"Logarithmic(bits={self.bits})"


class Logarithmic(ExactNumber):
    """A positive number or zero, or an array of such, stored as its logarithm in fixed point.

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
    >>> from fwdad.reversible import Logarithmic
    >>> print(f"{Logarithmic(2.0).value:.10f}")
    2.0000000000
    """

    BITS = 43

    def __init__(self, value: Any, bits: int = BITS) -> None:
        form = LogarithmicFormat(bits)
        numbers = real_values(value)
        if not np.all((numbers >= 0) & (numbers < np.inf)):
            message = "a logarithmic number must be positive or zero, and finite"
            raise ValueError(message)
        stored = log_of(numbers, form.scale)
        if not np.all((np.abs(stored) < form.limit) | (numbers == 0)):
            message = f"the logarithm of a number of {form!r} must be smaller than {form.limit:g}"
            raise OverflowError(message)
        super().__init__(stored, form)

    @property
    def value(self) -> Any:
        """A float, or an array of floats; inf where it is too large for one."""
        return value_of(self.stored)

    @property
    def log(self) -> Any:
        """The logarithm, as a constant: derivatives are those of the value."""
        return np.positive(plain(self.stored))

    def __repr__(self) -> str:
        bits = "" if self.format.bits == self.BITS else f", bits={self.format.bits}"
        return f"Logarithmic({value_text(self.value)}{bits})"


register_number(Logarithmic)
