r"""The zeta functions of Riemann and Hurwitz.

By q the derivative is a value of the same function (25.11.17 of the DLMF,
https://dlmf.nist.gov); by x it is that of the formula of Euler and Maclaurin (25.11.5), with
:math:`w = q + N`:

.. math::
    \zeta(x, q) = \sum_{k<N} (k + q)^{-x} + \frac{w^{1-x}}{x-1} + \frac{w^{-x}}{2}
        + \sum_j \frac{B_{2j}}{(2j)!} (x)_{2j-1} w^{1-x-2j} + \dots

Riemann's function is q = 1; where x is negative, its reflection formula (25.4.1) is used.
"""

import math

import numpy as np
import scipy  # its submodules load when they are first used

from fwdad.errors import MissingRuleError
from fwdad.rules.arithmetic import fit
from fwdad.rules.core.define import elementwise, frule
from fwdad.rules.special import BERNOULLI
from fwdad.tangents.zero import Zero

_TERMS = 12  # N: the rest is then below the last digit


def _slope(x, q):
    """The derivative by x for x > 0, q > 0; the powers of w are taken out of the rest."""
    total = 0.0
    for k in range(_TERMS):
        total = total - scipy.special.xlogy((k + q) ** -x, k + q)
    w = q + _TERMS
    logs, inverse = np.log(w), 1 / w
    pole = 1 / (x - 1)
    rest = -w * pole * (logs + pole) - logs / 2
    rising, by_x, power = x, 1.0, inverse  # (x)_(2j-1) and its derivative, and w**(1-2j)
    for j, bernoulli in enumerate(BERNOULLI, 1):
        rest = rest + bernoulli / math.factorial(2 * j) * (by_x - rising * logs) * power
        for step in (2 * j - 1, 2 * j):
            rising, by_x = rising * (x + step), by_x * (x + step) + rising
        power = power * inverse * inverse
    return total + w**-x * rest


def _reflected_slope(x):
    """The derivative by x < 0 of 2 (2 pi)**(x-1) sin(pi x/2) gamma(1-x) zeta(1-x)."""
    t = 1 - x
    factor = 2 * (2 * math.pi) ** -t * scipy.special.gamma(t)
    sine, cosine = np.sin(math.pi / 2 * x), np.cos(math.pi / 2 * x)
    logs = math.log(2 * math.pi) - scipy.special.psi(t)
    zeta = scipy.special.zeta(t, 1.0)
    return factor * ((logs * sine + math.pi / 2 * cosine) * zeta - sine * _slope(t, 1.0))


def _riemann_slope(x):
    left = x < 0
    return np.where(
        left, _reflected_slope(np.where(left, x, -1.0)), _slope(np.where(left, 2.0, x), 1.0)
    )


def _hurwitz_slope(x, q):
    """By x, for q > 0: SciPy's values for a negative q are of whole numbers x alone."""
    return np.where(q > 0, _slope(x, np.where(q > 0, q, 1.0)), np.nan)


def _by_q(x, q):
    return -x * scipy.special.zeta(x + 1, q)


@frule("scipy.special.zeta", argnums=("x", "q"))
def zeta_frule(primals, tangents, **options):
    """Push tangents through ``zeta(x, q)``, and through Riemann's ``zeta(x)``."""
    (x, q), (x_dot, q_dot) = primals, tangents
    y = scipy.special.zeta(x, q)
    x = np.multiply(x, 1.0)
    if not isinstance(x_dot, Zero):
        if x.dtype.kind == "c":
            raise MissingRuleError("no derivative of scipy.special.zeta by a complex x")
        with np.errstate(all="ignore"):
            x_dot = (_riemann_slope(x) if q is None else _hurwitz_slope(x, q)) * x_dot
    if not isinstance(q_dot, Zero):
        x_dot = x_dot + _by_q(x, q) * q_dot
    return y, fit(x_dot, y)


elementwise("scipy.special.zetac", lambda x, y: _riemann_slope(x))
elementwise(
    "scipy.special._ufuncs._zeta",
    lambda x, q, y: _hurwitz_slope(x, q),
    lambda x, q, y: _by_q(x, q),
)
