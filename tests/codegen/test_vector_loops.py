"""Loops of the reverse pass in vectors: zero stays zero, and the user's sums keep their order."""

import math

import numpy as np
import pytest

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.loops.source import numba_source


def rows(x, w, c):
    """In the inner loop backwards the cotangent of ``s`` is the same in all iterations."""
    total = 0.0
    for i in range(len(x)):
        scale = w[i]
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * scale
        total += c[i] * s
    return total


def by_hand(x, w, c):
    scaled = lambda d, bar: np.where(bar == 0, 0.0, d * bar)  # noqa: E731
    x_bar = np.broadcast_to(scaled(w, c)[:, None], x.shape)
    return x_bar, scaled(x, c[:, None]).sum(axis=1)


@pytest.fixture(scope="module")
def gradient():
    return fwdad.jit(fwdad.value_and_grad(rows, argnums=(0, 1)))


@pytest.mark.parametrize("n", [1, 2, 3, 9, 77])
def test_zeros_stay_zeros_beside_what_is_odd(gradient, rng, n):
    x, w, c = rng.normal(size=(3, n)), rng.normal(size=3), rng.normal(size=3)

    def check():
        value, found = gradient(x, w, c)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(value, rows(x, w, c))  # the user's sums, bit by bit
            expected = by_hand(x, w, c)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-13, atol=1e-14)
        return found[1]

    check()
    for odd in (math.inf, -math.inf, math.nan):
        for at in {0, n - 1}:
            x[1, at], w[2], c[1], c[2] = odd, odd, 0.0, -0.0
            assert check()[1] == 0.0
            c[1] = 2.0
            assert not np.isfinite(check()[1])
            c[1] = math.nan  # which is no zero
            assert np.flatnonzero(np.isnan(check())).tolist() == [1]
            x[1, at], w[2], c[1] = 0.5, 0.5, 1.5


def test_code(gradient, rng):
    gradient(rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=3))
    source = numba_source(gradient.last.tape.program)[0].code  # where a result is NaN, that runs
    assert source.count("scaled_in_vectors(") == 1, source
    assert source.count("summed(") == 1, source  # the cotangent of `scale`
    assert source.count("scaled(") == 1, source  # outside of the inner loop


def in_one_loop(x, w):
    s = 0.0
    for j in range(len(x)):
        s += x[j] * x[j] * w
    return s


def grows(x, w):
    """Its cotangents are others in each iteration."""
    total = 0.0
    for i in range(len(x)):
        y = w
        for j in range(x.shape[1]):
            y = x[i, j] * y + w
        total += y
    return total


def chooses(x, w):
    total = 0.0
    for i in range(len(x)):
        for j in range(x.shape[1]):
            if x[i, j] > 0.0:
                total += x[i, j] * w
    return total


@pytest.mark.parametrize(("f", "shape"), [(in_one_loop, (40,)), (grows, (4, 5)), (chooses, (4, 5))])
def test_other_loops_keep_order_and_branches(f, shape, rng):
    x, w = rng.normal(size=shape), 0.75
    gradient = fwdad.jit(fwdad.grad(f, argnums=1))
    expected = fwdad.jacobian(lambda w: f(x, w), w, mode="forward")
    np.testing.assert_allclose(gradient(x, w), expected, rtol=1e-13)
    source = fwdad.show(gradient, backend="numba")
    assert "summed(" not in source
    assert "scaled_in_vectors(" not in source


def test_a_checkpoint_keeps_the_bits(rng):
    x, w, c = rng.normal(size=(30, 40)), rng.normal(size=30), rng.normal(size=30)
    plain = fwdad.jit(fwdad.grad(rows, argnums=(0, 1)))(x, w, c)
    again = fwdad.jit(fwdad.grad(fwdad.checkpoint(rows, snapshots=3), argnums=(0, 1)))
    for a, b in zip(again(x, w, c), plain, strict=True):
        np.testing.assert_array_equal(a, b)
    assert "summed(" in fwdad.show(again, backend="numba")
