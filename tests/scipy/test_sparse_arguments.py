"""SciPy's own solvers with one argument of ours each: sparse Jacobians and Hessians."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.integrate import solve_bvp, solve_ivp
from scipy.optimize import NonlinearConstraint, least_squares, minimize, root
from scipy.sparse.linalg import LinearOperator, splu

import fwdad
from tests.drivers.sparse.programs import rosenbrock

N = 60


def chain(x):
    return np.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])


def heat(t, u):
    out = -2 * u + np.append(u[1:], np.cos(t)) + np.append(0.0, u[:-1])
    return 50 * out - u**3


def steady(u):
    return heat(0.0, u)


@pytest.fixture(params=["plain", "jit inside", "jit outside"])
def made(request):
    """``made(derivative, f, ...)``: a derivative of f, compiled or not."""

    def make(derivative, f, *args, **options):
        if request.param == "jit inside":
            return derivative(fwdad.jit(f), *args, **options)
        J = derivative(f, *args, **options)
        return fwdad.jit(J) if request.param == "jit outside" else J

    return make


@pytest.mark.every(3)
@pytest.mark.parametrize("method", ["trf", "dogbox"])
@pytest.mark.parametrize("scale", [1.0, "jac"])
def test_least_squares(method, scale, made):
    jac = made(fwdad.jacobian, chain, sparse=True)
    found = least_squares(chain, np.full(N, 0.8), jac=jac, method=method, x_scale=scale)
    assert_allclose(found.x, np.ones(N), rtol=1e-6)
    assert isinstance(found.jac, sp.csr_array)


@pytest.mark.every(5)
@pytest.mark.parametrize("method", ["Radau", "BDF"])
@pytest.mark.parametrize("form", ["csc", "csr"])
def test_solve_ivp(method, form, made):
    jac = made(fwdad.jacfwd, heat, 1, sparse=True, format=form)
    found = solve_ivp(heat, (0, 1), np.zeros(N), method, jac=jac, rtol=1e-7, atol=1e-9)
    wanted = solve_ivp(heat, (0, 1), np.zeros(N), method, rtol=1e-7, atol=1e-9)
    assert_allclose(found.y[:, -1], wanted.y[:, -1], rtol=1e-5, atol=1e-7)
    assert found.nfev <= wanted.nfev + 2


@pytest.mark.every(3, of="hybr")
@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root(method, made):
    jac = made(fwdad.jacobian, steady, sparse=True, format="dense")
    found = root(steady, np.zeros(N), method=method, jac=jac)
    assert_allclose(steady(found.x), 0, atol=1e-8)


def test_root_by_krylov(made):
    x = np.zeros(N)
    factors = splu(made(fwdad.jacobian, steady, sparse=True, format="csc")(x))
    M = LinearOperator((N, N), factors.solve)
    found = root(steady, x, method="krylov", options={"jac_options": {"inner_M": M}})
    assert_allclose(steady(found.x), 0, atol=1e-4)
    without = root(steady, x, method="krylov")
    assert found.nfev < without.nfev / 2


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("method", "form"),
    [
        ("trust-constr", "csr"), ("Newton-CG", "csr"), ("trust-constr", "dense"),
        ("trust-ncg", "dense"), ("trust-krylov", "dense"), ("trust-exact", "dense"),
    ],
)  # fmt: skip
def test_minimize(method, form, made):
    hess = made(fwdad.hessian, rosenbrock, sparse=True, format=form)
    found = minimize(
        rosenbrock, np.full(N, 1.1), method=method, jac=fwdad.grad(rosenbrock), hess=hess, tol=1e-9
    )
    assert_allclose(found.x, np.ones(N), rtol=1e-5)


@pytest.mark.slow_cases("plain", "jit inside")
def test_constraints(made):
    g = lambda x: x[1:] * x[:-1]  # noqa: E731
    bounded = NonlinearConstraint(g, 0.1, 0.5, jac=made(fwdad.jacobian, g, sparse=True))
    found = minimize(
        lambda x: np.sum((x - 2) ** 2), np.full(N, 0.5), method="trust-constr",
        jac=lambda x: 2 * (x - 2), hess=lambda x: 2 * sp.eye_array(N), constraints=bounded,
    )  # fmt: skip
    assert np.max(g(found.x)) < 0.5 + 1e-6


def test_solve_bvp():
    """The matrices at the points of a mesh are dense and small: vmap, not a pattern."""

    def fun(x, y):
        return np.stack([y[1], -np.exp(y[0])])

    at_points = fwdad.vmap(fwdad.jacfwd(fun, 1), in_axes=(0, 1), out_axes=2)
    found = solve_bvp(
        fun, lambda ya, yb: np.array([ya[0], yb[0]]), np.linspace(0, 1, 5), np.zeros((2, 5)),
        fun_jac=at_points, tol=1e-8,
    )  # fmt: skip
    assert_allclose(found.sol(0.5)[0], 0.14053921, atol=1e-8)


def test_splu(made):
    x = np.linspace(0, 1, N)
    J = made(fwdad.jacobian, steady, sparse=True, format="csc")
    for _ in range(8):  # Newton's method
        x = x - splu(J(x)).solve(steady(x))
    assert_allclose(steady(x), 0, atol=1e-10)
