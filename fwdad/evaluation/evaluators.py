"""The evaluators, which take ``(f, x)`` and return the result: ``jvp``, ``jacobian``, …."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.core.tracebacks import public
from fwdad.eager.arguments import check_read_again, copied, explicit_leaves
from fwdad.eager.build import Repeated
from fwdad.eager.forward import run_forward
from fwdad.eager.one_array import push_array
from fwdad.errors import NondeterministicFunctionError, NoOutputError, UnsupportedTypeError
from fwdad.evaluation.arguments import (
    Argnums,
    Function,
    argument_numbers,
    arguments_of,
    check_holomorphic,
    check_mode,
    joint_structure,
    width_of,
)
from fwdad.evaluation.jacobian_layout import in_structures, stacked
from fwdad.rules.core.registry import function_name
from fwdad.tangents.alike import alike
from fwdad.tangents.composite import flatten, match, unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.seeds import BasisSeeds, GivenSeeds, leaf_dtype, leaf_shape

_REVERSE: dict[str, Any] = {}


def install_reverse(jacobian: Any, pullback: Any, linearized: Any) -> None:
    """Install the reverse-mode functions, which are defined in a layer above these evaluators.

    ``pullback(f, x, chunk, args, kwargs)`` returns the map from cotangents of f(x) to those of x,
    ``linearized(f, args, kwargs, chunk)`` the tape of f. An ``Untraced`` in place of
    a tape, or of a Jacobian in mode ``auto``, asks for forward mode.
    """
    _REVERSE.update(jacobian=jacobian, pullback=pullback, linearized=linearized)


@public
def jvp(
    f: Function,
    x: Any,
    v: Any = None,
    *,
    chunk: int | str | None = None,
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: str = "returned",
    holomorphic: bool = False,
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
    UnsupportedTypeError
        If x is an integer or holds nothing to differentiate.

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
    if type(v) is np.ndarray and type(x) is np.ndarray and type(args) is tuple:
        first = type(argnums) is int and argnums == 0
        usual = first and chunk is None and not has_aux and outputs == "returned"
        pushed = push_array(f, x, v, args, kwargs) if usual else None
        if pushed is not None:
            return pushed
    arguments, single = arguments_of(f, x, args, kwargs, argnums, seeded=True)
    check_holomorphic(f, arguments, holomorphic, has_aux=has_aux, outputs=outputs)
    seeds: BasisSeeds | GivenSeeds
    if v is None:
        seeds = BasisSeeds(arguments.leaves)
    else:
        seeds = GivenSeeds(arguments.leaves, joint_structure(arguments, single), explicit_leaves(v))
    width = width_of(chunk, seeds.count, arguments.leaves)
    outcome = run_forward(f, arguments, seeds, width, has_aux=has_aux, outputs=outputs)
    y_dot = outcome.pushed(single=seeds.single)
    return (outcome.y, y_dot, outcome.aux) if has_aux else (outcome.y, y_dot)


@public
def value_and_jacobian(
    f: Function,
    x: Any,
    *,
    chunk: int | str | None = "auto",
    mode: str = "auto",
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: str = "returned",
    holomorphic: bool = False,
    stack: bool = False,
) -> Any:
    """The value of a function and its Jacobian, from the same runs.

    Parameters
    ----------
    f, x, chunk, mode, argnums, args, kwargs, has_aux, outputs, holomorphic, stack
        See :func:`jacobian`.

    Returns
    -------
    y : object
        ``f(x)``.
    J : array or composite
        See :func:`jacobian`. With ``has_aux``, aux is a third result.

    Raises
    ------
    MissingRuleError, UnsupportedTypeError
        See :func:`jacobian`.
    """
    check_mode(mode)
    arguments, single = arguments_of(f, x, args, kwargs, argnums)
    check_holomorphic(f, arguments, holomorphic, has_aux=has_aux, outputs=outputs)
    by_reverse: Any = Untraced(f)
    argnums = argument_numbers(argnums)
    if mode != "forward" and not holomorphic:
        by_reverse = _REVERSE["jacobian"](
            f, x, chunk=chunk, argnums=argnums, args=args, kwargs=kwargs, has_aux=has_aux,
            outputs=outputs, stack=stack, auto=mode == "auto",
        )  # fmt: skip
        if not isinstance(by_reverse, Untraced):
            return by_reverse
    seeds = BasisSeeds(arguments.leaves)
    width = width_of(chunk, seeds.count, arguments.leaves)
    with by_reverse.instead():
        outcome = run_forward(f, arguments, seeds, width, has_aux=has_aux, outputs=outputs)
    J = stacked(outcome) if stack else in_structures(outcome, arguments, single)
    return (outcome.y, J, outcome.aux) if has_aux else (outcome.y, J)


@public
def jacobian(
    f: Function,
    x: Any = None,
    *,
    chunk: int | str | None = "auto",
    mode: str = "auto",
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: str = "returned",
    holomorphic: bool = False,
    stack: bool = False,
) -> Any:
    """The Jacobian of a function at a point: exact, N columns at a time.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``; any NumPy program.
    x : float, complex, array or composite
        Where.
    chunk : int, "auto" or None, default "auto"
        Columns per run of f: a number, all at once (None), or as many as keep the lanes of one
        array of x's size near the cache, and at least eight.
    mode : {"auto", "forward", "reverse"}
        By columns, or by rows. ``"auto"`` takes rows where x has more than 64 numbers and at least
        four times as many as y, and f can be traced. ``chunk`` is then the number of rows. With
        ``holomorphic`` it is by columns, whatever the mode.
    argnums, args, kwargs, has_aux, outputs, holomorphic
        See :func:`jvp`.
    stack : bool, default False
        Make one matrix ``(total size of y, total size of x)`` out of composites or several
        argnums, as SciPy wants.

    Returns
    -------
    array or composite
        ``y.shape + x.shape`` for arrays; for composites y's structure, and x's inside it. With
        ``has_aux`` a tuple of this and aux.

    Raises
    ------
    MissingRuleError, UnsupportedTypeError
        See :func:`jvp`.

    Notes
    -----
    Costs a run of f on duals for each chunk of columns; by rows one run of f, and a reverse pass
    for each chunk of rows. At kinks see :func:`jvp`.

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
    if x is None:
        message = "jacobian(f) needs a point, jacobian(f, x); for a function, use jacfwd(f)"
        raise UnsupportedTypeError(message)
    result = value_and_jacobian(
        f,
        x,
        chunk=chunk,
        mode=mode,
        argnums=argnums,
        args=args,
        kwargs=kwargs,
        has_aux=has_aux,
        outputs=outputs,
        holomorphic=holomorphic,
        stack=stack,
    )
    return result[1:] if has_aux else result[1]


@public
def derivative(
    f: Function,
    x: Any,
    *,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    holomorphic: bool = False,
) -> Any:
    """The derivative of a function of one number.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``; its value may have any shape or structure.
    x : float or complex
        Where. An int raises: write 2.0.
    args, kwargs, holomorphic
        See :func:`jvp`.

    Returns
    -------
    like f(x)

    Raises
    ------
    UnsupportedTypeError
        If x is no number, or an integer.
    MissingRuleError
        See :func:`jvp`.

    Notes
    -----
    Costs one run of f, on duals.

    Examples
    --------
    >>> import math
    >>> derivative(lambda x: math.sin(x) * x, 0.0)
    0.0
    """
    if leaf_shape(x):
        message = f"derivative wants a number; x has the shape {leaf_shape(x)}: use jacobian(f, x)"
        raise UnsupportedTypeError(message)
    one = 1.0 if not isinstance(x, np.ndarray) else np.ones(())
    return jvp(f, x, one, args=args, kwargs=kwargs, holomorphic=holomorphic)[1]


@public
def linearize(
    f: Function,
    x: Any,
    *,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    chunk: int | str | None = "auto",
    holomorphic: bool = False,
) -> tuple[Any, Any]:
    """The value of a function, and its Jacobian as an operator.

    Parameters
    ----------
    f, x, args, kwargs, chunk, holomorphic
        See :func:`jacobian`.

    Returns
    -------
    y : object
        ``f(x)``.
    J : JacobianOperator
        A ``scipy.sparse.linalg.LinearOperator``: ``J.matvec(v)`` pushes a direction forward,
        ``J.matmat`` many, in chunks; ``J.rmatvec`` pulls a cotangent back, ``J.rmatmat`` many.

    Raises
    ------
    UnsupportedTypeError
        If x is an integer or holds nothing to differentiate.
    NotHolomorphicError
        If x is complex, and ``holomorphic`` is not said, or f is not.
    NoOutputError
        If f returns None.

    Notes
    -----
    f is traced and its tape is run once. J copies the arrays that the tape reads, those among the
    arguments and those from outside: the caller may change all of them. Each product with a
    direction runs the tape again, with tangents, a chunk of directions at a time. The first product
    with a cotangent runs it forward once more and keeps what its reverse pass needs, as :func:`vjp`
    does; the others run the reverse pass only. Where f cannot be traced, all arguments are copied,
    and f itself is run instead: on duals, or recorded. It is run again for each product, which
    raises ``NondeterministicFunctionError`` if f's value is another one then, and where f writes
    into an array that is an argument and that it reads from outside, too. An iterator among the
    arguments is refused.

    Examples
    --------
    >>> import numpy as np
    >>> y, J = linearize(lambda x: x**2, np.array([1.0, 3.0]))
    >>> J.matvec(np.array([1.0, 1.0])), J.rmatvec(np.array([0.0, 1.0]))
    (array([2., 6.]), array([0., 6.]))
    """
    from fwdad.evaluation.jacobian_operator import (  # noqa: PLC0415  (SciPy's sparse package)
        JacobianOperator,
        dtype_of,
    )

    arguments, _ = arguments_of(f, x, args, kwargs, 0)
    dtype_of(arguments.leaves)  # raises if it is none
    width_of(chunk, 1, arguments.leaves)  # raises if it is none
    check_holomorphic(f, arguments, holomorphic, has_aux=False, outputs="returned")
    found = _REVERSE["linearized"](f, arguments.args, arguments.kwargs, chunk)
    at = found
    if isinstance(found, Untraced):
        with found.instead():
            at = _At(f, arguments.args, arguments.kwargs, chunk, holomorphic=holomorphic)
    if at.y is None:
        message = f"{function_name(f)} returned None: what it returns is linearized"
        raise NoOutputError(message)
    return at.y, JacobianOperator(at, x, at.y)


class _At:
    """f at a point: its arguments are copies."""

    def __init__(
        self,
        f: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        chunk: int | str | None,
        *,
        holomorphic: bool,
    ) -> None:
        self.f, self.chunk, self.holomorphic = f, chunk, holomorphic
        self.x, *self.args = args
        self.kwargs = kwargs
        leaves, self._structure = flatten(self.x)
        self._pull: Any = None
        check_read_again((self.x, *self.args, self.kwargs))
        still = [np.zeros((1, *leaf_shape(v)), leaf_dtype(v)) for v in leaves]
        self._runs = Repeated()
        with self._runs.first() as run, run:
            self.y, _ = self._run(still)
        self.x, *self.args = (copied(a) for a in args)
        self.kwargs = {key: copied(a) for key, a in kwargs.items()}
        y, self._structure_of_y = flatten(self.y)
        self._values = [alike(v) if isinstance(v, np.ndarray) else v for v in map(plain, y)]

    def push(self, rows: list[Any]) -> list[Any]:
        """The tangents of the leaves of f(x) in K directions of those of x."""
        with self._runs.again() as run, run:
            y, y_dot = self._run(rows)
            self._check(y)
        return match(self._structure_of_y, y_dot)

    def _check(self, y: Any) -> None:
        """Raise if a later run returned another value than the first."""
        found, before = [plain(v) for v in flatten(y)[0]], self._values
        if len(found) == len(before) and all(map(_is_near, found, before)):
            return
        message = (
            f"{function_name(self.f)} cannot be traced, so that J runs it again, and its value is "
            "another one now: it reads something that has changed, or writes into an array that it "
            "is given and reads from outside, too. Pass it as an argument only, or linearize again"
        )
        raise NondeterministicFunctionError(message)

    def _run(self, rows: list[Any]) -> Any:
        """The value of f, and its tangents in K directions."""
        v, args = unflatten(self._structure, rows), tuple(self.args)
        return jvp(
            self.f, self.x, v, chunk=self.chunk, args=args, kwargs=self.kwargs,
            holomorphic=self.holomorphic,
        )  # fmt: skip

    def pull(self, rows: list[Any]) -> list[Any]:
        """The cotangents of the leaves of x for K of those of f(x)."""
        if self._pull is None:
            given = (self.f, self.x, self.chunk, tuple(self.args), self.kwargs)
            with self._runs.again() as run, run:
                made = _REVERSE["pullback"](*given)
                self._check(made.y)
            self._pull = made
        return match(self._structure, self._pull.of_leaves(rows))


def _is_near(a: Any, b: Any) -> bool:
    """Whether two values are equal up to rounding, as those of two runs of one program are."""
    if type(a) in OWN:
        return type(a) is type(b)
    if np.shape(a) != np.shape(b):
        return False
    largest = np.max(np.abs(b), initial=0.0)
    return bool(np.allclose(a, b, rtol=1e-4, atol=1e-4 * largest, equal_nan=True))


def stop_gradient(x: Any) -> Any:
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
