"""The adjoints of linear primitives: their registration, and helpers for writing their bodies.

Also the in-place updates by which a reverse pass adds up products of vectors with matrices.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fwdad.errors import PACKAGE, DuplicateRuleError
from fwdad.rules.core.contract import check_cotangent
from fwdad.rules.core.lapack import lapack
from fwdad.rules.core.registry import function_name, registering_place
from fwdad.tangents.plain import plain

F = TypeVar("F", bound=Callable[..., Any])

REGISTERS_FOR_OTHERS = True  # its callers are who registers a rule

TRANSPOSES: dict[Any, dict[int, Callable[..., Any]]] = {}


@dataclass(frozen=True)
class Space:
    """Shape and dtype of an array whose value a transpose does not need.

    Attributes
    ----------
    shape : tuple of int
        The shape.
    dtype : dtype
        The dtype.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @classmethod
    def of(cls, value: Any) -> Space:
        """The space that a value lives in."""
        value = plain(value)
        return cls(tuple(np.shape(value)), np.asarray(value).dtype)


def transpose(function: Any, *, argnum: int = 0, override: bool = False) -> Callable[[F], F]:
    """Register the adjoint of a linear primitive with respect to one argument.

    Parameters
    ----------
    function : callable
        A function registered as linear or multilinear, or one of the closed list.
    argnum : int, default 0
        The position, among its primals, of the linear argument.
    override : bool, default False
        Replace a transpose that exists.

    Returns
    -------
    callable
        A decorator. The decorated ``body(y_bar, *primals, **options)`` returns the cotangent of
        that argument; ``y_bar`` is a ``Chunk``, and the linear argument is given as a ``Space``
        (shape and dtype). It is the adjoint under Re<., .>.

    Raises
    ------
    DuplicateRuleError
        By the decorator, if the function has a transpose there and ``override`` is False.

    Notes
    -----
    What a transpose returns is checked where it runs: shape and number of cotangents are those of
    the argument and of ``y_bar``, and it is real where the argument is (``ChunkMismatchError``).
    """
    origin = registering_place()

    def register(body: F) -> F:
        transposes = TRANSPOSES.setdefault(function, {})
        if argnum in transposes and not override:
            code = inspect.unwrap(transposes[argnum]).__code__
            raise DuplicateRuleError(
                f"{function_name(function)} already has a transpose for argument {argnum}, "
                f"registered at {code.co_filename}:{code.co_firstlineno}"
            )
        of_user = not origin.startswith(PACKAGE)
        transposes[argnum] = _checked(body, function, argnum, origin) if of_user else body
        return body

    return register


TAKE_ARRAYS: set[Any] = set()
"""Functions whose transposes take one cotangent as an array, too, in a fraction of the time."""


def take_arrays(*functions: Any) -> None:
    """Say that the transposes of these functions take an array in place of a chunk of one."""
    TAKE_ARRAYS.update(functions)


def _checked(
    body: Callable[..., Any], function: Any, argnum: int, origin: str
) -> Callable[..., Any]:
    """Wrap a user's transpose so that its result is checked at each call."""
    what = f"the transpose of {function_name(function)} for argument {argnum} ({origin})"

    @functools.wraps(body)
    def run(y_bar: Any, *values: Any, **options: Any) -> Any:
        x_bar = body(y_bar, *values, **options)
        check_cotangent(what, x_bar, values[argnum], y_bar)
        return x_bar

    return run


def into(space: Space, x_bar: Any) -> Any:
    """Sum a cotangent over the axes that were broadcast, and keep its real part for a real x.

    A symbol is summed at run time over axes of which tracing cannot tell whether they were
    broadcast.
    """
    if space.dtype.kind != "c" and x_bar.dtype.kind == "c":
        x_bar = np.real(x_bar)
    if x_bar.shape == space.shape:
        return x_bar
    lead = x_bar.ndim - space.ndim
    if lead < 0:  # a store drops leading axes of length one
        x_bar, lead = np.reshape(x_bar, (*(1,) * -lead, *x_bar.shape)), 0
    pairs = list(zip(space.shape, x_bar.shape[lead:], strict=True))
    stretched = tuple(k for k, (n, m) in enumerate(pairs) if type(n) is int and n == 1 and m != 1)
    if lead:
        x_bar = np.sum(x_bar, axis=tuple(range(lead)))
    if stretched:
        x_bar = np.sum(x_bar, axis=stretched, keepdims=True)
    if hasattr(x_bar, "__fwdad_symbolic__") and x_bar.shape != space.shape:
        return x_bar.recorder.sum_to(x_bar, space.shape)
    return x_bar


def conjugate(x: Any) -> Any:
    """The complex conjugate, not to be written into: a real array is returned itself."""
    return x if getattr(x, "dtype", _COMPLEX).kind != "c" else np.conjugate(x)


_COMPLEX = np.dtype(complex)


def add_outer(a: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
    """Add ``u[:, None] * v`` to a matrix in place; where BLAS can, without a temporary array.

    Shapes: a (m, n), u (m,), v (n,) or what NumPy broadcasts; all doubles. a shares no memory with
    u or v.
    """
    (m, n), (row, step) = a.shape, a.strides
    if step == 8 and row >= 8 * n and len(u) == m > 1 and len(v) == n > 1 and a.flags.writeable:
        of_u, of_v = u.strides[0], v.strides[0]
        if of_u > 0 and of_v > 0 and not (row | of_u | of_v) & 7:
            lapack().add_outer(a, u, v)
            return
    a += u[:, np.newaxis] * v


def add_product(a: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
    """Add ``u.T @ v`` to a matrix in place; where BLAS can, without a temporary array.

    Shapes: a (m, n), u (k, m), v (k, n); all doubles, the rows of u and v dense. a shares no memory
    with u or v.
    """
    row, step = a.strides
    if step == 8 and row >= 8 * a.shape[1] and not row & 7 and a.flags.writeable:
        lapack().add_product(a, u, v)
    else:
        a += u.T @ v
