"""Second derivatives: ``hessian`` and ``hvp``, forward mode over reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Literal, Unpack, overload

import numpy as np

from fwdad.api.transforms import grad, scalar
from fwdad.drivers.jacobian import jacobian
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.parallel.destinations import is_zarr
from fwdad.drivers.sparse_options import Asks, blockwise_options, sparse_options
from fwdad.eager.arguments import explicit_leaves
from fwdad.errors import SeedError
from fwdad.evaluation.arguments import (
    arguments_of,
    check_chunk,
    chunk_on_tape,
    joint_structure,
)
from fwdad.evaluation.by_tape import at_once, by_tape
from fwdad.evaluation.evaluators import jvp
from fwdad.evaluation.out_arrays import check_no_out
from fwdad.evaluation.signatures import (
    Argnums,
    Array,
    ChunkedArguments,
    ChunkSize,
    D,
    Function,
    Hessian,
    HessianProduct,
    P,
    SparseFormat,
)
from fwdad.evaluation.transformed import NOT_GIVEN, without_point, writes_into_out
from fwdad.tangents.seeds import BasisSeeds, GivenSeeds


def _matrix(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """What :func:`hessian` returns."""
    gradient = grad(f, argnums)
    return jacobian(gradient, args[0], args=args[1:], kwargs=kwargs, argnums=argnums, **options)


def _sparse_matrix(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """What :func:`hessian` returns with ``sparse``."""
    x, *more = args
    return hessian(f, x, args=tuple(more), kwargs=kwargs, argnums=argnums, **options)


def _product(f: Function, _argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """What :func:`hvp` returns; the direction is the last of ``args``."""
    x, *more, v = args
    return _along(grad(f), x, v, tuple(more), kwargs, options["chunk"])


@overload
def hessian(
    f: Callable[Concatenate[Any, P], Any], *, chunk: ChunkSize = "auto", argnums: Literal[0] = 0
) -> Hessian[P]: ...
@overload
def hessian(
    f: Function,
    *,
    chunk: ChunkSize = "auto",
    argnums: Argnums = 0,
    sparse: Any = None,
    format: SparseFormat = "csr",
    check: bool = True,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Function: ...
@overload
def hessian(
    f: Function, x: float, *, argnums: int = 0, **options: Unpack[ChunkedArguments]
) -> float: ...
@overload
def hessian(
    f: Function, x: Array, *, argnums: int = 0, **options: Unpack[ChunkedArguments]
) -> Array: ...
@overload
def hessian(
    f: Function,
    x: Any,
    *,
    argnums: Argnums = 0,
    sparse: Any = None,
    format: SparseFormat = "csr",
    check: bool = True,
    out: Any = None,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
    **options: Unpack[ChunkedArguments],
) -> Any: ...
@at_once((_matrix, _sparse_matrix), absent=(NOT_GIVEN,), kind=Asks)
def hessian(
    f: Function,
    x: Any = NOT_GIVEN,
    *,
    chunk: ChunkSize = "auto",
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    argnums: Argnums = 0,
    sparse: Any = None,
    format: SparseFormat = "csr",  # noqa: A002  (SciPy's name)
    check: bool = True,
    out: Any = None,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Any:
    """The matrix of second derivatives of a function with a real scalar value.

    Parameters
    ----------
    f, x, chunk, args, kwargs, argnums
        See :func:`jacobian`.
    out, progress
        See :func:`jacobian`.
    sparse, format, check
        See :func:`jacobian`. A pattern is symmetric, of shape ``(x.size, x.size)``, and coloured
        such that each entry, or its mirror image, is found directly; a ``Colouring`` of
        ``kind="acyclic"`` takes fewer directions.
    executor, checkpoint_to
        See :func:`jacobian`.

    Returns
    -------
    array or composite
        ``x.shape + x.shape``; with ``sparse`` a ``scipy.sparse`` array of shape ``(x.size,
        x.size)``. Without x, a function that returns this: SciPy's ``hess``.

    Raises
    ------
    NonScalarOutputError
        If f's value is not one real number.
    UnsupportedTypeError
        See :func:`jvp`.
    PatternError, ColouringError
        See :func:`jacobian`; also if a pattern is not symmetric.
    ExecutorError, UnpicklableFunctionError, SharedWriteError, CheckpointError
        See :func:`jacobian`.

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
    options = {"chunk": chunk, **sparse_options(sparse, format, "symmetric", check=check)}
    blockwise = blockwise_options(executor, checkpoint_to, sparse)
    if x is NOT_GIVEN:
        check_no_out(out, "hessian")
        options |= {"progress": progress, **blockwise}
        return without_point(_call_hessian, scalar(f), args, kwargs, argnums, **options)
    if blockwise or is_zarr(out):
        blockwise |= {"args": args, "kwargs": kwargs, "argnums": argnums}
        blockwise |= {"out": out, "progress": progress}
        return jacobian(_gradient(f, argnums), x, chunk=chunk, **blockwise)
    if sparse is not None:
        check_no_out(out, "sparse Hessian")
        from fwdad.drivers.sparse.jacobian import Asked, sparse_jacobian  # noqa: PLC0415  (SciPy)

        of = _gradient(f, argnums)
        plain = grad(f.__wrapped__, argnums) if type(f) is Jitted else of
        asked = Asked(_sparse_matrix, f, options, progress, alone=True, of=of, plain=plain)
        return sparse_jacobian(asked, x, argnums, args, kwargs)

    def by_columns() -> Any:
        gradient = _gradient(f, argnums)
        given: dict[str, Any] = {"args": args, "kwargs": kwargs, "argnums": argnums}
        return jacobian(gradient, x, chunk=chunk, out=out, progress=progress, **given)

    tapes = by_tape(f)
    if tapes is None or out is not None or progress:
        return by_columns()
    arguments, _ = arguments_of(f, x, args, kwargs, argnums)
    fewer = chunk_on_tape(chunk, BasisSeeds(arguments.leaves).count, arguments.leaves)
    given = f, argnums, arguments.args, arguments.kwargs, {"chunk": fewer}
    return tapes.or_else(_matrix, *given, by_columns)


@overload
def hvp(
    f: Callable[Concatenate[Any, P], Any], *, chunk: ChunkSize = "auto"
) -> HessianProduct[P]: ...
@overload
def hvp(f: Function, x: float, v: float, **options: Unpack[ChunkedArguments]) -> float: ...
@overload
def hvp(
    f: Function, x: np.ndarray[Any, D], v: Array, **options: Unpack[ChunkedArguments]
) -> np.ndarray[Any, D]: ...
@overload
def hvp(f: Function, x: Any, v: Any, **options: Unpack[ChunkedArguments]) -> Any: ...
@at_once(_product, last="v", absent=(NOT_GIVEN, None))
def hvp(
    f: Function,
    x: Any = NOT_GIVEN,
    v: Any = NOT_GIVEN,
    *,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    chunk: ChunkSize = "auto",
) -> Any:
    """The product of the Hessian of a real scalar function with a direction.

    Parameters
    ----------
    f, x, args, kwargs
        See :func:`jacobian`.
    v : like x, or ``(K, *x.shape)``, optional
        The direction, or K of them.
    chunk : int, "auto" or None, default "auto"
        Directions per run of the gradient; see :func:`jacobian`.

    Returns
    -------
    like x
        ``H(x) v``; for K directions ``(K, *x.shape)``. Without x and v, a function of ``(x, v)``
        and f's further arguments that returns this: SciPy's ``hessp``.

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
    if x is NOT_GIVEN:
        return without_point(_call_hvp, scalar(f), args, kwargs, chunk=chunk)
    if v is NOT_GIVEN:
        raise SeedError("hvp(f, x) needs a direction: write hvp(f, x, v), or hvp(f)(x, v)")
    check_chunk(chunk)

    def pushed() -> Any:
        return _along(_gradient(f, 0), x, v, args, kwargs, chunk)

    tapes = by_tape(f)
    if tapes is None or v is None:
        return pushed()
    arguments, single = arguments_of(f, x, args, kwargs, 0, seeded=True)
    structure = joint_structure(arguments, single)
    seeds = GivenSeeds(arguments.leaves, structure, explicit_leaves(v))
    fewer = chunk_on_tape(chunk, seeds.count, arguments.leaves)
    given = (*arguments.args, v), arguments.kwargs, {"chunk": fewer}
    return tapes.or_else(_product, f, 0, *given, pushed)


def _along(gradient: Function, x: Any, v: Any, args: Any, kwargs: Any, chunk: ChunkSize) -> Any:
    """The tangents of a gradient along one direction, or several."""
    single = isinstance(x, np.ndarray) and np.ndim(v) == x.ndim  # the shortest way takes no chunk
    if isinstance(x, (tuple, list)):  # one argument of f, whatever jvp would take it for
        return jvp(gradient, x, (v,), args=args, kwargs=kwargs, chunk=chunk, argnums=(0,))[1]
    return jvp(gradient, x, v, args=args, kwargs=kwargs, chunk=None if single else chunk)[1]


def _gradient(f: Function, argnums: Argnums) -> Function:
    """``grad(f)``; a function under ``jit`` keeps it with its other derivatives."""
    if type(f) is not Jitted:
        return grad(f, argnums)
    key = (grad, argnums if isinstance(argnums, int) else tuple(argnums))
    gradient: Function = f.derivatives.get(key) or f.derivatives.setdefault(key, grad(f, argnums))
    return gradient


@writes_into_out("the Hessian")
def _call_hessian(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    arguments = {"args": args[1:], "kwargs": kwargs, "argnums": argnums, **options}
    return call(hessian, (f, args[0]), arguments)


def _call_hvp(
    call: Any, f: Function, _argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    if len(args) < 2:
        raise SeedError("the function hvp(f) takes a point and a direction: write hvp(f)(x, v)")
    return call(hvp, (f, *args[:2]), {"args": args[2:], "kwargs": kwargs, **options})
