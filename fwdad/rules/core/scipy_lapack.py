"""SciPy's LAPACK, which need not be the one that NumPy uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.numpy_lapack import SINGULAR


class SciPyLapack:
    """What :class:`~fwdad.rules.core.numpy_lapack.NumpyLapack` does, through SciPy."""

    def __init__(self) -> None:
        from scipy.linalg import blas, lapack  # noqa: PLC0415  (0.4 s: only where it is needed)

        self._blas, self._lapack = blas, lapack

    def gesv(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        """Solve a x = b by NumPy, and factorise once more for the tangents."""
        x = np.linalg.solve(a, b)
        getrf = self._lapack.zgetrf if a.dtype.kind == "c" else self._lapack.dgetrf
        lu, pivots, _ = getrf(a)
        return x, (lu, pivots)

    def getrs(self, factors: Any, columns: np.ndarray) -> None:
        """Solve in place for the rows of a C-contiguous array, shape (k, n)."""
        lu, pivots = factors
        getrs = self._lapack.zgetrs if lu.dtype.kind == "c" else self._lapack.dgetrs
        columns[...] = getrs(lu, pivots, columns.T)[0].T

    def trtrs(self, lower: np.ndarray, columns: np.ndarray) -> None:
        """Solve in place with a lower triangle, for the rows of a C-contiguous array (k, n)."""
        trtrs = self._lapack.ztrtrs if lower.dtype.kind == "c" else self._lapack.dtrtrs
        solution, info = trtrs(lower.T, columns.T, lower=0, trans=1)
        if info > 0:
            raise np.linalg.LinAlgError(SINGULAR)
        columns[...] = solution.T

    def add_outer(self, a: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        """Add ``u[:, None] * v`` to a matrix; SciPy's routine would copy what is a view."""
        a += u[:, np.newaxis] * v

    def add_product(self, a: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        """Add ``u.T @ v`` to a matrix."""
        a += u.T @ v

    def differentiate_cholesky(self, lower: np.ndarray, lanes: np.ndarray) -> None:
        """Turn the lower triangle of each lane from Ȧ into L̇ = L Φ(L⁻¹ Ȧ L⁻ᴴ)."""
        is_complex = lower.dtype.kind == "c"
        reduce = self._lapack.zhegst if is_complex else self._lapack.dsygst
        trmm = self._blas.ztrmm if is_complex else self._blas.dtrmm
        for lane in lanes:
            phi = reduce(lane.T, lower.T, itype=1, lower=0)[0]
            np.einsum("ii->i", phi)[...] *= 0.5
            lane[...] = trmm(1.0, lower.T, phi, side=1, lower=0).T
