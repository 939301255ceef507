"""Fixed-point numbers, whose sums and differences are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.reversible.numbers.grid import ExactNumber, Grid, on_grid, real_values, register_number


class Fixed(Grid):
    """A fixed-point format: ``F = Fixed(43)``, numbers ``F(0.5)``, arrays ``F(np.zeros(3))``.

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
    A number is stored as a double that is such a multiple, not as an int of 64 bits: so it is read
    without a conversion and carries tangents, and 53 digits are what there is for both sides of the
    point. A smaller ``bits`` leaves more room before it.

    The same bits are found again if the expression e has the same bits in both directions: run a
    function and its inverse in the same way, both compiled or both not. Derivatives are those of
    the program without rounding, at the rounded values.

    Examples
    --------
    >>> from fwdad.reversible import Fixed
    >>> F = Fixed(8)
    >>> F(0.3)
    Fixed(8)(0.30078125)
    """

    def __call__(self, value: Any) -> FixedNumber:
        """A number, or an array, rounded to the format."""
        stored = on_grid(real_values(value), self.scale)
        if not np.all(np.abs(stored) < self.limit):
            message = f"a number of {self!r} must be smaller than {self.limit:g}"
            raise OverflowError(message)
        return FixedNumber(stored, self)


class FixedNumber(ExactNumber):
    """A fixed-point number or array; made by a :class:`Fixed` format."""

    @property
    def value(self) -> Any:
        """A float, or an array of floats."""
        return np.positive(self.stored)

    @property
    def scaled(self) -> Any:
        """The integer that it is a multiple of the smallest number by."""
        return np.asarray(self.stored * self.format.scale).astype(np.int64)[()]


register_number(FixedNumber)
