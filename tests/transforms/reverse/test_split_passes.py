"""Forward and reverse pass as two programs: run once forward, then back as often as one likes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.drivers import residual_store
from fwdad.errors import UntraceableError
from fwdad.ir.check import check_program
from tests.transforms.reverse.random_stores import POINT, program

X = np.linspace(0.1, 1.0, 5)
WEIGHTS = np.array([1.0, -2.0, 0.5, 3.0, 1.5])


def filled(x):
    """The reverse pass reads x and y, and writes neither."""
    y = np.zeros(len(x))
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1] + np.sin(y[i - 1]) + x[i]
    return y


def overwritten(x):
    """Puts back elements of an array that it also reads through a view."""
    u = x * WEIGHTS
    inner = u[1:-1]
    for i in range(1, len(x)):
        u[i] = u[i] * u[i - 1] + np.cos(u[i])
    inner *= u[2:]
    return u * x


def layered(x):
    """Keeps arrays that the iterations make, and writes into them."""
    y = x
    for k in range(4):
        z = y * x
        z[k] = z[k] ** 2
        z[0] = z[k] * z[0]
        y = np.tanh(z) * z
    return y


def in_place(x):
    for i in range(len(x)):
        x[i] = np.sin(x[i] * x[i - 1])
    return x


def left_early(x):
    """A branch on one condition in both halves, a neighbour of the other but for the mark."""
    s = x[1]
    for i in range(len(x)):
        if s > 0.9:
            break
        s = s + x[i] ** 2
    else:
        s = -1.0
    return s * x


def own_jacobian(f):
    return fwdad.jacobian(f, X, mode="forward")


@pytest.mark.parametrize("f", [filled, overwritten, layered, in_place, left_early])
def test_again_and_for_many(f):
    expected, point, value = own_jacobian(f), X.copy(), f(X.copy())
    y, pullback = fwdad.vjp(f, point)
    assert pullback._kept is not None
    assert_array_equal(point, X)
    assert_array_equal(y, value)
    point[:] = 7.0
    y[:] = 7.0
    for k in (0, 3, 0):
        x_bar = pullback(np.eye(5)[k])
        assert_allclose(x_bar, expected[k], rtol=1e-12, atol=1e-14)
        x_bar[:] = 7.0  # the caller's
    for count in (1, 2, 3):
        assert_allclose(pullback(np.eye(5)[:count]), expected[:count], rtol=1e-12, atol=1e-14)
    assert_allclose(pullback(np.eye(5)), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", [filled, overwritten, layered, in_place])
def test_under_derivatives(f):
    """The pullback is linear; what it kept does not change where it carries derivatives."""
    expected, point = own_jacobian(f), X.copy()
    _, pullback = fwdad.vjp(f, point)
    point[:] = 7.0
    u, v = np.random.default_rng(0).normal(size=(2, 5))
    x_bar, x_bar_dot = fwdad.jvp(pullback, u, v)
    assert_allclose(x_bar, u @ expected, rtol=1e-11, atol=1e-13)
    assert_allclose(x_bar_dot, v @ expected, rtol=1e-11, atol=1e-13)

    def norm(y_bar):
        return np.sum(WEIGHTS * pullback(y_bar) ** 2)

    wanted = 2 * expected @ ((u @ expected) * WEIGHTS)
    assert_allclose(fwdad.grad(norm)(u), wanted, rtol=1e-11, atol=1e-12)
    hessian = 2 * expected @ np.diag(WEIGHTS) @ expected.T
    assert_allclose(fwdad.hessian(norm, u), hessian, rtol=1e-11, atol=1e-12)
    _, both = fwdad.jvp(lambda y_bars: pullback(y_bars), np.stack([u, v]), np.stack([v, u]))
    assert_allclose(both, np.stack([v, u]) @ expected, rtol=1e-11, atol=1e-13)
    assert_allclose(pullback(u), u @ expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", [filled, overwritten, layered, in_place, left_early])
def test_many_cotangents_of_a_gradient(f):
    """The gradient's own reverse pass is run back: stacks of cotangents are empty at the turn."""

    def gradient(x):
        return fwdad.grad(lambda x: np.sum(np.sin(f(x))))(x)

    expected = fwdad.jacobian(gradient, X, mode="forward")
    _, pullback = fwdad.vjp(gradient, X)
    _, J = fwdad.linearize(gradient, X)
    for count in (1, 2, 5):
        found = pullback(np.eye(5)[:count])
        assert_allclose(found, expected[:count], rtol=1e-11, atol=1e-12)
    assert_allclose(J.T @ np.eye(5), expected.T, rtol=1e-11, atol=1e-12)
    assert_allclose(fwdad.jacrev(gradient)(X), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.every(7)
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("shape", ["product", "square", "sine"])
@pytest.mark.parametrize("change", [lambda t: 2 * t, lambda t: t**2])
def test_gradients_of_loops_that_change_an_element(change, shape, n):
    """Cotangents are written in place, too: the second pass needs what they became."""
    outer = {"product": lambda z: np.tanh(z) * z, "square": lambda z: z * z, "sine": np.sin}[shape]

    def f(x):
        y = x
        for k in range(n):
            z = y * x
            z[0] = change(z[0])
            y = outer(z)
        return y

    def gradient(x):
        return fwdad.grad(lambda x: np.sum(f(x) ** 2))(x)

    x = np.linspace(0.6, 1.1, 3)
    expected = fwdad.jacobian(gradient, x, mode="forward")
    steps = [(gradient(x + h) - gradient(x - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
    assert_allclose(expected.T, steps, rtol=1e-6, atol=1e-6)
    assert_allclose(fwdad.jacrev(gradient)(x), expected, rtol=1e-11, atol=1e-12)
    _, pullback = fwdad.vjp(gradient, x)
    for _ in range(2):
        assert_allclose(pullback(np.eye(3)), expected, rtol=1e-11, atol=1e-12)
        assert_allclose(pullback(np.eye(3)[0]), expected[0], rtol=1e-11, atol=1e-12)
    for backend in ("numpy", "numba"):
        own = fwdad.jit(fwdad.grad(lambda x: gradient(x)[0]), backend=backend)(x)
        assert_allclose(own, expected[0], rtol=1e-11, atol=1e-12)


@pytest.mark.every(2)
@pytest.mark.slow_cases("9", "4", "5", "7")
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    f, text = program(seed)
    point = POINT.copy()
    expected = fwdad.jacobian(f, POINT, mode="forward")
    _, pullback = fwdad.vjp(f, point)
    point[...] = 3.0
    close = {"rtol": 1e-8, "atol": 1e-9 * max(1.0, np.abs(expected).max()), "err_msg": text}
    assert pullback._kept is not None
    for _ in range(2):
        assert_allclose(pullback(1.0), expected, **close)
    factors = np.array([1.0, -2.0, 0.5])
    found = pullback(factors)
    for k, factor in enumerate(factors):
        assert_allclose(found[k], factor * expected, **close)


@pytest.mark.parametrize("f", [filled, overwritten, layered, in_place])
def test_both_are_well_formed(f):
    _, pullback = fwdad.vjp(f, X)
    passes = pullback._kept.sweeps.passes
    check_program(passes.forward)
    check_program(passes.reverse)
    assert any(s.deep for s in passes.stacks.values()) == (
        f is layered
    )  # it writes into what lies on one
    assert bool(passes.written) == (f is overwritten)


def test_forward_once(monkeypatch):
    """The function itself runs once however often its pullback is called."""
    runs = []
    forward = residual_store.Sweeps.run

    def counted(self, leaves, **options):
        runs.append(len(leaves))
        return forward(self, leaves, **options)

    monkeypatch.setattr(residual_store.Sweeps, "run", counted)
    _, pullback = fwdad.vjp(filled, X)
    for _ in range(3):
        pullback(np.ones(5))
    _, J = fwdad.linearize(filled, X)
    for _ in range(3):
        J.rmatvec(np.ones(5))
        J.rmatmat(np.eye(5))
    assert len(runs) == 2


TABLE = np.linspace(1.0, 2.0, 1000)
UNREAD = np.linspace(1.0, 2.0, 500)


def tabled(x, a, b):
    """Reads x, a and a captured array in the reverse pass, b and another one only forwards."""
    x[0] = x[0] ** 2
    return np.sum(x * a * TABLE) + np.sum(b + x[0]) + np.sum(UNREAD)


def squares_of_what_is_written(x):
    x[0] = x[1] ** 2
    return np.sum(x * x)


def test_copies_are_those_that_are_read():
    x, a, b = np.ones(1000), np.ones(1000), np.ones(2000)
    report = fwdad.memory_report(tabled, x, a, b)
    assert report.copies == 0  # what is written into x is read for the value alone
    assert report.of("held") == a.nbytes + TABLE.nbytes
    squares = fwdad.memory_report(squares_of_what_is_written, x)
    assert squares.copies == x.nbytes
    squared = fwdad.memory_report(lambda x: np.sum(x * x), x)
    assert squared.of("held") == x.nbytes
    assert fwdad.memory_report(lambda x: np.sum(3.0 * x), x).of("held") == 0


def test_what_is_captured_may_change():
    table = np.array([1.0, 2.0, 3.0])
    _, pullback = fwdad.vjp(lambda x: x * x * table, np.ones(3))
    table[:] = 0.0
    assert_allclose(pullback(np.ones(3)), [2.0, 4.0, 6.0])


def test_a_value_that_is_read_again():
    """Memory that is kept is not the caller's, and its copy is listed."""
    y, pullback = fwdad.vjp(np.exp, X)
    y *= 0.0
    assert_allclose(pullback(np.ones(5)), np.exp(X), rtol=1e-15)
    assert fwdad.memory_report(lambda x: np.exp(x), X).of("held") == X.nbytes


def test_two_names_for_what_is_written(monkeypatch):
    """What cannot be cut is recorded: no array that is restored goes over under two names."""

    def refused(*_args):
        message = "the reverse pass writes into an array that it may know by two names"
        raise UntraceableError(message)

    monkeypatch.setattr(residual_store, "cut", refused)
    _, pullback = fwdad.vjp(lambda x: layered(x), X)
    assert pullback._kept is None
    assert_allclose(pullback(WEIGHTS), WEIGHTS @ own_jacobian(layered), rtol=1e-12)


def test_linearize_has_copies():
    x, a = X.copy(), WEIGHTS.copy()

    def f(x, a):
        x[0] = x[0] * a[1]
        return x * a * x

    expected = fwdad.jacobian(f, x, args=(a,), mode="forward")
    y, J = fwdad.linearize(f, x, args=(a,))
    assert_array_equal(x, X)
    x[:] = a[:] = y[:] = 0.0
    for _ in range(2):
        assert_allclose(J @ np.eye(5), expected, rtol=1e-13)
        assert_allclose(J.T @ np.eye(5), expected.T, rtol=1e-13)
