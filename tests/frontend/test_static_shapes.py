"""Lengths that must be known: assumed where they are needed, or everywhere if it is asked for."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from tests.tiers import every

Z = np.linspace(0.2, 1.3, 15)


def rotated(z):
    """A camera's view of a point, as in bundle adjustment: its parts are slices of one array."""
    axis, centre, point = z[0:3], z[3:6], z[11:14]
    angle = np.sqrt(axis @ axis)
    w = axis / angle
    x = point - centre
    y = x * np.cos(angle) + np.cross(w, x) * np.sin(angle) + w * (w @ x) * (1 - np.cos(angle))
    p = y[0:2] / y[2]
    return z[6] * p * (1 + z[9] * (p @ p)) + z[7:9]


def by_parts(x):
    """Lengths that are computed from an argument's."""
    middle = x[1:-1]
    pairs = np.reshape(np.concatenate([middle, middle[: len(x) // 3]]), (-1,))
    return np.linalg.norm(np.eye(len(pairs)) @ pairs) + np.cross(pairs[:3], x[-3:]).sum()


def covariance(x):
    return np.linalg.det(np.cov(x) + np.eye(len(x)))


CASES = [(rotated, (Z,)), (by_parts, (Z,)), (covariance, (np.cos(np.outer(Z[:3], Z)),))]


def differences(f, x, *args):
    step = 1e-6
    rows = []
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = step
        e = e.reshape(x.shape)
        rows.append((np.asarray(f(x + e, *args)) - f(x - e, *args)) / (2 * step))
    return np.moveaxis(np.array(rows), 0, -1).reshape(*np.shape(f(x, *args)), *x.shape)


@pytest.mark.every(2, of="auto")
@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize(("f", "args"), CASES)
def test_values(f, args, static, backend):
    g = fwdad.jit(f, static_shapes=static, backend=backend)
    for _ in range(2):
        assert_allclose(g(*args), f(*args), rtol=1e-13)


@pytest.mark.every(3)
@pytest.mark.parametrize("derivative", [fwdad.jacfwd, fwdad.jacrev])
@pytest.mark.parametrize(("f", "args"), CASES)
def test_derivatives(f, args, derivative):
    g = fwdad.jit(derivative(f), static_shapes=True)
    assert_allclose(g(*args), differences(f, *args), rtol=1e-6, atol=1e-8)


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("chunk", every(3, [1, 2, 3, 4]))
def test_chunks(chunk):
    g = fwdad.jit(lambda z: fwdad.jacobian(rotated, z, chunk=chunk, mode="forward"))
    assert_allclose(g(Z), differences(rotated, Z), rtol=1e-6, atol=1e-8)


def test_second_derivatives():
    g = fwdad.jit(fwdad.hessian(lambda z: rotated(z).sum()))
    gradient = fwdad.grad(lambda z: rotated(z).sum())
    assert_allclose(g(Z), differences(gradient, Z), rtol=1e-5, atol=1e-7)


def test_other_shapes_have_tapes_of_their_own():
    g = fwdad.jit(rotated)
    for n in (15, 16, 15, 20, 16):
        z = np.linspace(0.2, 1.3, n)
        assert_allclose(g(z), rotated(z), rtol=1e-13)
    assert fwdad.cache_info(g) == (3, 2)


def test_where_no_length_is_needed_one_tape_serves_all():
    def f(x):
        return np.sin(x) * x[::-1]

    g, each = fwdad.jit(f), fwdad.jit(f, static_shapes=True)
    for n in (5, 6, 7):
        x = np.linspace(0.2, 1.3, n)
        assert_allclose(g(x), f(x), rtol=1e-14)
        assert_allclose(each(x), f(x), rtol=1e-14)
    assert fwdad.cache_info(g).traces == 1
    assert fwdad.cache_info(each).traces == 3


def test_a_length_that_values_decide_is_another_tape():
    def f(x):
        first, *rest = x[x > 0.5]
        return first ** len(rest) * np.array(rest)

    with pytest.raises(UntraceableError, match="computed at run time") as caught:
        fwdad.trace(f, Z[-6:])
    assert Path(__file__).name in str(caught.value)
    fast, jac = fwdad.jit(f), fwdad.jit(fwdad.jacfwd(f))
    for x in (np.array([0.9, 0.1, 0.7, 0.2, 0.8]), np.array([0.9, 0.1, 0.7, 0.2, 0.3])):
        for _ in range(2):
            assert_allclose(fast(x), f(x))
            assert_allclose(jac(x), fwdad.jacfwd(f)(x))
    assert fwdad.cache_info(fast) == (2, 2)


def test_it_is_pickled():
    import pickle

    g = pickle.loads(pickle.dumps(fwdad.jit(rotated, static_shapes=True)))
    for n in (15, 16):
        g(np.linspace(0.2, 1.3, n))
    assert fwdad.cache_info(g).traces == 2
