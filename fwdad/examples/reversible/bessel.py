"""The Bessel function of the first kind, by its series.

DLMF 10.2.2, https://dlmf.nist.gov/10.2.E2: the sum over k of
``(-1)**k (z/2)**(2k + nu) / (k! Gamma(k + nu + 1))``.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from fwdad.reversible import ancilla, compute, copy_out, reversible


@reversible
def bessel(y, nu, z, terms):
    """Add J_nu(z) to ``y``, from the first terms of its series; z and nu are positive.

    Parameters
    ----------
    y : float
        Added to.
    nu, z : float
        Order and argument.
    terms : int
        How many: more than z are needed for all digits.
    """
    with compute():
        half = ancilla(0.0)
        half += np.log(z / 2)
        with copy_out():
            for k in range(terms):
                sign = 1 - 2 * (k % 2)
                y += sign * np.exp((2 * k + nu) * half - gammaln(k + 1.0) - gammaln(k + nu + 1))
