"""Random numbers that packages draw from a generator that the program makes; signatures."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.3137, 1.2291, 0.7713, 2.1101, 0.9247])


def resampled(x):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    return stats.bootstrap((x,), np.mean, n_resamples=9, rng=rng).standard_error


def permuted(x):
    stats = pytest.importorskip("scipy.stats")
    found = stats.permutation_test(
        (x, x[::-1] ** 2),
        lambda a, b: a.mean() - b.mean(),
        n_resamples=9,
        rng=np.random.default_rng(1),
    )
    return found.statistic


def taken_by_rank(x):
    """As many as an index says, of lengths that are both known."""
    chosen = np.random.default_rng(3).integers(0, 5, (7, 5))
    means = x[..., chosen].mean(axis=-1)
    return np.take_along_axis(np.sort(means), np.array([1, 4]), axis=-1).sum()


@pytest.mark.parametrize("f", [resampled, permuted, taken_by_rank])
def test_draws(f):
    expected = central_differences(f, X)
    for g in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy")):
        assert_allclose(g(X), expected, rtol=1e-6)
        assert_allclose(g(X), expected, rtol=1e-6)
    assert_allclose(fwdad.jit(f, backend="numpy")(2 * X), f(2 * X), rtol=1e-13)


def test_whether_a_seed_was_set():
    """SciPy asks this of NumPy's generator; a tape notices where it changes."""

    def f(x):
        unset = np.random.mtrand._rand._bit_generator._seed_seq is None
        return x * (2.0 if unset else 3.0)

    g, state = fwdad.jit(f, backend="numpy"), np.random.get_state(legacy=False)
    try:
        for seed in (None, 3, None):
            np.random.seed(seed)
            assert_allclose(g(X), f(X))
    finally:
        np.random.set_state(state)


def test_signatures_of_functions_defined_inside():
    def f(x):
        k = 2.0

        def g(a, /, b, c=k, *rest, e, h=x[0], **options):
            return a

        total = 0.0
        for place, p in enumerate(inspect.signature(g).parameters.values()):
            total += (place + 1) * int(p.kind) + (10.0 if p.default is p.empty else p.default)
        return x * total

    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X))
    assert_allclose(fwdad.jit(fwdad.jacrev(f))(X), central_differences(f, X), rtol=1e-6, atol=1e-8)
