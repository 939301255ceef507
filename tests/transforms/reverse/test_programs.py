"""Gradients of programs backwards, against finite differences and against forward mode."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.ir.check import check_program
from tests.differences import central_differences, complex_step
from tests.transforms.reverse.programs import (
    LONG,
    PROGRAMS,
    X,
    backwards_recurrence,
    overwritten,
    recurrence,
    stencil,
    two_buffers,
)

NAMES = [f"{f.__name__}-{k}" for k, (f, _) in enumerate(PROGRAMS)]


def compiled_gradient(f, backend):
    return fwdad.jit(fwdad.value_and_grad(f), backend=backend)


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=NAMES)
def test_gradient(f, x):
    kept = x.copy()
    y, gradient = compiled_gradient(f, "numpy")(x)
    assert_array_equal(x, kept)  # what f writes into is a copy
    assert_allclose(y, f(x.copy()), rtol=1e-15)
    # differences of 1e12 are rounded to more than the slope of 1e6 allows
    reference = complex_step if f is backwards_recurrence else central_differences
    assert_allclose(gradient, reference(f, x), rtol=1e-7, atol=1e-9)
    forward = fwdad.jacobian(f, x, mode="forward")
    assert_allclose(gradient, forward, rtol=1e-12, atol=1e-13)
    assert_allclose(fwdad.grad(f)(x), gradient, rtol=1e-15)


@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=NAMES)
def test_tape_is_well_formed(f, x):
    check_program(fwdad.trace(fwdad.value_and_grad(f), x.copy()).program)


@pytest.mark.parametrize("f", [recurrence, two_buffers, stencil])
def test_second_derivatives(f):
    """N lanes pushed through the program backwards, and the program backwards run backwards."""
    reference = central_differences(fwdad.grad(f), LONG)
    for chunk in (1, 2, 3, None):  # three: a ragged last chunk
        H = fwdad.hessian(f, LONG, chunk=chunk)
        assert_allclose(H, reference, rtol=1e-6, atol=1e-8)
    v = np.linspace(1.0, 2.0, len(LONG))
    assert_allclose(fwdad.hvp(f, LONG, v), H @ v, rtol=1e-12)

    def slope(x):
        return np.sum(fwdad.grad(f)(x) * v)

    assert_allclose(fwdad.grad(slope)(LONG), H @ v, rtol=1e-11)


def test_backwards_through_forward():
    def speed(x):
        return np.sum(fwdad.jvp(stencil, x, np.ones(7))[1] ** 2)

    expected = central_differences(speed, LONG)
    assert_allclose(fwdad.jit(fwdad.grad(speed), backend="numpy")(LONG), expected, rtol=1e-7)


def test_a_store_that_nothing_reads_backwards_keeps_nothing():
    """Index analysis: an element is stored behind those that have been read."""
    text = str(fwdad.trace(fwdad.grad(recurrence), LONG))
    assert "push" not in text
    assert "y_old" not in text


def test_what_is_overwritten_is_kept_where_it_is_read():
    text = str(fwdad.trace(fwdad.grad(overwritten), LONG))
    assert text.count("push(") == text.count("push(saved_u_old") == 1


def test_zero_cotangent_times_infinite_slope():
    def f(x):
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    assert_array_equal(fwdad.grad(f)(np.array([0.0, 4.0])), [0.0, 0.25])


def test_the_value_is_no_memory_that_is_put_back():
    def f(x):
        y = x * 1.0
        for k in range(1, 3):
            y[k] = y[k - 1] * y[k]
        return np.sum(y * y), y

    (_, y), _ = fwdad.jit(fwdad.value_and_grad(f, has_aux=True), backend="numpy")(X)
    assert_array_equal(y, f(X)[1])


def test_work_arrays_of_the_caller_stay():
    work = np.full(3, 7.0)

    def f(x, w):
        w[:] = x**2
        w[1:] *= w[:-1]
        return np.sum(w)

    expected = central_differences(lambda z: f(z, np.zeros(3)), X)
    assert_allclose(fwdad.grad(f)(X, work), expected, rtol=1e-8)
    assert_array_equal(work, [7.0, 7.0, 7.0])
