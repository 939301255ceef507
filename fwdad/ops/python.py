"""Python's operators, conversions and ``math``."""

from __future__ import annotations

import math
import operator

import numpy as np

from fwdad.ops.record import Algebra, Cost, Layout, Risk, op

op(operator.add, stands_for=np.add, algebra=Algebra.SUM, cost=Cost.ARITHMETIC)
op(operator.sub, stands_for=np.subtract, algebra=Algebra.DIFFERENCE, cost=Cost.ARITHMETIC)
op(operator.mul, stands_for=np.multiply, algebra=Algebra.PRODUCT, cost=Cost.ARITHMETIC)
op(operator.truediv, stands_for=np.true_divide, algebra=Algebra.QUOTIENT, cost=Cost.DIVISION)
op(operator.neg, stands_for=np.negative, algebra=Algebra.NEGATION, cost=Cost.ARITHMETIC)
op(operator.pos, stands_for=np.positive, algebra=Algebra.IDENTITY, cost=Cost.ARITHMETIC)
op(operator.matmul, stands_for=np.matmul, algebra=Algebra.MATRIX_PRODUCT, layout=Layout.KEPT)
op(operator.floordiv, stands_for=np.floor_divide)
op(operator.mod, stands_for=np.remainder)
op(operator.pow, stands_for=np.power)
op(divmod, stands_for=np.divmod)
op(abs, stands_for=np.absolute, layout=Layout.ELEMENTWISE)
op(
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.and_,
    operator.or_, operator.xor, operator.invert, operator.not_, bool, int, round,
    constant=True,
)  # fmt: skip
op(float, complex, passes=True)
op(
    math.atan, math.atan2, math.erf, math.erfc, math.fabs, math.copysign, math.isnan, math.isinf,
    math.isfinite, math.asinh, math.degrees, math.radians,
    risk=Risk.QUIET,
)  # fmt: skip
op(math.tanh, risk=Risk.QUIET, cost=Cost.LIBRARY)
op(
    math.exp, math.exp2, math.expm1, math.log, math.log2, math.log10, math.log1p, math.sin,
    math.cos, math.tan, math.sinh, math.cosh, math.pow,
    cost=Cost.LIBRARY,
)  # fmt: skip
op(math.sqrt, math.hypot, cost=Cost.ROOT)
