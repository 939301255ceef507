"""What a chunk refuses, and which error says so."""

import numpy as np
import pytest

from fwdad.errors import (
    ChunkMismatchError,
    ChunkOperationError,
    NonlinearTangentError,
)
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO

T = Chunk(np.ones((2, 3, 3)))


V = Chunk(np.ones((2, 3)))


S = Chunk(np.ones(2))


@pytest.mark.parametrize(
    "use",
    [
        lambda: T * T,
        lambda: T / T,
        lambda: 1.0 / T,
        lambda: np.ones((3, 3)) / T,
        lambda: T**2,
        lambda: S * V,
        lambda: S / S,
        lambda: T @ T,
        lambda: T @ V,
        lambda: np.matmul(T, T),
        lambda: np.multiply(T, T),
        lambda: np.dot(T, V),
        lambda: np.einsum("ij,j", T, V),
        lambda: np.tensordot(T, T),
        lambda: np.outer(V, V),
        lambda: np.kron(V, V),
        lambda: np.inner(V, V),
        lambda: np.sin(T),
        lambda: np.exp(S),
        lambda: np.maximum(T, 0.0),
        lambda: np.power(T, 1.0),
        lambda: np.abs(T),
        lambda: bool(S),
        lambda: np.where(np.eye(3) > 0, T, 1.0),
        lambda: np.linalg.solve(T, np.ones(3)),
        lambda: np.linalg.solve(T, V),
        lambda: np.convolve(V, V),
    ],
)
def test_nonlinear_use_raises(use):
    with pytest.raises(NonlinearTangentError):
        use()


@pytest.mark.parametrize(
    "use",
    [lambda: T > 0, lambda: T <= T + T, lambda: S == 0.0, lambda: S != 0.0, lambda: abs(S)],
)
def test_comparisons_raise(use):
    """A rule that asks ``if x_dot == 0`` must not be told False."""
    with pytest.raises((NonlinearTangentError, TypeError)):
        use()


@pytest.mark.parametrize(
    "use",
    [
        lambda: T + 1.0,
        lambda: 1.0 + T,
        lambda: T - np.ones((3, 3)),
        lambda: np.ones((3, 3)) - T,
        lambda: np.add(T, 1.0),
        lambda: np.sort(T),
        lambda: np.max(T),
        lambda: np.linalg.inv(T),
        lambda: np.diff(V),
        lambda: np.asarray(T).sum(),
        lambda: np.array(T),
        lambda: np.add.accumulate(V),
        lambda: np.multiply.reduce(V),
        lambda: np.add(T, T, where=np.eye(3) > 0),
        lambda: np.isfinite(T),
    ],
)
def test_what_is_not_listed_raises(use):
    with pytest.raises((ChunkOperationError, NonlinearTangentError)) as caught:
        use()
    assert caught.value.msg


def test_not_listed_and_not_linear_are_two_errors():
    with pytest.raises(
        ChunkOperationError, match=r"numpy\.sort is not in the closed list.*map_lanes"
    ):
        np.sort(V)
    with pytest.raises(ChunkOperationError, match="affine"):
        _ = V + 1.0
    with pytest.raises(NonlinearTangentError, match=r"numpy\.sin of a tangent is not linear"):
        np.sin(V)
    with pytest.raises(NonlinearTangentError, match="a product of two tangents"):
        _ = V * V


W = Chunk(np.ones((4, 3)))


@pytest.mark.parametrize(
    "use",
    [
        lambda: V + W,
        lambda: V - W,
        lambda: V[0] + W,
        lambda: np.add(V, W),
        lambda: np.concatenate([V, W]),
        lambda: np.stack([V, W]),
        lambda: np.where([True, False, True], V, W),
        lambda: Chunk(np.float64(1.0)),
        lambda: Chunk(3.0),
        lambda: np.concatenate([V, ZERO]),
    ],
)
def test_chunks_of_different_widths_do_not_meet(use):
    with pytest.raises(ChunkMismatchError):
        use()


def test_shapes_that_do_not_broadcast_raise_as_numpy_does():
    with pytest.raises(ValueError, match="broadcast"):
        _ = V * np.ones(4)
    with pytest.raises(ValueError, match="broadcast"):
        _ = V + Chunk(np.ones((2, 4)))


def test_width_that_equals_a_length_is_no_width():
    """Lanes are not an axis: a factor of N elements does not scale them."""
    with pytest.raises(ValueError, match="broadcast"):
        _ = Chunk(np.ones((4, 3))) * np.ones((4, 1, 4))
    assert (Chunk(np.ones((4, 3))) * np.ones((4, 1))).shape == (4, 3)
