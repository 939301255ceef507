"""``minimize``: every method, against SciPy with derivatives written by hand."""

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from scipy.optimize import BFGS, SR1, rosen, rosen_der, rosen_hess, rosen_hess_prod

from fwdad import scipy as door
from fwdad.errors import DualLeakError, MissingRuleError
from fwdad.scipy import filling
from tests.scipy.problems import HOCK_SCHITTKOWSKI, counted


def valley(x, steep=100.0):
    return np.sum(steep * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


START = [-1, 2, 1]  # ints
BY_HAND = {"jac": rosen_der, "hess": rosen_hess, "hessp": rosen_hess_prod}


def derivatives_of(method, *names):
    """What the method takes, by hand."""
    taken = filling.taken_by("minimize", method)
    found = {"jac"} if "jac" in taken else set()
    if "hess" in taken or ("hess or hessp" in taken and "hessp" not in names):
        found.add("hess")
    elif "hess or hessp" in taken:
        found.add("hessp")
    return {name: BY_HAND[name] for name in found}


# those whose steps do not hang on the last bits
STEADY = ["Nelder-Mead", "Powell", "COBYQA", "BFGS", "L-BFGS-B", "Newton-CG", "trust-exact"]


@pytest.mark.every(2, of="compiled", first=1)
@pytest.mark.slow_cases(
    "as it is-COBYQA", "as it is-COBYLA", "as it is-trust-constr", "as it is-Powell", "compiled-CG"
)
@pytest.mark.parametrize("method", [m for m in filling.METHODS["minimize"] if m[0] != "a"])
def test_every_method(method, way):
    """The same steps, and so the same counts, as with derivatives written by hand."""
    if way != "as it is" and not filling.taken_by("minimize", method):
        pytest.skip("the method takes no derivative")
    start = [1.1, 1.2, 1.4] if method == "dogleg" else START  # convex there
    options = {"COBYLA": {"maxiter": 200}, "TNC": {"maxfun": 2000}}.get(method)
    found = door.minimize(valley, start, method=method, options=options)
    expected = scipy.optimize.minimize(
        rosen, np.array(start, float), method=method, options=options, **derivatives_of(method)
    )
    assert type(found) is type(expected)
    assert found.success == expected.success
    assert_allclose(found.x, expected.x, atol=1e-2 if method in ("TNC", "COBYLA") else 1e-4)
    if method in STEADY:
        assert (found.nit, found.nfev) == (expected.nit, expected.nfev)


@pytest.mark.slow_cases("500", "30")
@pytest.mark.parametrize("n", [2, 5, 30, 100, 500])
def test_rosenbrock_by_size(n):
    """Far from the minimum with few unknowns, in its neighbourhood with many."""
    start = np.full(n, -1.0 if n < 10 else 1.2)
    found = door.minimize(valley, start, method="Newton-CG", options={"xtol": 1e-10})
    assert_allclose(found.x, np.ones(n), rtol=1e-6)
    found = door.minimize(valley, start, method="L-BFGS-B", options={"maxfun": 10**5})
    assert_allclose(found.jac, rosen_der(found.x), atol=1e-9 * n)
    f, runs = counted(valley)
    door.minimize(f, start, method="L-BFGS-B")
    differences, runs_of_differences = counted(valley)
    scipy.optimize.minimize(differences, start, method="L-BFGS-B")
    assert len(runs) < len(runs_of_differences)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"])
def test_many_unknowns_take_products(method, way, capsys):
    n = filling.FEW + 1
    tight = {"xtol": 1e-10} if method == "Newton-CG" else None
    start = np.full(n, 1.01)
    found = door.minimize(valley, start, method=method, options=tight, verbose=1)
    assert_allclose(found.x, np.ones(n), atol=1e-3)
    assert "fwdad: hessp is a sparse matrix, by 3 directions" in capsys.readouterr().out
    found = door.minimize(valley, start[:-1], method=method, options=tight, verbose=1)
    assert_allclose(found.x, np.ones(n - 1), atol=1e-3)
    assert "fwdad: hess is a dense matrix" in capsys.readouterr().out


@pytest.mark.every(3, of="constr")
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.parametrize("number", HOCK_SCHITTKOWSKI)
@pytest.mark.parametrize("form", ["dict", "object"])
def test_hock_schittkowski(number, method, form):
    f, equal, above, bounds, start, least = HOCK_SCHITTKOWSKI[number]
    constraints = []
    for kind, g, upper in (("eq", equal, 0.0), ("ineq", above, np.inf)):
        if g is None:
            continue
        if form == "dict":
            constraints.append({"type": kind, "fun": g})
        else:
            constraints.append(scipy.optimize.NonlinearConstraint(g, 0.0, upper))
    options = {"gtol": 1e-9, "xtol": 1e-11, "maxiter": 3000} if method == "trust-constr" else {}
    found = door.minimize(
        f, start, method=method, bounds=bounds, constraints=constraints, options=options
    )
    assert_allclose(found.fun, least, rtol=1e-5, atol=1e-6)
    assert_allclose(np.atleast_1d(equal(found.x)), 0, atol=1e-5)
    if above is not None:
        assert np.min(above(found.x)) > -1e-5


def test_args_and_values_in_a_list():
    found = door.minimize(valley, START, args=(10.0,), method="trust-exact")
    assert_allclose(found.x, np.ones(3), rtol=1e-6)
    found = door.minimize(valley, START, args=10.0)
    assert_allclose(found.x, np.ones(3), rtol=1e-4)
    for f in (lambda x: [(x[0] - 3) ** 4], lambda x: (x - 3) ** 4):
        found = door.minimize(f, [1], method="Newton-CG", options={"xtol": 1e-12})
        assert_allclose(found.x, [3], rtol=1e-2)


@pytest.mark.slow_cases("compiled")
def test_second_derivatives_are_of_the_gradient_that_is_given(way):
    for jac in (rosen_der, lambda x: list(rosen_der(x))):
        found = door.minimize(rosen, START, jac=jac, method="trust-exact")
        assert_allclose(found.x, np.ones(3), rtol=1e-6)
    both = lambda x: (rosen(x), rosen_der(x))  # noqa: E731
    for method in ("trust-ncg", "trust-krylov"):
        found = door.minimize(both, np.full(70, 1.01), jac=True, method=method)
        assert_allclose(found.x, np.ones(70), atol=1e-3)


def test_what_is_given_is_taken():
    for name, value in (("hess", rosen_hess), ("hessp", rosen_hess_prod)):
        given, calls = counted(value)
        door.minimize(rosen, START, method="Newton-CG", **{name: given})
        assert len(calls) > 0
    found = door.minimize(rosen, START, method="trust-constr", hess=SR1())
    assert_allclose(found.x, np.ones(3), atol=1e-3)
    jac, calls = counted(rosen_der)
    door.minimize(rosen, START, jac=jac)
    assert len(calls) > 0


@pytest.mark.every(2)
@pytest.mark.parametrize("jac", ["2-point", "3-point", False])
def test_differences_may_be_asked_for(jac, capsys):
    found = door.minimize(rosen, START, jac=jac, verbose=1)
    expected = scipy.optimize.minimize(rosen, START, jac=jac)
    assert_allclose(found.x, expected.x, rtol=0)
    assert found.nfev == expected.nfev
    assert "jac is by SciPy's finite differences" in capsys.readouterr().out
    found = door.minimize(rosen, START, jac=jac or "2-point", method="trust-constr")
    assert_allclose(found.x, np.ones(3), atol=1e-3)


def test_a_method_of_ones_own_gets_all():
    def newton(fun, x0, args, jac, hess, **rest):
        x = np.array(x0)
        for _ in range(30):
            x = x - np.linalg.solve(hess(x, *args), jac(x, *args))
        return scipy.optimize.OptimizeResult(x=x, success=True)

    found = door.minimize(valley, [1.1, 1.2, 1.3], (50.0,), method=newton)
    assert_allclose(found.x, np.ones(3), rtol=1e-12)


def test_constraints_that_ask_for_differences_keep_them():
    disk = scipy.optimize.NonlinearConstraint(
        lambda x: x.item(0) ** 2 + x.item(1) ** 2, 0, 1, jac="3-point", hess=BFGS()
    )
    for method in ("SLSQP", "trust-constr"):
        found = door.minimize(lambda x: x[0] + x[1], [0, 0.5], method=method, constraints=disk)
        assert_allclose(found.x, [-np.sqrt(0.5)] * 2, atol=1e-3)


def through_bytes(x):
    """The same numbers by way of their bytes, which carry no derivative."""
    x = np.asarray(x, float)
    return np.frombuffer(x.tobytes()).reshape(x.shape)


def distance(x):
    return np.sum((through_bytes(x) - 1) ** 2)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "TNC", "SLSQP", "CG", "trust-constr"])
def test_what_has_no_derivative_says_how_to_go_on(method):
    with pytest.raises((MissingRuleError, DualLeakError)) as caught:
        door.minimize(distance, [1, 2, 3, 4], method=method)
    assert caught.value.filename == __file__
    assert "tobytes" in caught.value.text
    assert caught.value.__notes__ == [
        "fwdad.scipy.minimize fills in jac. jac='2-point' takes finite differences instead"
    ]
    found = door.minimize(distance, [1, 2, 3, 4], method=method, jac="2-point")
    assert_allclose(found.x, np.ones(4), atol=1e-2)


def test_scipys_messages_stay():
    with pytest.raises(ValueError, match="Unknown solver"):
        door.minimize(rosen, START, method="steepest")
    with pytest.raises(ValueError, match="must return a scalar"):
        door.minimize(lambda x: x**2, START)
    with pytest.raises(ValueError, match="'eq' or 'ineq'"):
        door.minimize(
            rosen, START, method="trust-constr", constraints={"type": "le", "fun": np.sum}
        )
    with pytest.warns(RuntimeWarning, match="does not use gradient"):
        door.minimize(rosen, START, method="Powell", jac=rosen_der)
