"""What eigenvalues and singular values have in common: gaps, and when two values are one."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.tangents.chunk import plain


def resolution(w: Any) -> Any:
    """The distance under which computed eigenvalues or singular values are one."""
    raw = np.asarray(plain(w))
    if raw.shape[-1] == 0:
        return np.zeros((*raw.shape[:-1], 1))
    return raw.shape[-1] * np.finfo(raw.dtype).eps * np.max(np.abs(raw), axis=-1, keepdims=True)


def is_repeated(w: Any) -> bool:
    """Whether two values of any spectrum in a stack are equal to rounding."""
    raw = np.asarray(plain(w))
    gaps = np.abs(raw[..., None, :] - raw[..., :, None])
    apart = np.eye(raw.shape[-1], dtype=bool) | (gaps > resolution(w)[..., None])
    return not np.all(apart)


def inverse_gaps(w: Any) -> Any:
    """1 / (w_j − w_i) at row i and column j, zero on the diagonal."""
    eye = np.eye(w.shape[-1], dtype=bool)
    gaps = w[..., None, :] - w[..., :, None]
    return np.where(eye, 0, 1 / np.where(eye, 1, gaps))


def matrix_diagonal(m: Any) -> Any:
    """The diagonal of a matrix, or of each in a stack."""
    return np.diagonal(m, 0, -2, -1)
