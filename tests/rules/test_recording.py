"""The recording tangent: what it takes, and how its record is read backwards."""

import numpy as np
import pytest

from fwdad.errors import (
    ChunkMismatchError,
    ChunkOperationError,
    NonlinearTangentError,
)
from fwdad.rules.core.recording import OpaqueTangentError, RecordingTangent, pull_back
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lane_by_lane import map_lanes
from fwdad.tangents.zero import ZERO
from tests.testing.planted import X, caught, sine


def recorded(n=2):
    return RecordingTangent(Chunk(np.ones((n, 3))))


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda t: t.lanes, OpaqueTangentError),
        (lambda t: t.terms, OpaqueTangentError),
        (lambda t: map_lanes(lambda lane: lane, t), OpaqueTangentError),
        (lambda t: t * t, NonlinearTangentError),
        (lambda t: t / t, NonlinearTangentError),
        (lambda t: 1 / t, NonlinearTangentError),
        (lambda t: t**2, NonlinearTangentError),
        (lambda t: np.sin(t), NonlinearTangentError),
        (lambda t: t @ t, NonlinearTangentError),
        (lambda t: np.multiply(t, t), NonlinearTangentError),
        (lambda t: t + 1.0, ChunkOperationError),
        (lambda t: np.sort(t), ChunkOperationError),
        (lambda t: np.asarray(t), ChunkOperationError),
        (lambda t: t + recorded(4), ChunkMismatchError),
    ],
)
def test_a_recording_tangent_takes_the_closed_list_only(use, error):
    with pytest.raises(error):
        use(recorded())


def test_a_recording_tangent_passes_for_a_chunk():
    x_dot = recorded()
    assert isinstance(x_dot, Chunk)
    assert (x_dot.n, x_dot.shape, x_dot.ndim, x_dot.size, len(x_dot)) == (2, (3,), 1, 3, 3)
    assert x_dot.dtype == np.float64
    assert x_dot + ZERO is x_dot
    assert ZERO + x_dot is x_dot
    assert x_dot * ZERO is ZERO
    assert x_dot @ ZERO is ZERO
    y_dot = np.sum(2.0 * x_dot - x_dot[::-1])
    assert isinstance(y_dot, RecordingTangent)
    np.testing.assert_array_equal(y_dot.value.lanes, [3.0, 3.0])
    assert [part.shape for part in x_dot] == [(), (), ()]


def test_a_record_is_read_backwards_once_for_each_use():
    """X enters three times; a shared intermediate is transposed once, with both cotangents."""
    x_dot = recorded(1)
    shared = X * x_dot
    y_dot = 2.0 * shared + shared[::-1] + x_dot
    x_bar = pull_back([(y_dot, Chunk(np.array([[1.0, 10.0, 100.0]])))])[id(x_dot)]
    np.testing.assert_allclose(x_bar.lanes, [[1 + 102 * X[0], 10 + 30 * X[1], 100 + 201 * X[2]]])


def test_a_tangent_from_nowhere_is_not_transposed(plant):
    """A constant chunk that a rule adds makes it affine, also where its lanes happen to agree."""

    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        leak = Chunk(np.full((x_dot.n, 3), 1e-13, x_dot.dtype))
        return np.sin(x), np.cos(x) * x_dot + leak

    plant(sine, body)
    assert caught(sine, X) == ["recording"]
