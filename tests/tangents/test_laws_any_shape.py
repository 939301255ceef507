"""Laws of the closed list at shapes, axes and subscripts that hypothesis draws."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fwdad.rules  # noqa: F401  (fills the closed list)
from fwdad.tangents.chunk import Chunk
from tests.tangents.law_cases import same_lanes, seeds


@st.composite
def shaped(draw, min_dims=0, max_dims=3):
    """Lanes of a drawn shape; their number may be one of its lengths."""
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, max_side=4))
    n = draw(st.sampled_from([1, 2, 3, *shape]))
    return seeds(n, np.empty(shape), draw(st.integers(0, 9)))


def axes_of(lanes, **limits):
    ndim = lanes.ndim - 1
    return st.one_of(st.none(), hnp.valid_tuple_axes(ndim, **limits)) if ndim else st.none()


@given(data=st.data(), lanes=shaped(), keepdims=st.booleans())
@settings(deadline=None)
def test_reductions(data, lanes, keepdims):
    axis = data.draw(axes_of(lanes))
    mask = data.draw(hnp.arrays(bool, lanes.shape[1:]))
    for call in (
        lambda x: np.sum(x, axis=axis, keepdims=keepdims),
        lambda x: np.mean(x, axis=axis, keepdims=keepdims),
        lambda x: np.sum(x, axis=axis, keepdims=keepdims, where=mask),
    ):
        same_lanes(call, lanes, Chunk(lanes))


@given(data=st.data(), lanes=shaped(min_dims=1))
@settings(deadline=None)
def test_one_axis(data, lanes):
    ndim = lanes.ndim - 1
    axis = data.draw(st.integers(-ndim, ndim - 1))
    side = lanes.shape[1:][axis]
    picked = data.draw(st.lists(st.integers(-side, side - 1), max_size=4))
    shift = data.draw(st.integers(-5, 5))
    counts = data.draw(st.lists(st.integers(0, 2), min_size=side, max_size=side))
    for call in (
        lambda x: np.cumsum(x, axis=axis),
        lambda x: np.flip(x, axis),
        lambda x: np.roll(x, shift, axis),
        lambda x: np.take(x, np.array(picked, int), axis),
        lambda x: np.repeat(x, counts, axis),
        lambda x: np.concatenate([x, 2 * x], axis=axis),
        lambda x: np.stack([x, 2 * x], axis=axis),
        lambda x: np.moveaxis(x, axis, 0),
        lambda x: np.swapaxes(x, axis, -1),
        lambda x: np.expand_dims(x, axis),
        lambda x: np.fft.fft(x, axis=axis),
    ):
        same_lanes(call, lanes, Chunk(lanes))


@given(data=st.data(), lanes=shaped(min_dims=2))
@settings(deadline=None)
def test_two_axes(data, lanes):
    ndim = lanes.ndim - 1
    first, second = data.draw(hnp.valid_tuple_axes(ndim, min_size=2, max_size=2))
    offset = data.draw(st.integers(-3, 3))
    order = data.draw(st.permutations(range(ndim)))
    for call in (
        lambda x: np.swapaxes(x, first, second),
        lambda x: np.diagonal(x, offset, first, second),
        lambda x: np.trace(x, offset, first, second),
        lambda x: np.transpose(x, order),
        lambda x: np.moveaxis(x, (first, second), (second, first)),
        lambda x: np.tril(x, offset),
        lambda x: np.triu(x, offset),
        lambda x: np.roll(x, (offset, 1), (first, second)),
    ):
        same_lanes(call, lanes, Chunk(lanes))


@given(lanes=shaped(), reps=st.lists(st.integers(0, 3), max_size=4))
@settings(deadline=None)
def test_tiles(lanes, reps):
    same_lanes(lambda x: np.tile(x, reps), lanes, Chunk(lanes))


@given(lanes=shaped(), data=st.data())
@settings(deadline=None)
def test_reshapes(lanes, data):
    size = int(np.prod(lanes.shape[1:]))
    rows = data.draw(st.sampled_from([k for k in range(1, size + 1) if size % k == 0]))
    order = data.draw(st.sampled_from("CF"))
    shape = data.draw(st.sampled_from([(rows, -1), (-1, 1, rows), (size,), -1]))
    same_lanes(lambda x: np.reshape(x, shape, order=order), lanes, Chunk(lanes))


@given(
    shapes=hnp.mutually_broadcastable_shapes(
        signature="(m?,n),(n,p?)->(m?,p?)", max_dims=2, max_side=4
    ),
    n=st.integers(1, 4),
)
@settings(deadline=None, max_examples=200)
def test_matmul_of_any_shapes(shapes, n):
    (left, right), _ = shapes
    a, b = seeds(1, np.empty(left))[0], seeds(1, np.empty(right), 1)[0]
    of_a, of_b = seeds(n, a, 2), seeds(n, b, 3)
    same_lanes(lambda x: np.matmul(x, b), of_a, Chunk(of_a))
    same_lanes(lambda x: np.matmul(a, x), of_b, Chunk(of_b))


@given(data=st.data(), n=st.integers(1, 4))
@settings(deadline=None, max_examples=200)
def test_einsum_of_any_subscripts(data, n):
    letters = st.lists(st.sampled_from("ijkZz"), max_size=3).map("".join)
    terms = data.draw(st.lists(letters, min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    kept = data.draw(st.lists(st.sampled_from(used), unique=True)) if used else []
    subscripts = ",".join(terms) + "->" + "".join(kept)
    side = dict(zip("ijkZz", (2, 3, 4, 2, 3), strict=True))
    operands = [seeds(1, np.empty([side[c] for c in t]), k)[0] for k, t in enumerate(terms)]
    for k, operand in enumerate(operands):
        lanes = seeds(n, operand, 7)

        def call(x, k=k):
            return np.einsum(subscripts, *operands[:k], x, *operands[k + 1 :])

        same_lanes(call, lanes, Chunk(lanes))


@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3),
    n=st.integers(1, 4),
    data=st.data(),
)
@settings(deadline=None)
def test_where_of_any_shapes(shapes, n, data):
    (cond, shape), _ = shapes
    mask = data.draw(hnp.arrays(bool, cond))
    lanes = seeds(n, np.empty(shape))
    same_lanes(lambda x: np.where(mask, x, 0), lanes, Chunk(lanes))
    same_lanes(lambda x: np.where(mask, 0, x), lanes, Chunk(lanes))
    same_lanes(lambda x: np.where(mask, x, -x), lanes, Chunk(lanes))
