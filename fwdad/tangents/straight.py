"""One value with the derivative of another, where rounding must not be differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import DualLeakError
from fwdad.ops.record import own_op
from fwdad.tangents.plain import plain


@own_op()
def with_derivative_of(value: Any, other: Any) -> Any:
    """``value`` with the tangents of ``other``, an array or number of the same shape.

    The derivative of ``value`` itself is ignored, at every order. Raises DualLeakError if it is
    called past the dispatcher, which knows its rule.
    """
    if plain(value) is not value or plain(other) is not other:
        raise DualLeakError(
            "with_derivative_of was called from code that fwdad cannot see, such as code in C: "
            "its derivative would be lost. Call it from Python code"
        )
    return np.positive(value)
