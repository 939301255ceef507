"""Products, factorisations and polynomials."""

from __future__ import annotations

import numpy as np

from fwdad.ops.record import Layout, Risk, named, op

op(np.linalg.multi_dot, of_arrays=True)
op(np.inner, np.tensordot, np.outer, layout=Layout.C)
op(np.dot, layout=Layout.C, out_as_made=True)
op(np.cross, np.linalg.cross)
op(np.linalg.inv, np.linalg.solve, np.linalg.cholesky, layout=Layout.KEPT, square=True)
op(
    np.linalg.eigh, np.linalg.eigvalsh, np.linalg.det, np.linalg.slogdet, np.linalg.matrix_power,
    square=True,
)  # fmt: skip
op(np.linalg.qr, np.linalg.svd, np.linalg.svdvals, rectangular=True)
op(np.linalg.eig, np.linalg.eigvals, complex_of_values=True)
op(
    np.emath.sqrt, np.emath.log, np.emath.log2, np.emath.log10, np.emath.logn, np.emath.power,
    np.emath.arccos, np.emath.arcsin, np.emath.arctanh,
    complex_of_values=True,
)  # fmt: skip
# the residuals are there where the matrix has full rank
op(np.linalg.lstsq, lengths_of_values=(0,))
op(np.roots, dtype_of_values=True, risk=Risk.RAISES)
op(np.poly, risk=Risk.RAISES, real_of_values=True)  # if they are conjugate
op(np.polyfit, risk=Risk.RAISES)
named("scipy.linalg", "lstsq", lengths_of_values=(0,))
named("scipy.linalg", "eig eigvals", complex_of_values=True)
