"""The functions of autograd that take a function, and return one of its derivatives.

Each is a translation of autograd's calling convention to a function of fwdad's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.api.transforms import grad as gradient_of
from fwdad.api.transforms import jacfwd, jacrev
from fwdad.compat.conventions import conjugate, ones_like
from fwdad.drivers.gradient import value_and_gradient
from fwdad.drivers.jacobian import jacobian as jacobian_at
from fwdad.drivers.pullback import vjp
from fwdad.errors import NonScalarOutputError, UnsupportedTypeError
from fwdad.evaluation.arguments import positions_of
from fwdad.evaluation.evaluators import jvp
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.evaluation.transformed import Transformed


def grad(fun: Function, argnum: Argnums = 0) -> Function:
    """Turn a function with one real number as its value into one that returns its gradient.

    Parameters
    ----------
    fun : callable
        Its value may be an array with one element.
    argnum : int or tuple of int, default 0
        The positional arguments to differentiate with respect to.

    Returns
    -------
    callable
        With fun's signature. The gradient of a complex x is ``df/d(Re x) - i df/d(Im x)``, as
        autograd has it; that of :func:`fwdad.grad` is the conjugate.

    Raises
    ------
    NonScalarOutputError
        When it is called, if the value is not one real number.

    Notes
    -----
    Other than in autograd, ints in a container are constants.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat.autograd import grad
    >>> grad(lambda x, y: np.sum(x * y**2), 1)(np.ones(2), np.array([1.0, 3.0]))
    array([2., 6.])
    """
    return _transformed(_call_grad, fun, argnum)


def value_and_grad(fun: Function, argnum: Argnums = 0) -> Function:
    """Turn a function with one real number as its value into one that returns it and its gradient.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`.

    Returns
    -------
    callable
        Returns ``(fun(x), gradient)``.

    Raises
    ------
    NonScalarOutputError
        See :func:`grad`.
    """
    return _transformed(_call_value_and_grad, fun, argnum)


def grad_and_aux(fun: Function, argnum: Argnums = 0) -> Function:
    """Turn a function that returns ``(y, aux)`` into one that returns ``(gradient of y, aux)``.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`.

    Returns
    -------
    callable
        aux may be anything; it is passed on.

    Raises
    ------
    NonScalarOutputError
        See :func:`grad`.
    """
    return _transformed(_call_grad_and_aux, fun, argnum)


def elementwise_grad(fun: Function, argnum: Argnums = 0) -> Function:
    """Turn a function into one that returns the gradient of the sum of its values.

    Of a function that acts element by element, these are the derivatives of the elements.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`; fun's value is a real array of any shape.

    Returns
    -------
    callable
        With fun's signature; the columns of the Jacobian, summed.

    Raises
    ------
    UnsupportedTypeError
        When it is called, if the value is complex.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat.autograd import elementwise_grad
    >>> elementwise_grad(np.sin)(np.zeros(3))
    array([1., 1., 1.])
    """
    return _transformed(_call_elementwise_grad, fun, argnum)


def deriv(fun: Function, argnum: Argnums = 0) -> Function:
    """Turn a function into one that returns its derivative in the direction of ones.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`; one real argument.

    Returns
    -------
    callable
        Its value has the shape of fun's.
    """
    return _transformed(_call_deriv, fun, argnum)


def jacobian(fun: Function, argnum: int = 0) -> Function:
    """Turn a function into one that returns its Jacobian, ``y.shape + x.shape``.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`; real numbers.

    Returns
    -------
    callable
        Unlike autograd's, it also takes containers and several arguments, and goes by columns
        where that is cheaper.

    Raises
    ------
    NotHolomorphicError
        When it is called with complex numbers: write ``fwdad.jacfwd(fun, holomorphic=True)``.
    """
    return _transformed(_call_jacobian, fun, argnum)


def hessian(fun: Function, argnum: int = 0) -> Function:
    """Turn a function into one that returns its second derivatives.

    Parameters
    ----------
    fun, argnum
        See :func:`jacobian`.

    Returns
    -------
    callable
        Its value has the shape ``y.shape + x.shape + x.shape``.
    """
    return jacfwd(jacrev(fun, argnum), argnum)


def holomorphic_grad(fun: Function, argnum: int = 0) -> Function:
    """Turn a function with one complex number as its value into one that returns its derivative.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`.

    Returns
    -------
    callable
        Unlike autograd's, it checks that fun is holomorphic at x. It costs a run of fun for each
        chunk of columns.

    Raises
    ------
    NonScalarOutputError, NotHolomorphicError
        When it is called.
    """
    return _transformed(_call_holomorphic_grad, fun, argnum)


def make_vjp(fun: Function, argnum: Argnums = 0) -> Function:
    """Turn a function into one that returns ``(pullback, fun(x))``.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`.

    Returns
    -------
    callable
        With fun's signature. Of complex numbers the pullback is the transpose, not the adjoint.
    """

    def made(*args: Any, **kwargs: Any) -> Any:
        y, pullback = vjp(fun, args[0], args=args[1:], kwargs=kwargs, argnums=argnum)
        return lambda y_bar: conjugate(pullback(conjugate(y_bar))), y

    return made


def make_jvp(fun: Function, argnum: Argnums = 0) -> Function:
    """Turn a function into one that returns ``pushforward(v) -> (fun(x), J(x) v)``.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`. Of complex arguments fun must be holomorphic.

    Returns
    -------
    callable
        With fun's signature.
    """

    def made(*args: Any, **kwargs: Any) -> Any:
        return lambda v: jvp(
            fun, args[0], v, args=args[1:], kwargs=kwargs, argnums=argnum, holomorphic=True
        )

    return made


def make_hvp(fun: Function, argnum: int = 0) -> Function:
    """Turn a function with a real scalar value into one that returns ``(hvp, gradient)``.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`; real numbers.

    Returns
    -------
    callable
        ``hvp(v)`` is the Hessian times v.
    """
    gradient = grad(fun, argnum)

    def made(*args: Any, **kwargs: Any) -> Any:
        return lambda v: _hessian_times(fun, argnum, args, kwargs, v), gradient(*args, **kwargs)

    return made


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """Turn a function with a real scalar value into one of ``(*args, v)``: the Hessian times v.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`; real numbers.

    Returns
    -------
    callable
        v has the shape of the argument.
    """
    return _transformed(_call_hessian_product, fun, argnum)


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """Turn a function into one of ``(*args, v)``: v times the Jacobian, over all axes of v.

    Parameters
    ----------
    fun, argnum
        See :func:`grad`; real numbers.

    Returns
    -------
    callable
        If v has fewer axes than the value, the others are in front of those of x.
    """
    return _transformed(_call_jacobian_product, fun, argnum)


def make_ggnvp(
    f: Function, g: Function | None = None, f_argnum: int = 0
) -> Function:  # the names are autograd's
    """Turn a function into one that returns products with the Gauss-Newton matrix ``J' H J``.

    Parameters
    ----------
    f : callable
        Its Jacobian is J.
    g : callable, optional
        A loss of the value of f; H is its Hessian. Default: half the sum of squares.
    f_argnum : int, default 0
        The argument of f.

    Returns
    -------
    callable
        With f's signature; its value is the product as a function of v.
    """

    def made(*args: Any, **kwargs: Any) -> Any:
        common: Any = {"args": args[1:], "kwargs": kwargs, "argnums": f_argnum}

        def product(v: Any) -> Any:
            y, pullback = vjp(f, args[0], **common)
            pushed = jvp(f, args[0], v, **common)[1]
            return pullback(pushed if g is None else _hessian_times(g, 0, (y,), {}, pushed))

        return product

    return made


hessian_vector_product = hessian_tensor_product
vector_jacobian_product = tensor_jacobian_product


def _transformed(evaluate: Any, fun: Function, argnum: Argnums) -> Function:
    return Transformed(evaluate, fun, argnum, chunk="auto")


def _call_grad(call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any) -> Any:
    try:
        options = {"has_aux": False, "value": False}
        found = call(value_and_gradient, (f, argnums, args, kwargs, options), {})[1]
    except NonScalarOutputError as error:
        found = _of_one_element(call, f, argnums, args, kwargs, error)[1]
    return call(conjugate, (found,), {})


def _call_value_and_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any
) -> Any:
    try:
        options = {"has_aux": False, "value": True}
        y, found = call(value_and_gradient, (f, argnums, args, kwargs, options), {})
    except NonScalarOutputError as error:
        y, found = _of_one_element(call, f, argnums, args, kwargs, error)
    return y, call(conjugate, (found,), {})


def _of_one_element(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, error: NonScalarOutputError
) -> Any:
    """Value and gradient where the value is an array; raises unless it has one element."""
    y, found = call(_pulled_ones, (f, argnums, args, kwargs), {})
    if call(np.size, (y,), {}) != 1 or call(np.iscomplexobj, (y,), {}):
        raise error
    return y, found


def _pulled_ones(f: Function, argnums: Argnums, args: Any, kwargs: Any) -> Any:
    y, pullback = vjp(f, args[0], args=args[1:], kwargs=kwargs, argnums=argnums)
    return y, pullback(ones_like(y))


def _call_grad_and_aux(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any
) -> Any:
    options = {"has_aux": True, "value": True}
    (_, aux), found = call(value_and_gradient, (f, argnums, args, kwargs, options), {})
    return call(conjugate, (found,), {}), aux


def _call_elementwise_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any
) -> Any:
    y, found = call(_pulled_ones, (f, argnums, args, kwargs), {})
    if call(np.iscomplexobj, (y,), {}):
        raise UnsupportedTypeError(
            "elementwise_grad takes a function with real values: of a holomorphic function of one "
            "number write fwdad.derivative(f, x, holomorphic=True)"
        )
    return call(conjugate, (found,), {})


def _call_deriv(call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any) -> Any:
    return call(_pushed_ones, (f, argnums, args, kwargs), {})


def _pushed_ones(f: Function, argnums: Argnums, args: Any, kwargs: Any) -> Any:
    ones = ones_like(args[argnums])
    return jvp(f, args[0], ones, args=args[1:], kwargs=kwargs, argnums=argnums)[1]


def _call_jacobian(call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any) -> Any:
    arguments = {"args": args[1:], "kwargs": kwargs, "argnums": argnums}
    return call(jacobian_at, (f, args[0]), arguments)


def _call_holomorphic_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any
) -> Any:
    arguments = {"args": args[1:], "kwargs": kwargs, "argnums": argnums, "holomorphic": True}
    J = call(jacobian_at, (f, args[0]), arguments)
    (k,) = positions_of(argnums, len(args))
    if call(np.shape, (J,), {}) != call(np.shape, (args[k],), {}):
        raise NonScalarOutputError(
            "holomorphic_grad takes a function with one number as its value: for arrays write "
            "fwdad.jacfwd(f, holomorphic=True)"
        )
    return J


def _call_hessian_product(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any
) -> Any:
    return call(_hessian_times, (f, argnums, args[:-1], kwargs, args[-1]), {})


def _call_jacobian_product(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, _: Any
) -> Any:
    *args, v = args
    J = _call_jacobian(call, f, argnums, tuple(args), kwargs, _)
    return call(np.tensordot, (v, J, call(np.ndim, (v,), {})), {})


def _hessian_times(f: Function, argnum: int, args: Any, kwargs: Any, v: Any) -> Any:
    gradient: Callable[..., Any] = gradient_of(f, argnum)
    return jvp(gradient, args[0], v, args=args[1:], kwargs=kwargs, argnums=argnum)[1]
