"""The functions of JAX that take a function, and return its derivative, or another way to run it.

Each is a translation of JAX's calling convention to a function of fwdad's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fwdad.api.checkpoint import checkpoint as checkpointed
from fwdad.api.jit import jit as jitted
from fwdad.api.transforms import jacfwd as by_columns
from fwdad.api.transforms import jacrev as by_rows
from fwdad.api.vmap import vmap as over_points
from fwdad.compat.conventions import conjugate
from fwdad.drivers.gradient import value_and_gradient
from fwdad.drivers.jacobian import value_and_jacobian as value_and_jacobian_at
from fwdad.drivers.pullback import vjp as pullback_at
from fwdad.errors import NonScalarOutputError, UnsupportedTypeError
from fwdad.evaluation.evaluators import jvp as pushed_at
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.evaluation.transformed import Transformed


def grad(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """Turn a function with one real number as its value into one that returns its gradient.

    Parameters
    ----------
    fun : callable
        Any NumPy program.
    argnums : int or tuple of int, default 0
        The positional arguments to differentiate with respect to.
    has_aux : bool, default False
        fun returns ``(y, aux)``; the gradient function returns ``(gradient, aux)``.
    holomorphic : bool, default False
        The value is one complex number. Unlike JAX, fwdad checks that fun is holomorphic at x.

    Returns
    -------
    callable
        With fun's signature. The gradient of a complex x is ``df/d(Re x) - i df/d(Im x)``, as JAX
        has it; that of :func:`fwdad.grad` is the conjugate.

    Raises
    ------
    NonScalarOutputError
        When it is called, if the value is not one real number.
    NotHolomorphicError
        When it is called with ``holomorphic=True``, if fun is not.

    Examples
    --------
    >>> import fwdad.compat.jax as jax
    >>> import fwdad.compat.jax.numpy as jnp
    >>> jax.grad(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    if holomorphic:
        return _transformed(_call_holomorphic, fun, argnums, has_aux=has_aux)
    return _transformed(_call_grad, fun, argnums, has_aux=has_aux)


def value_and_grad(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """Turn a function with one real number as its value into one that returns it and its gradient.

    Parameters
    ----------
    fun, argnums, has_aux
        See :func:`grad`.
    holomorphic : bool, default False
        Only False: write ``fwdad.value_and_jacobian(fun, x, holomorphic=True)``.

    Returns
    -------
    callable
        Returns ``(fun(x), gradient)``; with ``has_aux`` ``((y, aux), gradient)``.

    Raises
    ------
    NotImplementedError
        With ``holomorphic=True``.
    NonScalarOutputError
        See :func:`grad`.
    """
    if holomorphic:
        raise NotImplementedError(
            "value_and_grad(holomorphic=True) has no counterpart in fwdad. Write "
            "fwdad.value_and_jacobian(fun, x, holomorphic=True)"
        )
    return _transformed(_call_value_and_grad, fun, argnums, has_aux=has_aux)


def jacfwd(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """Turn a function into one that returns its Jacobian, by forward mode.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic
        See :func:`grad`; fun's value may be an array or a structure.

    Returns
    -------
    callable
        As :func:`fwdad.jacfwd`; with ``has_aux`` it returns ``(jacobian, aux)``.

    Raises
    ------
    NotHolomorphicError
        When it is called with complex numbers, unless ``holomorphic``.
    """
    return by_columns(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)


def jacrev(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """Turn a function into one that returns its Jacobian, by reverse mode.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic
        See :func:`jacfwd`. That of a holomorphic function is computed by forward mode.

    Returns
    -------
    callable
        As :func:`fwdad.jacrev`; with ``has_aux`` it returns ``(jacobian, aux)``.

    Raises
    ------
    NotHolomorphicError
        See :func:`jacfwd`.
    """
    if holomorphic:
        return by_columns(fun, argnums, has_aux=has_aux, holomorphic=True)
    return by_rows(fun, argnums, has_aux=has_aux)


jacobian = jacrev


def hessian(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """Turn a function into one that returns its second derivatives.

    Parameters
    ----------
    fun, argnums, has_aux
        See :func:`jacfwd`.
    holomorphic : bool, default False
        See :func:`jacfwd`.

    Returns
    -------
    callable
        Forward over reverse mode: the columns of the Jacobian's Jacobian.

    Raises
    ------
    NotHolomorphicError
        See :func:`jacfwd`.
    """
    inner = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return by_columns(inner, argnums, has_aux=has_aux, holomorphic=holomorphic)


def jvp(fun: Function, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The value of a function, and its derivative along one direction.

    Parameters
    ----------
    fun : callable
        Holomorphic, if an argument is complex.
    primals, tangents : tuple or list
        The arguments, and a tangent for each, of its structure.
    has_aux : bool, default False
        fun returns ``(y, aux)``; aux is a third result.

    Returns
    -------
    y, y_dot : object
        The value, and its tangent.

    Raises
    ------
    UnsupportedTypeError
        If these are not a tuple or a list of the same length.

    Examples
    --------
    >>> import fwdad.compat.jax as jax
    >>> jax.jvp(lambda x, y: x * y, (3.0, 4.0), (1.0, 0.0))
    (12.0, 4.0)
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise UnsupportedTypeError(
            "jvp takes a tuple of arguments, and one of tangents: jvp(f, (x,), (v,))"
        )
    if len(primals) != len(tangents):
        raise UnsupportedTypeError(
            f"got {len(tangents)} tangents for {len(primals)} arguments: pass one for each"
        )
    return pushed_at(
        fun,
        primals[0],
        tuple(tangents),
        args=tuple(primals[1:]),
        argnums=tuple(range(len(primals))),
        has_aux=has_aux,
        holomorphic=True,
    )


def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and the function that pulls cotangents back.

    Parameters
    ----------
    fun : callable
        Any NumPy program.
    *primals : float, array or composite
        Its arguments.
    has_aux : bool, default False
        fun returns ``(y, aux)``; aux is a third result.

    Returns
    -------
    y : object
        The value.
    pullback : callable
        ``pullback(y_bar)`` returns a tuple with the cotangent of each argument: of complex numbers
        by the transpose of the Jacobian, where :func:`fwdad.vjp` takes the adjoint.

    Examples
    --------
    >>> import fwdad.compat.jax as jax
    >>> y, pullback = jax.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> pullback(1.0)
    (4.0, 3.0)
    """
    found = pullback_at(
        fun,
        primals[0],
        args=primals[1:],
        argnums=tuple(range(len(primals))),
        has_aux=has_aux,
    )
    return (found[0], _Transposed(found[1]), *found[2:])


class _Transposed:
    """A pullback by the transpose of the Jacobian, made of one by the adjoint."""

    def __init__(self, pullback: Callable[..., Any]) -> None:
        self.pullback = pullback

    def __call__(self, y_bar: Any) -> Any:
        return conjugate(self.pullback(conjugate(y_bar)))


def linearize(fun: Function, *primals: Any) -> Any:
    """The value of a function, and the function that pushes tangents forward from there.

    Parameters
    ----------
    fun : callable
        Any NumPy program.
    *primals : float, array or composite
        Its arguments.

    Returns
    -------
    y : object
        The value.
    push : callable
        ``push(*tangents)``. Each call runs fun again on duals: what fun reads from outside must not
        change. ``fwdad.linearize`` copies that, and makes an operator with both products.

    Examples
    --------
    >>> import fwdad.compat.jax as jax
    >>> y, push = jax.linearize(lambda x: x**2, 3.0)
    >>> y, push(1.0)
    (9.0, 6.0)
    """
    return fun(*primals), lambda *tangents: jvp(fun, primals, tangents)[1]


def jit(
    fun: Function | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    inline: bool = False,
) -> Any:
    """Compile a function, as :func:`fwdad.jit`.

    Parameters
    ----------
    fun : callable, optional
        Any NumPy program that can be traced. Without it, a decorator is returned.
    static_argnums, static_argnames, donate_argnums, donate_argnames, inline
        Taken, and without effect: a tape finds out what it has to know of an argument (a length, an
        axis, a flag), and is checked at each call.

    Returns
    -------
    callable
        With fun's signature. Branches on values, and loops over unknown lengths, are compiled.

    Raises
    ------
    UntraceableError
        When it is called, see :func:`fwdad.jit`.

    Examples
    --------
    >>> import functools
    >>> import fwdad.compat.jax as jax
    >>> @functools.partial(jax.jit, static_argnums=1)
    ... def power(x, n):
    ...     return x**n
    >>> power(3.0, 2)
    9.0
    """
    return jitted(fun)


def vmap(
    fun: Function,
    in_axes: Any = 0,
    out_axes: int = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Function:
    """Turn a function of one point into one of many, as :func:`fwdad.vmap`.

    Parameters
    ----------
    fun : callable
        Any NumPy program.
    in_axes, out_axes
        See :func:`fwdad.vmap`.
    axis_name, axis_size, spmd_axis_name
        Only None: a loop has no names for its axis.

    Returns
    -------
    callable
        With fun's signature, for many points.

    Raises
    ------
    NotImplementedError
        If an axis is named, or its size is given.

    Examples
    --------
    >>> import numpy as np
    >>> vmap(np.dot, in_axes=(0, None))(np.eye(2), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    if any(x is not None for x in (axis_name, axis_size, spmd_axis_name)):
        raise NotImplementedError(
            "vmap(axis_name=..., axis_size=...) has no counterpart in fwdad, where it is a loop: "
            "take the sum or mean over the points outside of it"
        )
    return over_points(fun, in_axes, out_axes)


def checkpoint(
    fun: Function,
    *,
    prevent_cse: bool = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | tuple[int, ...] = (),
) -> Function:
    """Run a function again in the reverse pass, as :func:`fwdad.checkpoint`.

    Parameters
    ----------
    fun : callable
        Any NumPy program.
    prevent_cse, static_argnums
        Taken, and without effect.
    policy : callable, optional
        Only None: what is kept is said by ``fwdad.checkpoint(snapshots=, memory=)``.

    Returns
    -------
    callable
        With fun's signature.

    Raises
    ------
    NotImplementedError
        If there is a policy.
    """
    if policy is not None:
        raise NotImplementedError(
            "checkpoint(policy=...) has no counterpart in fwdad. Write fwdad.checkpoint(f, "
            "snapshots=20) or fwdad.checkpoint(f, memory=10**9) to say how much is kept"
        )
    return checkpointed(fun)


remat = checkpoint


def _transformed(evaluate: Any, fun: Function, argnums: Argnums, **options: Any) -> Function:
    return Transformed(evaluate, fun, argnums, chunk="auto", **options)


def _call_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    has_aux = options["has_aux"]
    arguments = (f, argnums, args, kwargs, {"has_aux": has_aux, "value": has_aux})
    y, found = call(value_and_gradient, arguments, {})
    found = call(conjugate, (found,), {})
    return (found, y[1]) if has_aux else found


def _call_value_and_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    arguments = (f, argnums, args, kwargs, {"has_aux": options["has_aux"], "value": True})
    y, found = call(value_and_gradient, arguments, {})
    return y, call(conjugate, (found,), {})


def _call_holomorphic(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    arguments = {"args": args[1:], "kwargs": kwargs, "argnums": argnums, "holomorphic": True}
    found = call(value_and_jacobian_at, (f, args[0]), {**arguments, "has_aux": options["has_aux"]})
    if call(np.shape, (found[0],), {}) != ():
        raise NonScalarOutputError(
            "grad(holomorphic=True) takes a function with one number as its value: write "
            "jacfwd(f, holomorphic=True)"
        )
    return (found[1], found[2]) if options["has_aux"] else found[1]
