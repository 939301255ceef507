"""``jax.scipy.integrate``: SciPy's, under JAX's name."""

from scipy.integrate import *  # noqa: F403
