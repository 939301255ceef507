"""Random numbers of generators that a traced program makes from a seed."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

X = np.array([0.3, 0.7, 1.2])


def monte_carlo(x, seed=3):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(5, len(x)))
    z[0] += x  # the array is the program's own
    keep = rng.permutation(5)[:3]
    return np.mean(np.exp(-z[keep] * x) * rng.uniform(0.5, 1.5, size=(3, 1)))


def in_a_loop(x):
    """Made in the body: the same numbers in every iteration."""
    s = 0.0
    for k in range(4):
        rng = np.random.RandomState(7)
        s = s * rng.rand() + np.sum(x * rng.standard_normal(3)) * k
        if s > 0:
            s = s + np.random.Generator(np.random.PCG64(5)).normal() * x[0]
    return s


def through_objects(x):
    class_of = Noise(np.random.default_rng([1, 2]))
    order = list(range(3))
    class_of.rng.shuffle(order)
    return sum(x[k] ** (i + 1) for i, k in enumerate(order)) * class_of(x)


class Noise:
    def __init__(self, rng):
        self.rng = rng

    def __call__(self, x):
        return np.dot(x, self.rng.choice([-1.0, 1.0], size=3)) + self.rng.integers(10)


@pytest.mark.parametrize("f", [monte_carlo, in_a_loop, through_objects])
def test_as_plain_python(f):
    compiled, slope = fwdad.jit(f, backend="numpy"), fwdad.jit(fwdad.grad(f), backend="numpy")
    expected = fwdad.jacobian(f, X, chunk=2)
    for _ in range(2):  # the second call draws the same
        assert_allclose(compiled(X), f(X), rtol=1e-14)
        assert_allclose(slope(X), expected, rtol=1e-12)
    assert_allclose(expected, central_differences(f, X), rtol=1e-7)


def test_seeds_and_lengths_are_assumed():
    compiled = fwdad.jit(monte_carlo, backend="numpy")
    for seed, x in ((3, X), (4, X), (4, np.linspace(0.1, 1, 6)), (3, X)):
        assert_array_equal(compiled(x, seed), monte_carlo(x, seed))
    assert fwdad.cache_info(compiled).traces == 3


OUTSIDE = np.random.default_rng(0)


def drawn_in_a_loop(x):
    rng = np.random.default_rng(0)
    for k in range(100):
        x = x + k * rng.normal()  # here: made elsewhere
    return x


def drawn_in_a_branch(x):
    rng = np.random.default_rng(0)
    if x > 0:
        x = x + rng.normal()  # here: made elsewhere
    return x + rng.normal()


def after_the_loop(x, n):
    for _ in range(n):
        rng = np.random.default_rng(0)
        x = x * rng.normal()
    return x + rng.normal()  # here: made elsewhere


def of_the_caller(x):
    return x + np.random.default_rng(OUTSIDE).normal()  # here: made elsewhere


def without_a_seed(x):
    return x + np.random.default_rng().normal()  # here: differ from run to run


def of_values(x):
    return np.random.default_rng(0).normal(x, 1.0)  # here: depends on values


def shuffled(x):
    a = np.zeros(3) + x
    np.random.default_rng(0).shuffle(a)  # here: depends on values
    return a


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (drawn_in_a_loop, (1.0,)),
        (drawn_in_a_branch, (1.0,)),
        (after_the_loop, (1.0, 3)),
        (of_the_caller, (1.0,)),
        (without_a_seed, (1.0,)),
        (of_values, (1.0,)),
        (shuffled, (1.0,)),
    ],
)
def test_refused(f, args):
    lines, first = inspect.getsourcelines(f)
    k, line = next((k, line) for k, line in enumerate(lines) if "# here: " in line)
    reason = line.split("# here: ")[1].strip()
    with pytest.raises(fwdad.errors.UntraceableError, match=reason) as caught:
        fwdad.trace(f, *args)
    assert caught.value.lineno == first + k
