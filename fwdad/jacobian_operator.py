"""``linearize``'s answer: the Jacobian at a point as a SciPy linear operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.composite import flatten
from fwdad.tangents.seeds import leaf_dtype, leaf_shape


class JacobianOperator(LinearOperator):  # type: ignore[misc]
    """The Jacobian of f at x, without the matrix.

    ``matvec`` pushes a direction forward; ``matmat`` pushes its columns a chunk at a time.
    ``rmatvec`` pulls a cotangent back; ``rmatmat`` pulls its columns.
    Composite arguments and values are raveled leaf after leaf, in C order.

    Parameters
    ----------
    at : object
        ``at.push(rows)`` answers the tangents of the leaves of f(x) in K directions of those of x,
        ``at.pull(rows)`` the cotangents of these for K of f(x).
    x : float, array or composite
        Where.
    y : float, array or composite
        ``f(x)``.
    """

    def __init__(self, at: Any, x: Any, y: Any) -> None:
        self._at = at
        self._leaves, _ = flatten(x)
        self._outputs = outputs = flatten(y)[0]
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
        parts = self._at.push(_split(rows, self._leaves))
        return np.concatenate([p.reshape(len(rows), -1) for p in parts], axis=1).T

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return self._matmat(v.reshape(-1, 1))[:, 0]

    def _rmatvec(self, v: np.ndarray) -> np.ndarray:
        return self._rmatmat(v.reshape(-1, 1))[:, 0]

    def _rmatmat(self, v: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(v.T)
        parts = self._at.pull(_split(rows, self._outputs))
        return np.concatenate([p.reshape(len(rows), -1) for p in parts], axis=1).T


def _split(rows: np.ndarray, leaves: list[Any]) -> list[np.ndarray]:
    """Rows of numbers as stacks of leaves."""
    found, start = [], 0
    for leaf in leaves:
        size = math.prod(leaf_shape(leaf))
        found.append(rows[:, start : start + size].reshape(-1, *leaf_shape(leaf)))
        start += size
    return found
