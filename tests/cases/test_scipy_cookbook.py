"""SciPy as people use it: one recipe each, ready to be pasted.

Every recipe is compared with a result that owes nothing to derivatives by fwdad (an exact solution,
a closed form, SciPy's own hand-written derivatives), and shows that SciPy asked for the derivative
and needed fewer calls of the function for it than its differences did.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import odeint, solve_ivp
from scipy.optimize import (
    Bounds,
    NonlinearConstraint,
    curve_fit,
    least_squares,
    minimize,
    root,
    rosen,
    rosen_der,
    rosen_hess,
    rosen_hess_prod,
)

import fwdad


class Counted:
    """A callable that counts its calls; ``argnums`` and closures stay as they are inside."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


# -- ordinary differential equations


def forced(t, y, stiffness):
    """Stiff, nonlinear and driven by t; from (1, 0) the exact solution is (cos t, sin t)."""
    p, q = y
    pull = stiffness * (1 + p * p + q * q)
    return np.array(
        [
            -pull * (p - np.cos(t)) - np.sin(t),
            -pull * (q - np.sin(t)) + np.cos(t),
        ]
    )


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_solve_ivp(method):
    def solve(rhs, jac):
        return solve_ivp(
            rhs, (0.0, 3.0), [1.0, 0.0], method, jac=jac, args=(1e5,), rtol=1e-8, atol=1e-10
        )

    rhs, jac = Counted(forced), Counted(fwdad.jacfwd(forced, argnums=1))
    solution = solve(rhs, jac)

    assert_allclose(solution.y, [np.cos(solution.t), np.sin(solution.t)], atol=1e-6)
    assert jac.calls >= solution.njev > 0
    differences = Counted(forced)
    assert solve(differences, None).success
    assert rhs.calls < differences.calls


def test_solve_ivp_robertson():
    """The end state of the Test Set for IVP Solvers, problem ROBER, at t = 1e11."""

    def robertson(t, y):
        a, b, c = y
        made = 0.04 * a - 1e4 * b * c
        burnt = 3e7 * b**2
        return [-made, made - burnt, burnt]

    jac = Counted(fwdad.jacfwd(robertson, argnums=1, stack=True))
    solution = solve_ivp(
        robertson, (0.0, 1e11), [1.0, 0.0, 0.0], "Radau", jac=jac, rtol=1e-8, atol=1e-18
    )

    end = [0.2083340149701255e-07, 0.8333360770334713e-13, 0.9999999791665050e00]
    assert_allclose(solution.y[:, -1], end, rtol=1e-5)
    assert jac.calls == solution.njev > 0


@pytest.mark.parametrize("tfirst", [False, True])
def test_odeint(tfirst):
    """``odeint`` wants f(y, t): the Jacobian is then that of argument 0, which is the default."""

    def forced_y_first(y, t, stiffness):
        return forced(t, y, stiffness)

    t = np.linspace(0.0, 3.0, 7)

    def solve(rhs, jac):
        return odeint(
            rhs, [1.0, 0.0], t, args=(1e5,), Dfun=jac, tfirst=tfirst,
            full_output=True, rtol=1e-8, atol=1e-10,
        )  # fmt: skip

    f = forced if tfirst else forced_y_first
    jac = Counted(fwdad.jacfwd(f, argnums=1) if tfirst else fwdad.jacfwd(f))
    rhs = Counted(f)
    y, info = solve(rhs, jac)

    assert_allclose(y, np.column_stack([np.cos(t), np.sin(t)]), atol=1e-6)
    assert jac.calls > 0
    assert info["nje"][-1] > 0
    differences = Counted(f)
    solve(differences, None)
    assert rhs.calls < differences.calls


# -- equations


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root(method):
    """Bratu's problem u'' + λ exp(u) = 0, u(0) = u(1) = 0, on 39 points."""

    def bratu(u, strength):
        h = 1.0 / (u.size + 1)
        residual = strength * np.exp(u)
        residual -= 2 * u / h**2
        residual[1:] += u[:-1] / h**2
        residual[:-1] += u[1:] / h**2
        return residual

    strength = 1.0
    f, jac = Counted(bratu), Counted(fwdad.jacfwd(bratu))
    solution = root(f, np.zeros(39), args=(strength,), jac=jac, method=method, tol=1e-12)

    # exact: u = -2 log(cosh((x - 1/2) θ/2) / cosh(θ/4)) with θ = sqrt(2 λ) cosh(θ/4)
    theta = 1.5
    for _ in range(200):
        theta = np.sqrt(2 * strength) * np.cosh(theta / 4)
    x = np.arange(1, 40) / 40
    exact = -2 * np.log(np.cosh((x - 0.5) * theta / 2) / np.cosh(theta / 4))
    assert solution.success
    assert_allclose(solution.x, exact, atol=1e-5)  # the differences in space are of second order
    assert jac.calls >= solution.njev > 0
    differences = Counted(bratu)
    root(differences, np.zeros(39), args=(strength,), method=method, tol=1e-12)
    assert f.calls < differences.calls


# -- fits


@pytest.mark.parametrize("method", ["trf", "dogbox"])
def test_least_squares(method, rng):
    """A decay rate held at its bound: the amplitude is then a linear least-squares problem."""

    def residuals(p, t, data, *, noise=1.0):
        amplitude, rate = p
        return (amplitude * np.exp(-rate * t) - data) / noise

    t = np.linspace(0.0, 4.0, 50)
    data = 2.5 * np.exp(-0.8 * t) + 0.01 * rng.normal(size=t.size)

    def fit(f, jac):
        return least_squares(
            f, [1.0, 0.1], jac=jac, bounds=([0.0, 0.0], [np.inf, 0.5]), method=method,
            args=(t, data), kwargs={"noise": 0.01}, xtol=1e-14, ftol=1e-14, gtol=1e-14,
        )  # fmt: skip

    f, jac = Counted(residuals), Counted(fwdad.jacfwd(residuals))
    result = fit(f, jac)

    decay = np.exp(-0.5 * t)
    assert result.success
    assert_allclose(result.x, [decay @ data / (decay @ decay), 0.5], rtol=1e-7)
    assert_allclose(result.jac[:, 0], decay / 0.01, rtol=1e-7)
    assert result.active_mask.tolist() == [0, 1]
    assert jac.calls >= result.njev > 0
    differences = Counted(residuals)
    fit(differences, "2-point")
    assert f.calls < differences.calls


def test_curve_fit(rng):
    """``curve_fit`` passes the parameters one by one and wants one column for each."""

    def model(t, amplitude, rate, offset):
        return amplitude * np.exp(-rate * t) + offset

    t = np.linspace(0.0, 4.0, 60)
    data = model(t, 2.5, 1.3, 0.5) + 0.02 * rng.normal(size=t.size)
    f = Counted(model)
    jac = Counted(fwdad.jacfwd(model, argnums=(1, 2, 3), stack=True))
    best, covariance = curve_fit(f, t, data, p0=[1.0, 1.0, 0.0], jac=jac, xtol=1e-14)

    a, k, _ = best
    columns = np.column_stack([np.exp(-k * t), -a * t * np.exp(-k * t), np.ones_like(t)])
    residuals = data - model(t, *best)
    assert_allclose(columns.T @ residuals, np.zeros(3), atol=1e-6)  # stationary
    variance = residuals @ residuals / (t.size - 3)
    # MINPACK's covariance is that of its last Jacobian but one step: hence 1e-4
    assert_allclose(covariance, variance * np.linalg.inv(columns.T @ columns), rtol=1e-4)
    assert_allclose(best, [2.5, 1.3, 0.5], atol=0.05)
    assert jac.calls > 0
    differences = Counted(model)
    curve_fit(differences, t, data, p0=[1.0, 1.0, 0.0], xtol=1e-14)
    assert f.calls < differences.calls


# -- minimisation


def valley(x):
    """Rosenbrock's valley, whose derivatives SciPy has by hand; its one minimum is at ones."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


START = np.array([-1.2, 1.0, 0.8])


def test_minimize_value_and_grad(rng):
    """``jac=True``: value and gradient together, of a logistic regression whose data are args."""

    def loss(w, features, labels, ridge):
        margins = labels * (features @ w)
        return np.sum(np.logaddexp(0.0, -margins)) + 0.5 * ridge * w @ w

    features = rng.normal(size=(200, 6))
    labels = np.sign(features @ rng.normal(size=6) + 0.5 * rng.normal(size=200))
    both = Counted(fwdad.value_and_grad(loss))
    tight = {"gtol": 1e-9, "ftol": 1e-15}
    result = minimize(
        both, np.zeros(6), (features, labels, 0.1), "L-BFGS-B", jac=True, options=tight
    )

    # stationary by the textbook's gradient
    weights = 1 / (1 + np.exp(labels * (features @ result.x)))
    assert_allclose(0.1 * result.x, features.T @ (labels * weights), atol=1e-6)
    assert both.calls == result.nfev == result.njev
    plain = minimize(loss, np.zeros(6), (features, labels, 0.1), "L-BFGS-B")
    assert result.nfev < plain.nfev
    assert_allclose(result.x, plain.x, atol=1e-3)


def test_minimize_jac():
    f, jac = Counted(valley), Counted(fwdad.grad(valley))
    result = minimize(f, START, method="BFGS", jac=jac, options={"gtol": 1e-9})

    assert result.success
    assert_allclose(result.x, np.ones(3), rtol=1e-8)
    assert_allclose(jac(START), rosen_der(START), rtol=1e-13)
    assert jac.calls - 1 == result.njev > 0
    assert f.calls < minimize(valley, START, method="BFGS").nfev


@pytest.mark.parametrize("method", ["trust-exact", "Newton-CG"])
def test_minimize_hess(method):
    hess = Counted(lambda x: fwdad.hessian(valley, x))
    result = minimize(valley, START, method=method, jac=fwdad.grad(valley), hess=hess, tol=1e-9)

    assert result.success
    assert_allclose(result.x, np.ones(3), rtol=1e-8)
    assert hess.calls >= result.nhev > 0
    assert_allclose(hess(START), rosen_hess(START), rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("method", ["trust-ncg", "Newton-CG"])
def test_minimize_hessp(method):
    hessp = Counted(lambda x, p: fwdad.hvp(valley, x, p))
    result = minimize(valley, START, method=method, jac=fwdad.grad(valley), hessp=hessp, tol=1e-7)

    assert result.success
    assert_allclose(result.x, np.ones(3), rtol=1e-6)
    assert min(hessp.calls, result.nhev) > 0
    p = np.array([-1.0, 0.5, 2.0])
    assert_allclose(hessp(START, p), rosen_hess_prod(START, p), rtol=1e-13)


def test_minimize_scipys_own_function():
    """``scipy.optimize.rosen`` is library code in Python: it is differentiated from its source."""
    result = minimize(rosen, START, jac=fwdad.grad(rosen), options={"gtol": 1e-9})

    assert_allclose(result.x, np.ones(3), rtol=1e-8)
    assert_allclose(fwdad.grad(rosen)(START), rosen_der(START), rtol=1e-13)


def test_nonlinear_constraint():
    """The largest box in an ellipsoid has the half edges (a, b, c)/√3."""
    axes = np.array([1.0, 2.0, 3.0])

    def volume(x):
        return -8 * np.prod(x)

    def inside(x):  # the ellipsoid, and a second constraint that does not bind
        return np.array([np.sum((x / axes) ** 2), x[0] * x[1]])

    jac = Counted(fwdad.jacfwd(inside))
    hess = Counted(lambda x, v: fwdad.hessian(lambda x: v @ inside(x), x))
    result = minimize(
        volume,
        [0.3, 0.5, 0.7],
        method="trust-constr",
        jac=fwdad.grad(volume),
        hess=lambda x: fwdad.hessian(volume, x),
        bounds=Bounds(0.0, np.inf),
        constraints=NonlinearConstraint(inside, [-np.inf, 0.0], [1.0, 5.0], jac=jac, hess=hess),
        options={"gtol": 1e-10, "xtol": 1e-12},
    )

    assert_allclose(result.x, axes / np.sqrt(3), rtol=1e-6)
    assert jac.calls >= result.constr_njev[0] > 0
    assert hess.calls >= result.constr_nhev[0] > 0
    x = np.array([0.3, 0.5, 0.7])
    assert_allclose(jac(x), [2 * x / axes**2, [x[1], x[0], 0.0]], rtol=1e-14)
    assert_allclose(
        hess(x, np.array([1.0, 3.0])),
        np.diag(2 / axes**2) + 3 * np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
        rtol=1e-14,
    )
