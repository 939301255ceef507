"""Cheap arrays are computed at each use: how many arrays there are, and the same bits."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.ir.ops import Apply

pytest.importorskip("numba")

from fwdad.codegen.passes.recomputation import repeated


def several(x, y, z):
    y, z = y.copy(), z.copy()
    t = -x * 0.5
    y[:] += t
    z -= t
    return y, z


def changed_between(x, y, z):
    x, y, z = x.copy(), y.copy(), z.copy()
    t = -x[1:] * 0.5
    y[1:] += t
    x[2] = 7.0
    z[1:] -= t
    return y, z


def costly(x, y, z):
    y, z = y.copy(), z.copy()
    t = np.exp(x) / 3.0
    y[:] += t
    z -= t
    return y, z


def strided(a, y, z):
    y, z = y.copy(), z.copy()
    t = -a[:, 1]
    y += t
    z -= t
    return y, z


def arrays(*shape):
    rng = np.random.default_rng(3)
    return rng.normal(size=shape), rng.normal(size=shape[0]), rng.normal(size=shape[0])


def made(f, *args):
    """How many operations compute something, as they are traced and as they are repeated."""
    program = fwdad.trace(f, *args).program
    again = repeated(program)
    counts = [sum(isinstance(op, Apply) for op in p.walk()) for p in (program, again)]
    return counts, again is program


def test_a_cheap_array_is_computed_at_each_use():
    (before, after), _ = made(several, *arrays(9))
    assert after == before + 2  # the negation and the product, once more
    text = fwdad.show(several, *arrays(9), backend="numba")
    assert "np.empty" not in text


@pytest.mark.parametrize("f", [changed_between, costly])
def test_what_changes_between_or_costs_more_is_an_array(f):
    _, same = made(f, *arrays(9))
    assert same


def test_a_column_is_read_once():
    _, same = made(strided, *arrays(9, 4))
    assert same


@pytest.mark.parametrize("f", [several, changed_between, costly])
def test_the_same_numbers(f):
    x, y, z = arrays(9)
    expected = f(x.copy(), y.copy(), z.copy())
    found = fwdad.jit(f, backend="numba")(x.copy(), y.copy(), z.copy())
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15) if f is costly else assert_array_equal(a, b)
