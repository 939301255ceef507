"""Python's operators, conversions and ``math``."""

from __future__ import annotations

import math
import operator

import numpy as np

from fwdad.ops.record import Algebra, Cost, Layout, Memory, Risk, op

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
op(divmod, stands_for=np.divmod, special_method="__divmod__")
op(abs, stands_for=np.absolute, layout=Layout.ELEMENTWISE, special_method="__abs__")
op(operator.lt, stands_for=np.less, constant=True)
op(operator.le, stands_for=np.less_equal, constant=True)
op(operator.gt, stands_for=np.greater, constant=True)
op(operator.ge, stands_for=np.greater_equal, constant=True)
op(operator.eq, stands_for=np.equal, constant=True)
op(operator.ne, stands_for=np.not_equal, constant=True)
op(operator.and_, stands_for=np.bitwise_and, constant=True)
op(operator.or_, stands_for=np.bitwise_or, constant=True)
op(operator.xor, stands_for=np.bitwise_xor, constant=True)
op(operator.invert, stands_for=np.invert, constant=True)
op(operator.not_, stands_for=np.logical_not, constant=True)
op(operator.lshift, stands_for=np.left_shift)
op(operator.rshift, stands_for=np.right_shift)
op(int, constant=True)
op(bool, constant=True, special_method="__bool__")
op(round, constant=True, special_method="__round__")
op(float, passes=True)
op(complex, passes=True, special_method="__complex__")
op(len, memory=Memory.UNKNOWN, special_method="__len__")
op(reversed, memory=Memory.UNKNOWN, special_method="__reversed__")
op(math.floor, memory=Memory.UNKNOWN, special_method="__floor__")
op(math.ceil, memory=Memory.UNKNOWN, special_method="__ceil__")
op(math.trunc, memory=Memory.UNKNOWN, special_method="__trunc__")
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
