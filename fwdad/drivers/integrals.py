r"""Derivatives of the integrals that ``scipy.integrate.quad`` finds, and of those made of it.

.. math:: I = \int_a^b f(t, \theta)\,dt \;\Rightarrow\;
    \dot I = f(b)\,\dot b - f(a)\,\dot a + \int_a^b f_\theta \dot\theta\,dt

QUADPACK runs on plain numbers. Its result is an extrapolation, whose derivative is another one, so
the integral of the derivative is a sum of its own, over the subintervals that QUADPACK ended with:
by the double exponential rule, which does not mind singular ends. Its steps are halved until the
sum of f agrees with QUADPACK, and those of f and of its tangents have settled; in reverse mode,
those of the cotangents that a sweep over the integrand's own operations finds. The ends move by an
integral over the empty interval beside them, by a Gauss rule that is right up to the seventh
derivative.

Source of the rule: Takahasi and Mori (1974), "Double exponential formulas for numerical
integration", https://doi.org/10.2977/prims/1195192451.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.drivers.solver_call import as_tuple, bound, solve_plainly
from fwdad.eager.activity import is_active
from fwdad.eager.build import unseen
from fwdad.eager.calls.dispatch import call, handler
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.run import STATE
from fwdad.eager_reverse.sweep import Sweep
from fwdad.errors import MissingRuleError, UndefinedDerivativeError
from fwdad.evaluation.evaluators import stop_gradient
from fwdad.rules.core.registry import when_imported
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import quietly
from fwdad.tangents.zero import Zero

_REACH = 4.0  # of the rule: the last node is 1e-37 of the interval away from its end
_FIRST, _LAST = 4, 128  # steps for a unit of the rule
_AGREES = 1e-12  # with QUADPACK, unless that estimates a larger error of its own
_SETTLED = 1e-8  # from one step to its half, which doubles the digits once more
_X, _W = np.polynomial.legendre.leggauss(4)


def _nodes(ends: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes that halving the step adds, in subintervals without their ends, and their weights."""
    k = np.arange(-_REACH * steps, _REACH * steps + 1)
    k = (k if steps == _FIRST else k[1::2]) / steps
    distance = 1 / (1 + np.exp(np.pi * np.sinh(np.abs(k))))  # from the nearer end of (0, 1)
    weight = np.pi * np.cosh(k) * distance * (1 - distance) / steps
    low, high = ends[:, :1], ends[:, 1:]
    moved = (high - low) * distance
    nodes = np.where(k < 0, low + moved, high - moved)
    inside = (low < nodes) & (nodes < high)
    return nodes[inside], np.broadcast_to((high - low) * weight, nodes.shape)[inside]


class _Map:
    """QUADPACK's variable, which it divides into subintervals: t, or one of (0, 1) for a range."""

    def __init__(self, low: float, high: float) -> None:
        self.is_finite = np.isfinite(low) and np.isfinite(high)
        self._both = not np.isfinite(low) and not np.isfinite(high)
        self._sign = 1.0 if self._both or np.isfinite(low) else -1.0
        self._end = 0.0 if self._both else low if np.isfinite(low) else high

    def __call__(self, s: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights in t."""
        if self.is_finite:
            return s, weight
        distance, weight = (1 - s) / s, weight / s**2
        t = self._end + self._sign * distance
        return (np.concatenate([t, -t]), np.tile(weight, 2)) if self._both else (t, weight)


Totals = dict[Any, tuple[Any, Any]]


def _totals(x: Any, weights: np.ndarray, first: dict[Any, int]) -> Totals:
    """Weighted sums of an integrand's values and of all its tangents, each with its size.

    In a recorded run these are the cotangents of what was there before its operation ``first``.
    """
    if not isinstance_dual(x):
        rows = np.reshape(x, (-1, weights.size))
        return {(): (rows @ weights, np.abs(rows) @ weights)}
    found = _totals(x.p, weights, first)
    if isinstance(x.t, Zero):
        return found
    if x.tag.record is not None:
        return found | quietly(_pulled, x, weights, first)
    lanes = _totals(x.t.lanes, weights, first)
    return found | {(x.tag, key): total for key, total in lanes.items()}


def _pulled(x: Any, weights: np.ndarray, first: dict[Any, int]) -> Totals:
    """The cotangents for the weights, by a sweep over the operations of the integrand alone."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], weights.size)  # the size, if terms cancel
    record, sweep = x.tag.record, Sweep(2, careful=False, nested=True)
    sweep.spread(x.t.terms, np.stack([weights, weights * signs]))
    for operation in reversed(record.operations[first.get(record, 0) :]):
        operation.pull(sweep)
    bars = {key: np.asarray(plain(bar)) for key, bar in sweep.remaining().items()}
    return {key: (bar[0], np.max(np.abs(bar), initial=0)) for key, bar in bars.items()}


def _recorded() -> dict[Any, int]:
    """For each run under way that is recorded, the number of its operations so far."""
    run, found = STATE.run, {}
    while run is not None:
        if run.tag.record is not None:
            found[run.tag.record] = len(run.tag.record.operations)
        run = run.outer
    return found


def _inside(f: Callable[[Any], Any], found: tuple[Any, ...], low: float, high: float) -> Any:
    """The integral from low to high by a rule whose derivatives are those of the integral."""
    value, error, info = found[:3]
    ends = np.stack([info["alist"], info["blist"]], axis=1)[: info["last"]]
    place, total = _Map(low, high), 0.0
    totals: Totals = {}
    first, steps = _recorded(), _FIRST
    while steps <= _LAST:
        nodes, weights = place(*_nodes(ends, steps))
        values = call(np.ravel, call(np.stack, [call(f, float(t)) for t in nodes]))
        total = call(np.add, call(np.multiply, 0.5, total), call(np.dot, weights, values))
        added, before = _totals(values, weights, first), totals
        totals = {
            key: tuple(old / 2 + new for old, new in zip(
                before.get(key, (0.0, 0.0)), added.get(key, (0.0, 0.0)), strict=True))
            for key in before | added
        }  # fmt: skip
        (own,), (size,) = totals[()]
        agrees = abs(own - value) <= max(error, _AGREES * size)
        if agrees and steps > _FIRST and all(
            np.all(np.abs(new - before.get(key, (0.0,))[0]) <= _SETTLED * size)
            for key, (new, size) in totals.items()
        ):  # fmt: skip
            return total
        steps *= 2
    raise UndefinedDerivativeError(
        f"scipy.integrate.quad found the integral {value:.10g}, its error being {error:.2g}, and a "
        f"double exponential rule on the same subintervals {own:.10g}, without settling for it and "
        "its derivatives. Give quad the places where the integrand jumps or is singular as points, "
        "or divide the interval there"
    )


def _moved(f: Callable[[Any], Any], end: Any, *, nested: bool) -> Any:
    """The integral from an end to where its derivatives move it; its value is 0.

    Derivatives of f at the end count where derivatives are ``nested``.
    """
    start = stop_gradient(end)
    if not is_active((end,)) or not np.isfinite(start):
        return 0.0
    length = call(np.subtract, end, start)
    if not nested:  # slopes of f, which may be infinite there, are multiplied by a length of 0
        return call(np.multiply, length, stop_gradient(call(f, start)))
    total: Any = 0.0
    for x, w in zip(0.5 + _X / 2, _W / 2, strict=True):
        total = call(np.add, total, call(np.multiply, w, call(f, call(np.add, start, call(
            np.multiply, x, length)))))  # fmt: skip
    return call(np.multiply, length, total)


def _constant(solver: Any, args: Any, kwargs: Any) -> Any:
    if is_active((*args, *kwargs.values())):
        raise MissingRuleError(
            "scipy.integrate.quad of compiled code (a LowLevelCallable) has no derivative: write "
            "the integrand in Python"
        )
    return solver(*args, **kwargs)


def _quad(solver: Any) -> Callable[..., Any]:
    def find(args: Any, kwargs: Any) -> Any:
        given = bound(solver, args, kwargs)
        if not callable(given["func"]):
            return _constant(solver, args, kwargs)
        return _of_parts(find, given) if given["complex_func"] else _integral(solver, given)

    return find


def _of_parts(find: Callable[..., Any], given: dict[str, Any]) -> Any:
    """The integral of a complex function, as SciPy puts it together."""
    func = given["func"]
    (re, re_error, *re_info), (im, im_error, *im_info) = (
        find((), {**given, "func": lambda *x, part=part: call(part, call(func, *x)),
                  "complex_func": False})
        for part in (np.real, np.imag)
    )  # fmt: skip
    value = call(np.add, re, call(np.multiply, 1j, im))
    info = ({"real": tuple(re_info), "imag": tuple(im_info)},) if given["full_output"] else ()
    return (value, re_error + 1j * im_error, *info)


def _integral(solver: Any, given: dict[str, Any]) -> Any:
    func, extra = given["func"], as_tuple(given["args"])
    found, varies = solve_plainly(solver, given, extra, full_output=True)
    value = found[0]
    if varies or is_active((given["a"], given["b"])):
        if given["weight"] is not None:
            raise MissingRuleError(
                "scipy.integrate.quad with a weight has no derivative: multiply the integrand by "
                "the weight, and leave the argument out"
            )
        nested = STATE.run is not None and STATE.run.outer is not None
        with unseen() as run, run:  # the solver has made the effects of the function
            value = _with_derivatives(
                lambda t: call(func, t, *extra), found, given, varies=varies, nested=nested
            )
    if given["full_output"]:
        return (value, *found[1:])
    if len(found) > 3:
        from scipy.integrate import IntegrationWarning  # noqa: PLC0415  (its caller has imported it)

        warnings.warn(found[3], IntegrationWarning, stacklevel=2)  # as quad does
    return value, found[1]


def _with_derivatives(
    f: Callable[[Any], Any],
    found: tuple[Any, ...],
    given: dict[str, Any],
    *,
    varies: bool,
    nested: bool,
) -> Any:
    """The integral that was found, with its derivatives; ``varies`` if f has some."""
    low, high = float(stop_gradient(given["a"])), float(stop_gradient(given["b"]))
    ends = (_moved(f, given[end], nested=nested) for end in ("b", "a"))
    total = call(np.subtract, *ends)
    if varies and low != high:
        sign = 1.0 if low < high else -1.0
        inside = _inside(f, (sign * found[0], *found[1:]), min(low, high), max(low, high))
        total = call(np.add, total, call(np.multiply, sign, inside))
    return call(np.add, found[0], call(np.subtract, total, stop_gradient(total)))


when_imported("scipy.integrate.quad", lambda solver: handler(solver)(_quad(solver)))
