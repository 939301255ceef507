"""The best colouring of columns that a search finds; rows are the columns of the transpose."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fwdad.colouring.candidates import MOST_STEPS, Best, Found, affordable
from fwdad.colouring.graphs import BipartiteGraph
from fwdad.colouring.lattice import column_lattice
from fwdad.colouring.orders import ORDERS, Orders
from fwdad.colouring.partial_distance2 import coloured_anew, each_its_own, first_fit

_ROUNDS = 4
"""How often the best colouring is coloured anew: later rounds hardly ever save a colour."""


def best_columns(
    graph: BipartiteGraph,
    pattern: sp.csr_array,
    orders: tuple[str, ...] | None,
) -> Found:
    """Colours of the columns of a bipartite graph, which is that of a pattern."""
    known = Orders(graph)
    filled = int(np.sum(np.diff(graph.column_starts) > 0))
    best = Best(graph.longest_row, graph.columns)
    if graph.longest_row == filled:
        best.offer(each_its_own(graph), "natural" if orders is None else orders[0])

    def greedy(name: str) -> None:
        if best.improvable:
            best.offer(first_fit(graph, known[name], best.most), name)

    if orders is not None:
        for name in orders:
            greedy(name)
        return best.result
    greedy("natural")
    if best.improvable:
        best.offer(column_lattice(pattern, graph.longest_row, best.most), "linear form")
    for name in affordable(graph.steps, ORDERS[1:]):
        greedy(name)
    rounds = _ROUNDS if graph.steps * (16 + _ROUNDS) <= MOST_STEPS else 0
    colours, order = best.result
    for _ in range(rounds):
        if best.improvable:
            colours = coloured_anew(graph, colours)
            best.offer(colours, order)
    return best.result
