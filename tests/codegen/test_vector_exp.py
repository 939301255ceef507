"""exp of vectors as code of our own: as near as the C library's, and odd where that is odd."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.llvm import vector_exp
from fwdad.codegen.runtime import libmvec

pytestmark = pytest.mark.skipif(not libmvec.register_bits(), reason="no vector functions")


@pytest.fixture(scope="module")
def exp():
    f = fwdad.jit(lambda x: np.exp(x), backend="numba")
    assert "vector_exp" in fwdad.show(f, np.ones(9), backend="numba")
    return f


@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (-40, 40), (-708, 709), (-746, -700), (700, 709.78), (-1e-9, 1e-9)]
)
def test_to_one_unit_in_the_last_place(exp, rng, low, high):
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no longer floats to compare with")
    x = np.concatenate([rng.uniform(low, high, 100_000), np.linspace(low, high, 1001)])
    expected = np.exp(x.astype(np.longdouble))
    unit = np.spacing(expected.astype(float))
    allowed = 1.01 if vector_exp.has_feature("fma") else 4.0  # the C library's
    assert np.max(np.abs(exp(x) - expected) / unit) <= allowed


def test_ends(exp):
    x = np.array([
        0.0, -0.0, math.inf, -math.inf, math.nan, 709.782712893384, 709.7827128933841, 710.0, 1e308,
        -708.4, -745.13, -745.14, -746.0, -1e308, 5e-324, -5e-324, 1e-300,
    ])  # fmt: skip
    with np.errstate(over="ignore"):
        expected = np.exp(x)
    for k in range(len(x)):  # each in each lane
        found = exp(np.roll(x, k))
        np.testing.assert_allclose(found, np.roll(expected, k), rtol=3e-16, atol=5e-324)
    assert_array_equal(exp(x)[[0, 1, 2, 3, 7, 8, 12, 13]], expected[[0, 1, 2, 3, 7, 8, 12, 13]])


def test_each_lane_has_the_bits_of_one_alone(exp, rng):
    x = rng.normal(size=41) * 100.0
    one_by_one = np.array([exp(np.full(9, x[k]))[k % 9] for k in range(41)])
    assert_array_equal(exp(x), one_by_one)
