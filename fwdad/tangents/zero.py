"""Tangents that are not numbers: structural zero, missing space, undefined derivative."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from fwdad.errors import UndefinedDerivativeError
from fwdad.ops import record_of


class _Absorbing:
    """Linear operations on a structural zero give a structural zero."""

    __slots__ = ()
    __array_priority__ = 2e6

    def _absorb(self, *_args: object, **_kwargs: object) -> Any:
        return self

    __neg__ = __pos__ = __mul__ = __rmul__ = __truediv__ = __matmul__ = __rmatmul__ = _absorb
    __getitem__ = conj = conjugate = reshape = ravel = transpose = swapaxes = _absorb
    sum = astype = copy = squeeze = flatten = _absorb
    T = mT = real = imag = property(_absorb)

    def __add__(self, other: Any) -> Any:
        return other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return -other

    def __rsub__(self, other: Any) -> Any:
        return other

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_options: Any) -> Any:
        name = ufunc.__name__
        if method == "__call__" and name in ("add", "subtract"):
            first, second = inputs
            if second is self:
                return first
            return second if name == "add" else -second
        if name in ("multiply", "divide", "matmul", "negative", "conjugate", "positive") or (
            name == "add" and method == "reduce"
        ):
            return self
        return NotImplemented

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # Beside a chunk, as in np.where(c, ZERO, x_dot), the chunk's law knows what to do.
        if any(hasattr(t, "terms") for t in types):
            return NotImplemented
        if func is np.where and any(map(_is_array, args[1:])):
            condition, *rest = args  # a cotangent that is an array, where the condition holds
            return func(condition, *(0.0 if a is self else a for a in rest), **kwargs)
        joins = record_of(func).joins or func is np.block
        if joins and any(a is not self for a in _parts(args[0])):
            return NotImplemented
        return self


def _is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__fwdad_symbolic__")


def _parts(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _parts(item)
    else:
        yield x


class Zero(_Absorbing):
    """The structural zero tangent: it costs nothing and is never multiplied.

    There is one, ``ZERO``. A linear operation on it gives ``ZERO``; ``ZERO + c`` is ``c``.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"

    def __reduce__(self) -> str:
        return "ZERO"

    def __bool__(self) -> bool:
        return False


ZERO = Zero()


class NoTangentType:
    """The tangent of a value that has no tangent space: int, bool, str, None. There is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NoTangent"

    def __reduce__(self) -> str:
        return "NoTangent"

    def __bool__(self) -> bool:
        return False


NoTangent = NoTangentType()


def undefined_message(reason: str) -> str:
    """The message of the error that an undefined derivative raises."""
    return f"the derivative is undefined: {reason}"


class Undefined:
    """A derivative that does not exist for a ``reason``, and raises only where it is used."""

    __slots__ = ("reason",)
    __array_priority__ = 3e6

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def use(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Raise :class:`~fwdad.errors.UndefinedDerivativeError`."""
        raise UndefinedDerivativeError(undefined_message(self.reason))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __truediv__ = use
    __matmul__ = __rmatmul__ = __getitem__ = __array_ufunc__ = __array_function__ = use
    lanes = terms = property(use)

    def __repr__(self) -> str:
        return f"undefined({self.reason!r})"


def undefined(reason: str) -> Undefined:
    """Stand for a tangent that does not exist and raises only if it is used.

    Parameters
    ----------
    reason : str
        Why the derivative does not exist, for the error message.

    Returns
    -------
    Undefined
        A tangent whose use raises ``UndefinedDerivativeError``.

    Examples
    --------
    Eigenvalues are differentiable where eigenvectors of a repeated eigenvalue are not::

        return (w, v), (w_dot, undefined("eigenvectors of a repeated eigenvalue"))
    """
    return Undefined(reason)
