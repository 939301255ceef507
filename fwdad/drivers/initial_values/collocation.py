r"""The steps of solvers that do not show how they were made: LSODA, and classes of the user's.

A step's solution, by the solver's own interpolation, nearly fulfils the equations of the Radau IIA
method of order 5,

.. math:: Y = x + h A f(Y)

What is missing is held as a constant, and the derivatives are those of this method along the
solver's solution. A step in which Newton's first correction of Y is larger than the tolerance is
halved, until it is not, or does not become smaller.

Source: Hairer and Wanner (1996), "Solving Ordinary Differential Equations II", section IV.8.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fwdad.drivers.initial_values.propagation import stage_matrix
from fwdad.drivers.initial_values.right_hand_side import Matrix, RightHandSide, as_real
from fwdad.drivers.initial_values.steps import RadauRecorder, Step, collocation_step

_HALVED_AT_MOST = 6


class CollocationRecorder(RadauRecorder):
    """The steps of any solver, by its interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[tuple[float, float, Any]] = []

    def after(self, solver: Any, _before: Any) -> None:
        """See :class:`Recorder`."""
        self._pieces.append((solver.t_old, solver.t, solver.dense_output()))

    def finish(self, f: RightHandSide, options: dict[str, Any]) -> None:
        """See :class:`Recorder`."""
        tolerance = options.get("rtol", 1e-3), options.get("atol", 1e-6)  # those of SciPy
        first = f.traced(self.steps[0].t, self.steps[0].stages[0])
        jacobian = getattr(first, "jacobian", f.jacobian)
        for t_old, t, solution in self._pieces:
            parts, error = 1, np.inf
            for _ in range(_HALVED_AT_MOST):
                made = _divided(t_old, t, solution, parts)
                before, error = (
                    error,
                    max(_error(s, f, jacobian, solution, tolerance) for s in made),
                )
                if error <= 1 or error > before / 2:
                    break
                parts *= 2
            self.steps += made
        self._pieces.clear()


def _divided(t_old: float, t: float, solution: Any, parts: int) -> list[Step]:
    ends = np.linspace(t_old, t, parts + 1)
    ends[-1] = t
    made = []
    for a, b in pairwise(ends):
        step = collocation_step(float(a), float(b), np.empty(0))
        step.stages = np.ascontiguousarray(solution(step.times).T)
        made.append(step)
    return made


def _error(step: Step, f: RightHandSide, jacobian: Any, solution: Any, tolerance: Any) -> float:
    """Newton's first correction of the stages, relative to the tolerance."""
    rtol, atol = tolerance
    Y = step.stages
    F = np.stack([f.vector(t, y) for t, y in zip(step.times, Y, strict=True)])
    J = np.stack([jacobian(t, y) for t, y in zip(step.times, Y, strict=True)])
    residual: Matrix = Y - solution(step.t_old) - step.A @ F
    correction = np.linalg.solve(stage_matrix(step, J), as_real(residual).ravel())
    scale = np.repeat(atol + rtol * np.abs(Y), len(correction) // Y.size, axis=1)
    return float(np.sqrt(np.mean((correction / scale.ravel()) ** 2)))
