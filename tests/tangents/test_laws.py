"""Each law of the closed list against the function itself, lane by lane."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad.rules  # noqa: F401  (fills the closed list)
from fwdad.errors import ChunkMismatchError, NonlinearTangentError
from fwdad.rules.core.registry import import_pending
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import dense, listed
from fwdad.tangents.zero import ZERO
from tests.tangents.law_cases import (
    CASES,
    FLAT,
    QUERIES,
    A,
    C,
    V,
    same_lanes,
    seeds,
    widths,
)

import_pending()  # the laws of scipy.fft wait for their rules


def test_every_law_has_a_case():
    missing = [f for f in listed() if f not in CASES and f not in QUERIES]
    assert missing == []


@pytest.mark.parametrize("value", [A, V, C, np.float64(2.0)])
@pytest.mark.parametrize("query", sorted(QUERIES, key=lambda f: f.__name__))
def test_queries_hold_for_the_primal(query, value):
    assert query(Chunk(seeds(5, value))) == query(value)
    if np.ndim(value):
        assert np.size(Chunk(seeds(5, value)), 0) == np.size(value, 0)


@pytest.mark.parametrize(("call", "value"), FLAT)
def test_law_is_the_function_on_each_lane(call, value):
    """At every width up to 3, and at each length of the argument and of the result."""
    for n in widths(np.shape(value), np.shape(call(np.asarray(value)[()]))):
        lanes = seeds(n, value)
        same_lanes(call, lanes, Chunk(lanes))


@pytest.mark.parametrize(("call", "value"), FLAT)
def test_law_of_deferred_scalings(call, value):
    """The same chunk kept as a sum of two scaled ones, one of them broadcast."""
    for n in (1, 2, 3):
        d = np.random.default_rng(1).uniform(0.5, 1, np.shape(value))
        part = seeds(n, value, 2)
        thin = seeds(n, np.asarray(value).ravel()[0], 3)
        thin_lanes = thin.reshape((n,) + (1,) * np.ndim(value))
        lanes = d * part + np.ones(np.shape(value)) * thin_lanes
        chunk = d * Chunk(part) + Chunk(thin).reshape((1,) * np.ndim(value)) * np.ones_like(d)
        assert chunk.shape == np.shape(value)
        same_lanes(call, lanes, chunk)


@pytest.mark.parametrize(("call", "value"), FLAT)
def test_law_keeps_single_precision(call, value):
    dtype = np.complex64 if np.asarray(value).dtype.kind == "c" else np.float32
    lanes = seeds(2, value).astype(dtype)
    want = np.stack([call(lane) for lane in lanes])
    got = call(Chunk(lanes))
    assert got is ZERO or np.can_cast(got.lanes.dtype, want.dtype, "safe")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sum(x, axis=2),
        lambda x: np.sum(x, axis=-3),
        lambda x: np.cumsum(x, axis=2),
        lambda x: np.moveaxis(x, 2, 0),
        lambda x: np.swapaxes(x, 0, 2),
        lambda x: np.take(x, 0, axis=2),
        lambda x: np.flip(x, 2),
        lambda x: np.roll(x, 1, axis=-3),
        lambda x: np.concatenate([x, x], axis=2),
        lambda x: np.stack([x, x], axis=3),
        lambda x: np.trace(x, 0, 0, 2),
        lambda x: np.fft.fft(x, axis=2),
        lambda x: np.expand_dims(x, 3),
        lambda x: np.squeeze(x, 2),
    ],
)
def test_the_lane_axis_is_out_of_reach(call):
    """An axis that the primal has not raises as the primal does, although the lanes have it."""
    with pytest.raises(IndexError):
        call(A)
    with pytest.raises(np.exceptions.AxisError):
        call(Chunk(seeds(2, A)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x @ np.ones(2),
        lambda x: np.ones((2, 4)) @ x,
        lambda x: np.reshape(x, (4, 2)),
        lambda x: np.broadcast_to(x, (3, 2)),
        lambda x: np.concatenate([x, x[0]]),
        lambda x: np.take(x, [6]),
        lambda x: np.take(x, [2], axis=0),
        lambda x: np.squeeze(x, 0),
        lambda x: np.repeat(x, [1, 2], axis=1),
        lambda x: np.linalg.solve(np.eye(3), x),
        lambda x: np.transpose(x, (0, 0)),
    ],
)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_wrong_shapes_raise_as_the_primals_do(call, n):
    with pytest.raises((ValueError, IndexError)) as want:
        call(A)
    with pytest.raises((ValueError, IndexError)):
        call(Chunk(seeds(n, A)))
    assert want.type is not None


def test_imaginary_part_of_a_real_tangent_is_zero():
    assert np.imag(Chunk(seeds(2, A))) is ZERO


def test_padding_with_a_constant_is_affine():
    with pytest.raises(NonlinearTangentError, match="padding with zeros"):
        np.pad(Chunk(seeds(2, A)), 1, constant_values=1.0)
    with pytest.raises(NonlinearTangentError):
        np.pad(Chunk(seeds(2, A)), 1, mode="maximum")


def test_interp_ends_are_constants():
    chunk = Chunk(seeds(2, V))
    got = np.interp([-1.0, 5.0, 0.5], [0.0, 1.0, 2.0], chunk, left=7.0, right=8.0)
    assert_array_equal(got.lanes[:, :2], 0)
    assert_allclose(got.lanes[:, 2], (chunk.lanes[:, 0] + chunk.lanes[:, 1]) / 2)


def test_sum_with_an_initial_value_has_the_sums_tangent():
    chunk = Chunk(seeds(2, A))
    assert_allclose(np.sum(chunk, initial=5.0).lanes, chunk.lanes.sum(axis=(1, 2)))


def test_dense():
    got = dense(ZERO, np.ones((2, 3), np.float32), 4)
    assert got.lanes.shape == (4, 2, 3)
    assert got.dtype == np.float32
    assert_array_equal(got.lanes, 0)
    chunk = Chunk(seeds(2, A))
    assert dense(chunk, A, 2) is chunk
    assert dense(ZERO, 3, 2).dtype == np.float64
    with pytest.raises(ChunkMismatchError):
        np.concatenate([chunk, dense(ZERO, A, 3)])
