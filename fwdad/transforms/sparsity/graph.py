"""The graph of dependences: a node for each set of inputs that an element may depend on.

Node 0 depends on nothing, the next ones are the inputs. An element that depends on what another one
depends on has the same node, so what only moves elements adds none. Loops that are not unrolled
make cycles.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

Nodes = np.ndarray[Any, np.dtype[np.int64]]


class Graph:
    """Nodes, and edges from each node to those that it depends on.

    With ``pairs`` it also keeps which pairs of nodes a second derivative may join, each with the
    node of the element that has this derivative.
    """

    def __init__(self, inputs: int, *, pairs: bool = False) -> None:
        self.inputs = inputs
        self.pairs = pairs
        self._count = inputs + 1
        self._batches: list[int] = []  # the first of nodes that do not depend on one another
        self._in_order = True
        self._edges: list[tuple[Any, Any]] = []
        self._single: tuple[list[int], list[int]] = ([], [])
        self._joined: list[tuple[Any, Any, Any]] = []

    def new(self, count: int) -> Nodes:
        """Some new nodes."""
        self._batches.append(self._count)
        self._count += count
        return np.arange(self._count - count, self._count)

    def depend(self, nodes: Any, on: Any) -> None:
        """Let each of some new nodes depend on an older one."""
        nodes, on = (np.ravel(x).astype(np.int64, copy=False) for x in (nodes, on))
        self._edges.append((nodes, on))

    def depend_on_any(self, nodes: Any, on: Any) -> None:
        """Let each of some nodes depend on another one, whichever is older."""
        self._in_order = False
        self.depend(nodes, on)

    def either(self, a: int, b: int) -> int:
        """A node for what depends on either of two."""
        if a == b or not b:
            return a
        return self.both(a, b) if a else b

    def both(self, a: int, b: int) -> int:
        """A new node for what depends on two."""
        node = self._count
        self._count += 1
        targets, sources = self._single
        targets += (node, node)
        sources += (a, b)
        return node

    def union(self, parts: list[Any], shape: tuple[int, ...], *, new: bool = False) -> Nodes:
        """Element by element, a node for what depends on any of some; ``new`` ones if asked for.

        The result lies in memory as that of a ufunc does.
        """
        largest = functools.reduce(np.maximum, parts) if len(parts) > 1 else np.positive(parts[0])
        if np.shape(largest) != shape:
            largest = np.array(np.broadcast_to(largest, shape), order="C")
        largest = np.asarray(largest)
        wide = [np.broadcast_to(p, shape) for p in parts if np.any(p)]
        if new:
            several = largest > 0
        else:
            several = np.zeros(shape, bool)
            for p in wide if len(wide) > 1 else ():
                several |= (p != largest) & (p != 0)
        if several.any():
            made = self.new(int(np.count_nonzero(several)))
            for p in wide:
                at = p[several]
                self.depend(made[at > 0], at[at > 0])
            largest[several] = made
        return largest

    def over(self, nodes: Any, axes: tuple[int, ...], *, new: bool = False) -> Nodes:
        """Nodes for what depends on any element along some axes, which become 1 long."""
        kept = [k for k in range(nodes.ndim) if k not in axes]
        shape = tuple(1 if k in axes else n for k, n in enumerate(nodes.shape))
        count = math.prod(nodes.shape[k] for k in kept)
        along = math.prod(nodes.shape[k] for k in axes)
        rows = nodes.transpose((*kept, *axes)).reshape(count, along)
        if not rows.shape[1]:
            return np.zeros(shape, np.int64)
        largest = np.max(rows, axis=1)
        different = (rows != largest[:, None]) & (rows != 0)
        several = largest > 0 if new else different.any(axis=1)
        if several.any():
            made = self.new(int(np.count_nonzero(several)))
            of = rows[several]
            i, j = np.nonzero(of)
            self.depend(made[i], of[i, j])
            largest[several] = made
        return largest.reshape(shape)

    def scattered(self, places: Any, nodes: Any, into: Any) -> None:
        """Add to the nodes at some places of a flat array, which may repeat."""
        places, nodes = np.ravel(places), np.ravel(nodes)
        held = nodes > 0
        places, nodes = places[held], nodes[held]
        touched = sorted_once(places)
        which = np.searchsorted(touched, places)
        made = self.new(touched.size)
        old = into[touched]
        self.depend(made[which], nodes)
        self.depend(made[old > 0], old[old > 0])
        into[touched] = made

    def join(self, nodes: Any, a: Any, b: Any) -> None:
        """Note second derivatives, of elements with these nodes by what a and b depend on."""
        if self.pairs:
            nodes, a, b = (np.ravel(x) for x in np.broadcast_arrays(nodes, a, b))
            held = (a > 0) & (b > 0)
            self._joined.append((nodes[held], a[held], b[held]))

    # -- patterns

    def _all_edges(self) -> tuple[Nodes, Nodes]:
        single = [np.array(x, np.int64) for x in self._single]
        targets = [t for t, _ in self._edges]
        sources = [s for _, s in self._edges]
        return np.concatenate([*targets, single[0]]), np.concatenate([*sources, single[1]])

    def jacobian(self, results: Any) -> sp.csr_array:
        """For each result's node, the inputs that it depends on."""
        return self._closure(np.ravel(results))[0]

    def hessian(self, result: int) -> sp.csr_array:
        """The pairs of inputs by which a result may have a second derivative."""
        none = np.zeros(0, np.int64)
        joined = zip((none, none, none), *self._joined, strict=True)
        nodes, a, b = (np.concatenate(parts) for parts in joined)
        _, live = self._closure(np.array([result]))
        on = live[nodes]
        pairs = sorted_once(np.minimum(a, b)[on] * self._count + np.maximum(a, b)[on])
        left, right = (self._closure(x)[0].astype(np.int8) for x in np.divmod(pairs, self._count))
        made = (left.T @ right).astype(bool)
        return sp.csr_array(made + made.T)

    def _closure(self, wanted: Any) -> tuple[sp.csr_array, Any]:
        """The inputs that some nodes depend on, and which nodes these depend on."""
        targets, sources = self._all_edges()
        groups = self._groups(targets, sources)
        if groups is not None:
            targets, sources = groups[targets], groups[sources]
            apart = targets != sources
            targets, sources = targets[apart], sources[apart]
        count = self._count if groups is None else int(groups.max()) + 1
        inputs = np.arange(1, self.inputs + 1)
        given = inputs if groups is None else groups[inputs]
        goals = wanted if groups is None else groups[wanted]
        starts, on = _by_target(targets, sources, count)
        live = _reachable(starts, on, goals)
        rows = _Rows(count, given)
        if self._in_order and not self._single[0]:
            for first, end in itertools.pairwise([*self._batches, count]):
                rows.add(first + np.flatnonzero(live[first:end]), starts, on)
        else:
            keep = live[targets]
            _propagate(rows, (targets[keep], sources[keep]), (starts, on), live)
        pattern = rows.matrix(goals, self.inputs)
        return pattern, live if groups is None else live[groups]

    def _groups(self, targets: Nodes, sources: Nodes) -> Any:
        """A number for each node, equal in cycles; None where there is no cycle."""
        if self._in_order or np.all(targets > sources):
            return None
        ones = np.ones(targets.size, bool)
        graph = sp.csr_array((ones, (targets, sources)), shape=(self._count, self._count))
        return connected_components(graph, connection="strong")[1].astype(np.int64)


def sorted_once(x: Any) -> Any:
    """The elements of an array in order, each once; ``np.unique`` takes ten times as long.

    What is sorted here is nearly in order, and a stable sort is four times as fast then.
    """
    x = np.sort(x, axis=None, kind="stable")
    first = np.ones(x.size, bool)
    np.not_equal(x[1:], x[:-1], out=first[1:])
    return x[first]


def _by_target(targets: Any, sources: Any, count: int) -> tuple[Any, Any]:
    """The edges of each node: where they start, and where they go."""
    order = np.argsort(targets, kind="stable")
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(targets, minlength=count), out=starts[1:])
    return starts, sources[order]


def _spans(starts: Any, lengths: Any) -> Any:
    """The numbers of several spans, one behind the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if ends.size else 0)


def _reachable(starts: Any, on: Any, goals: Any) -> Any:
    live = np.zeros(starts.size - 1, bool)
    frontier = sorted_once(goals)
    live[frontier] = True
    while frontier.size:
        first = starts[frontier]
        found = on[_spans(first, starts[frontier + 1] - first)]
        frontier = sorted_once(found[~live[found]])
        live[frontier] = True
    return live


def _propagate(rows: _Rows, edges: tuple[Any, Any], by_target: tuple[Any, Any], live: Any) -> None:
    """Find the rows of all live nodes, those first that depend on inputs alone."""
    (starts, on), (targets, sources) = by_target, edges
    after, following = _by_target(sources, targets, live.size)
    waiting = np.diff(starts)
    frontier = np.flatnonzero(live & (waiting == 0))
    while frontier.size:
        first = after[frontier]
        met = following[_spans(first, after[frontier + 1] - first)]
        np.subtract.at(waiting, met, 1)
        frontier = sorted_once(met[waiting[met] == 0])
        rows.add(frontier, starts, on)


class _Rows:
    """The inputs that nodes depend on, in one array that grows."""

    def __init__(self, count: int, inputs: Any) -> None:
        self.first = np.zeros(count, np.int64)
        self.length = np.zeros(count, np.int64)
        self.columns = np.arange(max(inputs.size, 1))
        self.used = inputs.size
        self.first[inputs] = np.arange(inputs.size)
        self.length[inputs] = 1
        self._inputs = max(inputs.size, 1)

    def add(self, nodes: Any, starts: Any, on: Any) -> None:
        """Set the rows of nodes, from those of the nodes that they depend on."""
        first, degrees = starts[nodes], starts[nodes + 1] - starts[nodes]
        sources = on[_spans(first, degrees)]
        of = np.repeat(np.arange(nodes.size), degrees)
        lengths = self.length[sources]
        columns = self.columns[_spans(self.first[sources], lengths)]
        keys = sorted_once(np.repeat(of, lengths) * self._inputs + columns)
        begins = np.arange(nodes.size + 1) * self._inputs
        counts = np.diff(np.searchsorted(keys, begins))
        columns = keys - np.repeat(begins[:-1], counts)  # a division of each would take ten times
        end = self.used + columns.size
        if end > self.columns.size:
            self.columns = np.concatenate([self.columns, np.zeros(max(end, 1024), np.int64)])
        self.columns[self.used : end] = columns
        self.length[nodes] = counts
        self.first[nodes] = self.used + np.cumsum(counts) - counts
        self.used = end

    def matrix(self, nodes: Any, inputs: int) -> sp.csr_array:
        """The rows of some nodes as a matrix of True."""
        lengths = self.length[nodes]
        columns = self.columns[_spans(self.first[nodes], lengths)]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        parts = (np.ones(columns.size, bool), columns, starts)
        made = sp.csr_array(parts, shape=(nodes.size, inputs))
        made.sort_indices()
        return made
