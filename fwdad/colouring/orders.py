"""The orders in which a greedy colouring takes the columns.

Degrees are numbers of columns at distance 2 in the bipartite graph. Source: Gebremedhin, Manne and
Pothen (2005), "What Color Is Your Jacobian?", section 6.1, doi:10.1137/S0036144504444711. An
adjacency graph's vertices are the columns of its incidence matrix, where distance 2 is adjacency.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from fwdad.colouring.graphs import BipartiteGraph, Indices
from fwdad.colouring.kernels import index_array, kernel
from fwdad.errors import ColouringError

Order = Literal["natural", "largest_first", "smallest_last", "incidence_degree", "random"]
ORDERS: tuple[Order, ...] = get_args(Order)
SEED = 0
"""Of the random order, so that colourings are the same in each run."""


def check_orders(order: str | Sequence[str]) -> tuple[str, ...]:
    """The orders that an argument names."""
    orders = (order,) if isinstance(order, str) else tuple(order)
    unknown = [x for x in orders if x not in ORDERS]
    if unknown or not orders:
        came = repr(unknown[0]) if unknown else "an empty sequence"
        raise ColouringError(f"order is one or several of {', '.join(ORDERS)}; {came} came")
    return orders


class Orders:
    """The orders of a graph's columns, each computed when it is asked for."""

    def __init__(self, graph: BipartiteGraph) -> None:
        self._graph = graph

    def __getitem__(self, name: str) -> Indices:
        make: Any = getattr(self, name)
        return make()

    def natural(self) -> Indices:
        """From the first column to the last."""
        return np.arange(self._graph.columns, dtype=self._graph.row_starts.dtype)

    def largest_first(self) -> Indices:
        """By decreasing degree."""
        order = np.argsort(-self.degrees, kind="stable")
        return order.astype(self.degrees.dtype)

    def smallest_last(self) -> Indices:
        """The last column has the smallest degree, the one before it that among the rest."""
        return self._removed(self.degrees, self.natural())[::-1].copy()

    def incidence_degree(self) -> Indices:
        """The next column has most columns at distance 2 among those that have been taken."""
        most = int(np.max(self.degrees, initial=0))
        return self._removed(np.full_like(self.degrees, most), self.largest_first())

    def random(self) -> Indices:
        """A permutation, the same each time."""
        rng = np.random.default_rng(SEED)
        return rng.permutation(self._graph.columns).astype(self._graph.row_starts.dtype)

    @functools.cached_property
    def degrees(self) -> Indices:
        """How many columns are at distance 2."""
        graph = self._graph
        degree = index_array(graph.columns, 0, graph.row_starts)
        seen = index_array(graph.columns, -1, graph.row_starts)
        count_degrees(*graph.arrays, degree, seen, steps=graph.steps)
        return degree

    def _removed(self, keys: Indices, order: Indices) -> Indices:
        """The order of removal by smallest key, where a removal lowers the keys at distance 2."""
        graph, keys = self._graph, keys.copy()
        heads = index_array(int(np.max(keys, initial=0)) + 1, -1, keys)
        after, before, seen = (index_array(keys.size, -1, keys) for _ in range(3))
        remove_by_key(*graph.arrays, keys, order, heads, after, before, seen, steps=graph.steps)
        return order


@kernel("degree", "seen")
def count_degrees(
    row_starts: Any, row_columns: Any, column_starts: Any, column_rows: Any, degree: Any, seen: Any
) -> None:
    """Count the columns at distance 2 from each."""
    for v in range(len(degree)):
        count = 0
        seen[v] = v
        for p in range(column_starts[v], column_starts[v + 1]):
            i = column_rows[p]
            for q in range(row_starts[i], row_starts[i + 1]):
                u = row_columns[q]
                if seen[u] != v:
                    seen[u] = v
                    count += 1
        degree[v] = count


@kernel("key", "order", "heads", "after", "before", "seen")
def remove_by_key(
    row_starts: Any, row_columns: Any, column_starts: Any, column_rows: Any,
    key: Any, order: Any, heads: Any, after: Any, before: Any, seen: Any,
) -> None:  # fmt: skip
    """Remove the column of smallest key, lower the keys at distance 2 by one, and again.

    ``order`` has the order among equal keys at first, and the order of removal at last. The columns
    of each key are a linked list from ``heads`` on.
    """
    n = len(key)
    for k in range(n - 1, -1, -1):
        v = order[k]
        first = heads[key[v]]
        after[v] = first
        if first >= 0:
            before[first] = v
        heads[key[v]] = v
    low = 0
    for k in range(n):
        while heads[low] < 0:
            low += 1
        v = heads[low]
        heads[low] = after[v]
        if after[v] >= 0:
            before[after[v]] = -1
        order[k] = v
        seen[v] = n  # removed
        for p in range(column_starts[v], column_starts[v + 1]):
            i = column_rows[p]
            for q in range(row_starts[i], row_starts[i + 1]):
                u = row_columns[q]
                if seen[u] != n and seen[u] != k:
                    seen[u] = k
                    if before[u] >= 0:
                        after[before[u]] = after[u]
                    else:
                        heads[key[u]] = after[u]
                    if after[u] >= 0:
                        before[after[u]] = before[u]
                    key[u] -= 1
                    first = heads[key[u]]
                    after[u] = first
                    before[u] = -1
                    if first >= 0:
                        before[first] = u
                    heads[key[u]] = u
        if low > 0:
            low -= 1
