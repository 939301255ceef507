"""Directions that a traced function is given: whose memory they are, and of which lengths."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

X = np.arange(4.0) + 0.1
V = np.cos(np.arange(4.0) ** 2)


def in_place(x):
    s = np.sum(x**2)
    x[1:] = x[:-1] * s
    np.negative(x.T, out=x.T)
    return np.sum(x**3) + s


def smooth(x):
    return np.sum(np.sin(x) * x)


def push(x, v):
    return fwdad.jvp(in_place, x, v)[1]


def pushed_and_used(x, v):
    """The direction is used again behind the derivative."""
    y, t = fwdad.jvp(in_place, x, v)
    return t + np.sum(v * x) + y * np.sum(v)


def made_inside(x):
    v = np.cos(np.arange(1.0 * len(x)))
    return fwdad.jvp(in_place, x, v)[1] + np.sum(v * x)


@pytest.mark.parametrize("v", [V, np.stack([V, 2 * V, V + 1]), np.repeat(V, 2)[::2]])
def test_the_caller_keeps_a_direction(v):
    """What is stored into the argument was stored into the direction, too."""
    kept = v.copy()
    for f in (push, pushed_and_used):
        assert_allclose(fwdad.jit(f, backend="numpy")(X, v), f(X, kept), rtol=1e-13)
        assert_array_equal(v, kept)


def test_compiled():
    pytest.importorskip("numba")
    v = V.copy()
    assert_allclose(fwdad.jit(pushed_and_used)(X, v), pushed_and_used(X, V), rtol=1e-13)
    assert_array_equal(v, V)


def test_derivatives_of_derivatives():
    expected = fwdad.jacobian(made_inside, X, mode="forward")
    assert_allclose(fwdad.jit(made_inside, backend="numpy")(X), made_inside(X), rtol=1e-13)
    for other in (fwdad.grad, fwdad.jacfwd):
        assert_allclose(fwdad.jit(other(made_inside), backend="numpy")(X), expected, rtol=1e-12)


def test_nothing_is_copied_that_nobody_writes():
    tape = fwdad.jit(lambda x, v: fwdad.jvp(smooth, x, v), backend="numpy")
    assert "copy" not in fwdad.show(tape, X, V)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (2, 1)])
@pytest.mark.parametrize("derivative", [fwdad.jvp, fwdad.hvp])
def test_other_lengths_are_refused(derivative, shape):
    """One element was taken for all."""
    tape = fwdad.jit(lambda x, v: derivative(smooth, x, v), backend="numpy")
    with pytest.raises(fwdad.errors.SeedError):
        tape(X, np.ones(shape))


def test_computed_lengths_are_compared_when_it_runs():
    def f(x, k):
        return fwdad.jvp(smooth, x, np.cos(np.arange(1.0 * k)))[1]

    tape = fwdad.jit(f, backend="numpy")
    assert_allclose(tape(X, 4), f(X, 4))
    for k in (1, 3):
        with pytest.raises(fwdad.errors.SeedError, match="the shape of a direction"):
            tape(X, k)


@pytest.mark.parametrize("kind", [int, bool, np.float32])
def test_directions_of_other_numbers(kind):
    """Whole numbers among the directions were taken for zeros."""

    def f(pair):
        return pair[0] * np.sin(pair[1])

    def pushed(pair, v):
        return fwdad.jvp(f, pair, (v,), argnums=(0,))[1]

    pair = (2.0, X)
    for first, second in ((kind(1), np.ones(X.shape)), (1.0, np.ones(X.shape, kind))):
        found = fwdad.jit(pushed, backend="numpy")(pair, (first, second))
        assert_allclose(found, np.sin(X) + 2.0 * np.cos(X), rtol=1e-13)
        assert_allclose(found, pushed(pair, (first, second)), rtol=1e-13)


def test_directions_of_single_precision():
    x = X.astype(np.float32)
    tape = fwdad.jit(lambda x, v: fwdad.jvp(np.sin, x, v)[1], backend="numpy")
    assert tape(x, X).dtype == np.float32


def test_directions_that_are_none():
    for v, message in ((1j * X, "complex seed"), (None, "seed of an argument")):
        for f in (lambda x, v: fwdad.jvp(np.sin, x, (v,), argnums=(0,)),):
            for call in (f, fwdad.jit(f, backend="numpy")):
                with pytest.raises(fwdad.errors.SeedError, match=message):
                    call(X, v)
    still = fwdad.jit(lambda x: fwdad.jvp(np.sin, x, fwdad.ZERO), backend="numpy")(X)
    assert_array_equal(still, fwdad.jvp(np.sin, X, fwdad.ZERO))
