"""``linearize``'s answer: the Jacobian at a point as a SciPy linear operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tangents.seeds import leaf_dtype, leaf_shape


class JacobianOperator(LinearOperator):  # type: ignore[misc]
    """The Jacobian of f at x, without the matrix.

    ``matvec`` pushes a direction forward; ``matmat`` pushes its columns a chunk at a time.
    ``rmatvec`` pulls a cotangent back; ``rmatmat`` pulls its columns.
    Composite arguments and values are raveled leaf after leaf, in C order.

    Parameters
    ----------
    at : object
        ``at.push(v)`` answers the tangents of f(x) in K directions, ``at.pull(y_bar)`` the
        cotangents of x for K of f(x).
    x : float, array or composite
        Where.
    y : float, array or composite
        ``f(x)``.
    """

    def __init__(self, at: Any, x: Any, y: Any) -> None:
        self._at = at
        self._leaves, self._structure = flatten(x)
        outputs, self._y_structure = flatten(y)
        self._outputs = outputs
        n = sum(math.prod(leaf_shape(leaf)) for leaf in self._leaves)
        m = sum(math.prod(leaf_shape(leaf)) for leaf in outputs)
        dtype = np.result_type(*(leaf_dtype(leaf) for leaf in (*self._leaves, *outputs)))
        if dtype.kind == "O":
            message = (
                "a linear operator acts on numbers, and here x or f(x) has tangents of a class of "
                "its own: use jvp(f, x, v)"
            )
            raise UnsupportedTypeError(message)
        super().__init__(dtype, (m, n))

    def _matmat(self, v: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(v.T)
        seeds = _split(rows, self._leaves)
        y_dot = self._at.push(unflatten(self._structure, seeds))
        parts, _ = flatten(y_dot)
        return np.concatenate([p.reshape(len(rows), -1) for p in parts], axis=1).T

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return self._matmat(v.reshape(-1, 1))[:, 0]

    def _rmatvec(self, v: np.ndarray) -> np.ndarray:
        return self._rmatmat(v.reshape(-1, 1))[:, 0]

    def _rmatmat(self, v: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(v.T)
        bars = _split(rows, self._outputs)
        x_bar = self._at.pull(unflatten(self._y_structure, bars))
        parts, _ = flatten(x_bar)
        return np.concatenate([p.reshape(len(rows), -1) for p in parts], axis=1).T


def _split(rows: np.ndarray, leaves: list[Any]) -> list[np.ndarray]:
    """Rows of numbers as stacks of leaves."""
    found, start = [], 0
    for leaf in leaves:
        size = math.prod(leaf_shape(leaf))
        found.append(rows[:, start : start + size].reshape(-1, *leaf_shape(leaf)))
        start += size
    return found
