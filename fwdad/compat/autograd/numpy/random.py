"""``autograd.numpy.random``: NumPy's, under autograd's name."""

from numpy.random import *  # noqa: F403
