"""Arrays made whole of values that carry derivatives: refused on tapes as by Python's own runs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import DualLeakError
from tests.differences import central_differences

X = np.array([1.5, 2.5, 3.5])

LOSING = {
    "asarray": lambda x: np.sum(np.asarray(x, int) * x),
    "asarray by name": lambda x: np.sum(np.asarray(x, dtype=np.int64) * x),
    "array": lambda x: np.sum(np.array(x, dtype=int) * x),
    "array of numbers": lambda x: np.sum(np.array([x[0], x[1]], dtype=int)) * x[0],
    "asanyarray": lambda x: np.sum(np.asanyarray(x, int) * x),
    "ascontiguousarray": lambda x: np.sum(np.ascontiguousarray(x, int) * x),
    "truth values": lambda x: np.sum(np.asarray(x, bool) * x),
}


@pytest.mark.parametrize("name", LOSING)
def test_refused(name):
    f = LOSING[name]
    calls = [
        fwdad.grad(f),
        lambda x: fwdad.jacobian(f, x, chunk=2),
        fwdad.jit(fwdad.grad(f), backend="numpy"),
        fwdad.jit(fwdad.jacfwd(f), backend="numpy"),
        lambda x: fwdad.jacobian(fwdad.jit(f, backend="numpy"), x),
    ]
    for call in calls:
        with pytest.raises(DualLeakError, match=r"lose it; write fwdad\.stop_gradient") as raised:
            call(X)
        assert raised.value.filename == __file__


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.asarray(np.floor(x), int) * x),
        lambda x: np.sum(np.array(x > 2.0, dtype=int) * x) + np.sum(np.array([1, 2], int)) * x[0],
        lambda x: np.sum(np.asarray(x, float) * np.array([1, 2, 3])),
    ],
)
def test_what_carries_no_derivative_may_become_whole(f):
    want = central_differences(f, X)
    for call in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy"), fwdad.jacfwd(f)):
        assert_allclose(call(X), want, rtol=1e-8)


def test_what_is_meant_is_declared():
    def f(x):
        return np.sum(np.asarray(fwdad.stop_gradient(x), int) * x)

    for call in (fwdad.grad(f), fwdad.jacfwd(f), fwdad.jit(fwdad.jacfwd(f), backend="numpy")):
        assert_allclose(call(X), [1.0, 2.0, 3.0])


def test_small_arrays_are_cast():
    """Whose elements are moved: they became numbers of the old dtype."""

    def f(x):
        whole = np.ascontiguousarray(np.floor(x * 1.3), int) // 2
        return np.sum(whole * x)

    def value_and_gradient(x):
        return fwdad.value_and_jacobian(f, x)

    want = central_differences(f, X)
    value, gradient = fwdad.jit(value_and_gradient, backend="numpy")(X)
    assert value == f(X)
    assert_allclose(gradient, want, rtol=1e-8)
    y = np.array([1.5, 2.5])

    def cast(x):
        return fwdad.jacobian(lambda z: np.sum(np.ascontiguousarray(y, int) * z), x)

    assert fwdad.jit(cast, backend="numpy")(np.ones(2)).tolist() == [1.0, 2.0]
