"""A graph laid out in a space: edges of one length, and all other pairs farther apart.

The loss is that of the graph embedding in Liu and Zhao, "Differentiate everything with a reversible
embedded domain-specific language" (2021, arXiv:2003.04617): variances of squared distances, and a
penalty unless pairs without an edge are farther apart than pairs with one.
"""

from __future__ import annotations

import numpy as np

from fwdad.reversible import ancilla, compute, copy_out, reversible


@reversible
def embedding(loss, x, edges, others):
    """Add the loss of a layout.

    Parameters
    ----------
    loss : float
        Added to.
    x : array, shape (vertices, k)
        Where the vertices are.
    edges, others : int array, shape (pairs, 2)
        The pairs with an edge, and those without.
    """
    n = len(edges)
    m = len(others)
    with compute():
        near = ancilla(np.zeros(n))
        far = ancilla(np.zeros(m))
        mean_near = ancilla(0.0)
        mean_far = ancilla(0.0)
        for e in range(n):
            for k in range(x.shape[1]):
                near[e] += (x[edges[e, 0], k] - x[edges[e, 1], k]) ** 2
        for e in range(m):
            for k in range(x.shape[1]):
                far[e] += (x[others[e, 0], k] - x[others[e, 1], k]) ** 2
        for e in range(n):
            mean_near += near[e] / n
        for e in range(m):
            mean_far += far[e] / m
        with copy_out():
            for e in range(n):
                loss += (near[e] - mean_near) ** 2 / (n - 1)
            for e in range(m):
                loss += (far[e] - mean_far) ** 2 / (m - 1)
            loss += np.exp(mean_near - mean_far + 0.1)


def petersen():
    """The pairs of vertices of the Petersen graph with an edge, and those without.

    Returns
    -------
    edges, others : int array, shape (15, 2) and (30, 2)
    """
    ring = [(i, (i + 1) % 5) for i in range(5)]
    star = [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
    spokes = [(i, 5 + i) for i in range(5)]
    edges = sorted(tuple(sorted(e)) for e in (*ring, *star, *spokes))
    others = [(i, j) for i in range(10) for j in range(i + 1, 10) if (i, j) not in edges]
    return np.array(edges), np.array(others)
