"""Products of sparse arrays from outside under ``jit``: values, derivatives, patterns, changes."""

import numpy as np
import pytest
import scipy.sparse as sp

import fwdad
from fwdad.errors import UntraceableError

RNG = np.random.default_rng(4)
DENSE = RNG.random((6, 5)) * (RNG.random((6, 5)) < 0.4)
VECTOR, MATRIX = RNG.random(5) + 0.5, RNG.random((5, 3)) + 0.5


def product_with(a):
    return lambda x: np.sin(a @ x) * a.dot(x)


@pytest.mark.every(7)
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("x", [VECTOR, MATRIX, MATRIX[:, 1], VECTOR + 1j, VECTOR.astype("f")])
def test_products(make, x):
    f = product_with(make(DENSE))
    y = fwdad.jit(f)(x)
    assert y.dtype == f(x).dtype
    np.testing.assert_allclose(y, f(x), rtol=1e-6 if x.dtype == np.float32 else 1e-14)
    if x.dtype == np.float64:
        wanted = fwdad.jacobian(product_with(DENSE), x)
        for transform in (fwdad.jacfwd, fwdad.jacrev):
            np.testing.assert_allclose(fwdad.jit(transform(f))(x), wanted, atol=1e-13)
        J = fwdad.jacobian(f, x, sparse=True)
        np.testing.assert_allclose(J.toarray(), wanted.reshape(J.shape), atol=1e-13)
        entries = np.kron(DENSE != 0, np.eye(x.size // 5, dtype=bool))
        assert np.array_equal(fwdad.jacobian_sparsity(f, x).toarray(), entries)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, bool])
def test_elements_of_other_types(dtype):
    a = sp.csr_array((DENSE * 3).astype(dtype))
    y = fwdad.jit(lambda x: a @ x)(VECTOR)
    assert y.dtype == (a @ VECTOR).dtype
    np.testing.assert_allclose(y, a @ VECTOR, rtol=1e-6)


def test_what_changes_outside():
    a = sp.csr_array(DENSE)
    f = fwdad.jit(lambda x: a @ x)
    for _ in range(2):
        np.testing.assert_allclose(f(VECTOR), a @ VECTOR)
    a.data[:] *= 2
    np.testing.assert_allclose(f(VECTOR), a @ VECTOR)
    a.data = a.data + 1
    np.testing.assert_allclose(f(VECTOR), a @ VECTOR)
    a = sp.csr_array(RNG.random((6, 5)))
    np.testing.assert_allclose(f(VECTOR), a @ VECTOR)
    a = sp.csr_array(RNG.random((7, 5)))
    np.testing.assert_allclose(f(VECTOR), a @ VECTOR)
    a = a.tocsc()
    np.testing.assert_allclose(f(VECTOR), a @ VECTOR)


def test_arguments_and_other_formats():
    """What is made of them without a value of the program is made again at each run."""
    f, g = fwdad.jit(lambda a, x: a @ x), fwdad.jit(lambda x: a.tocoo() @ x)
    h = fwdad.jit(lambda y, a: y @ a)
    gradient = fwdad.jit(fwdad.grad(lambda x, a: np.sum((a @ x) ** 2)))
    for k in range(3):
        a = sp.csr_array(DENSE * (k + 1.0))
        np.testing.assert_allclose(f(a, VECTOR), a @ VECTOR)
        np.testing.assert_allclose(g(VECTOR), a @ VECTOR)
        np.testing.assert_allclose(h(a @ VECTOR, a), (a @ VECTOR) @ a)
        np.testing.assert_allclose(gradient(VECTOR, a), 2 * (a.T @ (a @ VECTOR)))
    a.data *= 2
    np.testing.assert_allclose(f(a, VECTOR), a @ VECTOR)
    np.testing.assert_allclose(g(VECTOR), a @ VECTOR)


def test_lengths_are_compared():
    a = sp.csr_array(DENSE)
    f = fwdad.jit(lambda x: a @ x)
    f(VECTOR)
    for wrong in (VECTOR[:4], np.ones(6)):
        with pytest.raises(ValueError, match="mismatch"):
            f(wrong)


def test_refusals():
    a = sp.csr_array(DENSE)
    for f in (lambda x: a.multiply(x), lambda x: (a * x[0]) @ x):
        with pytest.raises(UntraceableError):
            fwdad.jit(f)(VECTOR)
