"""Any shape, any axes, any dtype: what hypothesis finds between the rows of the tables."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from tests.differences import difference_along

LINEAR = (np.sum, np.mean)
SMOOTH = (np.var, np.std, np.prod)
SELECTING = (np.max, np.min, np.ptp, np.median)
ALONG_ONE = (np.cumsum, np.cumprod, np.sort)


@st.composite
def arrays(draw, dtypes=(np.float64, np.complex128)):
    """An array of distinct values of moderate size, and lanes; N is often a length of it."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    n = draw(st.one_of(st.sampled_from(shape), st.integers(1, 3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    size = int(np.prod(shape))
    dtype = draw(st.sampled_from(dtypes))
    x = (0.5 + rng.permutation(size) / size).reshape(shape).astype(dtype)
    lanes = rng.standard_normal((n, *shape)).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.standard_normal(shape)
        lanes = lanes + 1j * rng.standard_normal(lanes.shape)
    if draw(st.booleans()):
        x, lanes = x[..., ::-1], np.asfortranarray(lanes)
    return x, lanes


@st.composite
def reductions(draw, dtypes=(np.float64, np.complex128)):
    """An array with lanes, and an axis, some axes, or none, with or without keepdims."""
    x, lanes = draw(arrays(dtypes))
    one = st.integers(-x.ndim, x.ndim - 1)
    several = st.lists(one, max_size=x.ndim, unique_by=lambda a: a % x.ndim).map(tuple)
    axis = draw(st.one_of(st.none(), one, several))
    return x, lanes, {"axis": axis, "keepdims": draw(st.booleans())}


def _lanes(y, y_dot, n):
    return np.zeros((n, *np.shape(y))) if y_dot is ZERO else y_dot.lanes


@pytest.mark.parametrize("f", LINEAR, ids=lambda f: f.__name__)
@given(case=reductions())
def test_a_linear_reduction_is_itself_on_each_lane(f, case):
    x, lanes, options = case
    y, y_dot = call_rule(f, (x,), (Chunk(lanes),), **options)
    want = [f(lane, **options) for lane in lanes]
    assert_allclose(_lanes(y, y_dot, len(lanes)), want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("f", SMOOTH, ids=lambda f: f.__name__)
@given(case=reductions())
def test_a_smooth_reduction_agrees_with_differences(f, case):
    x, lanes, options = case
    y, y_dot = call_rule(f, (x,), (Chunk(lanes),), **options)
    assume(f is not np.std or np.all(np.abs(y) > 1e-2))  # its kink at 0 breaks differences
    want = [difference_along(lambda z: f(z, **options), x, lane) for lane in lanes]
    assert_allclose(_lanes(y, y_dot, len(lanes)), want, rtol=1e-6, atol=1e-7)


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("f", SELECTING, ids=lambda f: f.__name__)
@given(case=reductions((np.float64, np.float32)))
def test_a_selection_agrees_with_differences(f, case):
    x, lanes, options = case
    y, y_dot = call_rule(f, (x,), (Chunk(lanes),), **options)
    got = _lanes(y, y_dot, len(lanes))
    # the values lie at least 1/64 apart: a step of 1e-5 changes no choice
    want = [difference_along(lambda z: f(z, **options), x.astype(float), lane) for lane in lanes]
    assert_allclose(got, want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("f", ALONG_ONE, ids=lambda f: f.__name__)
@given(case=arrays((np.float64,)), data=st.data())
def test_along_one_axis_agrees_with_differences(f, case, data):
    x, lanes = case
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    y, y_dot = call_rule(f, (x,), (Chunk(lanes),), axis=axis)
    want = [difference_along(lambda z: f(z, axis=axis), x, lane) for lane in lanes]
    assert_allclose(_lanes(y, y_dot, len(lanes)), want, rtol=1e-6, atol=1e-7)


@given(case=arrays(), data=st.data())
def test_a_rearrangement_is_itself_on_each_lane(case, data):
    x, lanes = case
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    other = data.draw(st.integers(-x.ndim, x.ndim - 1))
    count = data.draw(st.integers(0, 3))
    order = data.draw(st.permutations(range(x.ndim)))
    picks = data.draw(st.lists(st.integers(0, x.shape[axis] - 1), max_size=5))
    for f, arguments in [
        (np.transpose, (order,)),
        (np.moveaxis, (axis, other)),
        (np.swapaxes, (axis, other)),
        (np.expand_dims, (axis,)),
        (np.squeeze, ()),
        (np.ravel, ("F",)),
        (np.reshape, ((-1, x.shape[0]),)),
        (np.flip, (axis,)),
        (np.roll, (count, axis)),
        (np.repeat, (count, axis)),
        (np.tile, ((count, 2),)),
        (np.take, (np.array(picks, int), axis)),
    ]:
        _, y_dot = call_rule(f, (x, *arguments), (Chunk(lanes),))
        want = np.stack([f(lane, *arguments) for lane in lanes])
        assert_allclose(y_dot.lanes, want, rtol=0, err_msg=f.__name__)
