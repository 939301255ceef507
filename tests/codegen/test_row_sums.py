"""Einsums whose sums are formed in registers, their rows copied whole or a block at a time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

SUBSCRIPTS = [
    "kij,nkj->nki",  # rows of the first, once
    "nki,nkj->kij",  # n is summed, and first in memory: blocks
    "nj,nki->kji",
    "nki,nkj,n->kij",
    "nkji,nkj->kij",  # the row is not last
    "nkj,nkjl->kl",
]
LENGTHS = {"i": 10, "j": 9, "k": 3, "l": 5}


def operands(subscripts, n, dtype=float):
    rng = np.random.default_rng(1)
    terms = subscripts.partition("->")[0].split(",")
    return [rng.normal(size=[LENGTHS.get(c, n) for c in term]).astype(dtype) for term in terms]


def exact(subscripts, arrays):
    """The sum in long double."""
    return np.einsum(subscripts, *(a.astype(np.longdouble) for a in arrays)).astype(float)


@pytest.mark.every(4)
@pytest.mark.parametrize("n", [1, 32, 33, 71])
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum(subscripts, n):
    arrays = operands(subscripts, n)
    f = fwdad.jit(lambda *arrays: np.einsum(subscripts, *arrays))
    expected = exact(subscripts, arrays)
    assert_allclose(f(*arrays), expected, rtol=1e-12, atol=1e-13)
    apart = [np.asfortranarray(a) for a in arrays]
    assert_allclose(f(*apart), expected, rtol=1e-12, atol=1e-13)


def test_single_precision():
    arrays = operands("nki,nkj->kij", 40, np.float32)
    found = fwdad.jit(lambda a, b: np.einsum("nki,nkj->kij", a, b))(*arrays)
    assert found.dtype == np.float32
    assert_allclose(found, exact("nki,nkj->kij", arrays), rtol=1e-4, atol=1e-5)


def test_no_items():
    a = np.ones((0, 3, 10))
    found = fwdad.jit(lambda a: np.einsum("nki,nkj->kij", a, a))(a)
    assert_allclose(found, np.zeros((3, 10, 10)))


def test_lengths_that_differ_are_refused():
    f = fwdad.jit(lambda a, b: np.einsum("nki,nkj->kij", a, b))
    f(np.ones((40, 3, 10)), np.ones((40, 3, 9)))
    with pytest.raises(ValueError, match="einsum"):
        f(np.ones((40, 3, 10)), np.ones((39, 3, 9)))


@pytest.mark.every(3)
@pytest.mark.parametrize("shape", [(70, 3, 10), (3, 70, 10), (2, 3, 4, 5)])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_sums_over_axes_before_the_last(shape, axis):
    x = np.random.default_rng(2).normal(size=shape)
    f = fwdad.jit(lambda x: (np.sum(x * x, axis=axis), np.mean(np.exp(x), axis=axis)))
    expected = np.sum(x.astype(np.longdouble) ** 2, axis), np.mean(np.exp(x), axis)
    for found, wanted in zip(f(x), expected, strict=True):
        assert_allclose(found, wanted.astype(float), rtol=1e-13)


@pytest.mark.every(3)
@pytest.mark.parametrize("subscripts", SUBSCRIPTS[:3])
def test_gradients(subscripts):
    arrays = operands(subscripts, 35)

    def f(*arrays):
        return np.sum(np.einsum(subscripts, *arrays) ** 2)

    found = fwdad.jit(fwdad.grad(f, argnums=(0, 1)))(*arrays)
    for k, bar in enumerate(found):
        moved = [a.astype(complex) for a in arrays]
        direction = np.random.default_rng(3).normal(size=bar.shape)
        moved[k] += 1e-30j * direction
        assert_allclose(np.sum(bar * direction), f(*moved).imag / 1e-30, rtol=1e-12)
