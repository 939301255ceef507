"""Running sums and products."""

import numpy as np

from fwdad.rules.define import ZERO, frule, linear, transpose
from fwdad.tangents.chunk import plain
from fwdad.tangents.laws import cast
from fwdad.tangents.zero import Zero

linear(np.cumsum)


@transpose(np.cumsum)
def cumsum_transpose(y_bar, a, axis=None, dtype=None, out=None):
    """Sum from the other end."""
    if axis is None or a.ndim == 0:
        total = np.flip(np.cumsum(np.flip(y_bar), axis=0))
        return cast(np.reshape(total, a.shape), a.dtype)
    return cast(np.flip(np.cumsum(np.flip(y_bar, axis), axis=axis), axis), a.dtype)


@frule(np.cumprod)
def cumprod_frule(primals, tangents, *, axis, dtype, out):
    r"""Push a tangent through the running product.

    .. math:: \dot y_k = \sum_{i \le k} \dot a_i \prod_{j \le k,\, j \ne i} a_j

    which is :math:`y_k \sum_{i \le k} \dot a_i / a_i` where every quotient has its full precision,
    at the cost of one cumsum. Beside zeros, pairs (product, its tangent) are combined over windows
    that double in length, without any division; and step by step where such a product overflows.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.cumprod(a, axis=axis, dtype=dtype)
    if isinstance(a_dot, Zero):
        return y, ZERO
    if axis is None or np.ndim(plain(a)) == 0:
        a, a_dot, axis = np.reshape(a, -1), np.reshape(a_dot, -1), 0
    if _divisible(plain(a)) and _divisible(plain(y)):
        y_dot = y * np.cumsum(a_dot / a, axis=axis)
    else:
        running_dot = _by_windows if _windows_fit(plain(a), axis) else _step_by_step
        rows_dot = running_dot(np.moveaxis(a, axis, -1), np.moveaxis(a_dot, axis, -1))
        y_dot = np.moveaxis(rows_dot, -1, axis)
    return y, cast(y_dot, plain(y).dtype)


def _divisible(a):
    """Whether quotients by each element keep their full precision."""
    if a.dtype.kind not in "fc":
        return False
    size = np.abs(a)
    limit = np.sqrt(np.finfo(a.dtype).tiny)
    return bool(np.all((size > limit) & (size < 1 / limit)))


def _windows_fit(a, axis):
    """Whether the product of no run of factors, zeros left out, overflows or underflows."""
    sizes = np.abs(a)
    regular = np.isfinite(sizes) & (sizes > 0)
    heights = np.cumsum(np.log2(np.where(regular, sizes, 1)), axis=axis)
    span = np.max(heights, axis=axis, initial=0) - np.min(heights, axis=axis, initial=0)
    return bool(np.all(span < -np.finfo(heights.dtype).minexp - 1))


def _by_windows(a, a_dot):
    """The tangent of the running products along the last axis, in log2(n) steps."""
    step = 1
    while step < a_dot.shape[-1]:
        behind, behind_dot = a[..., :-step], a_dot[..., :-step]
        rest, rest_dot = a[..., step:], a_dot[..., step:]
        a_dot = np.concatenate([a_dot[..., :step], behind_dot * rest + behind * rest_dot], axis=-1)
        a = np.concatenate([a[..., :step], behind * rest], axis=-1)
        step *= 2
    return a_dot


def _step_by_step(a, a_dot):
    """The tangent of the running products along the last axis, in n steps."""
    y, y_dot = a[..., :1], a_dot[..., :1]
    steps_dot = [y_dot]
    for k in range(1, a_dot.shape[-1]):
        here = (..., slice(k, k + 1))
        y_dot = y_dot * a[here] + y * a_dot[here]
        y = y * a[here]
        steps_dot.append(y_dot)
    return np.concatenate(steps_dot, axis=-1)
