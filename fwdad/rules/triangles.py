"""Helpers for the rules of linear algebra: the adjoint of a matrix, and its lower triangle."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.tangents.symbolic import apply
from fwdad.tangents.zero import Zero


def adjoint(a: Any) -> Any:
    """The conjugate transpose of a matrix, or of each in a stack; of a primal or a tangent."""
    return np.conjugate(np.swapaxes(a, -1, -2))


def from_lower(a: Any) -> Any:
    """The Hermitian matrix of a lower triangle, an array or tangent of shape (..., n, n).

    Nothing above the diagonal is read, nor the imaginary part of the diagonal.
    """
    if isinstance(a, Zero):
        return a
    n = a.shape[-1]
    a = np.where(apply(np.tri, n, dtype=bool), a, adjoint(a))
    return np.where(apply(np.eye, n, dtype=bool), np.real(a), a) if a.dtype.kind == "c" else a
