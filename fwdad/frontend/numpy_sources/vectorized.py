"""Functions called for each element, or each part, of arrays: ``numpy.vectorize``.

These functions are traced in line. As in NumPy, the results have the types of the first one.
"""

from __future__ import annotations

import numpy as np

from fwdad.frontend.numpy_sources.table import in_order_of

_EMPTY = "cannot call `vectorize` on size 0 inputs unless `otypes` is set"


def elements(arrays):
    """The elements of broadcast arrays, as vectors."""
    if len(arrays) == 1:
        return [np.reshape(arrays[0], -1)]
    shape = np.broadcast_arrays(*arrays)[0].shape
    return [np.reshape(np.broadcast_to(a, shape), -1) for a in arrays]


def like_result(arrays):
    """An array in the memory order of the results of a function of the elements of arrays."""
    like = np.logical_not(arrays[0])
    for a in arrays[1:]:
        like = np.logical_or(like, a)
    return like


def first_result(function, rows):
    """The function's result for the first elements, which are NumPy's numbers or arrays."""
    if len(rows[0]) == 0:
        raise ValueError(_EMPTY)
    return function(*[row[0] for row in rows])


def check_some(n):
    """Raise if there are no parts."""
    if n == 0:
        raise ValueError(_EMPTY)


def over_elements(function, rows, like, kinds, dtypes, given):
    """Call a function for Python numbers; ``given`` has the first results, or is empty."""
    n = len(rows[0])
    made = [np.empty(n, t) for t in dtypes]
    for j in tuple(range(len(given))):
        made[j][0] = given[j]
    for k in range(len(given) > 0, n):
        numbers = [kinds[j](rows[j][k]) for j in tuple(range(len(rows)))]
        found = function(*numbers)
        if len(made) == 1:
            made[0][k] = found
        else:
            for j in tuple(range(len(made))):
                made[j][k] = found[j]
    return [in_order_of(like, np.reshape(y, like.shape)) for y in made]


def check_lengths(lengths):
    """Raise if lengths with one name in a signature differ."""
    for n in lengths[1:]:
        if n != lengths[0]:
            raise ValueError("inconsistent size for core dimension")


def check_apart_from_core(shapes):
    """Raise if the axes that are looped over differ."""
    for shape in shapes[1:]:
        for j in tuple(range(len(shape))):
            if shape[j] != shapes[0][j]:
                raise ValueError("np.vectorize: the loop dimensions of the arguments differ")


def parts(array, rank):
    """An array as a stack of parts of some rank."""
    return np.reshape(array, (-1, *array.shape[array.ndim - rank :]))


def over_parts(function, rows, looped, shape, dtypes, given):
    """Call a function for parts of arrays; arrays that are not ``looped`` over are passed whole."""
    n = len(rows[looped.index(True)])
    made = [np.empty((n, *given[j].shape), dtypes[j]) for j in tuple(range(len(given)))]
    for j in tuple(range(len(given))):
        made[j][0] = given[j]
    for k in range(1, n):
        held = [rows[j][k] if looped[j] else rows[j] for j in tuple(range(len(rows)))]
        found = function(*held)
        if len(made) == 1:
            made[0][k] = found
        else:
            for j in tuple(range(len(made))):
                made[j][k] = found[j]
    return [np.reshape(y, (*shape, *y.shape[1:])) for y in made]
