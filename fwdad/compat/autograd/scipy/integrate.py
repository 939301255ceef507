"""``autograd.scipy.integrate``: SciPy's, under autograd's name."""

from scipy.integrate import *  # noqa: F403
