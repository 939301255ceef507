"""Values that may be None: in lists that NumPy is given, in the program's own, and returned."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

THERE, NOT_THERE = np.array([2.0, 0.5]), np.array([2.0, 0.0])


def ratio(p):
    if p[1] == 0.0:
        return None
    return p[0] / p[1]


def hit(p):
    if p[1] == 0.0:
        return None
    return p / p[1]


def appended(p):
    found = []
    found.append(ratio(p))
    return p[0] if found[0] is None else found[0]


def set_in_a_dict(p):
    found = {}
    found["a"] = ratio(p)
    return found["a"] * 2 if found["a"] is not None else p[1]


TAKEN = {
    "array": lambda p: np.array([ratio(p), p[0]]),
    "nested": lambda p: np.array([[ratio(p), p[0]], [p[0], p[1]]]),
    "concatenate": lambda p: np.concatenate([hit(p), p]),
    "stack": lambda p: np.stack([hit(p), p])[0],
    "sum": lambda p: np.sum([ratio(p), p[0]]),
    "max": lambda p: max(ratio(p), p[0]),
}


@pytest.mark.parametrize("f", [appended, set_in_a_dict])
@pytest.mark.parametrize("p", [THERE, NOT_THERE])
def test_kept(f, p):
    assert_allclose(fwdad.jit(f, backend="numpy")(p), f(p))
    expected = fwdad.jacobian(f, p, mode="forward")
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(p), expected)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(p), expected)


@pytest.mark.parametrize("f", TAKEN.values(), ids=TAKEN.keys())
def test_taken(f):
    """Without None as ever; with it, NumPy's error or a TypeError, and no result."""
    expected = fwdad.jacobian(f, THERE, mode="forward")
    assert_allclose(fwdad.jit(f, backend="numpy")(THERE), f(THERE))
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(THERE), expected)
    assert_allclose(fwdad.jacobian(f, THERE, mode="reverse"), expected)
    with pytest.raises((TypeError, ValueError)):
        fwdad.jit(f, backend="numpy")(NOT_THERE)


@pytest.mark.parametrize("f", [ratio, hit])
def test_returned(f):
    g = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    assert_allclose(g(THERE), fwdad.jacobian(f, THERE, mode="forward"))
    with pytest.raises(fwdad.errors.NoOutputError, match="returned None"):
        g(NOT_THERE)


def sizes_of_what_may_be_none(p):
    h = None
    if p[0] > 0:
        h = p * 2.0
    if h is None:
        h = np.sin(p)
    return np.shape(h)[0] * p + np.ndim(h) * p + np.size(h) * h


def test_shapes_of_what_may_be_none():
    f = fwdad.jit(sizes_of_what_may_be_none, backend="numpy")
    for p in (THERE, -THERE):
        assert_allclose(f(p), sizes_of_what_may_be_none(p), rtol=1e-14)
