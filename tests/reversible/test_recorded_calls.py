"""Reversible functions in recorded functions: one operation, undone in the reverse pass."""

import numpy as np
import pytest

import fwdad
from fwdad.examples.reversible.orbits import leapfrog
from fwdad.reversible import ancilla, compute, copy_out, reversible
from fwdad.reversible.recorded_calls import Undone
from fwdad.tangents.chunk import Chunk
from tests.eager_reverse.pulling import jacobian_of, record

X = np.array([0.3, -1.2, 0.7])


@reversible
def mixed(y, x, w, n):
    with compute():
        t = ancilla(0.0)
        for i in range(len(x)):
            t += np.sin(x[i]) * w[i]
        with copy_out():
            y += t**2
    for _ in range(n):
        x += 0.1 * w * np.tanh(y)
    y, x[0] = x[0], y


def f(x):
    y, moved, w, _ = mixed(x[0] * 2.0, x, x[::-1] ** 2, 3)
    x = x + moved
    moved[1] = 7.0 * y  # what the record reads is its own
    return np.array([y * w[0], moved[1] * x[1], np.sum(moved)])


def operations(outcome):
    return [op for op in outcome._record.operations if isinstance(op, Undone)]


@pytest.mark.parametrize("width", [1, 2, 3])
def test_rows_of_a_jacobian(width):
    outcome = record(f, X)
    (op,) = operations(outcome)
    assert op.f is mixed
    np.testing.assert_allclose(jacobian_of(outcome, X, width), fwdad.jacobian(f, X), rtol=1e-12)


def test_the_inverse_and_one_cotangent():
    def g(x):
        y, moved, _, _ = (~mixed)(x[0], x, np.ones(3), 2)
        return y * moved[2]

    outcome = record(g, X)
    assert len(operations(outcome)) == 1
    np.testing.assert_allclose(outcome.pull([1.0])[0], fwdad.jacobian(g, X), rtol=1e-12)


def test_inside_of_an_enclosing_derivative():
    def g(x):
        return f(x)[0] * f(x)[2]

    def gradient(x):
        return record(g, x).pull([1.0])[0]

    found = fwdad.jacfwd(gradient)(X)
    np.testing.assert_allclose(found, fwdad.jacfwd(fwdad.jacfwd(g))(X), rtol=1e-10, atol=1e-11)

    def rows(x):
        (x_bar,) = record(f, x).pull([Chunk(np.eye(3))])
        return x_bar.lanes

    expected = fwdad.jacfwd(fwdad.jacfwd(f))(X)
    np.testing.assert_allclose(fwdad.jacfwd(rows)(X), expected, rtol=1e-10, atol=1e-11)


def test_steps_are_not_recorded():
    x = np.array([[0.0, 0.0], [1.0, 0.0]])
    m = np.array([1.0, 1e-3])
    v = np.array([[0.0, 0.0], [0.0, 1.0]])
    sizes = []
    for steps in (2, 40):

        def last(v, steps=steps):
            return leapfrog(x, v, m, 0.01, steps)[0][1, 1]

        outcome = record(last, v)
        sizes.append((outcome.operations, outcome.nbytes))
        expected = fwdad.jacobian(last, v)
        np.testing.assert_allclose(outcome.pull([1.0])[0], expected, rtol=1e-10, atol=1e-13)
    assert sizes[0] == sizes[1]


def test_what_a_function_argument_brings_is_not_lost():
    @reversible
    def applied(y, x, g):
        y += g(x)

    def h(x):
        return applied(0.0, x[0], lambda z: z * x[1])[0]

    found = record(h, X).pull([1.0])[0]
    np.testing.assert_allclose(found, [X[1], X[0], 0.0], rtol=1e-14)


def test_complex_numbers():
    @reversible
    def product(y, a, x):
        y += a * x

    def loss(x):
        a = x[0] + 1j * x[1]
        y = product(np.zeros(2, complex), np.array([a, a * a]), np.array([1.0 - 2j, 3j]))[0]
        return (y * np.conj(y)).real.sum()

    found = record(loss, X).pull([1.0])[0]
    np.testing.assert_allclose(found, fwdad.jacobian(loss, X), rtol=1e-12)
