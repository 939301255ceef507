"""Elements of an array one by one: ``.flat``, ``np.putmask``, ``np.multiply.at``.

These functions are traced in line: loads and stores, which every transform supports.
"""

from __future__ import annotations

import numpy as np


class Flat:
    """``a.flat``: the elements of an array in C order."""

    in_words = "`a.flat`"

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return self.array.size

    def copy(self):
        return np.ravel(self.array).copy()

    def __getitem__(self, k):
        found = np.ravel(self.array)[k]
        return found.copy() if isinstance(k, slice) else found

    def place(self, k):
        """The index of the k-th element, which is there."""
        rest, places = k, ()
        for m in reversed(self.array.shape):
            places = (rest % m, *places)
            rest = rest // m
        return places

    def at(self, k):
        """The k-th element, as it is now."""
        return self.array[self.place(k)]

    def __setitem__(self, k, value):
        n = self.array.size
        if isinstance(k, (int, np.integer)):
            if k < -n or k >= n:
                raise IndexError("index is out of bounds for the elements of the array")
            self.array[self.place(k % n)] = value
        else:
            check_apart(self.array, value)
            np.put(self.array, np.arange(n)[k], value)


def check_apart(a, v):
    """Refuse values in the memory that they go to, which NumPy reads while it changes."""


def put_under_mask(a, mask, values):
    """``np.putmask``: the k-th element of a gets the k-th of the values, repeated as needed."""
    values = np.ravel(values)
    places = np.reshape(np.arange(a.size) % values.size, a.shape)
    np.copyto(a, values[places], where=np.reshape(mask, a.shape))


def call_once(ufunc, a, index, *values):
    """``ufunc.at`` for an index that selects no element twice."""
    a[index] = ufunc(a[index], *values)


def call_at(ufunc, a, index, values):
    """``ufunc.at`` with two operands: an element that is selected twice is changed twice.

    The index is an array of integers, or a tuple of arrays with one axis.
    """
    check_apart(a, values)
    places, shape = _places(index)
    rest = a.shape[len(places) :]
    values = np.reshape(np.broadcast_to(values, shape + rest), (len(places[0]), *rest))
    for k in range(len(places[0])):
        at = tuple([p[k] for p in places])
        a[at] = ufunc(a[at], values[k])


def call_at_alone(ufunc, a, index):
    """``ufunc.at`` with one operand; the index is that of :func:`call_at`."""
    places, _ = _places(index)
    for k in range(len(places[0])):
        at = tuple([p[k] for p in places])
        a[at] = ufunc(a[at])


def _places(index):
    """One 1-d array for each axis that the index covers, and the index's own shape."""
    if not isinstance(index, tuple):
        return (np.ravel(index),), np.shape(index)
    n = max([len(p) for p in index])
    return tuple([np.broadcast_to(p, (n,)) for p in index]), (n,)
