"""The closed list: Fourier transforms, sliding products, tables.

The transposes of these functions are next to their rules in ``fwdad/rules``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import NonlinearTangentError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import axes_of, axis_of, law


def _fft_one(transform: Callable[..., Any]) -> None:
    @law(transform)
    def one(
        a_dot: Chunk, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None
    ) -> Chunk:
        return Chunk(transform(a_dot.lanes, n, axis_of(axis, a_dot.ndim), norm))


def _fft_many(transform: Callable[..., Any], default: Any) -> None:
    @law(transform)
    def many(
        a_dot: Chunk, s: Any = None, axes: Any = default, norm: Any = None, out: None = None
    ) -> Chunk:
        if axes is None:
            axes = tuple(range(-len(s), 0)) if s is not None else tuple(range(a_dot.ndim))
        return Chunk(transform(a_dot.lanes, s, tuple(axis_of(a, a_dot.ndim) for a in axes), norm))


for _transform in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft):
    _fft_one(_transform)
for _transform in (np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2):
    _fft_many(_transform, (-2, -1))
for _transform in (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn):
    _fft_many(_transform, None)


@law(np.fft.fftshift)
def _fftshift(x_dot: Chunk, axes: Any = None) -> Chunk:
    return Chunk(np.fft.fftshift(x_dot.lanes, axes_of(axes, x_dot.ndim)))


@law(np.fft.ifftshift)
def _ifftshift(x_dot: Chunk, axes: Any = None) -> Chunk:
    return Chunk(np.fft.ifftshift(x_dot.lanes, axes_of(axes, x_dot.ndim)))


def _sliding(f: Callable[..., Any], default: str) -> None:
    @law(f)
    def slide(a: Any, v: Any, mode: str = default) -> Chunk:
        if isinstance(a, Chunk) and isinstance(v, Chunk):
            raise NonlinearTangentError(f"numpy.{f.__name__} of two tangents is not linear")
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
