"""The solution at any time, from the vectors of the steps: where results are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.drivers.initial_values.ends import Ends, Event, moved, shift, with_value
from fwdad.drivers.initial_values.propagation import Layout
from fwdad.drivers.initial_values.right_hand_side import (
    Matrix,
    RightHandSide,
    depth_of_calls,
)
from fwdad.drivers.initial_values.steps import Step
from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call
from fwdad.evaluation.evaluators import stop_gradient


class Steps:
    """The accepted steps, with the derivatives of all their vectors: ``rows``."""

    def __init__(self, steps: list[Step], layout: Layout, rows: Any, direction: float) -> None:
        self.steps = steps
        self.layout = layout
        self.rows = rows
        self.direction = direction
        self._ends = direction * np.array([step.t for step in steps])

    def at(self, times: Matrix) -> Any:
        """The solution at some times, ``(m, n)``; of its value only the derivatives count."""
        places = [self._place(t) for t in times]
        most = max((len(rows) for rows, _ in places), default=0)
        index, weights = np.zeros((len(places), most), int), np.zeros((len(places), most))
        for m, (rows, found) in enumerate(places):
            index[m, : len(rows)], weights[m, : len(rows)] = rows, found
        return call(np.einsum, "mr,mrn->mn", weights, self.rows[index])

    def _place(self, t: float) -> tuple[Matrix, Matrix]:
        """The rows whose sum is the solution at a time, and their weights."""
        k = int(np.searchsorted(self._ends, self.direction * t))
        if k < len(self.steps) and self.steps[k].t == t:
            return np.array([self.layout.before[k + 1].start]), np.ones(1)
        k = min(max(k, 1), len(self.steps) - 1)
        parts = (self.layout.before[k], self.layout.inside[k], self.layout.before[k + 1])
        rows = np.concatenate([np.arange(part.start, part.stop) for part in parts])
        weights = np.concatenate(self.steps[k].weights(t))
        used = weights != 0
        return rows[used], weights[used]


class Solution:
    """SciPy's ``OdeSolution`` with derivatives; a time may carry them, too."""

    def __init__(self, found: Any, steps: Steps, f: RightHandSide) -> None:
        self.found = found
        self._steps = steps
        self._f = f

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "found":  # of an object that is being copied
            raise AttributeError(name)
        return getattr(self.found, name)

    def __call__(self, t: Any) -> Any:
        """The solution at one time, ``(n,)``, or at some, ``(n, m)``."""
        at = np.asarray(stop_gradient(t))
        value = self.found(at)
        columns = value if at.ndim else value[:, None]
        y = with_value(columns, call(np.transpose, self._steps.at(np.atleast_1d(at))))
        if is_active((t,)):
            by = call(np.reshape, shift(t), (-1,))
            shifts = {k: by[k] for k in range(at.size)}
            y = moved_columns(self._f, np.atleast_1d(at), y, shifts, depth_of_calls())
        return y if at.ndim else y[:, 0]


def moved_columns(
    f: RightHandSide, times: Matrix, y: Any, shifts: dict[int, Any], depth: int = 0
) -> Any:
    """Solutions at some times, of which some move."""
    if not shifts:
        return y
    columns = [
        moved(f, t, y[:, k], shifts[k], depth) if k in shifts else y[:, k]
        for k, t in enumerate(times)
    ]
    return call(np.stack, columns, 1)


def give_derivatives(
    found: Any, steps: Steps, f: RightHandSide, ends: Ends, events: list[Event]
) -> Any:
    """SciPy's result with the derivatives of all its parts."""
    shifts = ends.shifts(found)
    times = np.asarray(found.t, float)
    for k, event in enumerate(events):
        at = found.t_events[k]
        if not len(at):
            continue
        y = with_value(found.y_events[k], steps.at(at))
        by = [event.shift(f, t, y[m]) for m, t in enumerate(at)]
        found.t_events[k] = call(
            np.stack, [call(np.add, t, b) for t, b in zip(at, by, strict=True)]
        )
        found.y_events[k] = call(np.stack, [moved(f, t, y[m], by[m]) for m, t in enumerate(at)])
        if found.status == 1 and ends.t_eval is None and at[-1] == times[-1]:
            shifts[len(times) - 1] = by[-1]
    if found.sol is not None:
        found.sol = Solution(found.sol, steps, f)
    if not len(times):
        return found
    y = with_value(found.y, call(np.transpose, steps.at(times)))
    found.y = moved_columns(f, times, y, shifts)
    moving = {k: b for k, b in shifts.items() if is_active((b,))}
    if moving:
        found.t = call(
            np.stack,
            [call(np.add, t, moving[k]) if k in moving else t for k, t in enumerate(times)],
        )
    return found
