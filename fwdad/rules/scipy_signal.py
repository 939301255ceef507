r"""Filters of SciPy's signals: recursive ones, those that change the rate, and ones in the plane.

``lfilter`` and what is made of it. With the coefficients divided by a₀ the filter is

.. math:: A y = B x + z_i \;\Rightarrow\; A \dot y = \dot B x + B \dot x + \dot z_i - \dot A y

so that its tangents are filtered as x is, and the derivative with respect to the denominator is the
output, filtered once more. The adjoint of a filter is the filter that runs backwards in time.

``filtfilt``, ``decimate``, ``resample_poly``, … are differentiated through their source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError
from fwdad.rules.core.adjoints import Space, into, transpose
from fwdad.rules.core.by_name import Lazy, apply_law, refuse_symbols, transpose_by_name
from fwdad.rules.core.define import call_rule, frule, locally_constant, multilinear
from fwdad.rules.core.registry import when_imported
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import cast, law
from fwdad.tangents.zero import ZERO, Zero

sigtools = Lazy("scipy.signal._sigtools")
signaltools = Lazy("scipy.signal._signaltools")
upfirdn = Lazy("scipy.signal._upfirdn")
peak_finding = Lazy("scipy.signal._peak_finding_utils")


def _array(x: Any) -> Any:
    return x if hasattr(x, "dtype") else np.asarray(x)


def _lane_axis(axis: int, ndim: int) -> int:
    """An axis of a value as one of its lanes."""
    return axis % ndim + 1


# -- recursive filters


def filtered(b: Any, x: Any, a: Any, axis: int) -> Any:
    """The output of a filter that begins at rest, and behind it the state that it ends in."""
    refuse_symbols([b, x, a])
    lengths = list(x.shape)
    lengths[axis] = max(len(a), len(b)) - 1
    rest = np.zeros(lengths, np.result_type(b, a, x, np.float32))
    y, zf = sigtools._linear_filter(b, a, x, axis, rest)  # noqa: SLF001  (what lfilter calls)
    return np.concatenate([y, zf], axis)


def from_state(zi: Any, a: Any, n: int, axis: int) -> Any:
    """The same of a filter that begins in a state, and gets n zeros."""
    refuse_symbols([zi, a])
    lengths = list(zi.shape)
    lengths[axis] = n
    dtype = np.result_type(zi, a, np.float32)
    nothing = np.zeros(zi.shape[axis] + 1, dtype), np.zeros(lengths, dtype)
    y, zf = sigtools._linear_filter(nothing[0], a, nothing[1], axis, zi.astype(dtype))  # noqa: SLF001
    return np.concatenate([y, zf], axis)


@frule(filtered, argnums=("b", "x", "a"))
def filtered_frule(primals, tangents, *, axis):
    """Push tangents through a filter from rest; see the module."""
    b, x, a = primals
    b_dot, x_dot, a_dot = tangents
    y = filtered(b, x, a, axis)
    dot = _by_b(b_dot, x, a, axis, y) + _by_x(b, x_dot, a, axis, y)
    if isinstance(a_dot, Zero):
        return y, dot
    return y, dot - y * (a_dot[0] / a[0]) - _by_a(a_dot, a, y, x.shape[axis], axis)


def _by_a(a_dot: Any, a: Any, y: Any, n: int, axis: int) -> Any:
    """The output, filtered by the tangents of its own coefficients, of which a[0] is made 1."""
    scaled = (a_dot - (a / a[0]) * a_dot[0]) / a[0]
    output = y[(*(slice(None),) * (axis % y.ndim), slice(n))]
    return _by_b(_longer(scaled, y.shape[axis] - n + 1), output, a / a[0], axis, y)


def _by_b(b_dot: Any, x: Any, a: Any, axis: int, y: Any) -> Any:
    def law_of(chunk: Chunk) -> Chunk:
        return Chunk(np.stack([filtered(lane, x, a, axis) for lane in chunk.lanes]))

    return apply_law(filtered, (b_dot, x, a), 0, law_of, y, axis=axis)


def _by_x(b: Any, x_dot: Any, a: Any, axis: int, y: Any) -> Any:
    def law_of(chunk: Chunk) -> Chunk:
        return Chunk(filtered(b, chunk.lanes, a, _lane_axis(axis, chunk.ndim)))

    return apply_law(filtered, (b, x_dot, a), 1, law_of, y, axis=axis)


@frule(from_state, argnums=("zi", "a"))
def from_state_frule(primals, tangents, *, n, axis):
    """Push tangents through a filter that gets zeros; see the module."""
    zi, a = primals
    zi_dot, a_dot = tangents
    y = from_state(zi, a, n, axis)

    def law_of(chunk: Chunk) -> Chunk:
        return Chunk(from_state(chunk.lanes, a, n, _lane_axis(axis, chunk.ndim)))

    dot = apply_law(from_state, (zi_dot, a), 0, law_of, y, n=n, axis=axis)
    if isinstance(a_dot, Zero):
        return y, dot
    return y, dot - _by_a(a_dot, a, y, n, axis)


def _backwards(bar: Any, a: Any, n: int, axis: int) -> Any:
    """The cotangents of n outputs and of the state, filtered from the end on; the axis is last.

    Before them stand those of the state: what the delays of the reversed filter begin with.
    """
    bar = np.flip(np.moveaxis(bar.lanes, _lane_axis(axis, bar.ndim), -1), -1)
    last, y_bar = bar[..., : bar.shape[-1] - n], bar[..., bar.shape[-1] - n :]
    count = last.shape[-1]
    a = np.conjugate(np.concatenate([a, np.zeros(count + 1 - len(a))]) / a[0])
    state = np.zeros_like(last, np.result_type(last, a))
    for m in range(count):
        state[..., m] = -np.flip(last, -1)[..., : count - m] @ a[m + 1 :]
    one = np.ones(1, state.dtype)
    w, _ = signaltools.lfilter(one, a, y_bar, -1, state)
    return np.concatenate([last, w], -1)


@transpose(filtered, argnum=0)
def filtered_transpose_b(y_bar: Any, b: Space, x: Any, a: Any, axis: int) -> Any:
    """Products of what is delayed with the input."""
    refuse_symbols(y_bar)
    n, k = x.shape[axis], y_bar.shape[axis] - x.shape[axis]
    w = _backwards(y_bar, a, n, axis)
    x = np.conjugate(np.flip(np.moveaxis(x, axis, -1), -1)).ravel()
    columns = [w[..., k - m : k - m + n].reshape(y_bar.n, -1) @ x for m in range(*b.shape)]
    return cast(into(b, Chunk(np.stack(columns, -1) / np.conjugate(a[0]))), b.dtype)


@transpose(filtered, argnum=1)
def filtered_transpose_x(y_bar: Any, b: Any, x: Space, a: Any, axis: int) -> Any:
    """The filter that runs backwards."""
    refuse_symbols(y_bar)
    n, k = x.shape[axis], y_bar.shape[axis] - x.shape[axis]
    w = _backwards(y_bar, a, n, axis)
    b = np.conjugate(b / a[0])
    x_bar = sum(b_m * w[..., k - m : k - m + n] for m, b_m in enumerate(b))
    x_bar = np.moveaxis(np.flip(x_bar, -1), -1, _lane_axis(axis, x.ndim))
    return cast(into(x, Chunk(x_bar)), x.dtype)


@transpose(from_state)
def from_state_transpose(y_bar: Any, zi: Space, a: Any, n: int, axis: int) -> Any:
    """What the reversed filter ends in."""
    refuse_symbols(y_bar)
    w = _backwards(y_bar, a, n, axis)
    zi_bar = np.flip(w[..., n:], -1)
    return cast(into(zi, Chunk(np.moveaxis(zi_bar, -1, _lane_axis(axis, zi.ndim)))), zi.dtype)


@frule("scipy.signal._signaltools.lfilter", argnums=("b", "a", "x", "zi"))
def lfilter_frule(primals, tangents, *, axis=-1):
    """Push tangents through ``lfilter``; see the module."""
    b, a = (np.atleast_1d(_array(c)) for c in primals[:2])
    x = _array(primals[2])
    zi = primals[3] if len(primals) > 3 else None
    b_dot, a_dot, x_dot, zi_dot = (*tangents, ZERO)[:4]
    for primal in (b, a, x, zi):
        refuse_symbols(primal)
    y = signaltools.lfilter(b, a, x, axis, zi)
    _, dot = call_rule(filtered, (b, x, a), (b_dot, x_dot, a_dot), axis=axis)
    n, rank = x.shape[axis], axis % x.ndim
    if zi is not None:
        lengths = list(x.shape)
        lengths[axis] = max(len(a), len(b)) - 1
        zi, zi_dot = (np.broadcast_to(z, lengths) for z in (_array(zi), zi_dot))
        dot = dot + call_rule(from_state, (zi, a), (zi_dot, a_dot), n=n, axis=axis)[1]
    if isinstance(dot, Zero):
        return y, ZERO if zi is None else (ZERO, ZERO)
    before = (slice(None),) * rank
    y_dot = dot[(*before, slice(n))]
    return y, (y_dot if zi is None else (y_dot, dot[(*before, slice(n, None))]))


def _longer(v: Any, length: int) -> Any:
    """Coefficients, with zeros behind them."""
    if isinstance(v, Zero) or v.shape[0] == length:
        return v
    return np.pad(v, (0, length - v.shape[0]))


@frule("scipy.signal._signaltools.sosfilt", argnums=("sos", "x", "zi"))
def sosfilt_frule(primals, tangents, *, axis=-1):
    """Push tangents through ``sosfilt``: its sections are filters, one behind the other."""
    sos, x = map(_array, primals[:2])
    zi = primals[2] if len(primals) > 2 else None
    sos_dot, x_dot, zi_dot = (*tangents, ZERO)[:3]
    for primal in (sos, x, zi):
        refuse_symbols(primal)
    y = signaltools.sosfilt(sos, x, axis, zi)
    states = []
    for k in range(len(sos)):
        coefficients = sos[k, :3], sos[k, 3:]
        dots = sos_dot[k, :3], sos_dot[k, 3:]
        begun = {} if zi is None else {"zi": _array(zi)[k]}
        state_dot = (zi_dot[k],) if begun else ()
        x, x_dot = call_rule(
            signaltools.lfilter,
            (*coefficients, x),
            (*dots, x_dot, *state_dot),
            axis=axis,
            **begun,
        )
        if begun:
            (x, _), (x_dot, ended) = x, x_dot
            states.append(ended)
    if zi is None:
        return y, x_dot
    return y, (x_dot, ZERO if isinstance(x_dot, Zero) else np.stack(states))


# -- filters that change the rate


multilinear("scipy.signal._upfirdn.upfirdn", argnums=("h", "x"))


def _upfirdn_law(
    h: Any,
    x: Any,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Chunk:
    if isinstance(x, Chunk):
        axis = _lane_axis(axis, x.ndim)
        return Chunk(upfirdn.upfirdn(_array(h), x.lanes, up, down, axis, mode, 0))
    return Chunk(
        np.stack([upfirdn.upfirdn(lane, x, up, down, axis, mode, cval) for lane in h.lanes])
    )


when_imported("scipy.signal._upfirdn.upfirdn", lambda f: law(f)(_upfirdn_law))


@transpose_by_name("scipy.signal._upfirdn.upfirdn", argnum=0)
def upfirdn_transpose_h(
    y_bar: Any,
    h: Space,
    x: Any,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Any:
    """Products with what each coefficient alone returns."""
    refuse_symbols(y_bar)
    lanes = np.reshape(y_bar.lanes, (y_bar.n, -1))
    columns = [
        lanes @ np.conjugate(upfirdn.upfirdn(unit, _array(x), up, down, axis, mode, cval)).ravel()
        for unit in np.eye(*h.shape)
    ]
    return cast(into(h, Chunk(np.stack(columns, -1))), h.dtype)


@transpose_by_name("scipy.signal._upfirdn.upfirdn", argnum=1)
def upfirdn_transpose_x(
    y_bar: Any,
    h: Any,
    x: Space,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Any:
    """The reversed filter, the rates exchanged; by its matrix where the ends are extended."""
    refuse_symbols(y_bar)
    h, n = np.conjugate(_array(h)), x.shape[axis]
    bar = np.moveaxis(y_bar.lanes, _lane_axis(axis, x.ndim), -1)
    if mode in {"constant", None}:
        turned = np.flip(h)
        early = -(len(h) - 1) % up  # zeros before it, so that each element of x is on the grid
        turned = np.concatenate([np.zeros(early, turned.dtype), turned])
        start = (len(turned) - 1) // up
        x_bar = upfirdn.upfirdn(turned, bar, down, up)[..., start : start + n]
        missing = n - x_bar.shape[-1]
        x_bar = np.pad(x_bar, [(0, 0)] * (x_bar.ndim - 1) + [(0, missing)])
    else:
        x_bar = bar @ upfirdn.upfirdn(h, np.eye(n), up, down, -1, mode, 0).T
    x_bar = np.moveaxis(x_bar, -1, _lane_axis(axis, x.ndim))
    return cast(into(x, Chunk(x_bar)), x.dtype)


# -- filters in the plane

_FILL, _SYMMETRIC, _WRAP = 0, 4, 8  # SciPy's codes
_VALID, _SAME, _FULL = 0, 1, 2
_PADS = {_WRAP: "wrap", _SYMMETRIC: "symmetric"}


def _places(lengths: Any, others: Any, boundary: int) -> np.ndarray:
    """The element of the image that each element of its extension is; -1 where it is none."""
    at = np.arange(lengths[0] * lengths[1]).reshape(lengths)
    widths = [(m - 1, m - 1) for m in others]
    if boundary == _FILL:
        return np.pad(at, widths, constant_values=-1)
    if boundary not in _PADS:
        raise MissingRuleError(
            "no adjoint of a convolution whose boundary is not fill, wrap or symm"
        )
    return np.pad(at, widths, mode=_PADS[boundary])


def _whole(y_bar: Any, lengths: Any, others: Any, flip: int, mode: int) -> np.ndarray:
    """The cotangent with zeros where ``mode`` has cut the result."""
    whole = np.zeros((y_bar.n, *(n + m - 1 for n, m in zip(lengths, others, strict=True))),
                     y_bar.lanes.dtype)  # fmt: skip
    starts = {
        _FULL: [0, 0],
        _SAME: [(m - bool(flip)) // 2 for m in others],
        _VALID: [m - 1 for m in others],
    }
    places = (slice(a, a + k) for a, k in zip(starts[mode], y_bar.shape, strict=True))
    whole[(slice(None), *places)] = y_bar.lanes
    return whole


multilinear(
    "scipy.signal._sigtools._convolve2d",
    argnums=("in1", "in2"),
    signature="(in1, in2, flip=1, mode=2, boundary=0, fillvalue=0)",
)


def _convolve2d_law(
    in1: Any, in2: Any, flip: int = 1, mode: int = 2, boundary: int = 0, fillvalue: Any = 0
) -> Chunk:
    one = sigtools._convolve2d  # noqa: SLF001
    if isinstance(in1, Chunk):
        return Chunk(np.stack([one(lane, in2, flip, mode, boundary, 0) for lane in in1.lanes]))
    lanes = [one(in1, lane, flip, mode, boundary, fillvalue) for lane in in2.lanes]
    return Chunk(np.stack(lanes))


when_imported("scipy.signal._sigtools._convolve2d", lambda f: law(f)(_convolve2d_law))


@transpose_by_name("scipy.signal._sigtools._convolve2d", argnum=0)
def convolve2d_transpose_image(
    y_bar: Any,
    in1: Space,
    in2: Any,
    flip: int = 1,
    mode: int = 2,
    boundary: int = 0,
    fillvalue: Any = 0,
) -> Any:
    """The other convolution, of the whole result; what lies beyond is added where it came from."""
    refuse_symbols(y_bar)
    kernel = np.conjugate(_array(in2))
    places = _places(in1.shape, kernel.shape, boundary)
    whole = _whole(y_bar, in1.shape, kernel.shape, flip, mode)
    one = sigtools._convolve2d  # noqa: SLF001
    lanes = np.stack([one(lane, kernel, not flip, _FULL, _FILL, 0) for lane in whole])
    x_bar = np.zeros((y_bar.n, in1.size), lanes.dtype)
    real = places.ravel() >= 0
    np.add.at(x_bar.T, places.ravel()[real], lanes.reshape(y_bar.n, -1)[:, real].T)
    return cast(into(in1, Chunk(x_bar.reshape(y_bar.n, *in1.shape))), in1.dtype)


@transpose_by_name("scipy.signal._sigtools._convolve2d", argnum=1)
def convolve2d_transpose_kernel(
    y_bar: Any,
    in1: Any,
    in2: Space,
    flip: int = 1,
    mode: int = 2,
    boundary: int = 0,
    fillvalue: Any = 0,
) -> Any:
    """At each place of the kernel, products with what it read."""
    refuse_symbols(y_bar)
    in1 = _array(in1)
    places = _places(in1.shape, in2.shape, boundary)
    read = np.conjugate(np.where(places < 0, fillvalue, in1.ravel()[places]))
    whole = _whole(y_bar, in1.shape, in2.shape, flip, mode)
    one = sigtools._convolve2d  # noqa: SLF001
    lanes = np.stack([one(read, lane, 0, _VALID, _FILL, 0) for lane in whole])
    lanes = np.flip(lanes, (1, 2)) if flip else lanes
    return cast(into(in2, Chunk(lanes)), in2.dtype)


# -- where something is, and not what

for _name in ("_local_maxima_1d", "_select_by_peak_distance"):
    locally_constant(f"scipy.signal._peak_finding_utils.{_name}")


@frule(
    "scipy.signal._peak_finding_utils._peak_prominences", argnums="x", signature="(x, peaks, wlen)"
)
def peak_prominences_frule(primals, tangents, peaks, wlen):
    """The height of a peak above the higher one of its bases, which are elements of the signal."""
    (x,), (x_dot,) = primals, tangents
    refuse_symbols([x, peaks])
    y = _, left, right = peak_finding._peak_prominences(x, peaks, wlen)  # noqa: SLF001
    base = np.where(x[left] >= x[right], left, right)
    return y, (x_dot[peaks] - x_dot[base], ZERO, ZERO)


@frule(
    "scipy.signal._peak_finding_utils._peak_widths",
    argnums=("x", "prominences"),
    signature="(x, peaks, rel_height, prominences, left_bases, right_bases)",
)
def peak_widths_frule(primals, tangents, peaks, rel_height, left_bases, right_bases):
    """Where a level line crosses the polygon of the signal, on either side of a peak.

    An end that lies at a base, and not on the line, stays there.
    """
    (x, prominences), (x_dot, prominences_dot) = primals, tangents
    refuse_symbols([x, peaks, prominences])
    y = peak_finding._peak_widths(  # noqa: SLF001
        x, peaks, rel_height, prominences, left_bases, right_bases
    )
    _, level, left, right = y
    level_dot = x_dot[peaks] - rel_height * prominences_dot
    ends = (
        _crossing(x, x_dot, level, level_dot, np.floor(left), np.ceil(left)),
        _crossing(x, x_dot, level, level_dot, np.ceil(right), np.floor(right)),
    )
    return y, (ends[1] - ends[0], level_dot, *ends)


def _crossing(x: Any, x_dot: Any, level: Any, level_dot: Any, below: Any, above: Any) -> Any:
    """How the place moves where the line between two neighbours has some height."""
    step, below, above = above - below, below.astype(int), above.astype(int)
    rise = np.where(step == 0, 1.0, x[above] - x[below])
    part = (level - x[below]) / rise
    moved = level_dot - (1 - part) * x_dot[below] - part * x_dot[above]
    return step / rise * moved
