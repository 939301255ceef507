"""Colouring of rows and columns together: each entry is found by its column or by its row.

It pays where both some rows and some columns are long, as those of an arrow. Sources: Coleman and
Verma (1998), "The efficient computation of sparse Jacobian matrices using automatic
differentiation", whose ordering by minimum nonzero counts divides the entries;
doi:10.1137/S1064827595295349; Montoison, Dalle and Gebremedhin (2025), "Revisiting sparse matrix
coloring and bicoloring", arXiv:2505.07308, who colour the symmetric matrix of J and its transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fwdad.colouring.graphs import BipartiteGraph, Indices, row_indices
from fwdad.colouring.kernels import index_array, kernel
from fwdad.colouring.partial_distance2 import number_of
from fwdad.colouring.recovery import alone


@dataclass(frozen=True, eq=False)
class Divided:
    """A pattern whose entries are divided: some are found by their columns, the others by rows.

    The entries of each row are sorted: first those that are found by columns. ``row_splits[i]`` is
    where the others begin. Those of each column are, too, and ``column_splits`` says the same.
    """

    graph: BipartiteGraph
    row_splits: Indices
    column_splits: Indices

    @classmethod
    def of(cls, pattern: sp.csr_array, by_column: Any) -> Divided:
        """Divide a pattern by a mask of its entries."""
        (m, n), i, j, dtype = pattern.shape, row_indices(pattern), pattern.indices, pattern.indptr
        order = np.lexsort((~by_column, i))
        row_splits = pattern.indptr[:-1] + np.bincount(i[by_column], minlength=m)
        other = np.lexsort((~by_column, j))
        column_starts = np.zeros(n + 1, dtype.dtype)
        np.cumsum(np.bincount(j, minlength=n), out=column_starts[1:])
        column_splits = column_starts[:-1] + np.bincount(j[by_column], minlength=n)
        graph = BipartiteGraph(pattern.indptr, j[order], column_starts, i[other])
        return cls(graph, row_splits.astype(dtype.dtype), column_splits.astype(dtype.dtype))

    def column_colours(self, order: Indices) -> Indices:
        """Colours of the columns that entries are found by; -1 for the others."""
        graph = self.graph
        return self._colours(graph, self.row_splits, self.column_splits, order, False)

    def row_colours(self, order: Indices) -> Indices:
        """Colours of the rows that entries are found by; -1 for the others."""
        graph = self.graph.transposed
        return self._colours(graph, self.column_splits, self.row_splits, order, True)

    def _colours(
        self, graph: BipartiteGraph, row_splits: Indices, column_splits: Indices, order: Indices,
        second: bool,
    ) -> Indices:  # fmt: skip
        colours = index_array(graph.columns, -1, order)
        last = index_array(graph.columns + 1, -1, order)
        colour_divided(
            *graph.arrays, row_splits, column_splits, 1 if second else 0, order, colours, last,
            steps=4 * graph.row_columns.size,
        )  # fmt: skip
        return colours


@kernel("colours", "last")
def colour_divided(
    row_starts: Any, row_columns: Any, column_starts: Any, column_rows: Any, row_splits: Any,
    column_splits: Any, second: Any, order: Any, colours: Any, last: Any,
) -> None:  # fmt: skip
    """Give each column the first colour with which no entry hides one that is found by columns.

    These are the first part of each row and of each column, or with ``second`` the second one.
    Two columns differ if a row has entries in both, of which one is found by columns.
    """
    for v in order:
        begin, split, end = column_starts[v], column_splits[v], column_starts[v + 1]
        if (split == end) if second else (split == begin):
            continue
        for p in range(begin, end):
            i = column_rows[p]
            first, stop = row_starts[i], row_starts[i + 1]
            if second and p < split:
                first = row_splits[i]
            elif not second and p >= split:
                stop = row_splits[i]
            for q in range(first, stop):
                c = colours[row_columns[q]]
                if c >= 0:
                    last[c] = v
        c = 0
        while last[c] == v:
            c += 1
        colours[v] = c


def divided_by_counts(pattern: sp.csr_array) -> Any:
    """Divide the entries so that rows have few that are found by columns, and columns few others.

    Again and again the row with the fewest entries that are left is taken, and these are found by
    columns, or the column with the fewest, and these are found by rows: whichever raises the sum of
    the two largest counts less, or else has fewer. With this division no fewer colours than the sum
    can do.
    """
    (m, n), nnz = pattern.shape, pattern.nnz
    numbers = sp.csr_array((np.arange(1, nnz + 1), pattern.indices, pattern.indptr), shape=(m, n))
    other = numbers.tocsc()
    starts = np.concatenate([pattern.indptr, other.indptr[1:] + nnz]).astype(pattern.indptr.dtype)
    neighbours = np.concatenate([pattern.indices + m, other.indices])
    entries = np.concatenate([np.arange(nnz), other.data - 1])
    like = pattern.indptr
    neighbours, entries = neighbours.astype(like.dtype), entries.astype(like.dtype)
    key = np.diff(starts)
    size = int(np.max(key, initial=0)) + 1
    heads = index_array(2 * size, -1, like)
    after, before = index_array(m + n, -1, like), index_array(m + n, -1, like)
    by_column = index_array(nnz, -1, like)
    take_fewest(starts, neighbours, entries, m, size, key, heads, after, before, by_column,
                steps=4 * nnz)  # fmt: skip
    return by_column == 1


@kernel("key", "heads", "after", "before", "by_column")
def take_fewest(
    starts: Any, neighbours: Any, entries: Any, m: Any, size: Any, key: Any, heads: Any,
    after: Any, before: Any, by_column: Any,
) -> None:  # fmt: skip
    """Take rows (0 to m - 1) and columns (from m on) by how many entries they have left.

    Those with k entries left are a linked list from ``heads[k]`` on, columns from ``heads[size +
    k]``.
    """
    n = len(key)
    for v in range(n - 1, -1, -1):
        if key[v] > 0:
            h = key[v] if v < m else size + key[v]
            first = heads[h]
            after[v] = first
            if first >= 0:
                before[first] = v
            heads[h] = v
    in_row, in_column = 0, 0  # the largest counts so far
    fewest_row, fewest_column = 1, 1
    row = 1  # whether a row is taken; of equals one of the last one's kind
    while True:
        while fewest_row < size and heads[fewest_row] < 0:
            fewest_row += 1
        while fewest_column < size and heads[size + fewest_column] < 0:
            fewest_column += 1
        if fewest_row >= size or fewest_column >= size:
            return
        more_in_row = fewest_row - in_row if fewest_row > in_row else 0
        more_in_column = fewest_column - in_column if fewest_column > in_column else 0
        if more_in_row != more_in_column:
            row = 1 if more_in_row < more_in_column else 0
        elif fewest_row != fewest_column:
            row = 1 if fewest_row < fewest_column else 0
        if row == 1:
            v = heads[fewest_row]
            in_row += more_in_row
            heads[fewest_row] = after[v]
        else:
            v = heads[size + fewest_column]
            in_column += more_in_column
            heads[size + fewest_column] = after[v]
        if after[v] >= 0:
            before[after[v]] = -1
        key[v] = 0
        for p in range(starts[v], starts[v + 1]):
            if by_column[entries[p]] >= 0:
                continue
            by_column[entries[p]] = row
            u = neighbours[p]
            offset = 0 if u < m else size
            if before[u] >= 0:
                after[before[u]] = after[u]
            else:
                heads[offset + key[u]] = after[u]
            if after[u] >= 0:
                before[after[u]] = before[u]
            key[u] -= 1
            after[u] = -1
            before[u] = -1
            if key[u] > 0:
                first = heads[offset + key[u]]
                after[u] = first
                if first >= 0:
                    before[first] = u
                heads[offset + key[u]] = u
                if u < m and key[u] < fewest_row:
                    fewest_row = key[u]
                if u >= m and key[u] < fewest_column:
                    fewest_column = key[u]


def without_idle_colours(
    pattern: sp.csr_array, columns: Indices, rows: Indices
) -> tuple[Indices, Indices]:
    """The colours without those whose entries are all found elsewhere, the smallest classes first.

    Fewer colours hide no more entries, so each can be judged by what the others show.
    """
    (m, n), i, j = pattern.shape, row_indices(pattern), pattern.indices
    columns, rows = columns.copy(), rows.copy()
    by_column, by_row = alone(i, columns[j], m), alone(j, rows[i], n)
    while True:
        only_column, only_row = by_column & ~by_row, by_row & ~by_column
        needed = np.bincount(columns[j[only_column]], minlength=number_of(columns))
        needed_rows = np.bincount(rows[i[only_row]], minlength=number_of(rows))
        sizes = np.bincount(columns[columns >= 0], minlength=needed.size)
        row_sizes = np.bincount(rows[rows >= 0], minlength=needed_rows.size)
        idle = [(sizes[c], 0, c) for c in np.flatnonzero((needed == 0) & (sizes > 0))]
        idle += [(row_sizes[c], 1, c) for c in np.flatnonzero((needed_rows == 0) & (row_sizes > 0))]
        if not idle:
            return renumbered(columns), renumbered(rows)
        _, side, c = min(idle)
        if side == 0:
            by_column &= columns[j] != c
            columns[columns == c] = -1
        else:
            by_row &= rows[i] != c
            rows[rows == c] = -1


def renumbered(colours: Indices) -> Indices:
    """The colours as 0, 1, … without gaps; -1 stays."""
    used = np.zeros(number_of(colours) + 1, bool)
    used[colours] = True
    used[-1] = False
    numbers = np.cumsum(used) - 1
    numbers[-1] = -1
    return numbers[colours].astype(colours.dtype)
