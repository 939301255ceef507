"""Compiled functions that answer windows, where somebody writes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")


def diagonal_written(x):
    m = np.outer(x, x)
    d = np.einsum("ii->i", m)
    d[:] = x * x * x
    e = np.einsum("ij->ij", m)
    m[0, 1] = 7.0
    return np.sum(m * m) + np.sum(e * np.arange(3))


def test_einsum_of_one_array_is_a_window():
    """Compiled it was a copy: what was written into one was not seen in the other."""
    x = np.array([0.7, 1.3, -0.4])
    assert_allclose(fwdad.jit(diagonal_written)(x), diagonal_written(x), rtol=1e-14)
