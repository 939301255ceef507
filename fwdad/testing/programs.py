"""Calls of one function as programs that can be traced, and run on duals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.drivers.pullback import vjp
from fwdad.evaluation.evaluators import jvp
from fwdad.rules.core.containers import Path


class Primal:
    """A placeholder for a primal while the arguments of a call are put in place."""

    def __init__(self, k: int) -> None:
        self.k = k


def program_of(
    function: Callable[..., Any],
    call: tuple[tuple[Any, ...], dict[str, Any]],
    primals: list[Any],
    paths: list[Path],
    mutates: tuple[int, ...],
) -> Callable[[Any], Any]:
    """A call of a function as a program of some leaves of its primals, found at ``paths``.

    A :class:`Primal` stands for each primal in ``call``. A complex leaf is given as its real and
    imaginary parts, so that the program need not be holomorphic. A function that writes gets
    copies, and its new contents are returned, too.
    """
    args, kwargs = call
    places = [a.k if type(a) is Primal else -1 for a in args]
    named = {key: a.k for key, a in kwargs.items() if type(a) is Primal}
    options = {key: a for key, a in kwargs.items() if type(a) is not Primal}
    fixed = [None if type(a) is Primal else a for a in args]

    def called(leaves: Any) -> Any:
        values = [with_leaves(x, (k,), paths, leaves) for k, x in enumerate(primals)]
        for k in mutates:
            values[k] = values[k].copy()
        positional = [fixed[j] if k < 0 else values[k] for j, k in enumerate(places)]
        keywords = {key: values[k] for key, k in named.items()}
        y = function(*positional, **keywords, **options)
        return (y, *[values[k] for k in mutates]) if mutates else y

    return called


def with_leaves(value: Any, path: Path, paths: list[Path], leaves: Any) -> Any:
    """Nested lists, tuples and dicts with some of their leaves replaced."""
    for k, at in enumerate(paths):
        if at == path:
            x = leaves[k]
            return x[0] + 1j * x[1] if type(x) is list else x
    if type(value) is list:
        return [with_leaves(x, (*path, k), paths, leaves) for k, x in enumerate(value)]
    if type(value) is tuple:
        return tuple([with_leaves(x, (*path, k), paths, leaves) for k, x in enumerate(value)])
    if type(value) is dict:
        return {key: with_leaves(x, (*path, key), paths, leaves) for key, x in value.items()}
    return value


def pushed(called: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A function that pushes tangents of the leaves through a program."""
    return lambda x, x_dot: jvp(called, x, (x_dot,), argnums=(0,))[1]


def pulled(called: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A function that pulls a cotangent back through a program."""
    return lambda x, y_bar: vjp(called, x)[1](y_bar)
