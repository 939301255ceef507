"""Compiled functions that return views, where somebody writes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

pytest.importorskip("numba")


def diagonal_written(x):
    m = np.outer(x, x)
    d = np.einsum("ii->i", m)
    d[:] = x * x * x
    e = np.einsum("ij->ij", m)
    m[0, 1] = 7.0
    return np.sum(m * m) + np.sum(e * np.arange(3))


def test_einsum_of_one_array_is_a_view():
    """Compiled it was a copy: what was written into one was not seen in the other."""
    x = np.array([0.7, 1.3, -0.4])
    assert_allclose(fwdad.jit(diagonal_written)(x), diagonal_written(x), rtol=1e-14)


def swapped_with_a_view_of_each(x):
    """The array whose reshape is written is another one in each iteration."""
    a, b = x * 1.0, np.cos(x)
    for k in range(5):
        m = a.reshape(2, 2)
        m[:, k % 2] *= b[:2]
        r = m.T
        r[0] += np.sin(r[1]) * b[3]
        b.reshape(-1)[k % 4] = np.sum(m[k % 2])
        if k != 2:
            a, b = b, a
    return np.concatenate([a, b])


def a_view_that_changes_with_the_array(x):
    a, b = x * 1.0, np.cos(x)
    m = a.reshape(2, 2)
    for k in range(5):
        m[:, 1] *= b[:2]
        if np.sum(m[0]) > 0.5:
            a[k % 4] = np.sin(a[k % 4]) * b[1]
        if k == 2:
            a, b = b, a
            m = a.reshape(2, 2)
        r = m.ravel()
        r[3] -= np.cos(b[k % 4])
    return np.concatenate([a, b])


def a_copy_in_order_behind_all_stores(x):
    """Nobody writes any more: whether ``ravel`` copies makes no difference."""
    a = np.cos(x)
    v = a[::-1]
    v[1] = x[0] * x[2]
    a[0] += v[3] * v[1]
    return np.concatenate([v.ravel(), a[::2].ravel()])


POINT = np.array([0.7, -0.4, 1.1, 0.3])


def compiled_whole(f, *args):
    """What a function under ``jit`` returns, once all of it is compiled."""
    found = f(*args)
    said = fwdad.explain(f, *args)
    assert "run by Numba" in said, said
    assert "NumPy" not in said, said
    return found


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize(
    "f", [swapped_with_a_view_of_each, a_view_that_changes_with_the_array,
          a_copy_in_order_behind_all_stores],
)  # fmt: skip
def test_views_on_arrays_that_change_places_are_compiled(f):
    assert_allclose(compiled_whole(fwdad.jit(f), POINT), f(POINT), rtol=1e-13)
    wanted = central_differences(f, POINT)
    for way in (fwdad.jacfwd, fwdad.jacrev):
        found = compiled_whole(fwdad.jit(way(f)), POINT)
        assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)
