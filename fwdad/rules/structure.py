"""Queries about shape, type, memory and text, whose results carry no tangent."""

import numpy as np

from fwdad.errors import DualLeakError
from fwdad.rules.core.define import frule, locally_constant
from fwdad.tangents.laws.listing import cast
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import array_of
from fwdad.tangents.zero import ZERO, Zero

# shape and type
locally_constant(
    np.shape,
    np.ndim,
    np.size,
    np.result_type,
    np.can_cast,
    np.common_type,
    np.min_scalar_type,
    np.isscalar,
)

# memory
locally_constant(np.shares_memory, np.may_share_memory)

# text
locally_constant(
    np.array_repr,
    np.array_str,
    np.array2string,
    np.format_float_positional,
    np.format_float_scientific,
)

# arrays that take an argument's shape and type, and none of its values
locally_constant(np.empty_like, np.zeros_like, np.ones_like)


@frule(np.full_like, argnums=("a", "fill_value"))
def full_like_frule(primals, tangents, *, order, subok, **options):
    """Broadcast the tangent of the fill value; the array gives its shape and type only."""
    a, fill_value = primals
    y = np.full_like(array_of(a), fill_value, order=order, subok=subok, **options)
    fill_dot = tangents[1]
    if isinstance(fill_dot, Zero):
        return y, ZERO
    dtype = plain(y).dtype
    if dtype.kind not in "fc":
        raise DualLeakError(
            f"numpy.full_like makes an array of dtype {dtype}, but the fill value carries a "
            "derivative: pass a float dtype, for example dtype=float"
        )
    return y, cast(np.broadcast_to(fill_dot, np.shape(plain(y))), dtype)
