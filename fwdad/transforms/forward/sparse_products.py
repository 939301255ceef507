"""Products with a sparse matrix of a known pattern, of tangents that are kept by places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.tangents.plain import plain
from fwdad.tangents.scattered import added, stays_placed
from fwdad.tangents.sparse import coordinates
from fwdad.tangents.symbolic import is_known
from fwdad.tangents.zero import ZERO, Zero


def pushed_product(
    data: Any,
    x: Any,
    layout: str,
    major: Any,
    minor: Any,
    shape: tuple[int, int],
    data_dot: Any,
    x_dot: Any,
) -> Any:
    """The tangent of :func:`~fwdad.tangents.sparse.sparse_product`; None if places are unknown."""
    columns = np.shape(plain(x))[1:]
    if not is_known(major, minor, *columns):
        return None
    i, j = coordinates(layout, major, minor)
    total: Any = ZERO
    for t, a, b in ((data_dot, data_dot, x), (x_dot, data, x_dot)):
        if isinstance(t, Zero):
            continue
        if not stays_placed(t):
            return None
        each = a[:, None] * np.take(b, j, 0) if columns else a * np.take(b, j, 0)
        rows = np.arange(math.prod((shape[0], *columns))).reshape((shape[0], *columns))[i]
        total = total + added(each, rows, (shape[0], *columns))
    return total
