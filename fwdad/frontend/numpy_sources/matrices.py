"""Matrices whose diagonals are constant: ``scipy.linalg.toeplitz``, ``circulant``, ``hankel``.

Also NumPy's solve, as SciPy's functions of arrays of any library call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.frontend.numpy_sources.table import stands_for
from fwdad.rules.core.registry import when_imported


def _toeplitz(c, r=None):
    c = np.asarray(c)
    r = c.conj() if r is None else np.asarray(r)
    if c.ndim != 1 or r.ndim != 1:
        return NotImplemented
    values = np.concatenate((c[::-1], r[1:]))
    return values[np.arange(c.shape[0])[::-1, None] + np.arange(r.shape[0])]


def _hankel(c, r=None):
    c = np.asarray(c)
    r = np.zeros_like(c) if r is None else np.asarray(r)
    if c.ndim != 1 or r.ndim != 1:
        return NotImplemented
    values = np.concatenate((c, r[1:]))
    return values[np.arange(c.shape[0])[:, None] + np.arange(r.shape[0])]


def _circulant(c):
    c = np.asarray(c)
    if c.ndim != 1:
        return NotImplemented
    n = c.shape[0]
    return c[(np.arange(n)[:, None] - np.arange(n)) % n]


def _solve(a, b):
    return np.linalg.solve(a, b)


def _enter(dotted: str, source: Any) -> None:
    when_imported(dotted, lambda function: stands_for(function)(source))


_enter("scipy.linalg.toeplitz", _toeplitz)
_enter("scipy.linalg.hankel", _hankel)
_enter("scipy.linalg.circulant", _circulant)
_enter("scipy._lib.array_api_compat.numpy.linalg.solve", _solve)
