"""Roots of equations: ``root``, ``fsolve`` and ``root_scalar`` with their slopes filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from fwdad.api.transforms import jacfwd
from fwdad.core.tracebacks import public
from fwdad.scipy.derivatives import Slope
from fwdad.scipy.filling import Filling, solve
from fwdad.scipy.programs import second_of


@public
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    *,
    verbose: int = 0,
) -> Any:
    """As ``scipy.optimize.root``, but with the Jacobian filled in.

    Parameters
    ----------
    fun, x0, args, method, tol, callback, options
        See ``scipy.optimize.root``.
    jac : callable, bool or "2-point", optional
        By default it is filled in for the methods that take one, ``"hybr"`` and ``"lm"``. The
        others, which build up an approximation of their own, are SciPy's. ``"2-point"`` and False
        are SciPy's differences.
    verbose : int, default 0
        1 prints how the Jacobian was taken, and what ran it, when the call ends.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's own. ``nfev`` counts the calls of fun, ``njev`` those of the Jacobian.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If fun cannot be differentiated; a note says how to go on without.

    Notes
    -----
    Costs, for each Jacobian, a run of fun on N tangents, where differences cost N runs; with more
    than 64 unknowns as many as the colours of its pattern, if these are few. See :func:`minimize`
    for when it is compiled, and :func:`fwdad.jvp` for kinks. Inside a function that is
    differentiated itself the root has its derivative by the implicit function theorem, as that of
    SciPy's function.

    Examples
    --------
    >>> import numpy as np
    >>> found = root(lambda x: np.array([x[0] + x[1] - 3, x[0] * x[1] - 2]), [0, 5])
    >>> found.x.round(9), found.success
    (array([1., 2.]), True)
    """
    with Filling("root", method, verbose) as filling:
        if jac == "2-point":
            filling.given("jac", jac)
            jac = None
        elif not filling.given("jac", jac) and filling.is_taken("jac"):
            jac = filling.jacobian_in("jac", fun, "dense", x0)
            options = _by_rows(options)
        return solve(
            scipy.optimize.root, fun, x0, args=args, method=method, jac=jac, tol=tol,
            callback=callback, options=options,
        )  # fmt: skip


def _by_rows(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """The options without a layout for the caller's own Jacobian."""
    if not options or "col_deriv" not in options:
        return options
    return {**options, "col_deriv": 0}


@public
def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: bool = False,
    col_deriv: bool = False,
    xtol: float = 1.49012e-08,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
    *,
    verbose: int = 0,
) -> Any:
    """As ``scipy.optimize.fsolve``, but with the Jacobian filled in.

    Parameters
    ----------
    func, x0, args, full_output, xtol, maxfev, factor, diag
        See ``scipy.optimize.fsolve``.
    fprime : callable or "2-point", optional
        By default it is filled in; ``"2-point"`` is SciPy's differences.
    col_deriv : bool, default False
        Whether an ``fprime`` of the caller's computes columns.
    band, epsfcn
        Of SciPy's differences, and given they mean these.
    verbose : int, default 0
        1 prints how the Jacobian was taken, and what ran it, when the call ends.

    Returns
    -------
    x : array
        The root; with ``full_output`` ``(x, infodict, ier, mesg)``.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        See :func:`root`.

    Notes
    -----
    Costs what :func:`root` costs.

    Examples
    --------
    >>> import numpy as np
    >>> fsolve(lambda x: np.cos(x) - x, 1).round(9)
    array([0.73908513])
    """
    with Filling("fsolve", "hybr", verbose) as filling:
        if isinstance(fprime, str) and fprime == "2-point":
            filling.given("fprime", fprime)
            fprime = None
        elif band is not None or epsfcn is not None:
            if fprime is None:
                option = "epsfcn" if band is None else "band"
                filling.say(f"fprime is by SciPy's finite differences, because {option} is given")
        elif not filling.given("fprime", fprime):
            fprime, col_deriv = filling.jacobian_in("fprime", func, "dense", x0), False
        return solve(
            scipy.optimize.fsolve, func, x0, args=args, fprime=fprime, full_output=full_output,
            col_deriv=col_deriv, xtol=xtol, maxfev=maxfev, band=band, epsfcn=epsfcn,
            factor=factor, diag=diag,
        )  # fmt: skip


@public
def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
    *,
    verbose: int = 0,
) -> Any:
    """As ``scipy.optimize.root_scalar``, but with the slopes filled in.

    Parameters
    ----------
    f, args, method, bracket, x0, x1, xtol, rtol, maxiter, options
        See ``scipy.optimize.root_scalar``. As there, a bracket alone means ``"brentq"``, and
        ``x1`` the secant method, which take no slope.
    fprime, fprime2 : callable, bool or "2-point", optional
        By default they are filled in for ``"newton"``, which is the method if only ``x0`` is given,
        and for ``"halley"``. ``fprime="2-point"`` is SciPy's differences.
    verbose : int, default 0
        1 prints how the slopes were taken, and what ran them, when the call ends.

    Returns
    -------
    scipy.optimize.RootResults
        SciPy's own.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        See :func:`root`.

    Notes
    -----
    Costs, for each slope, a run of f on one tangent; for a second one, on a tangent of that. A
    complex ``x0`` needs a holomorphic f, which is checked.

    Examples
    --------
    >>> found = root_scalar(lambda x: x**3 - 2, x0=1)
    >>> round(float(found.root), 12), found.method
    (1.259921049895, 'newton')
    """
    if method is None and bracket is None and x0 is not None and x1 is None:
        method = "halley" if fprime2 is not None and fprime is not None else "newton"
    holomorphic = bool(np.iscomplexobj(x0))
    named = method or ("brentq" if bracket is not None else "secant")
    with Filling("root_scalar", named, verbose) as filling:
        fprime, fprime2 = _slopes(filling, f, fprime, fprime2, holomorphic=holomorphic)
        return solve(
            scipy.optimize.root_scalar, f, args=args, method=method, bracket=bracket,
            fprime=fprime, fprime2=fprime2, x0=x0, x1=x1, xtol=xtol, rtol=rtol, maxiter=maxiter,
            options=options,
        )  # fmt: skip


def _slopes(
    filling: Filling, f: Callable[..., Any], fprime: Any, fprime2: Any, *, holomorphic: bool
) -> tuple[Any, Any]:
    """The first and second derivative of f that the method takes, where they are not given."""
    if isinstance(fprime, str) and fprime == "2-point":
        filling.given("fprime", fprime)
        return None, fprime2
    first: Any = jacfwd(f, holomorphic=holomorphic)
    if filling.given("fprime", fprime):
        first = second_of(f) if fprime is True else fprime
    elif filling.is_taken("fprime") and fprime2 is not True:  # True: f returns all three
        fprime = filling.fill("fprime", Slope(f, holomorphic=holomorphic))
    if not filling.given("fprime2", fprime2) and filling.is_taken("fprime2"):
        instead = "method='newton' needs no fprime2, and with fprime='2-point'"
        fprime2 = filling.fill("fprime2", Slope(first, holomorphic=holomorphic), instead)
    return fprime, fprime2
