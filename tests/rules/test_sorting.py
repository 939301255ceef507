"""Sorting, partial sorting, and the orders that they imply."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.testing import check_frule
from tests.rules.case import Case, Draw

draw = Draw(35)
BOTH = (draw.real, draw.complex)

CASES = [
    *[
        Case(np.sort, make(3, 4, 2), **options)
        for make in BOTH
        for options in [{}, {"axis": 0}, {"axis": 1}, {"axis": None}, {"kind": "stable"}]
    ],
    Case(np.sort, draw.real(4), stable=True),
    Case(np.sort, draw.real(6, 4).T[::2]),
    Case(np.sort, np.zeros((3, 0))),
    *[
        Case(np.partition, make(3, 7), kth, **options)
        for make in BOTH
        for kth, options in [
            (3, {}),
            ([1, 5], {}),
            (1, {"axis": 0}),
            (10, {"axis": None}),
            (-2, {}),
        ]
    ],
    # in what order a partition leaves the others depends on the dtype
    Case(np.partition, draw.real(200), 100, check={"chunk": (1, 2), "float32": False}),
    *[Case(np.sort_complex, make(3, 4)) for make in BOTH],
    *[
        Case(np.median, make(3, 4, 5), **options)
        for make in BOTH
        for options in [{}, {"axis": 1}, {"axis": -1}, {"axis": (0, 2), "keepdims": True}]
    ],
    Case(np.median, 1.5),
    Case(np.median, draw.real(1)),
    Case(np.median, draw.real(4).astype("f")),
    Case(np.argsort, draw.real(3, 4), axis=0),
    Case(np.argpartition, draw.real(7), 3),
    Case(np.lexsort, (draw.real(4), draw.real(4))),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


def _jacobian(f, x, *args, **options):
    x = np.asarray(x)
    basis = Chunk(np.eye(x.size).reshape(x.size, *x.shape))
    y, y_dot = call_rule(f, (x, *args), (basis,), **options)
    return y, np.moveaxis(y_dot.lanes, 0, -1)


def test_of_equal_values_the_first_comes_first():
    assert_array_equal(_jacobian(np.sort, [2.0, 1.0, 2.0, 1.0])[1], np.eye(4)[[1, 3, 0, 2]])
    signs = _jacobian(np.sort, [0.0, -0.0, -1.0])[1]
    assert_array_equal(signs, np.eye(3)[[2, 0, 1]])


def test_every_nan_comes_last():
    assert_array_equal(_jacobian(np.sort, [np.nan, 2.0, np.nan, 1.0])[1], np.eye(4)[[3, 1, 0, 2]])


@pytest.mark.parametrize("size", [2, 5, 33, 500])
def test_the_kth_of_a_partition_has_the_tangent_that_it_has_after_a_sort(size, rng):
    x = np.round(rng.uniform(0, size / 4, size))  # many values are equal
    for kth in {0, size // 2, size - 1}:
        y, partitioned = _jacobian(np.partition, x, kth)
        _, ordered = _jacobian(np.sort, x)
        assert_array_equal(partitioned[kth], ordered[kth])
        # every element is accounted for once, and stands where its value does
        assert_array_equal(partitioned.sum(axis=0), np.ones(size))
        assert_array_equal(partitioned @ x, y)


def test_a_median_shares_its_tangent_between_the_middle_two():
    assert_array_equal(_jacobian(np.median, [4.0, 1.0, 3.0, 2.0])[1], [0, 0, 0.5, 0.5])
    assert_array_equal(_jacobian(np.median, [2.0, 1.0, 2.0, 2.0])[1], [0.5, 0, 0.5, 0])


def test_a_median_that_is_nan_has_the_tangent_of_the_first_nan():
    x = [[1.0, np.nan, 2.0, np.nan], [1.0, 2.0, 3.0, 4.0]]
    y, jacobian = _jacobian(np.median, x, axis=1)
    assert_array_equal(y, [np.nan, 2.5])
    assert_array_equal(jacobian, [[0, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0.5, 0.5, 0]])


def test_sorting_a_scalar_raises_as_numpy_does():
    with pytest.raises(np.exceptions.AxisError):
        call_rule(np.sort, (np.array(1.0),), (Chunk(np.ones(2)),))
