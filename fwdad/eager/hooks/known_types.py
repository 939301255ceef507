"""Types that the hooks recognise without looking at their classes."""

from __future__ import annotations

import types

import numpy as np

from fwdad.eager.duals.array import Array
from fwdad.eager.duals.scalar import Scalar

PLAIN = {int, float, complex, str, bytes, bool, np.float64, Scalar, tuple, list, dict, type(None)}
"""Their items, iterators and methods are Python's own."""

NATIVE = {np.ndarray, Array, Scalar, int, float, complex, str, list, tuple, dict, np.float64, bool}
"""Their operators are not written in Python, or are those of duals."""

KEYS = {Scalar, float, np.float64, tuple}
"""Types of keys that may be, or be equal to, a number with a derivative."""


def has_python(t: type, name: str) -> bool:
    """Whether a user's class defines a special method in Python."""
    if t in NATIVE:
        return False
    return isinstance(getattr(t, name, None), types.FunctionType)
