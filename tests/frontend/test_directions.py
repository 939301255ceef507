"""Directions that a traced function is given: whose memory they are, and of which lengths."""

import functools
import importlib.util

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UnsupportedTypeError
from tests.differences import central_differences

NUMBA = ["numba"] if importlib.util.find_spec("numba") else []
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


class Product:
    def __call__(self, a, b):
        return np.sin(a) * b

    method = __call__


def with_defaults(x):
    def f(a, b, /, *, c=2.0, **more):
        return np.sin(a) * b * c

    return fwdad.jvp(f, (x, x**2), (V, x))[1]


def wrapped(x):
    def f(a, b):
        return np.sin(a) * b

    @functools.wraps(f)
    def g(*args):
        return f(*args)

    return fwdad.jvp(g, (x, x**2), (V, x))[1]


def with_part(x):
    g = functools.partial(lambda a, b, c: np.sin(a) * b * c, c=x[0])
    return fwdad.jvp(g, (x, x**2), (V, x))[1]


def in_a_loop(x):
    t = 0.1 * x
    for _ in range(2):
        t = np.tanh(fwdad.jvp(lambda a, b: np.sin(a) * b, (x, t), (t, V))[1])
    return t


def of_gradient(x):
    g = fwdad.grad(lambda a, b: np.sum(a * b**2))
    return fwdad.jvp(g, [x, x**2], [V, x])[1]


SEVERAL = {
    "lambda": lambda x: fwdad.jvp(lambda a, b: np.sin(a) * b, (x, x**2), (V, x))[1],
    "method": lambda x: fwdad.jvp(Product().method, (x, x**2), (V, x))[1],
    "object": lambda x: fwdad.jvp(Product(), (x, x**2), (V, x))[1],
    "defaults": with_defaults,
    "wrapped": wrapped,
    "partial": with_part,
    "loop": in_a_loop,
    "gradient": of_gradient,
    "one": lambda x: fwdad.jvp(lambda t: t[0] * np.sin(t[1]), (x, x**2), (V, x))[1],
}


@pytest.mark.parametrize("f", SEVERAL.values(), ids=SEVERAL)
def test_several_arguments_of_functions_made_inside(f, caplog):
    """What such a function takes is known in the trace, as it is outside."""
    value = f(X)
    gradient = central_differences(lambda x: np.sum(f(x)), X)
    for backend in ("numpy", *NUMBA):
        assert_allclose(fwdad.jit(f, backend=backend)(X), value, rtol=1e-12)
        found = fwdad.jit(fwdad.grad(lambda x: np.sum(f(x))), backend=backend)(X)
        assert_allclose(found, gradient, rtol=1e-8, atol=1e-8)
    assert_allclose(fwdad.grad(lambda x: np.sum(f(x)))(X), gradient, rtol=1e-8, atol=1e-8)
    assert not caplog.records


def test_one_argument_or_several_is_asked_in_a_trace():
    def f(x):
        return fwdad.jvp(lambda *a: a[0], (x, x), (x, x))[1]

    for g in (f, fwdad.jit(f, backend="numpy")):
        with pytest.raises(UnsupportedTypeError, match="<lambda> could take x as one argument or"):
            g(X)
