"""Sums, means, variances, products and extremes, with every option that they take."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fwdad.errors import DualLeakError
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(31)
mask = draw.rng.random((3, 4, 5)) > 0.4
mask[:, :2, :] = True


def _arrays():
    yield draw.real(3, 4, 5)
    yield draw.complex(3, 4, 5)


LINEAR = [
    *[Case(f, a, linear=(0,)) for f in (np.sum, np.mean) for a in _arrays()],
    *[
        Case(f, a, linear=(0,), axis=axis, keepdims=keepdims)
        for f in (np.sum, np.mean)
        for a in _arrays()
        for axis, keepdims in [
            (0, False),
            (-1, True),
            ((0, 2), False),
            ((-1, 0), True),
            ((), False),
        ]
    ],
    *[
        Case(f, a, linear=(0,), **options)
        for f in (np.sum, np.mean)
        for a in _arrays()
        for options in [
            {"where": mask},
            {"where": mask, "axis": 1},
            {"where": mask[:, :, :1], "axis": (0, 2), "keepdims": True},
            {"where": mask[0], "axis": (1, 2)},
            {"keepdims": True},
        ]
    ],
    Case(np.sum, draw.real(3, 4), linear=(0,), initial=2.5, axis=0),
    Case(np.sum, np.float64(1.5), linear=(0,)),
    Case(np.sum, np.array(1.5), linear=(0,), axis=0),
    Case(np.sum, 1.5),
    Case(np.mean, 1.5),
    Case(np.sum, np.zeros((0, 3)), linear=(0,), axis=0),
    Case(np.sum, np.zeros((0, 3)), linear=(0,)),
    Case(np.sum, draw.real(4, 3).T[::2], linear=(0,), axis=1),
    Case(np.sum, draw.real(3, 4).astype("f"), linear=(0,), axis=1, dtype=np.float64),
    Case(np.mean, draw.real(3, 4), linear=(0,), dtype=np.complex128),
    Case(np.sum, draw.complex(3, 4).astype("F"), linear=(0,), axis=0),
]

CASES = [
    *LINEAR,
    *[
        Case(f, a, **options)
        for f in (np.var, np.std)
        for a in _arrays()
        for options in [
            {},
            {"ddof": 1},
            {"correction": 1.5, "axis": 0},
            {"axis": (0, -1), "keepdims": True},
            {"axis": 1, "where": mask, "ddof": 1},
            {"where": mask},
            {"mean": np.mean(a, axis=1, keepdims=True) + 0.2, "axis": 1},
            {"mean": np.full((1, 1, 1), 0.3 + 0 * a[0, 0, 0]), "ddof": 1},
        ]
    ],
    Case(np.var, draw.real(4).astype("f")),
    Case(np.std, draw.real(3, 4).astype("f"), axis=1, dtype=np.float64),
    Case(np.var, np.arange(4), mean=np.array([1.25]), check={"argnums": ["mean"]}),
    *[
        Case(np.prod, a, **options)
        for a in (draw.real(3, 2, 4), draw.complex(3, 2, 4))
        for options in [
            {},
            {"axis": 0},
            {"axis": (0, -1), "keepdims": True},
            {"axis": -1, "initial": -1.5},
            {"axis": 1, "where": mask[:, :2, :4]},
            {"keepdims": True},
        ]
    ],
    Case(np.prod, np.array([2.0, 0.0, 3.0])),
    Case(np.prod, np.array([2.0, 0.0, 0.0])),
    Case(np.prod, np.array([[0.0, 0.0, 0.0], [1e-200, 1e-200, 0.0], [1.0, 2.0, 3.0]]), axis=1),
    Case(np.prod, 1.5),
    Case(np.prod, np.array([1.5])),
    Case(np.prod, np.zeros((0, 3)), axis=0),
    Case(np.prod, np.zeros((3, 0)), axis=0),
    *[
        Case(f, a, **options)
        for f in (np.max, np.min, np.amax, np.amin)
        for a in _arrays()
        for options in [
            {},
            {"axis": 0},
            {"axis": (0, -1), "keepdims": True},
            {"keepdims": True},
            {"axis": (2, 1)},
            {"axis": ()},
        ]
    ],
    *[
        Case(f, draw.real(3, 4, 5), **options)
        for f in (np.max, np.min)
        for options in [
            {"axis": 1, "initial": 0.1},
            {"initial": -9.0},
            {"initial": 9.0},
            {"axis": 2, "where": mask, "initial": 0.2},
            {"where": mask, "initial": -0.2, "keepdims": True},
            {"axis": (0, 1), "where": mask, "initial": 0.0},
        ]
    ],
    Case(np.max, 1.5),
    Case(np.min, np.float64(1.5), axis=0),
    Case(np.max, np.zeros((0, 3)), axis=1),
    Case(np.max, np.zeros((3, 0)), axis=1, initial=1.0),
    Case(np.max, draw.real(4, 3).T[:, ::2], axis=1),
    *[
        Case(np.ptp, a, **options)
        for a in _arrays()
        for options in [{}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}]
    ],
    *[
        Case(f, draw.real(3, 4))
        for f in (
            np.any,
            np.all,
            np.count_nonzero,
            np.argmax,
            np.argmin,
            np.nanargmax,
            np.nanargmin,
        )
    ],
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


def _jacobian(f, x, **options):
    """The rule's Jacobian: lanes are the basis directions, the last axis."""
    x = np.asarray(x)
    basis = np.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)
    y, y_dot = call_rule(f, (x,), (Chunk(basis),), **options)
    if y_dot is ZERO:
        return y, np.zeros((*np.shape(y), x.size))
    return y, np.moveaxis(y_dot.lanes, 0, -1)


@pytest.mark.parametrize(
    ("f", "x", "row"),
    [
        (np.max, [1.0, 3.0, 3.0], [0, 1, 0]),
        (np.min, [2.0, 1.0, 1.0], [0, 1, 0]),
        (np.ptp, [1.0, 3.0, 3.0, 1.0], [-1, 1, 0, 0]),
        (np.ptp, [2.0, 2.0], [0, 0]),
        (np.max, [1.0, np.nan, 3.0, np.nan], [0, 1, 0, 0]),
        (np.min, [1.0, np.nan, 3.0, np.nan], [0, 1, 0, 0]),
        (np.max, [-np.inf, -np.inf], [1, 0]),
        (np.min, [np.inf, np.inf], [1, 0]),
    ],
)
def test_of_equal_extremes_the_first_carries_the_tangent(f, x, row):
    assert_array_equal(_jacobian(f, x)[1], row)


def test_ties_over_several_axes_go_by_c_order_of_those_axes():
    x = np.array([[1.0, 5.0], [5.0, 2.0]])
    assert_array_equal(_jacobian(np.max, x)[1], [0, 1, 0, 0])
    assert_array_equal(_jacobian(np.max, x.T, axis=(1, 0))[1], [0, 1, 0, 0])


def test_an_initial_value_stands_before_all_elements():
    assert_array_equal(_jacobian(np.max, [0.0, 0.0], initial=0.0)[1], [0, 0])
    assert_array_equal(_jacobian(np.min, [0.0, -1.0], initial=0.0)[1], [0, 1])
    y, jacobian = _jacobian(np.max, [0.0, 1.0], initial=np.nan)
    assert np.isnan(y)
    assert_array_equal(jacobian, [0, 0])
    y, jacobian = _jacobian(np.max, [np.nan, 1.0], initial=7.0)
    assert np.isnan(y)
    assert_array_equal(jacobian, [1, 0])


def test_where_selects_also_beside_tangents_that_are_not_finite():
    x = np.array([1.0, 2.0, 3.0])
    x_dot = Chunk(np.array([[1.0, np.inf, 10.0], [1.0, np.nan, 0.0]]))
    where = np.array([True, False, True])
    for f, options, want in [
        (np.sum, {}, [11.0, 1.0]),
        (np.mean, {}, [5.5, 0.5]),
        (np.prod, {}, [13.0, 3.0]),
        (np.max, {"initial": 0.0}, [10.0, 0.0]),
        (np.var, {}, [9.0, -1.0]),
        (np.std, {}, [4.5, -0.5]),
    ]:
        _, y_dot = call_rule(f, (x,), (x_dot,), where=where, **options)
        assert_allclose(y_dot.lanes, want, rtol=1e-15, err_msg=f.__name__)


def test_a_standard_deviation_of_zero_has_tangent_zero():
    x = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    y, jacobian = _jacobian(np.std, x, axis=1)
    assert_array_equal(y[0], 0.0)
    assert_array_equal(jacobian[0], np.zeros(6))
    assert_allclose(jacobian[1], [0, 0, 0, -1 / 6**0.5, 0, 1 / 6**0.5], rtol=1e-14, atol=1e-16)


def test_products_with_zeros_are_exact():
    assert_array_equal(_jacobian(np.prod, [3.0, 0.0, 5.0])[1], [0, 15, 0])
    assert_array_equal(_jacobian(np.prod, [3.0, 0.0, 0.0])[1], [0, 0, 0])
    assert_array_equal(_jacobian(np.prod, [1e-200, 1e-200, 0.5])[1], [5e-201, 5e-201, 0.0])


def test_empty_arrays_return_or_raise_as_numpy_does():
    empty = np.zeros((0,))
    for f, y in ((np.sum, 0.0), (np.prod, 1.0)):
        value, y_dot = call_rule(f, (empty,), (Chunk(np.zeros((2, 0))),))
        assert value == y
        assert y_dot is ZERO or not np.any(y_dot.lanes)
    for f in (np.max, np.min, np.ptp):
        with pytest.raises(ValueError, match="zero-size"):
            call_rule(f, (empty,), (Chunk(np.zeros((2, 0))),))


def test_a_sum_into_integers_would_lose_its_tangent():
    for f in (np.sum, np.mean, np.cumsum, np.prod):
        with pytest.raises(DualLeakError, match="int64"):
            call_rule(f, (np.ones(2),), (Chunk(np.ones((1, 2))),), dtype=np.int64)


def test_an_axis_out_of_range_raises_as_numpy_does():
    for f in (np.sum, np.mean, np.var, np.std, np.prod, np.max, np.min, np.ptp):
        with pytest.raises(np.exceptions.AxisError):
            call_rule(f, (np.ones((2, 3)),), (Chunk(np.ones((1, 2, 3))),), axis=2)
