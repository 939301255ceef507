"""Gradients of random programs in which names change their arrays."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.transforms.reverse.random_names import Branching, Holding, Writer, program

SHARE = 0.45  # of the programs may be refused: names of one array that are both written


def check(seed, kind, backend="numpy", steps=(3, 1, 0, 4)):
    """Compare with forward mode, and with the program itself; the argument stays as it is."""
    f, text = program(seed, kind)
    gradient = fwdad.jit(fwdad.value_and_grad(f), backend=backend)
    for n in steps:
        x = np.random.default_rng(seed + n).normal(size=3)
        given = x.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = f(x.copy(), n)
            if not abs(y) < 1e6:
                continue
            expected = fwdad.jacobian(f, x, args=(n,), mode="forward")
            if kind is Holding:  # what is not on a tape
                plain = fwdad.grad(f)(x, n)
                assert_allclose(plain, expected, rtol=1e-7, atol=1e-7, err_msg=text)
            found = gradient(x, n)
        scale = max(1.0, np.max(np.abs(expected)))
        assert_allclose(found[0], y, rtol=1e-10, atol=1e-12, err_msg=text)
        assert_allclose(found[1], expected, rtol=1e-7, atol=1e-8 * scale, err_msg=text)
        assert np.array_equal(x, given), text


@pytest.mark.parametrize(("start", "count"), [
    (0, 20), pytest.param(20, 20, marks=pytest.mark.slow),
    *(pytest.param(k, 100, marks=pytest.mark.slow) for k in range(30_000, 31_000, 100))
])  # fmt: skip
@pytest.mark.parametrize("kind", [Writer, Branching, Holding])
def test_gradient(start, count, kind):
    """Right, or refused because an array changes places."""
    refused = 0
    for seed in range(start, start + count):
        try:
            check(seed, kind)
        except fwdad.errors.UntraceableError:
            refused += 1
    assert refused <= SHARE * count


@pytest.mark.parametrize(("start", "count"), [
    (500, 3), pytest.param(503, 2, marks=pytest.mark.slow),
    *(pytest.param(k, 25, marks=pytest.mark.slow) for k in range(32_000, 32_100, 25))
])  # fmt: skip
@pytest.mark.parametrize("kind", [Writer, Branching, Holding])
def test_compiled(start, count, kind):
    pytest.importorskip("numba")
    for seed in range(start, start + count):
        try:
            check(seed, kind, "numba")
        except fwdad.errors.UntraceableError:
            continue
