"""The graph of dependences: unions, sums along axes, places, cycles, pairs."""

import itertools

import numpy as np
import pytest

from fwdad.drivers.sparse import sets as sets_module
from fwdad.drivers.sparse.sets import hessian_pattern, jacobian_pattern
from fwdad.transforms.sparsity.graph import Graph


@pytest.fixture(params=["loops", "levels"], autouse=True)
def _way(request, monkeypatch):
    """By loops over nodes, and as without Numba in a graph that is too large for these."""
    if request.param == "levels":
        monkeypatch.setattr(sets_module, "have_numba", lambda: False)
        monkeypatch.setattr(sets_module, "FEW_STEPS", 0)


def sets(graph, nodes):
    pattern = jacobian_pattern(graph, nodes)
    return [set(pattern.indices[a:b].tolist()) for a, b in itertools.pairwise(pattern.indptr)]


def test_unions_keep_nodes_that_say_the_same():
    graph, x = Graph(4), np.arange(1, 5)
    assert graph.union([x, np.zeros(4, int)], (4,)).tolist() == [1, 2, 3, 4]
    assert graph.union([x, x], (4,)).tolist() == [1, 2, 3, 4]
    u = graph.union([x[1:], x[:-1]], (3,))
    assert sets(graph, u) == [{0, 1}, {1, 2}, {2, 3}]
    assert sets(graph, graph.union([u[:, None], x[None, :2]], (3, 2)).ravel()) == [
        {0, 1}, {0, 1}, {0, 1, 2}, {1, 2}, {0, 2, 3}, {1, 2, 3},
    ]  # fmt: skip


def test_one_node_for_numbers():
    graph = Graph(3)
    assert graph.either(0, 2) == graph.either(2, 0) == graph.either(2, 2) == 2
    both = graph.either(graph.either(1, 2), 3)
    assert sets(graph, [both, 0, 2]) == [{0, 1, 2}, set(), {1}]


def test_along_axes():
    graph = Graph(6)
    x = np.arange(1, 7).reshape(2, 3)
    assert sets(graph, graph.over(x, (0,)).ravel()) == [{0, 3}, {1, 4}, {2, 5}]
    assert sets(graph, graph.over(x, (0, 1)).ravel()) == [set(range(6))]
    assert graph.over(np.zeros((2, 0), int), (1,)).tolist() == [[0], [0]]


def test_places_that_repeat():
    graph, into = Graph(4), np.zeros(3, int)
    into[1] = 4
    graph.scattered(np.array([0, 1, 0]), np.array([1, 2, 3]), into)
    assert sets(graph, into) == [{0, 2}, {1, 3}, set()]


def test_cycles():
    graph = Graph(4)
    a, b = graph.new(2)
    graph.depend([a, b], [1, 2])
    graph.depend_on_any([a, b], [b, a])
    c = graph.both(int(a), 4)
    assert sets(graph, [a, b, c]) == [{0, 1}, {0, 1}, {0, 1, 3}]


@pytest.mark.parametrize("n", [40, 400])
def test_rows_that_grow(n):
    """Chains; the longer one's loops are compiled where Numba is installed."""
    graph, chain = Graph(n), []
    for k in range(1, n + 1):
        chain.append(graph.both(chain[-1], k) if chain else k)
    assert jacobian_pattern(graph, chain).toarray().tolist() == np.tri(n, dtype=bool).tolist()
    again = graph.union([np.array(chain[:2]), np.array(chain[1:3])], (2,))
    assert sets(graph, again) == [{0, 1}, {0, 1, 2}]


def test_pairs_count_where_the_result_depends_on_them():
    graph, x = Graph(4, pairs=True), np.arange(1, 5)
    products = graph.union([x[:2], x[2:]], (2,), new=True)
    graph.join(products, x[:2], x[2:])
    pattern = hessian_pattern(graph, int(products[1])).toarray()
    assert np.argwhere(pattern).tolist() == [[1, 3], [3, 1]]


@pytest.mark.parametrize("seed", range(5))
def test_against_matrices(seed):
    """Random graphs, beside powers of their matrices."""
    rng = np.random.default_rng(seed)
    n, more = 6, 30
    graph = Graph(n)
    nodes = graph.new(more)
    targets = rng.choice(nodes, 60)
    sources = rng.integers(1, n + more + 1, 60)
    graph.depend_on_any(targets, sources)
    reach = np.eye(n + more + 1, dtype=bool)
    reach[targets, sources] = True
    for _ in range(8):
        reach = reach.astype(int) @ reach.astype(int) > 0
    assert np.array_equal(jacobian_pattern(graph, nodes).toarray(), reach[nodes, 1 : n + 1])
