"""Partial distance-2 colouring of a bipartite graph: columns without a common row share a colour.

The columns of one colour are structurally orthogonal, so their sum shows each of their entries.
Source: Gebremedhin, Manne and Pothen (2005), "What Color Is Your Jacobian?", section 3.3 and
algorithm 3.1, doi:10.1137/S0036144504444711; Culberson (1992), "Iterated greedy graph coloring and
the difficulty landscape" for colouring anew, class by class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.colouring.graphs import BipartiteGraph, Indices
from fwdad.colouring.kernels import index_array, kernel


def first_fit(graph: BipartiteGraph, order: Indices, most: int) -> Indices | None:
    """Colours of the columns, each with the first one that fits; -1 for those without entries.

    None if more than ``most`` colours are needed.
    """
    colours = index_array(graph.columns, -1, graph.row_starts)
    last = index_array(graph.columns + 1, -1, graph.row_starts)
    done = colour_columns(*graph.arrays, order, most, colours, last, steps=graph.steps)
    return colours if done else None


def each_its_own(graph: BipartiteGraph) -> Indices:
    """Another colour for each column that has entries."""
    filled = np.diff(graph.column_starts) > 0
    colours = np.where(filled, np.cumsum(filled) - 1, -1)
    return colours.astype(graph.row_starts.dtype)


def coloured_anew(graph: BipartiteGraph, colours: Indices) -> Indices:
    """Colours by first fit, class after class from the last to the first: never more of them."""
    order = np.argsort(-colours, kind="stable").astype(colours.dtype)
    found = first_fit(graph, order, number_of(colours))
    return colours if found is None else found


def number_of(colours: Indices) -> int:
    """How many colours there are: they are 0, 1 and so on."""
    return int(np.max(colours, initial=-1)) + 1


@kernel("colours", "last")
def colour_columns(
    row_starts: Any, row_columns: Any, column_starts: Any, column_rows: Any,
    order: Any, most: Any, colours: Any, last: Any,
) -> Any:  # fmt: skip
    """Give each column the first colour that none at distance 2 has; give up beyond ``most``.

    ``last[c]`` is the last column for which the colour c was forbidden.
    """
    for v in order:
        if column_starts[v] == column_starts[v + 1]:
            continue
        for p in range(column_starts[v], column_starts[v + 1]):
            i = column_rows[p]
            for q in range(row_starts[i], row_starts[i + 1]):
                c = colours[row_columns[q]]
                if c >= 0:
                    last[c] = v
        c = 0
        while last[c] == v:
            c += 1
        if c >= most:
            return False
        colours[v] = c
    return True
