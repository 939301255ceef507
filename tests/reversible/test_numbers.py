"""Fixed-point and logarithmic numbers: exact both ways, and derivatives of what they stand for."""

import math
import pickle
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

import fwdad
from fwdad.errors import InvertibilityError, IrreversibleError, UnsupportedTypeError
from fwdad.reversible import (
    Fixed,
    Logarithmic,
    ancilla,
    check_gradient,
    check_inverse,
    free,
    reversible,
    rotate,
)

F = Fixed(43)


@reversible
def pendulum(q, p, n, h):
    for _ in range(n):
        p -= h * np.sin(q) * np.exp(-0.1 * q * q)
        q += h * p


@dataclass
class Body:
    x: object
    v: object


@reversible
def moves(y, x, b, w):
    y += np.sin(x) * w
    y[0] -= x[1] ** 2
    t = ancilla(F(np.zeros(len(x))))
    s = ancilla(F(w[0]))
    t += np.exp(0.1 * x)
    y[1:] += t[1:]
    y, t = t, y
    y[:1] += s
    y, t = t, y
    for v in y:
        b.v += v * 0.5
    b.x += b.v
    t[0] -= s
    t -= np.exp(0.1 * x)
    free(s, F(w[0]))
    free(t, F(np.zeros(len(x))))
    y = -y


@reversible
def power(x, y, n):
    for _ in range(n):
        x *= y


@reversible
def products(s, x, y, w):
    x *= np.exp(w) * y
    x[0] /= w[1]
    x[1] *= x[0]
    t = ancilla(Logarithmic(w[2]))
    t *= y
    x[2] *= t
    for v in x:
        s += v * v
    t /= y
    free(t, Logarithmic(w[2]))
    y /= 2.0


W = np.array([1.5, 2.5, 0.7])
X = np.array([0.3, 1.2, 0.9])


def plain_moves(y, x, bx, bv, w):
    y = y + np.sin(x) * w + np.exp(0.1 * x) * np.array([0.0, 1.0, 1.0])
    y = y - np.array([1.0, 0.0, 0.0]) * x[1] ** 2
    bv = bv + 0.5 * np.sum(y)
    return np.sum(np.cos(-y)) + 2.0 * (bx + bv) + np.sin(bv)


def plain_products(x, y, w):
    a = x * np.exp(w) * y
    p = a[0] / w[1]
    q = a[1] * p
    r = a[2] * w[2] * y
    return p**2 + q**2 + r**2 + np.sin(p) + np.cos(q) + r + 3 * (y / 2)


def fixed_loss(y, x, bx, bv, w):
    y, x, b, w = moves(F(y), x, Body(F(bx), F(bv)), w)
    return np.sum(np.cos(y.value)) + 2.0 * b.x.value + np.sin(b.v.value)


def log_loss(x, y, w):
    s, x, y, w = products(0.0, Logarithmic(x), Logarithmic(y), w)
    p, q, r = x.value[0], x.value[1], x.value[2]
    return s + np.sin(p) + np.cos(q) + r + 3 * y.value


def test_numbers_are_what_they_were_made_of():
    x = F([0.5, -0.25, 0.1])
    assert repr(F(0.5)) == "Fixed(43)(0.5)"
    assert float(F(0.5)) == 0.5
    assert F(0.1).scaled == round(0.1 * 2**43)
    assert np.asarray(x).dtype == float
    assert np.array_equal(x.value * 2.0**43, np.rint(np.array([0.5, -0.25, 0.1]) * 2.0**43))
    assert (len(x), x.shape, x.ndim, x.size) == (3, (3,), 1, 3)
    assert x[1] == F(-0.25) == -0.25
    assert np.array_equal(x[1:].value, x.value[1:])
    assert [float(v) for v in x] == list(x.value)
    for held in (F(0.3), x, Logarithmic(2.0), Logarithmic([0.0, 3.0], bits=40)):
        again = pickle.loads(pickle.dumps(held))
        assert np.all(again == held)
        assert again.format == held.format
    assert repr(Logarithmic(1.0)) == "Logarithmic(1.0)"
    np.testing.assert_allclose(Logarithmic([0.0, 3.0]).value, [0.0, 3.0], rtol=1e-13)
    assert Logarithmic(0.0).value == 0.0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: F(1024.0), OverflowError),
        (lambda: F(np.array([0.0, -2000.0])), OverflowError),
        (lambda: F(math.nan), OverflowError),
        (lambda: F(1j), UnsupportedTypeError),
        (lambda: Fixed(0), UnsupportedTypeError),
        (lambda: Logarithmic(-1.0), ValueError),
        (lambda: Logarithmic(math.inf), ValueError),
        (lambda: Logarithmic(1e300, bits=46), OverflowError),
    ],
)
def test_what_does_not_fit_raises(make, error):
    with pytest.raises(error):
        make()


def test_steps_are_undone_to_the_last_bit():
    n = 100_000
    q, p = F(1.25), F(0.0)
    run, back = fwdad.jit(pendulum), fwdad.jit(~pendulum)
    there = run(q, p, n, 0.01)
    again = back(*there)
    assert (again[0], again[1]) == (q, p)
    assert there[0] != q
    there = pendulum(q, p, 3000, 0.01)
    again = (~pendulum)(*there)
    assert (again[0], again[1]) == (q, p)
    many = F(np.linspace(-2.0, 2.0, 37)), F(np.zeros(37))
    there = fwdad.jit(pendulum)(*many, 200, 0.01)
    again = fwdad.jit(~pendulum)(*there)
    assert np.array_equal(again[0].stored, many[0].stored)
    assert np.array_equal(again[1].stored, many[1].stored)
    assert check_inverse(pendulum, q, p, 100, 0.01) == 0.0


def test_gradient_of_many_steps_is_that_of_floats():
    def exact(q, p):
        return pendulum(F(q), F(p), 2000, 0.01)[0].value

    def floats(q, p):
        for _ in range(2000):
            p = p - 0.01 * (np.sin(q) * np.exp(-0.1 * q * q))
            q = q + 0.01 * p
        return q

    expected = fwdad.jacfwd(floats, argnums=(0, 1))(1.25, 0.1)
    for f in (fwdad.grad, fwdad.jacfwd):
        np.testing.assert_allclose(fwdad.jit(f(exact, argnums=(0, 1)))(1.25, 0.1), expected, 1e-9)
    direct = fwdad.grad(pendulum, argnums=(0, 1))(F(1.25), F(0.1), 2000, 0.01)
    np.testing.assert_allclose(direct, expected, rtol=1e-9)


CASES = {
    "fixed": (fixed_loss, plain_moves, (np.ones(3), X, 0.3, 0.4, W)),
    "log": (log_loss, plain_products, (X, 1.7, W)),
}


@pytest.mark.every(2)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_the_values(name):
    f, plain, args = CASES[name]
    wrt = tuple(range(len(args)))
    expected = flat(fwdad.jacfwd(plain, argnums=wrt)(*args))
    np.testing.assert_allclose(f(*args), plain(*args), rtol=1e-11)
    for chunk in (1, 2, 3):
        found = fwdad.jacfwd(f, argnums=wrt, chunk=chunk)(*args)
        np.testing.assert_allclose(flat(found), expected, rtol=1e-10, atol=1e-12)
    for g in (fwdad.grad(f, argnums=wrt), fwdad.jit(fwdad.grad(f, argnums=wrt))):
        np.testing.assert_allclose(flat(g(*args)), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name):
    f, plain, args = CASES[name]

    def at(g):
        return lambda z: g(*args[:-1], z)

    expected = fwdad.hessian(at(plain), args[-1])
    np.testing.assert_allclose(fwdad.hessian(at(f), args[-1]), expected, rtol=1e-9, atol=1e-11)
    twice = fwdad.jacfwd(fwdad.jacfwd(at(f)))(args[-1])
    np.testing.assert_allclose(twice, expected, rtol=1e-9, atol=1e-11)


def flat(parts):
    return np.concatenate([np.ravel(p) for p in parts])


def test_arguments_that_are_such_numbers_have_floats_for_cotangents():
    args = F(np.ones(3)), X, Body(F(0.3), F(0.4)), W
    assert check_inverse(moves, *args) == 0.0
    assert check_gradient(moves, *args) < 1e-8
    assert check_gradient(~moves, *moves(*args)) < 1e-8
    exact = 0.0, Logarithmic(X), Logarithmic(1.7), W
    assert check_gradient(products, *exact) < 1e-8
    assert check_gradient(~products, *products(*exact)) < 1e-8

    def squares(x, y, w):
        a = x * np.exp(w) * y
        p = a[0] / w[1]
        return p**2 + (a[1] * p) ** 2 + (a[2] * w[2] * y) ** 2

    expected = fwdad.grad(squares, argnums=(0, 1, 2))(X, 1.7, W)
    gradient = fwdad.grad(products, argnums=(1, 2, 3))
    for run in (gradient, fwdad.jit(gradient, backend="numpy")):
        found = run(*exact)
        assert type(found[0]) is np.ndarray
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    x_dot = np.array([0.2, -0.1, 0.4])
    _, found = fwdad.jvp(lambda x: products(0.0, x, exact[2], W)[0], exact[1], x_dot)
    np.testing.assert_allclose(found, expected[0] @ x_dot, rtol=1e-10)


def test_a_thousandth_power_beyond_floats():
    x, y, n = power(Logarithmic(1.0, bits=40), Logarithmic(7.25, bits=40), 1000)
    with mpmath.workdps(40):
        exact = 1000 * mpmath.log(mpmath.mpf("7.25"))
        assert abs(mpmath.mpf(float(x.log)) - exact) < 1000 * 2.0**-41
    assert x.value == math.inf
    back = (~power)(x, y, n)
    assert (back[0], back[1]) == (Logarithmic(1.0, bits=40), y)

    def f(y):
        return power(Logarithmic(1.0), Logarithmic(y), 1000)[0].value

    with mpmath.workdps(40):
        slope = float(1000 * mpmath.mpf("1.01") ** 999)
    np.testing.assert_allclose(fwdad.grad(f)(1.01), slope, rtol=2e-10)
    np.testing.assert_allclose(fwdad.jit(fwdad.grad(f))(1.01), slope, rtol=2e-10)


def test_zero_stays_zero_and_has_a_derivative():
    zero, two = Logarithmic(0.0), Logarithmic(2.0)
    x, _, _ = power(zero, two, 5)
    assert x.value == 0.0
    assert (~power)(x, two, 5)[0] == zero
    np.testing.assert_allclose(fwdad.grad(power, argnums=(0, 1))(zero, two, 5), [32.0, 0.0], 1e-12)
    f = fwdad.jacfwd(lambda v: power(Logarithmic(v), two, 5)[0].value)
    np.testing.assert_allclose(f(0.0), 32.0, rtol=1e-12)
    assert fwdad.grad(lambda v: 3.0 * Logarithmic(v).value)(0.0) == 3.0


@reversible
def adds(x, y):
    x += y


@reversible
def adds_all(x, y):
    x -= y


@reversible
def scales(x, y):
    x *= y


@reversible
def divides(x, y):
    x /= y


@reversible
def leaks(x, y):
    t = ancilla(F(0.0))
    t += 2.0**-43
    x += y
    free(t, F(0.0))


@reversible
def starts(x, y):
    t = ancilla(Logarithmic(y))
    x += t
    free(t, Logarithmic(y))


@pytest.mark.parametrize(
    ("f", "args", "variable"),
    [
        (adds, (F(1000.0), 24.0), "x"),
        (adds_all, (F([0.0, -1000.0]), 24.0), "x"),
        (adds, (F(0.0), math.nan), "x"),
        (scales, (Logarithmic(1e300, bits=43), 1e300), "x"),
        (scales, (Logarithmic(1.0), 0.0), "y"),
        (scales, (Logarithmic(1.0), -2.0), "y"),
        (divides, (Logarithmic([1.0, 2.0]), Logarithmic([1.0, 0.0])), "y"),
        (leaks, (0.0, 1.0), "t"),
        (starts, (0.0, -1.0), "t"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")  # the value, beside its logarithm
@pytest.mark.parametrize("compiled", [False, True])
def test_raises_when_it_runs(f, args, variable, compiled):
    if compiled and f in (adds_all, divides, starts):
        f = fwdad.jit(f, backend="numpy")
    elif compiled:
        f = fwdad.jit(f)
    with pytest.raises(InvertibilityError) as caught:
        f(*args)
    assert caught.value.variable == variable
    assert caught.value.filename == __file__


@reversible
def negates(x):
    x = -x


@reversible
def rotates(x, y):
    rotate(x, y, 0.5)


@pytest.mark.parametrize(
    ("f", "args", "says"),
    [
        (scales, (1.0, 2.0), "Logarithmic"),
        (scales, (F(1.0), 2.0), "products are rounded"),
        (adds, (Logarithmic(1.0), 2.0), "multiplied and divided only"),
        (adds, (F(1.0), 2j), "complex"),
        (negates, (Logarithmic(1.0),), "never negative"),
        (rotates, (F(1.0), F(2.0)), "rounded"),
    ],
)
def test_what_has_no_exact_inverse_is_refused(f, args, says):
    with pytest.raises(IrreversibleError, match=says):
        f(*args)


def test_a_derivative_is_never_dropped_silently():
    for f in (fwdad.jacfwd, fwdad.grad):
        assert f(lambda v: F(v).value)(0.3) == 1.0
