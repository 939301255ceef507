"""``scipy.integrate.odeint``, differentiated by its start, its times and its right-hand side."""

import numpy as np
import pytest
from scipy.integrate import odeint

import fwdad

TIMES = np.array([0.0, 0.4, 0.4, 1.0])
X = np.array([0.7, 1.3, 0.2])
TIGHT = {"rtol": 1e-11, "atol": 1e-12}


def decay(p):
    return odeint(lambda y, t: -p[0] * y, p[1], TIMES, **TIGHT)[:, 0]


def pendulum(p):
    def rhs(t, y, b, c):
        return [y[1], -b * y[1] - c * np.sin(y[0])]

    return odeint(rhs, [p[2], 1.0], TIMES[[0, 1, 3]], args=(p[0], p[1]), tfirst=True, **TIGHT)


def oscillator(p):
    """The same in closed form, as x'' = -x from x = p1 and x' = p2."""
    return odeint(lambda y, t: np.array([y[1], -y[0]]), p[1:], TIMES, **TIGHT)


def turned(p):
    c, s = np.cos(TIMES), np.sin(TIMES)
    return np.stack([p[1] * c + p[2] * s, p[2] * c - p[1] * s], axis=1)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_against_closed_forms(chunk):
    got = fwdad.jacobian(decay, X, chunk=chunk)
    expected = fwdad.jacobian(lambda p: p[1] * np.exp(-p[0] * TIMES), X)
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        fwdad.jacobian(oscillator, X, chunk=chunk), fwdad.jacobian(turned, X), rtol=1e-7, atol=1e-9
    )


@pytest.mark.slow_cases("oscillator", "pendulum")
@pytest.mark.parametrize("f", [decay, pendulum, oscillator])
def test_every_mode_agrees_with_differences(f):
    step = 1e-4 * np.eye(3)
    columns = [(8 * (f(X + h) - f(X - h)) - f(X + 2 * h) + f(X - 2 * h)) / 12e-4 for h in step]
    expected = np.stack(columns, axis=-1)
    for derivative in (fwdad.jacfwd(f), fwdad.jacrev(f), fwdad.jit(fwdad.jacfwd(f))):
        np.testing.assert_allclose(derivative(X), expected, rtol=1e-6, atol=1e-7)


def test_the_values_are_its_own():
    assert np.array_equal(fwdad.jvp(pendulum, X, X)[0], pendulum(X))


def test_second_derivatives():
    got = fwdad.hessian(lambda p: decay(p)[-1], X)
    expected = fwdad.hessian(lambda p: p[1] * np.exp(-p[0]), X)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


def test_times_with_derivatives():
    def f(p):
        return odeint(lambda y, t: -2 * y, 1.0, np.array([0.0, p[0], p[1]]), **TIGHT)[:, 0]

    expected = np.zeros((3, 2))
    expected[1, 0], expected[2, 1] = -2 * np.exp(-2 * X[:2])
    np.testing.assert_allclose(fwdad.jacobian(f, X[:2]), expected, rtol=1e-7, atol=1e-9)


def test_repeated_times_with_derivatives_are_refused():
    def f(t):
        return odeint(lambda y, _: -y, 1.0, np.array([0.0, t, t]))

    with pytest.raises(fwdad.errors.MissingRuleError, match="different"):
        fwdad.derivative(f, 0.5)


def test_the_start_alone():
    def f(y):
        return odeint(lambda y, _: -y, y, [0.0])

    np.testing.assert_array_equal(fwdad.jacobian(f, X), np.eye(3)[None])


def test_all_that_odeint_returns():
    def f(p):
        return odeint(lambda y, t: -p * y, 1.0, TIMES, full_output=True, **TIGHT)

    (_, info), (y_dot, _) = fwdad.jvp(f, 0.7, 1.0)
    assert info["message"] == f(0.7)[1]["message"]
    np.testing.assert_allclose(y_dot[:, 0], -TIMES * np.exp(-0.7 * TIMES), rtol=1e-7, atol=1e-9)
