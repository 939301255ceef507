"""Gathering: results whose elements are chosen among the elements of the arguments.

The places are integers, which have no tangent; the tangents are gathered from the same places.
Nothing here is ever multiplied by a mask.
"""

import numpy as np

from fwdad.rules.core.adjoints import into, transpose
from fwdad.rules.core.define import frule, linear, locally_constant
from fwdad.tangents.laws.listing import cast
from fwdad.tangents.plain import plain
from fwdad.tangents.sparse import scatter_add as sums_at
from fwdad.tangents.symbolic import apply, arange, is_known, recorder_of, zeros
from fwdad.tangents.zero import ZERO, Zero

locally_constant(
    np.nonzero,
    np.flatnonzero,
    np.argwhere,
    np.searchsorted,
    np.digitize,
)

for _function in (np.take, np.take_along_axis, np.diagonal, np.diag, np.tril, np.triu, np.trace):
    linear(_function, argnums=0)


def scatter_add(y_bar, places, space):
    """Add each element of a cotangent at its place, in an array of the given space.

    ``places`` are flat indices into that array, of the shape of ``y_bar``.
    """
    if is_known(y_bar, places, *space.shape):
        flat = np.bincount(places.reshape(-1), weights=np.reshape(y_bar, -1), minlength=space.size)
    else:
        flat = apply(sums_at, np.reshape(y_bar, -1), places.reshape(-1), space.size)
    return cast(np.reshape(flat, space.shape), space.dtype)


def places_of(space):
    """The flat index of each element."""
    return arange(space.size).reshape(space.shape)


@transpose(np.take)
def take_transpose(y_bar, a, indices, axis=None, out=None, mode="raise"):
    """Add each element up where it was taken."""
    return scatter_add(y_bar, apply(np.take, places_of(a), indices, axis=axis, mode=mode), a)


@transpose(np.take_along_axis)
def take_along_axis_transpose(y_bar, arr, indices, axis=-1):
    """Add each element up where it was taken."""
    n = arr.shape[-1]
    if axis in (-1, arr.ndim - 1) and not is_known(y_bar, indices) and indices.shape[-1] == 1:
        return into(arr, np.where(arange(n) == indices % n, y_bar, 0.0))  # one of each row
    return scatter_add(y_bar, np.take_along_axis(places_of(arr), indices, axis), arr)


@transpose(np.diagonal)
def diagonal_transpose(y_bar, a, offset=0, axis1=0, axis2=1):
    """Put the diagonal back among zeros."""
    last = sorted((axis1 % a.ndim, axis2 % a.ndim)) == [a.ndim - 2, a.ndim - 1]
    if last and not offset and a.shape[-1] == a.shape[-2] and recorder_of(y_bar) is not None:
        eye = apply(np.eye, a.shape[-1], dtype=bool)
        return into(a, np.where(eye, y_bar[..., None, :], 0))
    return scatter_add(y_bar, np.diagonal(places_of(a), offset, axis1, axis2), a)


@transpose(np.diag)
def diag_transpose(y_bar, v, k=0):
    """A matrix's diagonal goes back among zeros; a vector that was made a matrix is taken out."""
    return np.diagonal(y_bar, k) if v.ndim == 1 else scatter_add(y_bar, np.diag(places_of(v), k), v)


@transpose(np.tril)
def tril_transpose(y_bar, m, k=0):
    """The lower triangle is its own adjoint."""
    return into(m, np.tril(y_bar, k))


@transpose(np.triu)
def triu_transpose(y_bar, m, k=0):
    """The upper triangle is its own adjoint."""
    return into(m, np.triu(y_bar, k))


@transpose(np.trace)
def trace_transpose(y_bar, a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Each element of the diagonal receives the cotangent."""
    places = np.diagonal(places_of(a), offset, axis1, axis2)
    if a.ndim == 2 and not is_known(y_bar):  # a number of a tape
        return scatter_add(zeros(places.shape, a.dtype) + y_bar, places, a)
    return scatter_add(np.broadcast_to(y_bar[..., None], places.shape), places, a)


# -- choosing between arrays


@frule(np.where, argnums=(0, 1, 2), signature="(condition, x=None, y=None, /)")
def where_frule(primals, tangents):
    """Select tangents as the values are selected; of a condition alone, the places."""
    condition, x, y = primals
    if x is None and y is None:
        return np.where(condition), ZERO
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    chosen = np.where(condition, x, y)
    _, x_dot, y_dot = tangents
    if isinstance(x_dot, Zero) and isinstance(y_dot, Zero):
        return chosen, ZERO
    chosen_dot = cast(np.where(plain(condition), x_dot, y_dot), plain(chosen).dtype)
    return chosen, np.broadcast_to(chosen_dot, np.shape(plain(chosen)))


@transpose(np.where, argnum=1)
def where_first_transpose(y_bar, condition, x, y):
    """The cotangent of x in ``np.where(condition, x, y)``."""
    return cast(into(x, np.where(condition, y_bar, ZERO)), x.dtype)


@transpose(np.where, argnum=2)
def where_second_transpose(y_bar, condition, x, y):
    """The cotangent of y in ``np.where(condition, x, y)``."""
    return cast(into(y, np.where(condition, ZERO, y_bar)), y.dtype)


@frule(np.choose, argnums="choices")
def choose_frule(primals, tangents, *, a, out, mode):
    """Select among the tangents of the choices, one ``where`` for each that is active."""
    (choices,), (choices_dot,) = primals, tangents
    y = np.choose(a, choices, mode=mode)
    if isinstance(choices_dot, Zero):
        return y, ZERO
    count = len(choices)
    chosen = np.mod(a, count) if mode == "wrap" else np.clip(a, 0, count - 1)
    y_dot = ZERO
    for k in range(count):
        choice_dot = choices_dot[k]
        if not isinstance(choice_dot, Zero) or not isinstance(y_dot, Zero):
            y_dot = np.where(chosen == k, choice_dot, y_dot)
    return y, np.broadcast_to(cast(y_dot, plain(y).dtype), np.shape(plain(y)))


@frule(np.select, argnums=("choicelist", "default"))
def select_frule(primals, tangents, *, condlist):
    """Select among the tangents: of several conditions that hold, the first decides."""
    choices, default = primals
    choices_dot, y_dot = tangents
    y = np.select(condlist, choices, default)
    if isinstance(choices_dot, Zero):
        choices_dot = [ZERO] * len(choices)
    for k in reversed(range(len(choices))):
        y_dot = np.where(condlist[k], choices_dot[k], y_dot)
    return y, np.broadcast_to(cast(y_dot, plain(y).dtype), np.shape(plain(y)))


@frule(np.compress, argnums="a")
def compress_frule(primals, tangents, *, condition, axis, out):
    """Take the tangents where the condition holds."""
    (a,), (a_dot,) = primals, tangents
    y = np.compress(condition, a, axis=axis)
    return y, np.take(a_dot, np.flatnonzero(condition), axis=axis)


@frule(np.unique, argnums=0)
def unique_frule(primals, tangents, *, axis, **options):
    """Of equal elements the first carries the tangent; indices and counts carry none."""
    (ar,), (ar_dot,) = primals, tangents
    result = np.unique(ar, axis=axis, **options)
    if recorder_of(ar) is not None:
        return result, _first_ones_dot(result, ar, ar_dot, axis, options)
    several = isinstance(result, tuple)
    values = plain(result[0] if several else result)
    ar = np.asarray(plain(ar))
    in_order = axis is not None or options.get("sorted", True)
    if axis is None and in_order and values.size == ar.size and not np.any(np.isnan(values[-1:])):
        first = np.argsort(ar, axis=None)  # no two are equal: NumPy's quick sort will do
    else:
        keywords = {"axis": axis, "equal_nan": options["equal_nan"]}
        ordered, first = np.unique(ar, return_index=True, **keywords)
        if not in_order:
            first = first[np.searchsorted(ordered, values)]
    if axis is None:
        ar_dot = np.reshape(ar_dot, -1)
    values_dot = np.take(ar_dot, first, axis=0 if axis is None else axis)
    if several:
        return result, (values_dot,) + (ZERO,) * (len(result) - 1)
    return result, values_dot


def _first_ones_dot(result, ar, ar_dot, axis, options):
    """The tangents of distinct elements on a tape: each is looked up."""
    keywords = {"axis": axis, "equal_nan": options["equal_nan"]}
    _, first = np.unique(ar, return_index=True, **keywords)
    lanes = np.reshape(ar_dot, -1) if axis is None else ar_dot
    values_dot = np.take(lanes, first, axis=0 if axis is None else axis)
    several = isinstance(result, tuple)
    return (values_dot, *(ZERO,) * (len(result) - 1)) if several else values_dot


# -- counting with weights


@frule(np.bincount, argnums="weights", signature="(x, /, weights=None, minlength=0)")
def bincount_frule(primals, tangents, *, x, minlength):
    """Add up the tangents of the weights in each bin; of no element at all, NumPy counts ints."""
    (weights,), (weights_dot,) = primals, tangents
    y = np.bincount(x, weights, minlength)
    if np.size(x) == 0:
        return y, ZERO
    return y, np.bincount(x, weights=weights_dot, minlength=minlength)


@transpose(np.bincount)
def bincount_transpose(y_bar, weights, x, minlength=0):
    """Each weight receives the cotangent of its bin."""
    return cast(y_bar[x if hasattr(x, "dtype") else np.asarray(x)], weights.dtype)
