"""Jacobians block after block: ``jacobian_blocks``, and compiled columns in chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from fwdad.core.progress import Progress
from fwdad.core.tracebacks import public
from fwdad.drivers.gradient import in_trees
from fwdad.drivers.jacobian_rows import unit_vectors
from fwdad.drivers.pullback import vjp
from fwdad.drivers.tape_cache import jitted_of
from fwdad.eager.arguments import Arguments
from fwdad.eager.forward import forward_chunks
from fwdad.eager.outcomes import Collector, Outcome
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.arguments import (
    AutoWidth,
    argument_numbers,
    arguments_of,
    check_chunk,
    check_holomorphic,
    width_of,
)
from fwdad.evaluation.evaluators import assembled, jvp
from fwdad.evaluation.out_arrays import JacobianOut
from fwdad.evaluation.signatures import Argnums, Array, ChunkSize, Function
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import flatten
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import BasisSeeds, leaf_dtype, leaf_shape


@public
def jacobian_blocks(
    f: Function,
    x: Any,
    *,
    chunk: ChunkSize = "auto",
    mode: Literal["forward", "reverse"] = "forward",
    argnums: int = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    holomorphic: bool = False,
    progress: bool = False,
) -> Iterator[tuple[slice, Array]]:
    """The Jacobian of a function at a point, some columns or rows at a time.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``, of one array or number, returns one.
    x : float, complex or array
        Where. It must not change before the last block is there.
    chunk : int, "auto" or None, default "auto"
        Columns (or rows) of a block; the last may have fewer. See :func:`jacobian`.
    mode : {"forward", "reverse"}
        Blocks of columns, each by one run of f on duals, or blocks of rows: f runs once, at the
        first block, and what its reverse pass reads is kept until the last.
    argnums : int, default 0
        The argument to differentiate with respect to, counted in ``(x, *args)``.
    args, kwargs, holomorphic
        See :func:`jvp`.
    progress : bool, default False
        See :func:`jacobian`; the bar is at the blocks that have been taken.

    Returns
    -------
    iterator of (slice, array)
        Which columns or rows of the matrix J of shape ``(y.size, x.size)``, and a new array:
        ``J[:, slice]``, or ``J[slice]`` in reverse mode.

    Raises
    ------
    UnsupportedTypeError
        If x, or f's value, is not one array or number; in reverse mode, if either is complex.
    NondeterministicFunctionError
        If f returns another value for a later block.
    NotHolomorphicError, MissingRuleError
        See :func:`jvp`.

    Notes
    -----
    Memory is that of one block, whatever the size of J. Of a function under :func:`jit` all blocks
    run one compiled program. What f writes outside of it is undone after each block but the last:
    where the iteration ends early, it is as if f had not run.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> J = np.empty((3, 3))  # or a np.memmap
    >>> for at, block in jacobian_blocks(lambda x: x * x[::-1], x, chunk=2):
    ...     J[:, at] = block
    >>> J
    array([[3., 0., 1.],
           [0., 4., 0.],
           [3., 0., 1.]])
    """
    check_chunk(chunk)
    if mode not in ("forward", "reverse"):
        message = f'mode must be "forward" or "reverse", not {mode!r}'
        raise ValueError(message)
    arguments, _ = arguments_of(f, x, args, kwargs, argnums)
    number = argument_numbers(argnums)
    if not isinstance(number, int):
        raise UnsupportedTypeError(
            "blocks of a Jacobian are with respect to one argument: argnums is an int"
        )
    of = plain(arguments.args[number])
    _check_array("argument", of)
    check_holomorphic(f, arguments, holomorphic, has_aux=False, outputs="returned")
    if mode == "forward":
        blocks = _blocks_of_columns(f, arguments, number, chunk, holomorphic=holomorphic)
        count = math.prod(leaf_shape(of))
        return _Blocks(blocks, Progress(shown=progress, of="jacobian_blocks"), count, "columns")
    if leaf_dtype(of).kind == "c":
        raise UnsupportedTypeError(_COMPLEX)
    bar = Progress(shown=progress, of="jacobian_blocks")
    return _Blocks(_blocks_of_rows(f, arguments, number, chunk, bar), bar)


_COMPLEX = 'rows of a Jacobian are of real functions: mode="forward" takes complex ones'


class _Blocks:
    """An iterator of blocks, whose exceptions show the program's own lines."""

    def __init__(
        self,
        blocks: Iterator[tuple[slice, Array]],
        progress: Progress,
        total: int | None = None,
        unit: str = "",
    ) -> None:
        self._blocks = blocks
        self._progress = progress
        if total is not None:
            progress.begin(total, unit)

    def __iter__(self) -> _Blocks:
        return self

    @public
    def __next__(self) -> tuple[slice, Array]:
        try:
            at, block = next(self._blocks)
        except BaseException:  # it may be the last one
            self._progress.close()
            raise
        self._progress.update(at.stop - at.start)
        return at, block


def _blocks_of_columns(
    f: Function, arguments: Arguments, argnum: int, chunk: ChunkSize, *, holomorphic: bool
) -> Iterator[tuple[slice, Array]]:
    for at, outcome in columns(f, arguments, argnum, chunk, holomorphic=holomorphic):
        _check_array("value", plain(outcome.y))
        lanes = outcome.tangents[0]
        yield at, np.ascontiguousarray(lanes.reshape(len(lanes), math.prod(lanes.shape[1:])).T)


def columns(
    f: Function, arguments: Arguments, argnum: int, chunk: ChunkSize, *, holomorphic: bool
) -> Iterator[tuple[slice, Outcome]]:
    """Runs of a function along some of the basis directions of its one argument, after another."""
    seeds = BasisSeeds(arguments.leaves)
    width = width_of(chunk, seeds.count, arguments.leaves)
    collector = Collector(seeds.count, latest=True)
    if jitted_of(f) is None:
        chunks = forward_chunks(f, arguments, seeds, width, collector)
    else:
        chunks = _compiled_chunks(f, arguments, argnum, width, collector, holomorphic=holomorphic)
    for start, stop in chunks:
        yield slice(start, stop), collector.outcome()


def value_and_compiled_columns(
    f: Function,
    arguments: Arguments,
    argnums: Argnums,
    options: dict[str, Any],
    sink: JacobianOut | None = None,
    progress: Progress | None = None,
) -> Any:
    """The value of a function under ``jit`` and its Jacobian, by chunks of columns.

    None if it is not under ``jit``, or :func:`_compiled_chunks` does not take its arguments or
    results.
    """
    if jitted_of(f) is None or not isinstance(argnums, int) or len(arguments.leaves) != 1:
        return None
    if options["outputs"] != "returned":
        return None
    asked = {key: options[key] for key in ("has_aux", "holomorphic")}
    count = math.prod(leaf_shape(arguments.leaves[0]))
    collector = Collector(count, sink=sink, progress=progress)
    width = width_of(options["chunk"], collector.count, arguments.leaves)
    for _ in _compiled_chunks(f, arguments, argnums, width, collector, **asked):
        pass
    if sink is not None:
        outcome = collector.outcome()
        return (outcome.y, sink.out, outcome.aux)[: 2 + options["has_aux"]]
    found = {key: options[key] for key in ("has_aux", "stack")}
    return assembled(collector.outcome(), arguments, single=True, **found)


def _compiled_chunks(
    f: Function,
    arguments: Arguments,
    argnum: int,
    width: int | AutoWidth,
    collector: Collector,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Iterator[tuple[int, int]]:
    """As ``forward_chunks``, of a function under ``jit`` of one array: by one program."""
    (x,), n = arguments.leaves, width if isinstance(width, int) else width(None)
    x0, *more = arguments.args
    given: dict[str, Any] = {"args": tuple(more), "kwargs": arguments.kwargs}
    given |= {"has_aux": has_aux, "holomorphic": holomorphic}
    is_leaf = arguments.structures[0].kind == "leaf"
    given["argnums"] = argnum if is_leaf else (argnum,)  # a list is not several arguments
    for start, stop, v in unit_vectors(x, collector.count, n):
        seed = v if is_leaf else (in_trees([v], arguments, single=True),)
        y, y_dot, *aux = jvp(f, x0, seed, **given)
        leaves, structure = flatten(y)
        parts, _ = flatten(y_dot)
        pairs = [(p, Chunk(t[: stop - start])) for p, t in zip(leaves, parts, strict=True)]
        collector.add(start, stop, pairs, structure, *(aux or [None]))
        yield start, stop


def _blocks_of_rows(
    f: Function, arguments: Arguments, argnum: int, chunk: ChunkSize, progress: Progress
) -> Iterator[tuple[slice, Array]]:
    x0, *more = arguments.args
    options: dict[str, Any] = {
        "argnums": argnum,
        "args": tuple(more),
        "kwargs": arguments.kwargs,
        "chunk": chunk,
    }
    y, pullback = vjp(f, x0, **options)
    of = plain(y)
    _check_array("value", of)
    if leaf_dtype(of).kind == "c":
        raise UnsupportedTypeError(_COMPLEX)
    count = math.prod(leaf_shape(of))
    progress.begin(count, "rows")
    width = width_of(chunk, count, [of, *arguments.leaves])
    n = min(width if isinstance(width, int) else width(None), max(count, 1))
    for start, stop, bars in unit_vectors(of, count, n):
        x_bar = pullback.of_leaves([bars])
        yield (
            slice(start, stop),
            x_bar.reshape(n, math.prod(x_bar.shape[1:]))[: stop - start].copy(),
        )


def _check_array(what: str, x: Any) -> None:
    if not isinstance(x, (np.ndarray, float, complex, np.number)):
        raise UnsupportedTypeError(
            f"blocks of a Jacobian are those of a matrix, and the {what} is {type_in_words(x)}: "
            "let f take and return one vector (fwdad.ravel makes one, and takes it apart)"
        )
