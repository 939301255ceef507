"""Bodies that would not do the same backwards are refused."""

import random
import time

import numpy as np
import pytest

import fwdad
from fwdad.reversible import reversible

rng = np.random.default_rng(0)


def noise():
    return np.random.rand()


@pytest.mark.parametrize("which", ["rand", "generator", "clock", "random", "helper"])
def test_refused(which):
    x = np.array([1.0, 2.0])

    def rand(x):
        x += np.random.rand()

    def generator(x):
        x += rng.normal()

    def clock(x):
        x += time.perf_counter()

    def drawn(x):
        x += random.random()

    def helper(x):
        x += noise()

    body = {"rand": rand, "generator": generator, "clock": clock, "random": drawn,
            "helper": helper}[which]  # fmt: skip
    with pytest.raises(
        fwdad.errors.IrreversibleError, match="give the body what it returns"
    ) as raised:
        reversible(body)(x)
    assert "test_purity.py" in str(raised.value)


def test_given_numbers():
    @reversible
    def step(x, n):
        x += n * np.sin(2.0)

    x, n = np.array([1.0, 2.0]), rng.normal(size=2)
    y = step(x, n)
    np.testing.assert_allclose(y if isinstance(y, np.ndarray) else y[0], x + n * np.sin(2.0))
