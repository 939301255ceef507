"""Extremes and sums with vectors, at every length around a vector's, NaN among the elements."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.runtime import libmvec

LENGTHS = [1, 2, 3, 7, 8, 9, 17, 64, 65]  # the last is longer than sums in registers


def extremes(x):
    return (
        np.max(x, axis=-1), np.min(-x * 2.0, axis=1, keepdims=True), np.max(x), np.min(x.T, axis=1),
        np.max(x[:, ::2], axis=1), np.linalg.norm(x[0], np.inf),
    )  # fmt: skip


def places(x):
    return (
        np.argmax(x, axis=-1), np.argmin(x * 3.0, axis=1), np.argmax(x[0]), np.argmax(x.T, axis=1),
    )  # fmt: skip


def sums(x, y):
    part = x[:, :, np.newaxis] * y
    return (
        np.sum(x, axis=0), np.mean(x * x[:1], axis=0, keepdims=True), np.sum(part, axis=(0, 1)),
        np.sum(part, axis=1), np.sum(x[:, ::-1], axis=0), np.sum(x > 0.0, axis=0),
        np.sum(y * 2.0, axis=2), np.sum(y, axis=(0, 2), keepdims=True), np.mean(part, axis=-1),
    )  # fmt: skip


def matrices(n):
    """Small integers, so that elements are equal; with NaN at several places, and infinite."""
    rng = np.random.default_rng(n)
    x = np.round(3 * rng.normal(size=(3, n)))
    odd = x.copy()
    odd[0, n // 2] = odd[1, :] = odd[2, -1] = np.nan
    return x, np.zeros((2, n)), np.full((2, n), -np.inf), odd, np.asfortranarray(x)


@pytest.fixture(scope="module")
def compiled():
    return {f: fwdad.jit(f, backend="numba") for f in (extremes, places, sums)}


@pytest.mark.every(2)
@pytest.mark.parametrize("n", LENGTHS)
def test_rows_are_reduced_as_numpy_does(compiled, n):
    for x in matrices(n):
        for found, expected in zip(compiled[extremes](x), extremes(x), strict=True):
            assert_array_equal(found, expected)
        for found, expected in zip(compiled[places](x), places(x), strict=True):
            assert_array_equal(found, expected)


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("n", LENGTHS)
def test_sums_over_rows(compiled, n):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(5, n)), rng.normal(size=(5, n, n + 2))
    for found, expected in zip(compiled[sums](x, y), sums(x, y), strict=True):
        assert found.shape == expected.shape
        assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.skipif(not libmvec.register_bits(), reason="no vector functions here")
def test_the_code_has_vectors_only_where_it_may(monkeypatch):
    def f(x):
        return np.max(x, axis=1), np.argmax(x, axis=1), np.sum(x, axis=0)

    x = np.ones((2, 9))
    assert (
        fwdad.show(f, x, backend="numba").count("vector_read") == 7
    )  # the sum for short and long rows
    monkeypatch.setenv("FWDAD_VECTOR_MATH", "0")
    assert "vector_read" not in fwdad.show(f, x, backend="numba")
