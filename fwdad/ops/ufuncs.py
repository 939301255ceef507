"""NumPy's ufuncs: those of which more is known than of any ufunc."""

from __future__ import annotations

import numpy as np

from fwdad.ops.record import Algebra, Cost, Layout, Risk, op

op(np.add, algebra=Algebra.SUM, cost=Cost.ARITHMETIC)
op(np.subtract, algebra=Algebra.DIFFERENCE, cost=Cost.ARITHMETIC)
op(np.multiply, algebra=Algebra.PRODUCT, cost=Cost.ARITHMETIC)
op(np.divide, algebra=Algebra.QUOTIENT, cost=Cost.DIVISION)
op(np.negative, algebra=Algebra.NEGATION, cost=Cost.ARITHMETIC, risk=Risk.QUIET)
op(np.positive, algebra=Algebra.IDENTITY, cost=Cost.ARITHMETIC, risk=Risk.QUIET)
op(np.matmul, algebra=Algebra.MATRIX_PRODUCT, layout=Layout.KEPT, risk=Risk.SHAPES)
op(
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.logical_and,
    np.logical_or, np.logical_not, np.logical_xor, np.isnan, np.isinf, np.isfinite, np.signbit,
    np.copysign, np.conjugate, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert,
    risk=Risk.QUIET,
)  # fmt: skip
op(
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan,
    np.arcsin, np.arccos, np.arctan, np.arctan2, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh,
    np.arctanh, np.power, np.cbrt,
    cost=Cost.LIBRARY,
)  # fmt: skip
op(np.sqrt, np.hypot, cost=Cost.ROOT)
