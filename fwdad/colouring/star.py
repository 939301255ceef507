"""Star colouring of an adjacency graph: neighbours differ, and no path of four has two colours.

Any two colours then span stars, and an entry of a symmetric matrix can be read where its spoke's
row meets its hub's colour. Source: Coleman and Moré (1984), "Estimation of sparse Hessian matrices
and graph coloring problems"; Gebremedhin, Tarafdar, Manne and Pothen (2007), "New acyclic and star
coloring algorithms with application to computing Hessians", algorithm 4.1, doi:10.1137/050639879.
The paper's loops over the neighbours of neighbours are here loops over their colours: each vertex
keeps the colours around it, so that a vertex with many neighbours costs no more than its colours.
"""

from __future__ import annotations

from typing import Any

from fwdad.colouring.graphs import AdjacencyGraph, Indices
from fwdad.colouring.kernels import index_array, kernel


def star_colours(graph: AdjacencyGraph, order: Indices, most: int) -> Indices | None:
    """Colours of the vertices, each with the first one that fits; None if it takes more."""
    n, entries, like = graph.size, graph.neighbours.size, graph.starts
    colours = index_array(n, -1, like)
    used = index_array(n, 0, like)
    per_slot = [index_array(entries, 0, like) for _ in range(4)]
    per_colour = [index_array(n + 1, -1, like) for _ in range(3)]
    treated = index_array(n, -1, like)
    done = colour_stars(
        graph.starts, graph.neighbours, order, most, colours, used, *per_slot, *per_colour, treated,
        steps=4 * entries,
    )  # fmt: skip
    return colours if done else None


@kernel(
    "colours", "used", "slot_colour", "slot_count", "slot_vertex", "slot_spoke",
    "forbidden", "first", "first_of", "treated",
)  # fmt: skip
def colour_stars(
    starts: Any, neighbours: Any, order: Any, most: Any, colours: Any,
    used: Any, slot_colour: Any, slot_count: Any, slot_vertex: Any, slot_spoke: Any,
    forbidden: Any, first: Any, first_of: Any, treated: Any,
) -> Any:  # fmt: skip
    """Give each vertex the first colour that closes no path of four with two colours.

    A vertex w has slots from ``starts[w]`` on, ``used[w]`` of them, one for each colour around it:
    how many neighbours have it, the first of these, and whether w is a spoke there: whether that
    neighbour has another one of w's colour.
    """
    for v in order:
        begin, end = starts[v], starts[v + 1]
        for p in range(begin, end):
            w = neighbours[p]
            c = colours[w]
            if c < 0:
                continue
            forbidden[c] = v
            if first_of[c] != v:  # v - w - x - y, where y has the colour of w
                first_of[c] = v
                first[c] = w
                for s in range(starts[w], starts[w] + used[w]):
                    if slot_spoke[s] == 1:
                        forbidden[slot_colour[s]] = v
                continue
            u = first[c]  # u - v - w, of which u and w have one colour: no third x - w, x - u
            if treated[u] != v:
                treated[u] = v
                for s in range(starts[u], starts[u] + used[u]):
                    forbidden[slot_colour[s]] = v
            for s in range(starts[w], starts[w] + used[w]):
                forbidden[slot_colour[s]] = v
        mine = 0
        while forbidden[mine] == v:
            mine += 1
        if mine >= most:
            return False
        colours[v] = mine
        for p in range(begin, end):  # what v has around it
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
                slot_count[s] = 1
                slot_vertex[s] = w
                slot_spoke[s] = 0
            else:
                slot_count[s] += 1
        for p in range(begin, end):  # what v is to its neighbours
            w = neighbours[p]
            c = colours[w]
            if c < 0:
                continue
            here = begin
            while slot_colour[here] != c:
                here += 1
            s = starts[w]
            while s < starts[w] + used[w] and slot_colour[s] != mine:
                s += 1
            if s == starts[w] + used[w]:
                used[w] += 1
                slot_colour[s] = mine
                slot_count[s] = 1
                slot_vertex[s] = v
                slot_spoke[s] = 1 if slot_count[here] > 1 else 0
                continue
            slot_count[s] += 1  # w is a hub, and v a spoke
            slot_spoke[here] = 1
            if slot_count[s] == 2:
                u = slot_vertex[s]
                t = starts[u]
                while slot_colour[t] != c:
                    t += 1
                slot_spoke[t] = 1
    return True
