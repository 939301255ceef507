"""The rule of :func:`with_derivative_of`."""

from __future__ import annotations

from typing import Any

from fwdad.rules.core.define import frule
from fwdad.tangents.straight import with_derivative_of


@frule(with_derivative_of)
def with_derivative_of_frule(primals: Any, tangents: Any) -> Any:
    """Push the second argument's tangents; those of the first are ignored."""
    value, other = primals
    return with_derivative_of(value, other), tangents[1]
