"""A pullback given an array that carries derivatives, which is written into afterwards."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.53, 0.87, 0.31])


def answered(x):
    w = 1.0 * x
    _, pullback = fwdad.vjp(lambda p: p, x)
    found = pullback(w)
    w[1:] *= np.sin(x)[:2]
    return found


def answered_and_written(x):
    w = 1.0 * x
    _, pullback = fwdad.vjp(lambda p: p, x)
    found = pullback(w)
    found[1:] *= np.sin(x)[:2]
    return found * w


def in_a_row(x):
    w = np.stack([x, 2.0 * x])
    _, pullback = fwdad.vjp(lambda p: p[::-1], x)
    found = pullback(w)
    w[0] *= x
    return found[0] + found[1] * x


WAYS = {
    "one": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=1),
    "two": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=2),
    "three": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=3),
    "reverse": lambda f: fwdad.jacrev(f)(X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [answered, answered_and_written, in_a_row])
def test_what_a_pullback_returns_is_no_memory_of_its_cotangent(f, way):
    assert_allclose(WAYS[way](f), central_differences(f, X), atol=1e-8)
