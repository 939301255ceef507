"""Memory of the calling thread's own, in kernels."""

from __future__ import annotations

import numpy as np

from fwdad.ops.record import own_op


@own_op()
def local_array(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Allocate memory of the calling thread's own; nothing is stored in it."""
    return np.empty(shape, dtype)
