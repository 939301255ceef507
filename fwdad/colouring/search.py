"""Chooses a colouring: greedy in several orders, and the one with the fewest colours is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fwdad.colouring.colouring import KINDS, SYMMETRIC, Colouring, Kind
from fwdad.colouring.graphs import BipartiteGraph, canonical_pattern, check_symmetric
from fwdad.colouring.one_sided import best_columns
from fwdad.colouring.orders import check_orders
from fwdad.colouring.symmetric import best_symmetric
from fwdad.colouring.two_sided import best_of_both
from fwdad.errors import ColouringError


def colour(
    pattern: Any, kind: Kind = "columns", order: str | Sequence[str] | None = None
) -> Colouring:
    """Colour a sparsity pattern: which columns, or rows, are differentiated together.

    Parameters
    ----------
    pattern : sparse matrix or array
        Its stored entries are the pattern, explicit zeros too; of a dense array the nonzeros.
    kind : {"columns", "rows", "both", "star", "acyclic"}, optional
        What has colours: columns, for products ``J @ S``; rows, for products ``S @ J``; both, if
        that takes fewer products; for a symmetric matrix its columns, such that each entry is found
        directly ("star"), or by substitution ("acyclic"), which takes fewer colours, and adds
        rounding errors.
    order : str or sequence of str, optional
        The orders of the greedy colouring that are tried: "natural", "largest_first",
        "smallest_last", "incidence_degree", "random". By default all of them, as long as the
        pattern is not very large and a colouring can still be better, and colourings by linear
        forms for the patterns of stencils on grids.

    Returns
    -------
    Colouring
        The best that was found: the first one with the fewest colours.

    Raises
    ------
    ColouringError
        If the pattern is none, or not symmetric where it has to be; or if there is no such kind or
        order.

    Notes
    -----
    A pattern has the same colouring each time, with Numba and without. The fewest colours are those
    that no order beats; to find the fewest of all is NP-hard.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from fwdad.colouring import colour
    >>> tridiagonal = sp.diags_array([1.0, 2.0, 3.0], offsets=[-1, 0, 1], shape=(6, 6))
    >>> c = colour(tridiagonal)
    >>> c.column_colours
    array([0, 1, 2, 0, 1, 2], dtype=int32)
    >>> products = tridiagonal @ c.column_seeds()
    >>> bool(np.all(c.matrix(products).toarray() == tridiagonal.toarray()))
    True
    """
    pattern = canonical_pattern(pattern)
    orders = None if order is None else check_orders(order)
    if kind in SYMMETRIC:
        check_symmetric(pattern, kind)
        found = best_symmetric(pattern, kind, orders)
        return Colouring(pattern, kind, found.colours, None, found.order)
    if kind == "columns":
        found = best_columns(BipartiteGraph.of(pattern), pattern, orders)
        return Colouring(pattern, kind, found.colours, None, found.order)
    if kind == "rows":
        graph = BipartiteGraph.of(pattern).transposed
        found = best_columns(graph, pattern.T.tocsr(), orders)
        return Colouring(pattern, kind, None, found.colours, found.order)
    if kind == "both":
        pair = best_of_both(pattern, orders)
        return Colouring(pattern, kind, pair.columns, pair.rows, pair.order)
    raise ColouringError(f"kind is one of {', '.join(KINDS)}, and {kind!r} came")
