"""Objects that NumPy and loggers are given: arrays by ``__array__``, and what is not put out."""

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([3.0, 2.0])


class Cell:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __setitem__(self, k, v):
        np.asarray(self)[k] = v

    def __getitem__(self, k):
        return np.asarray(self)[k]


def a_cell(x):
    c = Cell(np.zeros((2, 2)))
    c[:] = x[0] * np.eye(2)
    return c[0, 0] ** 2 + np.sum(c) * x[1] + np.trace(c)


def test_by_array():
    expected = fwdad.jacobian(a_cell, X, mode="forward")
    assert_allclose(expected, [6.0 + 4.0 + 2.0, 6.0])
    assert_allclose(fwdad.jit(a_cell, backend="numpy")(X), a_cell(X))
    for g in (fwdad.grad(a_cell), fwdad.jacfwd(a_cell)):
        assert_allclose(fwdad.jit(g, backend="numpy")(X), expected)


def test_a_logger_that_drops_it(monkeypatch):
    """An object is not said; where the logger is enabled later, that is refused."""
    logger = logging.getLogger("tests.given_objects")

    def f(x):
        held = Cell(x)
        logger.debug("converting %s", held)
        return held.array**2

    g = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    assert_allclose(g(X), np.diag(2 * X))
    logger.setLevel(logging.DEBUG)
    try:
        with pytest.raises(fwdad.errors.UntraceableError, match="is given a Cell"):
            g(X)
    finally:
        logger.setLevel(logging.NOTSET)
