"""Transposes of the operations of ``Chunk`` itself: operators, indexing, broadcasting, casts.

Each is the adjoint under Re<., .>, so a cotangent of a real argument is real. The transposes of the
other functions of the closed list are next to their rules.
"""

from __future__ import annotations

import operator

import numpy as np

from fwdad.rules.core.adjoints import conjugate, into, transpose
from fwdad.rules.gathering import places_of, scatter_add
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.symbolic import arange, is_known, recorder_of, zeros

# -- operators; a linear argument that stands beside the transposed one is a Space, too


@transpose(np.add, argnum=0)
def add_left_transpose(y_bar, x1, x2):
    """The cotangent of x1 in ``x1 + x2``."""
    return into(x1, y_bar)


@transpose(np.add, argnum=1)
def add_right_transpose(y_bar, x1, x2):
    """The cotangent of x2 in ``x1 + x2``."""
    return into(x2, y_bar)


@transpose(np.subtract, argnum=0)
def subtract_left_transpose(y_bar, x1, x2):
    """The cotangent of x1 in ``x1 - x2``."""
    return into(x1, y_bar)


@transpose(np.subtract, argnum=1)
def subtract_right_transpose(y_bar, x1, x2):
    """The cotangent of x2 in ``x1 - x2``."""
    return into(x2, -y_bar)


@transpose(np.negative)
def negative_transpose(y_bar, x):
    """The negative is its own adjoint."""
    return -y_bar


@transpose(np.multiply, argnum=0)
def multiply_left_transpose(y_bar, x1, x2):
    """The cotangent of x1 in ``x1 * x2``, x2 a primal."""
    return into(x1, conjugate(x2) * y_bar)


@transpose(np.multiply, argnum=1)
def multiply_right_transpose(y_bar, x1, x2):
    """The cotangent of x2 in ``x1 * x2``, x1 a primal."""
    return into(x2, conjugate(x1) * y_bar)


@transpose(np.divide)
def divide_transpose(y_bar, x1, x2):
    """The cotangent of x1 in ``x1 / x2``, x2 a primal."""
    return into(x1, y_bar / conjugate(x2))


# -- indexing and broadcasting


@transpose(operator.getitem)
def getitem_transpose(y_bar, x, index):
    """Put a cotangent back where ``x[index]`` took it from; elements taken twice add up."""
    if not is_known(y_bar, index, *x.shape):
        return _scattered(y_bar, x, index if type(index) is tuple else (index,))
    taken = np.arange(x.size).reshape(x.shape)[index].ravel()
    return into(x, np.bincount(taken, y_bar.reshape(-1), minlength=x.size).reshape(x.shape))


def _scattered(y_bar, x, index):
    """The same where a tape does not know the lengths, or the index."""
    if any(np.ndim(i) for i in index if i is not None and not isinstance(i, slice)):
        places, recorder = places_of(x), recorder_of(index)
        places = places if recorder is None else recorder.as_symbol(places)
        return scatter_add(y_bar, places[index], x)
    if x.shape[-1] == 1 and len(index) == 2 and index[0] is Ellipsis and type(index[1]) is int:
        return into(x, y_bar.reshape(x.shape))
    if x.ndim == 1 and recorder_of(index) is not None and not isinstance(index[0], slice):
        n = x.shape[0]
        return into(x, np.where(arange(n) == index[0] % n, y_bar, 0.0))
    array = zeros(x.shape, y_bar.dtype, (y_bar, index))
    array[index] = y_bar
    return into(x, array)


@transpose(np.broadcast_to)
def broadcast_to_transpose(y_bar, array, shape, subok=False):
    """Sum over the axes that were broadcast."""
    return into(array, y_bar)


# -- real and imaginary parts, casts


@transpose(np.conjugate)
def conjugate_transpose(y_bar, x):
    """Re<y, conj(x)> = Re<conj(y), x>."""
    return into(x, np.conjugate(y_bar))


@transpose(np.real)
def real_transpose(y_bar, val):
    """Re<y, Re(x)> = Re<y, x> for a real y."""
    return into(val, y_bar)


@transpose(np.imag)
def imag_transpose(y_bar, val):
    """Re<y, Im(x)> = Re<iy, x> for a real y."""
    return into(val, y_bar * 1j)


@transpose(Chunk.astype)
def astype_transpose(y_bar, x, dtype):
    """A cast is transposed by the cast back; a real x has a real cotangent."""
    return into(x, y_bar).astype(x.dtype)


@transpose(np.copy)
@transpose(np.asarray)
@transpose(np.ascontiguousarray)
@transpose(np.positive)
def identity_transpose(y_bar, x, *_args, **_options):
    """A copy has no influence on the tangent but its dtype."""
    return into(x, y_bar)


@transpose(np.matrix_transpose)
def matrix_transpose_transpose(y_bar, x):
    """A transposition of axes undoes itself."""
    return np.swapaxes(y_bar, -1, -2)
