"""Elements of an array counted row by row: ``.flat``, ``np.putmask``.

What stands here is traced in line: loads and stores, which every transform knows.
"""

from __future__ import annotations

import numpy as np


class Flat:
    """``a.flat``: the elements of an array, row by row."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return self.array.size

    def __getitem__(self, k):
        found = np.ravel(self.array)[k]
        return found.copy() if isinstance(k, slice) else found

    def __setitem__(self, k, value):
        n = self.array.size
        if isinstance(k, (int, np.integer)):
            if k < -n or k >= n:
                raise IndexError("index is out of bounds for the elements of the array")
            rest, places = k % n, ()
            for m in reversed(self.array.shape):
                places = (rest % m, *places)
                rest = rest // m
            self.array[places] = value
        else:
            check_apart(self.array, value)
            np.put(self.array, np.arange(n)[k], value)


def check_apart(a, v):
    """Refuse values of the memory that they go to, which NumPy reads while it changes."""


def put_under_mask(a, mask, values):
    """``np.putmask``: the k-th element of a gets the k-th of the values, which begin again."""
    values = np.ravel(values)
    places = np.reshape(np.arange(a.size) % values.size, a.shape)
    np.copyto(a, values[places], where=np.reshape(mask, a.shape))
