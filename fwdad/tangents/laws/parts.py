"""The closed list: copies, and the real and imaginary parts, which are R-linear.

The transposes of these functions are next to their rules in ``fwdad/rules``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import law
from fwdad.tangents.zero import ZERO


@law(np.copy, np.asarray, np.ascontiguousarray, np.positive)
def _same(a_dot: Chunk, *_args: Any, **_kwargs: Any) -> Chunk:
    return a_dot


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
