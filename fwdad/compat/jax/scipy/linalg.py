"""``jax.scipy.linalg``: SciPy's, under JAX's name."""

from scipy.linalg import *  # noqa: F403
