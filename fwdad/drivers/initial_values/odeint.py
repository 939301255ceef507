"""The handler of ``scipy.integrate.odeint``.

The values are its own. It does not show its steps, so the derivatives are those of ``solve_ivp``
with the same method, LSODA, and the same tolerances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.drivers.solver_call import as_tuple, bound, solve_plainly
from fwdad.eager.activity import is_active
from fwdad.eager.build import unseen
from fwdad.eager.calls.dispatch import call, handler
from fwdad.errors import MissingRuleError
from fwdad.evaluation.evaluators import stop_gradient
from fwdad.rules.core.registry import when_imported

_TOLERANCE = 1.49012e-8  # LSODA's, where odeint is given none


def _find(solver: Any, args: Any, kwargs: Any) -> Any:
    given = bound(solver, args, kwargs)
    func, extra = given["func"], as_tuple(given["args"])
    found, varies = solve_plainly(solver, given, extra)
    if not (varies or is_active((given["y0"], given["t"]))):
        return found

    def fun(t: Any, y: Any) -> Any:
        return call(func, *((t, y) if given["tfirst"] else (y, t)), *extra)

    with unseen() as run, run:  # the solver has made the effects of the function
        same = _solution(fun, given)
    y = found[0] if given["full_output"] else found
    y = call(np.add, y, call(np.subtract, same, stop_gradient(same)))
    return (y, *found[1:]) if given["full_output"] else y


def _solution(fun: Any, given: dict[str, Any]) -> Any:
    """The same solution by ``solve_ivp``, a row for each time."""
    from scipy.integrate import solve_ivp  # noqa: PLC0415  (its caller has imported it)

    t, y0 = call(np.asarray, given["t"]), call(np.ravel, call(np.asarray, given["y0"]))
    plain = np.asarray(stop_gradient(t), float)
    first = np.concatenate([[True], plain[1:] != plain[:-1]])
    if is_active((t,)) and not np.all(first):
        raise MissingRuleError(
            "scipy.integrate.odeint: times that carry derivatives must all be different"
        )
    if np.sum(first) == 1:
        return call(np.broadcast_to, y0, (first.size, stop_gradient(y0).size))
    times = call(lambda t: t[first], t)
    options: dict[str, Any] = {"method": "LSODA", "t_eval": times}
    for name in ("rtol", "atol"):
        options[name] = _TOLERANCE if given[name] is None else given[name]
    options |= {f"{name[1:]}_step": given[name] for name in ("hmax", "hmin") if given[name]}
    span = call(lambda t: (t[0], t[-1]), times)
    result = call(solve_ivp, fun, span, y0, **options)
    return call(lambda y: y.T[np.cumsum(first) - 1], result.y)


when_imported(
    "scipy.integrate.odeint",
    lambda solver: handler(solver)(lambda args, kwargs: _find(solver, args, kwargs)),
)
