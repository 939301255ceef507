"""reduce, accumulate and reduceat of ufuncs that have no other name for them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(37)
mask = draw.rng.random((3, 4, 2)) > 0.4
mask[:, 0] = True
REORDERABLE = (np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.hypot)

CASES = [
    *[
        Case(f.reduce, draw.real(3, 4, 2), **options)
        for f in REORDERABLE
        for options in [
            {},
            {"axis": (0, 2)},
            {"axis": None},
            {"axis": -1, "keepdims": True},
            {"axis": 1, "where": mask, "initial": 0.1},
        ]
    ],
    *[
        Case(f.reduce, draw.real(3, 4, 2), **options)
        for f in (np.subtract, np.divide)
        for options in [
            {},
            {"axis": 1, "keepdims": True},
            {"axis": -1, "initial": 1.5},
            {"axis": 1, "where": mask, "initial": 0.5},
        ]
    ],
    Case(np.subtract.reduce, np.zeros((0, 3)), initial=1.0),
    Case(np.divide.reduce, draw.complex(3, 2)),
    Case(np.fmax.reduce, draw.complex(3, 2)),
    *[
        Case(f.accumulate, draw.real(3, 5, 2), **options)
        for f in (
            np.maximum, np.minimum, np.fmax, np.fmin,
            np.subtract, np.divide, np.logaddexp, np.logaddexp2, np.hypot,
        )
        for options in [{}, {"axis": 1}, {"axis": -1}]
    ],
    *[Case(f.accumulate, draw.complex(5)) for f in (np.maximum, np.minimum, np.divide)],
    *[Case(f.accumulate, np.zeros((0, 2))) for f in (np.maximum, np.divide)],
    *[
        Case(f.reduceat, draw.real(3, 6, 2), indices, axis=axis, **linear)
        for f, linear in [
            (np.add, {"linear": (0,)}),
            (np.multiply, {}),
            (np.maximum, {}),
            (np.minimum, {}),
        ]
        for indices, axis in [([0, 2, 5], 1), ([3, 0, 4, 4], 1), ([0, 2], 0), ([1], -1)]
    ],
    Case(np.add.reduceat, draw.complex(5), [0, 4, 2], linear=(0,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


def _jacobian(f, x, **options):
    x = np.asarray(x)
    y, y_dot = call_rule(f, (x,), (Chunk(np.eye(x.size)),), **options)
    return y, np.zeros((*np.shape(y), x.size)) if y_dot is ZERO else y_dot.lanes.T


def test_extremes_of_the_numbers_pass_nan_over():
    nan = np.nan
    assert_array_equal(_jacobian(np.fmax.reduce, [nan, 2.0, nan, 2.0])[1], [0, 1, 0, 0])
    assert_array_equal(_jacobian(np.fmin.reduce, [nan, 2.0, 3.0])[1], [0, 1, 0])
    assert_array_equal(_jacobian(np.fmax.reduce, [nan, nan])[1], [1, 0])
    assert_array_equal(_jacobian(np.fmax.reduce, [nan, 1.0], initial=nan)[1], [0, 1])
    assert_array_equal(_jacobian(np.fmax.reduce, [nan, 1.0], initial=2.0)[1], [0, 0])


@pytest.mark.parametrize(
    ("f", "x", "places"),
    [
        (np.maximum, [1.0, 1.0, 3.0, 2.0, 3.0], [0, 0, 2, 2, 2]),
        (np.minimum, [3.0, 3.0, 1.0, 2.0, 1.0], [0, 0, 2, 2, 2]),
        (np.maximum, [1.0, np.nan, 3.0, np.nan], [0, 1, 1, 1]),
        (np.minimum, [np.nan, np.nan, 0.0], [0, 0, 0]),
        (np.fmax, [np.nan, 1.0, np.nan, 1.0, 2.0], [0, 1, 1, 1, 4]),
        (np.fmin, [np.nan, np.nan, 5.0, np.nan], [0, 0, 2, 2]),
    ],
)
def test_a_running_extreme_keeps_the_first_of_equals(f, x, places):
    assert_array_equal(_jacobian(f.accumulate, x)[1], np.eye(len(x))[places])


def test_weights_of_a_sum_of_exponentials_stay_finite():
    inf = np.inf
    assert_array_equal(_jacobian(np.logaddexp.reduce, [-inf, 0.0])[1], [0, 1])
    assert_array_equal(_jacobian(np.logaddexp.reduce, [-inf, -inf])[1], [0, 0])
    assert_allclose(_jacobian(np.logaddexp.reduce, [1000.0, 1000.0])[1], [0.5, 0.5], rtol=1e-12)
    assert_allclose(_jacobian(np.logaddexp2.reduce, [2.0, 0.0])[1], [0.8, 0.2], rtol=1e-14)


def test_the_length_of_a_zero_vector_has_tangent_zero():
    assert_array_equal(_jacobian(np.hypot.reduce, [0.0, 0.0])[1], [0, 0])
    assert_allclose(_jacobian(np.hypot.reduce, [3.0, 4.0])[1], [0.6, 0.8], rtol=1e-15)


def test_products_of_segments_with_zeros_are_exact():
    x = [0.0, 2.0, 3.0, 0.0, 0.0]
    y, jacobian = _jacobian(np.multiply.reduceat, x, indices=[0, 3])
    assert_array_equal(y, [0, 0])
    assert_array_equal(jacobian, [[6, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
