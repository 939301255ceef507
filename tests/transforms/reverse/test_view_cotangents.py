"""Views of arrays that are written: some are copies where memory lies otherwise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from tests.differences import central_differences, difference_along

X = np.arange(1.0, 13.0).reshape(3, 4) * 0.1


def ravelled(x):
    y = x * 2.0
    r = y.ravel()
    r[1:] *= r[:-1]
    return np.sum(y * y) + np.sum(r[::2])


def a_copy_of_columns(x):
    y = x * 2.0
    r = y[:, 1:3].ravel()
    r[1:] *= r[:-1]
    y[0] *= y[1]
    return np.sum(y * y) + np.sum(r)


def a_view_and_a_copy(x):
    y = np.zeros((3, 4))
    y[:] = x
    z = y.reshape(4, 3)
    z[1:] += z[:-1] * z[1:]
    q = y.T.reshape(-1)
    y[0] = np.sin(y[1])
    return np.sum(q * q * q[0]) + np.sum(y[1] * y[0])


def copies_in_a_loop(x):
    y = np.zeros((3, 4))
    for k in range(3):
        r = y[:, k].reshape(3, 1)
        r[:] += x[:, k : k + 1] ** 2
        s = y[:, :2].ravel()
        s[0] = 7.0
        y[k] += s[1] * s[2]
    return np.sum(y * y)


def broadcast(x):
    y = np.zeros(4)
    wide = np.broadcast_to(y, (2, 4))
    y[:] = x[0]
    y[2] = x[0, 0]
    return np.sum(wide * x[:2]) + wide[1, 2] * wide[0, 1]


def sliding(x):
    y = x[0] * x[1]
    views = np.lib.stride_tricks.sliding_window_view(y, 2)
    y[1:3] = x[2, :2] ** 2
    return np.sum(views[:, 0] * views[:, 1])


@pytest.mark.parametrize(
    "f", [ravelled, a_copy_of_columns, a_view_and_a_copy, copies_in_a_loop, broadcast, sliding]
)
def test_gradient(f):
    expected = fwdad.jacobian(f, X, mode="forward")
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")(X)
    assert_allclose(gradient, expected, rtol=1e-12, atol=1e-13)


def test_memory_that_has_another_layout():
    """What is ravelled there is a copy, as it is for the plain program."""
    x = np.asfortranarray(X)
    value, gradient = fwdad.jit(fwdad.value_and_grad(ravelled), backend="numpy")(x)
    assert value == pytest.approx(ravelled(x), rel=1e-15)
    direction = np.zeros_like(x)  # of the same layout
    direction[1, 2] = 1.0
    slope = difference_along(ravelled, x, direction)
    assert gradient[1, 2] == pytest.approx(slope, rel=1e-8)


WITH_GAPS = np.linspace(-1.0, 1.0, 24).reshape(4, 6)[::2, ::-2]
"""Its ``ravel`` is a copy, and so has to be that of a copy of it."""


def fills_a_copy(x):
    q = x.ravel()
    q[0] = 5.0 * x[1, 1]
    return q.sum() * x[0, 0]


def of_a_transposed_array(x):
    return fwdad.grad(fills_a_copy)(x.T * 2.0)


def of_columns(x):
    return fwdad.grad(fills_a_copy)((x * 1.5)[:, ::2])


def directions_of_columns(x):
    return fwdad.jvp(fills_a_copy, (x * 1.5)[:, ::2], np.ones((2, 2)))[1]


def pulled_back_to_a_transposed_array(x):
    return fwdad.vjp(fills_a_copy, (x * 1.5).T)[1](1.0)


def test_every_way_copies_arguments_in_their_layout():
    x, v = WITH_GAPS, np.cos(np.arange(6.0)).reshape(2, 3)

    def written_out(x):
        q = x.flatten()
        q[0] = 5.0 * x[1, 1]
        return q.sum() * x[0, 0]

    assert not np.shares_memory(x, x.ravel())
    value, gradient = fwdad.value_and_grad(written_out)(x)
    y, J = fwdad.linearize(fills_a_copy, x)
    assert y == value == fills_a_copy(x)
    assert_allclose(J.rmatvec(np.ones(1)), gradient.ravel(), rtol=1e-13)
    assert_allclose(J.matvec(v.ravel()), [np.sum(gradient * v)], rtol=1e-13)
    assert_allclose(fwdad.grad(fills_a_copy)(x), gradient, rtol=1e-13)
    assert_allclose(fwdad.vjp(fills_a_copy, x)[1](1.0), gradient, rtol=1e-13)
    second = fwdad.hvp(written_out, x, v)
    product = lambda x: fwdad.hvp(fills_a_copy, x, v)  # noqa: E731
    nested = fwdad.grad(lambda x: np.sum(v * fwdad.grad(fills_a_copy)(x)))
    for found in (product(x), fwdad.jit(product, backend="numpy")(x), nested(x)):
        assert_allclose(found, second, rtol=1e-13)


@pytest.mark.parametrize(
    "g",
    [of_a_transposed_array, of_columns, directions_of_columns, pulled_back_to_a_transposed_array],
)
def test_what_is_differentiated_inside_may_have_another_layout(g):
    """A copy on a tape would be C-contiguous: refused there, and recorded as it runs."""
    x = np.ascontiguousarray(WITH_GAPS)
    with pytest.raises(UntraceableError, match=r"copy of it"):
        fwdad.jit(g, backend="numpy")(x)
    direction = np.zeros_like(x)
    direction[1, 1] = 1.0
    slope = difference_along(lambda x: np.sum(g(x) ** 2), x, direction)
    assert fwdad.grad(lambda x: np.sum(g(x) ** 2))(x)[1, 1] == pytest.approx(slope, rel=1e-7)


def test_what_is_differentiated_inside_and_is_c_contiguous():
    g = lambda x: fwdad.grad(fills_a_copy)(x * 2.0)  # noqa: E731
    x = np.ascontiguousarray(WITH_GAPS)
    assert_allclose(fwdad.jit(g, backend="numpy")(x), g(x), rtol=1e-13)


def test_a_tape_for_arguments_that_have_another_layout():
    tape = fwdad.trace(fwdad.grad(fills_a_copy), np.ascontiguousarray(WITH_GAPS))
    with pytest.raises(TypeError):
        tape(WITH_GAPS)


def test_a_store_through_a_view_that_cannot_be_followed():
    def f(x):
        y = x * 1.0
        view(y)[:3] = x[0, 0]
        return np.sum(y * x)

    def as_it_lies(y):
        return y.ravel(order="K")

    def diagonal(y):
        return np.einsum(y[:, :3], [0, 0], [0])

    view = as_it_lies
    with pytest.raises(UntraceableError, match="cannot be followed"):
        fwdad.jit(fwdad.grad(f), backend="numpy")(X)
    assert_allclose(fwdad.grad(f)(X), fwdad.jacobian(f, X, mode="forward"), rtol=1e-13)

    view = diagonal
    slope = fwdad.jit(fwdad.grad(f), backend="numpy")(X)
    assert_allclose(slope, fwdad.jacobian(f, X, mode="forward"), rtol=1e-13)
    assert_allclose(fwdad.grad(f)(X), fwdad.jacobian(f, X, mode="forward"), rtol=1e-13)


@pytest.mark.parametrize("order", ["C", "F"])
def test_gradient_of_a_gradient_through_a_reshape(order):
    """In the other order a view of a matrix is none on its cotangent, which is C-contiguous."""
    x, v = X.ravel()[:6].reshape(2, 3), np.cos(np.arange(6.0)).reshape(2, 3)

    def f(x):
        return np.sum(x.reshape(3, 2, order=order)[1] ** 3)

    def g(x):
        return np.sum(v * fwdad.grad(f)(x))

    second = np.zeros((3, 2))
    second[1] = 6.0
    expected = second.reshape(2, 3, order=order) * x * v
    assert_allclose(fwdad.grad(g)(x), expected, rtol=1e-13)
    assert_allclose(fwdad.jit(fwdad.grad(g), backend="numpy")(x), expected, rtol=1e-13)


def through_a_view(x):
    y = x * x
    y.reshape(4, 3)[1:] *= y.reshape(4, 3)[:-1]
    return np.sum(y**2)


def through_views_in_a_loop(x):
    y = np.zeros((3, 4))
    for k in range(3):
        y.ravel()[k::3] += np.sin(np.sum(x[:, k]) + y.ravel()[k])
        y[k] *= x[k]
    return np.sum(y**3)


@pytest.mark.parametrize(
    "f", [ravelled, through_a_view, through_views_in_a_loop, broadcast, sliding]
)
def test_gradient_of_a_gradient(f):
    v = np.cos(np.arange(12.0)).reshape(3, 4)

    def g(x):
        return np.sum(v * fwdad.grad(f)(x))

    expected = fwdad.jvp(fwdad.jacfwd(f), X, v)[1]
    gradient = fwdad.jit(fwdad.grad(g), backend="numpy")(X)
    assert_allclose(gradient, expected, rtol=1e-11, atol=1e-12)
    third = fwdad.jvp(fwdad.grad(g), X, v)[1]
    slopes = difference_along(lambda x: fwdad.hvp(f, x, v), X, v)
    assert_allclose(third, slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("f", [a_copy_of_columns, a_view_and_a_copy, copies_in_a_loop])
def test_gradient_of_a_gradient_that_is_recorded(f):
    """What the reverse pass adds into cannot be restored, and was read."""
    v = np.cos(np.arange(12.0)).reshape(3, 4)

    def g(x):
        return np.sum(v * fwdad.grad(f)(x))

    with pytest.raises(UntraceableError, match="a function overwrites an array"):
        fwdad.jit(fwdad.grad(g), backend="numpy")(X)
    expected = fwdad.jvp(fwdad.jacfwd(f), X, v)[1]
    assert_allclose(fwdad.grad(g)(X), expected, rtol=1e-11, atol=1e-12)


def copied_in_a_loop(x):
    """Copies of what is not C-contiguous, which is written while they are used."""
    m = np.outer(x, np.sin(x)) + 0.1
    s = 0.0
    for k in range(len(x) - 1):
        a, b, c = m.T.ravel(), np.ravel(m[:, 1:3]), m[::2].reshape(-1)
        m[k] = m[k + 1] * 2 + x[k]
        s = s + np.sum(a**2) + np.sum(b**3) + np.sum(np.sin(c))
    return s + np.sum(m)


def copied_on_one_side(x):
    m = np.outer(x, np.sin(x)) + 0.1
    s = 0.0
    if x[0] > 0:
        a = m.T.ravel()
        m[1] = x
        s = np.sum(a**3)
    return s + np.sum(m)


def views_in_a_loop(x):
    """The same of what is C-contiguous: views, which see what is written."""
    m = np.outer(x, np.sin(x)) + 0.1
    s = 0.0
    for k in range(len(x) - 1):
        a, b = m.ravel(), m[1:3].reshape(-1)
        m[k] = m[k + 1] * 2 + x[k]
        s = s + np.sum(a**2) + np.sum(b**3)
    return s + np.sum(m)


@pytest.mark.parametrize("f", [copied_in_a_loop, copied_on_one_side, views_in_a_loop])
def test_copies_that_are_read_when_their_source_has_changed(f):
    x = np.array([0.7, 1.3, -0.4, 0.9])
    expected = fwdad.jacobian(f, x, mode="forward")
    assert_allclose(expected, central_differences(f, x), rtol=1e-6)
    assert_allclose(fwdad.grad(f)(x), expected, rtol=1e-12)
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    if f is views_in_a_loop:
        assert_allclose(gradient(x), expected, rtol=1e-12)
    else:
        with pytest.raises(fwdad.errors.UntraceableError, match="may be a copy"):
            gradient(x)


def test_imaginary_parts_of_reals_are_no_view():
    def f(x):
        y = x * 2.0
        y[1:] *= y[:-1]
        return np.sum(np.cos(np.imag(y)) + np.sin(np.real(y)) + y.imag)

    x = np.array([0.3, 0.7, -1.1])
    found = fwdad.jit(fwdad.grad(f), backend="numpy")(x)
    assert_allclose(found, fwdad.jacobian(f, x, mode="forward"), rtol=1e-13)


def turned(x):
    """A branch that returns what may be a copy of an array that it makes and writes."""
    if np.sum(x) > 1.0:
        made = np.zeros_like(x.T)
        made[1:] = x.T[1:] ** 2
        y = made.reshape(4, 3)
    else:
        made = np.zeros_like(x.T)
        made[0] = np.sin(x.T[0])
        y = made.reshape(4, 3)
    return np.sum(y[1:] ** 2 * y[:-1]) + np.sum(y**3)


def turned_and_written_in_a_loop(x):
    total = 0.0
    for k in range(3):
        if x[k, 0] > 0.6:
            made = np.zeros_like(x.T)
            made[k] = x.T[k] ** 2
            y = made.reshape(4, 3)
        else:
            y = x.T * 2.0
        total = total + np.sum(np.sin(y) * x.T[k])
    return total


def turned_and_written_behind(x):
    if np.sum(x) > 1.0:
        made = np.zeros_like(x.T)
        made[1:] = x.T[1:] ** 2
        y = made.reshape(4, 3)
    else:
        made = np.zeros_like(x.T)
        y = made.reshape(4, 3)
    made[0] = x[0, 0]
    return np.sum(y**3)


@pytest.mark.every(6, of="auto")
@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("f", [turned, turned_and_written_in_a_loop])
@pytest.mark.parametrize("factor", [0.1, 1.0, 3.0])
def test_views_that_a_branch_returns(f, factor, backend):
    x = X * factor
    expected = central_differences(f, x)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend=backend)(x), expected, rtol=1e-6, atol=1e-8)
    along = fwdad.jit(lambda x: fwdad.jvp(f, x, X), backend=backend)(x)[1]
    assert_allclose(along, np.sum(expected * X), rtol=1e-6, atol=1e-8)


def test_views_that_a_branch_returns_of_what_is_written_behind_it():
    with pytest.raises(UntraceableError, match="chosen by a branch"):
        fwdad.jit(fwdad.grad(turned_and_written_behind), backend="numpy")(X)
    expected = central_differences(turned_and_written_behind, X)
    assert_allclose(fwdad.grad(turned_and_written_behind)(X), expected, rtol=1e-6, atol=1e-8)


def one_name_more_in_an_inner_branch(x):
    u, v = x * 1.0, x * 2.0
    if np.sum(x) > 0.0:
        if x[0] > 0.2:
            v = np.sin(u)
            u = v
        else:
            v = v * v
    v[1] = u[1] * u[1]
    return np.sum(u * u) + np.sum(np.sin(v))


@pytest.mark.parametrize("first", [0.3, 0.1, -5.0])
def test_arrays_with_a_second_name_on_a_way_inside_of_a_branch(first):
    """The cotangent of one name was lost where the inner branch gives both names one array."""
    x = np.array([first, 0.7, -0.4])
    expected = central_differences(one_name_more_in_an_inner_branch, x)
    assert_allclose(fwdad.grad(one_name_more_in_an_inner_branch)(x), expected, rtol=1e-6)
    with pytest.raises(UntraceableError, match="chosen by a branch"):
        fwdad.jit(fwdad.grad(one_name_more_in_an_inner_branch), backend="numpy")(x)
