"""``jacobian``: by rows or by columns, whichever is asked for or pays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Concatenate, Literal, Unpack, overload

from fwdad.core.fallbacks import Untraced
from fwdad.core.progress import Progress
from fwdad.drivers.jacobian_blocks import value_and_compiled_columns
from fwdad.drivers.jacobian_rows import rows_pay, value_and_rows
from fwdad.drivers.parallel.destinations import is_zarr
from fwdad.drivers.per_argument import per_argument
from fwdad.drivers.sparse_options import Asks, blockwise_options, refuse_blockwise, sparse_options
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.drivers.tape_cache import jitted_of, traced
from fwdad.evaluation.arguments import (
    argument_numbers,
    arguments_of,
    check_holomorphic,
    check_mode,
    chunk_on_tape,
)
from fwdad.evaluation.by_tape import at_once
from fwdad.evaluation.evaluators import value_and_columns
from fwdad.evaluation.out_arrays import JacobianOut, check_no_out
from fwdad.evaluation.signatures import (
    AllJacobianOptions,
    Argnums,
    Array,
    ChunkSize,
    Derivative,
    Function,
    JacobianOfArray,
    JacobianOfNumber,
    JacobianOptions,
    Mode,
    Outputs,
    P,
    R,
    RArray,
    RFloat,
    SparseFormat,
    ValueAndJacobian,
)
from fwdad.evaluation.transformed import NOT_GIVEN, without_point, writes_into_out
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.evaluators import traced_jacobian, traced_value_and_jacobian
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.tangents.seeds import leaf_shape


def _as_asked(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """What :func:`value_and_jacobian` returns."""
    x, *more = args
    return value_and_jacobian(f, x, args=tuple(more), kwargs=kwargs, argnums=argnums, **options)


def _alone(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """What :func:`jacobian` returns."""
    x, *more = args
    return jacobian(f, x, args=tuple(more), kwargs=kwargs, argnums=argnums, **options)


def _without_value(found: Any, options: Any) -> Any:
    return found[1:] if options["has_aux"] else found[1]


@overload
def value_and_jacobian(
    f: Callable[Concatenate[Any, P], R],
    *,
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
    mode: Mode = "auto",
    holomorphic: bool = False,
    stack: bool = False,
    progress: bool = False,
) -> ValueAndJacobian[P, R]: ...
@overload
def value_and_jacobian(
    f: Function,
    *,
    argnums: Argnums = 0,
    has_aux: bool = False,
    outputs: Outputs = "returned",
    chunk: ChunkSize = "auto",
    mode: Mode = "auto",
    holomorphic: bool = False,
    stack: bool = False,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Function: ...
@overload
def value_and_jacobian(
    f: Callable[..., RArray], x: float | Array, **options: Unpack[JacobianOptions]
) -> tuple[RArray, Array]: ...
@overload
def value_and_jacobian(
    f: Callable[..., RFloat], x: float, **options: Unpack[JacobianOptions]
) -> tuple[RFloat, float]: ...
@overload
def value_and_jacobian(
    f: Callable[..., RFloat], x: Array, **options: Unpack[JacobianOptions]
) -> tuple[RFloat, Array]: ...
@overload
def value_and_jacobian(f: Function, x: Any, **options: Unpack[AllJacobianOptions]) -> Any: ...
@at_once((_as_asked, _as_asked), absent=(NOT_GIVEN,), kind=Asks)
def value_and_jacobian(
    f: Function,
    x: Any = NOT_GIVEN,
    *,
    chunk: ChunkSize = "auto",
    mode: Mode = "auto",
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: Outputs = "returned",
    holomorphic: bool = False,
    stack: bool = False,
    sparse: Any = None,
    format: SparseFormat = "csr",  # noqa: A002  (SciPy's name)
    check: bool = True,
    out: Any = None,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Any:
    """The value of a function and its Jacobian, from the same runs.

    Parameters
    ----------
    f, x, chunk, mode, argnums, args, kwargs, has_aux, outputs, holomorphic, stack
        See :func:`jacobian`.
    sparse, format, check, out, progress, executor, checkpoint_to
        See :func:`jacobian`.

    Returns
    -------
    y : object
        ``f(x)``.
    J : array or composite
        See :func:`jacobian`. With ``has_aux``, aux is a third result. Without x, a function that
        returns both.

    Raises
    ------
    MissingRuleError, UnsupportedTypeError
        See :func:`jacobian`.
    """
    check_mode(mode)
    options = {
        "chunk": chunk, "mode": mode, "has_aux": has_aux, "outputs": outputs,
        "holomorphic": holomorphic, "stack": stack,
    }  # fmt: skip
    options |= sparse_options(sparse, format, mode, check=check)
    blockwise = blockwise_options(executor, checkpoint_to, sparse)
    if x is NOT_GIVEN:
        check_no_out(out, "value_and_jacobian")
        options |= {"progress": progress, **blockwise}
        return without_point(_call_value_and_jacobian, f, args, kwargs, argnums, **options)
    if blockwise or is_zarr(out):
        blockwise |= {"out": out, "progress": progress}
        return _by_blocks(f, x, argnums, args, kwargs, options, blockwise)
    if sparse is not None:
        check_no_out(out, "sparse Jacobian")
        return _by_colours(_as_asked, f, x, argnums, args, kwargs, options, progress)
    return _rows_or_columns(_as_asked, f, x, argnums, args, kwargs, options, out, progress)


def _rows_or_columns(
    evaluate: Any,
    f: Function,
    x: Any,
    argnums: Argnums,
    args: Any,
    kwargs: Any,
    options: Any,
    out: Any = None,
    progress: bool = False,
) -> Any:
    """What ``evaluate`` returns, where no shortcut does."""
    mode, holomorphic, chunk = options["mode"], options["holomorphic"], options["chunk"]
    results = {key: options[key] for key in ("has_aux", "outputs")}
    common = {**results, "chunk": chunk, "stack": options["stack"]}
    arguments, single = arguments_of(f, x, args, kwargs, argnums)
    check_holomorphic(f, arguments, holomorphic, **results)
    argnums = argument_numbers(argnums)
    sink = JacobianOut.of(out, arguments, single=single, stack=options["stack"])
    bar = Progress(shown=progress, of="jacobian")
    beside: dict[str, Any] = {"sink": sink, "progress": bar}

    def pay_rows() -> Untraced | None:
        if holomorphic or mode == "forward":
            of = "a holomorphic function is differentiated by columns"
            return Untraced(f, reason=of if holomorphic else 'mode="forward" was asked for')
        return rows_pay(f, arguments, argnums, results) if mode == "auto" else None

    def by_tape() -> Any:
        count = sum(math.prod(leaf_shape(leaf)) for leaf in arguments.leaves)
        fewer: Any = chunk_on_tape(chunk, count, arguments.leaves)
        asked = options if fewer == chunk or pay_rows() is None else {**options, "chunk": fewer}
        return traced(evaluate, f, argnums, arguments.args, arguments.kwargs, asked)

    def by_rows() -> Any:
        not_worth = pay_rows()
        if not_worth is not None:
            return not_worth
        given = {"argnums": argnums, "args": args, "kwargs": kwargs, **beside}
        found = value_and_rows(f, x, **given, **common)
        return found if isinstance(found, Untraced) else asked_for(found)

    def asked_for(found: Any) -> Any:
        return found if evaluate is _as_asked else _without_value(found, options)

    def by_columns() -> Any:
        found = value_and_compiled_columns(f, arguments, argnums, options, **beside)
        if found is None:
            found = value_and_columns(f, arguments, single=single, **beside, **common)
        return asked_for(found)

    candidates = [Candidate("rows", by_rows), Candidate("columns", by_columns)]
    if jitted_of(f) is not None and sink is None and not progress:
        candidates.insert(0, Candidate("tape", by_tape))
    with bar:
        return first_that_can("jacobian", f, *candidates)


def _by_blocks(
    f: Function,
    x: Any,
    argnums: Argnums,
    args: Any,
    kwargs: Any,
    options: Any,
    blockwise: dict[str, Any],
) -> Any:
    """What :func:`value_and_jacobian` returns, by workers, or with a checkpoint."""
    from fwdad.drivers.parallel.jacobians import value_and_blocks  # noqa: PLC0415  (few need it)

    return value_and_blocks(f, x, argnums, args, kwargs, options, **blockwise)


def _by_colours(
    evaluate: Any,
    f: Function,
    x: Any,
    argnums: Argnums,
    args: Any,
    kwargs: Any,
    options: Any,
    progress: bool = False,
) -> Any:
    """What ``evaluate`` returns, where no shortcut does."""
    from fwdad.drivers.sparse.jacobian import Asked, sparse_jacobian  # noqa: PLC0415  (SciPy)

    alone = evaluate is _alone
    asked = Asked(evaluate, f, options, progress, alone=alone)
    return sparse_jacobian(asked, x, argnums, args, kwargs)


@overload
def jacobian(
    f: Callable[Concatenate[Any, P], Array],
    *,
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
    mode: Mode = "auto",
    holomorphic: bool = False,
    stack: bool = False,
    progress: bool = False,
) -> JacobianOfArray[P]: ...
@overload
def jacobian(
    f: Callable[Concatenate[Any, P], float],
    *,
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    chunk: ChunkSize = "auto",
    mode: Mode = "auto",
    holomorphic: bool = False,
    stack: bool = False,
    progress: bool = False,
) -> JacobianOfNumber[P]: ...
@overload
def jacobian(
    f: Callable[Concatenate[Any, P], Any],
    *,
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    outputs: Outputs = "returned",
    chunk: ChunkSize = "auto",
    mode: Mode = "auto",
    holomorphic: bool = False,
    stack: bool = False,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Derivative[P]: ...
@overload
def jacobian(
    f: Function,
    *,
    argnums: Argnums,
    has_aux: bool = False,
    outputs: Outputs = "returned",
    chunk: ChunkSize = "auto",
    mode: Mode = "auto",
    holomorphic: bool = False,
    stack: bool = False,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Function: ...
@overload
def jacobian(
    f: Callable[..., Array], x: float | Array, **options: Unpack[JacobianOptions]
) -> Array: ...
@overload
def jacobian(f: Callable[..., float], x: float, **options: Unpack[JacobianOptions]) -> float: ...
@overload
def jacobian(f: Callable[..., float], x: Array, **options: Unpack[JacobianOptions]) -> Array: ...
@overload
def jacobian(f: Function, x: Any, **options: Unpack[AllJacobianOptions]) -> Any: ...
@at_once((_alone, _alone), absent=(NOT_GIVEN,), kind=Asks)
def jacobian(
    f: Function,
    x: Any = NOT_GIVEN,
    *,
    chunk: ChunkSize = "auto",
    mode: Mode = "auto",
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: Outputs = "returned",
    holomorphic: bool = False,
    stack: bool = False,
    sparse: Any = None,
    format: SparseFormat = "csr",  # noqa: A002  (SciPy's name)
    check: bool = True,
    out: Any = None,
    progress: bool = False,
    executor: Any = None,
    checkpoint_to: Any = None,
) -> Any:
    """The Jacobian of a function at a point: exact, N columns at a time.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``; any NumPy program.
    x : float, complex, array or composite, optional
        Where. Without it, the Jacobian as a function of f's arguments is returned.
    chunk : int, "auto" or None, default "auto"
        Columns per run of f: a number, all at once (None), or as many as keep the lanes of one
        array of x's size near the cache, and at least eight. Inside a function under ``jit`` a
        number is the width of a loop that serves all lengths of x; else all travel together.
    mode : {"auto", "forward", "reverse"}
        By columns, or by rows. ``"auto"`` takes rows where x has more than 64 numbers and at least
        four times as many as y, and f can be traced. ``chunk`` is then the number of rows. With
        ``holomorphic`` it is by columns, whatever the mode.
    argnums, args, kwargs, has_aux, outputs, holomorphic
        See :func:`jvp`.
    stack : bool, default False
        Make one matrix ``(total size of y, total size of x)`` out of composites or several
        argnums, as SciPy wants.
    sparse : True, sparse array, array of bools or Colouring, optional
        Return a sparse array with this pattern of shape ``(y.size, x.size)``: its stored entries,
        explicit zeros too, or what is True. One run of f then has as many directions as the pattern
        has colours; ``mode="auto"`` takes columns, rows or both, whichever are fewest. ``True``
        finds the pattern.
    format : {"csr", "csc", "coo", "bsr", "dia", "dense"}
        That of the sparse array; ``"dense"`` is a NumPy array, by as few directions.
    check : bool, default True
        Compare a product of the sparse Jacobian with a random vector to that of f at the first
        call, and raise if the pattern misses an entry.
    out : array, optional
        Where a dense J is written, chunk after chunk, and which is returned: a new array, or a
        ``numpy.memmap``, of J's shape and dtype, C-contiguous (in Fortran order where J is the
        matrix of a vector by a vector), which shares no memory with an argument. With it, the
        memory is that of one chunk. J is one array: give ``stack=True`` for a composite.
    progress : bool, default False
        Show a bar of tqdm (``pip install 'fwdad[progress]'``), chunk after chunk, if J takes more
        than a second. A sparse J by a tape, as under :func:`jit`, is one call, and shows none.
    executor : executor of concurrent.futures or loky, or distributed.Client, optional
        Who computes the blocks, of ``chunk`` columns or rows each: threads, processes, or a
        cluster. f travels with its source.
    checkpoint_to : path, optional
        A folder for finished blocks. The same call goes on where an earlier one was stopped,
        whatever stopped it.

    Returns
    -------
    array or composite
        ``y.shape + x.shape`` for arrays; for composites y's structure, and x's inside it; with
        ``sparse`` a ``scipy.sparse`` array of shape ``(y.size, x.size)``. With ``has_aux`` a tuple
        of this and aux. Without x, a function that returns this.

    Raises
    ------
    MissingRuleError, UnsupportedTypeError
        See :func:`jvp`.
    PatternError
        If a pattern has another shape, or misses an entry that f has.
    ColouringError
        If a colouring is none, or one that the mode cannot use.
    OutError
        If ``out`` is of another shape, dtype or layout, read-only, or shares memory with an
        argument: nothing is written then.
    ExecutorError, UnpicklableFunctionError
        If an executor is shut down, or loses its workers; if f cannot be sent to other processes.
    SharedWriteError
        If threads would run an f that writes into what they share, or draws random numbers.
    CheckpointError
        If a checkpoint is of another function, argument or option, in use, or cannot be written.

    Notes
    -----
    Costs a run of f on duals for each chunk of columns; by rows one run of f, and a reverse pass
    for each chunk of rows. At kinks see :func:`jvp`.

    With an executor the result has the same bits at every number of workers, in whatever order they
    finish. By rows f runs once in each worker. What f writes outside of it, or prints, it does in
    each block, and in other processes to their copies.

    The three layouts, for x of shape ``(3,)`` and y of shape ``(2,)``:

    ===================  ===============================  =============
    directions           ``v``, stacked in front          ``(K, 3)``
    ``jvp``'s ``y_dot``  the same axis in front           ``(K, 2)``
    ``jacobian``         directions trail, as x's shape   ``(2, 3)``
    ===================  ===============================  =============

    With every basis direction ``J = numpy.moveaxis(y_dot, 0, -1)``.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: np.array([x[0] * x[1], x[1] ** 2]), np.array([3.0, 4.0]))
    array([[4., 3.],
           [0., 8.]])
    """
    check_mode(mode)
    options = {
        "chunk": chunk, "mode": mode, "has_aux": has_aux, "outputs": outputs,
        "holomorphic": holomorphic, "stack": stack,
    }  # fmt: skip
    options |= sparse_options(sparse, format, mode, check=check)
    blockwise = blockwise_options(executor, checkpoint_to, sparse)
    if x is NOT_GIVEN:
        check_no_out(out, "jacobian")
        options |= {"progress": progress, **blockwise}
        return without_point(call_jacobian, f, args, kwargs, argnums, **options)
    if blockwise or is_zarr(out):
        blockwise |= {"out": out, "progress": progress}
        found = _by_blocks(f, x, argnums, args, kwargs, options, blockwise)
        return _without_value(found, options)
    if sparse is not None:
        check_no_out(out, "sparse Jacobian")
        return _by_colours(_alone, f, x, argnums, args, kwargs, options, progress)
    return _rows_or_columns(_alone, f, x, argnums, args, kwargs, options, out, progress)


@writes_into_out("the Jacobian")
def call_jacobian(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    """What a Jacobian function does: ``call`` calls an evaluator, at once or in a trace."""
    J = call(jacobian, (f, args[0]), _arguments(argnums, args, kwargs, options))
    if not isinstance(argnums, int) and not options["has_aux"]:
        return per_argument(J, [args[k] for k in argnums])
    return J


@writes_into_out("the Jacobian")
def _call_value_and_jacobian(
    call: Any, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    return call(value_and_jacobian, (f, args[0]), _arguments(argnums, args, kwargs, options))


def _arguments(argnums: Argnums, args: Any, kwargs: Any, options: Any) -> dict[str, Any]:
    return {"args": args[1:], "kwargs": kwargs, "argnums": argnums, **options}


@builtin(value_and_jacobian)
def _traced_value_and_jacobian(tracer: Any, f: Any, x: Any = NOT_GIVEN, **options: Any) -> Any:
    if x is NOT_GIVEN:
        return tracer.inline.call_by_source(value_and_jacobian, (f,), options)
    refuse_blockwise(tracer, options)
    if options.get("sparse") is not None:
        return _traced_sparse(tracer, f, x, **options)
    return traced_value_and_jacobian(tracer, f, x, **options)


@builtin(jacobian)
def _traced_jacobian(tracer: Any, f: Any, x: Any = NOT_GIVEN, **options: Any) -> Any:
    if x is NOT_GIVEN:
        return tracer.inline.call_by_source(jacobian, (f,), options)
    refuse_blockwise(tracer, options)
    if options.get("sparse") is not None:
        return _without_value(_traced_sparse(tracer, f, x, **options), {"has_aux": False} | options)
    return traced_jacobian(tracer, f, x, **options)


def _traced_sparse(tracer: Tracer, f: Any, x: Any, **options: Any) -> Any:
    """What :func:`value_and_jacobian` returns with ``sparse``, in a trace."""
    from fwdad.drivers.sparse.jacobian import traced_sparse_jacobian  # noqa: PLC0415

    return traced_sparse_jacobian(tracer, f, x, **options)
