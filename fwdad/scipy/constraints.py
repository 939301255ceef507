"""Constraints with their derivatives filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import BFGS, LinearConstraint, NonlinearConstraint
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator

from fwdad.evaluation.signatures import SparseFormat
from fwdad.scipy.derivatives import FEW, Gradient, Hessian, Jacobian
from fwdad.scipy.filling import Filling, size_of
from fwdad.scipy.programs import weighted, with_extra
from fwdad.scipy.sparse_derivatives import JacobianByColours


def filled_constraints(filling: Filling, constraints: Any, x0: Any, options: Any = None) -> Any:
    """The constraints as SciPy takes them; those that hold derivatives already stay.

    SciPy does not keep apart whether a ``NonlinearConstraint`` was given ``jac="2-point"`` or left
    at it, so both are filled in; ``"3-point"`` and ``"cs"``, a step or a sparsity of differences
    are what somebody has asked for. ``options`` are the solver's.
    """
    if constraints is None or not filling.is_taken("constraints' jac"):
        return constraints
    single = isinstance(constraints, (dict, LinearConstraint, NonlinearConstraint))
    several = [constraints] if single else list(constraints)
    if not filling.is_taken("constraints' hess"):
        return [_filled_dict(filling, k, c, x0) for k, c in enumerate(several)]
    objects = [_as_object(k, c) for k, c in enumerate(several)]
    form = _form(objects, x0, (options or {}).get("sparse_jacobian"))
    return [_filled_object(filling, k, c, x0, form) for k, c in enumerate(objects)]


def _form(objects: list[Any], x0: Any, sparse: bool | None) -> SparseFormat:
    """The form of the Jacobians: SciPy wants sparse matrices for all constraints, or for none."""
    if sparse is not None:
        return "csr" if sparse else "dense"
    x = np.atleast_1d(np.asarray(x0, float))
    own = [c for c in objects if isinstance(c, NonlinearConstraint)]
    rest = [c for c in objects if isinstance(c, LinearConstraint)]
    known = len(own) + len(rest) == len(objects) and all(map(_is_filled, own))
    if x.size <= FEW or not known or not all(issparse(c.A) for c in rest):
        return "dense"
    pay = all(JacobianByColours(Jacobian(c.fun), "csr").pays(x) for c in own)
    return "csr" if pay else "dense"


def _is_filled(constraint: Any) -> bool:
    """Whether the Jacobian of a constraint is one of ours."""
    steps, sparsity = constraint.finite_diff_rel_step, constraint.finite_diff_jac_sparsity
    is_default = isinstance(constraint.jac, str) and constraint.jac == "2-point"
    return is_default and steps is None and sparsity is None


def _filled_dict(filling: Filling, k: int, constraint: Any, x0: Any) -> Any:
    if isinstance(constraint, NonlinearConstraint):
        return _filled_object(filling, k, constraint, x0, "dense")
    if not isinstance(constraint, dict) or not callable(constraint.get("fun")):
        return constraint  # SciPy says what is wrong
    if constraint.get("jac") is not None:
        filling.given(f"constraints[{k}]['jac']", constraint["jac"])
        return constraint
    instead = "jac=lambda x: ... in the dict, or method='COBYLA', which needs none"
    name = f"constraints[{k}]['jac']"
    return {**constraint, "jac": filling.jacobian_in(name, constraint["fun"], "dense", x0, instead)}


def _as_object(k: int, constraint: Any) -> Any:
    """A dict as a ``NonlinearConstraint``, which alone has second derivatives."""
    if not isinstance(constraint, dict) or not callable(constraint.get("fun")):
        return constraint  # SciPy says what is wrong
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


def _filled_object(filling: Filling, k: int, given: Any, x0: Any, form: SparseFormat) -> Any:
    if not isinstance(given, NonlinearConstraint):
        return given
    jac, hess = given.jac, given.hess
    name = f"constraints[{k}]"
    instead = 'NonlinearConstraint(..., jac="3-point", hess=scipy.optimize.BFGS())'
    if _is_filled(given):
        jac = filling.jacobian_in(f"{name}.jac", given.fun, form, x0, instead)
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
