"""What moves the ends of an integration, the times that are asked for, and the times of events."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.drivers.initial_values.right_hand_side import Matrix, RightHandSide
from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.explicit import explicit
from fwdad.errors import UndefinedDerivativeError
from fwdad.evaluation.evaluators import jvp, stop_gradient
from fwdad.rules.core.registry import function_name


def shift(t: Any) -> Any:
    """How a value moves: itself less its value."""
    return call(np.subtract, t, stop_gradient(t))


def with_value(value: Any, y: Any) -> Any:
    """The derivatives of y at another value."""
    return call(np.add, value, shift(y))


def moved(f: RightHandSide, t: Any, y: Any, by: Any, depth: int = 0) -> Any:
    """The solution through y at t, at t + by; ``by`` is zero, with derivatives.

    ``depth`` is that of the calls around if it is more than at the time of the solve.

    One step of the classical Runge-Kutta method is right to the fourth order of derivatives.
    """
    if not is_active((by,)):
        return y
    if max(depth, f.depth) == 1:
        return call(np.add, y, call(np.multiply, by, f.vector(stop_gradient(t), stop_gradient(y))))

    def slope(part: float, k: Any = None) -> Any:
        later = call(np.multiply, by, part)
        there = y if k is None else call(np.add, y, call(np.multiply, later, k))
        return f.on_duals(call(np.add, t, later), there)

    first = slope(0.0)
    second = slope(0.5, first)
    third = slope(0.5, second)
    slopes = (first, second, third, slope(1.0, third))
    for k, weight in zip(slopes, (1 / 6, 1 / 3, 1 / 3, 1 / 6), strict=True):
        y = call(np.add, y, call(np.multiply, call(np.multiply, by, weight), k))
    return y


class Ends:
    """The interval, and the times that are asked for."""

    def __init__(self, t_span: Any, t_eval: Any) -> None:
        first, last = t_span
        self.t0, self.tf = explicit(first), explicit(last)
        self.t_eval = None if t_eval is None else explicit(call(np.asarray, t_eval))
        self.span = tuple(float(stop_gradient(t)) for t in (self.t0, self.tf))
        self.active = is_active([self.t0, self.tf, self.t_eval])

    @property
    def direction(self) -> float:
        """1 forward in time, -1 backward."""
        return 1.0 if self.span[1] >= self.span[0] else -1.0

    def start(self, f: RightHandSide, y0: Any) -> Any:
        """The solution at the start's value, where y0 is given at what moves."""
        return moved(f, self.t0, y0, call(np.negative, shift(self.t0)))

    def shifts(self, found: Any) -> dict[int, Any]:
        """How the times of a result move, by their place."""
        count = len(found.t)
        if self.t_eval is not None:
            if not is_active((self.t_eval,)):
                return {}
            every = shift(self.t_eval)
            return {k: every[k] for k in range(count)}
        found_shifts = {}
        if is_active((self.t0,)):
            found_shifts[0] = shift(self.t0)
        if is_active((self.tf,)) and found.status == 0:
            found_shifts[count - 1] = shift(self.tf)
        return found_shifts


class Event(RightHandSide):
    """A function whose zeros are looked for."""

    def for_scipy(self) -> Any:
        """The function without derivatives, with the attributes that SciPy reads."""

        def event(t: Any, y: Any) -> Any:
            return self.plain(t, y)

        for name in ("terminal", "direction"):
            if hasattr(self.f, name):
                setattr(event, name, getattr(self.f, name))
        return event

    def shift(self, f: RightHandSide, t: float, y: Any) -> Any:
        r"""How the time of a zero moves, where y is the solution at the time that was found.

        .. math:: g(t, y(t)) = 0 \;\Rightarrow\; \dot t = -\dot g / (g_t + g_y f)

        with ġ that for a constant time.
        """
        by: Any = 0.0
        slope = None
        for _ in range(self.depth):
            value = self._value(call(np.add, t, by), moved(f, t, y, by))
            if not is_active((value,)):
                return by
            if slope is None:
                slope = self._slope(f, t, stop_gradient(y))
            by = call(np.subtract, by, call(np.divide, shift(value), slope))
        return by

    def _value(self, t: Any, y: Any) -> Any:
        value = explicit(call(self.f, t, y, *self.args))
        return value[0] if np.ndim(stop_gradient(value)) else value

    def _slope(self, f: RightHandSide, t: float, y: Matrix) -> float:
        """The slope of the function along the solution."""
        along = f.vector(t, y)

        def value(s: Any) -> Any:
            there = call(np.add, y, call(np.multiply, s, along))
            return call(self.plain_f, call(np.add, t, s), there, *self.plain_args)

        slope = float(np.real(np.ravel(stop_gradient(jvp(value, 0.0, 1.0)[1]))[0]))
        if slope == 0:
            raise UndefinedDerivativeError(
                f"the time of an event of solve_ivp has no derivative: the slope of "
                f"{function_name(self.f)} along the solution is 0 at t = {t}, where it touches "
                "zero or jumps"
            )
        return slope
