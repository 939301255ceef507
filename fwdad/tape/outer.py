"""Sums of outer products, as one product of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np


def sum_of_outer(*vectors: np.ndarray) -> Any:
    """The sum of ``u[:, None] * v`` over pairs of vectors: its memory is written once.

    Parameters
    ----------
    *vectors : ndarray
        ``u, v``, and the other pairs; of one dtype, all u of one length, all v of one.
    """
    return np.array(vectors[0::2]).T @ np.array(vectors[1::2])
