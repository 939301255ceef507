"""Sparse systems: SuperLU, the iterative solvers, Newton's method."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.testing import assert_allclose

import fwdad
from tests.cases.sparse_arrays import NEW, differences


def laplacian(k):
    """Diffusion with a conductivity in each of the n + 1 gaps of a rod."""
    return sp.diags_array([-k[1:-1], k[:-1] + k[1:], -k[1:-1]], offsets=[-1, 0, 1]).tocsc()


CONDUCTIVITY = 1 + np.linspace(0, 1, 7) ** 2


HEAT = np.sin(np.linspace(0.2, 3, 6))


def exact_derivative(k, q):
    """Of the temperature by the conductivity, from dense matrices: −L⁻¹ (dL/dk) L⁻¹ q."""
    L = laplacian(k).toarray()
    T = np.linalg.solve(L, q)
    columns = [-np.linalg.solve(L, laplacian(e).toarray() @ T) for e in np.eye(k.size)]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("chunk", [1, 3, None])
@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_spsolve(layout, chunk):
    J = fwdad.jacobian(
        lambda k: spl.spsolve(laplacian(k).asformat(layout), HEAT), CONDUCTIVITY, chunk=chunk
    )
    assert_allclose(J, exact_derivative(CONDUCTIVITY, HEAT), rtol=1e-11, atol=1e-14)


def test_spsolve_of_an_inactive_matrix_and_of_several_sides():
    L = laplacian(CONDUCTIVITY)
    inverse = np.linalg.inv(L.toarray())
    assert_allclose(fwdad.jacobian(lambda q: spl.spsolve(L, q), HEAT), inverse, rtol=1e-11)
    sides = np.stack([HEAT, HEAT**2], axis=1)
    J = fwdad.jacobian(lambda q: spl.spsolve(L, q), sides)
    assert_allclose(J, np.einsum("ij,kl->ikjl", inverse, np.eye(2)), rtol=1e-11, atol=1e-15)


def test_factors_of_an_inactive_matrix():
    L = laplacian(CONDUCTIVITY)
    factors, solve = spl.splu(L), spl.factorized(L)
    inverse = np.linalg.inv(L.toarray())
    for f in (lambda q: factors.solve(q), lambda q: solve(q), lambda q: spl.splu(L).solve(q)):
        assert_allclose(fwdad.jacobian(f, HEAT, chunk=4), inverse, rtol=1e-11)


def test_second_derivative_of_a_solve():
    def energy(k):
        return HEAT @ spl.spsolve(laplacian(k), HEAT)

    # the first derivative, in closed form: −T (dL/dk) T
    def gradient(k):
        T = np.linalg.solve(laplacian(k).toarray(), HEAT)
        return np.array([-T @ laplacian(e).toarray() @ T for e in np.eye(k.size)])

    assert_allclose(fwdad.grad(energy)(CONDUCTIVITY), gradient(CONDUCTIVITY), rtol=1e-11)
    assert_allclose(
        fwdad.hessian(energy, CONDUCTIVITY), differences(gradient, CONDUCTIVITY), rtol=1e-6
    )


@pytest.mark.parametrize("solver", [spl.cg, spl.bicgstab])
def test_iterative_solvers_are_python(solver):
    def f(k):
        T, info = solver(laplacian(k).tocsr(), HEAT, rtol=1e-13)
        assert info == 0
        return T

    J = fwdad.jacobian(f, CONDUCTIVITY)
    assert_allclose(J, exact_derivative(CONDUCTIVITY, HEAT), rtol=1e-6, atol=1e-8)


def test_newton_with_a_sparse_jacobian():
    """The steady state of a nonlinear rod, and its derivative by the conductivity."""

    def residual(T, k):
        return laplacian(k) @ T + T**3 - HEAT

    def steady(k):
        T = np.zeros(6)
        for _ in range(8):
            J = laplacian(k) + sp.diags_array(3 * T**2).tocsc()
            T = T - spl.spsolve(J, residual(T, k))
        return T

    T, dT = fwdad.value_and_jacobian(steady, CONDUCTIVITY)
    assert_allclose(residual(T, CONDUCTIVITY), 0, atol=1e-11)
    L = laplacian(CONDUCTIVITY).toarray() + np.diag(3 * T**2)
    by_k = np.stack([laplacian(e).toarray() @ T for e in np.eye(7)], axis=-1)
    assert_allclose(dT, -np.linalg.solve(L, by_k), rtol=1e-9, atol=1e-11)


def test_a_singular_matrix_is_scipy_s_warning():
    def f(x):
        return spl.spsolve(sp.diags_array(x * np.array([1.0, 0.0])).tocsc(), np.ones(2))

    with pytest.warns(spl.MatrixRankWarning, match="singular"):
        y, _ = fwdad.jvp(f, np.ones(2))
    assert np.isnan(y).all()


@pytest.mark.skipif(not NEW, reason="it was Python before")
def test_triangles_are_solved_in_c():
    with pytest.raises(fwdad.errors.MissingRuleError, match="gstrs"):
        fwdad.jvp(lambda k: spl.spsolve_triangular(laplacian(k).tocsr(), HEAT), CONDUCTIVITY)
