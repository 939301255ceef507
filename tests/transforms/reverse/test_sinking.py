"""Updates of cotangents that one side of a branch alone needs stand in it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.ops import Branch, Update, walk


def largest(x):
    """What exceeds all before it by a margin: not a maximum that a tape knows as a whole."""
    found = x[0]
    for j in range(1, len(x)):
        if x[j] > found + 0.125:
            found = x[j]
    return found * found


def either(x):
    """An element that both sides need, and one that is read again afterwards."""
    s = 0.0
    for j in range(1, len(x)):
        if x[j] > 0.5:
            s += x[j] * x[j - 1]
        else:
            s -= x[j]
        s *= x[j - 1]
    return s


def updates(f, x):
    """How many updates there are, and how many of them in branches."""
    ops = list(fwdad.trace(fwdad.grad(f), x).program.walk())
    inside = [op for b in ops if isinstance(b, Branch) for s in b.blocks() for op in walk(s)]
    return [sum(isinstance(op, Update) for op in found) for found in (ops, inside)]


def test_the_update_stands_in_the_branch():
    assert updates(largest, np.ones(4)) == [2, 1]  # the other one is the first element's


@pytest.mark.parametrize("n", [1, 2, 3, 9])
@pytest.mark.parametrize("f", [largest, either])
def test_gradients_are_those_of_forward_mode(f, n):
    for seed in range(5):
        x = np.random.default_rng(seed).uniform(size=n)
        expected = fwdad.jacobian(f, x, mode="forward")
        assert_allclose(fwdad.grad(f)(x), expected, rtol=1e-13)
        v = np.ones(n)
        second = fwdad.jvp(lambda x, f=f: fwdad.jacobian(f, x, mode="forward"), x, v)[1]
        assert_allclose(fwdad.hvp(f, x, v), second, rtol=1e-12, atol=1e-12)
        twice = fwdad.grad(lambda x, f=f, v=v: fwdad.grad(f)(x) @ v)(x)
        assert_allclose(twice, second, rtol=1e-12, atol=1e-12)
