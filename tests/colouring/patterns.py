"""Patterns that the colourings are tested on."""

import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay


def pattern(rows, columns, shape):
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def banded(n, k):
    """All entries within k of the diagonal."""
    i, j = np.nonzero(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= k)
    return pattern(i, j, (n, n))


def grid(shape, stencil):
    """A matrix over the points of a grid, with the neighbours that a stencil has."""
    points = np.indices(shape).reshape(len(shape), -1)
    rows, columns = [], []
    for step in stencil:
        ends = points + np.array(step)[:, None]
        inside = np.all((ends >= 0) & (ends < np.array(shape)[:, None]), axis=0)
        rows.append(np.ravel_multi_index(points[:, inside], shape))
        columns.append(np.ravel_multi_index(ends[:, inside], shape))
    n = points.shape[1]
    return pattern(np.concatenate(rows), np.concatenate(columns), (n, n))


def star_stencil(d):
    """The point and its 2 d nearest ones."""
    unit = np.eye(d, dtype=int)
    return [np.zeros(d, int), *unit, *-unit]


def box_stencil(d):
    """The point and all 3^d - 1 around it."""
    return np.indices((3,) * d).reshape(d, -1).T - 1


def laplacian(*shape):
    return grid(shape, star_stencil(len(shape)))


def arrow(n, width=1):
    """The diagonal, and the first rows and columns in full."""
    full = np.eye(n, dtype=bool)
    full[:width] = full[:, :width] = True
    return sp.csr_array(full.astype(float))


def triangulation(n, seed):
    """The vertices of a mesh of triangles, each with those that it shares an edge with."""
    mesh = Delaunay(np.random.default_rng(seed).random((n, 2)))
    i, j = (
        np.concatenate([mesh.simplices[:, k] for k in order]) for order in [(0, 1, 2), (1, 2, 0)]
    )
    k = np.arange(n)
    return pattern(np.concatenate([i, j, k]), np.concatenate([j, i, k]), (n, n))


def tetrahedra(n, seed):
    """The elements of a mesh of tetrahedra with their vertices: a rectangular matrix."""
    simplices = Delaunay(np.random.default_rng(seed).random((n, 3))).simplices
    rows = np.repeat(np.arange(len(simplices)), 4)
    return pattern(rows, simplices.ravel(), (len(simplices), n))


def random_pattern(m, n, density, seed):
    rng = np.random.default_rng(seed)
    return sp.csr_array((rng.random((m, n)) < density).astype(float))


def symmetric_part(a):
    """The pattern of a matrix and its transpose."""
    return sp.csr_array(((a + a.T) != 0).astype(float))


def blocks(*sizes):
    return sp.csr_array(sp.block_diag([np.ones((k, k)) for k in sizes]))


def tree(n, seed):
    """A random tree, with the diagonal."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, n)
    parent = (rng.random(n - 1) * child).astype(int)
    k = np.arange(n)
    return pattern(np.r_[child, parent, k], np.r_[parent, child, k], (n, n))


def brusselator(n):
    """Two species on a periodic n × n grid, interleaved."""
    a = sp.csr_array((n * n, n * n))
    ring = sp.csr_array(
        sp.diags_array([1.0, 1, 1, 1, 1], offsets=[0, 1, -1, n - 1, 1 - n], shape=(n, n))
    )
    one = sp.eye_array(n)
    a = sp.kron(ring, one) + sp.kron(one, ring)
    return sp.csr_array(sp.kron(a, np.eye(2)) + sp.kron(sp.eye_array(n * n), np.ones((2, 2))))


SYMMETRIC = {
    "diagonal": banded(9, 0),
    "tridiagonal": banded(30, 1),
    "banded": banded(30, 4),
    "dense": sp.csr_array(np.ones((7, 7))),
    "one by one": sp.csr_array(np.ones((1, 1))),
    "laplacian 1-D": laplacian(40),
    "laplacian 2-D": laplacian(9, 11),
    "laplacian 2-D, square": laplacian(12, 12),
    "nine points": grid((8, 9), box_stencil(2)),
    "laplacian 3-D": laplacian(5, 6, 7),
    "27 points": grid((4, 5, 4), box_stencil(3)),
    "arrow": arrow(40),
    "wide arrow": arrow(40, 3),
    "blocks": blocks(1, 4, 3, 7, 2),
    "mesh": triangulation(150, 0),
    "tree": tree(60, 1),
    "periodic, two species": brusselator(7),
    "random": symmetric_part(random_pattern(60, 60, 0.04, 2)),
    "random, denser": symmetric_part(random_pattern(40, 40, 0.2, 3)),
    "no diagonal": sp.csr_array(np.ones((6, 6)) - np.eye(6)),
    "bipartite": symmetric_part(
        sp.csr_array(
            sp.block_array([[None, random_pattern(15, 25, 0.1, 4)], [np.zeros((25, 15)), None]])
        )
    ),
    "empty": sp.csr_array((5, 5)),
    "none by none": sp.csr_array((0, 0)),
    "empty rows": symmetric_part(pattern([0, 2, 2], [2, 4, 2], (7, 7))),
}
RECTANGULAR = {
    "tall": random_pattern(80, 30, 0.08, 5),
    "wide": random_pattern(30, 80, 0.08, 6),
    "mesh elements": tetrahedra(60, 7),
    "dense row": sp.csr_array(np.vstack([np.ones((1, 20)), np.eye(20)])),
    "dense column": sp.csr_array(np.hstack([np.ones((20, 1)), np.eye(20)])),
    "no rows": sp.csr_array((0, 5)),
    "no columns": sp.csr_array((5, 0)),
    "one row": sp.csr_array(np.ones((1, 6))),
    "lower bidiagonal": pattern([*range(20), *range(1, 20)], [*range(20), *range(19)], (20, 20)),
}
ALL = SYMMETRIC | RECTANGULAR
