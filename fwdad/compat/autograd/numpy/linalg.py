"""``autograd.numpy.linalg``: NumPy's, under autograd's name."""

from numpy.linalg import *  # noqa: F403
