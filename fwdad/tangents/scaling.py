"""Scaled lanes: products of lanes and scalings, and sums of them multiplied out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.ops.record import Layout, own_op
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.placed import most_terms
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import quiet

# Beyond this many distinct lanes a sum is multiplied out. A scalar's scalings are Python floats
# (about 60 ns each in a sum), an array's are arrays of the primal's size.
MAX_ARRAY_TERMS = 4
MAX_SCALAR_TERMS = 32

_KNOWN = {float, np.ndarray}
_DOUBLE = np.dtype(np.float64)


def _all_finite(d: Any) -> bool:
    if type(d) is float:  # the commonest scaling
        return math.isfinite(d)
    d = plain(d)
    if isinstance(d, np.ndarray):
        # One pass, no temporary; an overflow only sends finite numbers down the careful path.
        # (`d.dot(d)` is quicker, and warns of the overflow.)
        return math.isfinite(abs(np.vdot(d, d)))
    return math.isfinite(abs(d))


@own_op(layout=Layout.ELEMENTWISE, pure=True)
def scale_lanes(d: Any, lanes: Any) -> Any:
    """Multiply lanes by a partial; an exactly zero lane element stays exactly zero.

    Shapes: ``d`` has the primal's shape, ``lanes`` broadcasts to ``(N, *shape)``.
    """
    if type(lanes) is not np.ndarray or type(d) not in _KNOWN:
        for x in (d, lanes):
            if hasattr(x, "__fwdad_symbolic__"):  # decided when the tape runs
                if type(d) is float and math.isfinite(d):
                    return d * lanes
                return x.recorder.apply(scale_lanes, (d, lanes), {})
    return quiet()(_product if _all_finite(d) else _select_scaled, d, lanes)


def scaled(d: Any, lanes: Any) -> Any:
    """As :func:`scale_lanes`, but quicker for most arrays; call it in the quiet context."""
    if type(lanes) is np.ndarray or type(lanes) is np.float64:
        if type(d) is np.ndarray:
            if d.dtype is _DOUBLE:
                length = d.dot(d) if d.ndim == 1 else np.vdot(d, d)
                return lanes * d if math.isfinite(length) else _select_scaled(d, lanes)
        elif (type(d) is np.float64 or type(d) is float) and math.isfinite(d):
            return lanes * d
    return scale_lanes(d, lanes)


def _product(d: Any, lanes: Any) -> Any:
    return lanes * d


def _select_scaled(d: Any, lanes: Any) -> Any:
    return np.where(plain(lanes) == 0, 0, lanes * d)


def merge(first: dict[Lanes, Any], second: dict[Lanes, Any]) -> dict[Lanes, Any]:
    """Add two sums of scaled lanes."""
    terms = dict(first)
    for lanes, d in second.items():
        if lanes in terms:
            scaling = terms[lanes]
            terms[lanes] = (1.0 if scaling is None else scaling) + (1.0 if d is None else d)
        else:
            terms[lanes] = d
    return terms


def multiplied_out(terms: dict[Lanes, Any], n: int, shape: tuple[int, ...]) -> Any:
    """Multiply a sum of scaled lanes out; a scaling of one costs nothing."""
    for lanes in terms:
        if lanes.placed:
            return _combine_placed(terms, n, shape)
    total: Any = None
    fresh = False  # whether `total` is nobody else's, so that it may be added into
    for lanes, d in terms.items():
        one = d is None or (type(d) is float and d == 1.0)
        term = lanes.array if one else scale_lanes(d, lanes.array)
        if total is None:
            total, fresh = term, not one
        elif fresh and type(total) is np.ndarray and _fits(term, total):
            total += term
        elif not one and type(term) is np.ndarray and _fits(total, term):
            term += total
            total, fresh = term, True
        else:
            total, fresh = total + term, True
    if total is None:
        return np.zeros((n, *shape))
    if total.shape != (n, *shape):
        total = np.broadcast_to(total, (n, *shape))
    return total


def _combine_placed(terms: dict[Lanes, Any], n: int, shape: tuple[int, ...]) -> Any:
    """Write coefficients to their places; what has none is multiplied out and added."""
    placed: dict[Any, Any] = {lanes: d for lanes, d in terms.items() if lanes.placed}
    rest = {lanes: d for lanes, d in terms.items() if not lanes.placed}
    if all(type(m) is int for m in shape):
        total = next(iter(placed)).placer(n, shape, placed)
        return total + multiplied_out(rest, n, shape) if rest else total
    for lanes, d in placed.items():  # lengths are unknown: so are places
        rest[Lanes(lanes.array)] = d
    return multiplied_out(rest, n, shape)


def too_many(terms: dict[Lanes, Any], n: int) -> bool:
    """Whether so many terms of an array cost more than lanes that are multiplied out."""
    placed = sum(lanes.placed for lanes in terms)
    return len(terms) - placed > MAX_ARRAY_TERMS or placed > most_terms(n)


def _fits(part: Any, whole: np.ndarray) -> bool:
    return type(part) is np.ndarray and part.shape == whole.shape and part.dtype == whole.dtype


def owned(value: Any, shape: tuple[int, ...]) -> Any:
    """Copy an array that user code could write, as a floating scaling of the given shape."""
    if value.dtype.kind in "biu":
        value = value.astype(np.float64)
        return value if value.shape == shape else np.broadcast_to(value, shape)
    if value.shape == shape:
        return value.copy()
    return np.broadcast_to(value, shape).copy()
