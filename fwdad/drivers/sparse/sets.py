"""The sets of inputs that nodes of a graph depend on, as rows of a matrix.

Loops over nodes and edges, which Numba compiles; where it is not installed and they are long, NumPy
goes through the graph level by level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from fwdad.codegen.numba_support import have_numba
from fwdad.colouring.kernels import FEW_STEPS, index_array, kernel
from fwdad.transforms.sparsity.graph import Graph, sorted_once


def jacobian_pattern(graph: Graph, results: Any) -> sp.csr_array:
    """For each result's node, the inputs that it depends on."""
    return _closure(graph, np.ravel(results))[0]


def hessian_pattern(graph: Graph, result: int) -> sp.csr_array:
    """The pairs of inputs by which a result may have a second derivative."""
    nodes, a, b = graph.joined()
    _, live = _closure(graph, np.array([result]))
    on = live[nodes]
    pairs = sorted_once(np.minimum(a, b)[on] * graph.count + np.maximum(a, b)[on])
    left, right = (_closure(graph, x)[0].astype(np.int8) for x in np.divmod(pairs, graph.count))
    made = (left.T @ right).astype(bool)
    return sp.csr_array(made + made.T)


def _closure(graph: Graph, wanted: Any) -> tuple[sp.csr_array, Any]:
    """The inputs that some nodes depend on, and which nodes these depend on."""
    targets, sources = graph.edges()
    groups = _groups(graph, targets, sources)
    inputs, goals = np.arange(1, graph.inputs + 1), wanted
    count = graph.count
    if groups is not None:
        targets, sources = groups[targets], groups[sources]
        apart = targets != sources
        targets, sources = targets[apart], sources[apart]
        inputs, goals = groups[inputs], groups[wanted]
        count = int(groups.max()) + 1
    pattern, live = rows_of_sets(Edges(targets, sources, count), inputs, goals)
    return pattern, live if groups is None else live[groups]


def _groups(graph: Graph, targets: Any, sources: Any) -> Any:
    """A number for each node, equal in cycles; None where there is no cycle."""
    if graph.in_order or np.all(targets > sources):
        return None
    ones = np.ones(targets.size, bool)
    matrix = sp.csr_array((ones, (targets, sources)), shape=(graph.count, graph.count))
    return connected_components(matrix, connection="strong")[1].astype(targets.dtype)


class Edges:
    """The edges of each node of a graph without cycles: where they start, and where they go."""

    def __init__(self, targets: Any, sources: Any, count: int) -> None:
        self.starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(targets, minlength=count), out=self.starts[1:])
        self.on = np.empty_like(sources)
        self.by_loops = have_numba() or self.on.size < FEW_STEPS
        if self.by_loops:
            ends = self.starts[:-1].copy()
            sort_by_target(targets, sources, ends, self.on, steps=self.on.size)
        else:
            self.on[...] = sources[np.argsort(targets, kind="stable")]

    def of(self, nodes: Any) -> tuple[Any, Any]:
        """The edges of some nodes, one behind the other, and how many each has."""
        first = self.starts[nodes]
        degrees = self.starts[nodes + 1] - first
        return self.on[_spans(first, degrees)], degrees


def rows_of_sets(edges: Edges, inputs: Any, goals: Any) -> tuple[sp.csr_array, Any]:
    """Which inputs some nodes depend on, the goals' sets; and whether each node is met for them."""
    rows = _Rows(edges, inputs)
    if edges.by_loops:
        order, live = _sources_first(edges, goals)
        rows.unite(order)
    else:
        live = _reachable(edges, goals)
        for nodes in _levels(edges, live):
            rows.unite_level(nodes)
    return rows.matrix(goals), live


class _Rows:
    """The inputs that nodes depend on, in one array that grows."""

    def __init__(self, edges: Edges, inputs: Any) -> None:
        self._edges = edges
        count = edges.starts.size - 1
        self._inputs = inputs.size
        self._first = np.zeros(count, np.int64)
        self._length = np.zeros(count, np.int32)
        self._columns = np.arange(inputs.size, dtype=np.int32)
        self._used = inputs.size
        self._first[inputs] = self._columns
        self._length[inputs] = 1

    def unite(self, order: Any) -> None:
        """Set the rows of nodes, each from those of the nodes that it depends on."""
        edges, met = self._edges, np.full(self._inputs, -1)
        state = np.array([0, self._used])
        rest = (order, edges.starts, edges.on, self._inputs, self._first, self._length)
        size = self._inputs + 4 * edges.on.size
        while True:
            self._resize(size, int(state[1]))
            if unite(*rest, self._columns, met, state, steps=2 * edges.on.size):
                self._used = int(state[1])
                return
            size *= 2

    def unite_level(self, nodes: Any) -> None:
        """Set the rows of nodes that do not depend on one another, by sorting."""
        sources, degrees = self._edges.of(nodes)
        lengths = self._length[sources]
        columns = self._columns[_spans(self._first[sources], lengths)]
        of = np.repeat(np.arange(nodes.size), degrees)
        keys = sorted_once(np.repeat(of, lengths) * self._inputs + columns)
        begins = np.arange(nodes.size + 1) * self._inputs
        counts = np.diff(np.searchsorted(keys, begins))
        end = self._used + keys.size
        if end > self._columns.size:
            self._resize(self._columns.size + max(end, 1024), self._used)
        # a division of each key would take ten times as long
        self._columns[self._used : end] = keys - np.repeat(begins[:-1], counts)
        self._length[nodes] = counts
        self._first[nodes] = self._used + np.cumsum(counts) - counts
        self._used = end

    def _resize(self, size: int, used: int) -> None:
        held, self._columns = self._columns, np.empty(size, np.int32)
        self._columns[:used] = held[:used]

    def matrix(self, nodes: Any) -> sp.csr_array:
        """The rows of some nodes as a matrix of True."""
        starts = np.concatenate([[0], np.cumsum(self._length[nodes])])
        columns = np.empty(starts[-1], self._columns.dtype)
        held = self._columns[: self._used]
        copy_rows(nodes, self._first, held, starts, columns, steps=columns.size)
        parts = (np.ones(columns.size, bool), columns, starts)
        made = sp.csr_array(parts, shape=(nodes.size, self._inputs))
        made.sort_indices()
        return made


# -- by loops


def _sources_first(edges: Edges, goals: Any) -> tuple[Any, Any]:
    """The nodes that some depend on, each behind those that it depends on; and which these are."""
    starts, on = edges.starts, edges.on
    count = starts.size - 1
    followed = index_array(count, -1, starts)
    stack, order = (np.empty(count, on.dtype) for _ in range(2))
    steps = on.size + goals.size
    done = depth_first(starts, on, goals, followed, stack, order, steps=steps)
    return order[:done], followed >= 0


@kernel("ends", "on")
def sort_by_target(targets: Any, sources: Any, ends: Any, on: Any) -> None:
    """Put each edge behind those of its node that are there; ``ends`` says where that is."""
    for e in range(len(targets)):
        v = targets[e]
        on[ends[v]] = sources[e]
        ends[v] += 1


@kernel("followed", "stack", "order")
def depth_first(
    starts: Any, on: Any, goals: Any, followed: Any, stack: Any, order: Any
) -> Any:  # fmt: skip
    """Write nodes in the order in which a search from some goals leaves them; how many they are.

    ``followed[v]`` is the next edge to follow from v, -1 if v has not been met.
    """
    done = 0
    for goal in goals:
        if followed[goal] >= 0:
            continue
        depth = 0
        stack[0] = goal
        followed[goal] = starts[goal]
        while depth >= 0:
            v = stack[depth]
            e = followed[v]
            if e < starts[v + 1]:
                followed[v] = e + 1
                w = on[e]
                if followed[w] < 0:
                    depth += 1
                    stack[depth] = w
                    followed[w] = starts[w]
            else:
                order[done] = v
                done += 1
                depth -= 1
    return done


@kernel("first", "length", "columns", "met", "state")
def unite(
    order: Any, starts: Any, on: Any, inputs: Any,
    first: Any, length: Any, columns: Any, met: Any, state: Any,
) -> Any:  # fmt: skip
    """Unite, node by node, the rows of those that it depends on, until the columns are full.

    A row that is as long as one that it is made of is that one. ``met[c]`` is the last node that
    has column c; ``state`` says how many nodes are done, and how many columns are used.
    """
    used = state[1]
    for k in range(state[0], len(order)):
        v = order[k]
        if starts[v] == starts[v + 1]:
            continue
        total = 0
        longest = on[starts[v]]
        for e in range(starts[v], starts[v + 1]):
            total += length[on[e]]
            if length[on[e]] > length[longest]:
                longest = on[e]
        if used + min(total, inputs) > len(columns):
            state[0] = k
            state[1] = used
            return False
        end = used
        for e in range(starts[v], starts[v + 1]):
            begin = first[on[e]]
            for q in range(begin, begin + length[on[e]]):
                c = columns[q]
                if met[c] != v:
                    met[c] = v
                    columns[end] = c
                    end += 1
        length[v] = end - used
        if length[v] == length[longest]:
            first[v] = first[longest]
        else:
            first[v] = used
            used = end
    state[1] = used
    return True


@kernel("out")
def copy_rows(nodes: Any, first: Any, columns: Any, starts: Any, out: Any) -> None:
    """Write the columns of some nodes one behind the other."""
    for k in range(len(nodes)):
        shift = first[nodes[k]] - starts[k]
        for q in range(starts[k], starts[k + 1]):
            out[q] = columns[q + shift]


# -- level by level


def _spans(starts: Any, lengths: Any) -> Any:
    """The numbers of several spans, one behind the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if ends.size else 0)


def _reachable(edges: Edges, goals: Any) -> Any:
    """Which nodes some depend on."""
    live = np.zeros(edges.starts.size - 1, bool)
    frontier = sorted_once(goals)
    live[frontier] = True
    while frontier.size:
        found, _ = edges.of(frontier)
        frontier = sorted_once(found[~live[found]])
        live[frontier] = True
    return live


def _levels(edges: Edges, live: Any) -> Iterator[Any]:
    """All live nodes that have edges, those first that depend on nodes without edges alone."""
    waiting = np.diff(edges.starts)
    targets = np.repeat(np.arange(live.size), waiting)
    keep = live[targets]
    back = Edges(edges.on[keep], targets[keep], live.size)
    frontier = np.flatnonzero(live & (waiting == 0))
    while frontier.size:
        met, _ = back.of(frontier)
        np.subtract.at(waiting, met, 1)
        frontier = sorted_once(met[waiting[met] == 0])
        if frontier.size:
            yield frontier
