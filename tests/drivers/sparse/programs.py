"""Functions with sparse Jacobians, each with its pattern, found from the dense one by hand."""

import numpy as np
import scipy.sparse as sp

from fwdad.reversible import reversible
from tests.colouring import patterns


def burgers(u):
    """A stencil by slices, with ends of their own."""
    out = np.empty_like(u)
    out[1:-1] = 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) - u[1:-1] * (u[2:] - u[:-2])
    out[0], out[-1] = u[0] ** 2, np.sin(u[-1])
    return out


def written_in_loops(u):
    """The same in a loop that writes into an array."""
    out = np.zeros(len(u))
    out[0], out[-1] = u[0] ** 2, np.sin(u[-1])
    for i in range(1, len(u) - 1):
        out[i] = 0.1 * (u[i + 1] - 2 * u[i] + u[i - 1]) - u[i] * (u[i + 1] - u[i - 1])
    return out


def bratu(u):
    """The five-point Laplacian and a source, on a square grid, its border zero."""
    wide = np.pad(u, 1)
    around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
    return around - 4 * u + 0.3 * np.exp(u)


def arrow(x):
    """The first component depends on all, and all depend on the first argument."""
    y = x**3
    y[0] = np.sum(x * x)
    y[1:] += np.sin(x[0]) * x[1:]
    return y


def wide(x):
    """Fewer values than arguments: its rows are fewer colours."""
    return np.array([np.sum(x[::2] ** 2), x[1] * x[3], np.prod(x[2:6])])


TARGETS = np.array([3, 1, 4, 1, 5, 9, 2, 6])


def scattered(x):
    """What is gathered, and added up where it belongs."""
    y = np.zeros(10)
    np.add.at(y, TARGETS, x[TARGETS[::-1]] ** 2)
    return y


@reversible
def neighbours(out, u):
    """Adds a stencil to an array, and can be undone."""
    for i in range(1, len(u) - 1):
        out[i] += u[i + 1] * u[i - 1]
        out[i] -= 2 * u[i]


def undoable(u):
    """What a reversible program adds."""
    return neighbours(np.zeros(len(u)), u)[0]


MATRIX = sp.csr_array(patterns.laplacian(3, 4) * 0.5)
DENSE = np.triu(np.tril(np.arange(1.0, 101.0).reshape(10, 10), 1))


def rosenbrock(x):
    """A number, with a tridiagonal Hessian."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def with_arrow(x):
    """A number, with an arrow for a Hessian."""
    return np.sum(x**4) + x[0] * np.sum(x[1:] ** 2)


def ones(matrix):
    """The pattern of a dense matrix, as it is at some x without zeros by chance."""
    return sp.csr_array((np.asarray(matrix) != 0).astype(float))
