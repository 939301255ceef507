"""Parts of arrays extracted, inserted and joined: ``numpy.split``, ``insert``, ``pad``, ..."""

import numpy as np

from fwdad.frontend.numpy_sources.table import along, in_rank, known, stands_for


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
    return [ary[along(axis, slice(a, b))] for a, b in zip(starts, ends, strict=True)]


@stands_for(np.split)
def split(ary, indices_or_sections, axis=0):
    ary, axis = np.asarray(ary), known(axis)
    if np.ndim(indices_or_sections) == 0:
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
    if isinstance(obj, (list, tuple)) and len(obj) == 1:
        obj = obj[0]
    if isinstance(obj, (int, np.integer)):
        if obj < -n or obj >= n:
            raise IndexError("index is out of bounds for the axis")
        k = obj % n
        y = _longer(arr, axis, -1)
        y[along(axis, slice(None, k))] = arr[along(axis, slice(None, k))]
        y[along(axis, slice(k, None))] = arr[along(axis, slice(k + 1, None))]
        return y
    keep = np.ones(n, dtype=bool)
    if not isinstance(obj, (list, tuple)) or len(obj) > 0:
        keep[np.asarray(obj)] = False
    return arr[along(axis, keep)]


def _longer(a, axis, by):
    """A new array that is longer along an axis, in the memory order of an array."""
    shape = list(a.shape)
    shape[axis] = shape[axis] + by
    return np.empty_like(a, order="A", shape=tuple(shape))


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
        count = values.shape[axis]
        y = _longer(arr, axis, count)
        y[along(axis, slice(None, k))] = arr[along(axis, slice(None, k))]
        y[along(axis, slice(k, k + count))] = values
        y[along(axis, slice(k + count, None))] = arr[along(axis, slice(k, None))]
        return y
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
    """``(before, after)`` of each axis, as :func:`numpy.pad` takes them; None if that fails."""
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
    joined = [parts[0], array] if before else [array]
    joined = [*joined, parts[1]] if after else joined
    return np.concatenate(joined, axis=axis) if len(joined) > 1 else array.copy()


@stands_for(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    filt = np.asarray(filt)
    if filt.ndim != 1:
        return NotImplemented
    there = filt != 0
    n = filt.shape[0]
    first, last = n, n
    if np.any(there):  # so it has elements: ``argmax`` of none raises
        first = np.argmax(there) if "f" in trim.lower() else 0
        last = n - np.argmax(there[::-1]) if "b" in trim.lower() else n
    return filt[first:last]
