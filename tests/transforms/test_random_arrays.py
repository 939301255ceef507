"""Derivatives by tape of random programs of arrays that are broadcast, against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences
from tests.random_arrays import C, X, random_arrays


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(48))
def test_all_ways_agree(seed):
    f, source = random_arrays(seed)
    y = np.asarray(f(X, C))
    if np.abs(y).max(initial=0) > 1e4:
        pytest.skip("differences would tell nothing")
    weights = np.cos(np.arange(y.size)).reshape(y.shape)
    for argnum, x in enumerate((X, C)):
        J = fwdad.jacobian(f, X, args=(C,), argnums=argnum, mode="forward")
        at = (lambda x: f(x, C)) if argnum == 0 else (lambda c: f(X, c))
        size = 1 + np.abs(J).max(initial=0)
        assert_allclose(J, central_differences(at, x), rtol=0, atol=1e-6 * size, err_msg=source)
        directions = np.linspace(-1, 1, 3 * x.size).reshape(3, x.size)

        def pushed(x, c):
            return fwdad.jvp(f, x, directions, args=(c,), argnums=argnum)[1]  # noqa: B023

        def loss(x, c):
            return np.sum(f(x, c) * weights)

        by_tape = fwdad.jit(fwdad.jacfwd(f, argnums=argnum), backend="numpy")(X, C)
        assert_allclose(by_tape, J, rtol=0, atol=1e-12 * size, err_msg=source)
        some = fwdad.jit(pushed, backend="numpy")(X, C) if argnum == 0 else None
        if some is not None:
            wanted = np.moveaxis(J @ directions.T, -1, 0)
            assert_allclose(some, wanted, rtol=0, atol=1e-12 * size, err_msg=source)
        gradient = fwdad.grad(loss, argnums=argnum)(X, C)
        wanted = np.tensordot(weights, J, y.ndim)
        assert_allclose(gradient, wanted, rtol=0, atol=1e-11 * size, err_msg=source)
        rows = fwdad.jacobian(f, X, args=(C,), argnums=argnum, mode="reverse")
        assert_allclose(rows, J, rtol=0, atol=1e-12 * size, err_msg=source)


def test_a_global_that_says_which_argument(monkeypatch):
    monkeypatch.setitem(globals(), "which", 1)

    def f(x, c):
        return fwdad.hessian(lambda x, c: np.sum(x**3) + np.sum(c**2), x, args=(c,), argnums=which)

    assert_allclose(fwdad.jit(f, backend="numpy")(X, C), 2 * np.eye(3))


which = 0
