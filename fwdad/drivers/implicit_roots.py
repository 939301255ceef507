r"""Derivatives of roots that SciPy finds, by the implicit function theorem.

A root x of f depends on what f holds, and not on the way in which it was found:

.. math:: f(x, \theta) = 0 \;\Rightarrow\; f_x \dot x + f_\theta \dot\theta = 0

The derivative of a solver's iterations is another number: they stop at a tolerance of the value, a
first guess that is the root has none at all, and differences of neighbouring iterates, as in the
secant method, leave mostly rounding errors in second derivatives. So the solver runs on plain
numbers, and its result takes Newton steps whose value is not used. As power series in the
arguments, k steps from a constant agree with the root up to order 2\ :sup:`k` - 1.

Source: Griewank and Walther (2008), "Evaluating Derivatives", chapter 15.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.drivers.jacobian import jacobian
from fwdad.drivers.solver_call import as_tuple, bound, by_name, solve_plainly
from fwdad.eager.activity import is_active
from fwdad.eager.build import unseen
from fwdad.eager.calls.dispatch import call, handler
from fwdad.errors import MissingRuleError, UndefinedDerivativeError
from fwdad.evaluation.evaluators import jvp, stop_gradient
from fwdad.rules.core.registry import function_name, when_imported

_STEPS = 3  # derivatives up to the seventh
_CLOSE = float(np.sqrt(np.finfo(float).eps))  # MINPACK's and SciPy's own xtol
_WIDTH = (("xtol", 2e-12), ("rtol", 4 * float(np.finfo(float).eps)))  # SciPy's for brackets
_OPEN = ("newton", "secant", "halley")  # methods of root_scalar that use no bracket
_JUMP = 1e3  # a Newton step to a root from an interval around it, in widths of the interval


class _Report:
    """What a solver says of its result, and whether that is a root.

    Parameters
    ----------
    solver : callable
        The solver.
    converged : bool or array
        Whether it says so, for each root that it finds by itself.
    message : str
        What it says where it has not.
    width : float, optional
        Of the interval in which f changes its sign, for a solver that looks for no more.
    """

    def __init__(
        self, solver: Any, converged: Any, message: Any = "", width: float | None = None
    ) -> None:
        self.name = function_name(solver)
        self._converged = np.asarray(converged)
        self._message = message
        self._width = width

    def check(self, x: Any, step: Any, size: Any = 1.0) -> None:
        """Raise unless x is a root: by what the solver says, or by the residual at x.

        A solver that is asked for more digits than the residual has gives up at a root. So where it
        has not converged, the Newton step that the residual asks for must be at most 1.5e-8 of x.
        Both are measured by the size of the Jacobian's columns, as MINPACK's test of convergence
        does, so that the units of f and x do not matter. Where f jumps over 0, or ends, it changes
        its sign without a root: the step is longer than the interval by far.
        """
        moved: Any = np.abs(size * step)
        reach: Any = np.abs(size * x)
        if self._converged.ndim == 0:
            moved, reach = float(np.linalg.norm(moved)), float(np.linalg.norm(reach))
        near = moved <= _CLOSE * reach
        if not np.all(self._converged | near):
            raise UndefinedDerivativeError(
                f"{self.name} has not converged, so its result is not a root and has no derivative"
                f"{f' ({self._message})' if self._message else ''}. Where a solver gives up, its "
                f"result is taken for a root if a Newton step moves it by at most {_CLOSE:.2g} of "
                f"its size; this one moves it by {np.max(moved / reach):.2g}"
            )
        if self._width is not None and not near and moved > _JUMP * self._width:
            raise UndefinedDerivativeError(
                f"{self.name} has found where the function changes its sign, at {x:.6g}, but that "
                f"is not a root: it jumps there (a Newton step has the length {moved:.2g}). What "
                "depends on the place of a jump has no derivative by the function's values"
            )


def _polished(f: Callable[[Any], Any], x: Any, report: _Report, *, by_element: bool) -> Any:
    """The root x with its derivatives, or x itself where f carries none."""
    with unseen() as run, run:  # the solver has made the effects of the function
        return _newton_steps(f, x, report, by_element=by_element)


def _newton_steps(f: Callable[[Any], Any], x: Any, report: _Report, *, by_element: bool) -> Any:
    if not is_active((call(f, x),)):
        return x
    if np.iscomplexobj(x):
        raise UndefinedDerivativeError(
            f"derivatives of complex roots, found by {report.name}, are not supported"
        )
    y: Any = x
    size: Any = 1.0
    for k in range(_STEPS):
        if by_element or np.ndim(x) == 0:
            value, slope = call(jvp, f, y, np.ones_like(x))
            _check_slope(slope, report)
            step = call(np.divide, value, slope)
        else:
            rows = np.size(x), np.size(x)
            value = call(np.ravel, call(np.asarray, call(f, y)))
            if np.size(stop_gradient(value)) != np.size(x):
                message = f"{report.name}: {np.size(x)} unknowns need as many equations"
                raise UndefinedDerivativeError(message)
            slope = call(np.reshape, call(np.asarray, call(jacobian, f, y)), rows)
            if _is_singular(stop_gradient(slope)):
                _check_slope(np.zeros(1), report)
            step = call(np.reshape, call(np.linalg.solve, slope, value), np.shape(x))
            size = np.reshape(np.linalg.norm(stop_gradient(slope), axis=0), np.shape(x))
        if k == 0:
            report.check(x, stop_gradient(step), size)
        y = call(np.subtract, y, step)
    return call(np.add, x, call(np.subtract, y, stop_gradient(y)))  # the solver's value, to the bit


def _is_singular(slope: Any) -> bool:
    """Whether a square matrix is singular to rounding, whatever the units of rows and columns."""
    for axis in (1, 0):
        largest = np.max(np.abs(slope), axis=axis, keepdims=True, initial=0.0)
        if not np.all(largest):
            return True
        slope = slope / largest
    return int(np.linalg.matrix_rank(slope)) < len(slope)


def _check_slope(slope: Any, report: _Report) -> None:
    if not np.all(stop_gradient(slope)):
        raise UndefinedDerivativeError(
            f"the derivative of a root that {report.name} finds is undefined: the "
            "function's own derivative is 0 (or singular) there"
        )


def _of_scalar(solver: Any, report: Any, root: Any, given: dict[str, Any]) -> _Report:
    """The report on one number, which a bracket or a first guess has led to."""
    width = None
    in_bracket = given.get("bracket") is not None and given["method"] not in _OPEN
    if in_bracket or "b" in given:
        asked = {**given, **(given.get("options") or {})}
        xtol, rtol = (least if asked[name] is None else asked[name] for name, least in _WIDTH)
        width = stop_gradient(xtol) + stop_gradient(rtol) * abs(root)
    return _Report(solver, report.converged, report.flag, width)


def _scalar(solver: Any) -> Callable[..., Any]:
    """The handler of ``newton`` and of ``brentq`` and its relatives."""

    def find(args: Any, kwargs: Any) -> Any:
        given = bound(solver, args, kwargs)
        f, extra = given["func" if "func" in given else "f"], as_tuple(given["args"])
        result, _ = solve_plainly(solver, given, extra, full_output=True)
        found, report = result[:2]
        several = hasattr(result, "_fields")  # more than one: `converged` is an array
        said = _Report(solver, report) if several else _of_scalar(solver, report, found, given)
        root = _polished(lambda x: call(f, x, *extra), found, said, by_element=True)
        if not given["full_output"]:
            return root
        if several:
            return result._replace(root=root)
        report.root = root
        return root, report

    return find


def _fsolve(solver: Any) -> Callable[..., Any]:
    def find(args: Any, kwargs: Any) -> Any:
        given = bound(solver, args, kwargs)
        f, extra = given["func"], as_tuple(given["args"])
        found, info, status, message = solve_plainly(solver, given, extra, full_output=True)[0]
        said = _Report(solver, status == 1, message)
        root = _polished(lambda x: call(f, x, *extra), found, said, by_element=False)
        if given["full_output"]:
            return root, info, status, message
        if status != 1:
            warnings.warn(message, RuntimeWarning, stacklevel=2)  # as fsolve does
        return root

    return find


def _reported(solver: Any, name: str) -> Callable[..., Any]:
    """The handler of ``root`` and ``root_scalar``, which return an object."""

    def find(args: Any, kwargs: Any) -> Any:
        given = bound(solver, args, kwargs)
        f, extra = given["f" if "f" in given else "fun"], as_tuple(given["args"])
        with_slope = given.get("jac") is True or bool(
            given.get("fprime") is True or given.get("fprime2") is True
        )
        report, _ = solve_plainly(solver, given, extra)

        def value(x: Any) -> Any:
            y = call(f, x, *extra)
            return y[0] if with_slope else y

        if name == "x":
            said = _Report(solver, report.success, report.message)
        else:
            said = _of_scalar(solver, report, report.root, given)
        report[name] = _polished(value, report[name], said, by_element=False)
        return report

    return find


def _minimum(solver: Any) -> Callable[..., Any]:
    """The handler of ``minimize`` and its relatives, which refuses derivatives.

    Line searches, parabolas through three points, comparisons and differences of values leave
    numbers that are far from the derivative of the minimum, and nobody would notice. The minimum of
    a function that carries no derivative is found as usual.
    """

    def find(args: Any, kwargs: Any) -> Any:
        given = by_name(solver, args, kwargs)
        result, active = solve_plainly(solver, given, as_tuple(given.get("args", ())))
        others: Any = [given.get(name) for name in _DEPENDS_ON]
        others = [(x.lb, x.ub) if hasattr(x, "lb") else x for x in others]
        if active or is_active(others):
            found = getattr(result, "x", result)
            number = np.ndim(found[0] if isinstance(found, tuple) else found) == 0
            instead = (
                "scipy.optimize.newton(lambda t: fwdad.derivative(f, t), x0)"
                if number
                else "scipy.optimize.root(lambda t: fwdad.jacobian(f, t), x0).x"
            )
            raise MissingRuleError(
                f"{function_name(solver)} has no rule for a minimum that depends on values with "
                "derivatives, and its iterations do not give its derivative. Inside the bounds a "
                f"minimum is a root of the gradient, and roots have derivatives: use {instead}, "
                "where x0 is the minimum found, by fwdad.stop_gradient(...)"
            )
        return result

    return find


_DEPENDS_ON = ("bounds", "ranges", "x1", "x2", "minimizer_kwargs")
"""What a minimum depends on, beside its function."""
_MINIMISERS = (
    "minimize", "minimize_scalar", "least_squares", "leastsq", "golden", "brent", "fminbound",
    "fmin", "fmin_powell", "fmin_bfgs", "fmin_cg", "fmin_ncg", "fmin_tnc", "fmin_l_bfgs_b",
    "fmin_slsqp", "fmin_cobyla", "brute", "basinhopping", "differential_evolution",
    "dual_annealing", "shgo", "direct",
)  # fmt: skip
_KINDS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    **dict.fromkeys(("brentq", "brenth", "ridder", "bisect", "toms748", "newton"), _scalar),
    **dict.fromkeys(_MINIMISERS, _minimum),
    "fsolve": _fsolve,
    "root": functools.partial(_reported, name="x"),
    "root_scalar": functools.partial(_reported, name="root"),
}


def _enter(name: str, kind: Callable[[Any], Callable[..., Any]]) -> None:
    when_imported(f"scipy.optimize.{name}", lambda solver: handler(solver)(kind(solver)))


for _name, _kind in _KINDS.items():
    _enter(_name, _kind)
