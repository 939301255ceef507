"""Parts of complex numbers, which are linear over the reals only, and a few functions near them.

A holomorphic function multiplies by its derivative. The functions here do not have one: their
rules are written for a real and an imaginary part that move independently.
"""

import math

import numpy as np

from fwdad.rules.core.define import elementwise, frule, linear
from fwdad.tangents.zero import ZERO

for _part in (np.conjugate, np.real, np.imag):
    linear(_part)


def _unit(z, length):
    """Divide z by its modulus; 0 at z = 0."""
    return z / np.where(length == 0, 1, length)


@frule(np.absolute)
def absolute_frule(primals, tangents):
    r"""Push tangents through ``|z|``; the tangent at 0 is 0.

    .. math:: \dot y = \operatorname{Re}(\bar z \dot z) / |z|
    """
    (z,), (z_dot,) = primals, tangents
    y = np.absolute(z)
    if np.iscomplexobj(z):
        return y, (z_dot * np.conjugate(_unit(z, y))).real
    return y, z_dot * np.sign(z)


@frule(np.sign)
def sign_frule(primals, tangents):
    r"""Push tangents through ``sign``: constant for real x, ``z / |z|`` for complex z.

    .. math:: \dot y = i\, y \operatorname{Im}(\bar y \dot z) / |z|
    """
    (z,), (z_dot,) = primals, tangents
    y = np.sign(z)
    if not np.iscomplexobj(z):
        return y, ZERO
    length = np.absolute(z)
    turned = (z_dot * np.conjugate(y)).imag
    return y, turned * (1j * y / np.where(length == 0, 1, length))


@frule(np.angle)
def angle_frule(primals, tangents, *, deg):
    r"""Push tangents through ``angle(z)``; NaN at z = 0, constant for real z.

    .. math:: \dot y = \operatorname{Im}(\bar z \dot z) / |z|^2
    """
    (z,), (z_dot,) = primals, tangents
    y = np.angle(z, deg)
    if not np.iscomplexobj(z):
        return y, ZERO
    length = np.absolute(z)
    with np.errstate(all="ignore"):
        inverse = np.conjugate(np.divide(z, length) / length)
    turned = (z_dot * inverse).imag
    return y, turned * (180 / math.pi) if deg else turned


@frule(np.real_if_close)
def real_if_close_frule(primals, tangents, *, tol):
    """Push tangents through ``real_if_close``: the tangent follows the primal's type."""
    (a,), (a_dot,) = primals, tangents
    y = np.real_if_close(a, tol)
    return y, a_dot if np.iscomplexobj(y) else a_dot.real


@frule(np.unwrap, argnums=("p", "period"))
def unwrap_frule(primals, tangents, *, discont, axis):
    """Push tangents through ``unwrap(p)``: p and whole periods that are locally constant."""
    (p, period), (p_dot, period_dot) = primals, tangents
    y = np.unwrap(p, discont, axis, period=period)
    return y, p_dot + np.rint((y - p) / period) * period_dot


def _sinc_slope(x, y):
    r"""(cos t - sin t / t) / x with t = pi x, by its series where the difference cancels.

    .. math:: -\pi \sum_k \frac{(-1)^k (2k+2)}{(2k+3)!} t^{2k+1}
    """
    t = math.pi * x
    small = np.absolute(t) < 1
    near, far = np.where(small, t, 0), np.where(small, math.pi, t)
    square, series = near * near, 0
    for k in reversed(range(9)):
        series = series * square + (-1) ** k * (2 * k + 2) / math.factorial(2 * k + 3)
    return math.pi * np.where(small, -near * series, (np.cos(far) - np.sin(far) / far) / far)


def _i0_slope(x, y):
    from scipy.special import i1  # noqa: PLC0415  (300 modules for a single rule)

    return i1(x)


elementwise(np.sinc, _sinc_slope)
elementwise(np.i0, _i0_slope)
