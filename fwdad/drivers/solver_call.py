"""A solver of SciPy's on plain numbers, inside a derivative, with functions that may store things.

What the functions of a program store elsewhere while a solver runs them, and the program reads
afterwards, would be plain numbers, and their derivatives silently zero.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.build import Run
from fwdad.eager.calls.dispatch import call
from fwdad.eager.effects import Journal
from fwdad.evaluation.evaluators import stop_gradient
from fwdad.tangents.chunk import Chunk

R = TypeVar("R")
_CALLABLES = (
    "f", "func", "fun", "fprime", "fprime2", "jac", "hess", "hessp", "Dfun", "fhess", "fhess_p",
)  # fmt: skip
_AS_THEY_ARE = ("callback", "constraints")
Watched = Callable[[Any], Any]
"""Makes duals of the numbers that a solver passes to a function."""


def on_plain_numbers(solve: Callable[[Watched | None], R], is_active: Callable[[], bool]) -> R:
    """The result of ``solve(None)``, which is ``solve(watched)`` where functions store something.

    If they were seen to, and derivatives are asked for, the solve is done once more with
    ``watched(x)`` in place of each x that a function gets, and the function as it is: so it is
    known which of the stored values depend on x. Whoever reads these in a derivative gets an error.
    """
    journal: Journal = []
    with Run(1, journal=journal) as run, run:
        found = solve(None)
        run.stays = not (run.log.reaches_outside() and is_active())
        if run.stays:
            return found
    with Run(1, repeats=True, journal=journal, lost=True) as run, run:
        return solve(partial(_watched, run))


def _watched(run: Run, x: Any) -> Any:
    """A dual of a run, for a number or an array of numbers."""
    if np.asarray(x).dtype.kind not in "fc":
        return x
    return run.dual(x, Chunk(np.ones((1, *np.shape(x)), np.asarray(x).dtype)))


def bound(solver: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments of a call by name, with the defaults."""
    given = inspect.signature(solver).bind(*args, **kwargs)
    given.apply_defaults()
    return dict(given.arguments)


def by_name(solver: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments of a call by name, without defaults: a name may exclude another one."""
    return dict(inspect.signature(solver).bind(*args, **kwargs).arguments)


def as_tuple(args: Any) -> tuple[Any, ...]:
    """Further arguments, of which one alone may be no tuple."""
    return args if isinstance(args, tuple) else (args,)


def solve_plainly(
    solver: Any, given: dict[str, Any], extra: tuple[Any, ...], **changed: Any
) -> tuple[Any, bool]:
    """The result of a solver on plain numbers, and whether its functions returned derivatives."""
    options = {**given, **changed}
    if "args" in options:
        options["args"] = ()
    more = options.pop("kwargs", None) or {}
    active = False

    def constant(g: Any, watched: Watched | None) -> Any:
        def value(*x: Any) -> Any:
            nonlocal active
            y = call(g, *(x if watched is None else map(watched, x)), *extra, **more)
            active = active or is_active((y,))
            return stop_gradient(y)

        return value if callable(g) else g

    def solve(watched: Watched | None) -> Any:
        plainly = dict(options)
        for name, value in options.items():
            if name in _CALLABLES:
                plainly[name] = constant(value, watched)
            elif name not in _AS_THEY_ARE:
                plainly[name] = stop_gradient(value)
        return solver(**plainly)

    found = on_plain_numbers(solve, lambda: active)
    return found, active
