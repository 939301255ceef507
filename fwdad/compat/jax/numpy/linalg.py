"""``jax.numpy.linalg``: NumPy's, under JAX's name."""

from numpy.linalg import *  # noqa: F403
