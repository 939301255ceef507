"""Where the entries of a matrix are found in its compressed products.

A product with the columns of colour c added up shows an entry where it is the only one of its row
in that colour. With a star colouring each entry, or its mirror image, is such a one. With an
acyclic colouring those at the leaves of each two-coloured tree are, and every other one is once the
entries below it have been subtracted: source: Gebremedhin, Pothen, Tarafdar and Walther (2009),
"Efficient computation of sparse Hessians using coloring and automatic differentiation", section
3.2, doi:10.1287/ijoc.1080.0286.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from fwdad.colouring.graphs import AdjacencyGraph, Indices, row_indices
from fwdad.colouring.kernels import index_array, kernel
from fwdad.colouring.partial_distance2 import number_of


@dataclass(frozen=True, eq=False)
class Reading:
    """Which values are read from a product, and where: ``value[which] = product[first, second]``.

    ``which`` is a slice if all values are.
    """

    which: Any
    first: Indices
    second: Indices
    shape: tuple[int, int]
    _flat: dict[str, Indices] = field(default_factory=dict)

    def of(self, product: Any) -> Any:
        """The values that a product has."""
        if not (product.flags.c_contiguous or product.flags.f_contiguous):
            return product[self.first, self.second]
        order = "C" if product.flags.c_contiguous else "F"
        if order not in self._flat:
            m, n = self.shape
            first, second = self.first.astype(np.intp), self.second.astype(np.intp)
            self._flat[order] = first * n + second if order == "C" else first + second * m
        return product.ravel(order="K").take(self._flat[order])


@dataclass(frozen=True, eq=False)
class Recovery:
    """How the entries of a pattern follow from the products.

    Parameters
    ----------
    columns, rows : Reading or None
        What is read from the product with columns added up, and from that with rows.
    values : int
        How many values are read.
    order, above : array of int, optional
        Then, in this order, each value is subtracted from the one above it in its tree, if any.
    value_of : array of int, optional
        The value of each entry; by default they are the entries.
    unknown : array of int
        The entries that the products do not show: with them the colouring is none.
    """

    columns: Reading | None
    rows: Reading | None
    values: int
    unknown: Indices
    order: Indices | None = None
    above: Indices | None = None
    value_of: Indices | None = None

    def data(self, columns: Any, rows: Any) -> Any:
        """The entries, in the pattern's order."""
        read = [(r, p) for r, p in ((self.columns, columns), (self.rows, rows)) if r is not None]
        if len(read) == 1 and isinstance(read[0][0].which, slice):
            values = read[0][0].of(read[0][1])
        else:
            values = np.empty(self.values, np.result_type(*(p.dtype for _, p in read)))
            for reading, product in read:
                values[reading.which] = reading.of(product)
        if self.order is not None and self.above is not None:
            subtract(self.order, self.above, values, steps=self.order.size)
        return values if self.value_of is None else values[self.value_of]


def alone(vertices: Indices, colours: Indices, n: int) -> Any:
    """Whether each pair of vertex and colour comes once, where the colour is not -1."""
    once = colours >= 0
    keys, size = pair_keys(vertices, colours, n)
    counts = np.bincount(keys[once], minlength=size)
    once[once] = counts[keys[once]] == 1
    return once


def pair_keys(vertices: Indices, colours: Indices, n: int) -> tuple[Any, int]:
    """A number for each pair of vertex and colour, -1 among them, and a bound of these numbers."""
    number = number_of(colours) + 1
    keys = vertices.astype(np.int64) * number + (colours + 1)
    if n * number <= 8 * keys.size + 1000:
        return keys, n * number
    known, keys = np.unique(keys, return_inverse=True)
    return keys, known.size


def recover_directly(
    pattern: sp.csr_array, column_colours: Indices | None, row_colours: Indices | None
) -> Recovery:
    """How entries are read from the products of a matrix; by columns those that both show."""
    (m, n), i, j = pattern.shape, row_indices(pattern), pattern.indices
    by_columns = np.zeros(j.size, bool)
    by_rows = by_columns
    columns = rows = None
    if column_colours is not None:
        by_columns = alone(i, column_colours[j], m)
        columns = _reading(by_columns, i, column_colours[j], (m, number_of(column_colours)))
    if row_colours is not None:
        by_rows = alone(j, row_colours[i], n) & ~by_columns
        rows = _reading(by_rows, row_colours[i], j, (number_of(row_colours), n))
    return Recovery(columns, rows, j.size, np.flatnonzero(~(by_columns | by_rows)))


def _reading(which: Any, first: Indices, second: Indices, shape: tuple[int, int]) -> Reading:
    """What is read at some entries."""
    if which.all():
        return Reading(slice(None), first, second, shape)
    return Reading(np.flatnonzero(which), first[which], second[which], shape)


def recover_stars(pattern: sp.csr_array, colours: Indices) -> Recovery:
    """How entries are read from a symmetric matrix's product, each there or in its mirror image."""
    n, i, j = pattern.shape[0], row_indices(pattern), pattern.indices
    here = alone(i, colours[j], n)
    # the mirror image of entry k is the k-th one by columns
    numbers = sp.csr_array((np.arange(1, j.size + 1), j, pattern.indptr), shape=pattern.shape)
    mirrored = numbers.tocsc().data - 1
    there = here[mirrored]
    # an edge that can be read at both ends is read in a colour that is read anyway
    seen = np.zeros(number_of(colours) + 1, bool)  # the last one is for -1
    seen[colours[j[here & (~there | (i == j))]]] = True
    free = np.flatnonzero(here & there & (i < j))
    while free.size:
        free = free[~(seen[colours[i[free]]] | seen[colours[j[free]]])]
        if free.size:
            ends = np.concatenate([colours[i[free]], colours[j[free]]])
            seen[np.argmax(np.bincount(ends))] = True
    both = here & there
    here &= ~both | seen[colours[j]] & ~(seen[colours[i]] & (i > j))
    first, second = np.where(here, i, j), colours[np.where(here, j, i)]
    unknown = np.flatnonzero(~(here | there))
    return Recovery(Reading(slice(None), first, second, (n, number_of(colours))), None, j.size,
                    unknown)  # fmt: skip


def recover_trees(pattern: sp.csr_array, colours: Indices) -> Recovery:
    """How entries are found in a symmetric matrix's product by substitution."""
    graph = AdjacencyGraph.of(pattern)
    number, n_edges = number_of(colours), graph.ends.size // 2
    i, j = graph.ends[::2], graph.ends[1::2]
    # a node is a vertex in the tree of its own colour and another one
    vertices, others = np.concatenate([i, j]), colours[np.concatenate([j, i])]
    keys, size = pair_keys(vertices, others, graph.size)
    nodes = keys.astype(graph.starts.dtype)
    numbers = np.concatenate([np.arange(n_edges), np.arange(n_edges)])
    count = np.bincount(nodes, minlength=size).astype(nodes.dtype)
    edges = index_array(size, 0, nodes)
    np.bitwise_xor.at(edges, nodes, numbers.astype(nodes.dtype))
    order, reader, above = (index_array(n_edges, -1, nodes) for _ in range(3))
    up, queue = index_array(size, -1, nodes), index_array(2 * n_edges, 0, nodes)
    done = peel_trees(nodes, count, edges, order, reader, above, up, queue, steps=4 * n_edges)
    order = order[:done]
    at = np.where(reader >= 0, reader, 0)  # which of the two ends an edge is read at
    where = np.arange(n_edges) + n_edges * at
    proper = colours[i] != colours[j]
    known = np.zeros(n_edges, bool)
    known[order] = True
    known &= proper & (colours[i] >= 0) & (colours[j] >= 0)
    value_of = np.empty(pattern.nnz, np.intp)
    value_of[graph.entries] = graph.edges
    value_of[graph.diagonal] = n_edges + np.arange(graph.diagonal.size)
    diagonal = pattern.indices[graph.diagonal]
    lost = np.concatenate([~known, colours[diagonal] < 0])
    reading = Reading(
        slice(None),
        np.concatenate([vertices[where], diagonal]),
        np.concatenate([others[where], colours[diagonal]]),
        (graph.size, number),
    )
    unknown = np.flatnonzero(lost[value_of])
    inner = order[above[order] >= 0]
    return Recovery(reading, None, n_edges + diagonal.size, unknown, inner, above, value_of)


@kernel("count", "edges", "order", "reader", "above", "up", "queue")
def peel_trees(
    nodes: Any, count: Any, edges: Any, order: Any, reader: Any, above: Any, up: Any, queue: Any
) -> Any:
    """Take the edges of trees from their leaves on; return how many could be taken.

    Edge e joins ``nodes[e]`` and ``nodes[e + len(order)]``. ``count`` says how many edges a node
    has still, and ``edges`` is the exclusive or of their numbers. An edge is read at the leaf that
    it was taken with (``reader``, 0 or 1), and is ``above`` those that were taken there before.
    """
    n_edges = len(order)
    filled = 0
    for k in range(2 * n_edges):
        if count[nodes[k]] == 1:
            queue[filled] = nodes[k]
            filled += 1
    done = 0
    k = 0
    while k < filled:
        node = queue[k]
        k += 1
        if count[node] != 1:
            continue
        e = edges[node]
        other = nodes[e]
        reader[e] = 1
        if other == node:
            other = nodes[e + n_edges]
            reader[e] = 0
        up[node] = e
        order[done] = e
        done += 1
        count[node] = 0
        count[other] -= 1
        edges[other] ^= e
        above[e] = other  # the node, and below its own edge
        if count[other] == 1:
            queue[filled] = other
            filled += 1
    for k in range(done):
        e = order[k]
        above[e] = up[above[e]]
    return done


@kernel("values")
def subtract(order: Any, above: Any, values: Any) -> None:
    """Subtract values from those above them, one after the other."""
    for e in order:
        values[above[e]] -= values[e]
