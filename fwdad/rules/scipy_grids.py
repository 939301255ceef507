r"""Interpolation in SciPy's tables on grids: ``RegularGridInterpolator`` and ``interpn``.

In the cell of a grid that a point lies in, linear interpolation is linear in the values at its
corners, and along each axis in the place in the cell,

.. math::
    s = \frac{x - g_i}{g_{i+1} - g_i}, \quad
    \dot s = \frac{\dot x - (1 - s) \dot g_i - s \dot g_{i+1}}{g_{i+1} - g_i}

On a line of the grid the cell is the one that SciPy takes: the one above, at the last line the one
below. The three functions are SciPy's compiled ones; all else is differentiated through its source.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fwdad.rules.core.by_name import Lazy, refuse_symbols, takes_factors
from fwdad.rules.core.define import frule
from fwdad.tangents.laws.listing import dense
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero

interpnd = Lazy("scipy.interpolate._interpnd")
rgi = Lazy("scipy.interpolate._rgi_cython")


def _stacked(pairs: Any, axis: int = 0) -> tuple[Any, Any]:
    """Values side by side, and their tangents, some of which may be ``ZERO``."""
    values, dots = zip(*pairs, strict=True)
    width = next((t.n for t in dots if not isinstance(t, Zero)), None)
    y = np.stack(values, axis)
    if width is None:
        return y, ZERO
    filled = [
        dense(t, v, width) if isinstance(t, Zero) else t for v, t in zip(values, dots, strict=True)
    ]
    return y, np.stack(filled, axis)


def _array(points: Any, dots: Any) -> tuple[Any, Any]:
    """The array of nested lists of numbers, and its tangent."""
    if not isinstance(points, list):
        return (points if hasattr(points, "dtype") else np.asarray(points)), dots
    if isinstance(dots, Zero):
        dots = [ZERO] * len(points)
    pairs = [_array(p, t) for p, t in zip(points, dots, strict=True)]
    return _stacked(pairs)


@frule(
    "scipy.interpolate._interpnd._ndim_coords_from_arrays",
    argnums=("points",),
    signature="(points, ndim=None)",
)
def ndim_coords_from_arrays_frule(primals, tangents, *, ndim=None):
    """Push tangents through what makes one array of coordinates."""
    (points,), (dots,) = primals, tangents
    if not isinstance(points, tuple):
        points, dots = (points,), (dots,)
    elif isinstance(dots, Zero):
        dots = (ZERO,) * len(points)
    pairs = [_array(p, t) for p, t in zip(points, dots, strict=True)]
    for p, _ in pairs:
        refuse_symbols(p)
    y = interpnd._ndim_coords_from_arrays(tuple(p for p, _ in pairs), ndim)  # noqa: SLF001
    if len(pairs) == 1:
        return y, np.reshape(pairs[0][1], y.shape)
    shape = y.shape[:-1]
    spread = [[np.broadcast_to(v, shape) for v in pair] for pair in pairs]
    return y, _stacked(spread, -1)[1]


@frule("scipy.interpolate._rgi_cython.find_indices", argnums=("grid", "xi"), signature="(grid, xi)")
def find_indices_frule(primals, tangents):
    """Push tangents through the places of points in the cells of a grid; see the module."""
    (grid, xi), (grid_dot, xi_dot) = primals, tangents
    for primal in (*grid, xi):
        refuse_symbols(primal)
    indices, s = rgi.find_indices(grid, xi)
    if isinstance(grid_dot, Zero):
        grid_dot = (ZERO,) * len(grid)
    rows: list[Any] = []
    for k, (g, g_dot) in enumerate(zip(grid, grid_dot, strict=True)):
        if g.shape[0] == 1:  # the place is 0, whatever the point
            rows.append(ZERO)
            continue
        i = np.maximum(indices[k], 0)  # it is -1 where the point is NaN
        moved = xi_dot[k] - (1.0 - s[k]) * g_dot[i] - s[k] * g_dot[i + 1]
        rows.append(moved / (g[i + 1] - g[i]))
    return (indices, s), (ZERO, _stacked(zip(s, rows, strict=True))[1])


@frule(
    "scipy.interpolate._rgi_cython.evaluate_linear_2d",
    argnums=("values", "norm_distances", "grid", "out"),
    signature="(values, indices, norm_distances, grid, out)",
    mutates=(3,),
)
def evaluate_linear_2d_frule(primals, tangents, *, indices):
    """Push tangents through values in the cells of a plane, which it also returns."""
    (values, s, grid, out), (values_dot, s_dot, *_) = primals, tangents
    for primal in (values, s, indices, *grid):
        refuse_symbols(primal)
    new = np.empty_like(out)
    y = rgi.evaluate_linear_2d(values, indices, s, grid, new).copy()
    s = np.where(np.isnan(plain(s)), 0.0, s)  # a point that is NaN counts for no value
    weights = np.stack([1.0 - s, s])
    y_dot = ZERO
    for a, b in itertools.product((0, 1), repeat=2):
        corner = indices[0] + a, indices[1] + b
        y_dot = y_dot + values_dot[corner] * (weights[a, 0] * weights[b, 1])
        if not isinstance(s_dot, Zero):
            by_first, by_second = (2 * a - 1) * weights[b, 1], (2 * b - 1) * weights[a, 0]
            y_dot = y_dot + (s_dot[0] * by_first + s_dot[1] * by_second) * values[corner]
    return (y, new), (y_dot, y_dot)


for _name in (
    "_interpnd._ndim_coords_from_arrays",
    "_rgi_cython.find_indices",
    "_rgi_cython.evaluate_linear_2d",
):
    takes_factors(f"scipy.interpolate.{_name}")  # what they take is a tuple
