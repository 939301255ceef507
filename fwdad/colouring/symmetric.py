"""The best star or acyclic colouring of a symmetric pattern that a search finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from fwdad.colouring.acyclic import acyclic_colours
from fwdad.colouring.bidirectional import renumbered
from fwdad.colouring.candidates import Best, Found, affordable
from fwdad.colouring.graphs import AdjacencyGraph, Indices
from fwdad.colouring.lattice import symmetric_lattice
from fwdad.colouring.orders import Orders
from fwdad.colouring.partial_distance2 import number_of
from fwdad.colouring.recovery import recover_stars
from fwdad.colouring.star import star_colours


def best_symmetric(pattern: sp.csr_array, kind: str, orders: tuple[str, ...] | None) -> Found:
    """Colours of a symmetric pattern's columns, without those that nothing is read in."""
    graph = AdjacencyGraph.of(pattern)
    known = Orders(graph.incidence)
    colours_in: Callable[..., Indices | None] = star_colours if kind == "star" else acyclic_colours
    bound = fewest(graph, kind)
    best = Best(bound, graph.size)
    # a step of these takes several times as long as one along rows and columns
    for name in affordable(4 * graph.edges.size) if orders is None else orders:
        if best.improvable:
            best.offer(colours_in(graph, known[name], best.most), name)
        if orders is None and name == "natural" and best.improvable:
            best.offer(symmetric_lattice(pattern, kind, bound, best.most), "linear form")
        if orders is None and name == "natural" and best.improvable:
            best.offer(colours_in(graph, breadth_first(pattern), best.most), "breadth first")
    colours, order = best.result
    return Found(without_unread(pattern, kind, colours), order)


def breadth_first(pattern: sp.csr_array) -> Indices:
    """An order from neighbour to neighbour: in it a tree takes at most three star colours."""
    order = reverse_cuthill_mckee(pattern, symmetric_mode=True)[::-1]
    return order.astype(pattern.indices.dtype)


def fewest(graph: AdjacencyGraph, kind: str) -> int:
    """A lower bound: k colours have k (k - 1) / 2 pairs, and each pair spans a forest.

    With two colours each part of a star colouring is a star, and its edges end at a leaf.
    """
    n, edges = graph.size, graph.ends.size // 2
    k = 2 if edges else 1
    while edges > (k - 1) * n - k * (k - 1) // 2:
        k += 1
    degrees = np.diff(graph.starts)
    if k == 2 and kind == "star":
        leaves = degrees[graph.ends[::2]] == 1, degrees[graph.ends[1::2]] == 1
        return 2 if np.all(leaves[0] | leaves[1]) else 3
    return k


def without_unread(pattern: sp.csr_array, kind: str, colours: Indices) -> Indices:
    """The colours, with -1 for columns without entries, and for star colours that nothing is in."""
    colours = np.where(np.diff(pattern.indptr) > 0, colours, -1).astype(colours.dtype)
    if kind == "star":
        reading = recover_stars(pattern, colours).columns
        used = np.zeros(number_of(colours) + 1, bool)
        used[reading.second if reading is not None else -1] = True
        if not used[:-1].all():
            colours = np.where(used[colours], colours, -1).astype(colours.dtype)
    return renumbered(colours)
