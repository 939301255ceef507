"""A shortcut for the commonest derivative: of a function of one array, in one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.build import Run, run_on_duals
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.scalar import DOUBLE
from fwdad.eager.forward import NUMBERS, taken_apart
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.outcomes import Collector, owned
from fwdad.tangents.alike import alike
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.seeds import fit_doubles, multiplies_out


def push_array(
    f: Callable[..., Any], x: Any, v: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[Any, Any] | None:
    """``y, y_dot`` of ``f(x, *args, **kwargs)``, or None where the general method is needed.

    That is unless x is an array of doubles of rank one or more, v one direction or several stacked
    in front, and no other argument an array.
    """
    fitted = fit_doubles(x, v)
    if fitted is None or SHADOWED or not x.shape or not callable(f):
        return None
    for other in args:
        if type(other) not in NUMBERS:
            return None
    directions, count = fitted
    n = len(directions)
    if not n:
        return None
    with Run(n, eager=multiplies_out(x.size)) as run, run:
        # a view: the lanes of a result are copied if they are somebody else's
        lanes = Lanes(directions[:])
        run.given = tuple((kwargs or {}).values())
        dual = Array(alike(x), (lanes, None, x.shape), run.tag)
        y = run_on_duals(f, (dual, *args), kwargs or {})
        if type(y) is Array and y.tag is run.tag and not (run.errors or run.log.anything()):
            p, t = y.p, y.t
            if type(p) is np.ndarray and p.dtype is DOUBLE and type(t) is Chunk:
                y_dot = t.lanes
                if type(y_dot) is np.ndarray and y_dot.dtype is DOUBLE:
                    y_dot = owned(y_dot)
                    return p, y_dot[0] if count is None else y_dot
        collector = Collector(n)
        result = taken_apart(f, y, [dual, *args], run, has_aux=False, outputs="returned")
        collector.add(0, n, *result)
    outcome = collector.outcome()
    return outcome.y, outcome.pushed(single=count is None)
