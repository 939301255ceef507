"""Constraints with their derivatives filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import BFGS, LinearConstraint, NonlinearConstraint
from scipy.sparse.linalg import LinearOperator

from fwdad.scipy.derivatives import FEW, Gradient, Hessian
from fwdad.scipy.filling import Filling, size_of
from fwdad.scipy.programs import weighted, with_extra


def filled_constraints(filling: Filling, constraints: Any, x0: Any) -> Any:
    """The constraints as SciPy takes them; those that hold derivatives already stay.

    SciPy does not keep apart whether a ``NonlinearConstraint`` was given ``jac="2-point"`` or left
    at it, so both are filled in; ``"3-point"`` and ``"cs"``, a step or a sparsity of differences
    are what somebody has asked for.
    """
    if constraints is None or not filling.is_taken("constraints' jac"):
        return constraints
    single = isinstance(constraints, (dict, LinearConstraint, NonlinearConstraint))
    several = [constraints] if single else list(constraints)
    return [_filled(filling, k, c, x0) for k, c in enumerate(several)]


def _filled(filling: Filling, k: int, constraint: Any, x0: Any) -> Any:
    with_hess = filling.is_taken("constraints' hess")
    if isinstance(constraint, dict):
        if not callable(constraint.get("fun")):
            return constraint  # SciPy says what is wrong
        if with_hess:
            return _filled_object(filling, k, _as_object(k, constraint), x0)
        if constraint.get("jac") is not None:
            filling.given(f"constraints[{k}]['jac']", constraint["jac"])
            return constraint
        instead = "jac=lambda x: ... in the dict, or method='COBYLA', which needs none"
        jac = filling.jacobian(f"constraints[{k}]['jac']", constraint["fun"], instead=instead)
        return {**constraint, "jac": jac}
    if isinstance(constraint, NonlinearConstraint):
        return _filled_object(filling, k, constraint, x0)
    return constraint


def _as_object(k: int, constraint: dict[str, Any]) -> Any:
    """A dict as a ``NonlinearConstraint``, which alone has second derivatives."""
    kind = str(constraint.get("type", "")).lower()
    if kind not in ("eq", "ineq"):
        raise ValueError(
            f"constraints[{k}]['type'] must be 'eq' or 'ineq', not {constraint.get('type')!r}"
        )
    extra = tuple(constraint.get("args", ()))
    fun, jac = constraint["fun"], constraint.get("jac")
    upper = 0.0 if kind == "eq" else np.inf
    jac = "2-point" if jac is None else with_extra(jac, extra) if callable(jac) else jac
    return NonlinearConstraint(with_extra(fun, extra) if extra else fun, 0.0, upper, jac=jac)


def _filled_object(filling: Filling, k: int, given: Any, x0: Any) -> Any:
    jac, hess = given.jac, given.hess
    asks_differences = (
        given.finite_diff_rel_step is not None or given.finite_diff_jac_sparsity is not None
    )
    name = f"constraints[{k}]"
    instead = 'NonlinearConstraint(..., jac="3-point", hess=scipy.optimize.BFGS())'
    if jac == "2-point" and not asks_differences:
        jac = filling.jacobian(f"{name}.jac", given.fun, instead=instead)
        exact = True
    else:
        filling.given(f"{name}.jac", jac)
        exact = callable(jac)
    if _is_default(hess) and exact and filling.is_taken("constraints' hess"):
        hess = _hessian(filling, f"{name}.hess", given.fun, x0, instead)
    return NonlinearConstraint(
        given.fun,
        given.lb,
        given.ub,
        jac=jac,
        hess=hess,
        keep_feasible=given.keep_feasible,
        finite_diff_rel_step=given.finite_diff_rel_step,
        finite_diff_jac_sparsity=given.finite_diff_jac_sparsity,
    )


def _is_default(hess: Any) -> bool:
    """Whether a constraint has the Hessian of its constructor, an update without settings."""
    if type(hess) is not BFGS:
        return False
    mine = BFGS()
    return all(
        getattr(hess, name, None) == getattr(mine, name, None)
        for name in ("exception_strategy", "min_curvature", "init_scale")
    )


def _hessian(
    filling: Filling, name: str, fun: Callable[..., Any], x0: Any, instead: str
) -> Callable[..., Any]:
    """The second derivatives of the values of fun, each times its multiplier, added up."""
    gradient = Gradient(weighted(fun, ()))
    if size_of(x0) <= FEW:
        return filling.fill(name, Hessian(gradient), instead)
    product = filling.products(name, gradient, instead)

    def operator(x: Any, multipliers: Any) -> Any:
        return LinearOperator(
            (len(x), len(x)), matvec=lambda p: product(x, np.ravel(p), multipliers), dtype=float
        )

    return operator
