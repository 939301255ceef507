"""NumPy's functions written in Python, said in Python that can be traced in line.

NumPy's own source is traced where it can be. Where it cannot (it asks C code, catches exceptions,
decides on values), what stands here is traced in its place: the same function, for the arguments
that it knows. It answers ``NotImplemented`` for others; then NumPy's is one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SOURCES: dict[Any, Callable[..., Any]] = {}
"""Functions of NumPy, and what is traced in their place."""


def stands_for(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Trace a function in the place of NumPy's."""

    def register(source: Callable[..., Any]) -> Callable[..., Any]:
        SOURCES.update(dict.fromkeys(functions, source))
        return source

    return register


def known(x: Any) -> Any:
    """A number that is needed when the program is traced: it is assumed from then on."""
    return x


def refuse(reason: str) -> None:
    """Refuse to trace what is written here; the reason is for the user."""
    raise NotImplementedError(reason)


def in_rank(axis: Any, rank: int) -> int:
    """An axis counted from the first, or NumPy's error."""
    axis = known(axis)
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def _along(axis: int, part: Any) -> tuple[Any, ...]:
    return (slice(None),) * axis + (part,)


# -- parts of an array


@stands_for(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    ary = np.asarray(ary)
    axis = in_rank(axis, ary.ndim)
    n = ary.shape[axis]
    if isinstance(indices_or_sections, (tuple, list)):
        ends = [*[known(i) for i in indices_or_sections], None]
    elif isinstance(indices_or_sections, (int, np.integer)):
        count = known(indices_or_sections)
        if count <= 0:
            raise ValueError("number sections must be larger than 0.")
        size, extra = n // count, n % count
        ends = [(k + 1) * size + min(k + 1, extra) for k in range(count)]
    else:
        return NotImplemented
    starts = [0, *ends[:-1]]
    return [ary[_along(axis, slice(a, b))] for a, b in zip(starts, ends, strict=True)]


@stands_for(np.split)
def split(ary, indices_or_sections, axis=0):
    ary, axis = np.asarray(ary), known(axis)
    if isinstance(indices_or_sections, (int, np.integer)):
        count = known(indices_or_sections)
        if ary.shape[axis] % count:
            raise ValueError("array split does not result in an equal division")
        size = ary.shape[axis] // count
        return array_split(ary, [k * size for k in range(1, count)], axis)
    return array_split(ary, indices_or_sections, axis)


@stands_for(np.delete)
def delete(arr, obj, axis=None):
    if axis is None:
        arr, axis = np.ravel(arr), 0
    arr = np.asarray(arr)
    axis = in_rank(axis, arr.ndim)
    n = arr.shape[axis]
    if isinstance(obj, (int, np.integer)):
        if obj < -n or obj >= n:
            raise IndexError("index is out of bounds for the axis")
        k = obj % n
        parts = [arr[_along(axis, slice(None, k))], arr[_along(axis, slice(k + 1, None))]]
        return np.concatenate(parts, axis=axis)
    if isinstance(obj, (list, tuple)) and len(obj) == 0:
        return arr.copy()
    keep = np.ones(n, dtype=bool)
    keep[obj] = False
    return arr[_along(axis, keep)]


@stands_for(np.insert)
def insert(arr, obj, values, axis=None):
    if axis is None:
        arr, axis = np.ravel(arr), 0
    arr = np.asarray(arr)
    axis = in_rank(axis, arr.ndim)
    n = arr.shape[axis]
    values = np.asarray(values, dtype=arr.dtype)
    if isinstance(obj, (int, np.integer)):
        if obj < -n or obj > n:
            raise IndexError("index is out of bounds for the axis")
        k = obj + n if obj < 0 else obj
        values = np.moveaxis(_of_rank(values, arr.ndim), 0, axis)
        shape = list(arr.shape)
        shape[axis] = values.shape[axis]
        new = np.broadcast_to(values, tuple(shape))
        before, after = _along(axis, slice(None, k)), _along(axis, slice(k, None))
        return np.concatenate([arr[before], new, arr[after]], axis=axis)
    if not isinstance(obj, (list, tuple)) or arr.ndim > 1 or values.ndim > 1:
        return NotImplemented
    places = [known(i) for i in obj]
    if any(i < 0 for i in places):
        return NotImplemented
    new = np.broadcast_to(values, (len(places),))
    parts, done = [], 0
    for k in sorted(range(len(places)), key=places.__getitem__):
        if places[k] > n:
            raise IndexError("index is out of bounds for the axis")
        parts += [arr[done : places[k]], new[k : k + 1]]
        done = places[k]
    return np.concatenate([*parts, arr[done:]])


def _of_rank(a, rank):
    return a if a.ndim >= rank else a[(None,) * (rank - a.ndim) + (Ellipsis,)]


@stands_for(np.resize)
def resize(a, new_shape):
    a = np.ravel(a)
    shape = tuple(new_shape) if isinstance(new_shape, (tuple, list)) else (new_shape,)
    total = 1
    for n in shape:
        if n < 0:
            raise ValueError("all elements of `new_shape` must be non-negative")
        total = total * n
    return np.reshape(a[np.arange(total) % a.shape[0]], shape)


@stands_for(np.rollaxis)
def rollaxis(a, axis, start=0):
    axis, start = in_rank(axis, a.ndim), known(start)
    start = start + a.ndim if start < 0 else start
    return np.moveaxis(a, axis, start - 1 if axis < start else start)


@stands_for(np.rot90)
def rot90(m, k=1, axes=(0, 1)):
    m, turns = np.asarray(m), known(k) % 4
    first, second = known(axes)
    if first == second or abs(first - second) == m.ndim:
        raise ValueError("Axes must be different.")
    if not (-m.ndim <= first < m.ndim and -m.ndim <= second < m.ndim):
        raise ValueError(f"Axes={axes} out of range for array of ndim={m.ndim}.")
    first, second = first % m.ndim, second % m.ndim
    if turns == 0:
        return m[...]
    if turns == 2:
        return np.flip(np.flip(m, first), second)
    if turns == 1:
        return np.swapaxes(np.flip(m, second), first, second)
    return np.flip(np.swapaxes(m, first, second), second)


@stands_for(np.block)
def block(arrays):
    depth = _depth(arrays)
    rank = max(depth, _rank(arrays))
    return _block(arrays, depth, rank)


def _depth(arrays):
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _rank(arrays):
    if isinstance(arrays, list):
        return max([_rank(a) for a in arrays])
    return np.ndim(arrays)


def _block(arrays, depth, rank):
    if not isinstance(arrays, list):
        return _of_rank(np.array(arrays), rank)
    return np.concatenate([_block(a, depth - 1, rank) for a in arrays], axis=-depth)


@stands_for(np.pad)
def pad(array, pad_width, mode="constant", **options):
    array = np.asarray(array)
    widths = _pairs(known(pad_width), array.ndim)
    if widths is None or not isinstance(mode, str):
        return NotImplemented
    if mode == "constant" and set(options) <= {"constant_values"}:
        fills = _pairs(options.get("constant_values", 0), array.ndim)
        if fills is None:
            return NotImplemented
        for axis in tuple(range(array.ndim)):  # a tuple's items are known
            array = _with_margins(array, axis, widths[axis], fills[axis])
        return array
    if options or mode not in ("edge", "wrap", "reflect", "symmetric"):
        return NotImplemented
    for axis in tuple(range(array.ndim)):  # a tuple's items are known
        before, after = widths[axis]
        n = array.shape[axis]
        if n == 0:
            raise ValueError("can't extend empty axis using modes other than 'constant' or 'empty'")
        places = np.arange(-before, n + after)
        if mode == "edge":
            places = np.clip(places, 0, n - 1)
        elif mode == "wrap":
            places = places % n
        elif mode == "symmetric":
            places = places % (2 * n)
            places = np.minimum(places, 2 * n - 1 - places)
        else:
            period = max(2 * (n - 1), 1)
            places = places % period
            places = np.minimum(places, period - places) if n > 1 else places
        array = np.take(array, places, axis=axis) if before or after else array
    return array


def _pairs(given, count):
    """``(before, after)`` of each axis, as :func:`numpy.pad` takes them; None where it is odd."""
    if not isinstance(given, (tuple, list)):
        return [(given, given)] * count if isinstance(given, (int, float, np.number)) else None
    if any(isinstance(item, (tuple, list)) for item in given):
        pairs = [tuple(item) if isinstance(item, (tuple, list)) else (item,) for item in given]
        pairs = [p * 2 if len(p) == 1 else p for p in pairs]
        pairs = pairs * count if len(pairs) == 1 else pairs
        return pairs if len(pairs) == count else None
    return [tuple(given) * (2 if len(given) == 1 else 1)] * count


def _with_margins(array, axis, widths, fills):
    parts = []
    for width, fill in zip(widths, fills, strict=True):
        shape = list(array.shape)
        shape[axis] = width
        parts.append(np.full_like(array, fill, shape=tuple(shape), order="A"))
    before, after = widths
    held = [parts[0], array] if before else [array]
    held = [*held, parts[1]] if after else held
    return np.concatenate(held, axis=axis) if len(held) > 1 else array.copy()


@stands_for(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    filt = np.asarray(filt)
    if filt.ndim != 1:
        return NotImplemented
    there = filt != 0
    n = filt.shape[0]
    some = np.any(there)
    first = np.argmax(there) if "f" in trim.lower() else 0
    last = n - np.argmax(there[::-1]) if "b" in trim.lower() else n
    return filt[first if some else n : last if some else n]


# -- differences and sums


@stands_for(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    ary = np.ravel(ary)
    inner = ary[1:] - ary[:-1]
    if to_end is None and to_begin is None:
        return inner
    parts = [inner]
    if to_begin is not None:
        parts = [np.ravel(to_begin), *parts]
    if to_end is not None:
        parts = [*parts, np.ravel(to_end)]
    return np.concatenate(parts).astype(ary.dtype)


@stands_for(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = np.asarray(y)
    axis = in_rank(axis, y.ndim)
    if x is None:
        d = dx
    else:
        x = np.asarray(x)
        d = np.diff(x, axis=0 if x.ndim == 1 else axis)
        if x.ndim == 1:
            d = d.reshape((-1,) + (1,) * (y.ndim - axis - 1))
    upper, lower = y[_along(axis, slice(1, None))], y[_along(axis, slice(None, -1))]
    return np.sum(d * (upper + lower) / 2.0, axis=axis)


@stands_for(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    f = np.asarray(f)
    order = known(edge_order)
    if f.dtype.kind not in "fc":
        f = f.astype(np.float64)
    if axis is None:
        axes = tuple(range(f.ndim))
    else:
        axes = tuple(in_rank(k, f.ndim) for k in (axis if isinstance(axis, tuple) else (axis,)))
    if len(varargs) == 0:
        steps = [1.0] * len(axes)
    elif len(varargs) == 1 and np.ndim(varargs[0]) == 0:
        steps = list(varargs) * len(axes)
    elif len(varargs) == len(axes):
        steps = list(varargs)
    else:
        raise TypeError("invalid number of arguments")
    found = [_slope(f, h, k, order) for h, k in zip(steps, axes, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slope(f, h, axis, order):
    n = f.shape[axis]
    if n < order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
            "elements are required."
        )
    at = lambda i: f[_along(axis, slice(i, i + 1 if i != -1 else None))]  # noqa: E731
    inside = lambda i: f[_along(axis, slice(i, n - 2 + i))]  # noqa: E731
    if np.ndim(h) == 0:
        middle = (inside(2) - inside(0)) / (2.0 * h)
        if order == 1:
            first, last = (at(1) - at(0)) / h, (at(-1) - at(-2)) / h
        else:
            a, b, c = -1.5 / h, 2.0 / h, -0.5 / h
            first = a * at(0) + b * at(1) + c * at(2)
            a, b, c = 0.5 / h, -2.0 / h, 1.5 / h
            last = a * at(-3) + b * at(-2) + c * at(-1)
        return np.concatenate([first, middle, last], axis=axis)
    if h.ndim == 1 and h.shape[0] != n:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    d = np.diff(h)
    shape = (-1,) + (1,) * (f.ndim - axis - 1)
    before, after = d[:-1].reshape(shape), d[1:].reshape(shape)
    middle = (
        -after / (before * (before + after)) * inside(0)
        + (after - before) / (before * after) * inside(1)
        + before / (after * (before + after)) * inside(2)
    )
    if order == 1:
        first, last = (at(1) - at(0)) / d[0], (at(-1) - at(-2)) / d[-1]
    else:
        p, q = d[0], d[1]
        first = (
            -(2.0 * p + q) / (p * (p + q)) * at(0)
            + (p + q) / (p * q) * at(1)
            - p / (q * (p + q)) * at(2)
        )
        p, q = d[-2], d[-1]
        last = (
            q / (p * (p + q)) * at(-3)
            - (q + p) / (p * q) * at(-2)
            + (2.0 * q + p) / (q * (p + q)) * at(-1)
        )
    return np.concatenate([first, middle, last], axis=axis)


# -- numbers at equal steps


@stands_for(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    count, endpoint = num, known(endpoint)
    if count < 0:
        raise ValueError("Number of samples must be non-negative.")
    parts = np.maximum(count - 1 if endpoint else count, 1)
    start, stop = _number(start) * 1.0, _number(stop) * 1.0
    gap = stop - start
    steps = np.arange(0, count).reshape((-1,) + (1,) * np.ndim(gap)) * 1.0
    step = gap / parts
    y = steps * step + start
    if endpoint and count > 1:
        y[-1] = stop
    if known(axis) != 0:
        y = np.moveaxis(y, 0, known(axis))
    if dtype is not None:
        y = np.floor(y).astype(dtype) if np.dtype(dtype).kind in "iu" else y.astype(dtype)
    elif y.dtype != np.result_type(start, stop, float(count)):
        y = y.astype(np.result_type(start, stop, float(count)))
    return (y, step) if retstep else y


def arange_of_values(start, stop=None, step=1.0):
    """``np.arange`` of numbers that are not known."""
    if stop is None:
        start, stop = 0.0, start
    count = np.ceil((stop - start) / step)
    gap = (start + step) - start  # as NumPy has it
    return start + gap * np.arange(int(count) if count > 0 else 0)


def _number(x):
    """A list as an array; a number stays one."""
    return x if np.ndim(x) == 0 else np.asarray(x)


@stands_for(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    if np.ndim(base) > 0 or dtype is not None:
        return NotImplemented
    return np.power(base, linspace(start, stop, num, endpoint, axis=axis))


@stands_for(np.geomspace)
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    start, stop = _number(start) * 1.0, _number(stop) * 1.0
    if dtype is not None or np.iscomplexobj(start) or np.iscomplexobj(stop):
        return NotImplemented
    if np.any(start == 0) or np.any(stop == 0):
        raise ValueError("Geometric sequence cannot include zero")
    sign = np.sign(start)
    y = sign * logspace(np.log10(start / sign), np.log10(stop / sign), num, endpoint)
    if known(num) > 0:
        y[0] = start
    if known(num) > 1 and endpoint:
        y[-1] = stop
    return np.moveaxis(y, 0, known(axis)) if known(axis) != 0 else y


# -- places


@stands_for(np.ix_)
def ix_(*args):
    made = []
    for k, given in enumerate(args):
        a = np.asarray(given)
        if a.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if a.dtype.kind == "b":
            a = np.flatnonzero(a)
        made.append(a.reshape((1,) * k + (-1,) + (1,) * (len(args) - k - 1)))
    return tuple(made)


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
        found = np.zeros(element.shape, dtype=bool)
    else:
        at = np.minimum(np.searchsorted(tests, element), tests.shape[0] - 1)
        found = tests[at] == element
    return ~found if invert else found


# -- functions along an axis, and by conditions


@stands_for(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    arr = np.asarray(arr)
    axis = in_rank(axis, arr.ndim)
    moved = np.moveaxis(arr, axis, -1)
    outer = moved.shape[:-1]
    rows = moved.reshape((-1, moved.shape[-1])) if arr.ndim != 2 else moved
    if rows.shape[0] == 0:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    first = np.asarray(func1d(rows[0], *args, **kwargs))
    made = np.empty((rows.shape[0], *first.shape), first.dtype)
    made[0] = first
    for k in range(1, rows.shape[0]):
        made[k] = func1d(rows[k], *args, **kwargs)
    made = made.reshape((*outer, *first.shape)) if arr.ndim != 2 else made
    for j in tuple(range(first.ndim)):
        made = np.moveaxis(made, arr.ndim - 1 + j, axis + j)
    return made


@stands_for(np.piecewise)
def piecewise(x, condlist, funclist, *args, **kw):
    x = np.asarray(x)
    held = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if x.ndim == 0 or not all(np.ndim(c) == x.ndim for c in held):
        return NotImplemented
    conditions = [np.asarray(c).astype(bool) for c in held]
    if len(funclist) == len(held) + 1:
        none = ~conditions[0]
        for c in conditions[1:]:
            none = none & ~c
        conditions = [*conditions, none]
    elif len(funclist) != len(held):
        raise ValueError("piecewise: as many functions as conditions are wanted, or one more")
    y = np.zeros_like(x)
    for condition, f in zip(conditions, funclist, strict=True):
        if callable(f):
            y[condition] = f(x[condition], *args, **kw)
        else:
            y[condition] = f
    return y
