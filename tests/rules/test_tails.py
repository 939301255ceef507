"""Derivatives to the third order where exponentials have under- or overflown, and orders cut."""

import math

import numpy as np
import pytest
import scipy.special as sp
from numpy.testing import assert_allclose

import fwdad
from tests.differences import difference_along


def order(f, k):
    for _ in range(k):
        f = lambda x, f=f: fwdad.derivative(f, x)  # noqa: E731
    return f


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


FLAT = [
    (np.tanh, -400.0), (np.tanh, 1000.0), (np.tanh, np.inf), (math.tanh, -800.0), (gelu, -22.0),
    (sp.log_ndtr, 40.0), (sp.log_ndtr, 1e6), (np.cbrt, np.inf), (np.arctan, np.inf),
    (np.arctan, -1e308), (sp.erf, np.inf), (sp.erfc, 1e308), (math.erf, -np.inf),
    (sp.ndtr, np.inf), (sp.ndtr, -1e200),
]  # fmt: skip


@pytest.mark.every(2)
@pytest.mark.parametrize(("f", "x"), FLAT)
@pytest.mark.parametrize("k", [2, 3])
def test_flat_tails(f, x, k):
    assert order(f, k)(x) == 0.0
    assert fwdad.jit(order(f, k))(x) == 0.0
    several = fwdad.hvp(lambda v: sum(f(v[j]) for j in range(2)), np.array([x, x]), np.ones(2))
    assert_allclose(several, np.zeros(2))


# by mpmath
EXACT = [
    (np.tanh, -360.0, [8.1289e-313, 1.62578e-312]),
    (np.tanh, 20.0, [1.6993417021166355e-17, -3.398683404233271e-17]),
    (sp.log_ndtr, 30.0, [1.4736461348785476e-196, -4.420938404635643e-195]),
    (sp.log_ndtr, -30.0, [30.033259667433677, -0.99889622848810991]),
]


@pytest.mark.parametrize(("f", "x", "want"), EXACT)
def test_values_in_the_tails(f, x, want):
    found = [order(f, k)(x) for k in (1, 2)]
    assert_allclose(found, want, rtol=1e-5 if abs(want[0]) < 1e-300 else 1e-9)


@pytest.mark.parametrize("many", [3, 300])
def test_even_slope_of_tanh_at_zero(many):
    x = np.zeros(many)
    third = fwdad.jvp(lambda x: fwdad.hvp(lambda v: np.sum(np.tanh(v)), x, np.ones(many)), x, x + 1)
    assert_allclose(third[1], -2 * np.ones(many))


def test_logaddexp_of_infinity():
    both = {"argnums": (0, 1)}
    assert fwdad.grad(np.logaddexp, **both)(1.0, np.inf) == (0.0, 1.0)
    assert fwdad.grad(np.logaddexp2, **both)(np.inf, -3.0) == (1.0, 0.0)
    assert fwdad.grad(np.logaddexp, **both)(-np.inf, 1.0) == (0.0, 1.0)
    assert_allclose(fwdad.grad(np.logaddexp, **both)(0.3, 0.1), (sp.expit(0.2), sp.expit(-0.2)))


@pytest.mark.parametrize(
    ("name", "n"),
    [("kn", 0.5), ("kn", 1.5), ("yn", 2.7), ("expn", 0.5), ("expn", 2.5), ("spherical_jn", 1.5),
     ("spherical_yn", 1.5), ("spherical_in", 1.5), ("spherical_kn", 1.5)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:floating point number truncated")  # SciPy says it
def test_orders_are_cut_as_scipy_cuts_them(name, n):
    f = getattr(sp, name)
    for k in (1, 2):
        broken, whole = order(lambda x: f(n, x), k)(1.3), order(lambda x: f(int(n), x), k)(1.3)
        assert_allclose(broken, whole, rtol=1e-12)
    slope = difference_along(lambda x: f(n, x), 1.3)
    assert_allclose(fwdad.jit(order(lambda x: f(n, x), 1))(1.3), slope, rtol=1e-8)
