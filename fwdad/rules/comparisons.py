"""Functions that are locally constant: their values carry no tangent."""

import numpy as np

from fwdad.rules.core.define import locally_constant

# comparisons, also those up to a tolerance
locally_constant(
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.isclose,
    np.allclose,
    np.array_equal,
    np.array_equiv,
)

# logic
locally_constant(np.logical_and, np.logical_or, np.logical_xor, np.logical_not)

# what kind of number it is
locally_constant(
    np.isfinite,
    np.isinf,
    np.isnan,
    np.isneginf,
    np.isposinf,
    np.isreal,
    np.iscomplex,
    np.isrealobj,
    np.iscomplexobj,
    np.signbit,
)

# steps: the derivative at a jump is that of the value which is taken
locally_constant(
    np.floor,
    np.ceil,
    np.trunc,
    np.fix,
    np.rint,
    np.round,
    np.around,
    np.floor_divide,
)

# the distance to the neighbouring floating-point number, constant between powers of two
locally_constant(np.spacing)
