"""``jax.scipy.stats``: SciPy's, under JAX's name."""

from scipy.stats import *  # noqa: F403
