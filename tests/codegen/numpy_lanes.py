"""The lanes of one scalar as NumPy arrays: what compiled lanes are compared with."""

import numpy as np

from fwdad.codegen.runtime.lanes import LaneFunctions


def numpy_lanes(n):
    """The functions on N lanes."""

    def load(a, *index):
        if a.shape[0] != n:
            raise IndexError(_wrong_length(a.shape[0], n))
        return a[:, *index].copy()

    def store(a, lanes, *index):
        if a.shape[0] != n:
            raise IndexError(_wrong_length(a.shape[0], n))
        a[:, *index] = lanes

    def unit(k):
        return (np.arange(n) == k).astype(float)

    def build(*items):
        if len(items) != n:
            raise TypeError(_wrong_length(len(items), n))
        return np.array(items, float)

    return LaneFunctions(
        load, store, lambda: np.zeros(n), lambda x: np.full(n, float(x)), _scale, unit, build
    )


def _wrong_length(length, n):
    return f"an array of {length} lanes where {n} are wanted"


def _scale(d, lanes):
    with np.errstate(invalid="ignore"):
        return np.where(lanes == 0.0, 0.0, d * lanes)
