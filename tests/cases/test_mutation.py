"""Assignment in place, through views, with overlap: the forms that today's Python peers fail."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from tests.cases.aliasing import ALIASING
from tests.cases.check import check_jacobian, check_lanes, with_widths
from tests.cases.mutation import MUTATIONS, X

WRITING = MUTATIONS + ALIASING


@pytest.mark.parametrize(("program", "chunk"), with_widths(WRITING))
def test_jacobian(program, chunk):
    check_jacobian(program, chunk)


@pytest.mark.parametrize("chunk", [2, 3, None])
@pytest.mark.parametrize("program", WRITING, ids=str)
def test_lanes(program, rng, chunk):
    check_lanes(program, rng, chunk)


def test_table_has_every_form():
    assert len({program.function for program in WRITING}) == len(WRITING) >= 18


def test_argument_keeps_its_bytes():
    """`x *= 2` inside f: 8x is the gradient, and the caller's array is as it was."""

    def squares_of_doubled(x):
        x *= 2
        return np.sum(x**2)

    def doubled(x):
        x *= 2
        return x

    x = np.linspace(-1.0, 2.0, 12)
    before = x.tobytes()
    assert_array_equal(fwdad.jacobian(squares_of_doubled, x, chunk=6), 8 * x)
    assert_array_equal(fwdad.grad(squares_of_doubled)(x), 8 * x)
    y, jacobian = fwdad.value_and_jacobian(doubled, x, chunk=6)
    assert_array_equal(y, 2 * x)
    assert_array_equal(jacobian, 2 * np.eye(12))
    assert not np.shares_memory(y, x)
    assert x.tobytes() == before


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_identity_does_not_hand_out_the_argument(chunk):
    x = X.copy()
    y, jacobian = fwdad.value_and_jacobian(lambda x: x, x, chunk=chunk)
    assert_array_equal(jacobian, np.eye(5))
    y[:] = 0.0
    jacobian[:] = 0.0
    assert_array_equal(x, X)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_mutated_argument_is_the_output(chunk):
    """The function updates its argument and returns nothing."""

    def step(u):
        u[1:] += u[:-1] ** 2

    x = X.copy()
    jacobian = fwdad.jacobian(step, x, outputs="mutated", chunk=chunk)
    expected = np.eye(5)
    expected[np.arange(1, 5), np.arange(4)] = 2 * X[:-1]
    assert_array_equal(jacobian, expected)
    y, y_dot = fwdad.jvp(step, x, np.ones(5), outputs="mutated")
    assert_array_equal(y, np.concatenate((X[:1], X[1:] + X[:-1] ** 2)))
    assert_array_equal(y_dot, expected @ np.ones(5))
    assert_array_equal(x, X)


def test_several_mutated_arguments_come_in_order():
    def step(u, v, rate):
        v += rate * u
        u *= v

    u, v = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    (new_u, new_v), (u_dot, v_dot) = fwdad.jvp(
        step, u, np.array([1.0, 0.0]), args=(v, 0.5), outputs="mutated"
    )
    assert_array_equal(new_v, [3.5, 6.0])
    assert_array_equal(new_u, [3.5, 12.0])
    assert_array_equal(v_dot, [0.5, 0.0])
    assert_array_equal(u_dot, [1.0 * 3.5 + 1.0 * 0.5, 0.0])
    assert_array_equal(u, [1.0, 2.0])
    assert_array_equal(v, [3.0, 5.0])


def test_both_outputs():
    def step(u):
        u *= 3.0
        return np.sum(u)

    x = X.copy()
    y, y_dot = fwdad.jvp(step, x, np.ones(5), outputs="both")
    returned, mutated = y
    returned_dot, mutated_dot = y_dot
    assert returned == np.sum(3.0 * X)
    assert_array_equal(mutated, 3.0 * X)
    assert returned_dot == pytest.approx(15.0, rel=1e-15)
    assert_array_equal(mutated_dot, np.full(5, 3.0))
    assert_array_equal(x, X)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_read_only_buffer_refuses_as_numpy_does(chunk):
    def f(x):
        y = np.zeros(5)
        y.flags.writeable = False
        y[0] = x[0]
        return y

    with pytest.raises(ValueError, match="read-only"):
        f(X)
    with pytest.raises(ValueError, match="read-only"):
        fwdad.jacobian(f, X, chunk=chunk)


def test_failed_store_leaves_array_and_tangent():
    """A store that raises half-way is caught by f: neither value nor tangent may have moved."""

    def f(x):
        y = x * 2.0
        try:
            y[1:4] = x[:2]
        except ValueError:
            y[0] = x[4]
        try:
            y[9] = x[0]
        except IndexError:
            y[1] *= x[3]
        return y

    expected = np.diag(np.full(5, 2.0))
    expected[0] = np.eye(5)[4]
    expected[1] = 2 * X[3] * np.eye(5)[1] + 2 * X[1] * np.eye(5)[3]
    for chunk in (1, 2, 3, 5):
        assert_array_equal(fwdad.jacobian(f, X, chunk=chunk), expected)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_float32_buffer_rounds_as_numpy_does(chunk):
    def f(x):
        y = np.zeros(3, dtype=np.float32)
        y[:] = x / 3.0
        y += x
        return y

    x = np.array([0.1, 0.2, 0.7])
    y, jacobian = fwdad.value_and_jacobian(f, x, chunk=chunk)
    assert y.dtype == jacobian.dtype == np.float32
    assert_array_equal(y, f(x))
    np.testing.assert_allclose(jacobian, np.eye(3) * (4 / 3), rtol=1e-6)
