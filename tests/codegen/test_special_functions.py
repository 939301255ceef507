"""SciPy's special functions, compiled: the bits of its ufuncs."""

import numpy as np
import pytest
import scipy.special as sp
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.numba_support import SPECIAL_HELPERS
from fwdad.codegen.runtime import special_functions
from tests.differences import difference_along


def likelihood(x, a):
    """What statistics are made of."""
    y = sp.gammaln(a + x) - sp.gammaln(a) - sp.xlogy(x, a) + sp.log_ndtr(x - 1.0)
    z = sp.expit(x) * sp.erf(x) + sp.erfc(x) * sp.logit(sp.ndtr(x)) + sp.i0e(x) + sp.jv(1.5, x)
    return y, z * sp.gammainc(a, x), sp.log_expit(x)[0] + sp.erf(a[0])


def total(x, a):
    y, z, w = likelihood(x, a)
    return np.sum(y * z) + w


X = np.linspace(0.1, 3.0, 9)
A = np.linspace(1.5, 2.5, 9)


def test_values_have_the_bits_of_scipys():
    made = fwdad.jit(likelihood)
    for x, a in ((X, A), (X[::2], A[::2]), (X[:1], A[:1])):
        for found, wanted in zip(made(x, a), likelihood(x, a), strict=True):
            assert_allclose(found, wanted, rtol=4e-16)
    assert "NumPy" not in fwdad.explain(made)
    with np.errstate(all="ignore"):
        odd = np.array([np.nan, np.inf, -np.inf, -1.0, 0.0])
        for f in (sp.gammaln, sp.erf, sp.expit, sp.psi, sp.rgamma):
            compiled = fwdad.jit(lambda x, f=f: f(x))
            assert_array_equal(compiled(odd), f(odd))


def test_derivatives():
    for g in (fwdad.grad(total), fwdad.jacfwd(total)):
        made = fwdad.jit(g)
        expected = fwdad.jacobian(total, X, args=(A,), mode="forward")
        assert_allclose(made(X, A), expected, rtol=1e-12)
        assert "NumPy" not in fwdad.explain(made)


def test_other_types():
    made = fwdad.jit(lambda x: sp.erf(x) * 2)
    for x in (np.float32([0.5, 1.5]), np.array([0, 1, 2]), 0.5, np.zeros((0, 2)), np.array(0.5)):
        found, wanted = made(x), sp.erf(x) * 2
        assert type(found) is type(wanted)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        assert_allclose(found, wanted, rtol=1e-15 if np.asarray(x).dtype != np.float32 else 2e-7)
    assert_allclose(made(X + 0.5j), sp.erf(X + 0.5j) * 2)  # complex ones are SciPy's
    assert "erf" in fwdad.explain(made)


def test_each_name_is_a_function_of_floats():
    for helper in sorted(SPECIAL_HELPERS):
        name = helper.removeprefix("special_")
        entry, arity = special_functions._entry(helper)
        assert entry.endswith(name)
        ufunc = getattr(sp, name)
        assert ufunc.nin == arity
        assert "d" * arity + "->d" in ufunc.types


@pytest.mark.parametrize("f", [sp.jv, sp.kve])
def test_a_real_order_beside_a_complex_argument(f):
    """The function of two float64s is another one."""
    z = np.array([0.7 + 0.4j, 2.1 - 1.3j])
    assert_allclose(fwdad.jit(lambda z: f(1.5, z))(z), f(1.5, z), rtol=1e-14)
    slope = fwdad.jit(fwdad.jacfwd(lambda t: np.real(f(1.5, z * t)).sum()))(1.2)
    wanted = difference_along(lambda t: np.real(f(1.5, z * t)).sum(), 1.2)
    assert_allclose(slope, wanted, rtol=1e-8)
