"""Forward mode: the evaluators ``jvp`` and ``derivative``, and Jacobians by columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack, overload

import numpy as np

from fwdad.core.progress import Progress
from fwdad.eager.arguments import Arguments, explicit_leaves
from fwdad.eager.forward import run_forward
from fwdad.eager.one_array import push_array
from fwdad.eager.outcomes import Outcome
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.arguments import (
    are_several,
    arguments_of,
    check_holomorphic,
    chunk_on_tape,
    joint_structure,
    width_of,
)
from fwdad.evaluation.by_tape import at_once, by_tape
from fwdad.evaluation.elementwise import NOT_ELEMENTWISE, directions, is_diagonal, other_shape
from fwdad.evaluation.jacobian_layout import in_structures, stacked
from fwdad.evaluation.out_arrays import JacobianOut, TangentsOut
from fwdad.evaluation.signatures import (
    Argnums,
    Array,
    ChunkSize,
    DerivativeOptions,
    Function,
    HolomorphicArguments,
    JvpOptions,
    Outputs,
    P,
    R,
    RArray,
    T,
)
from fwdad.evaluation.transformed import NOT_GIVEN, without_point
from fwdad.ops.record import op
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tangents.matching import match
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import BasisSeeds, GivenSeeds, leaf_dtype, leaf_shape
from fwdad.tangents.zero import NoTangent


def _along(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """What :func:`jvp` returns; the direction is the last of ``args``."""
    x, *more, v = args
    return jvp(f, x, v, argnums=argnums, args=tuple(more), kwargs=kwargs, **options)


@overload
def jvp(
    f: Callable[..., R], x: float, v: float, **options: Unpack[HolomorphicArguments]
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., RArray], x: Any, v: Any = None, **options: Unpack[HolomorphicArguments]
) -> tuple[RArray, Array]: ...
@overload
def jvp(
    f: Callable[..., R], x: Any, v: Any = None, **options: Unpack[HolomorphicArguments]
) -> tuple[R, Any]: ...
@overload
def jvp(f: Function, x: Any, v: Any = None, **options: Unpack[JvpOptions]) -> Any: ...
@at_once(_along, last="v")
def jvp(
    f: Function,
    x: Any,
    v: Any = None,
    *,
    chunk: ChunkSize = None,
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: Outputs = "returned",
    holomorphic: bool = False,
    out: Any = None,
    progress: bool = False,
) -> Any:
    """Push tangents forward through a function: ``y, y_dot = f(x), J(x) v``.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``; any NumPy program. It is run once per chunk, and its value is
        the one returned.
    x : float, complex, array or composite
        Where. Lists, tuples, dicts, dataclasses and registered classes of these are composites.
        An array that stands in two places of one has one tangent.
        Where f needs several arguments, a tuple of them, and v a tuple like it, as in JAX.
    v : like x, or with a leading axis K, optional
        One direction, of x's shape, or K of them stacked in front, ``(K, *x.shape)``. None means
        every basis direction, in C order, leaf after leaf.
    chunk : int, "auto" or None, default None
        How many directions travel together. It bounds memory and does not change the result
        (beyond the rounding of matrix products). None: all at once.
    argnums : int or tuple of int, default 0
        The arguments to differentiate with respect to, counted in ``(x, *args)``. With a tuple, v
        is a tuple too.
    args : tuple, default ()
        Further positional arguments of f, behind x. What is no tuple is one argument, as in SciPy.
    kwargs : dict, optional
        Keyword arguments of f.
    has_aux : bool, default False
        f returns ``(y, aux)``; aux is passed on without derivatives, as a third result.
    outputs : {"returned", "mutated", "both"}
        What counts as y: the value returned, or the arguments that f writes into (in argument
        order; one alone is not wrapped in a tuple). The caller's arrays are never changed.
    holomorphic : bool, default False
        Required for complex x. ``J(iv) = iJ(v)`` is checked.
    out : array or composite, optional
        Where y_dot is written, chunk after chunk: C-contiguous arrays of its structure, shapes and
        dtypes, none of which shares memory with an argument. It is returned as y_dot.
    progress : bool, default False
        Show a bar of tqdm (``pip install 'fwdad[progress]'``), chunk after chunk of directions, if
        it takes more than a second.

    Returns
    -------
    y : object
        ``f(x)``.
    y_dot : like y
        For one direction of y's shape; for K directions ``(K, *y.shape)``. Integer parts of a
        composite y have ``NoTangent``.

    Raises
    ------
    MissingRuleError
        If f calls something that has neither a rule nor a Python source.
    SeedError
        If v does not fit x.
    OutError
        If ``out`` does not fit y_dot, is read-only, or shares memory with an argument.
    UnsupportedTypeError
        If x is an integer or holds nothing to differentiate; if x and v are tuples or lists of
        parts that f could take as one argument or as several: the message says how to write
        either.

    Notes
    -----
    Costs one run of f per chunk, on duals. See :func:`jacobian` for the layouts of y_dot and of
    the Jacobian side by side.

    At a tie, an end or a corner (``maximum``, ``clip``, ``abs``, ``sort``) the derivative is that
    of a value which the function takes there, and of one side; of a branch, that of the way taken.
    A slope that is infinite contributes nothing where the tangent is zero. ``rules/policies.md``
    lists each choice.

    Examples
    --------
    >>> import numpy as np
    >>> y, y_dot = jvp(lambda x: x**2, np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    >>> y, y_dot
    (array([1., 4.]), array([2., 0.]))
    """
    options = {"chunk": chunk, "has_aux": has_aux, "outputs": outputs, "holomorphic": holomorphic}
    is_array = type(v) is np.ndarray and type(x) is np.ndarray and type(args) is tuple
    if out is not None or progress:
        with Progress(shown=progress, of="jvp", unit="directions") as bar:
            return push_directions(f, x, v, argnums, args, kwargs, options, out, bar)
    if is_array and by_tape(f) is None:
        first = type(argnums) is int and argnums == 0
        usual = first and chunk is None and not has_aux and outputs == "returned"
        pushed = push_array(f, x, v, args, kwargs) if usual else None
        if pushed is not None:
            return pushed
    return push_directions(f, x, v, argnums, args, kwargs, options)


def push_directions(
    f: Function,
    x: Any,
    v: Any,
    argnums: Argnums,
    args: Any,
    kwargs: Any,
    options: Any,
    out: Any = None,
    progress: Progress | None = None,
) -> Any:
    """What :func:`jvp` returns, where no shortcut does."""
    if are_several(f, x, v, args, kwargs, argnums):
        x, *args = x
        v, args, argnums = tuple(v), tuple(args), tuple(range(1 + len(args)))
    has_aux, outputs = options["has_aux"], options["outputs"]
    arguments, single = arguments_of(f, x, args, kwargs, argnums, seeded=True)
    check_holomorphic(f, arguments, options["holomorphic"], has_aux=has_aux, outputs=outputs)
    seeds: BasisSeeds | GivenSeeds
    if v is None:
        seeds = BasisSeeds(arguments.leaves)
    else:
        seeds = GivenSeeds(arguments.leaves, joint_structure(arguments, single), explicit_leaves(v))
    width = width_of(options["chunk"], seeds.count, arguments.leaves)

    def on_duals() -> Any:
        chosen: Any = {"has_aux": has_aux, "outputs": outputs}
        if out is not None:
            chosen["sink"] = TangentsOut(out, arguments, v, seeds.count, single=seeds.single)
        outcome = run_forward(f, arguments, seeds, width, progress=progress, **chosen)
        y_dot = outcome.pushed(single=seeds.single) if out is None else out
        return (outcome.y, y_dot, outcome.aux) if has_aux else (outcome.y, y_dot)

    tapes = by_tape(f)
    if tapes is None or v is None or out is not None or progress:
        return on_duals()
    given = (*arguments.args, v)
    asked = {**options, "chunk": chunk_on_tape(options["chunk"], seeds.count, arguments.leaves)}
    return tapes.or_else(_along, f, argnums, given, arguments.kwargs, asked, on_duals)


def value_and_columns(
    f: Function,
    arguments: Arguments,
    *,
    single: bool,
    chunk: ChunkSize,
    has_aux: bool = False,
    outputs: Outputs = "returned",
    stack: bool = False,
    sink: JacobianOut | None = None,
    progress: Progress | None = None,
) -> Any:
    """The value of a function and its Jacobian, by forward mode: a chunk of columns at a time."""
    seeds = BasisSeeds(arguments.leaves)
    width = width_of(chunk, seeds.count, arguments.leaves)
    options: Any = {"has_aux": has_aux, "outputs": outputs, "sink": sink}
    outcome = run_forward(f, arguments, seeds, width, progress=progress, **options)
    if sink is not None:
        return (outcome.y, sink.out, outcome.aux) if has_aux else (outcome.y, sink.out)
    return assembled(outcome, arguments, single=single, has_aux=has_aux, stack=stack)


def assembled(
    outcome: Outcome, arguments: Arguments, *, single: bool, has_aux: bool, stack: bool
) -> Any:
    """The value of a function and its Jacobian, with aux if there is one."""
    J = stacked(outcome) if stack else in_structures(outcome, arguments, single)
    return (outcome.y, J, outcome.aux) if has_aux else (outcome.y, J)


def _diagonal(f: Function, _argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """What :func:`derivative` returns."""
    return derivative(f, args[0], args=args[1:], kwargs=kwargs, **options)


@overload
def derivative(f: Callable[P, R], *, holomorphic: bool = False) -> Callable[P, R]: ...
@overload
def derivative(f: Callable[..., R], x: Any, **options: Unpack[DerivativeOptions]) -> R: ...
@at_once(_diagonal, absent=(NOT_GIVEN,))
def derivative(
    f: Function,
    x: Any = NOT_GIVEN,
    *,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    holomorphic: bool = False,
) -> Any:
    """The derivative of a function of one number, or element by element.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``. Of a number, its value may have any shape or structure; of an
        array, it works element by element: each array that it returns has x's shape, and each
        element depends on that element of x alone.
    x : float, complex or array, optional
        Where. An int raises: write 2.0. Without it, the derivative as a function of f's arguments
        is returned.
    args, kwargs, holomorphic
        See :func:`jvp`.

    Returns
    -------
    like f(x)
        Of an array the diagonal of the Jacobian, in x's shape. Without x, a function that returns
        this.

    Raises
    ------
    UnsupportedTypeError
        If x is an integer, or no number or array; of an array, if f does not work element by
        element there.
    MissingRuleError
        See :func:`jvp`.

    Notes
    -----
    Costs one run of f, on duals. Of an array of n elements, it carries about ``log2(n) + 2``
    directions: one for the diagonal, and those that see whether any other element of the Jacobian
    is not zero, however small. Where an elementwise derivative is NaN, its row is not looked at.

    Examples
    --------
    >>> import math
    >>> derivative(lambda x: math.sin(x) * x, 0.0)
    0.0
    >>> import numpy as np
    >>> derivative(np.square)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    if x is NOT_GIVEN:
        return without_point(_call_derivative, f, args, kwargs, chunk=None, holomorphic=holomorphic)
    if isinstance(x, (list, tuple, dict)):
        message = f"derivative takes a number or an array; x is {type_in_words(x)}: use jacobian"
        raise UnsupportedTypeError(message)
    of = derivative_of_array if leaf_shape(x) else derivative_of_number

    def on_duals() -> Any:
        return of(f, x, args=args, kwargs=kwargs, holomorphic=holomorphic)

    tapes = by_tape(f)
    if tapes is None or not isinstance(args, tuple):
        return on_duals()
    options = {"holomorphic": holomorphic}
    return tapes.or_else(_diagonal, f, 0, (x, *args), kwargs or {}, options, on_duals)


def derivative_of_number(f: Function, x: Any, **options: Any) -> Any:
    """What ``derivative`` returns for a number."""
    one = 1.0 if not isinstance(x, np.ndarray) else np.ones(())
    return jvp(f, x, one, **options)[1]


def derivative_of_array(f: Function, x: Any, **options: Any) -> Any:
    """What ``derivative`` returns for an array: the diagonal of a diagonal Jacobian."""
    shape = leaf_shape(x)
    given = directions(shape, leaf_dtype(x))
    y, y_dot = jvp(f, x, given, **options)
    leaves, structure = flatten(y)
    dots = []
    for leaf, lanes in zip(leaves, match(structure, y_dot), strict=True):
        if lanes is NoTangent:
            dots.append(lanes)
            continue
        if leaf_shape(leaf) != shape:
            raise UnsupportedTypeError(other_shape(shape, leaf_shape(leaf)))
        if not is_diagonal(given, plain(lanes)):
            raise UnsupportedTypeError(NOT_ELEMENTWISE)
        dots.append(lanes[0])
    return unflatten(structure, dots, lambda _: NoTangent)


def _call_derivative(
    call: Any, f: Function, _argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    arguments = {"args": args[1:], "kwargs": kwargs, "holomorphic": options["holomorphic"]}
    return call(derivative, (f, args[0]), arguments)


def stop_gradient(x: T) -> T:
    """The value of x without its tangents: a constant, whatever it was computed from.

    Parameters
    ----------
    x : object
        A number, an array or a composite.

    Returns
    -------
    like x
        Arrays are copied.

    Examples
    --------
    >>> derivative(lambda x: x * stop_gradient(x), 3.0)
    3.0
    """
    leaves, structure = flatten(x)
    return unflatten(structure, [_as_new(plain(leaf)) for leaf in leaves])


def _as_new(x: Any) -> Any:
    """An equal value as a new object: what an earlier call has left is found by identity."""
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, (float, complex, np.inexact)):
        negated: Any = -x
        return -negated
    return x


op(stop_gradient, constant=True, pure=True)
