"""Filters and tables: ``convolve``, ``correlate``, ``interp``, and padding with zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import Space, into, transpose
from fwdad.rules.core.define import frule, multilinear
from fwdad.rules.transposes import getitem_transpose
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import array_of, is_known, zeros

# -- padding: Python code in NumPy, but one of the closed list


@transpose(np.pad, argnum=0)
def pad_transpose(
    y_bar: Any, array: Space, pad_width: Any, mode: str = "constant", **_: Any
) -> Any:
    """Cut the padding off."""
    widths = np.broadcast_to(pad_width, (array.ndim, 2)).tolist()
    cut = tuple(
        slice(before, before + n) for (before, _), n in zip(widths, array.shape, strict=True)
    )
    return into(array, y_bar[cut])


# -- convolution and correlation

multilinear(np.convolve, argnums=(0, 1), signature="(a, v, mode='full')")
multilinear(np.correlate, argnums=(0, 1), signature="(a, v, mode='valid')")

_MODES = {0: "valid", 1: "same", 2: "full"}


def _as_full(y_bar: Any, n: int, m: int, mode: Any, *, reversed_when_longer: bool) -> Any:
    """Place the cotangent at its positions in the full result, of length n + m - 1.

    The short operand slides along the long one. "same" starts (short - 1) // 2 in; where
    ``correlate`` has exchanged its operands and turned the result round, short // 2.
    """
    mode = _MODES.get(mode, mode)
    if mode == "full":
        return y_bar
    known = is_known(n, m, *y_bar.shape)
    short = min(n, m) if known else np.minimum(_number(n), _number(m))
    start = short - 1 if mode == "valid" else (short - 1) // 2
    if mode == "same" and reversed_when_longer:
        turned = short // 2
        start = (turned if m > n else start) if known else np.where(m > n, turned, start)
    if not known:
        array = zeros((n + m - 1,), y_bar.dtype)
        array[start : start + y_bar.shape[0]] = y_bar
        return array
    return np.pad(y_bar, (start, n + m - 1 - start - y_bar.shape[0]))


def _vector(x: Any) -> Any:
    """An operand that may be a number or a list."""
    return x if getattr(x, "ndim", 0) else np.atleast_1d(x)


def _number(n: Any) -> Any:
    """A length as a number of the tape."""
    return n + 0


@transpose(np.convolve, argnum=0)
def convolve_transpose_a(y_bar: Any, a: Space, v: Any, mode: Any = "full") -> Any:
    """Correlate with v: a[i] reached y[i + k] with weight v[k]."""
    v = _vector(v)
    full = _as_full(y_bar, a.size, v.shape[0], mode, reversed_when_longer=False)
    return into(a, np.correlate(full, v, "valid").reshape(a.shape))


@transpose(np.convolve, argnum=1)
def convolve_transpose_v(y_bar: Any, a: Any, v: Space, mode: Any = "full") -> Any:
    """A convolution is symmetric in its operands."""
    return convolve_transpose_a(y_bar, v, a, mode)


@transpose(np.correlate, argnum=0)
def correlate_transpose_a(y_bar: Any, a: Space, v: Any, mode: Any = "valid") -> Any:
    """Convolve with v: c[k] = Σₙ a[n + k] conj(v[n])."""
    v = _vector(v)
    full = _as_full(y_bar, a.size, v.shape[0], mode, reversed_when_longer=True)
    return into(a, np.convolve(full, v, "valid").reshape(a.shape))


@transpose(np.correlate, argnum=1)
def correlate_transpose_v(y_bar: Any, a: Any, v: Space, mode: Any = "valid") -> Any:
    """Correlate the conjugate cotangent with a; c is antilinear in v."""
    a = _vector(a)
    full = _as_full(y_bar, a.shape[0], v.size, mode, reversed_when_longer=True)
    return into(v, np.conjugate(np.correlate(full, a, "valid"))[::-1].reshape(v.shape))


# -- linear interpolation in a table


@frule(np.interp, argnums=("x", "xp", "fp", "left", "right"))
def interp_frule(primals, tangents, period=None):
    r"""Push tangents through ``numpy.interp``.

    .. math::
        y = (1 - s) f_j + s f_{j+1}, \quad s = \frac{x - x_j}{x_{j+1} - x_j}, \quad
        \dot y = (1 - s) \dot f_j + s \dot f_{j+1}
            + \frac{f_{j+1} - f_j}{x_{j+1} - x_j}
              \bigl(\dot x - (1 - s) \dot x_j - s \dot x_{j+1}\bigr)

    At a knot the slope is that to the right of it; at the last knot, that to the left. Outside the
    table y is f at the end, or ``left`` and ``right``, which may be active too.
    """
    x, xp, fp, left, right = primals
    x_dot, xp_dot, fp_dot, left_dot, right_dot = tangents
    y = np.interp(x, xp, fp, left, right, period)
    x, xp, fp = (t if hasattr(t, "dtype") else np.asarray(t) for t in (x, xp, fp))
    if period is not None:
        x, xp, order = _unrolled(x, xp, abs(period))
        fp, xp_dot, fp_dot = fp[order], xp_dot[order], fp_dot[order]
        left = right = None
    at, table = array_of(x), array_of(xp)
    j, k = _segments(at, table)
    s = _weights(x, xp, j, k)
    slope = np.where(
        (at >= table[0]) & (at <= table[-1]) & (j < k), (fp[k] - fp[j]) / _widths(xp, j, k), 0
    )
    y_dot = (
        fp_dot[j] * (1 - s) + fp_dot[k] * s + (x_dot - xp_dot[j] * (1 - s) - xp_dot[k] * s) * slope
    )
    if left is not None:
        y_dot = np.where(at < table[0], left_dot, y_dot)
    if right is not None:
        y_dot = np.where(at > table[-1], right_dot, y_dot)
    return y, y_dot


def _unrolled(x: Any, xp: Any, period: float) -> tuple[Any, Any, np.ndarray]:
    """Bring x and the knots into one period, sorted, with a knot beyond either end."""
    x, xp = x % period, xp % period
    order = np.argsort(np.asarray(plain(xp)))
    order = np.concatenate([order[-1:], order, order[:1]])
    shift = np.zeros(len(order))
    shift[0], shift[-1] = -period, period
    return x, xp[order] + shift, order


def _segments(at: np.ndarray, table: np.ndarray) -> tuple[Any, Any]:
    """The knots on either side of each x; both the same in a table of one."""
    last = table.shape[0] - 1
    highest = max(last - 1, 0) if is_known(last) else np.maximum(last - 1, 0)
    j = np.clip(np.searchsorted(table, at, side="right") - 1, 0, highest)
    return j, np.minimum(j + 1, last)


def _widths(xp: Any, j: Any, k: Any) -> Any:
    width = xp[k] - xp[j]
    return np.where(np.equal(plain(width), 0), 1, width)


def _weights(x: Any, xp: Any, j: Any, k: Any) -> Any:
    return np.clip((x - xp[j]) / _widths(xp, j, k), 0, 1)


@transpose(np.interp, argnum=2)
def interp_transpose_fp(
    y_bar: Any,
    x: Any,
    xp: Any,
    fp: Space,
    left: Any = None,
    right: Any = None,
    period: float | None = None,
) -> Any:
    """Give each cotangent back to the two knots around its x, by their weights."""
    x, xp = (t if hasattr(t, "dtype") else np.asarray(t) for t in (x, xp))
    order = np.arange(fp.size)
    if period is not None:
        x, xp, order = _unrolled(x, xp, abs(period))
        left = right = None
    at, table = array_of(x), array_of(xp)
    j, k = _segments(at, table)
    s = _weights(x, xp, j, k)
    if left is not None:
        y_bar = np.where(at < table[0], 0, y_bar)
    if right is not None:
        y_bar = np.where(at > table[-1], 0, y_bar)
    first = getitem_transpose(y_bar * (1 - s), fp, order[j])
    return into(fp, first + getitem_transpose(y_bar * s, fp, order[k]))
