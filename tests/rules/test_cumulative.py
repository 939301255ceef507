"""Running sums and products."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(32)
zeros = np.array([[1.0, 0.0, 2.0, 3.0], [0.0, 2.0, 0.0, 1.0], [1.0, 2.0, 3.0, 0.0]])

CASES = [
    *[
        Case(np.cumsum, a, linear=(0,), **options)
        for a in (draw.real(3, 4, 2), draw.complex(3, 4, 2))
        for options in [{}, {"axis": 0}, {"axis": -1}, {"axis": 1}]
    ],
    Case(np.cumsum, np.array(1.5), linear=(0,)),
    Case(np.cumsum, 1.5),
    Case(np.cumsum, np.zeros((0, 3)), linear=(0,), axis=0),
    Case(np.cumsum, draw.real(4).astype("f"), linear=(0,), dtype=np.float64),
    *[
        Case(np.cumprod, a, **options)
        for a in (draw.real(3, 4, 2), draw.complex(3, 4, 2), draw.real(6, 4).T[::2])
        for options in [{}, {"axis": 0}, {"axis": -1}, {"axis": 1}]
    ],
    *[Case(np.cumprod, zeros, **options) for options in [{}, {"axis": 0}, {"axis": 1}]],
    Case(np.cumprod, 1j * zeros, axis=1),
    Case(np.cumprod, zeros.astype("f"), axis=1),
    Case(np.cumprod, 1.5),
    Case(np.cumprod, 0.0),
    Case(np.cumprod, np.zeros((0, 3)), axis=0),
    *[Case(np.cumprod, np.where(np.arange(n) == n // 2, 0, draw.real(n))) for n in (1, 2, 3, 5, 9)],
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


def test_the_tangent_of_a_running_product_with_zeros_is_exact():
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    _, y_dot = call_rule(np.cumprod, (x,), (Chunk(np.eye(5)),))
    jacobian = np.zeros((5, 5))
    for k in range(5):
        for i in range(k + 1):
            jacobian[k, i] = np.prod(np.delete(x[: k + 1], i))
    assert_array_equal(y_dot.lanes.T, jacobian)


def test_both_ways_to_a_running_product_agree():
    x = draw.real(37)
    _, quotients = call_rule(np.cumprod, (x,), (Chunk(np.eye(37)),))
    padded = np.append(x, 0.0)  # the zero sends it down the way without division
    _, views = call_rule(np.cumprod, (padded,), (Chunk(np.eye(38)),))
    assert_allclose(views.lanes[:37, :37], quotients.lanes, rtol=1e-12, atol=1e-14)


def test_views_neither_overflow_nor_underflow():
    x = np.array([1e-200, 1e-100, 1e200, 1e150, 0.0])
    _, y_dot = call_rule(np.cumprod, (x,), (Chunk(np.eye(5)),))
    assert_allclose(y_dot.lanes[:, 3], [1e250, 1e150, 1e-150, 1e-100, 0.0], rtol=1e-14)
    assert_allclose(y_dot.lanes[:, 4], [0.0, 0.0, 0.0, 0.0, 1e50], rtol=1e-14)


def test_a_product_that_underflows_for_good_is_no_reason_to_divide_or_to_loop():
    x = np.full(5000, 0.5)
    _, y_dot = call_rule(np.cumprod, (x,), (Chunk(np.ones((1, 5000))),))
    k = np.arange(1, 5001)
    assert_allclose(y_dot.lanes[0], k * 2.0 ** np.maximum(1 - k, -1074.0), rtol=1e-13, atol=1e-300)
    x[0] = 1e-100  # too small for a quotient
    _, y_dot = call_rule(np.cumprod, (x,), (Chunk(np.eye(1, 5000)),))
    assert_allclose(y_dot.lanes[0], 2.0 ** np.maximum(1 - k, -1074.0), rtol=1e-13, atol=1e-300)


def test_a_nan_reaches_the_products_behind_it_only():
    x = np.array([2.0, np.nan, 3.0])
    _, y_dot = call_rule(np.cumprod, (x,), (Chunk(np.eye(3)),))
    assert_array_equal(y_dot.lanes[0], [1.0, np.nan, np.nan])
    assert_array_equal(y_dot.lanes[1], [0.0, 2.0, 6.0])
