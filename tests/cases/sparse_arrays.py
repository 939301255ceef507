"""Sparse arrays under test, and derivatives of functions of them by differences."""

import numpy as np
import scipy
import scipy.sparse as sp

from tests.differences import central_differences, difference_along

NEW = np.lib.NumpyVersion(scipy.__version__) >= "1.15.0"  # CSR vectors, triangles solved in C


FORMATS = ("csr", "csc", "coo", "bsr", "dia")


rng = np.random.default_rng(8)


PATTERN = np.array([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 1]])


BASE = sp.csr_array(PATTERN * rng.uniform(0.5, 2, PATTERN.shape))


OTHER = sp.csr_array(PATTERN.T[:4, [2, 1, 0, 3, 2]] * rng.uniform(0.5, 2, (4, 5)))


b, c = rng.standard_normal(5), rng.standard_normal(4)


B, C = rng.standard_normal((5, 3)), rng.standard_normal((4, 5))


def dense(y):
    """A value as an ndarray, whatever its type."""
    return y.toarray() if sp.issparse(y) else np.asarray(y)


def difference(f, x, v):
    """The derivative by differences of a function of a sparse or dense array along v."""
    if not sp.issparse(x):
        return difference_along(lambda x: dense(f(x)), x, v)

    def moved(t):
        a = x.copy()
        a.data = x.data + t * v
        return dense(f(a))

    return difference_along(moved, 0.0)


def differences(f, x):
    """The Jacobian by differences of a function of a vector."""
    return central_differences(lambda x: dense(f(x)), x)
