"""``is`` of an array that is one of two, of lengths of which one is known and one is not."""

import numpy as np
import pytest

import fwdad

X = np.array([0.8313, 0.4117, 1.2171, -0.3371])


def smaller(v, w):
    return v if v @ v < w @ w else w


def test_either_length():
    """Refused: it is decided by values, and was taken for never."""

    def f(x):
        a = np.zeros(4)
        for i in range(4):
            a[i] = x[i]
        b = x[1:] if len(x) > 4 else x * 0.6
        return 2.0 * x[0] if smaller(a, b) is a else 3.0 * x[0]

    with pytest.raises(fwdad.errors.UntraceableError, match="may be the same object"):
        fwdad.jit(f, backend="numpy")(X)


def test_arrays_that_cannot_be_one():
    def f(x):
        a, b, c = np.zeros(2) + x[0], np.ones(2) * x[1], np.zeros(3) + x[2]
        return 2.0 * x[0] if smaller(a, b) is c else 3.0 * x[0]

    assert fwdad.jit(f, backend="numpy")(X) == f(X)
