"""Derivatives of roots: against the implicit function theorem, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

optimize = pytest.importorskip("scipy.optimize")

# t³ + a t = b has the root 1 at a = 2, b = 3, and the first guess 1 is that root: an iteration from
# there ends at once, and has no derivative.
X = np.array([2.0, 3.0])


def cubic(t, a, b):
    return t**3 + a * t - b


# t is the root: with s = 3 t² + a, t_a = -t / s and t_b = 1 / s; once more for the second ones.
FIRST = np.array([-1.0, 1.0]) / 5
SECOND = np.empty((2, 2))
SECOND[1, 1] = -6 / 5**2 * FIRST[1]
SECOND[0, 1] = SECOND[1, 0] = -(6 * FIRST[0] + 1) / 5**2
SECOND[0, 0] = -FIRST[0] / 5 + (6 * FIRST[0] + 1) / 5**2

FINDERS = {
    "newton": lambda x: optimize.newton(
        lambda t: cubic(t, *x), 1.0, fprime=lambda t: 3 * t**2 + x[0]
    ),
    "secant": lambda x: optimize.newton(lambda t: cubic(t, *x), 0.5),
    "newton, args": lambda x: optimize.newton(cubic, 0.5, args=(x[0], x[1])),
    "halley": lambda x: optimize.newton(
        lambda t: cubic(t, *x), 1.0, lambda t: 3 * t**2 + x[0], fprime2=lambda t: 6 * t
    ),
    "newton, report": lambda x: (
        optimize.newton(cubic, 0.5, args=tuple(x), full_output=True)[1].root
    ),
    "brentq": lambda x: optimize.brentq(lambda t: cubic(t, *x), 0.0, 3.0),
    "brenth": lambda x: optimize.brenth(cubic, 0.0, 3.0, args=(x[0], x[1])),
    "ridder": lambda x: optimize.ridder(lambda t: cubic(t, *x), 0.0, 1 + x[0]),
    "bisect": lambda x: optimize.bisect(lambda t: cubic(t, *x), 0.0, 3.0, full_output=True)[0],
    "toms748": lambda x: optimize.toms748(lambda t: cubic(t, *x), 0.0, 3.0),
    "root_scalar": lambda x: optimize.root_scalar(cubic, args=tuple(x), bracket=(0.0, 3.0)).root,
    "root_scalar, slope": lambda x: (
        optimize.root_scalar(lambda t: (cubic(t, *x), 3 * t**2 + x[0]), fprime=True, x0=1.0).root
    ),
    "fsolve": lambda x: optimize.fsolve(lambda t: cubic(t, *x), 0.5)[0],
    "root": lambda x: optimize.root(lambda t: [cubic(t[0], *x)], [0.5]).x[0],
}


@pytest.mark.parametrize("name", FINDERS)
@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_the_derivative_of_a_root(name, chunk):
    assert_allclose(fwdad.jacobian(FINDERS[name], X, chunk=chunk), FIRST, rtol=1e-9)


@pytest.mark.parametrize("name", FINDERS)
def test_the_gradient_of_a_root(name):
    y, slope = fwdad.value_and_grad(FINDERS[name])(X)
    assert y == FINDERS[name](X)
    assert_allclose(slope, FIRST, rtol=1e-9)


@pytest.mark.parametrize("name", ["newton", "secant", "brentq", "root_scalar", "fsolve"])
def test_second_derivatives_of_a_root(name):
    f = FINDERS[name]
    assert_allclose(fwdad.hessian(f, X), SECOND, rtol=1e-8)
    nested = fwdad.jacobian(lambda x: fwdad.jacobian(f, x), X)
    assert_allclose(nested, SECOND, rtol=1e-8)


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize("name", ["newton", "secant", "newton, args"])
def test_newton_under_jit(name):
    f = FINDERS[name]
    assert_allclose(fwdad.jit(f)(X), f(X), rtol=1e-15)
    assert_allclose(fwdad.jit(fwdad.grad(f))(X), FIRST, rtol=1e-9)
    assert_allclose(fwdad.jit(lambda x: fwdad.jacobian(f, x))(X), FIRST, rtol=1e-9)


def test_newton_of_several_numbers():
    def f(x):
        return optimize.newton(lambda t: t**3 + x * t - 3, np.ones(3))

    x = np.array([1.0, 2.0, 3.0])
    t = f(x)
    expected = np.diag(-t / (3 * t**2 + x))
    for chunk in (1, 2, 3):
        assert_allclose(fwdad.jacobian(f, x, chunk=chunk), expected, rtol=1e-9, atol=1e-12)


def test_a_system():
    def equations(t, x):
        return np.array([t[0] ** 2 + x[0] * t[1] - 3, t[0] * t[1] - x[1]])

    def f(x):
        return optimize.fsolve(equations, np.array([1.5, 0.5]), args=(x,))

    def g(x):
        return optimize.root(equations, np.array([1.5, 0.5]), args=(x,), tol=1e-13).x

    x = np.array([2.0, 0.9])
    t = f(x)
    by_t = np.array([[2 * t[0], x[0]], [t[1], t[0]]])
    by_x = np.array([[t[1], 0.0], [0.0, -1.0]])
    expected = -np.linalg.solve(by_t, by_x)
    for chunk in (1, 2, 3):
        assert_allclose(fwdad.jacobian(f, x, chunk=chunk), expected, rtol=1e-8)
        assert_allclose(fwdad.jacobian(g, x, chunk=chunk), expected, rtol=1e-8)
    assert_allclose(fwdad.jacobian(f, x, mode="reverse"), expected, rtol=1e-8)


def test_a_root_of_what_carries_no_derivative_is_a_number():
    y, y_dot = fwdad.jvp(lambda x: x * optimize.brentq(lambda t: t**2 - 2, 0.0, 2.0), 3.0, 1.0)
    assert_allclose([y, y_dot], [3 * np.sqrt(2), np.sqrt(2)])


def test_a_double_root_has_no_derivative():
    def f(x):
        return optimize.newton(lambda t: x * t**2, 0.0, fprime=lambda t: 2 * x * t + 1.0)

    with pytest.raises(fwdad.errors.UndefinedDerivativeError, match="own derivative is 0"):
        fwdad.jvp(f, 2.0, 1.0)

    def g(x):
        return optimize.fsolve(lambda t: np.array([t[0] - t[1], t[0] - t[1]]) * x, np.zeros(2))

    with pytest.raises(fwdad.errors.UndefinedDerivativeError, match="singular"):
        fwdad.jvp(g, 2.0, 1.0)


def test_what_has_not_converged_has_no_derivative():
    def f(x):
        found = optimize.newton(lambda t: t**2 + x, 1.5, maxiter=5, full_output=True, disp=False)
        return found[0]

    with pytest.raises(fwdad.errors.UndefinedDerivativeError, match="has not converged"):
        fwdad.jvp(f, 2.0, 1.0)


SCALES = np.array([1e4, 1e-5])


def scaled(u, t):
    """Equations for x = u / SCALES, in other units: x0² = t and x1 = t x0, at (√t, t√t)."""
    x = u / SCALES
    return np.array([0.1 * (x[0] ** 2 - t), 10 * (x[1] - t * x[0])])


@pytest.mark.parametrize(
    "solve",
    [
        lambda t: optimize.root(scaled, 1.1 * SCALES, args=(t,), tol=1e-17),
        lambda t: optimize.root(scaled, 1.1 * SCALES, args=(t,), method="lm", tol=1e-17),
        lambda t: optimize.root(lambda u: scaled(u, t), 1.1 * SCALES, tol=0.0),
    ],
)
@pytest.mark.parametrize("t", [1.7, 2.0, 2.3])
def test_a_root_at_which_the_solver_gives_up(solve, t):
    """With no digit to gain SciPy says that it makes no progress, at a root."""
    expected = np.array([0.5 * t**-0.5, 1.5 * t**0.5]) * SCALES
    assert_allclose(fwdad.jacobian(lambda t: solve(t).x, t), expected, rtol=1e-12)
    assert_allclose(fwdad.grad(lambda t: solve(t).x[1])(t), expected[1], rtol=1e-12)


def test_that_solvers_do_give_up_at_a_root():
    found = [optimize.root(scaled, 1.1 * SCALES, args=(t,), tol=1e-17) for t in (1.7, 2.0, 2.3)]
    assert not all(report.success for report in found)


@pytest.mark.parametrize(
    "solve",
    [
        lambda t: optimize.root(lambda x: x**2 + t, [1.0]).x[0],  # has no root
        lambda t: optimize.root(scaled, SCALES, args=(t,), options={"maxfev": 5}).x[0],
        lambda t: optimize.fsolve(lambda x: np.exp(x) - t, [9.0], maxfev=4)[0],
    ],
)
@pytest.mark.filterwarnings("ignore:The number of calls:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:The iteration is not:RuntimeWarning")
def test_where_a_solver_gives_up_far_from_a_root(solve):
    with pytest.raises(fwdad.errors.UndefinedDerivativeError, match="not a root") as caught:
        fwdad.jacobian(solve, 2.0)
    assert "moves it by" in str(caught.value)


BRACKETS = {
    **{
        name: lambda f, name=name: getattr(optimize, name)(f, 0.0, 3.0)
        for name in ("brentq", "brenth", "ridder", "bisect", "toms748")
    },
    "root_scalar": lambda f: optimize.root_scalar(f, bracket=(0.0, 3.0)).root,
    "options": lambda f: (
        optimize.root_scalar(f, method="bisect", bracket=(0.0, 3.0), options={"xtol": 1e-3}).root
    ),
}


@pytest.mark.parametrize("name", BRACKETS)
def test_a_change_of_sign_without_a_root(name):
    """The function jumps over 0 at 1, whatever t is."""
    jump = lambda t: lambda x: x - t + np.where(x > 1, 1.5, -1.5)  # noqa: E731
    find = BRACKETS[name]
    assert_allclose(find(jump(1.0)), 1.0, atol=1e-3)
    with pytest.raises(fwdad.errors.UndefinedDerivativeError, match="it jumps there"):
        fwdad.derivative(lambda t: find(jump(t)), 1.0)
    steep = lambda t: lambda x: np.exp(9 * (x - t)) - 1  # noqa: E731
    assert_allclose(fwdad.derivative(lambda t: find(steep(t)), 1.3), 1.0, rtol=0.02)


MINIMA = {
    "minimize": lambda x: optimize.minimize(lambda t: np.sum((t - x) ** 2), np.zeros(2)).x,
    "minimize_scalar": lambda x: (
        optimize.minimize_scalar(lambda t: (t**2 - x[0]) ** 2 + x[1] * t).x
    ),
    "least_squares": lambda x: optimize.least_squares(lambda t: cubic(t, *x), [1.0]).x,
    "kwargs": lambda x: optimize.least_squares(cubic, [0.5], args=(x[0],), kwargs={"b": x[1]}).x,
    "bounds": lambda x: optimize.minimize(lambda t: t @ t, [9.0], bounds=[(x[0], 9.0)]).x,
    "scalar bounds": lambda x: (
        optimize.minimize_scalar(lambda t: t, bounds=(x[0], 9.0), method="bounded").x
    ),
    "hessp": lambda x: (
        optimize.minimize(
            lambda t, a: np.sum((t - a) ** 2),
            np.zeros(2),
            args=(x,),
            method="Newton-CG",
            jac=lambda t, a: 2 * (t - a),
            hessp=lambda t, p, a: 2 * p,
        ).x
    ),
    "golden": lambda x: optimize.golden(lambda t: (t - x[0]) ** 2, brack=(0, 1)),
    "brent": lambda x: optimize.brent(quartic, args=(x,), full_output=True)[0],
    "fminbound": lambda x: optimize.fminbound(quartic, 0, 9, args=(x,)),
    "fminbound's bounds": lambda x: optimize.fminbound(lambda t: t**2, x[0], 9.0),
    "fmin": lambda x: optimize.fmin(lambda t: (t[0] - x[0]) ** 2, [0.2], disp=0),
    "fmin_powell": lambda x: optimize.fmin_powell(lambda t: (t[0] - x[0]) ** 2, [0.2], disp=0),
    "fmin_bfgs": lambda x: optimize.fmin_bfgs(lambda t: (t[0] - x[0]) ** 2, [0.2], disp=0),
    "fmin_ncg": lambda x: optimize.fmin_ncg(
        lambda t: np.sum((t - x) ** 2), np.zeros(2), lambda t: 2 * (t - x), disp=0
    ),
    "Nelder-Mead": lambda x: (
        optimize.minimize(lambda t: (t[0] - x[0]) ** 2, [0.2], method="Nelder-Mead").fun
    ),
    "leastsq": lambda x: optimize.leastsq(lambda t: t - x, [0.2, 0.3])[0],
    "brute": lambda x: optimize.brute(lambda t: (t - x[0]) ** 2, [(0, 3)], Ns=5, finish=None),
    "differential_evolution": lambda x: (
        optimize.differential_evolution(quartic, [(0, 3)], args=(x,), seed=1, polish=False).x
    ),
    "basinhopping": lambda x: (
        optimize.basinhopping(quartic, [0.2], niter=1, minimizer_kwargs={"args": (x,)}, seed=1).x
    ),
}


def quartic(t, x):
    return np.sum((t**2 - x[0]) ** 2 + x[1] * t)


@pytest.mark.parametrize("name", MINIMA)
@pytest.mark.parametrize("way", [fwdad.jacobian, lambda f, x: fwdad.vjp(f, x)[0]])
def test_minima_have_no_derivative_through_their_iterations(name, way):
    with pytest.raises(fwdad.errors.MissingRuleError, match="root of the gradient"):
        way(MINIMA[name], X)


@pytest.mark.parametrize("name", ["golden", "fmin", "brent", "minimize_scalar", "brute"])
def test_minima_have_no_derivative_under_jit(name):
    f = MINIMA[name]
    assert_allclose(fwdad.jit(f)(X), f(X), rtol=1e-15)
    for derivative in (fwdad.jacrev, fwdad.jacfwd):
        with pytest.raises(fwdad.errors.MissingRuleError, match="root of the gradient"):
            fwdad.jit(derivative(f))(X)


def test_a_search_whose_results_share_memory():
    """Its comparisons would leave a derivative of 0; for values, Python runs it."""
    f = MINIMA["Nelder-Mead"]
    with pytest.raises(fwdad.errors.MissingRuleError, match="root of the gradient"):
        fwdad.jit(fwdad.jacrev(f))(X)
    assert fwdad.jit(f)(X) == f(X)


def test_a_minimum_of_what_carries_no_derivative_is_a_number():
    def f(x):
        by_bounds = optimize.minimize_scalar(
            lambda t: (t - 2) ** 2, bounds=(0, 5), method="bounded"
        )
        return x * by_bounds.x * optimize.minimize(lambda t: (t[0] - 3) ** 2, x).x[0]

    assert_allclose(fwdad.derivative(f, 1.5), 6, rtol=1e-5)


def test_a_minimum_as_a_root_of_the_gradient():
    """As the message says it: t = x / (1 + x) by hand."""

    def f(x):
        def loss(t):
            return 0.5 * np.sum((t - x) ** 2 + t**2 * x)

        found = optimize.root(lambda t: fwdad.jacobian(loss, t), 0.4 * np.ones(2))
        return found.x

    x = np.array([2.0, 3.0])
    expected = np.diag(1 / (1 + x) ** 2)
    assert_allclose(fwdad.jacobian(f, x), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("derivative", [fwdad.derivative, fwdad.grad])
def test_what_a_function_stores_while_its_root_is_found(derivative):
    """It is a plain number there, as often as a plain call stores it, and no constant."""
    kept = []

    def f(a, *, read):
        kept.clear()

        def g(x):
            kept.append(a * x)
            return x**2 - a

        root = optimize.brentq(g, 0.1, 10.0)
        return root + (kept[-1] if read else 0.0)

    f(2.0, read=False)
    calls = len(kept)
    assert_allclose(derivative(lambda a: f(a, read=False))(2.0), 0.5 / np.sqrt(2.0), rtol=1e-12)
    assert len(kept) == calls
    with pytest.raises(fwdad.errors.StaleValueError, match="by a function that a solver ran"):
        derivative(lambda a: f(a, read=True))(2.0)


@pytest.mark.parametrize("derivative", [fwdad.derivative, fwdad.grad])
def test_warm_starts_of_roots_inside_roots(derivative):
    def f(a):
        warm = [1.0]

        def g(x):
            warm[0] = optimize.newton(lambda z: z**3 - x - a, warm[0])
            return warm[0] - a

        return optimize.brentq(g, -10.0, 100.0)

    # z = a, so x = a³ - a
    assert_allclose(derivative(f)(1.5), 3 * 1.5**2 - 1, rtol=1e-8)


def test_newton_from_an_array_of_one():
    """SciPy solves for it as for a number."""

    def f(p):
        return optimize.newton(lambda h: h**3 - p, x0=p / 2 + 0.5)[0]

    p = np.array([2.0])
    assert_allclose(fwdad.grad(f)(p), p ** (-2 / 3) / 3, rtol=1e-12)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(p), p ** (-2 / 3) / 3, rtol=1e-12)
