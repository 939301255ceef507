"""Known chromatic numbers, bounds, and what the search promises."""

import doctest
import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from fwdad.colouring import ORDERS, colour, search
from fwdad.colouring.graphs import AdjacencyGraph, BipartiteGraph, canonical_pattern
from fwdad.colouring.orders import Orders
from fwdad.colouring.partial_distance2 import each_its_own, first_fit, number_of
from fwdad.colouring.symmetric import fewest
from fwdad.colouring.two_sided import by_counts
from tests.colouring.patterns import (
    SYMMETRIC,
    arrow,
    banded,
    blocks,
    box_stencil,
    brusselator,
    grid,
    laplacian,
    pattern,
    random_pattern,
    symmetric_part,
    tree,
    triangulation,
)
from tests.colouring.verifier import (
    fewest_colours,
    is_acyclic_colouring,
    is_column_colouring,
    is_star_colouring,
)


def cycle(n):
    k = np.arange(n)
    other = (k + 1) % n
    return pattern(np.r_[k, k, other], np.r_[k, other, k], (n, n))


def complete_bipartite(m, n):
    a = np.zeros((m + n, m + n))
    a[:m, m:] = 1
    return sp.csr_array(a + a.T + np.eye(m + n))


# Fertin, Raspaud and Reed (2004), "Star coloring of graphs": paths 3, cycles 3 (five vertices 4),
# trees at most 3, grids 5, complete bipartite graphs min(m, n) + 1.
KNOWN = [
    *(("columns", banded(n, k), min(n, 2 * k + 1)) for n in (2, 9, 40) for k in (0, 1, 3)),
    ("rows", banded(20, 2), 5),
    ("columns", laplacian(50), 3),
    ("columns", laplacian(9, 9), 5),
    ("columns", laplacian(10, 10), 5),
    ("columns", laplacian(17, 23), 5),
    ("columns", laplacian(6, 7, 8), 7),
    ("columns", grid((9, 11), box_stencil(2)), 9),
    ("columns", grid((5, 6, 7), box_stencil(3)), 27),
    ("columns", brusselator(20), 10),
    ("columns", arrow(50), 50),
    ("rows", arrow(50), 50),
    ("both", arrow(50), 3),
    ("both", arrow(50, 2), 5),
    ("both", arrow(1000), 3),
    ("both", banded(40, 1), 3),
    ("both", blocks(3, 3, 3), 3),
    ("star", arrow(50), 2),
    ("acyclic", arrow(50), 2),
    ("star", banded(50, 1), 3),
    ("acyclic", banded(50, 1), 2),
    ("star", banded(50, 0), 1),
    ("star", laplacian(10, 10), 5),
    ("acyclic", laplacian(10, 10), 3),
    ("acyclic", laplacian(8, 8, 8), 4),
    ("acyclic", tree(200, 0), 2),
    ("star", cycle(6), 3),
    ("star", cycle(5), 4),
    ("acyclic", cycle(9), 3),
    ("star", complete_bipartite(3, 5), 4),
    ("acyclic", complete_bipartite(3, 5), 4),
    ("star", blocks(2, 6, 4), 6),
    ("acyclic", blocks(2, 6, 4), 6),
    *((kind, sp.csr_array((4, 4)), 0) for kind in ("columns", "rows", "both", "star", "acyclic")),
    *((kind, np.ones((1, 1)), 1) for kind in ("columns", "rows", "both", "star", "acyclic")),
    *((kind, np.ones((6, 6)), 6) for kind in ("columns", "rows", "both", "star", "acyclic")),
    # of a symmetric matrix without a diagonal one side is enough
    ("star", sp.block_array([[None, np.ones((4, 4))], [np.ones((4, 4)), None]]), 4),
]


@pytest.mark.parametrize(("kind", "a", "number"), KNOWN)
def test_known_numbers(kind, a, number):
    assert colour(a, kind).count == number


@pytest.mark.parametrize("seed", range(4))
def test_trees_take_three_star_colours(seed):
    assert colour(tree(300, seed), "star").count == 3


def test_two_orders_that_differ():
    """Largest first colours the crown's columns in pairs' order, and needs more than two."""
    n = 6
    crown = np.ones((n, n)) - np.eye(n)
    rows = np.array(list(zip(*np.nonzero(crown), strict=True)))  # edges i - (n + j)
    edges = np.zeros((len(rows), 2 * n))
    edges[np.arange(len(rows)), rows[:, 0]] = edges[np.arange(len(rows)), n + rows[:, 1]] = 1
    assert colour(edges, "columns", "natural").count == 2
    mixed = edges[:, np.arange(2 * n).reshape(2, n).T.ravel()]
    assert colour(mixed, "columns", "natural").count == n
    assert colour(mixed, "columns", ["natural", "incidence_degree"]).count == 2
    assert colour(mixed, "columns", ["natural", "incidence_degree"]).order == "incidence_degree"
    assert colour(mixed).count == 2


@pytest.mark.parametrize(
    ("kind", "is_colouring"),
    [
        ("columns", is_column_colouring),
        ("star", is_star_colouring),
        ("acyclic", is_acyclic_colouring),
    ],
)
def test_near_the_fewest_of_all(kind, is_colouring):
    """On small patterns nearly always the fewest, and never two more."""
    more = []
    for seed in range(25):
        a = symmetric_part(random_pattern(6, 6, 0.2, seed) + np.eye(6)).toarray()
        more.append(colour(a, kind).count - fewest_colours(a, is_colouring))
    assert min(more) == 0
    assert max(more) <= 1
    assert sum(more) <= 3


def test_both_is_never_worse_than_one_side():
    for seed in range(20):
        a = random_pattern(30, 25, 0.1, seed)
        both = colour(a, "both").count
        assert both <= min(colour(a).count, colour(a, "rows").count)
    for width in (1, 2, 3):
        assert colour(arrow(30, width), "both").count == 2 * width + 1


def test_entries_of_an_arrow_are_divided_by_counts():
    assert by_counts(canonical_pattern(arrow(60))).number == 3
    for width in (2, 3):  # star colourings find 2 width + 1
        assert by_counts(canonical_pattern(arrow(60, width))).number <= 3 * width


def test_a_dense_row_is_no_loop_over_pairs():
    n = 20_000
    k, zero = np.arange(n), np.zeros(n, int)
    a = pattern(np.r_[k, zero], np.r_[k, k], (n, n))
    assert colour(a).count == n
    assert colour(a, "both").count == 2
    assert colour(a + a.T, "both").count == 3
    assert colour(a + a.T, "star").count == 2


def test_lower_bounds_hold():
    for name, a in SYMMETRIC.items():
        graph = AdjacencyGraph.of(canonical_pattern(a))
        for kind in ("star", "acyclic"):
            if name != "bipartite" and graph.diagonal.size == graph.size:
                assert fewest(graph, kind) <= max(colour(a, kind).count, 1), (name, kind)


# -- orders


def intersections(a):
    """Which columns share a row."""
    dense = (a.toarray() != 0).astype(int)
    shared = dense.T @ dense > 0
    np.fill_diagonal(shared, val=False)
    return shared


@pytest.mark.parametrize("seed", range(5))
def test_orders_do_what_their_names_say(seed):
    a = random_pattern(25, 30, 0.08, seed)
    graph = BipartiteGraph.of(canonical_pattern(a))
    orders, shared = Orders(graph), intersections(a)
    degrees = shared.sum(axis=0)
    np.testing.assert_array_equal(orders.degrees, degrees)
    for name in ORDERS:
        assert sorted(orders[name].tolist()) == list(range(30))
    assert np.all(np.diff(degrees[orders["largest_first"]]) <= 0)
    last = orders["smallest_last"]
    for k in range(1, 30):
        among = shared[np.ix_(last[: k + 1], last[: k + 1])].sum(axis=0)
        assert among[k] == among.min()
    taken = orders["incidence_degree"]
    for k in range(1, 30):
        back = shared[np.ix_(taken[:k], taken[k:])].sum(axis=0)
        assert back[0] == back.max()
    np.testing.assert_array_equal(orders["random"], Orders(graph)["random"])


def test_smallest_last_takes_few_colours():
    """With it the colours are at most one more than the degeneracy; of a tree's edges two."""
    graph = AdjacencyGraph.of(canonical_pattern(tree(200, 3))).incidence
    colours = first_fit(graph, Orders(graph)["smallest_last"], 200)
    assert number_of(colours) == 2


# -- graphs


def test_edges_of_a_graph():
    a = triangulation(40, 1)
    graph = AdjacencyGraph.of(canonical_pattern(a))
    for v in range(40):
        part = slice(graph.starts[v], graph.starts[v + 1])
        for w, e in zip(graph.neighbours[part], graph.edges[part], strict=True):
            assert sorted(graph.ends[2 * e : 2 * e + 2]) == sorted([v, w])
    assert graph.entries.size + graph.diagonal.size == a.nnz


def test_steps_of_a_graph():
    graph = BipartiteGraph.of(canonical_pattern(banded(4, 1)))
    assert graph.steps == 4 + 9 + 9 + 4
    assert graph.longest_row == 3
    assert each_its_own(graph).tolist() == [0, 1, 2, 3]


def test_a_search_gives_up_beyond_a_number():
    graph = BipartiteGraph.of(canonical_pattern(banded(9, 1)))
    order = Orders(graph)["natural"]
    assert first_fit(graph, order, 2) is None
    for most in itertools.islice(itertools.count(3), 3):
        assert number_of(first_fit(graph, order, most)) == 3


def test_the_example():
    assert doctest.testmod(search).failed == 0
