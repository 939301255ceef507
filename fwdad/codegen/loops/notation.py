"""Arrays, indices, lengths and dtypes as source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fwdad.ir.ops import Value
from fwdad.ir.types import Dimension


class Leaf(NamedTuple):
    """An array that an elementwise expression reads: its name and its lengths."""

    name: str
    shape: tuple[Dimension, ...]
    value: Value | None

    def lengths(self) -> list[str]:
        """Its lengths as source."""
        return [length_text(d, self.name, k) for k, d in enumerate(self.shape)]


def length_text(d: Any, name: str, axis: int) -> str:
    """A length as source: a number, or a look-up at run time."""
    return str(d) if isinstance(d, int) else f"{name}.shape[{axis}]"


def lengths_of(a: Value, name: str) -> list[str]:
    """The lengths of an array of a name as source."""
    return [length_text(d, name, k) for k, d in enumerate(a.type.shape)]


def subscript(index: Sequence[str]) -> str:
    """An index as source."""
    return ", ".join(index) if index else "()"


def dtype_text(dtype: np.dtype[Any]) -> str:
    """A dtype as source."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype}"


def name_of(function: Any) -> str:
    """What a function is called in a report."""
    return str(getattr(function, "__name__", type(function).__name__))
