"""Transformers, which take a function and return one with its signature: ``jacfwd``, ``grad``, ….

Second derivatives are built from them: ``hessian`` and ``hvp``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fwdad.core.tracebacks import leave, public
from fwdad.drivers.gradient import value_and_gradient
from fwdad.drivers.jacobian import jacobian
from fwdad.drivers.jitted_function import Jitted
from fwdad.eager.lifting.reached import Carrier
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.arguments import Argnums, Function, argument_numbers, check_chunk
from fwdad.evaluation.evaluators import jvp
from fwdad.frontend.calls.tables import CALLED


@public
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

    Raises
    ------
    UnsupportedTypeError
        If f is no function; when it is called, as :func:`jacobian`.

    Notes
    -----
    Costs a run of f on duals for each chunk of columns, however few the rows are: where f has many
    more arguments than values, take :func:`jacrev`, or :func:`jacobian`, which chooses. At kinks
    see :func:`jvp`.

    Examples
    --------
    >>> import numpy as np
    >>> jac = jacfwd(lambda t, y: np.array([y[1], -t * y[0]]), argnums=1)
    >>> jac(2.0, np.array([1.0, 0.0]))
    array([[ 0.,  1.],
           [-2.,  0.]])
    """
    return Transformed(
        _call_jacfwd,
        f,
        argnums,
        chunk=chunk,
        has_aux=has_aux,
        outputs=outputs,
        holomorphic=holomorphic,
        stack=stack,
    )


@public
def jacrev(
    f: Function,
    argnums: Argnums = 0,
    *,
    chunk: int | str | None = "auto",
    has_aux: bool = False,
    outputs: str = "returned",
    stack: bool = False,
) -> Function:
    """Turn a function into one that returns its Jacobian, by reverse mode: row by row.

    Parameters
    ----------
    f : callable
        Any NumPy program.
    argnums : int or tuple of int, default 0
        The arguments to differentiate with respect to, all of them positional.
    chunk, has_aux, outputs, stack
        See :func:`jacobian`; ``chunk`` is the number of rows that travel together.

    Returns
    -------
    callable
        With f's signature.

    Raises
    ------
    UnsupportedTypeError
        If f is no function; when it is called, as :func:`jacobian`.

    Notes
    -----
    Costs one run of f, and a reverse pass for each chunk of rows; see :func:`vjp` for the memory.
    At kinks see :func:`jvp`.

    Examples
    --------
    >>> import numpy as np
    >>> jacrev(lambda x: np.array([np.sum(x), x[0] * x[2]]))(np.array([1.0, 2.0, 3.0]))
    array([[1., 1., 1.],
           [3., 0., 1.]])
    """
    return Transformed(
        _call_jacrev, f, argnums, chunk=chunk, has_aux=has_aux, outputs=outputs, stack=stack
    )


@public
def grad(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk: int | str | None = "auto"
) -> Function:
    """Turn a function with a real scalar value into one that returns its gradient.

    Parameters
    ----------
    f : callable
        Returns one real number.
    argnums : int or tuple of int, default 0
        The arguments to differentiate with respect to, all of them positional.
    has_aux : bool, default False
        f returns ``(y, aux)``; the gradient function returns ``(gradient, aux)``.
    chunk : int, "auto" or None, default "auto"
        Taken, as by :func:`jacrev`, and without effect: a gradient is one row.

    Returns
    -------
    callable
        With f's signature; its value has the structure and shapes of the argument. A complex x
        has the gradient ``df/d(Re x) + i df/d(Im x)``, along which f rises fastest.

    Raises
    ------
    UnsupportedTypeError
        If f is no function; when it is called, as :func:`jvp`.
    NonScalarOutputError
        When it is called, if f's value is not one real number.

    Notes
    -----
    By reverse mode: f is traced once for each kind of arguments, and its tape is run and run
    backwards; the cost does not grow with the size of x beyond f's own. What cannot be traced is
    recorded as it runs, with loops unrolled: the memory then grows with the number of operations.
    :func:`explain` says which it is. At kinks see :func:`jvp`.

    The gradient function pickles where f does, also by cloudpickle (joblib, Dask): it carries the
    source of f, and of the functions that f reaches, where they are not imported on arrival, as
    those of ``__main__`` and of notebooks. Rules are not carried.

    Examples
    --------
    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    return Transformed(_call_grad, _scalar(f), argnums, has_aux=has_aux, chunk=chunk)


@public
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

    Raises
    ------
    UnsupportedTypeError, NonScalarOutputError
        See :func:`grad`.

    Notes
    -----
    Costs what :func:`grad` costs. At kinks see :func:`jvp`.

    Examples
    --------
    >>> import numpy as np
    >>> value, gradient = value_and_grad(lambda x: x @ x)(np.array([1.0, 2.0]))
    >>> print(value, gradient)
    5.0 [2. 4.]
    """
    return Transformed(_call_value_and_grad, _scalar(f), argnums, has_aux=has_aux, chunk=chunk)


@public
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

    Raises
    ------
    NonScalarOutputError
        If f's value is not one real number.
    UnsupportedTypeError
        See :func:`jvp`.

    Notes
    -----
    Forward over reverse: N directions at a time are pushed through the gradient, which costs a
    gradient on duals for each chunk. At kinks see :func:`jvp`.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1], np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    gradient = grad(f, argnums)
    return jacobian(gradient, x, chunk=chunk, args=args, kwargs=kwargs, argnums=argnums)


@public
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
    f, x, args, kwargs
        See :func:`jacobian`.
    v : like x, or ``(K, *x.shape)``
        The direction, or K of them.
    chunk : int, "auto" or None, default "auto"
        Directions per run of the gradient; see :func:`jacobian`.

    Returns
    -------
    like x
        ``H(x) v``; for K directions ``(K, *x.shape)``. SciPy's ``hessp`` is
        ``lambda x, p: hvp(f, x, p)``.

    Raises
    ------
    NonScalarOutputError
        If f's value is not one real number.
    SeedError
        If v does not fit x.
    UnsupportedTypeError
        See :func:`jvp`.

    Notes
    -----
    Forward over reverse: costs a gradient on duals for each chunk of directions. The Hessian is not
    made.

    Examples
    --------
    >>> import numpy as np
    >>> hvp(lambda x: x[0] ** 2 * x[1], np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    array([8., 2.])
    """
    check_chunk(chunk)
    single = isinstance(x, np.ndarray) and np.ndim(v) == x.ndim  # the shortest way takes no chunk
    return jvp(grad(f), x, v, args=args, kwargs=kwargs, chunk=None if single else chunk)[1]


# What transformed functions do; ``call`` calls an evaluator, at once or in a trace.


def _call_jacfwd(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    return _call_jacobian(call, f, argnums, args, kwargs, {**options, "mode": "forward"})


def _call_jacrev(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    return _call_jacobian(call, f, argnums, args, kwargs, {**options, "mode": "reverse"})


def _call_jacobian(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    arguments = {"args": args[1:], "kwargs": kwargs, "argnums": argnums, **options}
    return call(jacobian, (f, args[0]), arguments)


def _call_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    has_aux = options["has_aux"]
    arguments = (f, argnums, args, kwargs, {"has_aux": has_aux, "value": has_aux})
    y, gradient = call(value_and_gradient, arguments, {})
    return (gradient, y[1]) if has_aux else gradient


def _call_value_and_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    arguments = (f, argnums, args, kwargs, {"has_aux": options["has_aux"], "value": True})
    return call(value_and_gradient, arguments, {})


def _at_once(f: Any, args: Any, kwargs: Any) -> Any:
    return f(*args, **kwargs)


def _scalar(f: Function) -> Function:
    """The function to take a gradient of: for a reversible function, its loss alone."""
    return getattr(f, "__loss__", f)


class Transformed(Carrier):
    """A transformed function: it has f's signature, and pickles when f does, with its source."""

    def __init__(self, evaluate: Any, f: Function, argnums: Argnums, **options: Any) -> None:
        if not callable(f):
            raise UnsupportedTypeError(f"expected a function; got {type_in_words(f)}")
        self._evaluate = evaluate
        self._options = options
        self.argnums = argument_numbers(argnums)
        check_chunk(options["chunk"])
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at some arguments of f."""
        try:
            return self.evaluate(_at_once, args, kwargs)
        except BaseException as error:
            leave(error)
            raise

    def __repr__(self) -> str:
        return f"<fwdad.{self._evaluate.__name__.removeprefix('_call_')} of {self.__wrapped__!r}>"

    def evaluate(self, call: Any, args: Any, kwargs: Any) -> Any:
        """Call the evaluator by ``call``."""
        if not args:
            raise UnsupportedTypeError(
                "the argument to differentiate with respect to must be positional: write "
                "grad(f)(x), not grad(f)(x=x)"
            )
        return self._evaluate(call, self.__wrapped__, self.argnums, args, kwargs, self._options)

    def _made_by(self) -> Any:
        return (_restore, (self._evaluate, self.__wrapped__, self.argnums, self._options))


def differentiated(f: Any) -> tuple[Any, Argnums]:
    """The function that ``grad(f)``, or ``jit`` of it, differentiates, and its argnums.

    Any other function is returned as it is, with 0.
    """
    argnums: Any = 0
    while isinstance(f, (Transformed, Jitted)):
        argnums = f.argnums if isinstance(f, Transformed) else argnums
        f = f.__wrapped__
    return f, argnums


def _restore(evaluate: Any, f: Function, argnums: Argnums, options: dict[str, Any]) -> Transformed:
    return Transformed(evaluate, f, argnums, **options)


CALLED[Transformed] = lambda tracer, f, args, kwargs: f.evaluate(tracer.call, args, kwargs)
