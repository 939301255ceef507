"""An argument that is given twice: its partials are added, in every mode."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

X = np.array([0.3, 1.7, -0.4, 2.2, 0.9])

PROGRAMS = {
    "square": (lambda x: x * x, lambda x: 2 * x),
    "sum": (lambda x: x + x, lambda x: 2 + 0 * x),
    "difference": (lambda x: x - x, lambda x: 0 * x),
    "quotient": (lambda x: x / x, lambda x: 0 * x),
    "power": (
        lambda x: (2 + np.sin(x)) ** (2 + np.sin(x)),
        lambda x: (g := 2 + np.sin(x)) ** g * (np.log(g) + 1) * np.cos(x),
    ),
    "hypot": (lambda x: np.hypot(x, x), lambda x: np.sqrt(2) * np.sign(x)),
    "larger": (lambda x: np.maximum(x, x), lambda x: 1 + 0 * x),
    "angle": (lambda x: np.arctan2(x, x), lambda x: 0 * x),
    "choice": (lambda x: np.where(x > 0.5, x, x), lambda x: 1 + 0 * x),
    "clip": (lambda x: np.clip(x, x - 1.0, x), lambda x: 1 + 0 * x),
    "in place": (lambda x: np.multiply(x, x, out=np.empty(x.shape)), lambda x: 2 * x),
    "logaddexp": (lambda x: np.logaddexp(x, x), lambda x: 1 + 0 * x),
    "of a row": (lambda x: (x[np.newaxis] * x[np.newaxis])[0], lambda x: 2 * x),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("jitted", [False, True])
def test_every_mode(name, jitted):
    f, slope = PROGRAMS[name]
    close = {"rtol": 1e-13, "atol": 1e-15}
    made = fwdad.jit if jitted else lambda f: f
    expected = slope(X)
    for chunk in (1, 2, 3, None):
        J = made(lambda x, n=chunk: fwdad.jacobian(f, x, chunk=n, mode="forward"))(X)
        assert_allclose(J, np.diag(expected), **close)
    assert_allclose(made(fwdad.jacrev(f))(X), np.diag(expected), **close)
    weights = np.arange(1.0, 6.0)
    assert_allclose(made(fwdad.grad(lambda x: weights @ f(x)))(X), weights * expected, **close)
    v = np.stack([weights, -weights, X])
    assert_allclose(made(lambda x: fwdad.jvp(f, x, v)[1])(X), v * expected, **close)


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives(name):
    f, slope = PROGRAMS[name]
    along = lambda x: fwdad.jvp(lambda x: np.sum(f(x)), x, X)[1]  # noqa: E731
    h = 1e-5
    curvature = (slope(X + h) - slope(X - h)) / (2 * h)
    for made in (lambda f: f, fwdad.jit):
        close = {"rtol": 1e-8, "atol": 1e-9}
        assert_allclose(made(fwdad.grad(along))(X), curvature * X, **close)
        assert_allclose(made(lambda x: fwdad.hvp(lambda x: np.sum(f(x)), x, X))(X),
                        curvature * X, **close)  # fmt: skip


@pytest.mark.parametrize("x", [1.5, np.float32(1.5), np.float64(-0.5), X.astype(np.float32)])
def test_numbers_and_precisions(x):
    f = lambda x: x * x * np.ones_like(x)  # noqa: E731
    for made in (lambda f: f, fwdad.jit):
        y, dot = made(lambda x: fwdad.jvp(f, x, np.ones_like(x)))(x)
        assert np.result_type(dot) == np.result_type(y)
        assert_allclose(dot, 2 * x, rtol=1e-6)


def test_complex_numbers():
    z = X[:2] + 1j * X[2:4]
    J = fwdad.jacobian(lambda z: z * z, z, holomorphic=True)
    assert_allclose(J, np.diag(2 * z), rtol=1e-14)


def test_zero_directions_stay_zero_beside_infinite_partials():
    x, v = np.array([0.0, 4.0]), np.array([0.0, 1.0])
    f = lambda x: np.sqrt(x) * np.sqrt(x)  # noqa: E731
    for made in (lambda f: f, fwdad.jit):
        assert_array_equal(made(lambda x: fwdad.jvp(f, x, v)[1])(x), v)


def test_there_is_one_product():
    source = fwdad.show(lambda x, v: fwdad.jvp(lambda x: x * x, x, v)[1], X, X, backend="numpy")
    assert source.count("scale_lanes") == 1
