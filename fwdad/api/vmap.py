"""``vmap``: a function of one point as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.containers import of_class
from fwdad.core.tracebacks import public
from fwdad.display.words import function_in_words
from fwdad.drivers.parallel.points import PointsJob, values_by_workers
from fwdad.drivers.parallel.pools import pool_of
from fwdad.eager.calls.dispatch import call, on_call
from fwdad.eager.lifting.reached import Carrier
from fwdad.eager.run import STATE
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.signatures import Function
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.tangents.plain import plain


class Vmapped(Carrier):
    """A function of many points; made by :func:`vmap`."""

    def __init__(self, f: Function, in_axes: Any, out_axes: int, executor: Any = None) -> None:
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        self.in_axes = in_axes
        self.out_axes = out_axes
        self._executor = executor

    @public  # of which a tape takes the inside, and not the `try`
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The values of f at all points."""
        axes = self.in_axes, self.out_axes
        return _called(self.__wrapped__, *axes, args, kwargs, self._executor)

    def __repr__(self) -> str:
        return f"<fwdad.vmap of {function_in_words(self.__wrapped__)}>"

    def __get__(self, owner: Any, _cls: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def _made_by(self) -> Any:
        return (Vmapped, (self.__wrapped__, self.in_axes, self.out_axes))


@public
def vmap(f: Function, in_axes: Any = 0, out_axes: int = 0, *, executor: Any = None) -> Vmapped:
    """Turn a function of one point into a function of many: a loop over them.

    Parameters
    ----------
    f : callable
        Any NumPy program; also a derivative, as in ``vmap(grad(f))``.
    in_axes : int, None or tuple, default 0
        Along which axis the points are: of all positional arguments, or of each. None: the argument
        is the same for all points. Of arguments that are tuples, lists or dicts it is the axis of
        all arrays in them, or a tuple or dict like them. Keyword arguments have points along axis
        0.
    out_axes : int, default 0
        Along which axis of each array of the result they are.
    executor : executor of concurrent.futures or loky, or distributed.Client, optional
        Who calls f, at some points in each task; see :func:`jacobian`. In a derivative or under
        :func:`jit` the points are computed where that is.

    Returns
    -------
    callable
        With f's signature. It returns what f does, with one axis more: an array for a number; of
        tuples, lists and dicts all that is in them.

    Raises
    ------
    UnsupportedTypeError
        If an argument with an axis, or f's value, is no array, number, tuple, list or dict.
    ValueError
        If there is no point, or arguments have different numbers of them.
    IndexError
        If an argument has no such axis.
    ExecutorError, UnpicklableFunctionError, SharedWriteError
        See :func:`jacobian`; also if f draws random numbers, with an executor.

    Notes
    -----
    The values are those of calls one by one, bit for bit, and f may have branches and loops that
    differ from point to point. f is given copies: what it writes into its arguments is gone. Under
    :func:`jit` it is one loop, which any number of points run, and with ``parallel=True`` one that
    Numba's threads share; interpreted, a loop of Python, of which the calls cost what they cost
    alone. It can be nested, and differentiated.

    Examples
    --------
    >>> import fwdad, numpy as np
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> vmap(fwdad.grad(lambda x: x[0] * x[1] ** 2))(X)
    array([[ 4.,  4.],
           [16., 24.]])
    >>> vmap(np.dot, in_axes=(0, None))(X, np.array([1.0, 10.0]))
    array([21., 43.])
    """
    if not callable(f):
        raise UnsupportedTypeError(f"expected a function; got {type_in_words(f)}")
    if isinstance(out_axes, bool) or not isinstance(out_axes, (int, np.integer)):
        raise UnsupportedTypeError(f"out_axes must be an int; got {type_in_words(out_axes)}")
    _check_axes(in_axes)
    if executor is not None:
        pool_of(executor)  # raises if it is none, or shut down
    return Vmapped(f, in_axes, int(out_axes), executor)


def _check_axes(axes: Any) -> None:
    if isinstance(axes, (tuple, list, dict)):
        for axis in axes.values() if isinstance(axes, dict) else axes:
            _check_axes(axis)
    elif axes is not None and (isinstance(axes, bool) or not isinstance(axes, (int, np.integer))):
        raise UnsupportedTypeError(
            f"in_axes must be ints or None, or tuples and dicts of them; got {type_in_words(axes)}"
        )


# -- interpreted


def _called(
    f: Any, in_axes: Any, out_axes: int, args: Any, kwargs: Any, executor: Any = None
) -> Any:
    if executor is None or STATE.run is not None:
        return _one_by_one(_plainly, f, in_axes, out_axes, args, kwargs)
    n = _count(_lengths(args, in_axes) + _lengths(kwargs, 0))
    job = PointsJob(f, _point, args, in_axes, kwargs)
    return _together(_plainly, values_by_workers(job, n, executor), out_axes)


def _point(args: Any, in_axes: Any, kwargs: Any, k: int) -> tuple[Any, Any]:
    """The arguments of a call."""
    return tuple(_taken(args, in_axes, k)), _taken(kwargs, 0, k)


def _plainly(f: Any, *args: Any, **kwargs: Any) -> Any:
    return f(*args, **kwargs)


@on_call(Vmapped)
def _on_duals(f: Vmapped, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _one_by_one(call, f.__wrapped__, f.in_axes, f.out_axes, args, kwargs)


def _one_by_one(
    run: Callable[..., Any], f: Any, in_axes: Any, out_axes: int, args: Any, kwargs: Any
) -> Any:
    """The values of all points, by calls that ``run`` makes."""
    n = _count(_lengths(args, in_axes) + _lengths(kwargs, 0))
    values = [run(f, *_taken(args, in_axes, k), **_taken(kwargs, 0, k)) for k in range(n)]
    return _together(run, values, out_axes)


def _together(run: Callable[..., Any], values: list[Any], axis: int) -> Any:
    first = values[0]
    if isinstance(first, (tuple, list)):
        parts = [_together(run, list(each), axis) for each in zip(*values, strict=True)]
        return parts if isinstance(first, list) else of_class(type(first), parts)
    if isinstance(first, dict):
        return {key: _together(run, [v[key] for v in values], axis) for key in first}
    if not isinstance(plain(first), (np.ndarray, int, float, complex, np.generic)):
        raise UnsupportedTypeError(_VALUE.format(type(plain(first)).__name__))
    if any(np.shape(plain(v)) != np.shape(plain(first)) for v in values):
        raise ValueError(_SHAPES)
    return run(np.moveaxis, run(np.stack, values), 0, axis)


_VALUE = "vmap: the function returns a {}: let it return arrays, numbers, tuples, lists or dicts"
_SHAPES = "vmap: the function returns arrays of different shapes at different points"


# -- traced, as what follows is


@builtin(_called)
def _traced(tracer: Tracer, *given: Any) -> Any:
    return tracer.call(_mapped, given[:5], {})  # there are no workers in a tape


def _mapped(f: Any, in_axes: Any, out_axes: int, args: Any, kwargs: Any) -> Any:
    """The values of all points; the first tells what they are like."""
    n = _count(_lengths(args, in_axes) + _lengths(kwargs, 0))
    y = f(*_taken(args, in_axes, 0), **_taken(kwargs, 0, 0))
    values = _allocated(y, n, (args, kwargs))
    _store(values, 0, y)
    for k in range(1, n):
        _store(values, k, f(*_taken(args, in_axes, k), **_taken(kwargs, 0, k)))
    return _moved(values, out_axes)


def _axes_of(x: Any, axes: Any) -> Any:
    """The axes of the items of a tuple or list."""
    if not isinstance(axes, (tuple, list)):
        return [axes] * len(x)
    if len(axes) != len(x):
        raise ValueError(f"vmap: in_axes has {len(axes)} items for {len(x)} arguments or items")
    return axes


def _lengths(x: Any, axis: Any) -> list[Any]:
    """How many points each array has."""
    if axis is None:
        return []
    if isinstance(x, (tuple, list)):
        items = [_lengths(item, a) for item, a in zip(x, _axes_of(x, axis), strict=True)]
    elif isinstance(x, dict):
        items = [_lengths(x[key], axis[key] if isinstance(axis, dict) else axis) for key in x]
    elif getattr(x, "ndim", 0) == 0:
        raise UnsupportedTypeError(
            f"vmap: an argument is, or holds, a {type(x).__name__}, which has no axis of points: "
            "in_axes says None for what is the same at all points"
        )
    else:
        return [x.shape[axis]]
    lengths = []
    for found in items:
        lengths += found
    return lengths


def _count(lengths: list[Any]) -> Any:
    """How many points there are."""
    if len(lengths) == 0:
        raise ValueError("vmap: no argument has points: in_axes is None for all")
    n = lengths[0]
    for m in lengths:
        if m != n:
            raise ValueError("vmap: the arguments have different numbers of points")
    if n == 0:
        raise ValueError("vmap: there is no point, and so nothing tells what a value is like")
    return n


def _taken(x: Any, axis: Any, k: Any) -> Any:
    """The arguments at one point."""
    if axis is None:
        return x
    if isinstance(x, dict):
        return {key: _taken(x[key], axis[key] if isinstance(axis, dict) else axis, k) for key in x}
    if isinstance(x, tuple):
        items = [_taken(item, a, k) for item, a in zip(x, _axes_of(x, axis), strict=True)]
        return of_class(type(x), items)
    if isinstance(x, list):
        return [_taken(item, a, k) for item, a in zip(x, _axes_of(x, axis), strict=True)]
    item = x[(slice(None),) * (axis % x.ndim) + (k,)]
    return item.copy() if x.ndim > 1 else item


def _allocated(y: Any, n: Any, given: Any) -> Any:
    """Memory for the values of all points.

    A call of constants alone would be made when the tape is: ``given`` are values.
    """
    if isinstance(y, dict):
        return {key: _allocated(y[key], n, given) for key in y}
    if isinstance(y, tuple):
        return of_class(type(y), [_allocated(item, n, given) for item in y])
    if isinstance(y, list):
        return [_allocated(item, n, given) for item in y]
    if not isinstance(y, (np.ndarray, int, float, complex, np.generic)):
        raise UnsupportedTypeError(_VALUE.format(type(y).__name__))
    like = np.asarray(y)
    return np.empty((n, *like.shape), like.dtype)


def _store(values: Any, k: Any, y: Any) -> None:
    """Store the value of a point."""
    if isinstance(y, dict):
        for key in y:
            _store(values[key], k, y[key])
    elif isinstance(y, (tuple, list)):
        for item, value in zip(values, y, strict=True):
            _store(item, k, value)
    else:
        if np.shape(y) != values.shape[1:]:
            raise ValueError(_SHAPES)
        values[k] = y


def _moved(values: Any, axis: int) -> Any:
    """The values with their points along an axis."""
    if isinstance(values, dict):
        return {key: _moved(values[key], axis) for key in values}
    if isinstance(values, tuple):
        return of_class(type(values), [_moved(item, axis) for item in values])
    if isinstance(values, list):
        return [_moved(item, axis) for item in values]
    return values if axis == 0 else np.moveaxis(values, 0, axis)
