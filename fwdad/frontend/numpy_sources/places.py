"""Indices into arrays: ``numpy.ix_``, ``tril_indices``, ``isin``, ..."""

import numpy as np

from fwdad.frontend.numpy_sources.table import stands_for


@stands_for(np.ix_)
def ix_(*args):
    grids = []
    for k, given in enumerate(args):
        a = np.asarray(given)
        if a.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if a.dtype.kind == "b":
            a = np.flatnonzero(a)
        grids.append(a.reshape((1,) * k + (-1,) + (1,) * (len(args) - k - 1)))
    return tuple(grids)


@stands_for(np.tri)
def tri(N, M=None, k=0, dtype=float):
    columns = N if M is None else M
    return (np.arange(N)[:, None] >= np.arange(columns) - k).astype(dtype)


@stands_for(np.tril_indices)
def tril_indices(n, k=0, m=None):
    return np.nonzero(tri(n, m, k, bool))


@stands_for(np.triu_indices)
def triu_indices(n, k=0, m=None):
    return np.nonzero(~tri(n, m, k - 1, bool))


@stands_for(np.diag_indices)
def diag_indices(n, ndim=2):
    return (np.arange(n),) * ndim


@stands_for(np.diagflat)
def diagflat(v, k=0):
    return np.diag(np.ravel(v), k)


@stands_for(np.isin)
def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    element, tests = np.asarray(element), np.sort(np.ravel(test_elements))
    if tests.shape[0] == 0:
        array = np.zeros(element.shape, dtype=bool)
    else:
        at = np.minimum(np.searchsorted(tests, element), tests.shape[0] - 1)
        array = tests[at] == element
    return ~array if invert else array
