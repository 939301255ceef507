"""Constraints: their first and second derivatives, few unknowns or many."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import BFGS, SR1, LinearConstraint, NonlinearConstraint

from fwdad import scipy as door
from fwdad.scipy.constraints import filled_constraints
from fwdad.scipy.filling import FEW, Filling


def filled(constraints, method="trust-constr", n=3):
    return filled_constraints(Filling("minimize", method, 0), constraints, np.ones(n))


def shell(x, radius=2.0):
    return [np.sum(x**2) - radius, x[0] ** 3 * x[1]]


X = np.array([0.5, 1.5, -0.7])


def jacobian_by_hand(x):
    return np.array([2 * x, [3 * x[0] ** 2 * x[1], x[0] ** 3, *np.zeros(len(x) - 2)]])


def hessian_by_hand(x, v):
    h = 2 * v[0] * np.eye(len(x))
    h[0, 0] += v[1] * 6 * x[0] * x[1]
    h[0, 1] += v[1] * 3 * x[0] ** 2
    h[1, 0] += v[1] * 3 * x[0] ** 2
    return h


V = np.array([0.3, -1.2])


def test_jacobian_and_hessian(way):
    for given in (
        NonlinearConstraint(shell, 0, 1),
        {"type": "ineq", "fun": shell},
        {"type": "eq", "fun": shell, "args": (3.0,)},
    ):
        (found,) = filled(given)
        for x in (X, X + 1, X - 1):
            assert_allclose(found.jac(x), jacobian_by_hand(x), rtol=1e-13)
            assert_allclose(found.hess(x, V), hessian_by_hand(x, V), rtol=1e-13)
    assert (found.lb, found.ub) == (0, 0)
    (found,) = filled({"type": "ineq", "fun": shell, "args": (3.0,)})
    assert found.ub == np.inf
    assert_allclose(found.fun(X), shell(X, 3.0))
    (found,) = filled({"type": "ineq", "fun": shell}, "SLSQP")
    assert_allclose(found["jac"](X, 3.0), jacobian_by_hand(X), rtol=1e-13)


def test_many_unknowns_have_an_operator():
    n = FEW + 1
    x = np.linspace(0.5, 1.5, n)
    (found,) = filled(NonlinearConstraint(shell, 0, 1), n=n)
    v = np.sin(x)
    assert_allclose(found.hess(x, V) @ v, hessian_by_hand(x, V) @ v, rtol=1e-12)
    ball = NonlinearConstraint(lambda x: x @ x, 0, 1)
    least = door.minimize(lambda x: np.sum((x - 1) ** 2), np.zeros(n), constraints=ball,
                          method="trust-constr")  # fmt: skip
    assert_allclose(least.x, np.ones(n) / np.sqrt(n), atol=1e-4)


def chain(x):
    return x[1:] * x[:-1] + x[1:] ** 2


def jacobian_of_chain(x):
    rows = np.arange(len(x) - 1)
    J = np.zeros((len(x) - 1, len(x)))
    J[rows, rows], J[rows, rows + 1] = x[1:], x[:-1] + 2 * x[1:]
    return J


SPARSE, DENSE = sp.eye_array(70, format="csr"), np.eye(70)


@pytest.mark.parametrize(
    ("others", "option", "sparse"),
    [
        ([], None, True),
        ([LinearConstraint(SPARSE, -9, 9)], None, True),
        ([{"type": "ineq", "fun": chain}], None, True),
        ([LinearConstraint(DENSE, -9, 9)], None, False),  # SciPy takes no mixture
        ([NonlinearConstraint(lambda x: x @ x, -99, 99)], None, False),
        ([NonlinearConstraint(chain, -9, 9, jac="3-point")], None, False),
        ([LinearConstraint(DENSE, -9, 9)], True, True),
        ([], False, False),
    ],
)
def test_sparse_matrices_if_all_can_be(others, option, sparse):
    x = np.linspace(0.2, 1.3, 70)
    several = [NonlinearConstraint(chain, -9, 9), *others]
    options = {} if option is None else {"sparse_jacobian": option}
    filling = Filling("minimize", "trust-constr", 0)
    J = filled_constraints(filling, several, x, options)[0].jac(x)
    assert sp.issparse(J) == sparse
    assert_allclose(J.toarray() if sparse else J, jacobian_of_chain(x), rtol=1e-13)
    found = door.minimize(
        lambda x: np.sum((x - 1) ** 2), x, method="trust-constr", constraints=several,
        options={"maxiter": 3, **options},
    )  # fmt: skip
    assert sp.issparse(found.jac[0]) == sparse


def test_dense_matrices_by_colours(capsys):
    x = np.linspace(0.2, 1.3, 70)
    found = door.minimize(
        lambda x: np.sum((x - 1) ** 2), x, constraints={"type": "ineq", "fun": chain}, verbose=1
    )
    assert found.success
    assert "is a dense matrix of few entries, by 2 directions" in capsys.readouterr().out


def test_what_is_given_stays():
    linear = LinearConstraint(np.ones((1, 3)), 0, 1)
    update = SR1()
    own = NonlinearConstraint(shell, 0, 1, jac=lambda x: jacobian_by_hand(x), hess=update)
    found = filled([linear, own, NonlinearConstraint(shell, 0, 1, jac="cs")])
    assert found[0] is linear
    assert found[1].jac is own.jac
    assert found[1].hess is update
    assert found[2].jac == "cs"
    assert isinstance(found[2].hess, BFGS)
    stepped = NonlinearConstraint(shell, 0, 1, finite_diff_rel_step=1e-6, keep_feasible=True)
    (found,) = filled(stepped)
    assert (found.jac, found.finite_diff_rel_step, found.keep_feasible) == ("2-point", 1e-6, True)
    damped = BFGS(exception_strategy="damp_update")
    assert filled(NonlinearConstraint(shell, 0, 1, hess=damped))[0].hess is damped
    jac = lambda x: jacobian_by_hand(x)  # noqa: E731
    assert filled({"type": "eq", "fun": shell, "jac": jac}, "SLSQP")[0]["jac"] is jac
    for method in ("COBYLA", "COBYQA", "Nelder-Mead"):
        assert filled(own, method) is own


@pytest.mark.parametrize("method", ["COBYLA", "COBYQA", "SLSQP", "trust-constr"])
def test_several_kinds_together(method):
    constraints = [
        LinearConstraint([[1, 1]], -np.inf, 1.5),
        NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, 0, 2),
        {"type": "ineq", "fun": lambda x, low: x[0] - low, "args": (0.2,)},
    ]
    f = lambda x: -x[0] - 2 * x[1]  # noqa: E731
    found = door.minimize(f, [0.5, 0.5], method=method, constraints=constraints)
    assert_allclose(found.x, [0.2, 1.3], atol=1e-3)
    assert scipy.optimize.OptimizeResult is type(found)
