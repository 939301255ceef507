"""Differential equations: ``solve_ivp`` and ``solve_bvp`` with the Jacobians filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate

from fwdad.core.tracebacks import public
from fwdad.eager.run import STATE
from fwdad.scipy.filling import Filling, solve

_TAKE_SPARSE = ("Radau", "BDF")
_OF_DIFFERENCES = ("jac_sparsity", "lband", "uband")


@public
def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: tuple[Any, ...] | None = None,
    *,
    verbose: int = 0,
    **options: Any,
) -> Any:
    """As ``scipy.integrate.solve_ivp``, but with the Jacobian filled in.

    Parameters
    ----------
    fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args
        See ``scipy.integrate.solve_ivp``. As there, complex y0 needs a fun that is holomorphic in
        y, and here this is checked.
    verbose : int, default 0
        1 prints how the Jacobian was taken, and what ran it, when the call ends.
    **options
        See ``scipy.integrate.solve_ivp``. ``jac`` is filled in for ``"Radau"``, ``"BDF"`` and
        ``"LSODA"``; the others, which are explicit, take none. For the first two it is a sparse
        matrix where there are more than 64 unknowns and at most an eighth of its entries may be
        other than zero. ``jac="2-point"`` is SciPy's differences. These are taken, too, where
        ``jac_sparsity``, ``lband`` or ``uband`` is given, which belong to them.

    Returns
    -------
    bunch object
        SciPy's own. ``nfev`` counts the calls of fun, ``njev`` those of the Jacobian.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If fun cannot be differentiated; a note says how to go on without.
    NotHolomorphicError
        If y0 is complex, and fun is not holomorphic in y.

    Notes
    -----
    Costs, for each Jacobian, a run of fun on as many tangents as there are unknowns, or colours of
    a sparse one; differences cost as many runs. See :func:`fwdad.scipy.minimize` for when it is
    compiled, and :func:`fwdad.jvp` for kinks.

    Inside a function that is differentiated itself, SciPy's function runs on plain numbers, and the
    steps that it has accepted are differentiated with their sizes held (Bock 1981; Hairer, Nørsett
    and Wanner, "Solving Ordinary Differential Equations I", section II.6). So derivatives by the
    start, ``args``, and all that fun and events read have the order of the method; rtol and atol
    control the error of the solution, not theirs. ``t_span`` and ``t_eval`` move the solution along
    fun, and the times of events have the derivatives of the implicit function theorem. Of LSODA and
    of the caller's own classes, which do not show their steps, the Radau IIA method of order 5
    follows the solution. Forward mode costs a run of fun on all directions for each stage, reverse
    mode one pullback of fun for each; implicit steps need exact Jacobians besides. Second
    derivatives run the steps on duals, which takes tens of times as long. What fun stores outside
    itself are plain numbers: where these depend on the solution, reading them inside the
    derivative raises :class:`~fwdad.errors.StaleValueError` (compute them from the solution), and
    the solve is done twice, the second time on duals.

    Examples
    --------
    >>> def robertson(t, y):
    ...     slow, fast = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    ...     return [-slow, slow - fast, fast]
    >>> found = solve_ivp(robertson, (0, 1e4), [1, 0, 0], "BDF", rtol=1e-8, atol=1e-12)
    >>> found.y[:, -1].round(4), found.njev < 20
    (array([0.1073, 0.    , 0.8927]), True)
    """
    name = getattr(method, "__name__", method)
    with Filling("solve_ivp", str(name), verbose) as filling:
        jac = options.get("jac")
        asked = [option for option in _OF_DIFFERENCES if options.get(option) is not None]
        if isinstance(jac, str) and jac == "2-point":
            filling.given("jac", jac)
            del options["jac"]
        elif filling.is_taken("jac") and not filling.given("jac", jac):
            if asked:
                filling.say(f"jac is by SciPy's finite differences, because {asked[0]} is given")
            else:
                holomorphic = bool(np.iscomplexobj(y0))
                of: dict[str, Any] = {"argnums": (1,), "holomorphic": holomorphic}
                if name in _TAKE_SPARSE:
                    jac = filling.jacobian_in("jac", fun, "csc", y0, **of)
                else:
                    jac = filling.jacobian("jac", fun, **of)
                options["jac"] = _at_one_kind_of_time(jac)
        return solve(
            scipy.integrate.solve_ivp, _at_one_kind_of_time(fun), t_span, y0, method=method,
            t_eval=t_eval, dense_output=dense_output, events=events, vectorized=vectorized,
            args=args, **options,
        )  # fmt: skip


def _at_one_kind_of_time(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of t, y and more that is called with t as SciPy's steps have it.

    The first call of a solver has a Python float, those of LSODA have no other: a function under
    ``jit`` would be compiled for each. In a derivative t may be a dual, and f is called as it is.
    """
    if STATE.run is not None or not callable(f):
        return f

    def called(t: Any, *args: Any) -> Any:
        return f(np.float64(t) if isinstance(t, (float, int)) else t, *args)

    return called


@public
def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
) -> Any:
    """As ``scipy.integrate.solve_bvp``, but with both Jacobians filled in.

    Parameters
    ----------
    fun, bc, x, y, p, S, tol, max_nodes, bc_tol
        See ``scipy.integrate.solve_bvp``. As there, fun is evaluated at all points of the mesh at
        once, and its value at a point depends on y at that point alone.
    fun_jac, bc_jac : callable or "2-point", optional
        By default they are filled in; ``"2-point"`` is SciPy's differences.
    verbose : {0, 1, 2}, default 0
        As in SciPy; 1 and 2 also print how the Jacobians were taken, and what ran them.

    Returns
    -------
    bunch object
        SciPy's own.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If a function cannot be differentiated; a note says how to go on without.
    NotHolomorphicError
        If y is complex, and a function is not holomorphic in it.

    Notes
    -----
    ``fun_jac`` costs a run of fun on as many tangents as there are unknowns, and with parameters
    another on as many as there are of these, however many points the mesh has. See
    :func:`fwdad.scipy.minimize` for when it is compiled, and :func:`fwdad.jvp` for kinks.

    Examples
    --------
    Bratu's problem ``u'' + exp(u) = 0`` with ``u(0) = u(1) = 0``:

    >>> import numpy as np
    >>> def fun(x, y):
    ...     return np.array([y[1], -np.exp(y[0])])
    >>> def bc(ya, yb):
    ...     return np.array([ya[0], yb[0]])
    >>> found = solve_bvp(fun, bc, np.linspace(0, 1, 5), np.zeros((2, 5)), tol=1e-8)
    >>> found.sol(0.5)[0].round(8)
    np.float64(0.14053921)
    """
    with Filling("solve_bvp", "collocation", verbose) as filling:
        parameters = p is not None
        if not filling.given("fun_jac", fun_jac):
            fun_jac = filling.pointwise("fun_jac", fun, parameters=parameters)
        if not filling.given("bc_jac", bc_jac):
            holomorphic = bool(np.iscomplexobj(y) or np.iscomplexobj(p))
            bc_jac = filling.boundary("bc_jac", bc, parameters=parameters, holomorphic=holomorphic)
        return solve(
            scipy.integrate.solve_bvp, fun, bc, x, y, p=p, S=S, fun_jac=_or_none(fun_jac),
            bc_jac=_or_none(bc_jac), tol=tol, max_nodes=max_nodes, verbose=verbose, bc_tol=bc_tol,
        )  # fmt: skip


def _or_none(jac: Any) -> Any:
    return None if isinstance(jac, str) and jac == "2-point" else jac
