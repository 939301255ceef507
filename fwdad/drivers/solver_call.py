"""A solver of SciPy's on plain numbers, inside a derivative, with functions that may store things.

What the functions of a program store elsewhere while a solver runs them, and the program reads
afterwards, would be plain numbers, and their derivatives silently zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from fwdad.eager.build import Run
from fwdad.eager.effects import Journal
from fwdad.tangents.chunk import Chunk

R = TypeVar("R")
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
