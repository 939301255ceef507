"""Tangents through accepted steps, cotangents back through them, and the steps again on duals.

What comes out are all vectors of the steps, as rows of one array (:class:`Layout`): the solution
anywhere is a sum of few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.drivers.initial_values.right_hand_side import Matrix, RightHandSide
from fwdad.drivers.initial_values.steps import Step
from fwdad.eager.calls.dispatch import call
from fwdad.evaluation.evaluators import stop_gradient


class Layout:
    """The rows of the array: for each step the vectors before it and its F, then the last ones."""

    def __init__(self, steps: list[Step]) -> None:
        self.before: list[slice] = []
        self.inside: list[slice] = []
        at, size = 0, 1
        for step in steps:
            self.before.append(slice(at, at + size))
            self.inside.append(slice(at + size, at + size + len(step.times)))
            at, size = self.inside[-1].stop, step.size
        self.before.append(slice(at, at + size))
        self.rows = at + size


def pushed(steps: list[Step], layout: Layout, f: Any, y0_dot: Matrix) -> Matrix:
    """The tangents of all rows, ``(rows, n, size)``, for those of the start, ``(n, size)``."""
    n, size = y0_dot.shape
    rows = np.empty((layout.rows, n * size))
    rows[0] = y0_dot.ravel()
    flat = (n, size)
    for k, step in enumerate(steps):
        x, F = rows[layout.before[k]], rows[layout.inside[k]]
        Y = step.U @ x
        if step.implicit:
            F[:] = _through_implicit(step, f, Y.reshape(-1, *flat)).reshape(F.shape)
        else:
            for i, t in enumerate(step.times):
                if i:
                    Y[i] += step.A[i, :i] @ F[:i]
                F[i] = f.push(t, step.stages[i], Y[i].reshape(flat)).ravel()
        np.matmul(step.V, x, out=rows[layout.before[k + 1]])
        rows[layout.before[k + 1]] += step.B @ F
    return rows.reshape(-1, *flat)


def _through_implicit(step: Step, f: Any, Y: Matrix) -> Matrix:
    """The tangents of F, which are J Y + G where Y - A F is given."""
    found = [f.linearized(t, y) for t, y in zip(step.times, step.stages, strict=True)]
    J, G = np.stack([a for a, _ in found]), np.stack([b for _, b in found])
    if G.shape[1] == 0:
        G = np.zeros_like(Y)
    rhs = Y + np.einsum("ij,jna->ina", step.A, G)
    stages, n, size = rhs.shape
    columns = rhs.transpose(0, 2, 1).reshape(stages * size, n)
    solved = np.linalg.solve(stage_matrix(step, J), columns).reshape(stages, size, n)
    return np.asarray((J @ solved).transpose(0, 2, 1) + G)


def stage_matrix(step: Step, J: Matrix) -> Matrix:
    """The matrix I - A ⊗ J of a step, where J differs from stage to stage."""
    stages, size = len(J), J.shape[1]
    coupled = np.einsum("ij,jab->iajb", step.A, J).reshape(stages * size, -1)
    return np.asarray(np.eye(stages * size) - coupled)


def pulled(steps: list[Step], layout: Layout, f: Any, rows_bar: Matrix) -> tuple[Matrix, list[Any]]:
    """The cotangents of the start, and of what f reads, for those of all rows, ``(rows, size)``."""
    x_bar = rows_bar[layout.before[-1]]
    others: list[Any] = [None] * len(f.inputs)
    for k in reversed(range(len(steps))):
        step = steps[k]
        F_bar = rows_bar[layout.inside[k]] + step.B.T @ x_bar
        x_bar = rows_bar[layout.before[k]] + step.V.T @ x_bar
        if step.implicit:
            J = np.stack([f.jacobian(t, y) for t, y in zip(step.times, step.stages, strict=True)])
            there = np.einsum("iba,ib->ia", J, F_bar)
            M = stage_matrix(step, J)
            Y_bar = np.linalg.solve(M.T, there.ravel()).reshape(F_bar.shape)
            F_bar = F_bar + step.A.T @ Y_bar
            for i, t in enumerate(step.times if others else ()):
                _add(others, f.pull(t, step.stages[i], F_bar[i])[1])
            x_bar += step.U.T @ Y_bar
            continue
        for i in reversed(range(len(step.times))):
            if not F_bar[i].any():
                continue
            Y_bar, found = f.pull(step.times[i], step.stages[i], F_bar[i])
            _add(others, found)
            x_bar += np.outer(step.U[i], Y_bar)
            F_bar[:i] += np.outer(step.A[i, :i], Y_bar)
    return x_bar[0], others


def _add(sums: list[Any], found: list[Any]) -> None:
    for k, part in enumerate(found):
        if part is not None:
            sums[k] = part if sums[k] is None else sums[k] + part


def replayed(
    steps: list[Step], f: RightHandSide, y0: Any, jacobian: Callable[..., Matrix], depth: int
) -> Any:
    """All rows as a dual array, from the steps run on duals; right to the ``depth``-th order.

    The stages of an implicit step are those that the solver has found. Each of Newton's iterations,
    with the exact matrix, makes one more order of their derivatives right.
    """
    rows: list[Any] = []
    x = call(np.reshape, y0, (1, -1))
    for step in steps:
        base = call(np.matmul, step.U, x)
        if step.implicit:
            F = _implicit_on_duals(step, f, base, jacobian, depth)
        else:
            slopes: list[Any] = []
            for i, t in enumerate(step.times):
                Y = base[i]
                for a, slope in zip(step.A[i], slopes, strict=False):
                    if a:
                        Y = call(np.add, Y, call(np.multiply, a, slope))
                slopes.append(f.on_duals(t, Y))
            F = call(np.stack, slopes)
        rows += [x, F]
        x = call(np.add, call(np.matmul, step.V, x), call(np.matmul, step.B, F))
    return call(np.concatenate, [*rows, x])


def _implicit_on_duals(
    step: Step, f: RightHandSide, base: Any, jacobian: Callable[..., Matrix], depth: int
) -> Any:
    stages = step.stages
    J = np.stack([jacobian(t, y) for t, y in zip(step.times, stages, strict=True)])
    inverse = np.linalg.inv(stage_matrix(step, J))

    def slopes(Y: Any) -> Any:
        return call(np.stack, [f.on_duals(t, Y[i]) for i, t in enumerate(step.times)])

    Y: Any = stages
    for _ in range(depth):
        residual = call(np.subtract, call(np.subtract, Y, base), call(np.matmul, step.A, slopes(Y)))
        residual = call(np.subtract, residual, stop_gradient(residual))  # the values stay
        Y = call(np.subtract, Y, _solved(inverse, residual, stages))
    return slopes(Y)


def _solved(inverse: Matrix, residual: Any, stages: Matrix) -> Any:
    """The real matrix times the parts of a residual."""
    if stages.dtype.kind != "c":
        vector = call(np.matmul, inverse, call(np.reshape, residual, (-1,)))
        return call(np.reshape, vector, stages.shape)
    parts = call(np.stack, [call(np.real, residual), call(np.imag, residual)], -1)
    vector = call(np.matmul, inverse, call(np.reshape, parts, (-1,)))
    both = call(np.reshape, vector, (*stages.shape, 2))
    return call(np.add, both[..., 0], call(np.multiply, 1j, both[..., 1]))
