"""Shapes: the same elements under other axes, in other places, or more than once.

Only what NumPy does in C, or what NumPy's own source would do many times slower, has a rule here;
``hstack``, ``split``, ``pad``, ``insert`` and the like are built from these by the builder.
"""

import inspect
import itertools
import math
from typing import Any

import numpy as np

from fwdad.errors import MissingTransposeError
from fwdad.rules.core.adjoints import Space, into, take_arrays, transpose
from fwdad.rules.core.define import frule, linear
from fwdad.rules.gathering import places_of, scatter_add
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import cast, dense
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero

for _function in (
    np.transpose,  # also known as np.permute_dims
    np.moveaxis,
    np.swapaxes,
    np.squeeze,
    np.expand_dims,
    np.broadcast_to,  # its transpose is that of every broadcast, see transposes.py
    np.flip,
    np.roll,
    np.repeat,
    np.tile,
):
    linear(_function, argnums=0)


@transpose(np.transpose)
def transpose_transpose(y_bar, a, axes=None):
    """Undo the permutation."""
    if axes is None:
        return np.transpose(y_bar)
    if a.ndim == 1:
        return y_bar
    return np.transpose(y_bar, np.argsort([axis % a.ndim for axis in axes]).tolist())


@transpose(np.moveaxis)
def moveaxis_transpose(y_bar, a, source, destination):
    """Move the axes back."""
    return np.moveaxis(y_bar, destination, source)


@transpose(np.swapaxes)
def swapaxes_transpose(y_bar, a, axis1, axis2):
    """Swap the axes back."""
    return np.swapaxes(y_bar, axis1, axis2)


@transpose(np.squeeze)
def squeeze_transpose(y_bar, a, axis=None):
    """Put the axes of length one back."""
    return np.reshape(y_bar, a.shape)


@transpose(np.expand_dims)
def expand_dims_transpose(y_bar, a, axis):
    """Take the axes of length one away."""
    return np.reshape(y_bar, a.shape)


@transpose(np.flip)
def flip_transpose(y_bar, m, axis=None):
    """A reversal is its own adjoint."""
    return np.flip(y_bar, axis)


@transpose(np.roll)
def roll_transpose(y_bar, a, shift, axis=None):
    """Roll back."""
    return np.roll(y_bar, _backwards(shift), axis)


def _backwards(shift: Any) -> Any:
    """The opposite of the shifts: of unsigned ints, too, and of symbols."""
    if isinstance(shift, (tuple, list)):
        return tuple(_backwards(k) for k in shift)
    return np.multiply(shift, np.int64(-1))


@transpose(np.repeat)
def repeat_transpose(y_bar, a, repeats, axis=None):
    """Add up the copies of each element."""
    return scatter_add(y_bar, np.repeat(places_of(a), repeats, axis), a)


@transpose(np.tile)
def tile_transpose(y_bar, A, reps):
    """Add up the copies of each element."""
    return scatter_add(y_bar, np.tile(places_of(A), reps), A)


# -- reshape and ravel, whose orders "A" and "K" look at the primal's memory


@frule(np.reshape, argnums=0)
def reshape_frule(primals, tangents, **options):
    """Push a tangent through ``np.reshape``."""
    (a,), (a_dot,) = primals, tangents
    y = np.reshape(a, **options)
    order = "F" if options["order"] == "A" and _is_fortran(a) else options["order"]
    return y, a_dot.reshape(np.shape(plain(y)), order="C" if order == "A" else order)


@transpose(np.reshape)
def reshape_transpose(y_bar, a, shape=None, order="C", **options):
    """Reshape back."""
    return np.reshape(y_bar, a.shape, order=_known(order))


@frule(np.ravel, argnums=0)
def ravel_frule(primals, tangents, *, order):
    """Push a tangent through ``np.ravel``."""
    (a,), (a_dot,) = primals, tangents
    y = np.ravel(a, order)
    if order == "K":
        # What memory order is, a copy of the same layout tells.
        places = np.empty_like(np.asarray(plain(a)), dtype=np.intp, order="K")
        places[...] = np.arange(places.size).reshape(places.shape)
        return y, np.take(np.reshape(a_dot, -1), np.ravel(places, "K"))
    return y, np.reshape(a_dot, -1, order="F" if order == "F" or _is_fortran(a, order) else "C")


@transpose(np.ravel)
def ravel_transpose(y_bar, a, order="C"):
    """Reshape back."""
    return np.reshape(y_bar, a.shape, order=_known(order))


def _known(order):
    """The order of a transpose, which must not depend on the primal's memory layout."""
    if order not in ("C", "F"):
        message = f"order {order!r} depends on the memory layout of the array: use 'C' or 'F'"
        raise MissingTransposeError(message)
    return order


def _is_fortran(a, order="A"):
    return order == "A" and np.isfortran(np.asarray(plain(a)))


# -- joining


def tangent_of_item(x, x_dot, n):
    """The tangent of an item of a list of arrays; it may be a list of numbers itself."""
    if isinstance(x_dot, (list, tuple)):
        return np.stack([tangent_of_item(v, d, n) for v, d in zip(x, x_dot, strict=True)])
    return dense(x_dot, np.asarray(plain(x)) if isinstance(x, (list, tuple)) else x, n)


def width(x_dot):
    """The number of lanes of the tangents in nested lists; None if all are ``ZERO``."""
    if isinstance(x_dot, (list, tuple)):
        return next((n for n in map(width, x_dot) if n is not None), None)
    return x_dot.n if isinstance(x_dot, Chunk) else None


def tangents_of_items(arrays, arrays_dot):
    """The tangents of the items of a list of arrays, or of the rows of one array, written out.

    None if no item is active.
    """
    if isinstance(arrays_dot, Zero):
        return None
    n = width(arrays_dot)
    if n is None:
        return None
    return [tangent_of_item(x, x_dot, n) for x, x_dot in zip(arrays, arrays_dot, strict=True)]


_CONCATENATE = "(arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind')"


def _joining(join, function, **registered):
    """Tangents are joined as the values are; an inactive item contributes zeros."""

    @frule(function, argnums=0, **registered)
    def joined_frule(primals, tangents, *, axis, out, dtype, casting):
        (arrays,), (arrays_dot,) = primals, tangents
        y = join(arrays, axis=axis, dtype=dtype, casting=casting)
        items_dot = tangents_of_items(arrays, arrays_dot)
        if items_dot is None:
            return y, ZERO
        return y, cast(join(items_dot, axis=axis), plain(y).dtype)


_joining(np.concatenate, np.concatenate, signature=_CONCATENATE)  # also known as np.concat
_joining(np.concatenate, inspect.unwrap(np.concatenate), signature=_CONCATENATE)  # of np.block
_joining(np.stack, np.stack)


@transpose(np.concatenate)
def concatenate_transpose(y_bar, arrays, axis=0, **options):
    """Cut the cotangent where the items meet."""
    items = _items(arrays)
    shapes = [_shape_of_item(a) for a in items]
    lengths = [math.prod(s) if axis is None else s[axis] for s in shapes]
    before = (slice(None),) * (0 if axis is None else axis % y_bar.ndim)
    ends = list(itertools.accumulate(lengths))
    parts = [
        np.reshape(y_bar[(*before, slice(start, end))], shape)
        for start, end, shape in zip([0, *ends], ends, shapes, strict=False)
    ]
    return _cotangent_of_items(parts, arrays)


def _items(arrays):
    """The items of a list, or the rows of one array that is joined along its first axis."""
    if isinstance(arrays, Space):
        return [Space(arrays.shape[1:], arrays.dtype)] * arrays.shape[0]
    return arrays


def _cotangent_of_items(parts, arrays):
    """The cotangents of a list's items, as a list; of an array's rows, as one."""
    if isinstance(arrays, Space):
        return into(arrays, np.stack(parts))
    return [_cotangent_of_item(part, a) for part, a in zip(parts, arrays, strict=True)]


def _shape_of_item(a):
    """The shape of an item: a ``Space``, an array, a number, or a list of these."""
    if isinstance(a, (list, tuple)):
        return (len(a), *_shape_of_item(a[0])) if a else (0,)
    return a.shape if hasattr(a, "shape") else ()


def _cotangent_of_item(a_bar, a):
    """The cotangent of an item; of a list, the list of its items' cotangents."""
    if isinstance(a, (list, tuple)):
        return [_cotangent_of_item(a_bar[k], part) for k, part in enumerate(a)]
    return into(a, a_bar) if isinstance(a, Space) else a_bar


@transpose(np.stack)
def stack_transpose(y_bar, arrays, axis=0, **options):
    """Take the items apart."""
    before = (slice(None),) * (axis % y_bar.ndim)
    parts = [y_bar[(*before, k)] for k in range(y_bar.shape[axis])]
    return _cotangent_of_items(parts, arrays)


def _of_rank(shape, rank):
    """The shape that ``np.atleast_1d``, ``2d`` or ``3d`` gives an array."""
    if rank == 1 or len(shape) >= rank:
        return shape or (1,)
    if len(shape) == 2:
        return (*shape, 1)
    return (1, *(shape or (1,)), 1)[:rank]


def _joined_frule(function, arrange):
    """Register a relative of ``concatenate``; ``arrange`` returns the items' shapes, and the axis.

    NumPy's source for these costs the builder several times what the join itself does.
    """

    @frule(function, argnums=0)
    def joined_frule(primals, tangents, **options):
        (tup,), (tup_dot,) = primals, tangents
        y = function(tup, **options)
        items_dot = tangents_of_items(tup, tup_dot)
        if items_dot is None:
            return y, ZERO
        shapes, axis = arrange([x_dot.shape for x_dot in items_dot])
        rows = [np.reshape(x_dot, shape) for x_dot, shape in zip(items_dot, shapes, strict=True)]
        return y, cast(np.concatenate(rows, axis=axis), plain(y).dtype)


_joined_frule(
    np.hstack, lambda shapes: ([_of_rank(s, 1) for s in shapes], 0 if len(shapes[0]) < 2 else 1)
)
_joined_frule(np.vstack, lambda shapes: ([_of_rank(s, 2) for s in shapes], 0))
_joined_frule(np.dstack, lambda shapes: ([_of_rank(s, 3) for s in shapes], 2))
_joined_frule(
    np.column_stack,
    lambda shapes: ([s if len(s) > 1 else (*(s or (1,)), 1) for s in shapes], 1),
)


# -- broadcasting several


@frule(np.broadcast_arrays)
def broadcast_arrays_frule(primals, tangents, *, subok):
    """Push each tangent through its own broadcast."""
    y = np.broadcast_arrays(*primals, subok=subok)
    shape = plain(y[0]).shape if y else ()
    return y, tuple(np.broadcast_to(x_dot, shape) for x_dot in tangents)


@frule(np.meshgrid)
def meshgrid_frule(primals, tangents, *, copy, sparse, indexing):
    """Push each tangent along its own axis of the grid."""
    y = np.meshgrid(*primals, copy=copy, sparse=sparse, indexing=indexing)
    y_dot = []
    for k, (grid, x_dot) in enumerate(zip(y, tangents, strict=True)):
        # with indexing="xy" the first two axes change places
        axis = 1 - k if indexing == "xy" and k < 2 and len(primals) > 1 else k
        line = tuple(-1 if j == axis else 1 for j in range(len(primals)))
        y_dot.append(np.broadcast_to(np.reshape(x_dot, line), np.shape(plain(grid))))
    return y, type(y)(y_dot)


take_arrays(np.transpose, np.reshape, np.swapaxes, np.concatenate, np.stack)
