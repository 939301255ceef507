"""Acyclic colouring of an adjacency graph: neighbours differ, and each cycle has three colours.

Any two colours then span trees, whose entries are found from the leaves on by substitution. Source:
Coleman and Cai (1986), "The cyclic coloring problem and estimation of sparse Hessian matrices";
Gebremedhin, Tarafdar, Manne and Pothen (2007), "New acyclic and star coloring algorithms with
application to computing Hessians", algorithm 3.1, doi:10.1137/050639879. As in the star colouring,
loops over neighbours of neighbours are loops over their colours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.colouring.graphs import AdjacencyGraph, Indices
from fwdad.colouring.kernels import index_array, kernel


def acyclic_colours(graph: AdjacencyGraph, order: Indices, most: int) -> Indices | None:
    """Colours of the vertices, each with the first one that fits; None if it takes more."""
    n, entries, like = graph.size, graph.neighbours.size, graph.starts
    colours = index_array(n, -1, like)
    used = index_array(n, 0, like)
    slot_colour = index_array(entries, 0, like)
    parent = np.arange(entries, dtype=like.dtype)
    visited_from, visited_by = index_array(entries, -1, like), index_array(entries, -1, like)
    forbidden = index_array(n + 1, -1, like)
    done = colour_trees(
        graph.starts, graph.neighbours, order, most, colours, used, slot_colour, parent,
        visited_from, visited_by, forbidden, steps=4 * entries,
    )  # fmt: skip
    return colours if done else None


@kernel(
    "colours", "used", "slot_colour", "parent", "visited_from", "visited_by", "forbidden"
)  # fmt: skip
def colour_trees(
    starts: Any, neighbours: Any, order: Any, most: Any, colours: Any, used: Any, slot_colour: Any,
    parent: Any, visited_from: Any, visited_by: Any, forbidden: Any,
) -> Any:  # fmt: skip
    """Give each vertex the first colour that closes no cycle of two colours.

    A vertex w has slots from ``starts[w]`` on, ``used[w]`` of them, one for each colour around it.
    A slot is w in the tree of its own and that colour; ``parent`` joins the slots of a tree.
    """
    for v in order:
        begin, end = starts[v], starts[v + 1]
        for p in range(begin, end):
            if colours[neighbours[p]] >= 0:
                forbidden[colours[neighbours[p]]] = v
        for p in range(begin, end):
            w = neighbours[p]
            if colours[w] < 0:
                continue
            for s in range(starts[w], starts[w] + used[w]):
                if forbidden[slot_colour[s]] == v:
                    continue
                root = s
                while parent[root] != root:
                    parent[root] = parent[parent[root]]
                    root = parent[root]
                if visited_by[root] != v:
                    visited_by[root] = v
                    visited_from[root] = w
                elif visited_from[root] != w:  # there is a path from w back to v
                    forbidden[slot_colour[s]] = v
        mine = 0
        while forbidden[mine] == v:
            mine += 1
        if mine >= most:
            return False
        colours[v] = mine
        for p in range(begin, end):
            w = neighbours[p]
            c = colours[w]
            if c < 0:
                continue
            s = begin
            while s < begin + used[v] and slot_colour[s] != c:
                s += 1
            if s == begin + used[v]:
                used[v] += 1
                slot_colour[s] = c
            t = starts[w]
            while t < starts[w] + used[w] and slot_colour[t] != mine:
                t += 1
            if t == starts[w] + used[w]:
                used[w] += 1
                slot_colour[t] = mine
            while parent[s] != s:
                parent[s] = parent[parent[s]]
                s = parent[s]
            while parent[t] != t:
                parent[t] = parent[parent[t]]
                t = parent[t]
            if s < t:
                parent[t] = s
            else:
                parent[s] = t
    return True
