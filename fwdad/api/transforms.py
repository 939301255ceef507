"""Transformers, which take a function and return one with its signature: ``grad``, ``jacfwd``…."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Literal, overload

from fwdad.core.tracebacks import public
from fwdad.drivers.gradient import value_and_gradient
from fwdad.drivers.jacobian import call_jacobian
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.sparse_options import blockwise_options, sparse_options
from fwdad.errors import UnsupportedTypeError
from fwdad.evaluation.out_arrays import check_target, written_into
from fwdad.evaluation.signatures import (
    A,
    Argnums,
    Array,
    ChunkSize,
    Derivative,
    Function,
    Gradient,
    GradientAndAux,
    GradientOfBoth,
    GradientOfSecond,
    JacobianOfArray,
    JacobianOfNumber,
    Outputs,
    P,
    R,
    SparseFormat,
    ValueAndGradient,
    ValueAndGradientOfBoth,
    ValueAndGradientOfSecond,
)
from fwdad.evaluation.transformed import Transformed, writes_into_out


@overload
def jacfwd(
    f: Callable[Concatenate[Any, P], Array],
    argnums: Literal[0] = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    stack: bool = False,
) -> JacobianOfArray[P]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[Any, P], float],
    argnums: Literal[0] = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    stack: bool = False,
) -> JacobianOfNumber[P]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[Any, P], Any],
    argnums: Literal[0] = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: bool = False,
    outputs: Outputs = "returned",
    holomorphic: bool = False,
    stack: bool = False,
) -> Derivative[P]: ...
@overload
def jacfwd(
    f: Function,
    argnums: Argnums = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: bool = False,
    outputs: Outputs = "returned",
    holomorphic: bool = False,
    stack: bool = False,
    sparse: Any = None,
    format: SparseFormat = "csr",
    check: bool = True,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Function: ...
@public
def jacfwd(
    f: Function,
    argnums: Argnums = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: bool = False,
    outputs: Outputs = "returned",
    holomorphic: bool = False,
    stack: bool = False,
    sparse: Any = None,
    format: SparseFormat = "csr",  # noqa: A002  (SciPy's name)
    check: bool = True,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Any:
    """Turn a function into one that returns its Jacobian, by forward mode.

    Parameters
    ----------
    f : callable
        Any NumPy program.
    argnums : int or tuple of int, default 0
        The arguments to differentiate with respect to, all of them positional.
    chunk, has_aux, outputs, holomorphic, stack, sparse, format, check
        See :func:`jacobian`.
    progress, executor, checkpoint_to
        See :func:`jacobian`. A pattern is coloured once, when this is called.

    Returns
    -------
    callable
        With f's signature, and ``out``, an array into which the Jacobian is written: see
        :func:`jacobian`. An ``out`` or ``**kwargs`` of f's own goes to f. ``jacfwd(rhs,
        argnums=1)`` is ``solve_ivp``'s ``jac``.

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
        progress=progress,
        **sparse_options(sparse, format, "forward", check=check),
        **blockwise_options(executor, checkpoint_to, sparse),
    )


@overload
def jacrev(
    f: Callable[Concatenate[Any, P], Array],
    argnums: Literal[0] = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: Literal[False] = False,
    stack: bool = False,
) -> JacobianOfArray[P]: ...
@overload
def jacrev(
    f: Callable[Concatenate[Any, P], float],
    argnums: Literal[0] = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: Literal[False] = False,
    stack: bool = False,
) -> JacobianOfNumber[P]: ...
@overload
def jacrev(
    f: Callable[Concatenate[Any, P], Any],
    argnums: Literal[0] = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: bool = False,
    outputs: Outputs = "returned",
    stack: bool = False,
) -> Derivative[P]: ...
@overload
def jacrev(
    f: Function,
    argnums: Argnums = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: bool = False,
    outputs: Outputs = "returned",
    stack: bool = False,
    sparse: Any = None,
    format: SparseFormat = "csr",
    check: bool = True,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Function: ...
@public
def jacrev(
    f: Function,
    argnums: Argnums = 0,
    *,
    chunk: ChunkSize = "auto",
    has_aux: bool = False,
    outputs: Outputs = "returned",
    stack: bool = False,
    sparse: Any = None,
    format: SparseFormat = "csr",  # noqa: A002  (SciPy's name)
    check: bool = True,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Any:
    """Turn a function into one that returns its Jacobian, by reverse mode: row by row.

    Parameters
    ----------
    f : callable
        Any NumPy program.
    argnums : int or tuple of int, default 0
        The arguments to differentiate with respect to, all of them positional.
    chunk, has_aux, outputs, stack, sparse, format, check, progress, executor, checkpoint_to
        See :func:`jacobian`; ``chunk`` is the number of rows that travel together. A pattern is
        coloured once, when this is called.

    Returns
    -------
    callable
        With f's signature, and ``out``, an array into which the Jacobian is written: see
        :func:`jacobian`. An ``out`` or ``**kwargs`` of f's own goes to f.

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
        _call_jacrev,
        f,
        argnums,
        chunk=chunk,
        has_aux=has_aux,
        outputs=outputs,
        stack=stack,
        progress=progress,
        **sparse_options(sparse, format, "reverse", check=check),
        **blockwise_options(executor, checkpoint_to, sparse),
    )


@overload
def grad(f: Gradient[P], *, chunk: ChunkSize = "auto") -> Gradient[P]: ...
@overload
def grad(
    f: Callable[Concatenate[Any, P], Any],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
) -> Gradient[P]: ...
@overload
def grad(
    f: Callable[Concatenate[Any, Any, P], Any],
    argnums: Literal[1],
    *,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
) -> GradientOfSecond[P]: ...
@overload
def grad(
    f: Callable[Concatenate[Any, Any, P], Any],
    argnums: tuple[Literal[0], Literal[1]],
    *,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
) -> GradientOfBoth[P]: ...
@overload
def grad(
    f: Callable[Concatenate[Any, P], tuple[Any, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    chunk: ChunkSize = "auto",
) -> GradientAndAux[P, A]: ...
@overload
def grad(
    f: Function, argnums: Argnums, *, has_aux: bool = False, chunk: ChunkSize = "auto"
) -> Function: ...
@public
def grad(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk: ChunkSize = "auto"
) -> Any:
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
        has the gradient ``df/d(Re x) + i df/d(Im x)``, along which f rises fastest. With ``out``,
        arrays in that structure, the gradient is written there, and ``out`` is returned; an ``out``
        or ``**kwargs`` of f's own goes to f.

    Raises
    ------
    UnsupportedTypeError
        If f is no function; when it is called, as :func:`jvp`.
    NonScalarOutputError
        When it is called, if f's value is not one real number.
    OutError
        When it is called, if ``out`` is of another shape, dtype or layout, read-only, or shares
        memory with an argument: nothing is written then.

    Notes
    -----
    By reverse mode: f is traced once for each kind of arguments, and its tape is run and run
    backwards; the cost does not grow with the size of x beyond f's own. What cannot be traced is
    recorded as it runs, with loops unrolled: the memory then grows with the number of operations.
    :func:`explain` says which it is. At kinks see :func:`jvp`.

    With ``out``, ``jit(grad(f))`` is compiled to write there; ``jit(grad(f)).bind(x, out=g)`` is
    the shortest call.

    The gradient function pickles where f does, also by cloudpickle (joblib, Dask): it carries the
    source of f, and of the functions that f reaches, where they are not imported on arrival, as
    those of ``__main__`` and of notebooks. Rules are not carried.

    Examples
    --------
    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    return Transformed(_call_grad, scalar(f), argnums, has_aux=has_aux, chunk=chunk)


@overload
def value_and_grad(
    f: Callable[Concatenate[Any, P], R],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
) -> ValueAndGradient[P, R]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[Any, Any, P], R],
    argnums: Literal[1],
    *,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
) -> ValueAndGradientOfSecond[P, R]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[Any, Any, P], R],
    argnums: tuple[Literal[0], Literal[1]],
    *,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
) -> ValueAndGradientOfBoth[P, R]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[Any, P], R],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    chunk: ChunkSize = "auto",
) -> ValueAndGradient[P, R]: ...
@overload
def value_and_grad(
    f: Function,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk: ChunkSize = "auto",
    over: Any = None,
    executor: Any = None,
) -> Function: ...
@public
def value_and_grad(
    f: Function,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk: ChunkSize = "auto",
    over: Any = None,
    executor: Any = None,
) -> Any:
    """Turn a function with a real scalar value into one that returns value and gradient.

    Parameters
    ----------
    f, argnums, has_aux, chunk
        See :func:`grad`.
    over : list, Dask bag or array, Zarr array or tuple of Zarr arrays, optional
        The parts of a data set: f is the loss ``f(x, part, *args)``, and what is returned is called
        without the part, ``(x, *args)``, and sums over all of them. Of Dask's collections the parts
        are partitions, of Zarr arrays chunks of rows, read by the workers.
    executor : executor of concurrent.futures or loky, or distributed.Client, optional
        Who works on the parts; see :func:`jacobian`.

    Returns
    -------
    callable
        Returns ``(f(x), gradient)``, as ``scipy.optimize.minimize(jac=True)`` wants; with
        ``has_aux`` ``((f(x), aux), gradient)``, where aux is a list if it is a sum ``over`` parts.
        It takes ``out`` as that of :func:`grad` does, if it is no sum.

    Raises
    ------
    UnsupportedTypeError, NonScalarOutputError
        See :func:`grad`; also if ``over`` is no data set that is known, or empty.
    ExecutorError, UnpicklableFunctionError, SharedWriteError
        See :func:`jacobian`; also if the loss draws random numbers.

    Notes
    -----
    Costs what :func:`grad` costs, for each part. At kinks see :func:`jvp`.

    The sum is a tree, part 0 with part 1, 2 with 3 and so on: it has the same bits without an
    executor and at every number of workers. Data in memory is sent once, and not with each call,
    to Dask's workers; processes of this machine read it from one file.

    Examples
    --------
    >>> import numpy as np
    >>> value, gradient = value_and_grad(lambda x: x @ x)(np.array([1.0, 2.0]))
    >>> print(value, gradient)
    5.0 [2. 4.]
    """
    if over is not None:
        from fwdad.drivers.parallel.sums import SummedGradient  # noqa: PLC0415  (few need it)

        return SummedGradient(scalar(f), argnums, over, executor, has_aux=has_aux)
    if executor is not None:
        raise UnsupportedTypeError(
            "value_and_grad has an executor and nothing to share out: a gradient is one run of f "
            "and one reverse pass. Sums over data are, with over=parts"
        )
    return Transformed(_call_value_and_grad, scalar(f), argnums, has_aux=has_aux, chunk=chunk)


# What transformed functions do; ``call`` calls an evaluator, at once or in a trace.


@writes_into_out("the Jacobian")
def _call_jacfwd(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    return call_jacobian(call, f, argnums, args, kwargs, {**options, "mode": "forward"})


@writes_into_out("the Jacobian")
def _call_jacrev(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    return call_jacobian(call, f, argnums, args, kwargs, {**options, "mode": "reverse"})


@writes_into_out("the gradient", whole=True)
def _call_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    has_aux = options["has_aux"]
    arguments = (f, argnums, args, kwargs, {"has_aux": has_aux, "value": has_aux})
    y, gradient = _into(options.get("out"), call, arguments)
    return (gradient, y[1]) if has_aux else gradient


@writes_into_out("the gradient", whole=True)
def _call_value_and_grad(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    arguments = (f, argnums, args, kwargs, {"has_aux": options["has_aux"], "value": True})
    return _into(options.get("out"), call, arguments)


def _into(out: Any, call: Any, arguments: tuple[Any, ...]) -> Any:
    """Value and gradient, which is ``out`` where that is given."""
    if out is None:
        return call(value_and_gradient, arguments, {})
    _, argnums, args, kwargs, _ = arguments
    x = args[argnums] if isinstance(argnums, int) else tuple(args[k] for k in argnums)
    call(check_target, (out, x, (args, kwargs), "the gradient"), {})
    y, gradient = call(value_and_gradient, arguments, {})
    return y, call(written_into, (out, gradient, "the gradient"), {})


def scalar(f: Function) -> Function:
    """The function to take a gradient of: for a reversible function, its loss alone."""
    return getattr(f, "__loss__", f)


def differentiated(f: Any) -> tuple[Any, Argnums]:
    """The function that ``grad(f)``, or ``jit`` of it, differentiates, and its argnums.

    Any other function is returned as it is, with 0.
    """
    argnums: Any = 0
    while isinstance(f, (Transformed, Jitted)):
        argnums = f.argnums if isinstance(f, Transformed) else argnums
        f = f.__wrapped__
    return f, argnums
