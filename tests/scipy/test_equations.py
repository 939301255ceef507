"""``root``, ``fsolve`` and ``root_scalar``, and derivatives through them."""

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose

import fwdad
from fwdad import scipy as door
from fwdad.errors import DualLeakError, MissingRuleError, UntraceableError
from fwdad.scipy import filling
from tests.scipy.problems import counted, powell_singular


def bratu(u, strength):
    """Bratu's problem u'' + λ exp(u) = 0 on as many points as u has, 0 at both ends."""
    h = 1.0 / (u.size + 1)
    residual = strength * np.exp(u)
    residual -= 2 * u / h**2
    residual[1:] += u[:-1] / h**2
    residual[:-1] += u[1:] / h**2
    return residual


def bratu_exactly(x, strength):
    theta = 1.5
    for _ in range(200):
        theta = np.sqrt(2 * strength) * np.cosh(theta / 4)
    return -2 * np.log(np.cosh((x - 0.5) * theta / 2) / np.cosh(theta / 4))


@pytest.mark.every(3, of="compiled")
@pytest.mark.parametrize("n", [9, 39])
@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_bratu(method, n, way):
    f, runs = counted(bratu)
    found = door.root(f, np.zeros(n), args=(1.0,), method=method, tol=1e-12)
    assert_allclose(found.x, bratu_exactly(np.arange(1, n + 1) / (n + 1), 1.0), atol=0.02 / n)
    differences, runs_of_differences = counted(bratu)
    expected = scipy.optimize.root(differences, np.zeros(n), args=(1.0,), method=method, tol=1e-12)
    assert type(found) is type(expected)
    assert_allclose(found.x, expected.x, rtol=1e-7)
    if way == "as it is":
        assert len(runs) < len(runs_of_differences)


@pytest.mark.parametrize("method", filling.METHODS["root"])
def test_every_method(method, capsys):
    f = lambda x: [x[0] + 0.1 * x[1] ** 2 - 1.1, x[1] + 0.1 * x[0] ** 2 - 1.1]  # noqa: E731
    g = (lambda x: np.array(f(x))) if method not in ("hybr", "lm") else f
    found = door.root(g, [0.5, 0.5], method=method, verbose=1)
    expected = scipy.optimize.root(g, [0.5, 0.5], method=method)
    assert_allclose(found.x, expected.x, rtol=1e-6)
    assert found.success == expected.success
    out = capsys.readouterr().out
    assert ("fwdad: jac is a dense matrix" in out) == (method in ("hybr", "lm"))


def test_powell_singular():
    found = door.root(powell_singular, [3, -1, 0, 1], method="lm", tol=1e-15)
    assert np.max(np.abs(found.x)) < 1e-6


def test_layouts_and_given_slopes(way):
    f = lambda x: [x[0] * x[1] - 2, x[0] + x[1] - 3]  # noqa: E731
    by_columns = lambda x: [[x[1], 1], [x[0], 1]]  # noqa: E731
    for options in ({}, {"col_deriv": 1}):
        assert_allclose(door.root(f, [0, 5], options=options).x, [1, 2])
        assert_allclose(door.fsolve(f, [0, 5], **options), [1, 2])
    assert_allclose(door.fsolve(f, [0, 5], fprime=by_columns, col_deriv=1), [1, 2])
    both = lambda x: (f(x), np.transpose(by_columns(x)))  # noqa: E731
    assert_allclose(door.root(both, [0, 5], jac=True).x, [1, 2])
    _, info, flag, message = door.fsolve(f, [0, 5], full_output=True)
    assert (flag, info["njev"] > 0, message) == (1, True, "The solution converged.")
    for jac in ("2-point", False):
        found = door.root(f, [0.0, 5], jac=jac)
        assert found.nfev == scipy.optimize.root(f, [0.0, 5]).nfev
    assert_allclose(door.fsolve(f, [0, 5], fprime="2-point"), [1, 2])
    assert_allclose(door.fsolve(f, [0, 5], epsfcn=1e-12), [1, 2])


def cubic(x, a=2.0):
    return x**3 - a


def test_root_scalar(way):
    for options, name in (
        ({"x0": 1}, "newton"),
        ({"x0": 1, "method": "halley"}, "halley"),
        ({"x0": 1, "method": "halley", "fprime": lambda x: 3 * x**2}, "halley"),
        ({"x0": 1, "x1": 2}, "secant"),
        ({"bracket": (0, 2)}, "brentq"),
        ({"x0": 1, "fprime": "2-point", "method": "newton"}, "newton"),
    ):
        found = door.root_scalar(cubic, **options)
        assert_allclose(found.root, np.cbrt(2.0), rtol=1e-9)
        assert found.method == name
    newton = scipy.optimize.root_scalar(cubic, x0=1.0, fprime=lambda x: 3 * x**2)
    found = door.root_scalar(cubic, x0=1)
    assert found.iterations == newton.iterations
    assert_allclose(door.root_scalar(cubic, args=(5.0,), x0=1).root, np.cbrt(5.0))
    all_three = lambda x: (cubic(x), 3 * x**2, 6 * x)  # noqa: E731
    found = door.root_scalar(all_three, x0=1, fprime=True, fprime2=True, method="halley")
    assert_allclose(found.root, np.cbrt(2.0))
    two = lambda x: (cubic(x), 3 * x**2)  # noqa: E731
    assert_allclose(door.root_scalar(two, x0=1, fprime=True).root, np.cbrt(2.0))
    found = door.root_scalar(two, x0=1, fprime=True, method="halley")
    assert_allclose(found.root, np.cbrt(2.0))
    assert_allclose(door.root_scalar(lambda z: z**2 + 1, x0=1 + 1j).root, 1j, atol=1e-9)


def system(x, t):
    return np.array([x[0] ** 2 - t, x[1] - x[0] * t])


@pytest.mark.parametrize(
    "solved",
    [
        lambda t: door.root(system, [1, 1], args=(t,)).x,
        lambda t: door.root(lambda x: system(x, t), [1, 1], method="lm").x,
        lambda t: door.root(system, [1, 1], args=(t,), tol=1e-17).x,  # it gives up at the root
        lambda t: door.fsolve(system, [1, 1], args=(t,)),
        lambda t: np.array([door.root_scalar(lambda x: x**2 - t, x0=1).root, t**1.5]),
        lambda t: np.array([door.root_scalar(lambda x: x**2 - t, bracket=(0, 9)).root, t**1.5]),
    ],
)
def test_derivatives_through_a_root(solved):
    """The root is (√t, t√t)."""
    t = 2.0
    first = np.array([0.5 * t**-0.5, 1.5 * t**0.5])
    assert_allclose(fwdad.jacobian(solved, t), first, rtol=1e-9)
    assert_allclose(fwdad.grad(lambda t: solved(t)[1])(t), first[1], rtol=1e-9)
    second = fwdad.derivative(fwdad.grad(lambda t: solved(t)[0]), t)
    assert_allclose(second, -0.25 * t**-1.5, rtol=1e-9)


def test_a_solver_is_not_traced():
    with pytest.raises(UntraceableError, match="a solver of SciPy is not traced"):
        fwdad.jit(lambda t: door.root(system, [1, 1], args=(t,)).x)(2.0)


def through_bytes(x):
    """The same numbers by way of their bytes, which carry no derivative."""
    x = np.asarray(x, float)
    return np.frombuffer(x.tobytes()).reshape(x.shape)


def squares(x):
    return through_bytes(x) ** 2


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_what_has_no_derivative_says_how_to_go_on(method):
    with pytest.raises((MissingRuleError, DualLeakError)) as caught:
        door.root(squares, [1, 2, 3, 4], method=method)
    assert caught.value.filename == __file__
    assert "tobytes" in caught.value.text
    assert caught.value.__notes__ == [
        "fwdad.scipy.root fills in jac. jac='2-point' takes finite differences instead"
    ]
    assert door.root(squares, [1.0, 2, 3, 4], method=method, jac="2-point").nfev > 0
