"""Where NumPy stores values into the memory that it still reads: right, or an error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import AliasedArgumentError, UntraceableError
from tests.differences import central_differences

X = np.array([0.3, 0.5, 0.7, 0.2])


def rolled(y, m):
    np.concatenate([y[1:], y[:1]], out=y)


def rows_in_pairs(y, m):
    np.stack([m[1], m[0], m[3], m[2]], out=m)


def ranges_of_rows(y, m):
    np.ptp(m, axis=1, out=m[1])


def turned_under_a_mask(y, m):
    y[y > 0] = y[::-1]


def moved_under_a_mask(y, m):
    y[np.array([False, True, True, True])] = y[:3]


def loss(write):
    def f(x):
        y, m = x * 1.0, np.outer(x, np.cos(x)) + 0.1
        write(y, m)
        return np.dot(y * y, np.arange(1.0, 5.0)) + np.sum(np.sin(m) * np.arange(16).reshape(4, 4))

    return f


@pytest.mark.parametrize("write", [
    rows_in_pairs, ranges_of_rows, turned_under_a_mask, moved_under_a_mask,
])  # fmt: skip
def test_refused(write):
    f = loss(write)
    for g in (fwdad.grad(f), fwdad.jacfwd(f)):
        with pytest.raises((AliasedArgumentError, UntraceableError), match=r"`.copy\(\)`"):
            g(X)
    for g in (f, fwdad.grad(f), fwdad.jacfwd(f)):
        with pytest.raises((AliasedArgumentError, UntraceableError), match=r"`.copy\(\)`"):
            fwdad.jit(g, backend="numpy")(X)


def test_concatenated():
    """Pieces are copied in turn, and later ones see earlier ones."""
    f = loss(rolled)
    expected = central_differences(f, X)
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-6)
    assert_allclose(fwdad.jacfwd(f)(X), expected, rtol=1e-6)
    with pytest.raises(AliasedArgumentError):
        fwdad.jit(fwdad.grad(f), backend="numpy")(X)


def two_buffers(x):
    u, v = x * 1.0, np.zeros(4)
    rows = np.zeros((3, 4))
    for k in range(3):
        np.concatenate([u[1:], u[:1] * 0.5], out=v)
        np.stack([u, v, u * v], out=rows)
        u, v = v, u
        rows[0][u > 0.1] = rows[1][:4][u > 0.1]
        rows[2][np.array([True, False, True, True])] = rows[0][1:]
        u[np.array([True, False, True, False])] = u[k : k + 1]
    return np.sum(u * v) + np.sum(np.sin(rows))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_other_memory(backend):
    """Other memory, or one element, is stored as ever."""
    if backend == "numba":
        pytest.importorskip("numba")
    expected = central_differences(two_buffers, X)
    for g in (fwdad.grad(two_buffers), fwdad.jacfwd(two_buffers)):
        assert_allclose(g(X), expected, rtol=1e-6, atol=1e-8)
        assert_allclose(fwdad.jit(g, backend=backend)(X), expected, rtol=1e-6, atol=1e-8)
