"""The closed list: what each linear NumPy function does to a chunk.

A law takes the arguments of its NumPy function, with a ``Chunk`` where an array could be, and does
the axis arithmetic that the hidden lane axis asks for. Nothing else may be done to a chunk.
The transposes of these functions stand beside their rules in ``fwdad/rules``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.errors import ChunkMismatchError, DualLeakError, NonlinearTangentError
from fwdad.tangents.chunk import LAWS, Chunk, plain
from fwdad.tangents.lanes import Lanes, lane_last_index
from fwdad.tangents.zero import ZERO, Zero

__all__ = ["cast", "dense", "law", "listed"]


def law(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function into the closed list."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            LAWS[function] = body
        return body

    return register


def listed() -> list[Any]:
    """The functions of the closed list, in the order of their registration."""
    return list(LAWS)


def dense(x_dot: Any, x: Any, n: int) -> Chunk:
    """Write a ``ZERO`` out as a chunk of n zero lanes of x's shape."""
    if isinstance(x_dot, Chunk):
        return x_dot
    x = plain(x)
    dtype = getattr(x, "dtype", None) or np.result_type(type(x))
    if dtype.kind not in "fc":
        dtype = np.dtype(float)
    return Chunk(np.zeros((n, *np.shape(x)), dtype))


def _axis(axis: int, ndim: int) -> int:
    """The position, after the lane axis, of an axis of the primal."""
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim + 1


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None or ndim == 0:  # NumPy reduces a scalar along "axis 0", too
        return tuple(range(1, ndim + 1))
    if isinstance(axis, Sequence):
        return tuple(_axis(a, ndim) for a in axis)
    return (_axis(axis, ndim),)


def _given(option: Any, default: Any) -> Any:
    """An option's value; NumPy's own default for many options is the marker "no value"."""
    return default if option is np._NoValue else option


def cast(x_dot: Any, dtype: Any) -> Any:
    """Cast a tangent as its primal is cast; None, and a structural zero, stay as they are."""
    if dtype is None or not isinstance(x_dot, Chunk):
        return x_dot
    if np.dtype(dtype).kind not in "fc":
        message = (
            f"a value that carries a derivative would become {np.dtype(dtype)} and lose it; say "
            "fwdad.stop_gradient(x) if that is meant"
        )
        raise DualLeakError(message)
    return x_dot if x_dot.dtype == dtype else x_dot.astype(dtype)


# -- reductions


@law(np.sum)
def _sum(
    x_dot: Chunk,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Chunk:
    keepdims, where = bool(_given(keepdims, False)), _given(where, True)
    x_dot = cast(x_dot, dtype)
    if where is not True:
        x_dot = _where(where, x_dot, ZERO)
    axes = _axes(axis, x_dot.ndim)
    if len(axes) == x_dot.ndim and not keepdims:
        return Chunk(_total(x_dot))
    return Chunk(np.sum(x_dot.lanes, axis=axes, keepdims=keepdims))


def _total(x_dot: Chunk) -> Any:
    """Sum all elements, without multiplying deferred scalings out: one product ``V @ d`` each."""
    total = None
    for lanes, d in x_dot.terms.items():
        array = lanes.array
        full = array.shape[1:] == x_dot.shape
        if d is None or not getattr(d, "shape", ()) or not full or not _finite(d):
            return np.sum(x_dot.lanes, axis=tuple(range(1, x_dot.ndim + 1)))
        term = array.reshape(x_dot.n, -1) @ d.reshape(-1)
        total = term if total is None else total + term
    return np.zeros(x_dot.n) if total is None else total


def _finite(d: Any) -> bool:
    d = plain(d)
    return bool(np.isfinite(np.vdot(d, d)))


@law(np.mean)
def _mean(
    x_dot: Chunk,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Chunk:
    total = _sum(x_dot, axis, dtype, out, keepdims, None, where)
    if _given(where, True) is True:
        count = math.prod(x_dot.shape[a - 1] for a in _axes(axis, x_dot.ndim))
        # A Python float scales single precision without widening it; of no elements, it is inf.
        return total.scale(1 / count if count else math.inf)
    mask = np.broadcast_to(where, x_dot.shape)
    counts = np.sum(mask, axis=axis, keepdims=bool(_given(keepdims, False)))
    with np.errstate(all="ignore"):
        return total * (1 / counts.astype(total.dtype))


@law(np.cumsum)
def _cumsum(
    x_dot: Chunk,
    axis: int | None = None,
    dtype: Any = None,
    out: None = None,
) -> Chunk:
    if axis is None or x_dot.ndim == 0:
        x_dot, axis = x_dot.reshape(-1), 0
    return Chunk(np.cumsum(cast(x_dot, dtype).lanes, axis=_axis(axis, x_dot.ndim)))


@law(np.trace)
def _trace(
    x_dot: Chunk,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: None = None,
) -> Chunk:
    ndim = x_dot.ndim
    lanes = cast(x_dot, dtype).lanes
    return Chunk(np.trace(lanes, offset, _axis(axis1, ndim), _axis(axis2, ndim)))


@law(np.add.reduceat)
def _add_reduceat(
    x_dot: Chunk,
    indices: Any,
    axis: int = 0,
    dtype: Any = None,
    out: None = None,
) -> Chunk:
    lanes = cast(x_dot, dtype).lanes
    return Chunk(np.add.reduceat(lanes, indices, _axis(axis, x_dot.ndim)))


@law(np.bincount)
def _bincount(x: Any, weights: Chunk, minlength: int = 0) -> Chunk:
    """Add up the weights of each bin: the closed list's way to scatter with repeated places."""
    x = np.asarray(x)
    length = max(minlength, int(x.max()) + 1 if x.size else 0)
    places = (np.arange(weights.n)[:, None] * length + x).reshape(-1)
    lanes = weights.lanes.reshape(-1)
    total = weights.n * length
    if weights.dtype.kind == "c":
        real, imag = (np.bincount(places, part, total) for part in (lanes.real, lanes.imag))
        summed = real + 1j * imag
    else:
        summed = np.bincount(places, lanes, total)
    return Chunk(summed.reshape((weights.n, length)))


# -- shapes: these keep deferred scalings deferred


def _termwise(
    x_dot: Chunk, on_lanes: Callable[[Any], Any], on_scaling: Callable[[Any], Any], key: Any
) -> Chunk:
    """Apply one rearrangement of the primal's axes to the lanes and to their scalings alike."""
    terms: dict[Lanes, Any] = {}
    shape: tuple[int, ...] = ()
    full = (x_dot.n, *x_dot.shape)
    for lanes, d in x_dot.terms.items():

        def make(held: Lanes) -> Lanes:
            array = held.array
            return Lanes(on_lanes(array if array.shape == full else np.broadcast_to(array, full)))

        moved = lanes.part((key, x_dot.shape), make)
        assert moved is not None
        shape = tuple(moved.array.shape[1:])
        terms[moved] = on_scaling(d) if getattr(d, "shape", ()) else d
    return Chunk.of(x_dot.n, shape, terms)


@law(np.reshape)
def _reshape(x_dot: Chunk, shape: Any, order: str = "C", **_options: Any) -> Chunk:
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if -1 in shape:
        known = math.prod(s for s in shape if s != -1)
        shape = tuple((x_dot.size // known if known else 0) if s == -1 else s for s in shape)
    if order == "C":
        return _termwise(
            x_dot,
            lambda lanes: lanes.reshape((x_dot.n, *shape)),
            lambda d: d.reshape(shape),
            ("reshape", shape),
        )
    lanes = np.moveaxis(x_dot.lanes, 0, -1).reshape((*shape, x_dot.n), order=_order(order))
    return Chunk(np.moveaxis(lanes, -1, 0))


def _order(order: str) -> Any:
    if order not in ("F", "A", "K"):
        message = f"order must be one of 'C', 'F', 'A', or 'K', got {order!r}"
        raise ValueError(message)
    return "F" if order == "F" else "C"


@law(np.ravel)
def _ravel(x_dot: Chunk, order: str = "C") -> Chunk:
    return _reshape(x_dot, -1, order)


@law(np.transpose, np.permute_dims)
def _transpose(x_dot: Chunk, axes: Any = None) -> Chunk:
    ndim = x_dot.ndim
    axes = tuple(range(ndim))[::-1] if axes is None else tuple(int(a) % ndim for a in axes)
    return _termwise(
        x_dot,
        lambda lanes: lanes.transpose((0, *(a + 1 for a in axes))),
        lambda d: d.transpose(axes),
        ("transpose", axes),
    )


@law(np.swapaxes)
def _swapaxes(x_dot: Chunk, axis1: int, axis2: int) -> Chunk:
    axes = list(range(x_dot.ndim))
    i, j = _axis(axis1, x_dot.ndim) - 1, _axis(axis2, x_dot.ndim) - 1
    axes[i], axes[j] = axes[j], axes[i]
    return _transpose(x_dot, axes)


@law(np.moveaxis)
def _moveaxis(x_dot: Chunk, source: Any, destination: Any) -> Chunk:
    order = np.moveaxis(
        np.empty(tuple(range(x_dot.ndim)) and (1,) * x_dot.ndim), source, destination
    )
    del order  # NumPy's own checks and messages; the permutation itself follows
    sources = [a - 1 for a in _axes(source, x_dot.ndim)]
    destinations = [a - 1 for a in _axes(destination, x_dot.ndim)]
    axes = [a for a in range(x_dot.ndim) if a not in sources]
    for to, of in sorted(zip(destinations, sources, strict=True)):
        axes.insert(to, of)
    return _transpose(x_dot, axes)


@law(np.squeeze)
def _squeeze(x_dot: Chunk, axis: Any = None) -> Chunk:
    return _reshape(x_dot, np.squeeze(_shaped(x_dot.shape), axis).shape)


@law(np.expand_dims)
def _expand_dims(x_dot: Chunk, axis: Any) -> Chunk:
    return _reshape(x_dot, np.expand_dims(_shaped(x_dot.shape), axis).shape)


def _shaped(shape: tuple[int, ...]) -> np.ndarray:
    """An array of that shape and no memory, to ask NumPy what it makes of the axes."""
    return np.broadcast_to(np.zeros(()), shape)


@law(np.broadcast_to)
def _broadcast_to(x_dot: Chunk, shape: Any, subok: bool = False) -> Chunk:
    return x_dot.broadcast_to((shape,) if isinstance(shape, int) else tuple(shape))


@law(np.flip)
def _flip(m_dot: Chunk, axis: Any = None) -> Chunk:
    axes = _axes(axis, m_dot.ndim)
    index = tuple(
        slice(None, None, -1) if a + 1 in axes else slice(None) for a in range(m_dot.ndim)
    )
    return m_dot[index]


@law(np.roll)
def _roll(a_dot: Chunk, shift: Any, axis: Any = None) -> Chunk:
    if axis is None:
        return _roll(a_dot.reshape(-1), shift, 0).reshape(a_dot.shape)
    if isinstance(axis, Sequence) or isinstance(shift, Sequence):
        axes = axis if isinstance(axis, Sequence) else (axis,) * len(shift)
        return Chunk(np.roll(a_dot.lanes, shift, tuple(_axis(a, a_dot.ndim) for a in axes)))
    return Chunk(np.roll(a_dot.lanes, shift, _axis(axis, a_dot.ndim)))


@law(np.diagonal)
def _diagonal(a_dot: Chunk, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Chunk:
    ndim = a_dot.ndim
    return Chunk(np.diagonal(a_dot.lanes, offset, _axis(axis1, ndim), _axis(axis2, ndim)))


@law(np.diag)
def _diag(v_dot: Chunk, k: int = 0) -> Chunk:
    if v_dot.ndim == 2:
        return _diagonal(v_dot, k)
    n = v_dot.shape[0] + abs(k)
    rows = np.arange(v_dot.shape[0]) + max(-k, 0)
    lanes = v_dot.lanes
    placed = np.zeros((v_dot.n, n, n), plain(lanes).dtype)
    return Chunk(_scatter(placed, (rows, rows + k), lanes))


def _scatter(zeros: np.ndarray, index: tuple[Any, ...], lanes: Any) -> Any:
    """Put lanes at distinct places of zero lanes, also when the lanes are duals themselves."""
    if not hasattr(lanes, "__fwdad_tag__"):
        np.moveaxis(zeros, 0, -1)[lane_last_index(index)] = np.moveaxis(lanes, 0, -1)
        return zeros
    shape = zeros.shape[1:]
    flat = np.arange(math.prod(shape)).reshape(shape)[index].ravel()
    # gather from the lanes with one zero appended: a linear function that duals know
    source = np.full(math.prod(shape), len(flat))
    source[flat] = np.arange(len(flat))
    padded = np.concatenate(
        [lanes.reshape((zeros.shape[0], -1)), np.zeros((zeros.shape[0], 1))], axis=1
    )
    return padded[:, source].reshape(zeros.shape)


@law(np.tril)
def _tril(m_dot: Chunk, k: int = 0) -> Chunk:
    return Chunk(np.tril(_rows(m_dot).lanes, k))


@law(np.triu)
def _triu(m_dot: Chunk, k: int = 0) -> Chunk:
    return Chunk(np.triu(_rows(m_dot).lanes, k))


def _rows(m_dot: Chunk) -> Chunk:
    """NumPy takes the triangle of a vector as that of a matrix with all rows equal to it."""
    return m_dot.broadcast_to(m_dot.shape * 2) if m_dot.ndim == 1 else m_dot


@law(np.repeat)
def _repeat(a_dot: Chunk, repeats: Any, axis: int | None = None) -> Chunk:
    if axis is None:
        a_dot, axis = a_dot.reshape(-1), 0
    return Chunk(np.repeat(a_dot.lanes, repeats, _axis(axis, a_dot.ndim)))


@law(np.tile)
def _tile(a_dot: Chunk, reps: Any) -> Chunk:
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    a_dot = a_dot.reshape((1,) * max(len(reps) - a_dot.ndim, 0) + a_dot.shape)
    reps = (1,) * (a_dot.ndim - len(reps)) + reps
    return Chunk(np.tile(a_dot.lanes, (1, *reps)))


@law(np.copy, np.asarray, np.ascontiguousarray, np.positive)
def _same(a_dot: Chunk, *_args: Any, **_kwargs: Any) -> Chunk:
    return a_dot


@law(np.shape)
def _shape(x_dot: Chunk) -> tuple[int, ...]:
    return x_dot.shape


@law(np.ndim)
def _ndim(x_dot: Chunk) -> int:
    return x_dot.ndim


@law(np.size)
def _size(x_dot: Chunk, axis: int | None = None) -> int:
    return x_dot.size if axis is None else x_dot.shape[axis]


# -- gathering


def _gathered(
    x_dot: Chunk,
    size: int,
    of_lanes: Callable[[Any], Any],
    of_scaling: Callable[[Any], Any],
) -> Chunk:
    """Gather from the lanes and from their scalings apart, if that is less than to multiply out."""
    if size > x_dot.size:
        return Chunk(of_lanes(x_dot.lanes))
    full = (x_dot.n, *x_dot.shape)
    terms: dict[Lanes, Any] = {}
    shape: tuple[int, ...] = ()
    for lanes, d in x_dot.terms.items():
        array = lanes.array
        picked = of_lanes(array if array.shape == full else np.broadcast_to(array, full))
        shape = tuple(picked.shape[1:])
        terms[Lanes(picked)] = of_scaling(d) if getattr(d, "shape", ()) else d
    return Chunk.of(x_dot.n, shape, terms)


@law(np.take)
def _take(
    a_dot: Chunk,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str = "raise",
) -> Chunk:
    if axis is None:
        a_dot, axis = a_dot.reshape(-1), 0
    behind = _axis(axis, a_dot.ndim)
    size = np.size(indices) * math.prod(s for k, s in enumerate(a_dot.shape) if k + 1 != behind)
    return _gathered(
        a_dot,
        size,
        lambda lanes: np.take(lanes, indices, behind, mode=mode),
        lambda d: np.take(d, indices, behind - 1, mode=mode),
    )


@law(np.take_along_axis)
def _take_along_axis(arr_dot: Chunk, indices: Any, axis: int | None = -1) -> Chunk:
    if axis is None:
        arr_dot, axis = arr_dot.reshape(-1), 0
    if arr_dot.ndim == 1:
        return _take(arr_dot, indices, 0)
    # One flat index serves every lane: a gather by it is quicker than one along the axis.
    places = np.arange(arr_dot.size).reshape(arr_dot.shape)
    places = np.take_along_axis(places, indices, _axis(axis, arr_dot.ndim) - 1)
    return _take(arr_dot, places)


@law(np.where)
def _where(condition: Any, x_dot: Any, y_dot: Any) -> Any:
    """Select tangents; a lane is never multiplied by a mask."""
    chunks = [t for t in (x_dot, y_dot) if isinstance(t, Chunk)]
    for t in (x_dot, y_dot):
        if not isinstance(t, (Chunk, Zero)) and not np.all(np.equal(t, 0)):
            message = "np.where(c, tangent, constant): the constant must be 0 for a linear rule"
            raise NonlinearTangentError(message)
    if len({c.n for c in chunks}) > 1:
        message = f"chunks of widths {[c.n for c in chunks]} meet in numpy.where"
        raise ChunkMismatchError(message)
    shape = np.broadcast_shapes(np.shape(condition), *(c.shape for c in chunks))
    if all(lanes.finite for c in chunks for lanes in c.terms) and len(chunks[0].terms) <= 2:
        return _selected(condition, shape, x_dot) + _selected(
            np.logical_not(condition), shape, y_dot
        )
    sides = [t.broadcast_to(shape).lanes if isinstance(t, Chunk) else 0 for t in (x_dot, y_dot)]
    return Chunk(np.where(condition, *sides))


def _selected(mask: Any, shape: tuple[int, ...], x_dot: Any) -> Any:
    """Select in the scalings, which stay deferred; the lanes are known to be finite."""
    if not isinstance(x_dot, Chunk):
        return ZERO
    mask = np.broadcast_to(mask, shape)
    terms = {}
    for lanes, d in x_dot.broadcast_to(shape).terms.items():
        one = np.ones((), lanes.dtype) if d is None else d
        if type(one) in (int, float, complex):  # Python's numbers do not widen
            one = np.asarray(one, np.result_type(lanes.dtype, one))
        terms[lanes] = np.where(mask, one, np.zeros((), np.asarray(plain(one)).dtype))
    return Chunk.of(x_dot.n, shape, terms)


# -- joining


def _join(chunks: Sequence[Any]) -> int:
    widths = {c.n for c in chunks if isinstance(c, Chunk)}
    if len(widths) != 1:
        message = f"chunks of widths {sorted(widths)} meet in one operation"
        raise ChunkMismatchError(message)
    if not all(isinstance(c, Chunk) for c in chunks):
        message = "a ZERO has no shape: write it out with dense(x_dot, x, n) before joining"
        raise ChunkMismatchError(message)
    return widths.pop()


@law(np.concatenate)
def _concatenate(
    chunks: Sequence[Any], axis: int | None = 0, out: None = None, **_options: Any
) -> Chunk:
    _join(chunks)
    if axis is None:
        return Chunk(np.concatenate([c.reshape(-1).lanes for c in chunks], axis=1))
    return Chunk(np.concatenate([c.lanes for c in chunks], axis=_axis(axis, chunks[0].ndim)))


@law(np.stack)
def _stack(chunks: Sequence[Any], axis: int = 0, out: None = None, **_options: Any) -> Chunk:
    _join(chunks)
    return Chunk(np.stack([c.lanes for c in chunks], axis=_axis(axis, chunks[0].ndim + 1)))


# -- real and imaginary parts (R-linear)


def _is_real(value: Any) -> bool:
    return bool(np.dtype(value.dtype).kind != "c")


@law(np.conjugate)
def _conj(x_dot: Chunk) -> Chunk:
    return x_dot if _is_real(x_dot) else Chunk(np.conjugate(x_dot.lanes))


@law(np.real)
def _real(x_dot: Chunk) -> Chunk:
    return x_dot if _is_real(x_dot) else Chunk(np.real(x_dot.lanes))


@law(np.imag)
def _imag(x_dot: Chunk) -> Any:
    return ZERO if _is_real(x_dot) else Chunk(np.imag(x_dot.lanes))


# -- products with a primal


@law(np.matmul)
def _matmul(a: Any, b: Any) -> Chunk:
    if isinstance(a, Chunk) and isinstance(b, Chunk):
        message = f"{a!r} @ {b!r}: a product of two tangents is not linear"
        raise NonlinearTangentError(message)
    if isinstance(a, Zero) or isinstance(b, Zero):
        return ZERO  # type: ignore[return-value]
    if isinstance(b, Chunk):
        return _primal_matmul_chunk(a, b)
    lanes, ndim = a.lanes, np.ndim(plain(b))
    if a.ndim == 1:
        product = lanes @ b
        return Chunk(product if ndim == 1 else np.moveaxis(product, -2, 0))
    if ndim > a.ndim:
        lanes = lanes.reshape((a.n,) + (1,) * (ndim - a.ndim) + a.shape)
    return Chunk(np.matmul(lanes, b))


def _primal_matmul_chunk(a: Any, b: Chunk) -> Chunk:
    lanes, ndim = b.lanes, np.ndim(plain(a))
    if b.ndim == 1:
        if ndim <= 2:
            return Chunk(lanes @ a.T)
        return Chunk(np.moveaxis(np.matmul(a, lanes.T), -1, 0))
    if ndim == 1:
        return Chunk(np.matmul(a, lanes))
    if ndim > b.ndim:
        lanes = lanes.reshape((b.n,) + (1,) * (ndim - b.ndim) + b.shape)
    return Chunk(np.matmul(a, lanes))


@law(np.dot)
def _dot(a: Any, b: Any, out: None = None) -> Chunk:
    a_ndim, b_ndim = (t.ndim if isinstance(t, Chunk) else np.ndim(plain(t)) for t in (a, b))
    if a_ndim == 0 or b_ndim == 0:
        return a * b
    if b_ndim <= 2 and (a_ndim <= 2 or b_ndim == 1):
        return _matmul(a, b)
    return _tensordot(a, b, ([a_ndim - 1], [b_ndim - 2]))


@law(np.inner)
def _inner(a: Any, b: Any) -> Chunk:
    a_ndim, b_ndim = (t.ndim if isinstance(t, Chunk) else np.ndim(plain(t)) for t in (a, b))
    if a_ndim == 0 or b_ndim == 0:
        return a * b
    return _tensordot(a, b, ([a_ndim - 1], [b_ndim - 1]))


@law(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Chunk:
    a_ndim, b_ndim = (t.ndim if isinstance(t, Chunk) else np.ndim(plain(t)) for t in (a, b))
    if isinstance(axes, (int, np.integer)):
        of_a, of_b = list(range(a_ndim - axes, a_ndim)), list(range(axes))
    else:
        of_a, of_b = ([s] if isinstance(s, (int, np.integer)) else list(s) for s in axes)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY"
    left = list(letters[:a_ndim])
    right = list(letters[a_ndim : a_ndim + b_ndim])
    for i, j in zip(of_a, of_b, strict=True):
        right[j % b_ndim] = left[i % a_ndim]
    summed = {left[i % a_ndim] for i in of_a}
    kept = [x for x in left + right if x not in summed]
    return _einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", a, b)


@law(np.einsum)
def _einsum(subscripts: str, *operands: Any, **options: Any) -> Any:
    """Give the lane axis a letter of its own, on the one chunk and on the result."""
    chunks = [k for k, x in enumerate(operands) if isinstance(x, Chunk)]
    if any(isinstance(x, Zero) for x in operands):
        return ZERO
    if len(chunks) != 1:
        message = "einsum of two tangents is not linear"
        raise NonlinearTangentError(message)
    spec = subscripts.replace(" ", "")
    inputs, arrow, output = spec.partition("->")
    if not arrow:
        seen = inputs.replace(",", "").replace(".", "")
        output = ("..." if "..." in inputs else "") + "".join(
            sorted(c for c in set(seen) if seen.count(c) == 1)
        )
    lane = next(c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba" if c not in spec)
    terms = inputs.split(",")
    (k,) = chunks
    terms[k] = lane + terms[k]
    arrays = [x.lanes if isinstance(x, Chunk) else x for x in operands]
    # Planning costs 20 µs and brings BLAS in: worth it from about 1e5 products on.
    planned = math.prod(_lengths(terms, arrays).values()) > 1e5
    dtype = {} if options.get("dtype") is None else {"dtype": options["dtype"], "casting": "unsafe"}
    return Chunk(
        np.einsum(",".join(terms) + "->" + lane + output, *arrays, optimize=planned, **dtype)
    )


def _lengths(terms: list[str], arrays: list[Any]) -> dict[str, int]:
    """The length that each letter of an einsum runs over."""
    lengths: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        shape = np.shape(plain(array))
        before, dots, after = term.partition("...")
        labels = [
            *before,
            *(["..."] * (len(shape) - len(before) - len(after)) if dots else []),
            *after,
        ]
        for label, length in zip(labels, shape, strict=True):
            lengths[label] = max(length, lengths.get(label, 1))
    return lengths


@law(np.outer)
def _outer(a: Any, b: Any, out: None = None) -> Chunk:
    a = a.reshape(-1) if isinstance(a, Chunk) else np.ravel(a)
    b = b.reshape(-1) if isinstance(b, Chunk) else np.ravel(b)
    return a[:, None] * b[None, :]


@law(np.kron)
def _kron(a: Any, b: Any) -> Chunk:
    a_ndim, b_ndim = (t.ndim if isinstance(t, Chunk) else np.ndim(plain(t)) for t in (a, b))
    ndim = max(a_ndim, b_ndim)
    a_shape = (1,) * (ndim - a_ndim) + tuple(np.shape(a) if not isinstance(a, Chunk) else a.shape)
    b_shape = (1,) * (ndim - b_ndim) + tuple(np.shape(b) if not isinstance(b, Chunk) else b.shape)
    left = tuple(s for n in a_shape for s in (n, 1))
    right = tuple(s for n in b_shape for s in (1, n))
    a = a.reshape(left) if isinstance(a, Chunk) else np.reshape(a, left)
    b = b.reshape(right) if isinstance(b, Chunk) else np.reshape(b, right)
    return (a * b).reshape(tuple(m * n for m, n in zip(a_shape, b_shape, strict=True)))


@law(np.linalg.solve)
def _solve(a: Any, b: Chunk) -> Chunk:
    """Solve for all lanes at once: the lanes become columns, so that a is factorised once."""
    if isinstance(a, Chunk):
        message = "numpy.linalg.solve is linear in b, not in a: a came as a tangent"
        raise NonlinearTangentError(message)
    a_ndim = np.ndim(plain(a))
    if b.ndim == 1:
        columns = np.moveaxis(b.lanes, 0, -1)
        if a_ndim > 2:
            columns = np.broadcast_to(columns, (*np.shape(a)[:-2], *columns.shape))
        return Chunk(np.moveaxis(np.linalg.solve(a, columns), -1, 0))
    m = b.shape[-1]
    columns = np.moveaxis(b.lanes, 0, -1)
    columns = columns.reshape((*b.shape[:-1], m * b.n))
    x = np.linalg.solve(a, columns)
    return Chunk(np.moveaxis(x.reshape((*x.shape[:-1], m, b.n)), -1, 0))


# -- transforms, filters, tables


def _fft_one(transform: Callable[..., Any]) -> None:
    @law(transform)
    def one(
        a_dot: Chunk, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None
    ) -> Chunk:
        return Chunk(transform(a_dot.lanes, n, _axis(axis, a_dot.ndim), norm))


def _fft_many(transform: Callable[..., Any], default: Any) -> None:
    @law(transform)
    def many(
        a_dot: Chunk, s: Any = None, axes: Any = default, norm: Any = None, out: None = None
    ) -> Chunk:
        if axes is None:
            axes = tuple(range(-len(s), 0)) if s is not None else tuple(range(a_dot.ndim))
        return Chunk(transform(a_dot.lanes, s, tuple(_axis(a, a_dot.ndim) for a in axes), norm))


for _transform in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft):
    _fft_one(_transform)
for _transform in (np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2):
    _fft_many(_transform, (-2, -1))
for _transform in (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn):
    _fft_many(_transform, None)


@law(np.fft.fftshift)
def _fftshift(x_dot: Chunk, axes: Any = None) -> Chunk:
    return Chunk(np.fft.fftshift(x_dot.lanes, _axes(axes, x_dot.ndim)))


@law(np.fft.ifftshift)
def _ifftshift(x_dot: Chunk, axes: Any = None) -> Chunk:
    return Chunk(np.fft.ifftshift(x_dot.lanes, _axes(axes, x_dot.ndim)))


def _sliding(f: Callable[..., Any], default: str) -> None:
    @law(f)
    def slide(a: Any, v: Any, mode: str = default) -> Chunk:
        if isinstance(a, Chunk) and isinstance(v, Chunk):
            message = f"numpy.{f.__name__} of two tangents is not linear"
            raise NonlinearTangentError(message)
        if isinstance(a, Chunk):
            return Chunk(np.stack([f(lane, v, mode) for lane in a.lanes]))
        return Chunk(np.stack([f(a, lane, mode) for lane in v.lanes]))


_sliding(np.convolve, "full")
_sliding(np.correlate, "valid")


@law(np.interp)
def _interp(
    x: Any, xp: Any, fp_dot: Chunk, left: Any = None, right: Any = None, period: Any = None
) -> Chunk:
    # `left` and `right` are constants: outside the table their tangent is zero.
    ends = (None if left is None else 0.0, None if right is None else 0.0)
    return Chunk(np.stack([np.interp(x, xp, lane, *ends, period) for lane in fp_dot.lanes]))
