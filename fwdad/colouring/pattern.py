"""A sparsity pattern as a sparse array that shows itself: Braille, entries, colours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from fwdad.colouring.graphs import canonical_pattern, row_indices
from fwdad.colouring.search import colour

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The bits of a Braille letter, four rows of two dots, behind U+2800."""

_MOST_COLOURED = 2_000_000


class SparsityPattern(sp.csr_array):  # type: ignore[misc]
    """Which entries of a matrix may be other than zero: a csr array of True.

    Attributes
    ----------
    dense : tuple of str
        What was taken to depend on all that it is given, with the line of the program.
    """

    dense: tuple[str, ...] = ()

    @classmethod
    def of(cls, pattern: Any, dense: tuple[str, ...] = ()) -> SparsityPattern:
        """A pattern in canonical form."""
        held = canonical_pattern(pattern)
        made = cls((held.data, held.indices, held.indptr), shape=held.shape)
        made.has_canonical_format = True
        made.dense = dense
        return made

    def __repr__(self) -> str:
        if self.dtype != bool:  # what SciPy has computed of one
            return str(super().__repr__())
        return "\n".join([drawn(self), self._facts(), *(f"dense: {why}" for why in self.dense)])

    def _facts(self) -> str:
        m, n = self.shape
        share = f"{100 * self.nnz / (m * n):.3g} %" if m and n else "none"
        facts = [f"{m} × {n}", f"{self.nnz} entries ({share})"]
        if self.nnz <= _MOST_COLOURED:
            columns, rows = (colour(self, kind).count for kind in ("columns", "rows"))
            facts.append(f"{columns} colours of columns, {rows} of rows")
        return ", ".join(facts)


def drawn(pattern: Any, width: int = 60, height: int = 30) -> str:
    """A pattern in Braille, at most so many letters wide and lines high: a dot for a block."""
    m, n = pattern.shape
    block = max(1, math.ceil(n / (2 * width)), math.ceil(m / (4 * height)))
    rows, columns = math.ceil(m / (4 * block)), math.ceil(n / (2 * block))
    letters = np.full((rows, columns), 0x2800)
    i, j = row_indices(pattern) // block, pattern.indices // block
    np.bitwise_or.at(letters, (i // 4, j // 2), _DOTS[i % 4, j % 2])
    lines = ["".join(map(chr, line)) for line in letters]
    edge = "─" * columns
    return "\n".join([f"┌{edge}┐", *(f"│{line}│" for line in lines), f"└{edge}┘"])
