r"""The accepted steps of SciPy's solvers, each as a step of a general linear method.

Such a step takes some vectors x to the next ones, by way of stages Y:

.. math:: Y = U x + A F, \qquad F_i = f(t_i, Y_i), \qquad x' = V x + B F

with the step's size inside the coefficients. For Runge-Kutta methods x is the solution, and for the
explicit ones its slope, which the next step uses again. For BDF, x are the backward differences, to
which a change of the step's size or of the order is a linear map.

Source: Butcher (2006), "General linear methods", Acta Numerica 15, for the form. The coefficients
are those of SciPy's solvers; of Radau IIA, Hairer and Wanner (1996), "Solving Ordinary Differential
Equations II", table IV.5.6; of BDF, Shampine and Reichelt (1997), "The MATLAB ODE suite".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Weights = tuple[Array, Array, Array]
"""Of a point inside a step: the weights of the vectors before it, of its F, of those after it."""


@dataclass
class Step:
    """An accepted step: where it was, its coefficients, and the values of its stages.

    ``weights(t)`` are those with which the solver's interpolation makes the solution at t. ``size``
    is how many vectors the step leaves behind.
    """

    t_old: float
    t: float
    times: Array
    stages: Array
    A: Array
    U: Array
    B: Array
    V: Array
    weights: Callable[[float], Weights]
    implicit: bool = False

    @property
    def size(self) -> int:
        """How many vectors the step leaves behind."""
        return len(self.V)


class Recorder:
    """What notes the steps of a solver while it runs; one for each kind of method.

    ``steps`` are those accepted so far. ``start`` is made of the solution at the beginning.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def begin(self, solver: Any) -> None:
        """Note the start."""

    def before(self, _solver: Any) -> Any:
        """What has to be known of a solver before a step."""

    def after(self, solver: Any, _before: Any) -> None:
        """Note an accepted step."""
        raise NotImplementedError

    def interpolated(self, _solver: Any) -> None:
        """Note what the solver's interpolation in its last step has needed."""

    def finish(self, f: Any, options: dict[str, Any]) -> None:
        """Complete the steps of the function f when the solver is done."""


def recorded(method: Any, recorder: Recorder) -> Any:
    """A solver's class whose objects tell a recorder of their steps, and are the same otherwise."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        method.__init__(self, *args, **kwargs)
        recorder.begin(self)

    def step(self: Any) -> Any:
        t, known = self.t, recorder.before(self)
        message = method.step(self)
        if self.status != "failed" and self.t != t:
            recorder.after(self, known)
        return message

    def _dense_output_impl(self: Any) -> Any:
        made = method._dense_output_impl(self)  # noqa: SLF001  (what a solver's class has to define)
        recorder.interpolated(self)
        return made

    members = {"__init__": init, "step": step, "_dense_output_impl": _dense_output_impl}
    return type(method.__name__, (method,), {**members, "__module__": method.__module__})


def _start(t: float, y: Array, slope: float | None) -> Step:
    """The beginning: x is the solution and, times ``slope``, the value of f."""
    rows = 1 if slope is None else 2
    V, B = np.zeros((rows, 1)), np.zeros((rows, 1))
    V[0], B[1:] = 1.0, 0.0 if slope is None else slope

    def weights(_t: float) -> Weights:
        return np.ones(1), np.zeros(1), np.zeros(rows)

    return Step(t, t, np.array([t]), y[None], np.zeros((1, 1)), np.ones((1, 1)), B, V, weights)


class ExplicitRecorder(Recorder):
    """The steps of ``RK23``, ``RK45`` and ``DOP853``."""

    def begin(self, solver: Any) -> None:
        """See :class:`Recorder`."""
        self.steps.append(_start(solver.t, solver.y.copy(), 1.0))

    def after(self, solver: Any, _before: Any) -> None:
        """See :class:`Recorder`."""
        h = solver.t - solver.t_old
        rows = _rows_of(solver)
        times = np.append(solver.t_old + solver.C[1:] * h, solver.t)
        self.steps.append(self._made(solver, rows, times, solver.K, _weights_of_rk(solver, h)))

    def interpolated(self, solver: Any) -> None:
        """See :class:`Recorder`; ``DOP853`` has more stages there."""
        extra = getattr(solver, "A_EXTRA", None)
        if extra is None or len(self.steps[-1].times) > solver.n_stages:
            return
        h = solver.t - solver.t_old
        K = solver.K_extended
        rows = np.zeros((len(K) - 1, len(K)))
        rows[: solver.n_stages, : solver.n_stages] = _rows_of(solver)
        rows[solver.n_stages :, : extra.shape[1]] = extra
        times = np.append(self.steps[-1].times, solver.t_old + solver.C_EXTRA * h)
        self.steps[-1] = self._made(solver, rows, times, K, _weights_of_dop853(solver, h))

    @staticmethod
    def _made(solver: Any, rows: Array, times: Array, K: Array, weights: Any) -> Step:
        """A step from the coefficients of its slopes K, which begin with the last step's f."""
        h, last, count = solver.t - solver.t_old, solver.n_stages - 1, len(times)
        full = np.zeros((count, count + 1))
        full[:, : rows.shape[1]] = h * rows
        A, first = full[:, 1:], full[:, :1]
        stages = solver.y_old + full @ K[: count + 1]
        stages[last] = solver.y
        U = np.hstack([np.ones((count, 1)), first])
        V = np.array([[1.0, full[last, 0]], [0.0, 0.0]])
        B = np.zeros((2, count))
        B[0], B[1, last] = A[last], 1.0
        return Step(solver.t_old, solver.t, times, stages, A, U, B, V, weights)


def _rows_of(solver: Any) -> Array:
    """The coefficients of all slopes but the first, in the order of evaluation."""
    rows = np.zeros((solver.n_stages, solver.n_stages))
    rows[:-1, : solver.A.shape[1]] = solver.A[1:]
    rows[-1] = solver.B
    return rows


def _weights_of_rk(solver: Any, h: float) -> Callable[[float], Weights]:
    P, t_old = solver.P, solver.t_old

    def weights(t: float) -> Weights:
        x = (t - t_old) / h
        of_slopes = h * (P @ np.cumprod(np.full(P.shape[1], x)))
        return np.array([1.0, of_slopes[0]]), of_slopes[1:], np.zeros(2)

    return weights


def _weights_of_dop853(solver: Any, h: float) -> Callable[[float], Weights]:
    t_old, last, count = solver.t_old, solver.n_stages, len(solver.K_extended)
    change = np.zeros(count)
    change[:last] = h * solver.B
    first, new = np.eye(count)[0], np.eye(count)[last]
    parts = [change, h * first - change, 2 * change - h * (new + first), *(h * solver.D)]

    def weights(t: float) -> Weights:
        x = (t - t_old) / h
        factors = np.cumprod([1 - x if k % 2 else x for k in range(len(parts))])
        of_slopes = factors @ np.array(parts)
        return np.array([1.0, of_slopes[0]]), of_slopes[1:], np.zeros(2)

    return weights


# -- Radau IIA

_ROOT = 6**0.5
RADAU_TIMES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
RADAU = np.array([
    [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
    [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
    [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
])  # fmt: skip


def collocation_step(t_old: float, t: float, stages: Array) -> Step:
    """A step of the Radau IIA method of order 5, whose polynomial has f's slope at the stages."""
    h = t - t_old
    A = h * RADAU
    # the polynomial that is 0 at the beginning and one at one of the stages
    cubic = np.linalg.inv(RADAU_TIMES[:, None] ** np.arange(1, 4))

    def weights(t: float) -> Weights:
        x = (t - t_old) / h
        return np.ones(1), (x ** np.arange(1, 4)) @ cubic @ A, np.zeros(1)

    return Step(
        t_old, t, t_old + h * RADAU_TIMES, stages, A, np.ones((3, 1)), A[2:], np.ones((1, 1)),
        weights, implicit=True,
    )  # fmt: skip


class RadauRecorder(Recorder):
    """The steps of ``Radau``."""

    def begin(self, solver: Any) -> None:
        """See :class:`Recorder`."""
        self.steps.append(_start(solver.t, solver.y.copy(), None))

    def after(self, solver: Any, _before: Any) -> None:
        """See :class:`Recorder`."""
        stages = solver.y_old + solver.Z
        self.steps.append(collocation_step(solver.t_old, solver.t, stages))


# -- BDF


class BdfRecorder(Recorder):
    """The steps of ``BDF``, in its variant of NDF."""

    def begin(self, solver: Any) -> None:
        """See :class:`Recorder`."""
        slope = solver.h_abs * solver.direction
        self.steps.append(_start(solver.t, solver.y.copy(), slope))

    def before(self, solver: Any) -> Any:
        """See :class:`Recorder`."""
        return solver.h_abs, solver.order

    def after(self, solver: Any, before: Any) -> None:
        """See :class:`Recorder`."""
        h_before, order = before
        h = solver.t - solver.t_old
        to_h = _rescaling(order, abs(h) / h_before)  # rejected steps have done this bit by bit
        g = np.append(0.0, solver.gamma[1 : order + 1]) / solver.alpha[order]
        c = h / solver.alpha[order]
        U = (1.0 - g) @ to_h
        # the new differences: each adds those of higher orders, and the last one is d = cF − g·D
        added = np.vstack([np.triu(np.ones((order + 1, order + 1))), np.zeros(order + 1)])
        V, B = (added - g) @ to_h, np.full((order + 2, 1), c)
        new = solver.order
        onward = _rescaling(new, solver.h_abs / abs(h))
        V, B = onward @ V[: new + 1], onward @ B[: new + 1]
        before_it, inside = np.zeros(order + 1), np.zeros(1)
        t, spacing = solver.t, solver.h_abs * solver.direction
        shifts = t - spacing * np.arange(new)
        widths = spacing * (1 + np.arange(new))

        def weights(t: float) -> Weights:
            return before_it, inside, np.append(1.0, np.cumprod((t - shifts) / widths))

        self.steps.append(
            Step(
                solver.t_old, t, np.array([t]), solver.y[None].copy(), np.array([[c]]), U[None],
                B, V, weights, implicit=True,
            )
        )  # fmt: skip


def _rescaling(order: int, factor: float) -> Array:
    """The matrix that takes differences to those of steps ``factor`` times as long."""
    if factor == 1:
        return np.eye(order + 1)
    return _power_matrix(order, factor).dot(_power_matrix(order, 1.0)).T


def _power_matrix(order: int, factor: float) -> Array:
    i, j = np.arange(1, order + 1)[:, None], np.arange(1, order + 1)
    M = np.zeros((order + 1, order + 1))
    M[1:, 1:] = (i - 1 - factor * j) / i
    M[0] = 1
    return np.cumprod(M, axis=0)
