"""``is`` between an array and what a function has made of it that may return it as it is."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")
X = np.arange(6.0).reshape(2, 3) + 0.5
PLACES = {
    "rows": X,
    "columns": np.asfortranarray(X),
    "strided": X.repeat(2, 1)[:, ::2],
    "1-d": X[0],
}
MADE = {
    "ascontiguousarray": np.ascontiguousarray,
    "asfortranarray": np.asfortranarray,
    "asarray": np.asarray,
    "array": lambda x: np.array(x, copy=None),
    "array in order F": lambda x: np.array(x, copy=None, order="F"),
    "astype": lambda x: x.astype(float, copy=False),
    "a copy": lambda x: x.astype(float),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    ("place", "backend"),
    [*((place, "numpy") for place in PLACES), pytest.param("columns", "numba", marks=needs_numba)],
)
def test_is_itself(place, made, backend):
    def f(x):
        y = MADE[made](x)
        return 2 * x if y is x else 3 * y

    def g(x):
        return np.sum(x) * (1.0 if x is not MADE[made](x) else 2.0)

    x = PLACES[place]
    assert_array_equal(fwdad.jit(f, backend=backend)(x), f(x))
    assert_array_equal(fwdad.jit(g, backend=backend)(x), g(x))
    assert_array_equal(fwdad.jvp(f, x, x)[0], f(x))
    assert_allclose(fwdad.grad(g)(x), np.full(x.shape, g(x) / np.sum(x)))
    factor = f(x).flat[0] / x.flat[0]
    wanted = factor * np.eye(x.size).reshape(x.shape + x.shape)
    for transformed in (fwdad.jacfwd(f), fwdad.jacrev(f)):
        assert_array_equal(fwdad.jit(transformed, backend=backend)(x), wanted)
