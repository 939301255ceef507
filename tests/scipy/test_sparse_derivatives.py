"""Derivatives by colours inside SciPy's solvers: taken where they pay, and equal to dense ones."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from numpy.testing import assert_allclose

import fwdad
from fwdad import scipy as door
from fwdad.scipy.choice import Derivative
from fwdad.scipy.derivatives import Gradient, Hessian, HessianProduct, Jacobian
from fwdad.scipy.sparse_derivatives import HessianByColours, JacobianByColours, Products

N = 100


def heat(t, u):
    out = -2 * u + np.append(u[1:], np.cos(t)) + np.append(0.0, u[:-1])
    return 50 * out - u**3


def coupled(t, u):
    return heat(t, u) - np.mean(u)


@pytest.mark.slow_cases("jit-Radau", "jit-BDF")
@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
def test_stiff_equations(method, jit, capsys):
    tight = {"rtol": 1e-7, "atol": 1e-9}
    for f, sparse in ((heat, method != "LSODA"), (coupled, False)):
        found = door.solve_ivp(jit(f), (0, 1), np.zeros(N), method, verbose=1, **tight)
        said = capsys.readouterr().out
        assert ("jac is a sparse matrix, by 3 directions for 298 entries" in said) == sparse
        assert ("its pattern has 100 colours" in said) == (f is coupled and method != "LSODA")
        other = door.solve_ivp(f, (0, 1), np.zeros(N), method, jac="2-point", **tight)
        assert_allclose(found.y[:, -1], other.y[:, -1], rtol=1e-5, atol=1e-7)


def test_what_cannot_be_traced_is_dense(capsys):
    def rhs(t, u):
        return heat(t, u) * eval("1.0")

    found = door.solve_ivp(rhs, (0, 1), np.zeros(N), "BDF", verbose=1)
    other = door.solve_ivp(heat, (0, 1), np.zeros(N), "BDF")
    assert_allclose(found.y, other.y, rtol=1e-6, atol=1e-9)
    said = capsys.readouterr().out
    assert "fwdad: jac is a dense matrix" in said
    assert "it is not sparse: its pattern has 100 colours" in said


def test_complex_unknowns():
    def rhs(t, z):
        return (1j - 20) * z + 0.1 * np.append(z[1:], 1.0) ** 2

    start = np.full(N, 1 + 1j)
    found = door.solve_ivp(rhs, (0, 1), start, "BDF", rtol=1e-8)
    assert_allclose(
        found.y[:, -1], door.solve_ivp(rhs, (0, 1), start, rtol=1e-8).y[:, -1], atol=1e-6
    )


def test_inside_a_derivative():
    def end(k):
        found = door.solve_ivp(lambda t, u: k * heat(t, u), (0, 0.1), np.zeros(N), "Radau")
        return np.sum(found.y[:, -1])

    slope = fwdad.derivative(end, 1.0)
    assert_allclose(slope, (end(1.001) - end(0.999)) / 0.002, rtol=1e-2)


@pytest.mark.parametrize("solver", [door.root, door.fsolve])
def test_roots_have_a_dense_matrix_by_colours(solver, capsys):
    found = solver(lambda u: heat(0.0, u), np.zeros(N), verbose=1)
    u = found.x if solver is door.root else found
    assert_allclose(heat(0.0, u), 0, atol=1e-8)
    assert "is a dense matrix of few entries, by 3 directions" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["trust-ncg", "trust-krylov", "Newton-CG", "trust-exact"])
@pytest.mark.parametrize("jac", [None, scipy.optimize.rosen_der], ids=["filled in", "given"])
def test_hessians(method, jac, capsys):
    found = door.minimize(
        scipy.optimize.rosen, np.full(N, 1.2), method=method, jac=jac, tol=1e-8, verbose=1
    )
    assert_allclose(found.x, np.ones(N), rtol=1e-5)
    said = capsys.readouterr().out
    what = "of few entries" if method == "trust-exact" else "a sparse matrix"
    assert (what in said) == (jac is None) or jac is not None


def test_products_at_one_point_are_with_one_matrix():
    made = []

    def fill(derivative):
        made.append(Derivative("hessp", derivative, ""))
        return made[-1]

    product = Products(Gradient(scipy.optimize.rosen), fill)
    x, v = np.linspace(0.5, 1.5, N), np.cos(np.arange(N))
    for at in (x, x, x + 1, x + 1, x):
        wanted = scipy.optimize.rosen_hess_prod(at, v)
        assert_allclose(product(at, v), wanted, rtol=1e-10, atol=1e-9)
    assert [d.calls for d in made] == [0, 3]
    x[0] = 3.0  # in place, as a solver may
    assert_allclose(product(x, v), scipy.optimize.rosen_hess_prod(x, v), rtol=1e-10, atol=1e-9)


def test_multipliers_are_arguments():
    def g(x):
        return x[1:] * x[:-1]

    ball = scipy.optimize.NonlinearConstraint(g, 0.1, 1)
    found = door.minimize(
        lambda x: np.sum((x - 2) ** 2), np.full(N, 0.5), method="trust-constr", constraints=ball
    )
    assert np.max(g(found.x)) < 1 + 1e-6


def test_the_decision():
    x = np.linspace(0.5, 1.5, N)
    f = lambda x: np.sin(x) * np.append(x[1:], 1.0)  # noqa: E731
    by_colours = JacobianByColours(Jacobian(f), "csr")
    assert by_colours.how() == "a dense matrix"
    J = by_colours(x)
    assert isinstance(J, sp.csr_array)
    assert_allclose(J.toarray(), fwdad.jacobian(f, x))
    assert "2 directions" in by_colours.how()
    whole = JacobianByColours(Jacobian(lambda x: x * np.sum(x)), "csr")
    assert isinstance(whole(x), np.ndarray)
    assert not whole.pays(x)
    H = HessianByColours(Hessian(Gradient(scipy.optimize.rosen)), Gradient(scipy.optimize.rosen),
                         "csr")  # fmt: skip
    assert_allclose(H(x).toarray(), scipy.optimize.rosen_hess(x), rtol=1e-10)
    assert HessianProduct(Gradient(scipy.optimize.rosen))(x, x).shape == (N,)
