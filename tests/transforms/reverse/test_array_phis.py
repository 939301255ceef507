"""Arrays that change places, in loops and branches, and arrays that an iteration leaves behind."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.linspace(-0.9, 1.1, 24)  # long enough not to be flattened into numbers


def first_name_is_used_later(x):
    a = x * 1.0
    b = np.zeros_like(x)
    u, v = a, b
    for _ in range(3):
        v[1:] = u[:-1] * u[1:]
        v[0] = u[0]
        u, v = v, u
    return np.sum(a * u) + np.sum(b**2)


def chosen_in_each_iteration(x):
    a, b = x * 1.0, np.cos(x)
    for k in range(4):
        c = a if a[0] > 0.1 * k else b
        for i in range(1, 5):
            c[i] = c[i - 1] * c[i + 1] + x[i]
    return np.sum(a * b)


def swapped_in_an_inner_loop(x):
    a, b = x * 1.0, np.cos(x)
    for _ in range(3):
        for _ in range(3):
            b[1:-1] = a[:-2] * a[2:]
            a, b = b, a
        a[0] = b[0] * a[1]
    return np.sum(a * b * a)


def three_in_a_ring(x):
    a, b, c = x * 1.0, np.cos(x), np.sin(x)
    for _ in range(5):
        c[1:] = a[1:] * b[:-1]
        a, b, c = b, c, a
    return np.sum(a * b) + c[2]


def swapped_under_a_condition(x):
    a, b = x * 1.0, np.cos(x)
    for k in range(4):
        b[1:] = a[:-1] * b[1:]
        if a[5 * k] > 0:
            a, b = b, a
    return np.sum(a * b * a)


def two_halves(x):
    a = x * 1.0
    u, v = a[:12], a[12:]
    for _ in range(3):
        u[:] = np.sin(u) * v
        u, v = v, u
    return np.sum(a**2 * x)


def until_it_breaks(x):
    a, b, k = x * 1.0, np.cos(x), 0
    while np.sum(a) < 20 and k < 5:
        b[:] = a * 1.3 + b * a
        a, b = b, a
        k += 1
        if k == 4:
            break
    return np.sum(a * b)


def in_a_list(x):
    buffers = [x * 1.0, np.zeros_like(x), np.cos(x)]
    for _ in range(5):
        buffers[2][:] = buffers[0] * buffers[1] + np.sin(buffers[0])
        buffers[0], buffers[1], buffers[2] = buffers[1], buffers[2], buffers[0]
    return np.sum(buffers[0] * buffers[1])


def a_new_one_each_time(x):
    u = x * 1.0
    for _ in range(3):
        w = np.zeros_like(x)
        w[1:] = u[:-1] * u[1:]
        w[0] = u[0]
        old, u = u, w
        u[2] += old[3]
    return np.sum(u * x)


def a_new_one_and_the_old_is_written(x):
    u = np.sin(x)
    s = np.sum(u**2)
    for _ in range(3):
        w = u * x
        w[1:] *= u[:-1]
        u[:] = w**2
        s = s + u[3]
        u = w
    return np.sum(u * x) + s


def filled_in_an_iteration(x):
    s = 0.0
    for i in range(len(x)):
        w = np.zeros(30)
        for j in range(30):
            w[j] = x[i] ** (j % 3 + 1)
        s += np.sum(np.sin(w))
    return s


def overwritten_in_an_iteration(x):
    s = 0.0
    for i in range(len(x)):
        w = x * x[i]
        w[1:] *= w[:-1]
        s += np.sum(np.sin(w) * w)
        w[:] = w**2
        s += np.sum(np.sin(w) * w)
    return s


def factor_that_is_put_back(x):
    """What is added to the cotangent of x is u, which is overwritten in the reverse pass."""
    u = x * 1.0
    for _ in range(3):
        u[1:] = np.sin(u[:-1]) * u[1:]
    return np.sum(u * x)


PROGRAMS = [
    first_name_is_used_later, chosen_in_each_iteration, swapped_in_an_inner_loop, three_in_a_ring,
    swapped_under_a_condition, two_halves, until_it_breaks, in_a_list, a_new_one_each_time,
    a_new_one_and_the_old_is_written, filled_in_an_iteration, overwritten_in_an_iteration,
    factor_that_is_put_back,
]  # fmt: skip


def check(f, backend, made=lambda f: f):
    expected = fwdad.jacobian(f, X, mode="forward")
    value, gradient = fwdad.jit(fwdad.value_and_grad(made(f)), backend=backend)(X)
    assert_allclose(value, f(X.copy()), rtol=1e-13)
    assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12 * np.max(np.abs(expected)))


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(f):
    check(f, "numpy")


@pytest.mark.parametrize("f", PROGRAMS[:10])
def test_checkpointed(f):
    check(f, "numpy", lambda f: fwdad.checkpoint(f, snapshots=2))


@pytest.mark.every(6)
@pytest.mark.parametrize(
    "f",
    [
        first_name_is_used_later, swapped_in_an_inner_loop, swapped_under_a_condition, two_halves,
        a_new_one_and_the_old_is_written, filled_in_an_iteration, factor_that_is_put_back,
    ],
)  # fmt: skip
def test_compiled(f):
    pytest.importorskip("numba")
    check(f, "numba")


def test_what_has_a_name_from_outside():
    """An array of an iteration that may be kept under a name from outside; both are written."""

    def best(x):
        kept = x * 1.0
        for k in range(3):
            t = kept * x
            t[k] = t[k + 1] ** 2
            if np.sum(t) > 0.1:
                kept = t
            t[0] *= 0.9
            kept[1] *= 1.5
        return np.sum(kept**2)

    for x in (X, -X, X / 3):
        expected = fwdad.jacobian(best, x, mode="forward")
        y, found = fwdad.jit(fwdad.value_and_grad(best), backend="numpy")(x)
        assert_allclose(y, best(x), rtol=1e-13)
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_complex_number_of_two_parts():
    def f(x):
        z = complex(x, x * x) * (2 - 1j)
        return z.real * 1.3 + z.imag * 0.4

    expected = 2.6 + 2.6 * 0.7 - 0.4 + 1.6 * 0.7
    assert fwdad.jit(fwdad.grad(f), backend="numpy")(0.7) == pytest.approx(expected, rel=1e-14)
    forward = fwdad.jit(lambda x: fwdad.derivative(f, x), backend="numpy")
    assert forward(0.7) == pytest.approx(expected, rel=1e-14)


SMALL = np.array([0.7, -0.4, 1.1, 0.3, -0.9, 0.5])


def stored_through_a_choice(x):
    a = x * 1.0
    a[0] *= x[1]
    b = np.ones(6)
    c = a if x[0] < 0 else b
    c[2] = x[1] * x[3]
    c[3:] *= x[:3]
    return a * b


def stored_through_a_name_in_a_loop(x):
    a = x * 1.0
    a[0] *= x[1]
    b = np.ones(6)
    c = a
    for k in range(3):
        if x[k] > 0:
            c = b
        c[k] = c[k + 1] * x[k]
    return a * b


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("f", [stored_through_a_choice, stored_through_a_name_in_a_loop])
def test_forwards(f, sign):
    """Of two arrays that a name may mean, one had no lanes yet: stores were lost."""
    expected = fwdad.jacobian(f, sign * SMALL)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(sign * SMALL), expected, rtol=1e-14)
    traced = fwdad.jit(f, backend="numpy")
    for chunk in (1, 2, 3, 4):
        assert_allclose(fwdad.jacobian(traced, sign * SMALL, chunk=chunk), expected, rtol=1e-14)


@pytest.mark.parametrize("f", [first_name_is_used_later, swapped_under_a_condition])
def test_second_derivatives(f):
    def longer(x):
        return f(np.concatenate([x, np.cos(x), np.sin(x), x * x]))

    expected = fwdad.jacobian(lambda x: fwdad.jacobian(longer, x, mode="forward"), SMALL)
    assert_allclose(fwdad.hessian(longer, SMALL), expected, rtol=1e-9, atol=1e-11)


def test_scatters_forwards_and_twice():
    def f(x):
        y = np.sin(x)
        np.add.at(y, [0, 2, 2], x[1:4] ** 2)
        np.subtract.at(y, (np.array([3, 3]),), x[0] * x[1:3])
        y[[1, 1, 3]] += x[:3] * y[:3]
        return np.sum(y**3)

    expected = fwdad.jacobian(f, SMALL, mode="forward")
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(SMALL), expected, rtol=1e-13)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(SMALL), expected, rtol=1e-13)
    twice = fwdad.jacobian(lambda x: fwdad.jacobian(f, x, mode="forward"), SMALL)
    assert_allclose(fwdad.hessian(f, SMALL), twice, rtol=1e-12, atol=1e-13)
