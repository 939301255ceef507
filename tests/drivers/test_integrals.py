"""``scipy.integrate.quad`` and what is made of it, differentiated by its integrand and its ends."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special

import fwdad

X = np.array([1.3, 0.7])


def quad(f, a, b, **options):
    return integrate.quad(f, a, b, **options)[0]


# what is integrated, and the same in closed form
CLOSED = {
    "smooth": (
        lambda p: quad(lambda t: p[1] * np.sin(p[0] * t), 0, 1),
        lambda p: p[1] * (1 - np.cos(p[0])) / p[0],
    ),
    "an end": (lambda p: quad(np.exp, p[0], 3 * p[1]), lambda p: np.exp(3 * p[1]) - np.exp(p[0])),
    "ends and integrand": (
        lambda p: quad(lambda t: p[0] * t**2, p[1], p[0]),
        lambda p: p[0] * (p[0] ** 3 - p[1] ** 3) / 3,
    ),
    "backwards": (
        lambda p: quad(lambda t: p[0] * t, 2, p[1]),
        lambda p: p[0] * (p[1] ** 2 / 2 - 2),
    ),
    "singular end": (lambda p: quad(lambda t: t ** (p[1] - 1), 0, 1), lambda p: 1 / p[1]),
    "logarithm": (
        lambda p: quad(lambda t: np.log(p[0] * t) * p[1], 0, 1),
        lambda p: p[1] * (np.log(p[0]) - 1),
    ),
    "to infinity": (
        lambda p: quad(lambda t: t ** (p[0] - 1) * np.exp(-t / p[1]), 0, np.inf),
        lambda p: special.gamma(p[0]) * p[1] ** p[0],
    ),
    "from minus infinity": (
        lambda p: quad(lambda t: np.exp(p[0] * t), -np.inf, p[1]),
        lambda p: np.exp(p[0] * p[1]) / p[0],
    ),
    "the line": (
        lambda p: quad(lambda t: np.exp(-p[0] * (t - p[1]) ** 2), -np.inf, np.inf),
        lambda p: np.sqrt(np.pi / p[0]),
    ),
    "a kink": (
        lambda p: quad(lambda t: p[0] * np.abs(t - 0.3), 0, 1, points=[0.3]),
        lambda p: p[0] * 0.29,
    ),
    "arguments": (
        lambda p: quad(lambda t, a, b: a * t + b, 0, 2, args=(p[0], p[1])),
        lambda p: 2 * p[0] + 2 * p[1],
    ),
    "waves": (
        lambda p: quad(lambda t: np.cos(40 * p[0] * t), 0, 2),
        lambda p: np.sin(80 * p[0]) / (40 * p[0]),
    ),
    "two integrals": (
        lambda p: integrate.dblquad(
            lambda y, x: p[0] * x * y**2, 0, p[1], lambda x: 0, lambda x: p[0] * x
        )[0],
        lambda p: p[0] ** 4 * p[1] ** 5 / 15,
    ),
    "of several variables": (
        lambda p: integrate.nquad(lambda x, y: np.exp(p[0] * x + p[1] * y), [[0, 1], [0, 1]])[0],
        lambda p: np.expm1(p[0]) / p[0] * np.expm1(p[1]) / p[1],
    ),
}  # fmt: skip


@pytest.mark.slow_cases("two integrals-1", "two integrals-2")
@pytest.mark.parametrize(
    ("name", "chunk"),
    [(name, chunk) for name in CLOSED for chunk in (1, 2, 3) if chunk == 3 or "of" not in name],
)
def test_integrals_in_closed_form(name, chunk):
    integral, closed = CLOSED[name]
    got = fwdad.jacobian(integral, X, chunk=chunk)
    np.testing.assert_allclose(got, fwdad.jacobian(closed, X), rtol=1e-9, atol=1e-12)


@pytest.mark.every(3)
@pytest.mark.parametrize("name", CLOSED)
def test_backwards_and_compiled(name):
    integral, closed = CLOSED[name]
    expected = fwdad.grad(closed)(X)
    np.testing.assert_allclose(fwdad.grad(integral)(X), expected, rtol=1e-9, atol=1e-12)
    made = fwdad.jit(fwdad.grad(integral))(X)
    np.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["smooth", "ends and integrand", "backwards", "singular end"])
def test_second_derivatives(name):
    integral, closed = CLOSED[name]
    expected = fwdad.hessian(closed, X)
    got = fwdad.jacobian(lambda p: fwdad.jacobian(integral, p), X)
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(fwdad.hessian(integral, X), expected, rtol=1e-7, atol=1e-10)


SAYS_NOTHING = {  # the integral from -1 to 1 is 0, and QUADPACK does not divide the interval
    "a peak": (lambda t, p: p / (t**2 + 1e-2), 0.0, 20 * np.arctan(10)),
    "fast": (lambda t, p: p * np.cos(150 * t), 0.0, np.sin(150) / 75),
    "odd": (lambda t, p: np.sin(p * t), 90.0, 0.0),
    "odd and even": (
        lambda t, p: np.sin(90 * t) + p * np.cos(90 * t), 0.0, np.sin(90) / 45,
    ),
    "singular": (lambda t, p: p * np.sqrt(1 - t**2), 0.0, np.pi / 2),
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS_NOTHING)
def test_a_value_that_says_nothing(name):
    integrand, p, expected = SAYS_NOTHING[name]

    def f(p):
        return quad(lambda t: integrand(t, p), -1, 1)

    np.testing.assert_allclose(fwdad.derivative(f, p), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(fwdad.grad(f)(p), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(fwdad.jit(fwdad.grad(f))(p), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("read", ["captured", "argument", "memory"])
def test_a_sharp_part_that_is_multiplied_by_zero(read):
    """The value is settled long before the derivative, which only the reverse pass knows."""
    held = np.zeros(2)

    def f(p):
        held[:] = p
        q = {"captured": p, "argument": None, "memory": held}[read]
        args = (p,) if read == "argument" else ()
        return quad(
            lambda t, *given: np.exp(t) + (given[0] if given else q)[0] / (t**2 + 1e-2), -1, 1,
            args=args,
        )  # fmt: skip

    expected = [20 * np.arctan(10), 0]
    np.testing.assert_allclose(fwdad.grad(f)(np.zeros(2)), expected, rtol=1e-8)
    np.testing.assert_allclose(fwdad.jacobian(f, np.zeros(2)), expected, rtol=1e-8)
    second = fwdad.hessian(lambda p: f(p) * p[1], np.zeros(2))
    np.testing.assert_allclose(second, [[0, expected[0]], [expected[0], 0]], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_derivatives_in_a_branch_alone(chunk):
    def f(p):
        return quad(lambda t: p @ p * t if t > 0.97 else 1.0 * t, 0, 1, points=[0.97])

    x = np.array([1.0, 2.0, 0.5])
    expected = x[None] * (1 - 0.97**2)
    got = fwdad.jacobian(f, x, chunk=chunk)
    np.testing.assert_allclose(np.reshape(got, (1, 3)), expected, rtol=1e-9)


def test_third_derivative_by_an_end():
    def integral(b):
        return quad(lambda t: np.sin(t * b), 0, b)

    def second(b):
        return fwdad.derivative(lambda b: fwdad.derivative(integral, b), b)

    got = fwdad.derivative(second, 1.1)
    expected = mpmath.diff(lambda b: (1 - mpmath.cos(b**2)) / b, 1.1, 3)
    np.testing.assert_allclose(got, float(expected), rtol=1e-9)


def test_the_value_is_quadpacks():
    for integral, _ in CLOSED.values():
        value, _ = fwdad.jvp(integral, X, X)
        assert value == integral(X)


def test_all_that_quad_returns():
    def everything(p):
        return integrate.quad(lambda t: p * t, 0, 1, full_output=True)

    (value, error, info), (value_dot, *_) = fwdad.jvp(everything, 2.0, 1.0)
    assert (value, value_dot) == pytest.approx((1.0, 0.5))
    assert error == everything(2.0)[1]
    assert info["neval"] == 21


def test_complex_values():
    def integral(p):
        return quad(lambda t: np.exp(1j * p * t), 0, 1, complex_func=True)

    got = fwdad.derivative(integral, 1.3)
    step = 1e-5
    expected = (integral(1.3 + step) - integral(1.3 - step)) / (2 * step)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_a_constant_integral_has_no_derivative_to_find():
    jump = 1 / 3

    def f(p):
        return p * quad(lambda t: 1.0 if t < jump else 2.0, 0, 1)

    assert fwdad.derivative(f, 2.0) == f(1.0)


def test_an_integrand_that_jumps_is_refused_without_its_place():
    def f(p):
        return quad(lambda t: p * (1.0 if t < 1 / 3 else 2.0), 0, 1)

    with pytest.raises(fwdad.errors.UndefinedDerivativeError, match="points"):
        fwdad.derivative(f, 2.0)

    def split(p):
        return quad(lambda t: p * (1.0 if t < 1 / 3 else 2.0), 0, 1, points=[1 / 3])

    assert fwdad.derivative(split, 2.0) == pytest.approx(5 / 3)


def test_a_weight_is_refused():
    with pytest.raises(fwdad.errors.MissingRuleError, match="multiply the integrand"):
        fwdad.derivative(lambda p: quad(lambda t: p * t, 0, 1, weight="cos", wvar=2.0), 1.0)


def test_calls_are_counted_once():
    calls = []

    def f(p):
        return quad(lambda t: (calls.append(None), p * t)[1], 0, 1)

    fwdad.jvp(f, 1.0, 1.0)
    assert len(calls) == 21


def test_a_divergent_integral_is_refused():
    with pytest.raises(fwdad.errors.UndefinedDerivativeError):
        fwdad.derivative(lambda p: quad(lambda t: p / t, 0, 1), 1.0)


def test_warnings_are_quads():
    def f(p):
        return quad(lambda t: p * np.cos(300 * t), 0, 2, limit=3)

    with pytest.warns(integrate.IntegrationWarning):
        value = f(2.0)
    with pytest.warns(integrate.IntegrationWarning):
        assert fwdad.jvp(f, 2.0, 1.0)[0] == value


@pytest.mark.parametrize("f", [
    lambda t: quad(lambda x, c: np.sqrt(c - x * x), 0.0, t, args=(t * t,)),
    lambda t: quad(lambda x: np.sqrt(t - x), 0.0, t),
    lambda t: quad(lambda x, c: c - x * np.sqrt(c - x), 0.0, t, args=(t,)),
])  # fmt: skip
def test_ends_at_which_slopes_are_infinite(f):
    """The integrand counts there, and its slope does not: 0 times an infinity was NaN."""
    wanted = (f(1.7 + 1e-4) - f(1.7 - 1e-4)) / 2e-4
    assert_allclose(fwdad.jvp(f, 1.7, 1.0)[1], wanted, rtol=1e-7)
    assert_allclose(fwdad.grad(f)(1.7), wanted, rtol=1e-7)
