"""Jacobians with respect to several numbers: a tuple, which NumPy must not take for a matrix."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from fwdad.errors import UnsupportedTypeError
from fwdad.evaluation.by_tape import Captured
from fwdad.ir.symbol import Symbol


class PerArgument(tuple[Any, ...]):
    """The columns of a Jacobian, one for each argument, where y is an array.

    It is a tuple, as JAX's. SciPy's ``curve_fit(jac=)`` and the like make an array of it, which
    would have the arguments in front, ``(n, m)``, where they want ``(m, n)``: without an error, if
    there are as many parameters as data.
    """

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Raise, and say which array is which."""
        count, shape = len(self), np.shape(self[0])
        rest = "".join(f", {length}" for length in shape)
        lead = ", ".join(str(length) for length in shape)
        raise UnsupportedTypeError(
            f"this Jacobian is a tuple of {count} arrays of shape {shape}, one for each argnum. "
            "As an array NumPy would put the arguments in front, and SciPy wants them behind: pass "
            f"stack=True to jacfwd or jacrev for the matrix ({lead}, {count}), as curve_fit(jac=) "
            "wants it, or use fwdad.scipy.curve_fit, which needs no jac; write numpy.stack(J) for "
            f"({count}{rest})"
        )


def per_argument(J: Any, arguments: list[Any]) -> Any:
    """A tuple of columns as one, at once or in a trace; any other Jacobian as it is."""
    if type(J) is Captured:  # what becomes of it depends on its parts
        return None
    if type(J) is not tuple or any(getattr(x, "ndim", 0) for x in arguments):
        return J
    return PerArgument(J) if all(map(_is_array, J)) else J


def _is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, Symbol)) and x.ndim > 0
