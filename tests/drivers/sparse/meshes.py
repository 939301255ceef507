"""Functions on meshes and networks: elements are gathered, and added up where they belong."""

import numpy as np
import scipy.sparse as sp

RNG = np.random.default_rng(0)
N = 30
BEGIN, END = RNG.integers(0, N, (2, 60))
STIFFNESS = RNG.uniform(1, 2, 60)
CELLS = RNG.integers(0, N, (40, 3))
LOCAL = RNG.normal(size=(40, 3, 3))
MATRIX = sp.random_array((N, N), density=0.1, rng=RNG, format="csr")
MASK = RNG.random(N) > 0.5
PLACES = RNG.permutation(N + 5)[:N]
SOME, OTHERS = RNG.permutation(N)[:7], RNG.integers(0, N, 7)


def network(u):
    """Flows along edges, balanced at nodes; three nodes are held."""
    flow = STIFFNESS * np.tanh(u[END] - u[BEGIN])
    out = np.zeros_like(u)
    np.add.at(out, BEGIN, flow)
    np.subtract.at(out, END, flow)
    out[:3] = u[:3] ** 2 - 1
    return out


def scaled(u):
    """What was added up is used again, in whole and in part."""
    out = np.zeros_like(u)
    np.add.at(out, BEGIN, np.sin(u[END]))
    wide = out * u + out[::-1]
    wide[4:9] += out[1:6] * u[2:7]
    return wide


def counted(u):
    """The same with ``np.bincount``."""
    flow = STIFFNESS * np.tanh(u[END] - u[BEGIN])
    into, away = (np.bincount(nodes, flow, minlength=N) for nodes in (BEGIN, END))
    return into - away + u**2


def springs(x):
    """Points in the plane: a sum over each edge's coordinates."""
    points = x.reshape(-1, 2)
    d = points[END % 15] - points[BEGIN % 15] + 0.3
    length = np.sqrt(np.sum(d**2, axis=1))
    force = (STIFFNESS * (length - 1) / length)[:, None] * d
    out = np.zeros_like(points)
    np.add.at(out, BEGIN % 15, force)
    np.add.at(out, END % 15, -force)
    return out.ravel()


def cells(u):
    """Small matrices of cells by ``einsum``, and nodes by a matrix of indices."""
    out = np.zeros_like(u)
    np.add.at(out, CELLS, np.einsum("eij,ej->ei", LOCAL, u[CELLS] ** 2))
    return out


def cells_by_products(u):
    """The same by ``@``."""
    out = np.zeros_like(u)
    values = LOCAL @ (u[CELLS] ** 2)[:, :, None]
    np.add.at(out, CELLS.ravel(), values[:, :, 0].ravel())
    return out


def cells_by_loops(u):
    """The same, entry by entry of the small matrices."""
    out = np.zeros_like(u)
    for a in range(3):
        for b in range(3):
            np.add.at(out, CELLS[:, a], LOCAL[:, a, b] * u[CELLS[:, b]] ** 2)
    return out


def taken(u):
    """Gathers by functions, and by masks."""
    return np.take(u, BEGIN) * np.take(u, END) + np.sum(u[MASK] ** 2)


def stored(u):
    """Stores at an index that takes each element once."""
    out = np.zeros(N + 5)
    out[PLACES] = u**2
    out[SOME] += u[OTHERS] * 2
    return out


def products(u):
    """Products with a sparse matrix from outside."""
    return MATRIX.T @ (MATRIX @ u**2) + u**3


def energy(u):
    """A number, whose Hessian is sparse."""
    return np.sum(STIFFNESS * np.cosh(u[END] - u[BEGIN]))


def energy_of_cells(u):
    """The same of cells."""
    own = u[CELLS]
    return np.sum(np.einsum("eij,ei,ej->e", LOCAL, own, own**2))


JACOBIANS = (
    network, scaled, counted, springs, cells, cells_by_products, cells_by_loops, taken, stored,
    products,
)  # fmt: skip
HESSIANS = (energy, energy_of_cells)
