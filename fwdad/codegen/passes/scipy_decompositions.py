"""Factorisations of SciPy by those of NumPy that have compiled forms.

Both call the same routines of LAPACK, and compiled code calls them in SciPy's library. What SciPy
computes in another way is left whole: `solve` and `inv` warn of ill-conditioned matrices, `eigh`
and `norm` call other routines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.codegen.passes.decompositions import bool_of, expands


def _checked(a: Any, check_finite: Any) -> bool:
    """Whether it is one matrix that SciPy looks at for infinities and NaN; so does the program.

    Without that NumPy's compiled forms raise where SciPy need not.
    """
    if a.ndim != 2 or not check_finite:
        return False
    finite = bool_of(np.all(np.isfinite(a)))
    a.recorder.check(finite, ValueError, ("array must not contain infs or NaNs",))
    return True


def _adjoint(a: Any) -> Any:
    return np.conjugate(np.swapaxes(a, -1, -2))


@expands("scipy.linalg.cholesky", kinds="fc", arrays=1)
def _cholesky(
    a: Any,
    lower: Any = False,
    overwrite_a: Any = False,  # noqa: ARG001
    check_finite: Any = True,
) -> Any:
    if not _checked(a, check_finite):
        return None
    return np.linalg.cholesky(a) if lower else _adjoint(np.linalg.cholesky(_adjoint(a)))


@expands("scipy.linalg.det", kinds="fc", arrays=1)
def _det(a: Any, overwrite_a: Any = False, check_finite: Any = True) -> Any:  # noqa: ARG001
    return np.linalg.det(a) if _checked(a, check_finite) else None


@expands("scipy.linalg.svdvals", kinds="fc", arrays=1)
def _svdvals(a: Any, overwrite_a: Any = False, check_finite: Any = True) -> Any:  # noqa: ARG001
    return np.linalg.svd(a, compute_uv=False) if _checked(a, check_finite) else None


@expands("scipy.linalg.svd", kinds="fc", arrays=1)
def _svd(
    a: Any,
    full_matrices: Any = True,
    compute_uv: Any = True,
    overwrite_a: Any = False,  # noqa: ARG001
    check_finite: Any = True,
    lapack_driver: Any = "gesdd",
) -> Any:
    if lapack_driver != "gesdd" or not _checked(a, check_finite):
        return None
    return np.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


@expands("scipy.linalg.qr", kinds="fc", arrays=1)
def _qr(
    a: Any,
    overwrite_a: Any = False,  # noqa: ARG001
    lwork: Any = None,
    mode: Any = "full",
    pivoting: Any = False,
    check_finite: Any = True,
) -> Any:
    if mode != "economic" or pivoting or lwork is not None or not _checked(a, check_finite):
        return None
    return np.linalg.qr(a)
