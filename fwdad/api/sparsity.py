"""Sparsity patterns: ``jacobian_sparsity``, ``hessian_sparsity`` and ``spy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fwdad.api.transforms import scalar
from fwdad.core.tracebacks import public
from fwdad.display.text import Text
from fwdad.evaluation.arguments import arguments_of
from fwdad.evaluation.signatures import Function

if TYPE_CHECKING:
    from fwdad.colouring.pattern import SparsityPattern

Kind = Literal["global", "local"]


@public
def jacobian_sparsity(
    f: Function,
    x: Any,
    *,
    kind: Kind = "global",
    argnums: int = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
) -> SparsityPattern:
    """Which elements of a function's value may depend on which elements of its argument.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``, of one array that returns one array; it can be traced.
    x : float or array
        Where; of a global pattern its shape alone matters.
    kind : {"global", "local"}
        A global pattern holds for every x of this shape, and for all other floats among the
        arguments and those that f reads from outside: of a branch it has both ways, of an index
        that depends on them all places. Ints, such as indices and counts, are those of now. A local
        one is that of the run at this x.
    argnums : int, default 0
        The argument that is meant, counted in ``(x, *args)``.
    args, kwargs, has_aux
        See :func:`jacobian`.

    Returns
    -------
    SparsityPattern
        A ``scipy.sparse.csr_array`` of True, of shape ``(y.size, x.size)``; a prompt shows it in
        Braille. It is never less than what the Jacobian has, and where it cannot be told, more: its
        ``dense`` names the operations that were taken to depend on all that they are given.

    Raises
    ------
    UntraceableError
        If f cannot be traced.
    UnsupportedTypeError
        If x, or f's value, is not one array.

    Notes
    -----
    f is not run: its tape is, on sets of elements in place of numbers. Numbers are not compared
    with zero. Costs some microseconds for an operation, and some tens of nanoseconds for each
    element; loops are unrolled where their counts are known.

    Examples
    --------
    >>> import numpy as np
    >>> pattern = jacobian_sparsity(lambda x: x[1:] * x[:-1], np.ones(4))
    >>> print(pattern.toarray().astype(int))
    [[1 1 0 0]
     [0 1 1 0]
     [0 0 1 1]]
    """
    return _pattern(f, x, kind, argnums, args, kwargs, has_aux=has_aux)


@public
def hessian_sparsity(
    f: Function,
    x: Any,
    *,
    kind: Kind = "global",
    argnums: int = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> SparsityPattern:
    """Which second derivatives of a function with a real scalar value may be other than zero.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)`` returns one number.
    x, kind, argnums, args, kwargs
        See :func:`jacobian_sparsity`.

    Returns
    -------
    SparsityPattern
        Symmetric, of shape ``(x.size, x.size)``.

    Raises
    ------
    UntraceableError, UnsupportedTypeError
        See :func:`jacobian_sparsity`.

    Notes
    -----
    As :func:`jacobian_sparsity`. Two elements have an entry if an operation that is not linear in
    both meets what depends on them, and the value depends on its result.

    Examples
    --------
    >>> import numpy as np
    >>> pattern = hessian_sparsity(lambda x: x[0] * x[1] + x[2] ** 2 + x[3], np.ones(4))
    >>> print(pattern.toarray().astype(int))
    [[0 1 0 0]
     [1 0 0 0]
     [0 0 1 0]
     [0 0 0 0]]
    """
    return _pattern(scalar(f), x, kind, argnums, args, kwargs, hessian=True)


@public
def spy(
    f: Any,
    x: Any = None,
    *,
    hessian: bool = False,
    width: int = 80,
    height: int = 40,
    **options: Any,
) -> str:
    """Draw the sparsity pattern of a function's Jacobian, or of its Hessian.

    Parameters
    ----------
    f : callable or sparse array
        The function, or a pattern.
    x : float or array, optional
        Where; not of a pattern.
    hessian : bool, default False
        Draw that of the Hessian.
    width, height : int
        How many letters wide and lines high the picture is at most; a letter has two by four dots.
    **options
        See :func:`jacobian_sparsity`.

    Returns
    -------
    str
        The picture in Braille, which a prompt shows as it is.

    Raises
    ------
    UntraceableError, UnsupportedTypeError
        See :func:`jacobian_sparsity`.

    Examples
    --------
    >>> import numpy as np
    >>> spy(lambda x: np.append(x[1:] * x[:-1], x[0]), np.ones(8))
    ┌────┐
    │⠙⢦⡀⠀│
    │⡀⠀⠙⠦│
    └────┘
    """
    from fwdad.colouring.graphs import canonical_pattern  # noqa: PLC0415  (SciPy's sparse package)
    from fwdad.colouring.pattern import drawn  # noqa: PLC0415

    if not callable(f):
        return Text(drawn(canonical_pattern(f), width, height))
    found = (hessian_sparsity if hessian else jacobian_sparsity)(f, x, **options)
    return Text(drawn(found, width, height))


def _pattern(
    f: Function, x: Any, kind: Kind, argnums: int, args: Any, kwargs: Any, **options: bool
) -> SparsityPattern:
    from fwdad.drivers.sparse.detection import (  # noqa: PLC0415  (SciPy's sparse package)
        Question,
        local_pattern,
        pattern_of,
    )

    if kind not in ("global", "local"):
        message = f'kind must be "global" or "local", not {kind!r}'
        raise ValueError(message)
    arguments, _ = arguments_of(f, x, args, kwargs, argnums)
    question = Question(f, argnums, arguments.args, arguments.kwargs, **options)
    return pattern_of(question) if kind == "global" else local_pattern(question)
