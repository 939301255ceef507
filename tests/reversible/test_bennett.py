"""Bennett's scheme, and what calls update."""

import numpy as np
import pytest

import fwdad
from fwdad.reversible import ancilla, bennett, check_gradient, free, reversible
from tests.tiers import every


def logistic(x):
    return 3.6 * x * (1 - x)


def repeated(x, n):
    for _ in range(n):
        x = logistic(x)
    return x


@pytest.mark.every(3)
@pytest.mark.parametrize("n", [1, 2, 7, 20])
@pytest.mark.parametrize("k", every(2, [2, 3, 5]))
def test_iterates_and_undoes(n, k):
    f = bennett(logistic, k)
    there = f(0.0, 0.3, n)
    assert there == (repeated(0.3, n), 0.3, n)
    assert (~f)(*there) == (0.0, 0.3, n)
    slope = fwdad.grad(f, argnums=1)(0.0, 0.3, n)
    np.testing.assert_allclose(slope, fwdad.derivative(repeated, 0.3, args=(n,)), rtol=1e-13)


def test_arrays_and_compiled():
    f = bennett(lambda x: np.sin(x) + 0.1 * x[::-1], 3)
    x = np.array([0.1, 0.5, 0.9])

    def plain(x, n):
        for _ in range(n):
            x = np.sin(x) + 0.1 * x[::-1]
        return np.sum(x)

    gradient = fwdad.jit(fwdad.grad(lambda x, n: np.sum(f(np.zeros(3), x, n)[0])))
    for n in (1, 17):
        np.testing.assert_allclose(gradient(x, n), fwdad.jacobian(plain, x, args=(n,)), rtol=1e-13)


def test_a_reversible_step():
    @reversible
    def step(y, x):
        y += logistic(x)

    f = bennett(step, 4)
    assert f(0.0, 0.3, 9)[0] == repeated(0.3, 9)
    with pytest.raises(ValueError, match="2 parts"):
        bennett(step, 1)


@reversible
def adds(x, n):
    x += n


@reversible
def counts(x, n):
    n += 1
    x += n


def test_a_name_may_be_given_to_a_call_that_leaves_it():
    @reversible
    def leaves(x, n):
        m = n + 1
        adds(x, m)
        adds(x, n)

    @reversible
    def moves(x, n):
        m = n + 1
        x += m
        counts(x, n)

    assert leaves(1.0, 2) == (6.0, 2)
    assert (~leaves)(6.0, 2) == (1.0, 2)
    with pytest.raises(fwdad.errors.IrreversibleError, match="'n' is updated by this call"):
        moves(1.0, 2)


def test_functions_that_call_one_another():
    @reversible
    def even(x, n):
        if n > 0:
            m = ancilla(0)
            m += n - 1
            odd(x, m)
            free(m, n - 1)

    @reversible
    def odd(x, n):
        x += np.sin(x_of(n))
        if n > 0:
            m = ancilla(0)
            m += n - 1
            even(x, m)
            free(m, n - 1)

    def x_of(n):
        return 0.1 * n

    expected = 0.5 + np.sin(0.3) + np.sin(0.1)
    assert even(0.5, 4) == (expected, 4)
    np.testing.assert_allclose((~even)(expected, 4)[0], 0.5, rtol=1e-15)


@reversible
def halves(y, x):
    if len(x) == 1:
        y += np.sin(x[0])
    else:
        halves(y, x[: len(x) // 2])
        halves(y, x[len(x) // 2 :])


def test_recursion_on_parts_of_an_array():
    x = np.linspace(0.1, 0.9, 7)
    y, same = halves(0.0, x)
    np.testing.assert_allclose(y, np.sum(np.sin(x)), rtol=1e-15)
    np.testing.assert_allclose((~halves)(y, same)[0], 0.0, atol=1e-15)
    for run in (fwdad.grad(halves, argnums=1), fwdad.jit(fwdad.grad(halves, argnums=1))):
        np.testing.assert_allclose(run(0.0, x), np.cos(x), rtol=1e-15)


def test_no_step_complex_states_and_fewer_than_none():
    f = bennett(lambda z: z * z + 0.1j, k=2)
    z = 0.1 + 0.2j
    assert f(0j, z, 0)[0] == z
    expected = z
    for _ in range(7):
        expected = expected * expected + 0.1j
    np.testing.assert_allclose(f(0j, z, 7)[0], expected, rtol=1e-14)
    check_gradient(f, 0j, z, 7)
    with pytest.raises(ValueError, match="0 times or more"):
        f(0j, z, -1)
