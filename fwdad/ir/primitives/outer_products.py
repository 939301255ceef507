"""Sums of outer products, computed as one matrix product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import add_outer, add_product

_BLOCK = 2**16  # elements of a sum of products that are written at once
_MOST = 64  # products that wait for one another
_SCRATCH = 2**13  # elements that they may take whatever the matrix has
_WASTE = 4  # a product of matrices is faster by so much, element for element


def sum_of_outer(*vectors: np.ndarray) -> Any:
    """The sum of ``u[:, None] * v`` over pairs ``u, v, …`` of vectors, writing its memory once.

    All have one dtype, all u one length and all v one length.
    """
    left, right = np.array(vectors[0::2]).T, np.array(vectors[1::2])
    rows, columns = left.shape[0], right.shape[1]
    step = max(_BLOCK // max(columns, 1), 16)
    if rows <= step:
        return left @ right
    array = np.empty((rows, columns), left.dtype)
    for k in range(0, rows, step):  # in blocks, which stay in the cache, and BLAS packs less
        block = array[k : k + step]
        block.fill(0)  # takes no memory into the cache to overwrite it, as the product would
        np.matmul(left[k : k + step], right, out=block)
    return array


class OuterProducts:
    """Outer products that are added to parts of a matrix, many at once as one matrix product.

    Additions may be delayed, so nothing may read the matrix before ``add_all``. The matrix has two
    axes of doubles; pending products take at most half of its memory, or 64 KB.
    """

    __slots__ = ("_box", "_left", "_matrix", "_most", "_places", "_right", "_useful")

    def __init__(self, matrix: np.ndarray) -> None:
        self._matrix = matrix
        m, n = matrix.shape
        most = min(max(m * n // 2, _SCRATCH) // max(m + n, 1), _MOST)
        self._most = most if most >= _WASTE else 0  # of a long column or row, each is added at once
        self._left, self._right = np.zeros((self._most, m)), np.zeros((self._most, n))
        self._places: list[tuple[slice, slice]] = []
        self._box, self._useful = (0, 0, 0, 0), 0

    def add_later(self, rows: slice, columns: slice, u: np.ndarray, v: np.ndarray) -> None:
        """Have ``u[:, None] * v`` added to ``matrix[rows, columns]``; u and v are copied."""
        k = len(self._places)
        if k == self._most:
            if not k:
                add_outer(self._matrix[rows, columns], u, v)
                return
            self.add_all()
            k = 0
        a, b = _ends(rows, self._left.shape[1])
        c, d = _ends(columns, self._right.shape[1])
        useful = (b - a) * (d - c)
        if k:  # the view that holds all views
            useful += self._useful
            top, bottom, left, right = self._box
            a, b, c, d = min(a, top), max(b, bottom), min(c, left), max(d, right)
            if (k + 1) * (b - a) * (d - c) > _WASTE * useful:
                self.add_all()
                self.add_later(rows, columns, u, v)
                return
        self._left[k, rows] = u
        self._right[k, columns] = v
        self._places.append((rows, columns))
        self._box, self._useful = (a, b, c, d), useful

    def add_all(self) -> None:
        """Add everything that is pending."""
        k = len(self._places)
        left, right = self._left[:k], self._right[:k]
        if k > 1 and math.isfinite(np.vdot(left, left) + np.vdot(right, right)):
            a, b, c, d = self._box
            add_product(self._matrix[a:b, c:d], left[:, a:b], right[:, c:d])
        else:  # outside its view an infinite factor would meet zeros
            for u, v, (rows, columns) in zip(left, right, self._places, strict=True):
                add_outer(self._matrix[rows, columns], u[rows], v[columns])
        left.fill(0.0)
        right.fill(0.0)
        self._places.clear()


def _ends(s: slice, n: int) -> tuple[int, int]:
    """The first position in a slice, and the one after the last."""
    start, stop, step = s.indices(n)
    if step == 1:
        return start, max(start, stop)
    places = range(start, stop, step)
    return (min(places[0], places[-1]), max(places[0], places[-1]) + 1) if places else (0, 0)
