"""Views of one length have one ``Size``: found again after what was computed twice is one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.frontend.trace import trace
from fwdad.ir.check import checked
from fwdad.transforms.passes import cse, share_lengths


def triangle(a, b):
    c = np.zeros((a.shape[0], a.shape[0]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[i, k] * a[: i + 1, k] + b[i] * a[: i + 1, k] ** 2
    return c


def lengths(program):
    """The lengths of views and of what is computed of them."""
    return {
        d for op in program.walk() for v in op.outputs if v.type.ndim == 1 for d in v.type.shape
    }


def test_stops_that_were_computed_twice_give_one_length():
    program = trace(triangle, np.ones((4, 3)), np.ones(4)).program
    assert len(lengths(program)) > 1
    while checked(cse, program):
        pass
    assert checked(share_lengths, program)
    assert len(lengths(program)) == 1
    assert not share_lengths(program)


def test_a_gradient_keeps_no_lengths_that_it_knows():
    a, b = np.random.default_rng(0).normal(size=(4, 3)), np.ones(4)

    def loss(a, b):
        return np.sum(np.sin(triangle(a, b)))

    expected = fwdad.jacobian(lambda a: loss(a, b), a, mode="forward")
    g = fwdad.jit(fwdad.grad(loss), backend="numpy")
    assert_allclose(g(a, b), expected, rtol=1e-13)
    text = fwdad.show(g)
    assert "sum_to" not in text
    assert "push" not in text


def stops(a, n, m):
    """Views of computed lengths that differ, one of which broadcasts."""
    total = 0.0
    for i in range(2):
        total = total + np.sum(a[: n + i] * a[: m + 1])
    return total


def test_other_stops_are_other_lengths():
    a = np.random.default_rng(1).normal(size=5)
    for n, m in [(2, 0), (1, 0)]:
        g = fwdad.grad(lambda a, n=n, m=m: stops(a, n, m))
        expected = fwdad.jacobian(lambda a, n=n, m=m: stops(a, n, m), a, mode="forward")
        assert_allclose(g(a), expected, rtol=1e-14)


def krylov(x):
    """Views up to a counter, on an array whose length is known."""
    basis, total = np.zeros((6, 3)), 0.0
    for k in range(5):
        basis[k + 1] = np.sin(basis[k]) + x
        h = basis[:k] @ x
        total = total + np.sum(h * (basis[:k] @ x)) + np.sum(basis[k:, 0] * basis[k:, 1])
    return total


def test_views_on_a_known_length_settle():
    x = np.array([0.7, -0.4, 1.1])
    program = fwdad.jit(krylov, backend="numpy")
    program(x)
    traced = program.find((x,), {})[0].tape.program
    assert not share_lengths(traced)  # a length that nothing tells is no other at each look
    expected = fwdad.jacobian(krylov, x, mode="forward")
    assert_allclose(fwdad.jit(fwdad.grad(krylov), backend="numpy")(x), expected, rtol=1e-12)


def a_diagonal(x, m, k):
    return np.diagonal(m[:k]) * x[:1]


def a_diagonal_of_two_rows(x, m, k):
    return np.diag(m[:2, :k]) * np.ones(1)


def a_diagonal_that_a_loop_shortens(x, m, k):
    v, a = x * 1.5, m.T * 0.5
    for _ in range(k):
        v = a.diagonal()
        a = np.min(np.eye(len(x)) + a, axis=-1, keepdims=True)
    return v * 2.0


@pytest.mark.parametrize("f", [a_diagonal, a_diagonal_of_two_rows, a_diagonal_that_a_loop_shortens])
def test_the_smaller_of_a_length_and_one_that_turns_out_to_be_one(f):
    x, m = np.array([0.7, -0.4]), np.array([[0.3, 1.2], [-0.8, 0.5]])
    plain = fwdad.jit(f, backend="numpy")
    forward = fwdad.jit(fwdad.jacfwd(f, argnums=1), backend="numpy")
    for k in (2, 1, 0):
        np.testing.assert_array_equal(plain(x, m, k), f(x, m, k))
        expected = fwdad.jacobian(f, x, args=(m, k), argnums=1)
        found = forward(x, m, k)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_of_two_lengths_that_samples_have_alike_one_may_be_computed():
    """Q of two rows and k columns: both are 2 where k is 2 or more."""

    def f(m, k):
        q, r = np.linalg.qr(m[:, :k])
        return np.sum(r**3) + np.sum(m) * q.shape[1] + 10 * q.shape[0] * np.sum(m)

    m = np.array([[1.0, 2.0], [0.5, 3.0]])
    derivative = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    for k in (2, 1):
        wanted = fwdad.jacobian(lambda m, k=k: f(m, k), m, mode="forward")
        assert_allclose(derivative(m, k), wanted, rtol=1e-12)
