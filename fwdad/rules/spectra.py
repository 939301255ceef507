"""Helpers for spectra: gaps, and when two eigenvalues or singular values count as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.define import elementwise
from fwdad.rules.core.partials import no_derivative
from fwdad.tangents.symbolic import apply, array_of, as_traced, defined

_NOT_A_NUMBER = no_derivative("it is not a number")
for _function in (defined, as_traced):
    elementwise(_function, lambda x, bad, reason, y: 1.0, _NOT_A_NUMBER, _NOT_A_NUMBER)


def resolution(w: Any) -> Any:
    """The distance below which computed eigenvalues or singular values count as one."""
    raw = array_of(w)
    unit = float(np.finfo(raw.dtype).eps)
    return raw.shape[-1] * unit * np.max(np.abs(raw), axis=-1, keepdims=True, initial=0.0)


def is_repeated(w: Any) -> Any:
    """Whether two values of any spectrum in a stack are equal to rounding."""
    raw = array_of(w)
    gaps = np.abs(raw[..., None, :] - raw[..., :, None])
    apart = apply(np.eye, raw.shape[-1], dtype=bool) | (gaps > resolution(w)[..., None])
    return np.logical_not(np.all(apart))


def inverse_gaps(w: Any) -> Any:
    """1 / (w_j − w_i) at row i and column j, zero on the diagonal."""
    eye = apply(np.eye, w.shape[-1], dtype=bool)
    gaps = w[..., None, :] - w[..., :, None]
    return np.where(eye, 0, 1 / np.where(eye, 1, gaps))


def matrix_diagonal(m: Any) -> Any:
    """The diagonal of a matrix, or of each in a stack."""
    return np.diagonal(m, 0, -2, -1)
