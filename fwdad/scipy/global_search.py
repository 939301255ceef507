"""Global searches whose local ones have derivatives: ``differential_evolution`` and relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import scipy.optimize

from fwdad.core.tracebacks import public
from fwdad.scipy.constraints import filled_constraints
from fwdad.scipy.filling import Filling, known_here, solve
from fwdad.scipy.minimisation import method_of


@public
def differential_evolution(
    func: Callable[..., Any],
    bounds: Any,
    args: tuple[Any, ...] = (),
    strategy: Any = "best1bin",
    maxiter: int = 1000,
    popsize: int = 15,
    tol: float = 0.01,
    mutation: Any = (0.5, 1),
    recombination: float = 0.7,
    rng: Any = None,
    callback: Callable[..., Any] | None = None,
    disp: bool = False,
    polish: Any = True,
    init: Any = "latinhypercube",
    atol: float = 0,
    updating: str = "immediate",
    workers: Any = 1,
    constraints: Any = (),
    x0: Any = None,
    *,
    integrality: Any = None,
    vectorized: bool = False,
    seed: Any = None,
    verbose: int = 0,
) -> Any:
    """As ``scipy.optimize.differential_evolution``, but polished with derivatives.

    Parameters
    ----------
    func, bounds, args, strategy, maxiter, popsize, tol, mutation, recombination, rng, callback, \
disp, init, atol, updating, workers, constraints, x0, integrality, vectorized, seed
        See ``scipy.optimize.differential_evolution``.
    polish : bool, "2-point" or callable, default True
        True ends with :func:`minimize` by the method that SciPy takes, L-BFGS-B, or trust-constr if
        there are constraints, with the gradient, and for trust-constr with second derivatives,
        filled in. ``"2-point"`` is SciPy's polish, by differences. Before SciPy 1.17 it is SciPy's
        in any case.
    verbose : int, default 0
        1 prints how each derivative was taken, and what ran it, when the call ends.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's own.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If func cannot be differentiated; a note says how to go on without.

    Notes
    -----
    The search itself takes no derivatives. The polish costs what :func:`minimize` costs.

    Examples
    --------
    >>> import numpy as np
    >>> def rastrigin(x):
    ...     return np.sum(x**2 - 10 * np.cos(2 * np.pi * x)) + 20
    >>> found = differential_evolution(rastrigin, [(-5, 5), (-5, 5)], seed=1)
    >>> found.fun < 1e-12
    np.True_
    """
    method = "trust-constr" if np.any(constraints) else "L-BFGS-B"
    shown = "differential_evolution"
    with Filling("minimize", method, verbose, shown=shown, instead="polish='2-point'") as filling:
        polished: Any = polish
        if isinstance(polish, str) and polish == "2-point":
            filling.given("polish", polish)
            polished = True
        elif polish is True and not _takes_polish():
            filling.say(
                "the polish is by SciPy's finite differences, because SciPy "
                f"{scipy.__version__} takes no other"
            )
        elif polish is not True:
            if not polish:
                filling.say("there is no polish, so no derivative is taken")
            else:
                filling.given("polish", polish)
        else:

            def polished(_: Any, start: Any, **limits: Any) -> Any:
                found = filling.objective(func, None, None, None, start)
                limits["constraints"] = filled_constraints(filling, limits["constraints"], start)
                return scipy.optimize.minimize(func, start, args, method, **found, **limits)

        return solve(
            scipy.optimize.differential_evolution, func, bounds, args=args, strategy=strategy,
            maxiter=maxiter, popsize=popsize, tol=tol, mutation=mutation,
            recombination=recombination, callback=callback, disp=disp, polish=polished, init=init,
            atol=atol, updating=updating, workers=workers, constraints=constraints, x0=x0,
            integrality=integrality, vectorized=vectorized, **known_here(rng=rng, seed=seed),
        )  # fmt: skip


def _takes_polish() -> bool:
    """Whether SciPy calls a ``polish`` of the caller's."""
    return tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17)


@public
def dual_annealing(
    func: Callable[..., Any],
    bounds: Any,
    args: tuple[Any, ...] = (),
    maxiter: int = 1000,
    minimizer_kwargs: dict[str, Any] | None = None,
    initial_temp: float = 5230.0,
    restart_temp_ratio: float = 2.0e-5,
    visit: float = 2.62,
    accept: float = -5.0,
    maxfun: float = 1e7,
    rng: Any = None,
    no_local_search: bool = False,
    callback: Callable[..., Any] | None = None,
    x0: Any = None,
    *,
    seed: Any = None,
    verbose: int = 0,
) -> Any:
    """As ``scipy.optimize.dual_annealing``, but with derivatives in its local search.

    Parameters
    ----------
    func, bounds, args, maxiter, initial_temp, restart_temp_ratio, visit, accept, maxfun, rng, \
no_local_search, callback, x0, seed
        See ``scipy.optimize.dual_annealing``.
    minimizer_kwargs : dict, optional
        Of the local search; ``jac``, ``hess`` and ``hessp`` are filled in as by :func:`minimize`
        where they are not given. ``{"jac": "2-point"}`` is SciPy's differences.
    verbose : int, default 0
        1 prints how each derivative was taken, and what ran it, when the call ends.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's own.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If func cannot be differentiated; a note says how to go on without.

    Notes
    -----
    The local search costs what :func:`minimize` costs.

    Examples
    --------
    >>> import numpy as np
    >>> def rastrigin(x):
    ...     return np.sum(x**2 - 10 * np.cos(2 * np.pi * x)) + 20
    >>> found = dual_annealing(rastrigin, [(-5, 5), (-5, 5)], maxiter=300, seed=1)
    >>> found.fun < 1e-10
    np.True_
    """
    limits = [*zip(bounds.lb, bounds.ub, strict=True)] if hasattr(bounds, "lb") else list(bounds)
    n = len(limits)
    given = dict(minimizer_kwargs or {})
    if not given:  # what SciPy takes when it is given nothing
        steps = min(max(6 * n, 100), 1000)
        given = {"method": "L-BFGS-B", "bounds": limits, "options": {"maxiter": steps}}
    with _local_search("dual_annealing", given, verbose) as filling:
        if no_local_search:
            filling.say("there is no local search, so no derivative is taken")
        else:
            given = _filled(filling, func, given, np.zeros(n))
        return solve(
            scipy.optimize.dual_annealing, func, bounds, args=args, maxiter=maxiter,
            minimizer_kwargs=given, initial_temp=initial_temp,
            restart_temp_ratio=restart_temp_ratio, visit=visit, accept=accept, maxfun=maxfun,
            no_local_search=no_local_search, callback=callback, x0=x0,
            **known_here(rng=rng, seed=seed),
        )  # fmt: skip


@public
def basinhopping(
    func: Callable[..., Any],
    x0: Any,
    niter: int = 100,
    T: float = 1.0,
    stepsize: float = 0.5,
    minimizer_kwargs: dict[str, Any] | None = None,
    take_step: Callable[..., Any] | None = None,
    accept_test: Callable[..., Any] | None = None,
    callback: Callable[..., Any] | None = None,
    interval: int = 50,
    disp: bool = False,
    niter_success: int | None = None,
    rng: Any = None,
    *,
    target_accept_rate: float = 0.5,
    stepwise_factor: float = 0.9,
    seed: Any = None,
    verbose: int = 0,
) -> Any:
    """As ``scipy.optimize.basinhopping``, but with derivatives in its local search.

    Parameters
    ----------
    func, x0, niter, T, stepsize, take_step, accept_test, callback, interval, disp, \
niter_success, rng, target_accept_rate, stepwise_factor, seed
        See ``scipy.optimize.basinhopping``.
    minimizer_kwargs : dict, optional
        Of the local search; ``jac``, ``hess`` and ``hessp``, and the derivatives of
        ``constraints``, are filled in as by :func:`minimize` where they are not given.
        ``{"jac": "2-point"}`` is SciPy's differences.
    verbose : int, default 0
        1 prints how each derivative was taken, and what ran it, when the call ends.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's own.

    Raises
    ------
    MissingRuleError, DualLeakError, UnsupportedTypeError
        If func cannot be differentiated; a note says how to go on without.

    Notes
    -----
    The local search costs what :func:`minimize` costs.

    Examples
    --------
    >>> import numpy as np
    >>> def wavy(x):
    ...     return np.cos(14.5 * x[0] - 0.3) + (x[0] + 0.2) * x[0]
    >>> found = basinhopping(wavy, [1], niter=50, seed=1)
    >>> found.x.round(4), found.fun.round(4)
    (array([-0.1951]), np.float64(-1.0009))
    """
    given = dict(minimizer_kwargs or {})
    with _local_search("basinhopping", given, verbose) as filling:
        given = _filled(filling, func, given, x0)
        return solve(
            scipy.optimize.basinhopping, func, x0, niter=niter, T=T, stepsize=stepsize,
            minimizer_kwargs=given, take_step=take_step, accept_test=accept_test,
            callback=callback, interval=interval, disp=disp, niter_success=niter_success,
            target_accept_rate=target_accept_rate, stepwise_factor=stepwise_factor,
            **known_here(rng=rng, seed=seed),
        )  # fmt: skip


def _local_search(shown: str, given: dict[str, Any], verbose: int) -> Filling:
    method = method_of(given.get("method"), given.get("bounds"), given.get("constraints", ()))
    instead = "minimizer_kwargs={'jac': '2-point'}"
    return Filling("minimize", method, verbose, shown=shown, instead=instead)


def _filled(filling: Filling, func: Any, given: dict[str, Any], x0: Any) -> dict[str, Any]:
    """The local search's arguments, with its derivatives."""
    jac, hess, hessp = (given.get(name) for name in ("jac", "hess", "hessp"))
    found = filling.objective(func, jac, hess, hessp, x0)
    filled = {**given, **{name: value for name, value in found.items() if value is not None}}
    if "constraints" in given:
        options = given.get("options")
        filled["constraints"] = filled_constraints(filling, given["constraints"], x0, options)
    return filled
