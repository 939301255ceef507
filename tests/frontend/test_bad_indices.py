"""Indices that NumPy refuses: the same exception, and none on a way that is not taken."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")
BACKENDS = ["numpy", pytest.param("numba", marks=needs_numba)]
V, M = np.array([1.0, 2.0, 3.0]), np.arange(6.0).reshape(2, 3) + 1


def loads(x, i):
    return x[i] * 1.0 if x.sum() > 0 else x * 2.0


def stores(x, i):
    y = x.copy()
    if x.sum() > 0:
        y[i] = 2.0
    return y


def updates(x, i):
    y = x.copy()
    if x.sum() > 0:
        y[i] *= 2.0
    return y


def takes_along(x, i, axis=0):
    return np.take_along_axis(x, i, axis) * 1.0


def puts_along(x, i, axis=0):
    y = x.copy()
    np.put_along_axis(y, i, 2.0, axis)
    return y


_IN_NUMPY_2_0 = {  # what it said, then as now, of places that are no array of one axis
    "when axis=None, `indices` must have a single dimension.": (
        "`indices` and `arr` must have the same number of dimensions"
    )
}


def outcome(f, *args):
    try:
        return np.asarray(f(*args))
    except (IndexError, ValueError) as error:
        words = str(error).split(" with")[0].split(";")[0]
        return type(error), _IN_NUMPY_2_0.get(words, words)


def pairs(f, args, backend):
    """What plain f raises, and what it does under `jit`, with derivatives and without."""
    jvp = fwdad.jit(lambda x, *rest: fwdad.jvp(f, x, x, args=rest)[1], backend=backend)
    grad = fwdad.jit(lambda x, *rest: fwdad.grad(lambda x: f(x, *rest).sum())(x), backend=backend)
    own = outcome(f, *args)
    assert isinstance(own, tuple)
    return [(own, outcome(way, *args)) for way in (fwdad.jit(f, backend=backend), jvp, grad)]


BAD = [
    (V, np.array([1.0])),
    (V, 1.0),
    (V, np.ones((1, 2), bool)),
    (V, np.ones((2, 3, 2), bool)),
    (M, np.ones((2, 3, 2), bool)),
    (M, (0, np.array([0.5]))),
]


@pytest.mark.every(3, of="numba", first=1)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [loads, stores, updates])
def test_exceptions_of_indices(f, backend):
    for x, i in BAD[:3] if backend == "numba" else BAD:
        for own, found in pairs(f, (x, i), backend):
            assert found == own


@pytest.mark.every(3, of="numba")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [loads, stores, updates])
def test_ways_that_are_not_taken(f, backend):
    for x, i in BAD[2:4] if backend == "numba" else BAD:
        if f is loads and x.ndim > 1:
            continue  # the ways return arrays of different ranks
        assert_array_equal(fwdad.jit(f, backend=backend)(-x, i), f(-x, i))
        found = fwdad.jit(lambda x, i: fwdad.jvp(f, x, x, args=(i,))[1], backend=backend)(-x, i)
        assert_array_equal(found, f(-x, i))  # they are linear there


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [takes_along, puts_along])
def test_places_along_an_axis(f, backend):
    for args in (
        (V, np.array([True, False, True])),
        (V, np.array([1.0])),
        (V, np.array([[0], [1]])),
        (M, np.array([True, False]), None),
        (M, np.array([[1]]), None),
        (M, np.array([0, 1]), 1),
    ):
        axis = args[2] if len(args) > 2 else 0

        def g(x, i, axis=axis):
            return f(x, i, axis)

        for own, found in pairs(g, args[:2], backend):
            assert found == own


def test_no_index_at_all():
    assert fwdad.jit(lambda x: x[[]])(V).shape == (0,)
    assert_array_equal(fwdad.jit(lambda x: x[()])(V), V)
