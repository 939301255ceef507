"""``autograd.numpy.fft``: NumPy's, under autograd's name."""

from numpy.fft import *  # noqa: F403
