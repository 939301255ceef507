"""The graphs of a sparsity pattern: of its rows and columns, or of a symmetric one's columns.

In the bipartite graph of a matrix the rows and the columns are vertices, and the nonzeros edges.
Two columns are at distance 2 if a row has nonzeros in both. In the adjacency graph of a symmetric
matrix the columns are vertices, and the nonzeros off the diagonal edges.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fwdad.errors import ColouringError, with_article

Indices = np.ndarray[tuple[int], np.dtype[Any]]
_LARGEST = np.iinfo(np.int32).max


def canonical_pattern(matrix: Any) -> sp.csr_array:
    """A matrix's stored entries as a csr array of True, in order of rows and columns.

    Explicit zeros are entries, duplicates are one; of a dense array the nonzeros are.
    """
    if sp.issparse(matrix):
        if matrix.ndim != 2:
            raise ColouringError(f"a pattern has two dimensions, and this one {matrix.ndim}")
        if matrix.format == "csr" and matrix.has_canonical_format:
            indptr, indices = matrix.indptr, matrix.indices
        else:
            entries = matrix.tocoo()
            # the values do not matter, and bools of duplicates add up to True
            ones = np.ones(entries.row.size, bool)
            made = sp.csr_array((ones, (entries.row, entries.col)), shape=matrix.shape)
            made.sum_duplicates()
            indptr, indices = made.indptr, made.indices
    else:
        dense = np.asarray(matrix)
        form = type(matrix).__name__
        if dense.ndim != 2 or dense.dtype.kind not in "biufc":
            raise ColouringError(
                "a pattern is a sparse matrix of SciPy's, or an array of numbers or bools with two "
                f"dimensions, and this is {with_article(form)} of {dense.dtype} "
                f"of shape {dense.shape}. Pass scipy.sparse.csr_array((data, (rows, columns)), "
                "shape=(m, n))"
            )
        matrix = sp.csr_array(dense != 0)
        indptr, indices = matrix.indptr, matrix.indices
    wide = max(int(indptr[-1]), sum(matrix.shape)) > _LARGEST // 2
    dtype = np.int64 if wide else np.int32
    parts = (np.ones(indices.size, bool), indices.astype(dtype), indptr.astype(dtype))
    pattern = sp.csr_array(parts, shape=matrix.shape)
    pattern.has_canonical_format = True
    return pattern


def check_symmetric(pattern: sp.csr_array, kind: str) -> None:
    """Raise unless a pattern is that of a symmetric matrix."""
    m, n = pattern.shape
    if m != n:
        raise ColouringError(
            f"kind={kind!r} is for symmetric matrices, and this pattern has shape {m, n}. For a "
            'Jacobian take kind="columns", "rows" or "both"'
        )
    other = pattern.T.tocsr()
    if np.array_equal(other.indices, pattern.indices):
        if np.array_equal(other.indptr, pattern.indptr):
            return
    alone = (pattern.astype(np.int8) - other.astype(np.int8)).tocoo()
    alone.eliminate_zeros()
    k = int(np.argmax(alone.data > 0))
    i, j = int(alone.row[k]), int(alone.col[k])
    raise ColouringError(
        f"kind={kind!r} is for symmetric matrices, and this pattern has ({i}, {j}) without "
        f"({j}, {i}), as {int(np.sum(alone.data > 0))} entries stand without their mirror images. "
        "Pass pattern + pattern.T, where both are meant"
    )


def row_indices(pattern: sp.csr_array) -> Indices:
    """The row of each entry."""
    rows = np.arange(pattern.shape[0], dtype=pattern.indices.dtype)
    return np.repeat(rows, np.diff(pattern.indptr))


@dataclass(frozen=True, eq=False)
class BipartiteGraph:
    """For each row its columns, and for each column its rows.

    Row i has ``row_columns[row_starts[i]:row_starts[i + 1]]``.
    """

    row_starts: Indices
    row_columns: Indices
    column_starts: Indices
    column_rows: Indices

    @classmethod
    def of(cls, pattern: sp.csr_array) -> BipartiteGraph:
        """The graph of a pattern."""
        other = pattern.tocsc()
        return cls(pattern.indptr, pattern.indices, other.indptr, other.indices)

    @property
    def transposed(self) -> BipartiteGraph:
        """The graph with rows and columns exchanged."""
        return BipartiteGraph(
            self.column_starts, self.column_rows, self.row_starts, self.row_columns
        )

    @property
    def arrays(self) -> tuple[Indices, Indices, Indices, Indices]:
        """All four, as kernels take them."""
        return self.row_starts, self.row_columns, self.column_starts, self.column_rows

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return self.column_starts.size - 1

    @functools.cached_property
    def longest_row(self) -> int:
        """The most columns of a row: they differ pairwise in colour."""
        return int(np.max(np.diff(self.row_starts), initial=0))

    @functools.cached_property
    def steps(self) -> int:
        """How many steps a loop over the columns of the rows of each column has."""
        return int(np.sum(np.diff(self.row_starts).astype(np.int64) ** 2))


@dataclass(frozen=True, eq=False)
class AdjacencyGraph:
    """For each vertex its neighbours and the numbers of the edges to them.

    Edge e joins ``ends[2 * e]`` and ``ends[2 * e + 1]``, of which the first is smaller. ``entries``
    are the entries of the pattern that are off its diagonal, in order.
    """

    starts: Indices
    neighbours: Indices
    edges: Indices
    ends: Indices
    entries: Indices
    diagonal: Indices
    """The entries on the diagonal."""

    @classmethod
    def of(cls, pattern: sp.csr_array) -> AdjacencyGraph:
        """The graph of a symmetric pattern."""
        n, dtype = pattern.shape[0], pattern.indices.dtype
        rows, columns = row_indices(pattern), pattern.indices
        off = rows != columns
        entries, diagonal = np.flatnonzero(off), np.flatnonzero(~off)
        rows, neighbours = rows[off], columns[off]
        starts = np.zeros(n + 1, dtype)
        np.cumsum(np.bincount(rows, minlength=n), out=starts[1:])
        # the mirror image of entry k is the k-th one of the transposed matrix
        numbers = sp.csr_array((np.arange(1, rows.size + 1), neighbours, starts), shape=(n, n))
        mirrored = numbers.tocsc().data - 1
        upper = rows < neighbours
        edges = np.empty(rows.size, dtype)
        edges[upper] = np.arange(rows.size // 2)
        edges[~upper] = edges[mirrored[~upper]]
        ends = np.column_stack([rows[upper], neighbours[upper]]).ravel()
        return cls(starts, neighbours, edges, ends, entries, diagonal)

    @property
    def size(self) -> int:
        """How many vertices there are."""
        return self.starts.size - 1

    @functools.cached_property
    def incidence(self) -> BipartiteGraph:
        """The edges as rows and their ends as columns: distance 2 there is distance 1 here."""
        starts = np.arange(0, self.ends.size + 1, 2, dtype=self.starts.dtype)
        return BipartiteGraph(starts, self.ends, self.starts, self.edges)
