"""``jax.lax``: JAX's control flow as plain Python, which is differentiated and compiled as such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.compat.conventions import refused
from fwdad.evaluation.evaluators import stop_gradient


def fori_loop(lower: int, upper: int, body_fun: Callable[..., Any], init_val: Any) -> Any:
    """Run ``val = body_fun(i, val)`` for i from lower to upper; the last val."""
    val = scalars(init_val)
    for i in range(lower, upper):
        val = body_fun(i, val)
    return val


def while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any) -> Any:
    """Run ``val = body_fun(val)`` while ``cond_fun(val)``; the last val, also in reverse mode."""
    val = scalars(init_val)
    while cond_fun(val):
        val = body_fun(val)
    return val


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> Any:
    """Run ``carry, y = f(carry, x)`` over the first axis of xs; the last carry, the ys stacked.

    xs and y are arrays, numbers, None, or tuples, lists and dicts of these. Without any item, what
    y would be is not known, and None is returned for the stack.
    """
    count = length_of(xs) if length is None else length
    carry = scalars(init)
    if count == 0:
        return carry, None
    carry, y = f(carry, item(xs, count - 1 if reverse else 0))  # it tells what y consists of
    ys = emptied(y, count)
    put(ys, count - 1 if reverse else 0, y)
    for k in range(1, count):
        i = count - 1 - k if reverse else k
        carry, y = f(carry, item(xs, i))
        put(ys, i, y)
    return carry, ys


def map(f: Callable[..., Any], xs: Any) -> Any:  # noqa: A001  (the name is JAX's)
    """The values of f at each item of the first axis of xs, stacked."""
    count = length_of(xs)
    if count == 0:
        return None
    y = f(item(xs, 0))
    ys = emptied(y, count)
    put(ys, 0, y)
    for k in range(1, count):
        put(ys, k, f(item(xs, k)))
    return ys


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """One of two functions of the operands."""
    if pred:
        return true_fun(*operands)
    return false_fun(*operands)


def switch(index: int, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """One of several functions of the operands; the index is clamped to their range."""
    for k in range(len(branches) - 1):
        if index <= k:
            return branches[k](*operands)
    return branches[-1](*operands)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Elements of one array or the other."""
    return np.where(pred, on_true, on_false)


def scalars(x: Any) -> Any:
    """A structure with numbers for arrays without axes: NumPy's operations return numbers."""
    if isinstance(x, tuple):
        return tuple([scalars(part) for part in x])
    if isinstance(x, list):
        return [scalars(part) for part in x]
    if isinstance(x, dict):
        return {key: scalars(part) for key, part in x.items()}
    return x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x


def length_of(xs: Any) -> int:
    """The length of the first axis of the first array of a structure."""
    if isinstance(xs, dict):
        return length_of(next(iter(xs.values())))
    return length_of(xs[0]) if isinstance(xs, (tuple, list)) else len(xs)


def item(xs: Any, i: int) -> Any:
    """A structure of the items of all arrays."""
    if xs is None:
        return None
    if isinstance(xs, tuple):
        return tuple([item(x, i) for x in xs])
    if isinstance(xs, list):
        return [item(x, i) for x in xs]
    if isinstance(xs, dict):
        return {key: item(x, i) for key, x in xs.items()}
    return xs[i]


def emptied(y: Any, count: int) -> Any:
    """A structure of arrays with room for ``count`` items like y."""
    if y is None:
        return None
    if isinstance(y, tuple):
        return tuple([emptied(part, count) for part in y])
    if isinstance(y, list):
        return [emptied(part, count) for part in y]
    if isinstance(y, dict):
        return {key: emptied(part, count) for key, part in y.items()}
    return np.empty((count, *np.shape(y)), np.result_type(y))


def put(ys: Any, i: int, y: Any) -> None:
    """Write a structure into the items of a structure of arrays."""
    if isinstance(y, (tuple, list)):
        for part, one in zip(ys, y, strict=True):
            put(part, i, one)
    elif isinstance(y, dict):
        for key in y:
            put(ys[key], i, y[key])
    elif y is not None:
        ys[i] = y


associative_scan = refused(
    "jax.lax.associative_scan", "Write a loop, or np.cumsum, np.cumprod or np.maximum.accumulate"
)
__all__ = [
    "associative_scan",
    "cond",
    "fori_loop",
    "map",
    "scan",
    "select",
    "stop_gradient",
    "switch",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"jax.lax.{name} has no counterpart in fwdad. Write what NumPy calls it: lax.add is np.add"
    )
