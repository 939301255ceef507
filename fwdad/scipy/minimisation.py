"""``minimize`` with gradients, Hessians and the derivatives of constraints filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from fwdad.core.tracebacks import public
from fwdad.scipy.constraints import filled_constraints
from fwdad.scipy.filling import Filling, solve


@public
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    *,
    verbose: int = 0,
) -> Any:
    """As ``scipy.optimize.minimize``, but with derivatives filled in, those of constraints, too.

    Parameters
    ----------
    fun, x0, args, method, bounds, tol, callback, options
        See ``scipy.optimize.minimize``.
    jac : callable, bool, str, optional
        By default it is filled in for the methods that take a gradient. ``"2-point"``,
        ``"3-point"``, ``"cs"`` and False are SciPy's differences, and then nothing else of fun is
        filled in.
    hess, hessp : callable, str, HessianUpdateStrategy, optional
        By default one of them is filled in for the methods that take second derivatives: the matrix
        up to 64 unknowns, and always for ``"dogleg"`` and ``"trust-exact"``, else products with
        directions: of a sparse matrix at each point, if it has few colours. Where the caller gives
        the gradient, it is the derivative of that.
    constraints : dict, NonlinearConstraint, LinearConstraint, or several
        For ``"SLSQP"`` and ``"trust-constr"`` their Jacobians are filled in, and for the second the
        Hessians, where they are SciPy's defaults. ``jac="3-point"`` and ``"cs"``, a step and a
        sparsity of differences stay as they are. Of more than 64 unknowns the Jacobians are taken
        by the colours of their patterns, where these are few; for ``"trust-constr"`` they are
        sparse matrices, if those of all constraints can be, or with ``sparse_jacobian=True``.
    verbose : int, default 0
        1 prints how each derivative was taken, and what ran it, when the call ends. ``options``
        have what the methods print themselves.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's own. ``nfev`` counts the calls of fun, not those of its derivatives.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If a function cannot be differentiated; a note says how to go on without.
    ValueError
        As SciPy's.

    Notes
    -----
    A gradient costs a few runs of fun, however many unknowns there are; a Hessian a gradient on N
    tangents, a product with it one on one. At kinks see :func:`fwdad.jvp`.

    A derivative runs without compilation at first. Once its calls have taken 0.4 s of processor
    time, those of earlier solves with the same function included (0.8 s, where Numba is not
    imported yet), it is compiled by :func:`fwdad.jit`, if Numba is installed and the function can
    be traced. So a solve takes at most about twice as long as with the better of both, and short
    ones never wait for a compiler. The last bits of a derivative may change where it is compiled,
    and when that is depends on how fast the machine is. For the same bits every time, compile the
    function yourself: with ``fwdad.jit(fun)`` the derivatives are compiled from their second call
    on, and fun is, too.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import NonlinearConstraint
    >>> def rosenbrock(x):
    ...     return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    >>> minimize(rosenbrock, [-1, 2, 1], method="trust-exact").x.round(4)
    array([1., 1., 1.])
    >>> disk = NonlinearConstraint(lambda x: x @ x, 0, 1)
    >>> minimize(rosenbrock, [0, 0, 0], constraints=disk).x.round(4)
    array([0.7549, 0.5703, 0.3239])
    """
    with Filling("minimize", method_of(method, bounds, constraints), verbose) as filling:
        derivatives = filling.objective(fun, jac, hess, hessp, x0)
        return solve(
            scipy.optimize.minimize, fun, x0, args=args, method=method, **derivatives,
            bounds=bounds, constraints=filled_constraints(filling, constraints, x0, options),
            tol=tol, callback=callback, options=options,
        )  # fmt: skip


def method_of(method: Any, bounds: Any, constraints: Any) -> str:
    """The method's name; without one, that of SciPy's choice."""
    if callable(method):
        return "a callable"
    if method is not None:
        return str(method)
    if np.any(constraints):
        return "SLSQP"
    return "BFGS" if bounds is None else "L-BFGS-B"
