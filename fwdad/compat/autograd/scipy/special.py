"""``autograd.scipy.special``: SciPy's, under autograd's name."""

from scipy.special import *  # noqa: F403
