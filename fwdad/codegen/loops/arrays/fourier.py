"""Discrete Fourier transforms of vectors, for the Numba source."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import FLOAT64, as_array, handles
from fwdad.codegen.loops.arrays.products import as_dtype
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.runtime import fourier

COMPLEX128 = np.dtype(complex)
_FORWARD = {"backward": fourier.ONE, "ortho": fourier.ROOT, "forward": fourier.INVERSE}
_INVERSE = {"backward": fourier.INVERSE, "ortho": fourier.ROOT, "forward": fourier.ONE}


@handles(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
def _transform(w: Parts, op: Any, a, n=None, axis=-1, norm=None, out=None):
    name = op.function.__name__
    a = as_array(w, a)
    if a.type.ndim != 1 or axis not in (-1, 0) or out is not None or not fourier.available():
        raise TypeError("along an axis of an array, or into one")
    powers = _INVERSE if name.startswith("i") else _FORWARD
    made = FLOAT64 if name == "irfft" else COMPLEX128
    norm = "backward" if norm is None else norm
    if op.outputs[0].type.dtype != made or norm not in powers:
        raise TypeError(f"of {a.type.dtype}, or with an unknown norm")
    x = as_dtype(w, a, FLOAT64 if name == "rfft" else COMPLEX128)
    if n is None:
        length = f"2 * ({x}.shape[0] - 1)" if name == "irfft" else f"{x}.shape[0]"
    else:
        length = w.operands.index_text(n)
    return f"{w.helpers.use(f'fourier_{name}')}({x}, {length}, {powers[norm]})"
