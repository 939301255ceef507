"""Discrete Fourier transforms of NumPy and SciPy.

Each is linear, so the rule is the transform itself, applied to all lanes at once. The transposes
are adjoints under Re<., .>: of the matrix F with scale c that is c Fᴴ, which is the opposite
transform with the scale of the opposite direction; of cutting or padding the input to n elements,
padding or cutting; and of the missing half of a spectrum, counting its twin, or sharing with it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import Space, into, transpose
from fwdad.rules.core.by_name import transpose_by_name
from fwdad.rules.core.define import linear
from fwdad.rules.core.registry import when_imported
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import law
from fwdad.tangents.symbolic import arange, is_known, zeros

_OPPOSITE: dict[Any, Any] = {
    None: "forward",
    "backward": "forward",
    "ortho": "ortho",
    "forward": "backward",
}
"""The scale that the opposite transform needs to be the adjoint."""


def resized(x_bar: Any, n: int, axis: int) -> Any:
    """Cut an axis to length n, or pad it with zeros: the adjoint of padding it, or cutting."""
    axis %= x_bar.ndim
    m = x_bar.shape[axis]
    if not is_known(n, m):
        array = zeros(tuple(n if k == axis else d for k, d in enumerate(x_bar.shape)), x_bar.dtype)
        both = slice(np.minimum(n + 0, m + 0))  # as numbers of the tape
        at = tuple(both if k == axis else slice(None) for k in range(x_bar.ndim))
        array[at] = x_bar[at]
        return array
    missing = n - m
    if missing > 0:
        return np.pad(x_bar, [(0, missing if k == axis else 0) for k in range(x_bar.ndim)])
    cut = tuple(slice(n) if k == axis else slice(None) for k in range(x_bar.ndim))
    return x_bar[cut] if missing else x_bar


# -- the adjoints of the transforms along one axis of an input that is already cut or padded for
# -- n elements of the result


def _fft_adjoint(y_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return np.fft.ifft(y_bar, None, axis, _OPPOSITE[norm])


def _ifft_adjoint(y_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return np.fft.fft(y_bar, None, axis, _OPPOSITE[norm])


def _rfft_adjoint(y_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return np.fft.irfft(_times_paired(y_bar, n, axis, 0.5), n, axis, _OPPOSITE[norm])


def _irfft_adjoint(y_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return _times_paired(np.fft.rfft(y_bar, None, axis, _OPPOSITE[norm]), n, axis, 2.0)


def _times_paired(x_bar: Any, n: int, axis: int, c: float) -> Any:
    """A half spectrum, c times where the whole one of length n has a conjugate twin."""
    axis %= x_bar.ndim
    k, number = arange(x_bar.shape[axis]), np.zeros(0, x_bar.dtype).real.dtype.type
    weights = np.where((k == 0) | (2 * k == n), number(1.0), number(c))
    return x_bar * weights[tuple(slice(None) if i == axis else None for i in range(x_bar.ndim))]


def _hfft_adjoint(y_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return np.conjugate(_irfft_adjoint(y_bar, n, axis, _OPPOSITE[norm]))


def _ihfft_adjoint(y_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return _rfft_adjoint(np.conjugate(y_bar), n, axis, _OPPOSITE[norm])


_ADJOINTS = {
    "fft": _fft_adjoint,
    "ifft": _ifft_adjoint,
    "rfft": _rfft_adjoint,
    "irfft": _irfft_adjoint,
    "hfft": _hfft_adjoint,
    "ihfft": _ihfft_adjoint,
}
_HALF_TO_REAL = ("irfft", "hfft")


def _one_axis_transpose(
    y_bar: Any,
    x: Space,
    n: int | None = None,
    axis: int = -1,
    norm: Any = None,
    *,
    name: str,
    **_: Any,
) -> Any:
    """The adjoint of a transform along one axis."""
    n_in = x.shape[axis]
    if n is None:  # lengths need not be known, then
        n = 2 * (n_in - 1) if name in _HALF_TO_REAL else n_in
        return into(x, _ADJOINTS[name](y_bar, n, axis, norm))
    return into(x, resized(_ADJOINTS[name](y_bar, n, axis, norm), n_in, axis))


# A transform of several axes: which one the last axis has, and which the others, and whether the
# last axis comes first.
_COMPOSED = {
    "fft": ("fft", "fft", True),
    "ifft": ("ifft", "ifft", True),
    "rfft": ("rfft", "fft", True),
    "irfft": ("irfft", "ifft", False),
    "hfft": ("hfft", "fft", False),
    "ihfft": ("ihfft", "ifft", True),
}


def _many_axes_transpose(
    y_bar: Any,
    x: Space,
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    *,
    name: str,
    **_: Any,
) -> Any:
    """The adjoint of a transform along several axes: the adjoints of its steps, backwards."""
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(x.ndim)
    axes = [a % x.ndim for a in axes]
    last, other, last_first = _COMPOSED[name]
    steps = [*((a, k, other) for k, a in enumerate(axes[:-1])), (axes[-1], len(axes) - 1, last)]
    lengths = list(x.shape)
    run = []
    for axis, k, step in reversed(steps) if last_first else steps:
        n_in = lengths[axis]
        n = 2 * (n_in - 1) if step in _HALF_TO_REAL else n_in
        is_resized = s is not None and s[k] not in (None, -1)
        if is_resized:
            n = int(s[k])
        run.append((_ADJOINTS[step], n_in, n, axis, is_resized))
        lengths[axis] = n // 2 + 1 if step in ("rfft", "ihfft") else n
    for adjoint, n_in, n, axis, is_resized in reversed(run):
        y_bar = adjoint(y_bar, n, axis, norm)
        if is_resized:
            y_bar = resized(y_bar, n_in, axis)
    return into(x, y_bar)


# -- NumPy

for _name in _ADJOINTS:
    _one = getattr(np.fft, _name)
    linear(_one, argnums=0, signature="(a, n=None, axis=-1, norm=None, out=None)")
    transpose(_one, argnum=0)(functools.partial(_one_axis_transpose, name=_name))

for _name in ("fft", "ifft", "rfft", "irfft"):
    for _many, _default in ((f"{_name}2", "(-2, -1)"), (f"{_name}n", "None")):
        _function = getattr(np.fft, _many)
        linear(_function, argnums=0, signature=f"(a, s=None, axes={_default}, norm=None, out=None)")
        transpose(_function, argnum=0)(functools.partial(_many_axes_transpose, name=_name))

linear(np.fft.fftshift, argnums=0, signature="(x, axes=None)")
linear(np.fft.ifftshift, argnums=0, signature="(x, axes=None)")


@transpose(np.fft.fftshift, argnum=0)
def fftshift_transpose(y_bar: Any, x: Space, axes: Any = None) -> Any:
    """A rotation is orthogonal."""
    return np.fft.ifftshift(y_bar, axes)


@transpose(np.fft.ifftshift, argnum=0)
def ifftshift_transpose(y_bar: Any, x: Space, axes: Any = None) -> Any:
    """A rotation is orthogonal."""
    return np.fft.fftshift(y_bar, axes)


# -- SciPy: the same transforms, with more options


def _one_axis_law(
    function: Any,
    x_dot: Chunk,
    n: int | None = None,
    axis: int = -1,
    norm: Any = None,
    *_: Any,
    **__: Any,
) -> Chunk:
    """Transform all lanes at once; they are never overwritten."""
    return Chunk(function(x_dot.lanes, n, axis % x_dot.ndim + 1, norm))


_TWO = object()


def _many_axes_law(
    function: Any,
    x_dot: Chunk,
    s: Any = None,
    axes: Any = _TWO,
    norm: Any = None,
    *_: Any,
    **__: Any,
) -> Chunk:
    """Transform all lanes at once, along the function's own axes but never the lane axis."""
    if axes is _TWO:
        axes = (-2, -1) if function.__name__.endswith("2") else None
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(x_dot.ndim)
    return Chunk(function(x_dot.lanes, s, [a % x_dot.ndim + 1 for a in axes], norm))


def _register_by_name(name: str, default: str | None) -> None:
    dotted = f"scipy.fft.{name}"
    given = "n=None, axis=-1" if default is None else f"s=None, axes={default}"
    options = "norm=None, overwrite_x=False, workers=None, *, plan=None"
    linear(dotted, argnums=0, signature=f"(x, {given}, {options})")
    one = name.rstrip("2n") if default is not None else name
    lanes, adjoint = (
        (_one_axis_law, _one_axis_transpose)
        if default is None
        else (_many_axes_law, _many_axes_transpose)
    )
    when_imported(dotted, lambda f: law(f)(functools.partial(lanes, f)))
    transpose_by_name(dotted, argnum=0)(functools.partial(adjoint, name=one))


for _name in _ADJOINTS:
    _register_by_name(_name, None)
    _register_by_name(f"{_name}2", "(-2, -1)")
    _register_by_name(f"{_name}n", "None")
