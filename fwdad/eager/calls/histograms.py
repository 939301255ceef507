"""``np.histogram`` of duals, whose bins NumPy finds by making ints of floats."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active, is_inert
from fwdad.eager.calls import numpy_calls
from fwdad.eager.calls.dispatch import call, handler
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.lifting.lift import lift
from fwdad.tangents.plain import plain

_OWN: Any = inspect.unwrap(np.histogram)


def _arguments(
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002 (NumPy's name)
    density: Any = None,
    weights: Any = None,
) -> tuple[Any, ...]:
    return a, bins, range, density, weights


@handler(np.histogram)
def _histogram(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Counts do not move with what is counted; edges do, where they are its ends."""
    if is_inert((*args, *kwargs.values())):
        numpy_calls.note_inactive(np.histogram, args, kwargs)
        return np.histogram(*args, **kwargs)
    lifted: Any = lift(_OWN)
    a, bins, ends, density, weights = _arguments(*args, **kwargs)
    a = explicit(call(np.asarray, a))
    if not is_active((a, ends)):
        return lifted(*args, **kwargs)
    edges = call(np.histogram_bin_edges, a, bins, ends, weights)
    plain_ends = None if ends is None else tuple([plain(explicit(end)) for end in ends])
    counted = np.array(plain(a))  # in memory that carries no tangents
    n, _ = lifted(counted, bins, plain_ends, None, weights)
    if density:
        n = n / call(np.diff, edges) / call(np.sum, n)
    return n, edges
