"""The language: what runs forwards and backwards, and what its derivatives are."""

import numpy as np
import pytest

import fwdad
from fwdad.errors import InvertibilityError
from fwdad.reversible import check_gradient, check_inverse
from tests.reversible.programs import (
    PROGRAMS,
    X,
    backwards,
    copied,
    dot,
    fibonacci,
    flat,
    is_float,
    moves,
    norm,
    until,
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_inverse_undoes(name):
    f, args = PROGRAMS[name]
    before = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    there = f(*args)
    np.testing.assert_allclose(flat((~f)(*there)), flat(args), rtol=1e-13, atol=1e-13)
    assert ~~f is f
    for a, b in zip(args, before, strict=True):
        assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a is b


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("inverse", [False, True])
def test_pullback_agrees_with_forward_mode(name, inverse):
    f, args = PROGRAMS[name]
    if inverse:
        args = f(*args)
        f = ~f
    wrt = tuple(k for k, a in enumerate(args) if is_float(a))
    weights = [np.cos(1.0 + np.arange(np.size(a))).reshape(np.shape(a)) for a in args]

    def loss(*args):
        return sum(np.sum(w * y) for w, y in zip(weights, f(*args), strict=True) if is_float(y))

    reverse = fwdad.grad(loss, argnums=wrt)(*args)
    for chunk in (1, 2, 3):
        forward = fwdad.jacfwd(loss, argnums=wrt, chunk=chunk)(*args)
        np.testing.assert_allclose(flat(reverse), flat(forward), rtol=1e-12, atol=1e-12)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["dot", "moves", "backwards", "matrix"])
def test_compiled(name):
    f, args = PROGRAMS[name]
    wrt = tuple(k for k, a in enumerate(args) if is_float(a))

    def loss(*args):
        return np.sum(np.sin(flat_sum(f(*args))))

    compiled = fwdad.jit(fwdad.grad(loss, argnums=wrt))
    expected = fwdad.grad(loss, argnums=wrt)(*args)
    np.testing.assert_allclose(flat(compiled(*args)), flat(expected), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(flat(fwdad.jit(f)(*args)), flat(f(*args)), rtol=1e-14)


def flat_sum(parts):
    total = 0.0
    for p in parts:
        total = total + np.sum(p)
    return total


def test_norm_has_the_published_gradient():
    x = np.array([1.0, 2.0, 3.0])
    y, r2, same = norm(0.0, 0.0, x)
    assert (y, r2) == (np.sqrt(14.0), 14.0)
    y, r2, same = (~norm)(y, r2, same)
    assert (y, r2) == (0.0, 0.0)
    assert np.array_equal(same, x)
    one, dr2, dx = fwdad.grad(norm, argnums=(0, 1, 2))(0.0, 0.0, x)
    assert one == 1.0
    np.testing.assert_allclose(dr2, 0.13363, atol=5e-6)
    np.testing.assert_allclose(dx, [0.26726, 0.53452, 0.80178], atol=5e-6)


def test_recursion_and_loops_with_conditions():
    assert fibonacci(0, 10) == (55, 10)
    assert (~fibonacci)(55, 10) == (0, 10)
    assert until(0, 9) == (108, 9)
    assert (~until)(108, 9) == (0, 9)


def test_cotangent_of_a_copied_ancilla():
    assert fwdad.grad(copied, argnums=(0, 1))(1.0, 2.0) == (1.0, 1.0)


def test_second_derivatives():
    x = X[:3]
    expected = np.exp(x @ x) * (4 * np.outer(x, x) + 2 * np.eye(3))
    for chunk in (1, 2, 3):
        hessian = fwdad.hessian(lambda x: dot(0.0, x, x.copy())[0], x, chunk=chunk)
        np.testing.assert_allclose(hessian, expected, rtol=1e-12)


def test_inside_an_ordinary_loop():
    def f(x):
        total = 0.0
        for k in range(3):
            y, _, moved = norm(0.0, 0.0, x * (k + 1))
            moved[0] = 7.0
            total += y * moved[1]
        return total

    expected = fwdad.jacobian(f, X)
    np.testing.assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-13)
    np.testing.assert_allclose(fwdad.jit(fwdad.grad(f))(X), expected, rtol=1e-13)


def test_the_inverse_can_be_read_and_run():
    text = fwdad.show(~backwards)
    assert "for i in reversed(range(1, len(x), 2)):" in text
    assert "y[i] += x[i] * x[i - 1]" in text
    assert "with compute():" in fwdad.show(~dot)
    adjoint = fwdad.show(fwdad.grad(norm, argnums=2), 0.0, 0.0, X)
    assert "x_bar" in adjoint


def test_measures():
    assert check_inverse(norm, 0.0, 0.0, X) < 1e-15
    assert check_gradient(dot, 0.3, X, X + 1) < 1e-8
    assert check_gradient(~moves, 0.3, 0.4, X) < 1e-8
    with pytest.raises(InvertibilityError, match="1e-20"):
        check_inverse(copied, 1e-20, 1e20)
