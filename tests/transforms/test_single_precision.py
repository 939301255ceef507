"""Python's numbers beside single precision do not widen tangents and cotangents on a tape."""

import numpy as np
import pytest

import fwdad

X = np.linspace(0.1, 1.0, 5, dtype=np.float32)


def f(x):
    y = np.exp(-0.5 * x) / (1.0 + x) ** 2
    y[1:] *= 0.25
    return y - 3.0 * x


@pytest.mark.parametrize("n", [1, 2, 3])
def test_forward(n):
    v = np.random.default_rng(0).normal(size=(n, 5)).astype(np.float32)
    y, y_dot = fwdad.jit(lambda x, v: fwdad.jvp(f, x, v), backend="numpy")(X, v)
    expected = fwdad.jvp(f, X, v)
    assert y.dtype == y_dot.dtype == expected[1].dtype == np.float32
    np.testing.assert_allclose(y_dot, expected[1], rtol=1e-5)


def test_backwards():
    gradient = fwdad.grad(lambda x: np.sum(f(x)))(X)
    assert gradient.dtype == np.float32
    exact = fwdad.grad(lambda x: np.sum(f(x)))(X.astype(float))
    np.testing.assert_allclose(gradient, exact, rtol=1e-5)


def one_number(x):
    return x[0] * x[1] * 2.0 + 1.0


def of_elements(x):
    return np.array([x[0] * 2.0, 1.5, x[2] * x[1]])


def in_a_loop(x):
    s = 0.0
    for i in range(len(x)):
        s = s + x[i] * 2.0
    return s


def stored_in_a_loop(x):
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + x[i] * 2.0
    return y


def on_two_ways(x):
    return x * 2.0 if np.abs(x[0]) > 0.5 else 1.0 - x


def selected(x):
    return np.where(np.abs(x) > 0.5, x, 0.0) + 0.25 * x


def limited(x):
    return np.maximum(x, 0.3) + np.clip(x, 0.2, 0.5) * 2.0


def wider(x):
    return x * np.float64(3.0) + 1.0


NUMBERS = [one_number, of_elements, in_a_loop, stored_in_a_loop, on_two_ways, selected, wider]
REAL_ONLY = [limited]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_jacobians_have_the_dtype_of_the_value(backend):
    def all_of(x):
        return [fwdad.jacobian(g, x) for g in NUMBERS + REAL_ONLY]

    _compare(fwdad.jit(all_of, backend=backend)(X), NUMBERS + REAL_ONLY, {}, X)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_directions(backend):
    v = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)

    def all_of(x, v):
        return [fwdad.jvp(g, x, v)[1] for g in NUMBERS + REAL_ONLY]

    for g, found in zip(NUMBERS + REAL_ONLY, fwdad.jit(all_of, backend=backend)(X, v), strict=True):
        y, expected = fwdad.jvp(g, X, v)
        assert found.dtype == expected.dtype == y.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def _compare(found, functions, options, x):
    for g, J in zip(functions, found, strict=True):
        expected = fwdad.jacobian(g, x, **options)
        assert J.dtype == expected.dtype == np.asarray(g(x)).dtype, g.__name__
        np.testing.assert_allclose(J, expected, rtol=1e-5, err_msg=g.__name__)


OF_COMPLEX = {
    "a size": lambda z: np.abs(np.sum(z**2)),
    "a quotient": lambda z: np.sum(np.real(z / (z[::-1] + 1))),
    "of numbers": lambda z: np.real(z[0] / z[1]),
    "roots": lambda z: np.sum(np.real(np.sqrt(z + 0j))),
    "a power": lambda z: np.real(z[0] ** z[1]),
}


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_numbers_are_compiled(name):
    g = OF_COMPLEX[name]
    z = np.array([1 + 2j, 0.5 - 0.3j, -0.4j], np.complex64)
    found = fwdad.jit(fwdad.grad(g), backend="auto")(z)
    assert found.dtype == np.complex64
    expected = np.empty(3, complex)
    for k, e in enumerate(np.eye(3) * 1e-6):  # by the real parts, and by the imaginary ones
        slopes = [(g(z + e * d) - g(z - e * d)) / 2e-6 for d in (1.0 + 0j, 1j)]
        expected[k] = slopes[0] + 1j * slopes[1]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("f", [
    lambda x: np.linspace(0, x, 4), lambda x: np.linspace(x, 3 * x, 4, endpoint=False),
    lambda x: np.logspace(0, x, 4), lambda x: np.linspace(0, x, 4, retstep=True)[1],
    lambda x: np.linspace(0.0, x, 4, dtype=float), lambda x: np.geomspace(1, x, 4),
])  # fmt: skip
@pytest.mark.parametrize("x", [np.float32(2), X, np.float64(2), np.float16(1.5)])
def test_steps_have_numpys_dtype(f, x):
    y = f(x)
    pushed = [fwdad.jvp(g, x, x) for g in (f, fwdad.jit(f, backend="numpy"))]
    pushed.append(fwdad.jit(lambda x: fwdad.jvp(f, x, x), backend="numpy")(x))
    for found, slope in pushed:
        assert found.dtype == slope.dtype == y.dtype
        rtol = 1e-2 if x.dtype == np.float16 else 1e-6
        np.testing.assert_allclose(found, y, rtol=rtol)
    assert fwdad.jacobian(f, x).dtype == y.dtype
    with_wide_slope = fwdad.jvp(f, np.float64(x), np.float64(x))[1]
    np.testing.assert_allclose(pushed[0][1], with_wide_slope, rtol=1e-2)


def by_eval(f):
    def g(x):
        eval("None")  # which no tape can have
        return f(x)

    return g


@pytest.mark.parametrize("f", [
    lambda x: (x, x.astype(float).sum()), lambda x: (x * 2, x.sum(dtype=float)),
    lambda x: (x.copy(), np.mean(x, dtype=float)), lambda x: (x[0], x.astype(float).sum()),
    lambda x: (x, np.float64(x[0]) * 2), lambda x: (x, x.astype(complex).sum().real),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_cotangents_beside_wider_sums(f, dtype):
    x = X.astype(dtype)
    y_bar = tuple(np.ones_like(y)[()] for y in f(x))
    rows = tuple(np.stack([b, 2 * b, 0 * b]) for b in y_bar)
    exact = fwdad.vjp(f, X.astype(float))[1](y_bar)
    ways = [f, by_eval(f), fwdad.jit(f, backend="numpy"), fwdad.jit(f)]
    for g in ways[: 3 if dtype == np.float16 else 4]:  # Numba has no halves
        pullback = fwdad.vjp(g, x)[1]
        assert pullback(y_bar).dtype == pullback(rows).dtype == dtype
        np.testing.assert_allclose(pullback(y_bar), exact, rtol=1e-2)
        np.testing.assert_allclose(pullback(rows), np.outer([1, 2, 0], exact), rtol=1e-2)
    inside = fwdad.jit(lambda x, b: fwdad.vjp(f, x)[1](b), backend="numpy")(x, y_bar)
    assert inside.dtype == dtype
