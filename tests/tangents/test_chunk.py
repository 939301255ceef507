"""``Chunk``: what it looks like, what it may be part of, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import ChunkOperationError, MissingTransposeError, NonlinearTangentError
from fwdad.rules.core.registry import RULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lane_by_lane import map_lanes
from fwdad.tangents.laws.listing import listed
from fwdad.tangents.scaling import MAX_ARRAY_TERMS, MAX_SCALAR_TERMS
from fwdad.tangents.zero import ZERO

WIDTHS = st.integers(1, 4)


def draw_lanes(n, shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, *shape))


def deferred(lanes, seed=0):
    """A chunk with those lanes, kept as a sum of two scaled ones."""
    d = np.random.default_rng(seed).uniform(0.5, 1, lanes.shape[1:])
    return d * Chunk(lanes / (2 * d)) + (-d) * Chunk(-lanes / (2 * d))


# -- what it looks like


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_looks_like_its_primal(n, shape):
    x_dot = Chunk(np.ones((n, *shape)))
    x = np.ones(shape)
    assert (x_dot.n, x_dot.shape, x_dot.ndim, x_dot.size) == (n, shape, x.ndim, x.size)
    assert x_dot.dtype == np.float64
    assert repr(x_dot) == f"Chunk({n} lanes of shape {shape})"


def test_length_is_the_primals():
    assert len(Chunk(np.ones((5, 2, 3)))) == 2


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_chunk_of_a_number_reads_like_a_tuple(n):
    numbers = np.arange(1.0, n + 1.0)
    for x_dot in (Chunk(numbers), Chunk(numbers / 2) * 2.0, Chunk(numbers - 1) + Chunk(np.ones(n))):
        assert len(x_dot) == n
        assert tuple(x_dot) == tuple(numbers)
        first, *others = x_dot
        assert (first, others) == (1.0, list(numbers[1:]))
        assert (x_dot[0], x_dot[-1], x_dot[np.int64(0)]) == (1.0, n, 1.0)
        assert x_dot[:2] == tuple(numbers[:2])
        assert x_dot[::-1] == tuple(numbers[::-1])
        assert 1.0 in x_dot
        for index in (n, -n - 1):
            with pytest.raises(IndexError):
                x_dot[index]


def test_reading_does_not_change_what_a_rule_means():
    """Indices of arrays are the primal's, and so are those of a number that are none of a tuple."""
    x_dot = Chunk(np.arange(6.0).reshape(2, 3))
    assert [t.shape for t in x_dot] == [(), (), ()]
    assert tuple(x_dot[1]) == (1.0, 4.0)
    number = Chunk(np.arange(2.0))
    assert number[()].shape == number[...].shape == ()
    assert number[None].shape == (1,)
    with pytest.raises(IndexError):
        number[0,]
    for chunk in (x_dot, number):
        with pytest.raises(ChunkOperationError, match="lanes"):
            np.asarray(chunk)
        with pytest.raises(NonlinearTangentError):
            chunk == chunk  # noqa: B015, PLR0124


def test_a_rule_that_reads_the_lanes_of_a_number_has_no_transpose(plant_rule):
    """Reading looks into the lanes, as ``.lanes`` does: reverse mode refuses it."""
    f = plant_rule(read(lambda t: list(t)))
    assert fwdad.jvp(f, 3.0, 1.0) == (9.0, 6.0)
    for read_lanes in (
        list,
        lambda t: [t[k] for k in range(t.n)],
        lambda t: t[:],
        lambda t: [t[-1]],
    ):
        f = plant_rule(read(read_lanes))
        with pytest.raises(MissingTransposeError):
            fwdad.grad(lambda x, f=f: f(x) * 1.0)(3.0)


def read(lanes):
    return lambda x, t: (x**2, Chunk(np.array([2.0 * x * lane for lane in lanes(t)])))


@pytest.fixture
def plant_rule():
    """A function with a rule ``body(x, x_dot)``, for one test."""
    made = []

    def plant(body):
        def square(x):
            return x**2

        def rule(primals, tangents):
            return body(primals[0], tangents[0])

        fwdad.frule(square)(rule)
        made.append(square)
        return square

    yield plant
    for f in made:
        RULES.pop(f)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_dtype(dtype):
    x_dot = Chunk(np.ones((2, 3), dtype))
    assert x_dot.dtype == dtype
    assert (-x_dot).lanes.dtype == dtype
    assert (2 * x_dot + x_dot / 3).lanes.dtype == dtype  # Python numbers do not promote
    assert (x_dot * np.ones(3)).lanes.dtype == np.result_type(dtype, np.float64)
    assert (x_dot * np.ones(3)).dtype == np.result_type(dtype, np.float64)
    assert (x_dot * 1j).dtype == np.result_type(dtype, np.complex64)


def test_iteration_goes_along_the_primal():
    lanes = draw_lanes(3, (2, 4))
    parts = list(Chunk(lanes))
    assert len(parts) == 2
    for k, part in enumerate(parts):
        assert_array_equal(part.lanes, lanes[:, k])


# -- operators against the same operation on each lane


@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4),
    n=WIDTHS,
    late=st.booleans(),
)
@settings(deadline=None)
def test_operators_broadcast_as_one_tangent_would(shapes, n, late):
    (shape, other), result = shapes
    lanes, others = draw_lanes(n, shape), draw_lanes(n, other, 1)
    factor = np.random.default_rng(2).uniform(1, 2, other)
    x_dot = deferred(lanes) if late else Chunk(lanes)
    y_dot = Chunk(others)
    for k in range(n):
        for got, want in [
            (x_dot * factor, lanes[k] * factor),
            (factor * x_dot, factor * lanes[k]),
            (x_dot / factor, lanes[k] / factor),
            (np.multiply(factor, x_dot), factor * lanes[k]),
            (np.true_divide(x_dot, factor), lanes[k] / factor),
            (x_dot + y_dot, lanes[k] + others[k]),
            (x_dot - y_dot, lanes[k] - others[k]),
            (np.add(x_dot, y_dot), lanes[k] + others[k]),
            (np.subtract(x_dot, y_dot), lanes[k] - others[k]),
        ]:
            assert got.shape == result == np.shape(want)
            assert_allclose(got.lanes[k], want, rtol=1e-13, atol=1e-14)
        assert_array_equal((-x_dot).lanes[k], -x_dot.lanes[k])


@given(n=WIDTHS, terms=st.integers(1, 2 * MAX_SCALAR_TERMS), shape=st.sampled_from([(), (3,)]))
@settings(deadline=None)
def test_sums_of_many_terms_stay_bounded(n, terms, shape):
    lanes = [draw_lanes(n, shape, k) for k in range(terms)]
    total = Chunk(lanes[0])
    for term in lanes[1:]:
        total = total + 1.5 * Chunk(term)
    assert len(total.terms) <= (MAX_ARRAY_TERMS if shape else MAX_SCALAR_TERMS)
    assert_allclose(total.lanes, lanes[0] + 1.5 * sum(lanes[1:]), rtol=1e-12, atol=1e-13)


def test_a_chain_of_products_costs_the_lanes_once():
    lanes = draw_lanes(4, (3,))
    x_dot = Chunk(lanes)
    y_dot = x_dot
    for k in range(10):
        y_dot = np.full(3, 1.0 + k / 10) * y_dot + 0.5 * y_dot
    assert len(y_dot.terms) == 1
    (held,) = y_dot.terms
    assert held.array is lanes
    factor = np.prod([1.5 + k / 10 for k in range(10)])
    assert_allclose(y_dot.lanes, factor * lanes, rtol=1e-13)


# -- indexing


@given(data=st.data(), n=WIDTHS, late=st.booleans())
@settings(deadline=None, max_examples=200)
def test_basic_and_integer_indices(data, n, late):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    index = data.draw(
        st.one_of(
            hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True),
            hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)),
        )
    )
    assert_indexes_alike(data.draw(st.sampled_from([n, *shape])), shape, index, late)


@st.composite
def mixed_indices(draw, shape):
    """One part for each axis: an int, a slice, an int array or a mask; None and … in between."""
    length = draw(st.integers(1, 3))
    parts = []
    for side in shape:
        kind = draw(st.sampled_from(["int", "slice", "array", "column", "mask", "numpy"]))
        if kind == "int":
            parts.append(draw(st.integers(-side, side - 1)))
        elif kind == "numpy":
            parts.append(np.int64(draw(st.integers(-side, side - 1))))
        elif kind == "slice":
            parts.append(draw(st.slices(side)))
        elif kind == "mask" and side == length:
            parts.append(np.ones(side, bool))
        else:
            picked = draw(st.lists(st.integers(-side, side - 1), min_size=length, max_size=length))
            parts.append(np.array(picked)[:, None] if kind == "column" else picked)
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        cut = draw(st.integers(0, len(parts)))
        parts = [*parts[:cut], Ellipsis, *parts[cut:]]
    return tuple(parts)


@given(data=st.data(), n=WIDTHS, late=st.booleans())
@settings(deadline=None, max_examples=300)
def test_mixed_indices(data, n, late):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=4))
    index = data.draw(mixed_indices(shape))
    assert_indexes_alike(data.draw(st.sampled_from([n, *shape])), shape, index, late)


@given(data=st.data(), n=WIDTHS, late=st.booleans())
@settings(deadline=None)
def test_masks(data, n, late):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    covered = data.draw(st.integers(1, len(shape)))
    mask = data.draw(hnp.arrays(bool, shape[:covered]))
    index = data.draw(st.sampled_from([mask, (mask,), (mask, Ellipsis)]))
    assert_indexes_alike(data.draw(st.sampled_from([n, *shape])), shape, index, late)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "index",
    [
        np.array(True),
        (np.array(False),),
        (),
        Ellipsis,
        None,
        [],
        np.zeros((0, 2), int),
        (0, slice(None), [1, 2]),  # the advanced parts stand apart: their axis goes first
        (slice(None), [0, 1], [1, 2]),
        ([0, 1], slice(None), [1, 3]),
        ([0, 1], None, [1, 2]),
        (slice(None), np.array([[0], [2]]), [1, 3]),
        (np.int64(1), np.uint8(2)),
        (True, slice(1)),
    ],
    ids=repr,
)
def test_indices_that_move_axes(n, index):
    assert_indexes_alike(n, (2, 3, 4), index, late=False)
    assert_indexes_alike(n, (2, 3, 4), index, late=True)


def assert_indexes_alike(n, shape, index, late):
    lanes = draw_lanes(n, shape)
    x_dot = deferred(lanes) if late else Chunk(lanes)
    want = np.stack([lane[index] for lane in lanes])
    got = x_dot[index]
    assert (got.n, got.shape) == (n, want.shape[1:])
    assert_allclose(got.lanes, want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("index", [2, (0, 3), (0, 0, 0), (slice(None), [3])])
def test_an_index_out_of_bounds_raises_as_the_primals_does(index):
    with pytest.raises(IndexError):
        np.zeros((2, 3))[index]
    with pytest.raises(IndexError):
        Chunk(np.ones((4, 2, 3)))[index]


# -- deferred scalings belong to nobody else


@pytest.mark.parametrize(
    "use",
    [
        lambda x_dot, c: c * x_dot,
        lambda x_dot, c: x_dot * c,
        lambda x_dot, c: x_dot * c[::-1],
        lambda x_dot, c: x_dot * np.broadcast_to(c, (2, 3)),
        lambda x_dot, c: np.multiply(c, x_dot),
        lambda x_dot, c: x_dot / c,
        lambda x_dot, c: (c * x_dot).reshape(3, 1),
        lambda x_dot, c: (c * x_dot)[1:],
        lambda x_dot, c: (c * x_dot)[1],
        lambda x_dot, c: -(c * x_dot) + x_dot,
        lambda x_dot, c: (c * x_dot).T,
        lambda x_dot, c: np.flip(c * x_dot),
        lambda x_dot, c: x_dot * c.reshape(3, 1),
        lambda x_dot, c: x_dot.sum() * c[0],
        lambda x_dot, c: x_dot.sum() * c[:1].reshape(()),
        lambda x_dot, c: np.outer(c, x_dot),
        lambda x_dot, c: c @ x_dot,
    ],
)
@pytest.mark.parametrize("dtype", [float, np.float32, int, complex])
def test_scalings_are_not_the_callers_arrays(use, dtype):
    lanes = draw_lanes(2, (3,))
    c = np.array([2, 5, 7], dtype)
    want = use(Chunk(lanes), c.copy()).lanes.copy()
    y_dot = use(Chunk(lanes), c)
    c[...] = 99
    assert_array_equal(y_dot.lanes, want)


# -- the NaN policy


@pytest.mark.parametrize("partial", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_an_exactly_zero_tangent_contributes_zero(partial, shape):
    lanes = np.zeros((2, *shape))
    lanes[1] = 3.0
    y_dot = (np.full(shape, partial) if shape else partial) * Chunk(lanes)
    with np.errstate(all="raise"):
        got = y_dot.lanes
    assert_array_equal(got[0], np.zeros(shape))
    assert_array_equal(got[1], np.full(shape, partial * 3.0))


def test_zero_elements_in_a_sum_with_an_infinite_partial():
    lanes = np.array([[0.0, 1.0], [2.0, 0.0]])
    y_dot = np.array([np.inf, 4.0]) * Chunk(lanes)
    assert_array_equal(y_dot.lanes, [[0.0, 4.0], [np.inf, 0.0]])
    assert_array_equal(np.sum(y_dot).lanes, [4.0, np.inf])
    assert_array_equal((y_dot + Chunk(lanes)).lanes, [[0.0, 5.0], [np.inf, 0.0]])
    assert_array_equal(y_dot[0].lanes, [0.0, np.inf])
    assert_array_equal(y_dot[[0, 0]].lanes, [[0.0, 0.0], [np.inf, np.inf]])


def test_division_by_zero_follows_the_policy():
    y_dot = Chunk(np.array([[0.0, 1.0]])) / np.array([0.0, 0.0])
    assert_array_equal(y_dot.lanes, [[0.0, np.inf]])
    assert_array_equal((Chunk(np.array([0.0, 1.0])) / 0.0).lanes, [0.0, np.inf])
    assert_array_equal((Chunk(np.array([0.0, 1.0])) / 0).lanes, [0.0, np.inf])


def test_zero_times_infinity_among_partials_stays_nan():
    y_dot = np.array([np.inf]) * (np.array([0.0]) * Chunk(np.array([[1.0], [0.0]])))
    assert_array_equal(y_dot.lanes, [[np.nan], [0.0]])


def test_where_selects():
    lanes = np.array([[1.0, 2.0]])
    y_dot = np.where([True, False], np.array([1.0, np.nan]) * Chunk(lanes), ZERO)
    assert_array_equal(y_dot.lanes, [[1.0, 0.0]])


# -- the escape


@given(shape=hnp.array_shapes(min_dims=0, max_dims=2, max_side=3), n=WIDTHS, late=st.booleans())
@settings(deadline=None)
def test_map_lanes(shape, n, late):
    lanes = draw_lanes(n, shape)
    x_dot = deferred(lanes) if late else Chunk(lanes)
    y_dot = map_lanes(lambda lane: np.append(3 * lane, 0.0), x_dot)
    assert_allclose(y_dot.lanes, np.stack([np.append(3 * lane, 0.0) for lane in lanes]))


def test_map_lanes_of_zero_is_zero():
    assert map_lanes(lambda lane: 1 / 0, ZERO) is ZERO


def test_lanes_are_multiplied_out_once():
    y_dot = np.arange(3.0) * Chunk(np.ones((2, 3)))
    assert y_dot.lanes is y_dot.lanes


def test_the_closed_list_is_filled():
    assert np.sum in listed()


def test_map_lanes_along_no_directions():
    mapped = fwdad.map_lanes(lambda lane: lane[:1] + 2.0 * lane[1:2], Chunk(np.zeros((0, 3))))
    assert mapped.n == 0
    assert mapped.shape == (1,)
