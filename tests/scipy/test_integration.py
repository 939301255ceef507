"""``solve_ivp`` and ``solve_bvp``: reference solutions, options, and derivatives through them."""

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose

import fwdad
from fwdad import scipy as door
from fwdad.errors import DualLeakError, MissingRuleError, NotHolomorphicError
from fwdad.examples import pollu
from fwdad.scipy import choice
from fwdad.scipy.derivatives import PointwiseJacobian
from tests.differences import central_differences
from tests.scipy.problems import (
    HIRES_END,
    HIRES_START,
    ROBERTSON_END,
    counted,
    hires,
    robertson,
    robertson_jac,
)

STIFF = ["Radau", "BDF", "LSODA"]


@pytest.mark.slow_cases("Radau", "compiled-BDF")
@pytest.mark.parametrize("method", STIFF)
def test_hires(method, way):
    tight = {"rtol": 1e-9, "atol": 1e-12}
    f, runs = counted(hires)
    found = door.solve_ivp(f, (0, 321.8122), HIRES_START, method, **tight)
    assert_allclose(found.y[:, -1], HIRES_END, rtol=1e-4)
    differences, runs_of_differences = counted(hires)
    scipy.integrate.solve_ivp(differences, (0, 321.8122), HIRES_START, method, **tight)
    assert found.njev > 0
    if way == "as it is":
        assert len(runs) < len(runs_of_differences)


@pytest.mark.slow_cases("Radau")
@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_robertson(method):
    tight = {"rtol": 1e-8, "atol": 1e-18}
    found = door.solve_ivp(robertson, (0, 1e11), [1, 0, 0], method, **tight)
    assert_allclose(found.y[:, -1], ROBERTSON_END, rtol=1e-4)
    expected = scipy.integrate.solve_ivp(
        robertson, (0, 1e11), [1.0, 0, 0], method, jac=robertson_jac, **tight
    )
    assert (found.nfev, found.njev) == (expected.nfev, expected.njev)


def test_pollu():
    found = door.solve_ivp(pollu.pollu, (0, 60), pollu.Y_START, "BDF", rtol=1e-8, atol=1e-12)
    assert_allclose(found.y[:, -1], pollu.Y_END, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853", *STIFF])
def test_every_method(method, capsys):
    """Driven by t; from (1, 0) the exact solution is (cos t, sin t)."""

    def forced(t, y, pull):
        return [-pull * (y[0] - np.cos(t)) - np.sin(t), -pull * (y[1] - np.sin(t)) + np.cos(t)]

    hit = lambda t, y, pull: y[0] - 0.5  # noqa: E731
    found = door.solve_ivp(
        forced, (0, 2), [1, 0], method, args=(10.0,), events=hit, dense_output=True,
        t_eval=np.linspace(0, 2, 5), rtol=1e-8, atol=1e-10, verbose=1,
    )  # fmt: skip
    assert_allclose(found.y, [np.cos(found.t), np.sin(found.t)], atol=1e-6)
    assert_allclose(found.t_events[0], [np.pi / 3], atol=1e-6)
    assert_allclose(found.sol(1.0), [np.cos(1), np.sin(1)], atol=1e-6)
    assert ("fwdad: jac " in capsys.readouterr().out) == (method in STIFF)
    assert type(found).__name__ == "OdeResult"


def test_classes_vectorised_and_given_jacobians(capsys):
    f = lambda t, y: np.array([-50 * y[0] + y[1], -(y[1] ** 2)])  # noqa: E731
    jac = lambda t, y: [[-50, 1], [0, -2 * y[1]]]  # noqa: E731
    expected = scipy.integrate.solve_ivp(f, (0, 2), [1.0, 1], "Radau", jac=jac).y[:, -1]
    for options in (
        {"method": scipy.integrate.Radau},
        {"method": "Radau", "vectorized": True},
        {"method": "Radau", "jac": jac},
    ):
        found = door.solve_ivp(f, (0, 2), [1, 1], verbose=1, **options)
        assert_allclose(found.y[:, -1], expected, rtol=1e-12)
    said = capsys.readouterr().out.splitlines()
    assert [line.startswith("fwdad: jac is a dense matrix") for line in said] == [True, True, False]
    found = door.solve_ivp(f, (0, 2), [1, 1], "Radau", jac="2-point")
    assert found.nfev == scipy.integrate.solve_ivp(f, (0, 2), [1, 1], "Radau").nfev
    door.solve_ivp(f, (0, 2), [1, 1], "RK45", jac="2-point")  # of which SciPy would warn
    door.solve_ivp(f, (0, 2), [1, 1], "BDF", jac_sparsity=[[1, 1], [0, 1]], verbose=1)
    door.solve_ivp(f, (0, 2), [1, 1], "LSODA", lband=0, uband=1, verbose=1)
    assert capsys.readouterr().out.count("jac is by SciPy's finite differences") == 2


@pytest.mark.every(5)
@pytest.mark.parametrize("method", ["RK45", *STIFF])
@pytest.mark.parametrize("t_span", [(0, 1), (0.0, 1.0), (np.float32(0), np.int64(1))])
def test_a_right_hand_side_is_compiled_once(method, t_span, monkeypatch):
    """SciPy passes t as a Python float and as one of NumPy's, in turn."""
    made = []
    monkeypatch.setattr(choice, "jit", lambda f: made.append(fwdad.jit(f)) or made[-1])
    k = 1e4 if method != "RK45" else 1.0
    driven = lambda t, y, k: [k * (np.cos(t) - y[0] ** 3), y[0] - y[1]]  # noqa: E731
    compiled = fwdad.jit(driven)
    found = door.solve_ivp(compiled, t_span, [2, 0], method, args=(k,), rtol=1e-6)
    assert compiled.traces == 1
    assert [jac.traces for jac in made] == ([] if method == "RK45" else [1])
    expected = scipy.integrate.solve_ivp(driven, (0, 1), [2.0, 0], "Radau", args=(k,), rtol=1e-8)
    assert_allclose(found.y[:, -1], expected.y[:, -1], rtol=1e-3)


def test_complex(way):
    f = lambda t, y: 1j * y**2  # noqa: E731
    found = door.solve_ivp(f, (0, 1), [1 + 0j], "BDF", rtol=1e-9, atol=1e-11)
    assert_allclose(found.y[:, -1], [1 / (1 - 1j)], rtol=1e-6)
    with pytest.raises(NotHolomorphicError):
        door.solve_ivp(lambda t, y: np.abs(y), (0, 1), [1 + 0j], "BDF")


@pytest.mark.slow_cases("Radau")
@pytest.mark.parametrize("method", ["RK45", *STIFF])
def test_derivatives_through_solve_ivp(method):
    """The solution of y' = -k y² with y(0) = 1 has y(1) = 1 / (1 + k)."""

    def end(k):
        f = lambda t, y: -k * y**2  # noqa: E731
        return door.solve_ivp(f, (0, 1), [1.0], method, rtol=1e-9, atol=1e-11).y[0, -1]

    assert_allclose(fwdad.derivative(end, 2.0), -1 / 9, rtol=1e-5)
    assert_allclose(fwdad.grad(end)(2.0), -1 / 9, rtol=1e-5)

    def end_of(start, k):
        options = {"args": (k,), "rtol": 1e-9, "atol": 1e-11}
        return door.solve_ivp(lambda t, y, k: -k * y**2, (0, 1), start, method, **options).y[:, -1]

    J = fwdad.jacobian(end_of, np.array([1.0, 2.0]), args=(2.0,))
    assert_allclose(J, np.diag([1 / 9, 1 / 25]), atol=1e-5)


def bratu(x, y):
    return np.array([y[1], -np.exp(y[0])])


def clamped(ya, yb):
    return np.array([ya[0], yb[0]])


MESH = np.linspace(0, 1, 5)


@pytest.mark.slow_cases("compiled-bratu")
@pytest.mark.parametrize("fun", [bratu, lambda x, y: [y[1], -np.exp(y[0])]])
def test_bratu(fun, way):
    f, runs = counted(fun)
    found = door.solve_bvp(f, clamped, MESH, np.zeros((2, 5)), tol=1e-9)
    differences, runs_of_differences = counted(fun)
    expected = scipy.integrate.solve_bvp(differences, clamped, MESH, np.zeros((2, 5)), tol=1e-9)
    theta = 1.5
    for _ in range(200):
        theta = np.sqrt(2) * np.cosh(theta / 4)
    assert_allclose(found.sol(0.5)[0], 2 * np.log(np.cosh(theta / 4)), rtol=1e-9)
    assert type(found) is type(expected)
    assert found.niter <= expected.niter
    if way == "as it is":
        assert len(runs) < len(runs_of_differences)


@pytest.mark.slow_cases("compiled")
def test_eigenvalue(way, capsys):
    """The equation y'' = -p² y with y(0) = y(1) = 0 and y'(0) = p has p = π, among others."""
    found = door.solve_bvp(
        lambda x, y, p: np.vstack([y[1], -(p[0] ** 2) * y[0]]),
        lambda ya, yb, p: [ya[0], yb[0], ya[1] - p[0]],
        MESH, np.array([np.sin(3 * MESH), 3 * np.cos(3 * MESH)]), p=[3], tol=1e-8, verbose=1,
    )  # fmt: skip
    assert_allclose(found.p, [np.pi], rtol=1e-8)
    said = capsys.readouterr().out
    assert said.count("compiled by Numba") == (2 if way == "compiled" else 0)


@pytest.mark.parametrize("compiled", [False, True])
def test_pointwise_jacobians(compiled):
    """Of y and p at each point of a mesh, beside those of each point alone."""

    def fun(x, y, p):
        return [y[1] * p[2], -(p[0] ** 2) * y[0] * p[1] + x]

    made = PointwiseJacobian(fun, parameters=True)
    jac = fwdad.jit(made.to_compile(), backend="numpy") if compiled else made
    for m in (4, 7):
        x, y = np.linspace(0, 1, m), np.random.default_rng(m).normal(size=(2, m))
        p = np.array([3.0, 2.0, 0.5])
        by_y, by_p = jac(x, y, p)
        assert (by_y.shape, by_p.shape) == ((2, 2, m), (2, 3, m))
        for k in range(m):
            at = lambda z, t=x[k]: np.array(fun(t, z[:2], z[2:]))  # noqa: E731
            both = central_differences(at, np.concatenate([y[:, k], p]))
            assert_allclose(np.hstack([by_y[..., k], by_p[..., k]]), both, atol=1e-7)


def test_singular_term_complex_and_given_jacobians():
    lane_emden = lambda x, y: np.array([y[1], -(y[0] ** 5)])  # noqa: E731
    x = np.linspace(0, 1, 5)
    start = np.array([np.sqrt(3 / 4) * np.ones(5), 1e-4 * np.ones(5)])
    ends = lambda ya, yb: np.array([ya[1], yb[0] - np.sqrt(3 / 4)])  # noqa: E731
    found = door.solve_bvp(lane_emden, ends, x, start, S=np.array([[0, 0], [0, -2.0]]), tol=1e-8)
    assert_allclose(found.sol(0.3)[0], 1 / np.sqrt(1 + 0.3**2 / 3), rtol=1e-7)
    wave = lambda x, y: np.array([1j * y[0]])  # noqa: E731
    start = lambda ya, yb: np.array([ya[0] - 1])  # noqa: E731
    given = {"fun_jac": lambda x, y: np.full((1, 1, len(x)), 1j),
             "bc_jac": lambda ya, yb: (np.ones((1, 1)), np.zeros((1, 1)))}  # fmt: skip
    found = door.solve_bvp(wave, start, x, np.ones((1, 5), complex))
    expected = scipy.integrate.solve_bvp(wave, start, x, np.ones((1, 5), complex), **given)
    assert_allclose(found.y, expected.y, rtol=1e-12)
    by_hand, calls = counted(lambda x, y: np.array([[0 * x, 0 * x + 1], [-np.exp(y[0]), 0 * x]]))
    for fun_jac in (by_hand, "2-point"):
        found = door.solve_bvp(bratu, clamped, MESH, np.zeros((2, 5)), fun_jac=fun_jac)
        assert found.success
    assert len(calls) > 0


def through_bytes(x):
    """The same numbers by way of their bytes, which carry no derivative."""
    x = np.asarray(x, float)
    return np.frombuffer(x.tobytes()).reshape(x.shape)


def test_what_has_no_derivative_says_how_to_go_on():
    def decay(t, y):
        return -1e3 * through_bytes(y)

    for method in STIFF:
        with pytest.raises((MissingRuleError, DualLeakError)) as caught:
            door.solve_ivp(decay, (0, 1), [1], method)
        assert caught.value.filename == __file__
        assert caught.value.__notes__ == [
            "fwdad.scipy.solve_ivp fills in jac. jac='2-point' takes finite differences instead"
        ]
        found = door.solve_ivp(decay, (0, 1), [1], method, jac="2-point", rtol=1e-8, atol=1e-8)
        assert_allclose(found.y[0, -1], 0, atol=1e-5)
    with pytest.raises((MissingRuleError, DualLeakError)) as caught:
        door.solve_bvp(lambda x, y: decay(x, y), clamped, MESH, np.zeros((2, 5)))
    assert "fun_jac='2-point'" in caught.value.__notes__[0]
