"""Gaussian kernel estimates, of which ``scipy.stats.gaussian_kde`` is made."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.stats import _stats

import fwdad
from fwdad.testing import check_frule
from tests.differences import central_differences
from tests.rules.case import Case, Draw

draw = Draw(71)
RNG = np.random.default_rng(17)
FACTOR = np.array([[0.9, 0.0], [0.3, 0.7]])
POINTS, PLACES = draw.rng.normal(size=(5, 2)), draw.rng.normal(size=(3, 2))
VALUES = draw.rng.uniform(0.5, 1.5, (5, 2))
DTYPES = {"float": np.float32, "double": np.float64, "long double": np.longdouble}
CASES = [
    Case(function[name], *(dtype(x) for x in (POINTS, VALUES, PLACES, FACTOR)), dtype)
    for function in (_stats.gaussian_kernel_estimate, _stats.gaussian_kernel_estimate_log)
    for name, dtype in DTYPES.items()
]
LINE, PLANE = RNG.normal(size=9), RNG.normal(size=(2, 6))
WEIGHTS = RNG.uniform(0.5, 1.5, 9)

# by everything that a density may be of: the data, the points, the weights and the bandwidth
PROGRAMS = {
    "data": (lambda v: stats.gaussian_kde(v)([-0.4, 0.1, 1.3]), LINE),
    "points": (stats.gaussian_kde(LINE).evaluate, np.array([-0.4, 0.1, 1.3])),
    "number": (lambda v: stats.gaussian_kde(LINE)(v), 0.3),
    "log": (lambda v: stats.gaussian_kde(v).logpdf(v[:3] + 0.1), LINE),
    "far": (lambda v: stats.gaussian_kde(v).logpdf([70.0]), LINE),
    "weights": (lambda v: stats.gaussian_kde(LINE, weights=v)([0.1, 1.3]), WEIGHTS),
    "bandwidth": (lambda v: stats.gaussian_kde(LINE, bw_method=v[0])([0.1, 1.3]), np.array([0.4])),
    "silverman": (lambda v: stats.gaussian_kde(v, "silverman").pdf([0.1, 1.3]), LINE),
    "plane": (lambda v: stats.gaussian_kde(v)(v[:, :3] + 0.2), PLANE),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f, x = PROGRAMS[name]
    want = central_differences(f, x)
    kept = np.copy(x)
    for chunk in (1, 2, 3, 5):
        assert_allclose(fwdad.jacobian(f, x, chunk=chunk), want, rtol=1e-7, atol=1e-10)
    assert_allclose(fwdad.jacrev(f)(x), want, rtol=1e-7, atol=1e-10)
    assert_array_equal(x, kept)


@pytest.mark.slow_cases("log", "plane")
@pytest.mark.parametrize("name", ["data", "points", "log", "plane"])
def test_compiled_programs(name):
    f, x = PROGRAMS[name]
    want = fwdad.jacobian(f, x)
    assert_allclose(fwdad.jit(lambda v: fwdad.jacobian(f, v))(x), want, rtol=1e-12, atol=1e-14)
    assert_allclose(fwdad.jit(fwdad.jacrev(f))(x), want, rtol=1e-12, atol=1e-14)


def test_second_derivatives():
    total = lambda v: np.sum(stats.gaussian_kde(v)([-0.4, 0.1, 1.3]))  # noqa: E731
    want = central_differences(fwdad.grad(total), LINE)
    assert_allclose(fwdad.jacobian(fwdad.grad(total), LINE), want, rtol=1e-6, atol=1e-9)


def test_single_precision():
    args = [np.float32(x) for x in (POINTS, VALUES, PLACES, FACTOR)]
    single, double = (_stats.gaussian_kernel_estimate[name] for name in ("float", "double"))
    y, y_dot = fwdad.jvp(lambda x: single(*args[:2], x, args[3], np.float32), args[2], args[2])
    assert y.dtype == y_dot.dtype == np.float32
    _, want = fwdad.jvp(lambda x: double(*args[:2], x, args[3], float), PLACES, PLACES)
    assert_allclose(y_dot, want, rtol=1e-3)
