"""Values without the duals around them."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """Strip the duals of enclosing derivatives off a value."""
    while hasattr(type(value), "__fwdad_tag__"):
        value = value.p
    return value
