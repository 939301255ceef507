"""Filters of SciPy's images that choose an element: ranks, medians, percentiles and extremes.

The element that is chosen depends on the order of the values alone. So the same filter, of the
ranks of all elements in place of their values, tells which one it is, and its tangent is that of
the result. Where several elements are equal, the one that comes first in memory has the lowest
rank. What lies beyond the borders of ``mode="constant"`` is ``cval``, and has no tangent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.by_name import Lazy, refuse_symbols
from fwdad.rules.core.define import frule
from fwdad.rules.core.registry import when_imported
from fwdad.rules.scipy_ndimage import keep_derivatives
from fwdad.tangents.zero import ZERO, Zero

ndimage = Lazy("scipy.ndimage")

_NAMES = (
    "rank_filter", "median_filter", "percentile_filter", "minimum_filter", "maximum_filter",
    "minimum_filter1d", "maximum_filter1d",
)  # fmt: skip


def _frule(function: Any, primals: Any, tangents: Any, **options: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    refuse_symbols(x)
    x = x if hasattr(x, "dtype") else np.asarray(x)
    y = function(x, **options)
    if isinstance(x_dot, Zero):
        return y, ZERO
    order = np.argsort(x, axis=None, kind="stable")
    ranks = np.empty(x.size, np.int64)
    ranks[order] = 2 * np.arange(x.size)  # even, so that an odd one stands for cval
    beyond = 2 * np.searchsorted(x.ravel()[order], options.get("cval", 0.0)) - 1
    of_ranks = {**options, "output": np.int64, "cval": beyond}
    found = function(ranks.reshape(x.shape), **of_ranks)
    y_dot = np.ravel(x_dot)[order[np.clip(found // 2, 0, x.size - 1)]]
    inside = found % 2 == 0
    return y, y_dot if np.all(inside) else np.where(inside, y_dot, 0.0)


def _register(name: str) -> None:
    dotted = f"scipy.ndimage.{name}"

    @frule(dotted, argnums=("input",))
    def body(primals: Any, tangents: Any, **options: Any) -> Any:
        return _frule(getattr(ndimage, name), primals, tangents, **options)

    when_imported(dotted, keep_derivatives)


for _name in _NAMES:
    _register(_name)
