"""Arrays that are converted: a view where nothing changes, a copy where the dtype does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.7, 1.3, 0.2])


def written(x):
    r = np.zeros(3)
    r[:] = x
    return r


def weighed(a):
    return np.sum((a * a * np.array([1.0, 2.0, 3.0])).real)


MADE = {
    "asarray": lambda r: np.asarray(r, dtype=complex),
    "asanyarray": lambda r: np.asanyarray(r, complex),
    "array": lambda r: np.array(r, dtype=complex, copy=None),
    "ascontiguousarray": lambda r: np.ascontiguousarray(r, dtype=complex),
    "asfortranarray": lambda r: np.asfortranarray(r, dtype=complex),
    "require": lambda r: np.require(r, dtype=complex),
    "astype": lambda r: r.astype(complex, copy=False),
    "of a view": lambda r: np.asarray(r[::-1], dtype=complex),
    "the same": lambda r: np.asarray(r, dtype=float),
    "the same by astype": lambda r: r.astype(float, copy=False),
}
TRANSFORMS = {
    "grad": fwdad.grad,
    "compiled grad": lambda f: fwdad.jit(fwdad.grad(f)),
    "jacfwd": fwdad.jacfwd,
    "jacrev": fwdad.jacrev,
    "compiled jacfwd": lambda f: fwdad.jit(fwdad.jacfwd(f)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("made", MADE)
def test_read_and_written(made, transform):
    """Whether a write into either is seen in the other."""

    def read(x):
        return weighed(MADE[made](written(x)))

    def source_written(x):
        r = written(x)
        a = MADE[made](r)
        r[0] = 5.0 * x[1]
        return weighed(a) + weighed(r)

    def result_written(x):
        r = written(x)
        a = MADE[made](r)
        a[0] = 5.0 * x[1]
        return weighed(a) + weighed(r)

    for f in (read, source_written, result_written):
        assert_allclose(TRANSFORMS[transform](f)(X), central_differences(f, X), rtol=1e-6)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.where(x < 9, x, np.inf * x),
        lambda x: np.where(x < 9, x, np.nan * x),
        lambda x: np.where(x < 9, x, -(x * np.float64(np.inf))),
        lambda x: np.where(x < 9, x, x / np.float64(0)),
        lambda x: np.sum(np.where(np.array([x]) < 9, x, np.array([x]) * np.float32(np.inf))),
    ],
)
def test_a_constant_without_bounds_on_a_way_that_is_not_taken(f, transform):
    """A cotangent that is exactly zero stays zero, whatever constant it is multiplied by."""
    with np.errstate(all="ignore"):
        assert TRANSFORMS[transform](f)(1.3) == 1.0
