"""Generator expressions that a function takes whole, where values decide what is left out."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


def least(x):
    return min(t for t in x if t > 0.2)


def least_and_most(x):
    return max(t * t for t in x if t > 0.2) + min(np.sin(t) for t in x if t < 1.0)


def by_a_key(x):
    return min((t for t in x if t > 0.2), key=lambda t: -t)


def with_a_default(x):
    return min((t for t in x if t > 9.0), default=x[0] * 2)


def in_order(x):
    return sorted(t for t in x if t > 0.2)[1]


def listed(x):
    return sum(list(t for t in x if t > 0.2))


def as_an_array(x):
    return np.sum(np.array(tuple(t * 2 for t in x if t > 0.2)))


def pairs(x):
    return max((t * 1.0, i) for i, t in enumerate(x) if t > 0.2)[0]


def of_a_list(x):
    r = [x[0], x[1] * 2.1, x[2]]
    return max(t for t in r if t < 2.0) + min(t for t in r if t > 0.1)


def two_clauses(x):
    return min(abs(a - b) for i, a in enumerate(x) for b in x[i + 1 :])


def two_clauses_and_a_test(x):
    return min(abs(a - b) for a in x for b in x if a > b)


def summed(x):
    return math.fsum(t for t in x if t > 0.2)


def in_a_loop(x):
    s = 0.0
    for k in range(30):
        rts = [2 * np.cos(x[0] + k), x[1] - k * 0.1, x[2]]
        s += min(t for t in rts if t > -3.0) + max(t for t in rts if t < 5.0)
    return s


@pytest.mark.parametrize(
    "f",
    [
        least,
        least_and_most,
        by_a_key,
        with_a_default,
        in_order,
        listed,
        as_an_array,
        pairs,
        of_a_list,
        two_clauses,
        two_clauses_and_a_test,
        summed,
        in_a_loop,
    ],
)
def test_one_tape_for_all_values(f):
    value, slope, h = fwdad.jit(f), fwdad.jit(fwdad.grad(f)), 1e-6
    v = np.array([0.3, -0.2, 0.5, 0.7, 0.1])
    for x in (np.array([0.8, 0.4, 1.2, -0.3, 0.1]), np.array([0.3, 1.4, 0.25, -0.6, 0.77])):
        assert_allclose(value(x), f(x), rtol=1e-14)
        expected = (f(x + h * v) - f(x - h * v)) / (2 * h)
        assert_allclose(slope(x) @ v, expected, rtol=1e-7, atol=1e-8)
        assert_allclose(fwdad.grad(f)(x) @ v, expected, rtol=1e-7, atol=1e-8)
    assert value.traces == (2 if f in (in_order, as_an_array, summed) else 1)
