"""The tangents without lanes: ``ZERO``, ``NoTangent``, ``undefined``."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fwdad.errors import UndefinedDerivativeError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO, undefined

V = Chunk(np.ones((2, 3)))


@pytest.mark.parametrize(
    "use",
    [
        lambda z: z * np.ones(3),
        lambda z: np.ones(3) * z,
        lambda z: 2.0 * z / 3.0,
        lambda z: z @ np.eye(3),
        lambda z: np.eye(3) @ z,
        lambda z: np.sum(z, axis=0),
        lambda z: -z.T[0].reshape(2).real,
        lambda z: np.concatenate([z, z]),
        lambda z: np.einsum("ij,j", np.eye(3), z),
        lambda z: np.where([True], z, z),
        lambda z: z + z,
        lambda z: z - z,
        lambda z: np.add(z, z),
    ],
)
def test_zero_absorbs(use):
    assert use(ZERO) is ZERO


def test_zero_is_neutral_in_sums():
    assert V + ZERO is V
    assert ZERO + V is V
    assert V - ZERO is V
    assert np.add(ZERO, V) is V
    assert_array_equal((ZERO - V).lanes, -V.lanes)
    assert_array_equal(np.subtract(ZERO, V).lanes, -V.lanes)


@pytest.mark.parametrize(
    "use",
    [
        lambda u: u + V,
        lambda u: V + u,
        lambda u: V - u,
        lambda u: 2.0 * u,
        lambda u: np.sum(u),
        lambda u: u[0],
        lambda u: u.lanes,
        lambda u: u @ np.eye(3),
        lambda u: np.ones(3) * u,
    ],
)
def test_an_undefined_tangent_raises_where_it_is_used(use):
    with pytest.raises(UndefinedDerivativeError, match="a repeated eigenvalue"):
        use(undefined("a repeated eigenvalue"))
