"""``jax.scipy.signal``: SciPy's, under JAX's name."""

from scipy.signal import *  # noqa: F403
