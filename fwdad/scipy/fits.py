"""Fits: ``curve_fit`` and ``least_squares`` with the Jacobian of the model filled in."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from fwdad.core.tracebacks import public
from fwdad.evaluation.signatures import SparseFormat
from fwdad.scipy.choice import Derivative
from fwdad.scipy.derivatives import FEW
from fwdad.scipy.filling import Filling, known_here, size_of, solve

_DENSE_COLUMNS = 1000  # the singular values of a matrix of so many columns take a second


@public
def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    verbose: int = 0,
    **kwargs: Any,
) -> Any:
    """As ``scipy.optimize.curve_fit``, but with the Jacobian of the model filled in.

    Parameters
    ----------
    f, xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds, method, full_output, \
nan_policy
        See ``scipy.optimize.curve_fit``. xdata may be what it may be there: an array, a tuple of
        arrays, None, or an object of your own.
    jac : callable, str, optional
        By default it is filled in, for each method. ``"2-point"`` is SciPy's differences, also for
        ``"lm"``; ``"3-point"`` and ``"cs"`` are for ``"trf"`` and ``"dogbox"``, as in SciPy.
    verbose : int, default 0
        1 prints how the Jacobian was taken, and what ran it, when the call ends. For ``"trf"`` and
        ``"dogbox"`` it is that of :func:`least_squares`, too.
    **kwargs
        For SciPy's ``leastsq`` or ``least_squares``, as there.

    Returns
    -------
    popt, pcov : array
        SciPy's own; with ``full_output`` also infodict, mesg and ier.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If f cannot be differentiated; a note says how to go on without.
    RuntimeError, ValueError
        As SciPy's.

    Notes
    -----
    Costs, for each Jacobian, a run of f on as many tangents as there are parameters; differences
    cost as many runs. See :func:`minimize` for when it is compiled, and :func:`fwdad.jvp` for
    kinks.

    Examples
    --------
    >>> import numpy as np
    >>> def decay(t, amplitude, rate):
    ...     return amplitude * np.exp(-rate * t)
    >>> t = np.linspace(0, 4, 50)
    >>> best, covariance = curve_fit(decay, t, decay(t, 2.5, 1.3), p0=[1, 1])
    >>> best.round(6)
    array([2.5, 1.3])
    """
    method = method or ("trf" if _is_bounded(bounds) else "lm")
    given = kwargs if method == "lm" else {**kwargs, "verbose": verbose}
    with Filling("curve_fit", method, verbose) as filling:
        if isinstance(jac, str) and jac == "2-point" and method == "lm":
            filling.given("jac", jac)
            jac = None
        elif not filling.given("jac", jac) and filling.is_taken("jac"):
            count = _parameters(f) if p0 is None else size_of(p0)
            argnums = tuple(range(1, 1 + count))
            jac = _AtEachPoint(filling.jacobian("jac", f, argnums=argnums), ydata, nan_policy)
            given.pop("col_deriv", None)
        return solve(
            scipy.optimize.curve_fit, f, xdata, ydata, p0, sigma, absolute_sigma, check_finite,
            bounds, method, jac, full_output=full_output, nan_policy=nan_policy, **given,
        )  # fmt: skip


def _is_bounded(bounds: Any) -> bool:
    """Whether SciPy takes ``"trf"`` for these."""
    lower, upper = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    return bool(np.any(np.asarray(lower) > -np.inf) or np.any(np.asarray(upper) < np.inf))


def _parameters(f: Callable[..., Any]) -> int:
    """How many parameters a model names besides x."""
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in named for p in inspect.signature(f).parameters.values()) - 1


class _AtEachPoint:
    """The Jacobian with a row for each data point, also of a model that is a constant."""

    def __init__(self, jac: Derivative, ydata: Any, nan_policy: str | None) -> None:
        self._jac = jac
        self._rows = None if nan_policy == "omit" else size_of(ydata)

    def __call__(self, xdata: Any, *parameters: Any) -> Any:
        J = self._jac(xdata, *parameters)
        rows = np.shape(xdata)[-1] if self._rows is None else self._rows
        return np.broadcast_to(J, (rows, J.shape[1])) if len(J) == 1 else J


@public
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    diff_step: Any = None,
    tr_solver: str | None = None,
    tr_options: dict[str, Any] | None = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    workers: Any = None,
) -> Any:
    """As ``scipy.optimize.least_squares``, but with the Jacobian filled in.

    Parameters
    ----------
    fun, x0, bounds, method, ftol, xtol, gtol, x_scale, loss, f_scale, tr_solver, tr_options, \
max_nfev, args, kwargs, callback, workers
        See ``scipy.optimize.least_squares``.
    jac : callable, str, optional
        By default it is filled in. ``"2-point"``, ``"3-point"`` and ``"cs"`` are SciPy's
        differences.
    diff_step, jac_sparsity
        Of SciPy's differences: where one is given without ``jac``, these are taken.
    verbose : {0, 1, 2}, default 0
        As in SciPy; 1 and 2 also print how the Jacobian was taken, and what ran it.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's own.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If fun cannot be differentiated; a note says how to go on without.
    ValueError
        As SciPy's.

    Notes
    -----
    The Jacobian is a matrix, by forward or reverse mode, whichever :func:`fwdad.jacobian` chooses;
    with more than 64 unknowns by the colours of its pattern, if these are few. With
    ``tr_solver="lsmr"`` and more than 64 unknowns, or without ``tr_solver`` and more than 1000, but
    not for ``"lm"``, it is a sparse matrix, if at most an eighth of its entries may be other than
    zero, else a ``LinearOperator``: each product costs a run of fun's tape or of its reverse pass,
    and no matrix is made. ``x_scale="jac"`` needs a matrix.

    See :func:`minimize` for when it is compiled, and :func:`fwdad.jvp` for kinks.

    Examples
    --------
    >>> import numpy as np
    >>> def residuals(x):
    ...     return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])
    >>> found = least_squares(residuals, [-1, 2])
    >>> found.x.round(9)
    array([1., 1.])
    """
    with Filling("least_squares", method, verbose) as filling:
        if jac is None and (jac_sparsity is not None or diff_step is not None):
            option = "diff_step" if jac_sparsity is None else "jac_sparsity"
            filling.say(f"jac is by SciPy's finite differences, because {option} is given")
            jac = "2-point"
        elif not filling.given("jac", jac):
            jac = "2-point"  # of an unknown method, of which SciPy says so
            if filling.is_taken("jac"):
                sparse = _takes_sparse(x0, method, tr_solver)
                free = sparse and not (isinstance(x_scale, str) and x_scale == "jac")
                form: SparseFormat = "csr" if sparse else "dense"
                jac = filling.jacobian_in("jac", fun, form, x0, free=free)
        scale = known_here(x_scale=x_scale, callback=callback, workers=workers)
        return solve(
            scipy.optimize.least_squares, fun, x0, jac=jac, bounds=bounds, method=method,
            ftol=ftol, xtol=xtol, gtol=gtol, loss=loss, f_scale=f_scale, diff_step=diff_step,
            tr_solver=tr_solver, tr_options=tr_options or {}, jac_sparsity=jac_sparsity,
            max_nfev=max_nfev, verbose=verbose, args=args, kwargs=kwargs or {}, **scale,
        )  # fmt: skip


def _takes_sparse(x0: Any, method: str, tr_solver: str | None) -> bool:
    """Whether the solver is better served by a sparse matrix, or by products with the Jacobian."""
    most = FEW if tr_solver == "lsmr" else _DENSE_COLUMNS
    return method != "lm" and tr_solver != "exact" and size_of(x0) > most
