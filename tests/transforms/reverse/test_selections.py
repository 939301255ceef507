"""Rules that choose among elements, backwards on a tape that serves all lengths.

Of equal values the first carries the derivative, as forwards.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.tiers import every

WEIGHTS = np.cos(np.arange(100.0))
ROW = np.array([1.0, 3.0, 3.0, 0.5, 0.5])
ROWS = np.array([[1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0], [-1.0, -2.0, 0.25, -2.0]])


def weighed(y):
    y = np.reshape(y, -1)
    return np.sum(y * y * WEIGHTS[: y.shape[0]])


def of_all(f):
    return lambda x: np.sum(x) * f(x) ** 2


def of_rows(f):
    return lambda x: np.sum(x) + weighed(f(x))


FUNCTIONS = {
    "max": of_all(np.max),
    "min": of_all(np.min),
    "ptp": of_all(np.ptp),
    "median": of_all(np.median),
    "norm": of_all(lambda x: np.linalg.norm(x, np.inf, axis=-1).sum()),
    "max of rows": of_rows(lambda x: np.max(x, axis=-1)),
    "min of columns": of_rows(lambda x: np.min(x, axis=0, keepdims=True)),
    "max with an initial value": of_rows(lambda x: np.max(x, axis=-1, initial=0.75)),
    "ptp of rows": of_rows(lambda x: np.ptp(x, axis=-1)),
    "logsumexp": of_rows(lambda x: np.log(np.sum(np.exp(x - np.max(x, axis=-1, keepdims=True))))),
    "sort": of_rows(np.sort),
    "sort of columns": of_rows(lambda x: np.sort(x, axis=0)),
    "chosen along an axis": of_rows(lambda x: np.take_along_axis(x, np.argsort(x, axis=0), 0)),
    "repeat": of_rows(lambda x: np.repeat(x, 3)),
    "diagonal": of_rows(lambda x: np.take(np.outer(x, x), [0, 2, 2])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", [ROW, ROWS], ids=["row", "rows"])
def test_choice(name, x):
    f = FUNCTIONS[name]
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    for given in (x, x[::-1].copy(), -x[:2]):
        assert_allclose(
            gradient(given), fwdad.jacobian(f, given, mode="forward"), rtol=1e-13, atol=1e-14
        )
    assert fwdad.cache_info(gradient).traces == 1
    assert "pull_" not in fwdad.show(gradient)


def test_trace_of_a_matrix():
    gradient = fwdad.jit(fwdad.grad(lambda a: np.trace(a) ** 2), backend="numpy")
    assert_allclose(gradient(ROWS), 2 * np.trace(ROWS) * np.eye(3, 4))
    assert "pull_" not in fwdad.show(gradient)


def test_second_derivative():
    f = FUNCTIONS["logsumexp"]
    hessian = fwdad.jit(lambda x: fwdad.jacobian(fwdad.grad(f), x), backend="numpy")
    x = ROWS + 0.1 * np.arange(4.0)
    assert_allclose(hessian(x), fwdad.jacobian(fwdad.grad(f), x, mode="forward"), atol=1e-13)


def extremes(x):
    return np.max(x) - np.min(x[0]) + np.ptp(x, axis=0).sum()


def extremes_and_orders(x):
    row = x[0]
    chosen = np.sort(x, axis=0) * np.max(x, axis=-1, keepdims=True)
    return np.linalg.norm(row, np.inf) * extremes(x) + weighed(chosen) + weighed(np.sort(row))


@pytest.mark.parametrize("f", every(2, [extremes, extremes_and_orders]))
def test_compiled(f):
    pytest.importorskip("numba")
    gradient = fwdad.jit(fwdad.grad(f))
    for x in (ROWS, ROWS[:1].copy(), ROWS[:, 1:].copy(), np.full((2, 3), 0.5)):
        wanted = fwdad.jacobian(f, x, mode="forward")
        assert_allclose(gradient(x), wanted, rtol=1e-13, atol=1e-14)
        if x is ROWS:
            assert "NumPy" not in fwdad.explain(gradient)
