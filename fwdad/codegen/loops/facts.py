"""What is known from some operation of a block to the end of the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fwdad.ir.ops import Value
from fwdad.ir.types import Dimension, Size


class Facts:
    """Lengths that are equal, and the LU ``factors`` of matrices, by dtype."""

    def __init__(self) -> None:
        self.factors: dict[tuple[Value, Any], str] = {}
        self._same: dict[Dimension, Dimension] = {}

    @contextmanager
    def of_block(self) -> Iterator[None]:
        """Forget what is found inside a block when it ends."""
        factors, same = dict(self.factors), dict(self._same)
        yield
        self.factors, self._same = factors, same

    def length_of(self, d: Dimension) -> Dimension:
        """The representative of all lengths that are known to equal a length."""
        while d in self._same:
            d = self._same[d]
        return d

    def note_equal(self, a: Dimension, b: Dimension) -> None:
        """Record that two lengths are equal from here to the end of the block."""
        a, b = self.length_of(a), self.length_of(b)
        if a != b:
            self._same.update({a: b} if isinstance(a, Size) else {b: a})
