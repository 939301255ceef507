"""One value with the derivative of another: where rounding shall not be differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import DualLeakError
from fwdad.tangents.plain import plain


def with_derivative_of(value: Any, other: Any) -> Any:
    """``value``, which moves as ``other`` does.

    Parameters
    ----------
    value : float or array
        What is returned; its own derivative is not asked for.
    other : float or array
        Of the same shape: its tangents are those of the result, at every order.

    Raises
    ------
    DualLeakError
        If it is called past the dispatcher, which knows its rule.
    """
    if plain(value) is not value or plain(other) is not other:
        message = "with_derivative_of was called past the rules: its derivative would be lost"
        raise DualLeakError(message)
    return np.positive(value)
