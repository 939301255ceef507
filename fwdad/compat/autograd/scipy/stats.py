"""``autograd.scipy.stats``: SciPy's, with its distributions where autograd has modules."""

import sys

from scipy.stats import *  # noqa: F403
from scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

# `import autograd.scipy.stats.norm as norm` is how autograd's users write it
sys.modules.update(
    {
        f"{__name__}.{name}": found
        for name, found in {
            "beta": beta,
            "chi2": chi2,
            "dirichlet": dirichlet,
            "gamma": gamma,
            "multivariate_normal": multivariate_normal,
            "norm": norm,
            "poisson": poisson,
            "t": t,
        }.items()
    }
)
