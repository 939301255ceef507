"""``jax.numpy.fft``: NumPy's, under JAX's name."""

from numpy.fft import *  # noqa: F403
