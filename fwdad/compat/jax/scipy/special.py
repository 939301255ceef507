"""``jax.scipy.special``: SciPy's, under JAX's name."""

from scipy.special import *  # noqa: F403
