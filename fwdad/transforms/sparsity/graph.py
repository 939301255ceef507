"""The graph of dependences: a node for each set of inputs that an element may depend on.

Node 0 depends on nothing, the next ones are the inputs. An element that depends on what another one
depends on has the same node, so what only moves elements adds none. Loops that are not unrolled
make cycles.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

Nodes = np.ndarray[Any, np.dtype[np.int64]]


class Graph:
    """Nodes, and edges from each node to those that it depends on.

    With ``pairs`` it also keeps which pairs of nodes a second derivative may join, each with the
    node of the element that has this derivative.
    """

    def __init__(self, inputs: int, *, pairs: bool = False) -> None:
        self.inputs = inputs
        self.pairs = pairs
        self.count = inputs + 1
        self.in_order = True
        self._edges: list[tuple[Any, Any]] = []
        self._single: tuple[list[int], list[int]] = ([], [])
        self._joined: list[tuple[Any, Any, Any]] = []

    def new(self, count: int) -> Nodes:
        """Some new nodes."""
        self.count += count
        return np.arange(self.count - count, self.count)

    def depend(self, nodes: Any, on: Any) -> None:
        """Let each of some new nodes depend on an older one."""
        index = np.int32 if self.count < 1 << 31 else np.int64
        self._edges.append((np.ravel(nodes).astype(index), np.ravel(on).astype(index)))

    def depend_on_any(self, nodes: Any, on: Any) -> None:
        """Let each of some nodes depend on another one, whichever is older."""
        self.in_order = False
        self.depend(nodes, on)

    def either(self, a: int, b: int) -> int:
        """A node for what depends on either of two."""
        if a == b or not b:
            return a
        return self.both(a, b) if a else b

    def both(self, a: int, b: int) -> int:
        """A new node for what depends on two."""
        node = self.count
        self.count += 1
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
        count = int(np.count_nonzero(several))
        if count:
            made = self.new(count)
            every = count == several.size
            for p in wide:  # an edge to node 0 adds nothing
                self.depend(made, p if every else p[several])
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

    def edges(self) -> tuple[Nodes, Nodes]:
        """From which nodes all edges go, and to which."""
        if self._single[0]:
            self.depend(*self._single)
            self._single = ([], [])
        none = np.zeros(0, np.int32)
        parts = zip((none, none), *self._edges, strict=True)
        targets, sources = map(np.concatenate, parts)
        self._edges = [(targets, sources)]
        return targets, sources

    def joined(self) -> list[Any]:
        """What :meth:`join` has noted: the elements' nodes, and the two of each pair."""
        none = np.zeros(0, np.int64)
        parts = zip((none, none, none), *self._joined, strict=True)
        return [np.concatenate(part) for part in parts]


def sorted_once(x: Any) -> Any:
    """The elements of an array in order, each once; ``np.unique`` takes ten times as long.

    What is sorted here is nearly in order, and a stable sort is four times as fast then.
    """
    x = np.sort(x, axis=None, kind="stable")
    first = np.ones(x.size, bool)
    np.not_equal(x[1:], x[:-1], out=first[1:])
    return x[first]
