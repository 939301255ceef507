"""The public transformers and evaluators.

*Evaluators* start with ``(f, x)`` and return the answer: ``jvp``, ``jacobian``, ``derivative``, ….
*Transformers* take a function and return one with the same signature: ``jacfwd``, ``grad``, ….
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.builder.build import run_on_duals
from fwdad.builder.forward import Arguments, Outcome, explicit_leaves, run_forward
from fwdad.errors import (
    NonScalarOutputError,
    NotHolomorphicError,
    SeedError,
    UnsupportedTypeError,
)
from fwdad.tangents.chunk import plain
from fwdad.tangents.composite import Structure, flatten, unflatten
from fwdad.tangents.seeds import BasisSeeds, GivenSeeds, leaf_dtype, leaf_shape, random_seeds
from fwdad.tangents.zero import NoTangent

Function = Callable[..., Any]
Argnums = int | Sequence[int]

# Lanes are chosen so that the lanes of one array stay near a core's cache, and never fewer than
# eight, below which the work done once per run is not shared (benchmarks/README.md). The first run
# tells how large the value is; it takes 64 directions at most.
_CACHE_BYTES = 8 * 2**20
_FEWEST_LANES = 8
_FIRST_LANES = 64


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
    v : like x, or with a leading axis K, optional
        One direction, of x's shape, or K of them stacked in front, ``(K, *x.shape)``. None means
        every basis direction, in C order, leaf after leaf.
    chunk : int, "auto" or None, default None
        How many directions travel together. It bounds memory and does not change the result
        (beyond the rounding of matrix products). None: all at once.
    argnums : int or tuple of int, default 0
        The arguments to differentiate with respect to, counted in ``(x, *args)``. With a tuple, v
        is a tuple too.
    args, kwargs
        Further arguments of f.
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

    Examples
    --------
    >>> import numpy as np
    >>> y, y_dot = jvp(lambda x: x**2, np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    >>> y, y_dot
    (array([1., 4.]), array([2., 0.]))
    """
    arguments, single = _arguments(f, x, args, kwargs, argnums)
    _check_holomorphic(f, arguments, holomorphic, has_aux=has_aux, outputs=outputs)
    seeds: BasisSeeds | GivenSeeds
    if v is None:
        seeds = BasisSeeds(arguments.leaves)
    else:
        seeds = GivenSeeds(arguments.leaves, _joint(arguments, single), explicit_leaves(v))
    width = _width(chunk, seeds.count, arguments.leaves)
    outcome = run_forward(f, arguments, seeds, width, has_aux=has_aux, outputs=outputs)
    if seeds.single:
        parts = [_one(t, leaf) for t, leaf in zip(outcome.tangents, outcome.leaves, strict=True)]
    else:
        parts = outcome.tangents
    y_dot = outcome.tangent_tree(parts)
    return (outcome.y, y_dot, outcome.aux) if has_aux else (outcome.y, y_dot)


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
    """
    _check_mode(mode)
    arguments, single = _arguments(f, x, args, kwargs, argnums)
    _check_holomorphic(f, arguments, holomorphic, has_aux=has_aux, outputs=outputs)
    seeds = BasisSeeds(arguments.leaves)
    width = _width(chunk, seeds.count, arguments.leaves)
    outcome = run_forward(f, arguments, seeds, width, has_aux=has_aux, outputs=outputs)
    J = _stacked(outcome) if stack else _jacobian(outcome, arguments, single)
    return (outcome.y, J, outcome.aux) if has_aux else (outcome.y, J)


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
        ``"reverse"`` raises until reverse mode is there; ``"auto"`` is forward until then.
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
        The arguments to differentiate with respect to.
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
    argnums : int or tuple of int, default 0
        The arguments to differentiate with respect to.
    has_aux : bool, default False
        f returns ``(y, aux)``; the gradient function returns ``(gradient, aux)``.
    chunk : int, "auto" or None
        See :func:`jacobian`.

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


def linearize(
    f: Function,
    x: Any,
    *,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    chunk: int | str | None = "auto",
) -> tuple[Any, Any]:
    """The value of a function, and its Jacobian as an operator.

    Parameters
    ----------
    f, x, args, kwargs, chunk
        See :func:`jacobian`.

    Returns
    -------
    y : object
        ``f(x)``.
    J : JacobianOperator
        A ``scipy.sparse.linalg.LinearOperator``: ``J.matvec(v)`` pushes a direction forward,
        ``J.matmat`` many, in chunks. ``J.rmatvec`` raises until reverse mode is there.

    Notes
    -----
    Each product runs f again, on duals.
    """
    from fwdad.jacobian_operator import JacobianOperator  # noqa: PLC0415  (SciPy's sparse package)

    at = _At(f, args, kwargs or {})
    y = at(x)
    return y, JacobianOperator(at.push, x, y, chunk)


class _At:
    """f with all arguments but the first fixed."""

    def __init__(self, f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def __call__(self, x: Any) -> Any:
        return run_on_duals(self.f, (x, *self.args), self.kwargs)

    def push(self, x: Any, v: Any, chunk: int | str | None) -> Any:
        """The tangents of f at x in the directions v."""
        return jvp(self.f, x, v, chunk=chunk, args=self.args, kwargs=self.kwargs)[1]


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
    """
    leaves, structure = flatten(explicit_leaves(x))
    kept = [plain(leaf) for leaf in leaves]
    return unflatten(structure, [k.copy() if isinstance(k, np.ndarray) else k for k in kept])


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


# -- arguments


def _arguments(
    f: Function, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, argnums: Argnums
) -> tuple[Arguments, bool]:
    if not callable(f):
        message = f"the first argument is the function; a {type(f).__name__} came"
        raise UnsupportedTypeError(message)
    if not isinstance(args, tuple):
        args = (args,)
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    positions = tuple(k % (1 + len(args)) if -1 - len(args) <= k < 0 else k for k in positions)
    return Arguments((x, *args), kwargs or {}, positions), isinstance(argnums, int)


def _joint(arguments: Arguments, single: bool) -> Structure:
    """The structure that a seed must have: x's own, or a tuple of them for several argnums."""
    if single:
        return arguments.structures[0]
    joint = Structure("tuple", tuple(s.value for s in arguments.structures))
    start = 0
    for structure, count in zip(arguments.structures, arguments.counts, strict=True):
        joint.children.append(_shifted(structure, start, {}))
        start += count
    return joint


def _shifted(structure: Structure, start: int, seen: dict[int, Structure]) -> Structure:
    if id(structure) in seen:
        return seen[id(structure)]
    made = seen[id(structure)] = Structure(structure.kind, structure.value)
    made.keys, made.data = structure.keys, structure.data
    made.index = structure.index + start
    made.children = [_shifted(c, start, seen) for c in structure.children]
    return made


class _AutoWidth:
    """The number of lanes per run, by the size of the argument and, once known, of the value."""

    def __init__(self, count: int, leaves: list[Any]) -> None:
        self.count = count
        self.nbytes = _nbytes(leaves)

    def __call__(self, value_leaves: list[Any] | None) -> int:
        """The width of the next run; ``value_leaves`` is None before the first."""
        nbytes = self.nbytes if value_leaves is None else max(self.nbytes, _nbytes(value_leaves))
        width = max(_FEWEST_LANES, _CACHE_BYTES // max(nbytes, 1))
        if value_leaves is None:
            width = min(width, _FIRST_LANES)
        return max(1, min(self.count, width))


def _nbytes(leaves: list[Any]) -> int:
    return sum(math.prod(leaf_shape(x)) * leaf_dtype(plain(x)).itemsize for x in leaves)


def _width(chunk: int | str | None, count: int, leaves: list[Any]) -> int | _AutoWidth:
    """The number of lanes per run."""
    if chunk is None:
        return max(count, 1)
    if chunk == "auto":
        return _AutoWidth(count, leaves)
    if isinstance(chunk, bool) or not isinstance(chunk, (int, np.integer)) or chunk < 1:
        message = f'chunk is a positive integer, "auto" or None, not {chunk!r}'
        raise SeedError(message)
    return int(chunk)


def _check_mode(mode: str) -> None:
    if mode == "reverse":
        message = 'mode="reverse" is not there yet: use mode="forward" (or "auto")'
        raise NotImplementedError(message)
    if mode not in ("auto", "forward"):
        message = f'mode is "auto", "forward" or "reverse", not {mode!r}'
        raise ValueError(message)


def _check_holomorphic(
    f: Function, arguments: Arguments, holomorphic: bool, *, has_aux: bool, outputs: str
) -> None:
    """Complex arguments: the derivative is one complex number only if J(iv) = iJ(v)."""
    if not any(leaf_dtype(plain(x)).kind == "c" for x in arguments.leaves):
        return
    if not holomorphic:
        message = (
            "the argument is complex: say holomorphic=True if the function is holomorphic there; "
            "otherwise differentiate with respect to real and imaginary parts"
        )
        raise NotHolomorphicError(message)
    seeds = random_seeds(arguments.leaves, 1, np.random.default_rng(0))
    both = [np.concatenate([v, 1j * v]) if v.dtype.kind == "c" else None for v in seeds]
    if any(v is None for v in both):
        message = "holomorphic=True: every argument to differentiate must be complex"
        raise NotHolomorphicError(message)
    given = GivenSeeds.__new__(GivenSeeds)
    given.arrays, given.count, given.single = both, 2, False
    outcome = run_forward(f, arguments, given, 2, has_aux=has_aux, outputs=outputs)
    for t in outcome.tangents:
        lanes = plain(t)
        scale = np.max(np.abs(lanes), initial=0.0)
        if not np.allclose(
            lanes[1], 1j * lanes[0], rtol=1e-6, atol=1e-9 * (scale or 1.0), equal_nan=True
        ):
            message = (
                "holomorphic=True, but J(iv) = iJ(v) does not hold here: the function takes a "
                "conjugate, an absolute value, or a real or imaginary part on the way"
            )
            raise NotHolomorphicError(message)


# -- layouts


def _one(lanes: Any, leaf: Any) -> Any:
    """The tangent of a single direction, of the leaf's own type."""
    t = lanes[0]
    return t.item() if type(plain(leaf)) in (float, complex) and hasattr(t, "item") else t


def _columns(arguments: Arguments) -> list[int]:
    return [math.prod(leaf_shape(x)) for x in arguments.leaves]


def _jacobian(outcome: Outcome, arguments: Arguments, single: bool) -> Any:
    return outcome.tangent_tree(
        [
            _block(lanes, leaf, arguments, single)
            for lanes, leaf in zip(outcome.tangents, outcome.leaves, strict=True)
        ]
    )


def _block(lanes: Any, leaf: Any, arguments: Arguments, single: bool) -> Any:
    """The Jacobian of one leaf of y, in x's structure."""
    y_shape = leaf_shape(leaf)
    parts, start = [], 0
    for x, size in zip(arguments.leaves, _columns(arguments), strict=True):
        rows = lanes[start : start + size]
        part = _lanes_last(rows).reshape(y_shape + leaf_shape(x))
        if part.shape == () and type(plain(leaf)) is float and type(plain(x)) is float:
            part = part.item() if hasattr(part, "item") else part
        elif (
            part.shape == () and not isinstance(x, np.ndarray) and not isinstance(leaf, np.ndarray)
        ):
            part = part[()]
        parts.append(part)
        start += size
    trees, start = [], 0
    for structure, count in zip(arguments.structures, arguments.counts, strict=True):
        trees.append(unflatten(structure, parts[start : start + count], lambda _: NoTangent))
        start += count
    return trees[0] if single else tuple(trees)


def _lanes_last(lanes: Any) -> Any:
    return lanes.transpose((*range(1, lanes.ndim), 0))


def _stacked(outcome: Outcome) -> Any:
    """All of y by all of x, as one matrix."""
    rows = [_lanes_last(lanes).reshape(-1, lanes.shape[0]) for lanes in outcome.tangents]
    return rows[0] if len(rows) == 1 else np.concatenate(rows)
