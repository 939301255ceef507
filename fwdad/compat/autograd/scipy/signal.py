"""``autograd.scipy.signal``: SciPy's, under autograd's name."""

from scipy.signal import *  # noqa: F403
