"""Sums of outer products, as one product of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

_BLOCK = 2**16  # elements of a sum of products that are written at once


def sum_of_outer(*vectors: np.ndarray) -> Any:
    """The sum of ``u[:, None] * v`` over pairs of vectors: its memory is written once.

    Parameters
    ----------
    *vectors : ndarray
        ``u, v``, and the other pairs; of one dtype, all u of one length, all v of one.
    """
    left, right = np.array(vectors[0::2]).T, np.array(vectors[1::2])
    rows, columns = left.shape[0], right.shape[1]
    step = max(_BLOCK // max(columns, 1), 16)
    if rows <= step:
        return left @ right
    made = np.empty((rows, columns), left.dtype)  # in blocks: BLAS packs less
    for k in range(0, rows, step):
        np.matmul(left[k : k + step], right, out=made[k : k + step])
    return made
