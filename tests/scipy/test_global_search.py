"""Global searches: the same minima with fewer runs of the function."""

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from scipy.optimize import NonlinearConstraint

from fwdad import scipy as door
from fwdad.scipy import global_search
from tests.scipy.problems import counted


def rastrigin(x, height=10.0):
    return np.sum(x**2 - height * np.cos(2 * np.pi * x)) + height * len(x)


BOX = [(-4, 5)] * 3


def test_differential_evolution(capsys):
    found = door.differential_evolution(rastrigin, BOX, seed=3, maxiter=300, verbose=1)
    expected = scipy.optimize.differential_evolution(rastrigin, BOX, seed=3, maxiter=300)
    assert type(found) is type(expected)
    assert found.nit == expected.nit  # the search itself is the same
    assert found.fun < 1e-10
    assert found.nfev < expected.nfev
    assert "fwdad: jac is the gradient, by reverse mode" in capsys.readouterr().out


def test_polish_with_args_constraints_and_integers():
    disk = NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, 0, 1)
    found = door.differential_evolution(
        lambda x, a: a * x[0] + x[1], [(-2, 2)] * 2, args=(1.0,), constraints=disk, seed=1
    )
    assert_allclose(found.x, [-np.sqrt(0.5)] * 2, atol=1e-3)
    assert found.maxcv < 1e-6
    found = door.differential_evolution(
        lambda x: (x[0] - 1.4) ** 2 + (x[1] - 1.4) ** 2, [(0, 3)] * 2, seed=1,
        integrality=[True, False],
    )  # fmt: skip
    assert_allclose(found.x, [1, 1.4], atol=1e-6)


def test_other_polishes(monkeypatch, capsys):
    for polish in (False, "2-point"):
        options = {"seed": 3, "maxiter": 5}
        found = door.differential_evolution(rastrigin, BOX, polish=polish, **options)
        polished = polish is not False
        expected = scipy.optimize.differential_evolution(rastrigin, BOX, polish=polished, **options)
        assert_allclose(found.x, expected.x, rtol=0)
        assert found.nfev == expected.nfev
    if global_search._takes_polish():
        own, calls = counted(scipy.optimize.minimize)
        door.differential_evolution(rastrigin, BOX, polish=own, seed=3, maxiter=5)
        assert len(calls) == 1
    monkeypatch.setattr(scipy, "__version__", "1.13.1")
    door.differential_evolution(rastrigin, BOX, seed=3, maxiter=5, verbose=1)
    assert "the polish is by SciPy's finite differences" in capsys.readouterr().out


@pytest.mark.parametrize(
    "local",
    [
        None,
        {"method": "BFGS"},
        {"method": "trust-exact"},
        {"method": "Nelder-Mead"},
        {"method": "L-BFGS-B", "jac": "2-point", "bounds": BOX},
    ],
    ids=str,
)
def test_dual_annealing(local, capsys):
    options = {"args": (10.0,), "seed": 5, "maxiter": 150, "minimizer_kwargs": local}
    found = door.dual_annealing(rastrigin, BOX, verbose=1, **options)
    assert found.fun < 1e-8 or local is not None
    said = capsys.readouterr().out
    local = local or {"method": "L-BFGS-B"}
    assert ("fwdad: jac is the gradient" in said) == (
        "jac" not in local and local["method"] != "Nelder-Mead"
    )
    assert ("fwdad: hess is a dense matrix" in said) == (local["method"] == "trust-exact")


def test_fewer_runs_in_local_searches():
    for solver, where, options in (
        ("dual_annealing", BOX, {"seed": 5, "maxiter": 50}),
        ("basinhopping", np.array([1.1, -2, 3]), {"seed": 5, "niter": 10}),
    ):
        f, runs = counted(rastrigin)
        found = getattr(door, solver)(f, where, **options)
        differences, runs_of_differences = counted(rastrigin)
        expected = getattr(scipy.optimize, solver)(differences, where, **options)
        assert type(found) is type(expected)
        assert len(runs) < len(runs_of_differences)


def test_no_local_search(capsys):
    bounds = scipy.optimize.Bounds([-4] * 3, [5] * 3)
    options = {"seed": 5, "maxiter": 50, "no_local_search": True}
    found = door.dual_annealing(rastrigin, bounds, verbose=1, **options)
    assert_allclose(found.x, scipy.optimize.dual_annealing(rastrigin, bounds, **options).x)
    expected = "fwdad: there is no local search, so no derivative is taken\n"
    assert capsys.readouterr().out == expected


def test_what_is_said_where_nothing_is_filled_in(capsys):
    options = {"seed": 1, "maxiter": 3, "verbose": 1}
    door.differential_evolution(rastrigin, BOX, polish=False, **options)
    assert capsys.readouterr().out == "fwdad: there is no polish, so no derivative is taken\n"
    if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17):
        polish = lambda f, x, **limits: scipy.optimize.minimize(f, x)  # noqa: E731
        door.differential_evolution(rastrigin, BOX, polish=polish, **options)
        assert capsys.readouterr().out == "fwdad: polish is as given\n"
    door.dual_annealing(rastrigin, BOX, minimizer_kwargs={"method": "Powell"}, **options)
    expected = (
        'fwdad: the local search of dual_annealing takes no derivative with method="Powell"\n'
    )
    assert capsys.readouterr().out == expected


def test_basinhopping_with_constraints():
    wavy = lambda x: np.cos(14.5 * x[0] - 0.3) + (x[0] + 0.2) * x[0]  # noqa: E731
    found = door.basinhopping(wavy, [1], niter=50, seed=1)
    assert_allclose(found.x, [-0.19506755], rtol=1e-5)
    above = {"type": "ineq", "fun": lambda x: x[0] - 0.1}
    found = door.basinhopping(
        wavy, [1], niter=50, seed=1, minimizer_kwargs={"method": "SLSQP", "constraints": above}
    )
    assert_allclose(found.x, [0.23417961], rtol=1e-4)
