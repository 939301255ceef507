r"""Splines through SciPy's images: ``map_coordinates``, ``affine_transform``, ``shift``, ``zoom``.

The spline of order n through an image x has coefficients c, and at coordinates t the values

.. math:: y(t) = \sum_k c_k \prod_a \beta^n(t_a - k_a), \quad c = B^{-1} x

so that y is linear in x, and its derivatives in t are those of the B-splines (Unser, Aldroubi and
Eden 1991, doi:10.1109/34.75515). ``mode`` says which element k is beyond the borders, and where t
is then. At a knot the derivative is that of the piece which begins there; at the last element of
``mode="constant"`` and ``"wrap"`` it is that of the piece before, since none begins.

SciPy's filter ``spline_filter1d`` multiplies by the inverse of B, which is symmetric where the
borders repeat (``reflect``) or wrap around. Where they are mirrored, DB is, with D = 1 but for the
two ends, which count half. Of short axes the adjoint is that of the filter's own matrix.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import Space, into, transpose
from fwdad.rules.core.by_name import Lazy, apply_law, refuse_symbols, transpose_by_name
from fwdad.rules.core.define import call_rule, frule, linear
from fwdad.rules.core.registry import when_imported
from fwdad.rules.gathering import scatter_add
from fwdad.rules.scipy_ndimage import extended, inside, keep_derivatives, law_by_name, result_dtype
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import cast
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero

ndimage = Lazy("scipy.ndimage")

_PAD = 12  # SciPy's: by so much it extends images whose borders have no filter of their own
_SHORT = 50  # SciPy's filter of axes so short differs from the inverse of B where borders repeat
_MIRRORED = {"mirror", "constant", "grid-constant", "wrap"}  # how their coefficients go on
_FOLDED = {"grid-mirror": "reflect", "grid-wrap": "wrap", "wrap": "mirror", "constant": "mirror"}


# -- from an image to the coefficients


def _filter_law(
    function: Any,
    x: Any,
    order: int = 3,
    axis: int = -1,
    output: Any = np.float64,
    mode: str = "mirror",
) -> Chunk:
    """All lanes at once."""
    dtype = result_dtype(x, None, output)
    return Chunk(function(x.lanes, order, axis % x.ndim + 1, dtype, mode))


def _filtered_back(lanes: Any, order: int, axis: int, mode: str) -> Any:
    """The adjoint of the filter along an axis of all lanes; see the module."""
    n = lanes.shape[axis]
    if order < 2 or n < 2:
        return lanes
    if n < _SHORT:
        matrix = ndimage.spline_filter1d(np.eye(n), order, 0, mode=mode)
        return np.moveaxis(np.tensordot(lanes, matrix, (axis, 0)), -1, axis)
    ends = np.ones((n,) + (1,) * (lanes.ndim - 1 - axis))
    if mode in _MIRRORED:
        ends[[0, -1]] = 0.5
    return ends * ndimage.spline_filter1d(lanes / ends, order, axis, _wide(lanes), mode)


def _wide(x: Any) -> np.dtype[Any]:
    """The dtype of coefficients; SciPy would warn if it were real and x complex."""
    return np.result_type(x.dtype, np.float64)


@transpose_by_name("scipy.ndimage.spline_filter1d", argnum=0)
def spline_filter1d_transpose(
    y_bar: Any,
    input: Space,  # noqa: A002  (SciPy's own name)
    order: int = 3,
    axis: int = -1,
    output: Any = np.float64,
    mode: str = "mirror",
) -> Any:
    """The filter itself; where the borders are mirrored, the ends count half."""
    refuse_symbols(y_bar)
    lanes = _filtered_back(y_bar.lanes, order, axis % input.ndim + 1, mode)
    return cast(into(input, Chunk(lanes)), input.dtype)


def _all_axes_law(
    function: Any, x: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror"
) -> Chunk:
    """All lanes, along one axis after the other."""
    lanes, dtype = x.lanes, result_dtype(x, None, output)
    for axis in range(1, x.ndim + 1):
        lanes = ndimage.spline_filter1d(lanes, order, axis, dtype, mode)
    return Chunk(lanes.astype(dtype))


@transpose_by_name("scipy.ndimage.spline_filter", argnum=0)
def spline_filter_transpose(
    y_bar: Any,
    input: Space,  # noqa: A002  (SciPy's own name)
    order: int = 3,
    output: Any = np.float64,
    mode: str = "mirror",
) -> Any:
    """The filters along all axes, which commute."""
    refuse_symbols(y_bar)
    lanes = y_bar.lanes
    for axis in range(1, input.ndim + 1):
        lanes = _filtered_back(lanes, order, axis, mode)
    return cast(into(input, Chunk(lanes)), input.dtype)


for _name, _law in (("spline_filter1d", _filter_law), ("spline_filter", _all_axes_law)):
    linear(f"scipy.ndimage.{_name}", argnums="input")
    when_imported(f"scipy.ndimage.{_name}", keep_derivatives)
    law_by_name(f"scipy.ndimage.{_name}", _law)


# -- from the coefficients to values


@functools.cache
def _pieces(order: int) -> np.ndarray:
    """Coefficients, lowest power first, of each piece of a B-spline on [0, order + 1]."""
    pieces = np.ones((1, 1))
    for n in range(1, order + 1):
        rising = np.zeros((n + 1, n + 1))
        falling = np.zeros((n + 1, n + 1))
        rising[:-1, :-1] = pieces * np.arange(n)[:, None]  # (t + j) of piece j
        rising[:-1, 1:] += pieces
        falling[1:, :-1] = pieces * np.arange(n, 0, -1)[:, None]  # (n + 1 - j - t) of piece j - 1
        falling[1:, 1:] -= pieces
        pieces = (rising + falling) / n
    return pieces


def _weights(t: Any, order: int, nu: int) -> list[Any]:
    """The derivative of that order of the weight of each element around, t behind a knot."""
    found = []
    for piece in _pieces(order)[::-1]:
        derivative = np.polynomial.polynomial.polyder(piece, nu)
        value = np.zeros(t.shape)
        for coefficient in derivative[::-1]:
            value = value * t + coefficient
        found.append(value)
    return found


def _brought_in(t: np.ndarray, n: int, mode: str) -> tuple[Any, Any]:
    """A coordinate where the elements of an axis are, and its derivative by what it was."""
    period = {"mirror": 2 * n - 2, "reflect": 2 * n, "wrap": n - 1, "grid-wrap": n}.get(mode)
    if period is None or n == 1:
        return (t, 1.0) if period is None else (0.0 * t, 0.0)
    out = (t < 0) | (t > n - 1)
    inner = t % period
    if mode == "wrap":  # SciPy's first element is the last one, from below
        inner = np.where((t < 0) & (inner == 0), period, inner)
    t = np.where(out, inner, t)
    turned = out & (t >= n) & (mode in {"mirror", "reflect"})
    back = period - t - (1 if mode == "reflect" else 0)
    return np.where(turned, back, t), np.where(turned, -1.0, 1.0)


def _along_axis(
    t: np.ndarray, n: int, order: int, mode: str, nu: int
) -> tuple[list[Any], list[Any]]:
    """The elements that a value is made of along an axis of length n, and their weights."""
    t = np.nan_to_num(t, nan=-1.0)  # outside, as SciPy says of NaN
    beyond = (t < 0) | (t > n - 1) if mode == "constant" else False
    t, slope = _brought_in(t, n, mode)
    half = 0.0 if order % 2 else 0.5
    knot = np.floor(t + half)
    if mode in {"constant", "wrap"} and order % 2 and n > 1:
        knot = np.where(t == n - 1, n - 2, knot)
    first = np.clip(knot, -(2.0**53), 2.0**53).astype(np.int64) - order // 2
    scale = np.where(beyond, 0.0, slope**nu)
    weights = [scale * w for w in _weights(t + half - knot, order, nu)]
    ends = _FOLDED.get(mode, mode)
    return [inside(first + k, n, ends) for k in range(order + 1)], weights


def _taps(
    at: Any, lengths: Sequence[int], nu: Sequence[int], order: int, mode: str
) -> Iterator[tuple[Any, Any]]:
    """The flat places of the elements that values are made of, each with its weights."""
    axes = [
        list(zip(*_along_axis(t, n, order, mode, m), strict=True))
        for t, n, m in zip(at, lengths, nu, strict=True)
    ]
    for chosen in itertools.product(*axes):
        place, weight = chosen[0]
        for n, (k, w) in zip(lengths[1:], chosen[1:], strict=True):
            place, weight = place * n + k, weight * w
        yield place, weight


def spline_values(c: Any, at: Any, nu: Sequence[int], order: int, mode: str) -> Any:
    """A derivative of the spline with coefficients c at coordinates, ``nu`` times along each axis.

    Beyond the borders of ``mode="constant"`` it is zero.
    """
    if max(nu) > order:
        return np.zeros(at.shape[1:], c.dtype)
    flat = np.reshape(c, (-1,))
    return sum((flat[k] * w for k, w in _taps(at, c.shape, nu, order, mode)), ZERO)


def _tangent(primals: Any, tangents: Any, y: Any, nu: Sequence[int], order: int, mode: str) -> Any:
    """The tangent of values: by the coefficients, and by the coordinates along each axis."""
    (c, at), (c_dot, at_dot) = primals, tangents

    def law_of(chunk: Chunk) -> Chunk:
        lanes = [spline_values(lane, at, nu, order, mode) for lane in chunk.lanes]
        return Chunk(np.stack(lanes))

    options = {"nu": nu, "order": order, "mode": mode}
    y_dot = apply_law(spline_values, (c_dot, at), 0, law_of, y, **options)
    if isinstance(at_dot, Zero):
        return y_dot
    for axis in range(c.ndim):
        more = tuple(m + (a == axis) for a, m in enumerate(nu))
        y_dot = y_dot + at_dot[axis] * spline_values(c, at, more, order, mode)
    return y_dot


@frule(spline_values, argnums=("c", "at"))
def spline_values_frule(primals, tangents, *, nu, order, mode):
    """Push tangents through values of a spline; see the module."""
    c, at = primals
    for primal in primals:
        refuse_symbols(primal)
    y = spline_values(c, at, nu, order, mode)
    return y, _tangent(primals, tangents, y, nu, order, mode)


@transpose(spline_values)
def spline_values_transpose(
    y_bar: Any, c: Space, at: Any, nu: Sequence[int], order: int, mode: str
) -> Any:
    """Give each cotangent back to the elements around, by their weights."""
    refuse_symbols(y_bar)
    flat = Space((c.size,), y_bar.dtype)
    taps = _taps(at, c.shape, nu, order, mode)
    c_bar: Any = sum((scatter_add(y_bar * w, k, flat) for k, w in taps), ZERO)
    return cast(into(c, np.reshape(c_bar, c.shape)), c.dtype)


# -- what users call


def _prepared(
    x: Any, x_dot: Any, at: Any, order: int, mode: str, cval: Any, prefilter: bool
) -> tuple[Any, Any, Any, str]:
    """Coefficients and their tangent, coordinates among them, and how these go on."""
    mode = "reflect" if mode == "grid-mirror" else mode
    filters = prefilter and order > 1
    if filters and mode in {"nearest", "grid-constant"}:
        at = at + _PAD
        widths = [2 * _PAD + 1] * x.ndim, [_PAD] * x.ndim
        ends = mode.removeprefix("grid-")
        x = extended(x, *widths, ends, cval)
        x_dot = x_dot if isinstance(x_dot, Zero) else extended(x_dot, *widths, ends, 0.0)
    if filters:
        options = {"order": order, "output": _wide(x), "mode": mode}
        x, x_dot = call_rule(ndimage.spline_filter, (x,), (x_dot,), **options)
    if mode == "grid-constant":  # what stands beyond is the same everywhere
        at, mode = at + 1, "nearest"
        x, x_dot = np.pad(x, 1, constant_values=cval), np.pad(x_dot, 1)
    return x, x_dot, at, mode


def _given(_shapes: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    return primals[0], tangents[0]


def _affine(shapes: Any, primals: Any, tangents: Any, output_shape: Any = None) -> tuple[Any, Any]:
    """What the matrix makes of the places in the result, and the offset; in SciPy's own order."""
    (matrix, *offset), (matrix_dot, *offset_dot) = primals, tangents
    n, axes = len(shapes[0]), (1,) * len(shapes[1])
    grid = np.indices(shapes[1], float)
    if matrix.ndim == 2 and matrix.shape[1] == n + 1:
        offset, offset_dot = [matrix[:n, n]], [matrix_dot[:n, n]]

    def moved(at: Any, offset: Any) -> Any:
        return at + np.reshape(np.broadcast_to(offset[0], (n,)), (n, *axes)) if offset else at

    def turned(matrix: Any) -> Any:
        rows = [np.reshape(matrix[:n, k], (n, *axes)) * grid[k] for k in range(len(grid))]
        return sum(rows[1:], rows[0])

    if matrix.ndim == 2:
        return moved(turned(matrix), offset), moved(turned(matrix_dot), offset_dot)
    matrix = np.reshape(matrix, (n, *axes))
    at = moved(grid, [o / matrix.ravel() for o in offset]) * matrix
    return at, moved(np.reshape(matrix_dot, (n, *axes)) * grid, offset_dot)


def _shifted(shapes: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The places in the result, less the shift."""
    n, axes = len(shapes[0]), (1,) * len(shapes[0])
    shift, shift_dot = (
        np.reshape(np.broadcast_to(v[0], (n,)), (n, *axes)) for v in (primals, tangents)
    )
    return np.indices(shapes[1], float) - shift, -shift_dot


def _zoomed(
    shapes: Any,
    _primals: Any,
    _tangents: Any,
    zoom: Any = None,
    *,
    grid_mode: bool = False,
) -> tuple[Any, Any]:
    """The places in the result, from corner to corner of the image, or of its outer elements."""
    n, m = (np.reshape(s, (-1,) + (1,) * len(s)) - (0 if grid_mode else 1) for s in shapes)
    factor = np.where(m == 0, 1.0, n / np.where(m == 0, 1, m))
    grid = np.indices(shapes[1], float)
    return ((grid + 0.5) * factor - 0.5 if grid_mode else grid * factor), ZERO


def _frule(
    function: Any,
    coordinates: Callable[..., tuple[Any, Any]],
    primals: Any,
    tangents: Any,
    *,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    **options: Any,
) -> Any:
    """Push tangents through a function of SciPy's that reads an image at some coordinates."""
    for primal in primals:
        refuse_symbols(primal)
    x, *rest = (p if hasattr(p, "dtype") else np.asarray(p) for p in primals)
    x_dot, *rest_dot = tangents
    given = {**options, "mode": mode, "prefilter": prefilter}
    y = function(*primals, output=output, order=order, cval=cval, **given)
    if all(isinstance(t, Zero) for t in tangents) or not x.size:
        return y, ZERO
    if order == 0:  # the same function of the places of all elements tells which it chose
        places = np.arange(float(x.size)).reshape(x.shape)
        found = function(
            places, *map(plain, rest), output=np.float64, order=0, cval=-1.0, **given
        ).astype(np.int64)
        at = np.stack(np.unravel_index(np.maximum(found, 0), x.shape)) * 1.0
        at, at_dot, mode = np.where(found < 0, -1.0, at), ZERO, "constant"
    else:
        at, at_dot = coordinates((x.shape, y.shape), rest, rest_dot, **options)
    c, c_dot, at, mode = _prepared(x, x_dot, at, order, mode, cval, prefilter)
    y_dot = _tangent((c, at), (c_dot, at_dot), y, (0,) * x.ndim, order, mode)
    return y, cast(y_dot, y.dtype) if y.dtype.kind in "fc" else y_dot


def _register(name: str, argnums: Sequence[str], coordinates: Callable[..., Any]) -> None:
    dotted = f"scipy.ndimage.{name}"

    @frule(dotted, argnums=argnums)
    def body(primals: Any, tangents: Any, **options: Any) -> Any:
        return _frule(getattr(ndimage, name), coordinates, primals, tangents, **options)

    when_imported(dotted, keep_derivatives)


_register("map_coordinates", ("input", "coordinates"), _given)
_register("affine_transform", ("input", "matrix", "offset"), _affine)
_register("shift", ("input", "shift"), _shifted)
_register("zoom", ("input",), _zoomed)
