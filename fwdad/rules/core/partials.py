"""Partial derivatives of elementwise functions, evaluated so that no user can write into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from fwdad.errors import UndefinedDerivativeError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import quietly


def partial_of(partial: Any, primals: tuple[Any, ...], y: Any) -> Any:
    """Evaluate a partial, as a scaling of y's shape (or a number) that nobody else holds."""
    numbers = as_numpy_numbers(primals, y)
    return own_partial(quietly(partial, *numbers, y), numbers, y)


def as_numpy_numbers(primals: Iterable[Any], y: Any) -> list[Any]:
    """Python's numbers as NumPy's, in y's precision: 1/0.0 is then inf, as it is for arrays."""
    numbers = list(primals)
    for k, p in enumerate(numbers):
        if type(p) is float or type(p) is int:
            dtype = getattr(y, "dtype", None)
            if dtype is None or dtype == np.float64 or dtype.kind not in "fc":
                numbers[k] = np.float64(p)
            else:
                numbers[k] = np.zeros((), dtype).real.dtype.type(p)
    return numbers


def own_partial(d: Any, primals: Sequence[Any], y: Any, *, kept: bool = True) -> Any:
    """Make a partial's value floating and independent of every array that a user could write.

    One that is not kept, but multiplied by another scaling at once, may be the user's array.
    """
    if type(d) is np.ndarray:
        if type(y) is np.ndarray and d.dtype is _DOUBLE and y.dtype is _DOUBLE:  # the commonest
            shape, dtype = y.shape, _DOUBLE
        else:
            shape, dtype = getattr(y, "shape", ()), floating(d.dtype, y)
        if d.base is None and d.dtype == dtype and d.shape == shape:
            if not kept or getrefcount(d) <= _ALONE:  # y, a primal, a table of the user's
                return d
        return (d if d.shape == shape else np.broadcast_to(d, shape)).astype(dtype)
    if hasattr(d, "__fwdad_tag__"):  # a dual of an enclosing derivative
        raw, shape = plain(d), np.shape(plain(y))
        if np.shape(raw) not in ((), shape):
            d = np.broadcast_to(d, shape)
        shared = raw is plain(y) or getattr(raw, "base", None) is not None or _among(raw, primals)
        return +d if shared and isinstance(raw, np.ndarray) else d
    if hasattr(d, "__fwdad_symbolic__"):  # by call_rule in a rule that holds for symbols
        return d.copy()
    if isinstance(d, (float, int, complex, np.number, np.bool_)):
        return complex(d) if isinstance(d, (complex, np.complexfloating)) else float(d)
    return own_partial(_plain_array(d), primals, y, kept=kept)


def _plain_array(d: Any) -> np.ndarray:
    """A file's memory as an array, which is no other class; ``TypeError`` for anything else."""
    if type(d) is not np.memmap:
        raise TypeError(f"a partial must be a number or an array, not {type(d).__name__}")
    return np.asarray(d)


def _among(raw: Any, primals: Sequence[Any]) -> bool:
    for p in primals:  # noqa: SIM110  (a generator costs as much as a small product)
        if raw is plain(p):
            return True
    return False


def _references(d: Any) -> int:
    return getrefcount(d)


_ALONE = _references(np.zeros(1))  # of an array that nobody but the function it is given to holds
_DOUBLE = np.dtype(np.float64)
SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))
"""The dtypes that Python's numbers do not widen, and NumPy's double ones do."""


def floating(dtype: np.dtype[Any], y: Any) -> np.dtype[Any]:
    """The dtype of a scaling: Python numbers do not widen single precision."""
    if getattr(y, "dtype", None) in SINGLE:
        return np.dtype(np.complex64 if dtype.kind == "c" else np.float32)
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def narrowed(y_dot: Any, y: Any) -> Any:
    """The tangent of a single precision result, where a Python number brought wider lanes in."""
    if getattr(y, "dtype", None) not in SINGLE or not isinstance(y_dot, Chunk):
        return y_dot
    return y_dot if np.can_cast(y_dot.dtype, y.dtype) else y_dot.astype(y.dtype)


class NoDerivative:
    """The placeholder for a partial that does not exist, of an argument of a function if known.

    ``argument`` returns its name, which is looked up only for the message.
    """

    def __init__(
        self, reason: str, function: str = "", argument: Callable[[], str] = lambda: ""
    ) -> None:
        self.reason = reason
        self._function = function
        self._argument = argument

    def of(self, function: str, argument: Callable[[], str]) -> NoDerivative:
        """The same, for an argument of a function."""
        return NoDerivative(self.reason, function, argument)

    def __call__(self, *_args: Any) -> Any:
        """Raise, because the partial is needed."""
        name = self._argument()
        argument = f"its argument {name}" if name else "an argument"
        message = (
            f"{self._function or 'the function'} has no rule for the derivative with respect to "
            f"{argument}: {self.reason}. To hold {name or 'it'} fixed, wrap it in "
            "fwdad.stop_gradient; if you know the derivative, write a function of your own with a "
            "rule (fwdad.frule)"
        )
        raise UndefinedDerivativeError(message)


def no_derivative(reason: str) -> Any:
    """Stand for the partial of an argument that has none, in :func:`elementwise`.

    Parameters
    ----------
    reason : str
        For the error message that an active argument there gets.

    Returns
    -------
    NoDerivative
        To be given to :func:`elementwise` in the place of a partial.
    """
    return NoDerivative(reason)
