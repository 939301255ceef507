"""The best colouring of rows and columns together that a search finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fwdad.colouring.bidirectional import (
    Divided,
    divided_by_counts,
    renumbered,
    without_idle_colours,
)
from fwdad.colouring.candidates import MOST_STEPS, affordable
from fwdad.colouring.graphs import (
    AdjacencyGraph,
    BipartiteGraph,
    Indices,
    canonical_pattern,
    row_indices,
)
from fwdad.colouring.one_sided import best_columns
from fwdad.colouring.orders import Orders
from fwdad.colouring.partial_distance2 import number_of
from fwdad.colouring.recovery import alone
from fwdad.colouring.star import star_colours


class Pair(NamedTuple):
    """Colours of columns and rows, and how they were found."""

    columns: Indices
    rows: Indices
    order: str

    @property
    def number(self) -> int:
        """How many colours there are."""
        return number_of(self.columns) + number_of(self.rows)


def best_of_both(pattern: sp.csr_array, orders: tuple[str, ...] | None) -> Pair:
    """Colours of rows and columns; of columns or rows alone where that takes no more.

    The entries are divided by their counts, and by star colourings of the symmetric matrix that has
    the pattern and its transpose off its diagonal.
    """
    m, n = pattern.shape
    bound = -(-pattern.nnz // max(m, n, 1))  # a column's product shows m entries, a row's n
    best: Pair | None = None
    graph = BipartiteGraph.of(pattern)
    for side, each in enumerate((graph, graph.transposed)):
        most = n + m if best is None else best.number - 1
        if each.longest_row <= most and each.steps <= MOST_STEPS:
            found = best_columns(each, pattern if side == 0 else pattern.T.tocsr(), orders)
            none = np.full(m if side == 0 else n, -1, pattern.indices.dtype)
            columns, rows = (found.colours, none) if side == 0 else (none, found.colours)
            best = _better(best, Pair(columns, rows, found.order))
    if best is not None and best.number <= bound:
        return best
    best = _better(best, by_counts(pattern))
    if pattern.nnz and 40 * pattern.nnz <= MOST_STEPS:
        joined = sp.block_array([[None, pattern], [pattern.T, None]], format="csr")
        adjacency = AdjacencyGraph.of(canonical_pattern(joined))
        known = Orders(adjacency.incidence)
        for name in affordable(8 * pattern.nnz) if orders is None else orders:
            if best.number > bound:
                # colours that turn out to be idle are dropped, so that some more may be better
                colours = star_colours(adjacency, known[name], 2 * best.number)
                if colours is not None:
                    best = _better(best, by_stars(pattern, colours, name))
    return best


def _better(best: Pair | None, other: Pair) -> Pair:
    return other if best is None or other.number < best.number else best


def by_counts(pattern: sp.csr_array) -> Pair:
    """Colours for the entries that are divided by their counts, longest columns and rows first."""
    divided = Divided.of(pattern, divided_by_counts(pattern))
    starts = (divided.graph.column_starts, divided.graph.row_starts)
    columns, rows = (np.argsort(-np.diff(x), kind="stable").astype(x.dtype) for x in starts)
    pair = (divided.column_colours(columns), divided.row_colours(rows))
    return _coloured_anew(pattern, *without_idle_colours(pattern, *pair), "largest_first")


def by_stars(pattern: sp.csr_array, colours: Indices, order: str) -> Pair:
    """Colours from a star colouring of the rows, and after them the columns, as one graph."""
    m = pattern.shape[0]
    columns, rows = renumbered(colours[m:]), renumbered(colours[:m])
    return _coloured_anew(pattern, *without_idle_colours(pattern, columns, rows), order)


def _coloured_anew(pattern: sp.csr_array, columns: Indices, rows: Indices, order: str) -> Pair:
    """Colour both sides anew, class after class: never more colours."""
    i, j = row_indices(pattern), pattern.indices
    divided = Divided.of(pattern, alone(i, columns[j], rows.size))
    by_class = [np.argsort(-c, kind="stable").astype(c.dtype) for c in (columns, rows)]
    pair = (divided.column_colours(by_class[0]), divided.row_colours(by_class[1]))
    return Pair(*without_idle_colours(pattern, *pair), order)
