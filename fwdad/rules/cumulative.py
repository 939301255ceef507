"""Running sums and products."""

import numpy as np

from fwdad.rules.core.adjoints import transpose
from fwdad.rules.core.define import frule, linear
from fwdad.tangents.laws.listing import cast
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero

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

    which is :math:`y_k \sum_{i \le k} \dot a_i / a_i`, at the cost of one cumsum, unless a factor
    is zero or so small that its quotient loses precision. Then pairs (product, its tangent) are
    combined over views that double in length, in log2(n) steps without any division.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.cumprod(a, axis=axis, dtype=dtype)
    if isinstance(a_dot, Zero):
        return y, ZERO
    if axis is None or np.ndim(plain(a)) == 0:
        a, a_dot, axis = np.reshape(a, -1), np.reshape(a_dot, -1), 0
    if _divisible(plain(a)):
        y_dot = y * np.cumsum(a_dot / a, axis=axis)
    else:
        rows_dot = _by_views(np.moveaxis(a, axis, -1), np.moveaxis(a_dot, axis, -1))
        y_dot = np.moveaxis(rows_dot, -1, axis)
    return y, cast(y_dot, plain(y).dtype)


def _divisible(a):
    """Whether a quotient by any element is harmless, even times a product that underflows."""
    if a.dtype.kind not in "fc":
        return False
    size = np.abs(a)
    limit = np.finfo(a.dtype).tiny ** 0.25
    return bool(np.all((size > limit) & (size < 1 / limit)))


def _by_views(a, a_dot):
    """The tangent of the running products along the last axis.

    A view's product is kept as a number near one times a power of two, and its tangent in that
    unit: neither overflows where the running product itself does not.
    """
    exponent = np.zeros(plain(a).shape, int)
    step = 1
    while True:
        unit = np.where(np.isfinite(plain(a)), np.frexp(np.abs(plain(a)))[1], 0)
        exponent = exponent + unit
        shrink = np.ldexp(np.ones((), np.abs(plain(a)).dtype), -unit)
        a, a_dot = a * shrink, a_dot * shrink
        if step >= a_dot.shape[-1]:
            break
        behind, behind_dot = a[..., :-step], a_dot[..., :-step]
        rest, rest_dot = a[..., step:], a_dot[..., step:]
        a_dot = np.concatenate([a_dot[..., :step], behind_dot * rest + behind * rest_dot], axis=-1)
        a = np.concatenate([a[..., :step], behind * rest], axis=-1)
        exponent[..., step:] = exponent[..., step:] + exponent[..., :-step]
        step *= 2
    # In two halves, for 2**exponent may underflow where its product with a large tangent does
    # not; a join multiplies deferred scalings out, so that the halves do not meet before.
    half = exponent // 2
    first, second = (
        np.ldexp(np.ones((), shrink.dtype), np.clip(power, -1000, 1000))
        for power in (half, exponent - half)
    )
    return np.concatenate([a_dot * first], axis=-1) * second
