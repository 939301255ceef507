r"""Filters of SciPy's images: correlations, convolutions and running means with extended borders.

Each is linear in the image and in the weights. In one form, for a kernel v of lengths m,

.. math:: y_i = \sum_k v_k\, x^{ext}_{i + k - b}

where x is extended by ``mode`` beyond its borders, and b is the kernel's offset. So the
adjoint is a full correlation with the reversed kernel, longer than x by m - 1, whose borders are
added where the extension took them from. A tangent is extended by zeros where ``mode="constant"``
extends x by ``cval``.

The filters that SciPy composes of these in Python (``gaussian_filter``, ``sobel``, ``laplace``, …)
are differentiated through their source.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.errors import DualLeakError
from fwdad.rules.core.adjoints import Space, into
from fwdad.rules.core.by_name import Lazy, refuse_symbols, transpose_by_name
from fwdad.rules.core.define import linear, multilinear
from fwdad.rules.core.registry import RULES, function_name, when_imported
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import cast, law
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import Zero

ndimage = Lazy("scipy.ndimage")

_MODES = {"grid-mirror": "reflect", "grid-wrap": "wrap", "grid-constant": "constant"}


# -- where a kernel stands


def _start(m: int, origin: int, reversed_kernel: bool) -> int:
    """How far before an element its kernel begins; a convolution's kernel is reversed first."""
    if reversed_kernel:
        origin = -origin - (1 if m % 2 == 0 else 0)
    return m // 2 + origin


def _places(n: int, before: int, after: int, mode: str) -> np.ndarray:
    """The element of an axis of length n that each element of its extension is."""
    return inside(np.arange(-before, n + after), n, mode)


def inside(at: np.ndarray, n: int, mode: str) -> np.ndarray:
    """The element of an axis of length n that stands at each place, also beyond the ends."""
    if mode == "nearest":
        return np.clip(at, 0, n - 1)
    if mode == "wrap":
        return at % n
    period = 2 * n if mode == "reflect" else max(2 * n - 2, 1)  # mirror: the ends come once
    at = at % period
    return np.minimum(at, period - at - (1 if mode == "reflect" else 0)) if n > 1 else at * 0


def extended(x: Any, lengths: Sequence[int], starts: Sequence[int], mode: str, cval: Any) -> Any:
    """The image with its borders, as the filter sees it."""
    for axis, (m, before) in enumerate(zip(lengths, starts, strict=True)):
        after = m - 1 - before
        if m == 1 and not before:
            continue
        if mode == "constant":
            widths = [(before, after) if k == axis else (0, 0) for k in range(x.ndim)]
            x = np.pad(x, widths, constant_values=cval)
        else:
            x = np.take(x, _places(x.shape[axis], before, after, mode), axis=axis)
    return x


def _folded(z: Any, axis: int, n: int, before: int, mode: str) -> Any:
    """The adjoint of extending an axis of length n: the borders are added where they came from."""

    def at(place: Any) -> tuple[Any, ...]:
        return (*(slice(None),) * axis, place)

    x_bar = np.copy(z[at(slice(before, before + n))])
    if mode != "constant":
        length = z.shape[axis]
        places = _places(n, before, length - n - before, mode)
        for k in (*range(before), *range(before + n, length)):
            x_bar[at(places[k])] += z[at(k)]
    return x_bar


# -- the adjoints


def _input_adjoint(
    y_bar: Any, x: Space, kernel: Any, starts: Sequence[int], mode: str, conjugated: bool
) -> Any:
    """The cotangent of an image that was correlated with a kernel, or with its conjugate.

    The kernel has as many axes as the image; ``starts`` is how far before an element it begins,
    along each axis, and ``mode`` is the extension of the borders.
    """
    lanes = y_bar.lanes
    if 0 in x.shape:
        return into(x, y_bar)
    mode = _MODES.get(mode, mode)
    ends = [m - 1 - b for m, b in zip(kernel.shape, starts, strict=True)]
    lanes = np.pad(lanes, [(0, 0), *zip(starts, ends, strict=True)])
    turned = np.flip(np.conjugate(kernel) if conjugated else kernel)  # correlating conjugates it
    origins = [end - m // 2 for m, end in zip(kernel.shape, ends, strict=True)]
    long = [axis for axis, m in enumerate(kernel.shape) if m > 1]
    if len(long) == 1:
        (axis,) = long
        weights = np.reshape(turned, (-1,))
        z = ndimage.correlate1d(lanes, weights, axis + 1, None, "constant", 0.0, origins[axis])
    else:
        z = ndimage.correlate(lanes, turned[None], None, "constant", 0.0, (0, *origins))
    for axis, n in enumerate(x.shape):
        if kernel.shape[axis] > 1:
            z = _folded(z, axis + 1, n, starts[axis], mode)
    return cast(into(x, Chunk(z)), x.dtype)


def _kernel_adjoint(
    y_bar: Any,
    x: Any,
    lengths: Sequence[int],
    starts: Sequence[int],
    mode: str,
    cval: Any,
    conjugated: bool,
) -> Chunk:
    """The cotangent of the kernel: at each of its places, that of y times what the place read."""
    mode = _MODES.get(mode, mode)
    x = x if hasattr(x, "dtype") else np.asarray(x)
    x = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    shape = x.shape
    read = extended(x, lengths, starts, mode, cval)
    lanes = np.reshape(y_bar.lanes, (y_bar.n, -1))
    if conjugated:
        lanes = np.conjugate(lanes)
    else:
        read = np.conjugate(read)
    columns = []
    for k in np.ndindex(*lengths):
        window = read[tuple(slice(a, a + n) for a, n in zip(k, shape, strict=True))]
        columns.append(lanes @ np.reshape(window, (-1,)))
    return Chunk(np.reshape(np.stack(columns, axis=-1), (y_bar.n, *lengths)))


# -- along one axis


def result_dtype(x: Any, weights: Any, output: Any) -> np.dtype[Any]:
    """The dtype of what a filter returns."""
    dtype = x.dtype if output is None else np.dtype(output)
    if x.dtype.kind == "c" or getattr(weights, "dtype", dtype).kind == "c":
        return np.promote_types(dtype, np.complex64)
    return dtype


def _one_axis_law(
    function: Any,
    x: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Chunk:
    """All lanes of the image at once; those of the weights one after the other."""
    dtype = result_dtype(x, weights, output)
    if isinstance(x, Chunk):
        axis = axis % x.ndim + 1
        return Chunk(function(x.lanes, weights, axis, dtype, mode, 0.0, origin))
    lanes = [function(x, lane, axis, dtype, mode, cval, origin) for lane in weights.lanes]
    return Chunk(np.stack(lanes))


def _one_axis(adjoint: Any) -> Any:
    """The adjoint along one axis, of one along several."""

    def along_one(
        y_bar: Any,
        x: Any,
        weights: Any,
        axis: int = -1,
        output: Any = None,
        mode: str = "reflect",
        cval: Any = 0.0,
        origin: int = 0,
        *,
        convolves: bool,
    ) -> Any:
        return adjoint(
            y_bar, x, weights, output, mode, cval, origin, axes=axis, convolves=convolves
        )

    return along_one


# -- along several axes


def _full_form(
    ndim: int, weights_shape: Sequence[int], origin: Any, axes: Any
) -> tuple[tuple[int, ...], list[int]]:
    """Shape and origins of the weights with an axis for each axis of the image."""
    over = range(ndim) if axes is None else [int(a) % ndim for a in np.ravel(axes)]
    origins = [int(o) for o in np.broadcast_to(origin, (len(over),))]
    if len(over) == ndim:  # SciPy then takes both in the order of the image's axes
        return tuple(weights_shape), origins
    full = [0] * ndim
    for a, o in zip(over, origins, strict=True):
        full[a] = o
    lengths = iter(weights_shape)
    return tuple(next(lengths) if a in over else 1 for a in range(ndim)), full


def _many_axes_law(
    function: Any,
    x: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Chunk:
    """All lanes of the image at once; those of the weights one after the other."""
    dtype = result_dtype(x, weights, output)
    weights = weights if hasattr(weights, "dtype") else np.asarray(weights)
    shape, origins = _full_form(x.ndim, weights.shape, origin, axes)
    weights = np.reshape(weights, shape)
    if isinstance(x, Chunk):
        return Chunk(function(x.lanes, weights[None], dtype, mode, 0.0, (0, *origins)))
    return Chunk(
        np.stack([function(x, lane, dtype, mode, cval, origins) for lane in weights.lanes])
    )


def _many_axes_input(
    y_bar: Any,
    x: Space,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    convolves: bool,
) -> Any:
    """The adjoint with respect to the image."""
    refuse_symbols(y_bar)
    weights = weights if hasattr(weights, "dtype") else np.asarray(weights)
    shape, origins = _full_form(x.ndim, weights.shape, origin, axes)
    kernel = np.reshape(weights, shape)
    starts = [_start(m, o, convolves) for m, o in zip(shape, origins, strict=True)]
    kernel = np.flip(kernel) if convolves else kernel
    return _input_adjoint(y_bar, x, kernel, starts, mode, not convolves)


def _many_axes_weights(
    y_bar: Any,
    x: Any,
    weights: Space,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    convolves: bool,
) -> Any:
    """The adjoint with respect to the weights."""
    refuse_symbols(y_bar)
    shape, origins = _full_form(y_bar.ndim, weights.shape, origin, axes)
    starts = [_start(m, o, convolves) for m, o in zip(shape, origins, strict=True)]
    kernel_bar = _kernel_adjoint(y_bar, x, shape, starts, mode, cval, not convolves)
    kernel_bar = np.flip(kernel_bar) if convolves else kernel_bar
    return cast(into(weights, np.reshape(kernel_bar, weights.shape)), weights.dtype)


# -- running means


def _mean_law(
    function: Any,
    x_dot: Chunk,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Chunk:
    """All lanes at once."""
    dtype = result_dtype(x_dot, None, output)
    return Chunk(function(x_dot.lanes, size, axis % x_dot.ndim + 1, dtype, mode, 0.0, origin))


@transpose_by_name("scipy.ndimage.uniform_filter1d", argnum=0)
def uniform_filter1d_transpose(
    y_bar: Any,
    input: Space,  # noqa: A002  (SciPy's own name)
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """A correlation with equal weights."""
    weights = np.full(int(size), 1.0 / size)
    return _many_axes_input(
        y_bar, input, weights, output, mode, cval, origin, axes=axis, convolves=False
    )


# -- registration


def keep_derivatives(function: Any) -> None:
    """Make a filter raise where it would round a value with a derivative to integers."""
    rule = RULES[function]
    body = rule.body

    def checked(primals: Any, tangents: Any, **options: Any) -> Any:
        y, y_dot = body(primals, tangents, **options)
        dtype = getattr(plain(y), "dtype", None) or y.dtype
        if dtype.kind not in "fc" and not isinstance(y_dot, Zero):
            raise DualLeakError(
                f"{function_name(function)} returns an array of dtype {dtype} here, which cannot "
                "hold a derivative: make its input float, or pass output=float"
            )
        return y, y_dot

    rule.body = checked


def law_by_name(dotted: str, lanes: Any) -> None:
    """Enter a function into the closed list; its law gets the function, too."""
    when_imported(dotted, lambda function: law(function)(functools.partial(lanes, function)))


for _name, _convolves in (
    ("correlate1d", False),
    ("convolve1d", True),
    ("correlate", False),
    ("convolve", True),
):
    _dotted, _is_along_one = f"scipy.ndimage.{_name}", _name.endswith("1d")
    multilinear(_dotted, argnums=("input", "weights"))
    when_imported(_dotted, keep_derivatives)
    law_by_name(_dotted, _one_axis_law if _is_along_one else _many_axes_law)
    for _argnum, _adjoint in enumerate((_many_axes_input, _many_axes_weights)):
        _own = _one_axis(_adjoint) if _is_along_one else _adjoint
        transpose_by_name(_dotted, argnum=_argnum)(functools.partial(_own, convolves=_convolves))

linear("scipy.ndimage.uniform_filter1d", argnums="input")
when_imported("scipy.ndimage.uniform_filter1d", keep_derivatives)
law_by_name("scipy.ndimage.uniform_filter1d", _mean_law)
