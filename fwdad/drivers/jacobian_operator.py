"""The operator that ``linearize`` returns: the Jacobian at a point as a SciPy linear operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from fwdad.core.tracebacks import leave
from fwdad.core.unpicklable import OfOneRun
from fwdad.display.html import facts, framed, mono
from fwdad.display.words import value_in_words
from fwdad.errors import SeedError, UnsupportedTypeError, type_in_words
from fwdad.evaluation.by_tape import MISS
from fwdad.tangents.composite import flatten, leaf_order, unflatten
from fwdad.tangents.matching import match
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import check_unmasked, leaf_dtype, leaf_shape
from fwdad.tangents.zero import NoTangent, Zero


class JacobianOperator(OfOneRun, LinearOperator):  # type: ignore[misc]
    """The Jacobian of f at x, without the matrix.

    ``at.push(rows)`` returns the tangents of the leaves of f(x) in K directions, ``at.pull(rows)``
    the cotangents of the leaves of x for K cotangents of f(x). Composite arguments and values are
    raveled leaf after leaf, in C order.
    """

    made_by = "linearize(f, x)"

    def __init__(self, at: Any, x: Any, y: Any) -> None:
        self._at = at
        self._leaves, self._structure = flatten(x)
        leaves, structure = flatten(y)
        self._structure_of_y = structure
        self._python = [type(plain(leaf)) in (float, complex) for leaf in leaves]
        self._order = leaf_order(structure)
        self._outputs = outputs = [leaves[k] for k in self._order]
        self._of_one = self._order == [0] and len(self._leaves) == 1
        n = sum(math.prod(leaf_shape(leaf)) for leaf in self._leaves)
        m = sum(math.prod(leaf_shape(leaf)) for leaf in outputs)
        super().__init__(dtype_of([*self._leaves, *outputs]), (m, n))

    def __call__(self, v: Any) -> Any:
        """The tangent of f(x) along v, which is like x; of a vector or matrix as ``J @ v``."""
        try:
            return self._along(v)
        except BaseException as error:
            leave(error)
            raise

    def _along(self, v: Any) -> Any:
        if isinstance(v, np.ndarray) and not self._is_like_x(v):
            return self @ v
        rows = []
        for own, leaf in zip(match(self._structure, v), self._leaves, strict=True):
            check_unmasked(own, "direction")
            row, shape = np.asarray(own), leaf_shape(leaf)
            if row.shape != shape or row.dtype.kind not in "biufc":
                came = f"one of shape {row.shape} and dtype {row.dtype}"
                raise SeedError(f"expected a direction of floats of shape {shape}; got {came}")
            rows.append(row[None])
        dots = [lanes[0] for lanes in self._at.push(rows)]
        dots = [t.item() if p else t for t, p in zip(dots, self._python, strict=True)]
        return unflatten(self._structure_of_y, dots, lambda _: NoTangent)

    def _is_like_x(self, v: np.ndarray) -> bool:
        return self._structure.kind == "leaf" and v.shape == leaf_shape(self._leaves[0])

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<{m}x{n} JacobianOperator of {self._at.name} with dtype={self.dtype}>"

    def _repr_html_(self) -> str:
        m, n = self.shape
        inputs, outputs = (
            ", ".join(value_in_words(plain(leaf)) for leaf in leaves)
            for leaves in (self._leaves, self._outputs)
        )
        forward, backward = self._at.ways
        rows = [
            ("x", mono(inputs)),
            ("f(x)", mono(outputs)),
            (mono("J @ v"), forward),
            (mono("J.T @ w"), backward),
        ]
        title = f"Jacobian of {self._at.name}: {m:,} × {n:,}, {self.dtype}"
        return framed(title, facts(rows), note="an operator, without the matrix")

    def matvec(self, x: Any) -> np.ndarray:
        """The Jacobian times a direction."""
        y: Any = self._at.along(x) if self._of_one else MISS
        if y is not MISS:
            return y
        v = _fitting(x, self.shape[1], "vector", columns=False)
        return self._pushed(v[None])[0] if _is_vector(v) else super().matvec(v)

    def rmatvec(self, x: Any) -> np.ndarray:
        """The adjoint times a cotangent."""
        v = _fitting(x, self.shape[0], "cotangent", columns=False)
        return self._pulled(v[None])[0] if _is_vector(v) else super().rmatvec(v)

    def matmat(self, X: Any) -> np.ndarray:
        """The Jacobian times the columns of a matrix."""
        return super().matmat(_fitting(X, self.shape[1], "matrix of directions", columns=True))

    def rmatmat(self, X: Any) -> np.ndarray:
        """The adjoint times the columns of a matrix."""
        return super().rmatmat(_fitting(X, self.shape[0], "matrix of cotangents", columns=True))

    def _matmat(self, v: np.ndarray) -> np.ndarray:
        return self._pushed(v.T).T

    def _rmatmat(self, v: np.ndarray) -> np.ndarray:
        return self._pulled(v.T).T

    def _pushed(self, rows: np.ndarray) -> np.ndarray:
        """The tangents of f(x), raveled, along K directions."""
        rows = _numbers(rows, "vector")
        if 0 in (*self.shape, len(rows)):
            return np.zeros((len(rows), self.shape[0]), self.dtype)
        parts = self._at.push(_split(rows, self._leaves))
        return _raveled([parts[k] for k in self._order], len(rows))

    def _pulled(self, rows: np.ndarray) -> np.ndarray:
        """The cotangents of x, raveled, for K of f(x)."""
        rows = _numbers(rows, "cotangent")
        if 0 in (*self.shape, len(rows)):
            return np.zeros((len(rows), self.shape[1]), self.dtype)
        bars: dict[int, np.ndarray] = {}
        for k, own in zip(self._order, _split(rows, self._outputs), strict=True):
            bars[k] = bars[k] + own if k in bars else own  # an array that is returned twice
        return _raveled(self._at.pull([bars[k] for k in sorted(bars)]), len(rows))


def dtype_of(leaves: list[Any]) -> np.dtype[Any]:
    """The dtype of an operator; raises where leaves have tangents of a class of their own."""
    dtype = np.result_type(*(leaf_dtype(plain(leaf)) for leaf in leaves))
    if dtype.kind == "O":
        raise UnsupportedTypeError(
            "a linear operator acts on numbers, but the tangents of x or f(x) have a class of "
            "their own: use jvp(f, x, v)"
        )
    return dtype


def _fitting(v: Any, n: int, what: str, *, columns: bool) -> Any:
    """The operand of an operator, after a check of its shape."""
    shape: tuple[int, ...] = () if isinstance(v, Zero) else np.shape(plain(v))
    fits = len(shape) == 2 and shape[0] == n if columns else shape in ((n,), (n, 1))
    if not fits and not _is_sparse(v):
        wanted = f"({n}, K)" if columns else f"({n},)"
        came = f"of shape {shape}" if shape or np.isscalar(v) else f": {type_in_words(v)}"
        raise SeedError(f"expected a {what} of shape {wanted}; got one {came}")
    return v


def _is_sparse(v: Any) -> bool:
    return hasattr(v, "tocoo")


def _is_vector(v: Any) -> bool:
    """Whether an operand needs nothing of what SciPy does before it multiplies."""
    return type(v) is np.ndarray and v.ndim == 1


def _numbers(rows: np.ndarray, what: str) -> np.ndarray:
    check_unmasked(rows, what)
    if rows.dtype.kind not in "biufc":
        raise SeedError(f"expected floats; got a {what} of dtype {rows.dtype}")
    return np.ascontiguousarray(rows)


def _raveled(parts: list[np.ndarray], count: int) -> np.ndarray:
    """Leaves for K directions, each raveled, one behind the other."""
    rows = [p.reshape(count, math.prod(p.shape[1:])) for p in parts]
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)


def _split(rows: np.ndarray, leaves: list[Any]) -> list[np.ndarray]:
    """Rows of numbers as stacks of leaves."""
    found, start = [], 0
    for leaf in leaves:
        size = math.prod(leaf_shape(leaf))
        found.append(rows[:, start : start + size].reshape(len(rows), *leaf_shape(leaf)))
        start += size
    return found
