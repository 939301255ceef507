"""NumPy's ufuncs: those of which more is known than of any ufunc."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ops.record import Algebra, Cost, Layout, Risk, op

# -- arithmetic
op(np.add, algebra=Algebra.SUM, cost=Cost.ARITHMETIC)
op(np.subtract, algebra=Algebra.DIFFERENCE, cost=Cost.ARITHMETIC)
op(np.multiply, algebra=Algebra.PRODUCT, cost=Cost.ARITHMETIC)
op(np.divide, algebra=Algebra.QUOTIENT, cost=Cost.DIVISION, doubled="c")
op(np.remainder, np.floor_divide, doubled="f")
op(np.negative, algebra=Algebra.NEGATION, cost=Cost.ARITHMETIC, risk=Risk.QUIET)
op(np.positive, algebra=Algebra.IDENTITY, cost=Cost.ARITHMETIC, risk=Risk.QUIET)
op(np.matmul, algebra=Algebra.MATRIX_PRODUCT, layout=Layout.KEPT, risk=Risk.SHAPES)
op(np.square, cost=Cost.ARITHMETIC, numba=True, numba_complex=True)

# -- comparisons and truth values
op(
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.bitwise_and,
    np.bitwise_or, np.bitwise_xor, np.invert, np.logical_not,
    risk=Risk.QUIET,
)  # fmt: skip
op(np.logical_and, on_bools=np.bitwise_and, device=True, risk=Risk.QUIET)
op(np.logical_or, on_bools=np.bitwise_or, device=True, risk=Risk.QUIET)
op(np.logical_xor, on_bools=np.bitwise_xor, device=True, risk=Risk.QUIET)
op(np.signbit, numba=True, risk=Risk.QUIET)

_f: Any

# -- functions of C's mathematical library
for _f in (
    np.exp, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan, np.arcsin,
    np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh,
):  # fmt: skip
    op(_f, cost=Cost.LIBRARY, libm=_f.__name__.replace("arc", "a"))
op(np.exp2, cost=Cost.LIBRARY, libm="exp2", numba=True)
op(np.cbrt, cost=Cost.LIBRARY, libm="cbrt", numba=True)
op(np.power, cost=Cost.LIBRARY, libm="pow", doubled="f")
op(np.arctan2, cost=Cost.LIBRARY, libm="atan2")
op(np.hypot, cost=Cost.LIBRARY, libm="hypot")
op(np.sqrt, cost=Cost.ROOT, libm="sqrt", simd="sqrt")
op(np.fabs, libm="fabs", simd="abs", piecewise_linear=True)
op(np.copysign, libm="copysign", simd="copysign", risk=Risk.QUIET)

# -- instructions on vectors
op(np.absolute, simd="abs", piecewise_linear=True)
for _f in (np.floor, np.ceil, np.trunc, np.rint):
    op(_f, simd=_f.__name__, numba=True)
op(np.sign, simd="sign", numba=True, constant_of_reals=True)
for _f in (np.maximum, np.minimum, np.fmax, np.fmin):
    op(_f, simd=_f.__name__, numba=True, device=True, piecewise_linear=True)
for _f in (np.isnan, np.isfinite, np.isinf):
    op(_f, simd=_f.__name__, numba=True, numba_complex=True, risk=Risk.QUIET)

# -- others that Numba has
op(np.conjugate, numba=True, numba_complex=True, risk=Risk.QUIET, piecewise_linear=True)
op(np.deg2rad, np.rad2deg, np.degrees, np.radians, numba=True, device=True)
op(np.logaddexp, np.logaddexp2, np.nextafter, np.spacing, np.ldexp, numba=True)
