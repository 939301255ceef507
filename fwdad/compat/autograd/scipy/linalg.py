"""``autograd.scipy.linalg``: SciPy's, under autograd's name."""

from scipy.linalg import *  # noqa: F403
