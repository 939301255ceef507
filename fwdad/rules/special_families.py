"""Families of ``scipy.special``: Bessel, Airy and Struve functions, polynomials, integrals.

Formulas are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov);
numbers such as 10.6.1 in the comments are its equations. Recurrences in the order are preferred to
those with a division by the argument, which are 0/0 at the origin.
"""

import math

import numpy as np
import scipy  # its submodules load when they are first used

from fwdad.rules.arithmetic import fit
from fwdad.rules.core.define import elementwise, frule
from fwdad.rules.special import ORDER, SQRT_PI, refuse_order

# -- Bessel functions (10.6.1, 10.29.1)


def _bessel(name, below, above, *, neighbour=None):
    """f_v' = (below * f_(v-1) + above * f_(v+1)) / 2.

    A function with a ``neighbour`` takes the whole part of v for its order.
    """

    def slope(v, z, y):
        f = getattr(scipy.special, neighbour or name)
        order = np.trunc(v) if neighbour else v
        return below / 2 * f(order - 1, z) + above / 2 * f(order + 1, z)

    elementwise(f"scipy.special.{name}", ORDER, slope)


for _name in ("jv", "yv", "hankel1", "hankel2"):
    _bessel(_name, 1, -1)
_bessel("iv", 1, 1)
_bessel("kv", -1, -1)
# yn and kn take whole orders >= 0 only
_bessel("yn", 1, -1, neighbour="yv")
_bessel("kn", -1, -1, neighbour="kv")


def _scaled(name, below, above, factor):
    """Functions that come with an exponential factor exp(c z), holomorphic."""

    def slope(v, z, y):
        f = getattr(scipy.special, name)
        return below / 2 * f(v - 1, z) + above / 2 * f(v + 1, z) + factor * y

    elementwise(f"scipy.special.{name}", ORDER, slope)


_scaled("kve", -1, -1, 1)
_scaled("hankel1e", 1, -1, -1j)
_scaled("hankel2e", 1, -1, 1j)


def _modulus_scaled(name, below, above, part):
    """Functions with a factor exp(-|part(z)|), which is linear over the reals only."""

    @frule(f"scipy.special.{name}")
    def scaled_frule(primals, tangents):
        (v, z), (v_dot, z_dot) = primals, tangents
        refuse_order(name, "v", v_dot)
        f = getattr(scipy.special, name)
        y = f(v, z)
        slope = below / 2 * f(v - 1, z) + above / 2 * f(v + 1, z)
        return y, fit(slope * z_dot - np.sign(part(z)) * y * part(z_dot), y)


for _name in ("jve", "yve"):
    _modulus_scaled(_name, 1, -1, np.imag)
_modulus_scaled("ive", 1, 1, np.real)

elementwise("scipy.special.j0", lambda x, y: -scipy.special.j1(x))
elementwise("scipy.special.j1", lambda x, y: (scipy.special.j0(x) - scipy.special.jv(2, x)) / 2)
elementwise("scipy.special.y0", lambda x, y: -scipy.special.y1(x))
elementwise("scipy.special.y1", lambda x, y: (scipy.special.y0(x) - scipy.special.yv(2, x)) / 2)
elementwise("scipy.special.i0", lambda x, y: scipy.special.i1(x))
elementwise("scipy.special.i1", lambda x, y: (scipy.special.i0(x) + scipy.special.iv(2, x)) / 2)
elementwise("scipy.special.k0", lambda x, y: -scipy.special.k1(x))
elementwise("scipy.special.k1", lambda x, y: -(scipy.special.k0(x) + scipy.special.kv(2, x)) / 2)
elementwise("scipy.special.i0e", lambda x, y: scipy.special.i1e(x) - np.sign(x) * y)
elementwise(
    "scipy.special.i1e",
    lambda x, y: (scipy.special.i0e(x) + scipy.special.ive(2, x)) / 2 - np.sign(x) * y,
)
elementwise("scipy.special.k0e", lambda x, y: y - scipy.special.k1e(x))
elementwise(
    "scipy.special.k1e", lambda x, y: y - (scipy.special.k0e(x) + scipy.special.kve(2, x)) / 2
)


def _spherical(name, below, above):
    """Spherical Bessel functions: (2n + 1) f_n' = below n f_(n-1) + above (n+1) f_(n+1) (10.51.1).

    For the derivative, ``derivative=True``, the formula holds for the f' of the neighbours.
    """

    @frule(f"scipy.special.{name}")
    def spherical_frule(primals, tangents, *, derivative):
        (n, z), (n_dot, z_dot) = primals, tangents
        refuse_order(name, "n", n_dot)
        f = getattr(scipy.special, name)
        y = f(n, z, derivative)
        n = np.trunc(n)  # as SciPy does
        lower = f(np.maximum(n, 1) - 1, z, derivative)  # for n = 0 it has the weight 0
        slope = (below * n * lower + above * (n + 1) * f(n + 1, z, derivative)) / (2 * n + 1)
        return y, fit(slope * z_dot, y)


for _name, _below, _above in (
    ("spherical_jn", 1, -1),
    ("spherical_yn", 1, -1),
    ("spherical_in", 1, 1),
    ("spherical_kn", -1, -1),
):
    _spherical(_name, _below, _above)


@frule("scipy.special.airy")
def airy_frule(primals, tangents):
    """Push tangents through ``Ai, Ai', Bi, Bi'``: each pair solves w'' = z w (9.2.1)."""
    (z,), (z_dot,) = primals, tangents
    ai, ai_slope, bi, bi_slope = y = scipy.special.airy(z)
    return y, (ai_slope * z_dot, z * ai * z_dot, bi_slope * z_dot, z * bi * z_dot)


def _struve_excess(v, x):
    """(x/2)**v / (sqrt(pi) gamma(v + 3/2)) of 11.4.25 and its modified companion."""
    return (x / 2) ** v * scipy.special.rgamma(v + 1.5) / SQRT_PI


def _struve_slope(v, x, y):
    f = scipy.special.struve
    return (f(v - 1, x) - f(v + 1, x) + _struve_excess(v, x)) / 2


def _modstruve_slope(v, x, y):
    f = scipy.special.modstruve
    return (f(v - 1, x) + f(v + 1, x) + _struve_excess(v, x)) / 2


elementwise("scipy.special.struve", ORDER, _struve_slope)
elementwise("scipy.special.modstruve", ORDER, _modstruve_slope)

# -- orthogonal polynomials: the derivative is one of degree n - 1, in a neighbouring family (18.9)


def _polynomial(name, *orders, slope):
    """Register ``eval_<name>(n, ..., x)``; ``slope`` is not called for n = 0."""

    def by_argument(n, *rest):
        return np.where(n == 0, 0, slope(np.where(n == 0, 1, n), *rest[:-1]))

    elementwise(f"scipy.special.eval_{name}", *orders, by_argument)


_polynomial(
    "legendre",
    ORDER,
    slope=lambda n, x: (n + 1) / 2 * scipy.special.eval_jacobi(n - 1, 1, 1, x),
)
_polynomial("chebyt", ORDER, slope=lambda n, x: n * scipy.special.eval_chebyu(n - 1, x))
_polynomial("chebyu", ORDER, slope=lambda n, x: 2 * scipy.special.eval_gegenbauer(n - 1, 2, x))
_polynomial(
    "hermite", ORDER, slope=lambda n, x: 2 * n * scipy.special.eval_hermite(_whole(n - 1), x)
)
_polynomial(
    "hermitenorm", ORDER, slope=lambda n, x: n * scipy.special.eval_hermitenorm(_whole(n - 1), x)
)
_polynomial("laguerre", ORDER, slope=lambda n, x: -scipy.special.eval_genlaguerre(n - 1, 1, x))
_polynomial(
    "genlaguerre",
    ORDER,
    ORDER,
    slope=lambda n, a, x: -scipy.special.eval_genlaguerre(n - 1, a + 1, x),
)
_polynomial(
    "gegenbauer",
    ORDER,
    ORDER,
    slope=lambda n, a, x: 2 * a * scipy.special.eval_gegenbauer(n - 1, a + 1, x),
)
_polynomial(
    "jacobi",
    ORDER,
    ORDER,
    ORDER,
    slope=lambda n, a, b, x: (
        (n + a + b + 1) / 2 * scipy.special.eval_jacobi(n - 1, a + 1, b + 1, x)
    ),
)


def _whole(n):
    return np.asarray(n).astype(int)


# -- hypergeometric functions (13.3.15, 13.3.22, 15.5.1, 16.3.1)

elementwise("scipy.special.hyp0f1", ORDER, lambda v, z, y: scipy.special.hyp0f1(v + 1, z) / v)
elementwise(
    "scipy.special.hyp1f1",
    ORDER,
    ORDER,
    lambda a, b, x, y: a / b * scipy.special.hyp1f1(a + 1, b + 1, x),
)
elementwise(
    "scipy.special.hyperu",
    ORDER,
    ORDER,
    lambda a, b, x, y: -a * scipy.special.hyperu(a + 1, b + 1, x),
)
elementwise(
    "scipy.special.hyp2f1",
    ORDER,
    ORDER,
    ORDER,
    lambda a, b, c, z, y: a * b / c * scipy.special.hyp2f1(a + 1, b + 1, c + 1, z),
)

# -- exponential, sine and cosine integrals (6.2, 8.19.13)


def _expn_slope(n, x, y):
    n = np.trunc(n)  # as SciPy does
    below = scipy.special.expn(_whole(np.maximum(n, 1) - 1), x)
    return np.where(n == 0, -y * (1 + 1 / x), -below)


elementwise("scipy.special.exp1", lambda z, y: -np.exp(-z) / z)
elementwise("scipy.special.expi", lambda x, y: np.exp(x) / x)
elementwise("scipy.special.expn", ORDER, _expn_slope)


def _integrals(name, smooth, other):
    """Two integrals: of a quotient with x that is smooth at 0, and of one that is not."""

    @frule(f"scipy.special.{name}")
    def integrals_frule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y = getattr(scipy.special, name)(x)
        with np.errstate(all="ignore"):  # the second one is -inf at 0
            slopes = getattr(scipy.special, smooth)(0, x), np.divide(other(x), x)
        return y, (fit(slopes[0] * x_dot, y[0]), slopes[1] * x_dot)


_integrals("sici", "spherical_jn", np.cos)  # of sin(x)/x and cos(x)/x
_integrals("shichi", "spherical_in", np.cosh)  # of sinh(x)/x and cosh(x)/x


def _spence_slope(z, y):
    """log(z) / (1 - z), continued through z = 1."""
    w = z - 1
    near = np.absolute(w) < 1e-5
    return np.where(
        near,
        -1 + w * (1 / 2 - w * (1 / 3 - w * (1 / 4 - w / 5))),
        -np.log(np.where(near, 2, z)) / np.where(near, 1, w),
    )


elementwise("scipy.special.spence", _spence_slope)

# -- complete elliptic integrals (19.4.1, 19.4.2); near m = 0 the differences cancel


def _ellipk_slope(m):
    near = np.absolute(m) < 0.1
    series = math.pi / 8 * scipy.special.hyp2f1(1.5, 1.5, 2, np.where(near, m, 0))
    far = np.where(near, 0.5, m)
    rest = 1 - far
    direct = (scipy.special.ellipe(far) - rest * scipy.special.ellipk(far)) / (2 * far * rest)
    return np.where(near, series, direct)


def _ellipe_slope(m):
    near = np.absolute(m) < 0.1
    series = -math.pi / 8 * scipy.special.hyp2f1(0.5, 1.5, 2, np.where(near, m, 0))
    far = np.where(near, 0.5, m)
    direct = (scipy.special.ellipe(far) - scipy.special.ellipk(far)) / (2 * far)
    return np.where(near, series, direct)


def _ellipkm1_slope(p):
    """-K'(1 - p) with the digits that 1 - p keeps of a small p."""
    near = p > 0.9
    series = math.pi / 8 * scipy.special.hyp2f1(1.5, 1.5, 2, np.where(near, 1 - p, 0))
    far = np.where(near, 0.5, p)
    direct = (scipy.special.ellipe(1 - far) - far * scipy.special.ellipkm1(far)) / (
        2 * (1 - far) * far
    )
    return -np.where(near, series, direct)


elementwise("scipy.special.ellipk", lambda m, y: _ellipk_slope(m))
elementwise("scipy.special.ellipe", lambda m, y: _ellipe_slope(m))
elementwise("scipy.special.ellipkm1", lambda p, y: _ellipkm1_slope(p))

# -- implicit functions: w exp(w) = z (4.13.1), w + log(w) = z

elementwise("scipy.special.wrightomega", lambda z, y: y / (1 + y))
elementwise("scipy.special.lambertw", lambda z, y: 1 / (z + np.exp(y)))
