"""Transformers take a function and return one with the same signature: ``jacfwd``, ``grad``, ….

With them second derivatives are taken: ``hessian`` and ``hvp``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fwdad.arguments import Argnums, Function
from fwdad.builder.build import run_on_duals
from fwdad.errors import NonScalarOutputError, UnsupportedTypeError
from fwdad.evaluators import jacobian, jvp, value_and_jacobian
from fwdad.tangents.chunk import plain


def jacfwd(
    f: Function,
    argnums: Argnums = 0,
    *,
    chunk: int | str | None = "auto",
    has_aux: bool = False,
    outputs: str = "returned",
    holomorphic: bool = False,
    stack: bool = False,
) -> Function:
    """Turn a function into one that returns its Jacobian, by forward mode.

    Parameters
    ----------
    f : callable
        Any NumPy program.
    argnums : int or tuple of int, default 0
        The arguments to differentiate with respect to, all of them positional.
    chunk, has_aux, outputs, holomorphic, stack
        See :func:`jacobian`.

    Returns
    -------
    callable
        With f's signature. ``jacfwd(rhs, argnums=1)`` is ``solve_ivp``'s ``jac``.
    """
    return _Transformed(
        _call_jacfwd,
        f,
        argnums,
        chunk=chunk,
        has_aux=has_aux,
        outputs=outputs,
        holomorphic=holomorphic,
        stack=stack,
    )


def grad(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk: int | str | None = "auto"
) -> Function:
    """Turn a function with a real scalar value into one that returns its gradient.

    Parameters
    ----------
    f : callable
        Returns one real number.
    argnums, chunk
        See :func:`jacfwd`.
    has_aux : bool, default False
        f returns ``(y, aux)``; the gradient function returns ``(gradient, aux)``.

    Returns
    -------
    callable
        With f's signature; its value has the structure and shapes of the argument.

    Raises
    ------
    NonScalarOutputError
        If f's value is not one real number.

    Notes
    -----
    Forward mode for now: the cost grows with the size of x.
    """
    return _Transformed(_call_grad, f, argnums, has_aux=has_aux, chunk=chunk)


def value_and_grad(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk: int | str | None = "auto"
) -> Function:
    """Turn a function with a real scalar value into one that returns value and gradient.

    Parameters
    ----------
    f, argnums, has_aux, chunk
        See :func:`grad`.

    Returns
    -------
    callable
        Returns ``(f(x), gradient)``, as ``scipy.optimize.minimize(jac=True)`` wants; with
        ``has_aux`` ``((f(x), aux), gradient)``.
    """
    return _Transformed(_call_value_and_grad, f, argnums, has_aux=has_aux, chunk=chunk)


def hessian(
    f: Function,
    x: Any,
    *,
    chunk: int | str | None = "auto",
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    argnums: Argnums = 0,
) -> Any:
    """The matrix of second derivatives of a function with a real scalar value.

    Parameters
    ----------
    f, x, chunk, args, kwargs, argnums
        See :func:`jacobian`.

    Returns
    -------
    array or composite
        ``x.shape + x.shape``.

    Notes
    -----
    Forward over forward for now: ``size(x) / chunk`` runs of the gradient.
    """
    gradient = grad(f, argnums, chunk=chunk)
    return jacobian(gradient, x, chunk=chunk, args=args, kwargs=kwargs, argnums=argnums)


def hvp(
    f: Function,
    x: Any,
    v: Any,
    *,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    chunk: int | str | None = "auto",
) -> Any:
    """The product of the Hessian of a real scalar function with a direction.

    Parameters
    ----------
    f, x, args, kwargs, chunk
        See :func:`jacobian`.
    v : like x, or ``(K, *x.shape)``
        The direction, or K of them.

    Returns
    -------
    like x
        ``H(x) v``; for K directions ``(K, *x.shape)``. SciPy's ``hessp`` is
        ``lambda x, p: hvp(f, x, p)``.
    """
    return jvp(grad(f, chunk=chunk), x, v, args=args, kwargs=kwargs)[1]


def _call_jacfwd(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    return jacobian(f, args[0], args=args[1:], kwargs=kwargs, argnums=argnums, **options)


def _call_grad(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    y, gradient = _call_value_and_grad(f, argnums, args, kwargs, options)
    return (gradient, y[1]) if options["has_aux"] else gradient


def _call_value_and_grad(
    f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    has_aux = options["has_aux"]
    result = value_and_jacobian(
        _ScalarValued(f, has_aux=has_aux),
        args[0],
        args=args[1:],
        kwargs=kwargs,
        argnums=argnums,
        **options,
    )
    y, gradient = result[:2]
    return ((y, result[2]), gradient) if has_aux else (y, gradient)


class _Transformed:
    """A transformed function: it has f's signature, and pickles when f does."""

    def __init__(self, evaluate: Any, f: Function, argnums: Argnums, **options: Any) -> None:
        if not callable(f):
            message = f"a function is wanted; a {type(f).__name__} came"
            raise UnsupportedTypeError(message)
        self._evaluate = evaluate
        self._options = options
        self._argnums = argnums
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not args:
            message = "the argument to differentiate with respect to must be positional"
            raise UnsupportedTypeError(message)
        return self._evaluate(self.__wrapped__, self._argnums, args, kwargs, self._options)

    def __reduce__(self) -> Any:
        return (_restore, (self._evaluate, self.__wrapped__, self._argnums, self._options))


def _restore(evaluate: Any, f: Function, argnums: Argnums, options: dict[str, Any]) -> _Transformed:
    return _Transformed(evaluate, f, argnums, **options)


class _ScalarValued:
    """f, checked to return one real number."""

    def __init__(self, f: Function, *, has_aux: bool) -> None:
        self.f = f
        self.has_aux = has_aux
        self.__name__ = getattr(f, "__name__", "f")
        self.__qualname__ = getattr(f, "__qualname__", "f")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = run_on_duals(self.f, args, kwargs)
        y = result[0] if self.has_aux and isinstance(result, tuple) and result else result
        value = plain(y)
        if y is None:
            return result
        if isinstance(y, (list, tuple, dict)):
            message = (
                f"a gradient needs a function that returns one real number; {self.__qualname__} "
                f"returned a {type(y).__name__}. Use jacobian or jvp"
            )
            raise NonScalarOutputError(message)
        if np.ndim(value) or not isinstance(value, (float, int, np.number, np.ndarray)):
            what = f"shape {np.shape(value)}" if np.ndim(value) else type(value).__name__
            message = (
                f"a gradient needs a function that returns one real number; {self.__qualname__} "
                f"returned {what}. Use jacobian or jvp"
            )
            raise NonScalarOutputError(message)
        if np.iscomplexobj(np.asarray(value)):
            message = (
                f"a gradient needs a real value; {self.__qualname__} returned a complex number"
            )
            raise NonScalarOutputError(message)
        return result
