"""Sums, means, extremes and sorting, along axes."""

from __future__ import annotations

import numpy as np

from fwdad.ops.record import Layout, Risk, also, op

op(np.sum, layout=Layout.KEPT, reduction=np.add, risk_alone=Risk.WARNS)
op(np.prod, layout=Layout.KEPT, reduction=np.multiply, risk_alone=Risk.WARNS)
op(np.max, np.amax, layout=Layout.KEPT, reduction=np.maximum, start=-np.inf)
op(np.min, np.amin, layout=Layout.KEPT, reduction=np.minimum, start=np.inf)
op(np.cumsum, layout=Layout.KEPT, accumulation=np.add, risk_alone=Risk.WARNS)
op(np.cumprod, layout=Layout.KEPT, accumulation=np.multiply, risk_alone=Risk.WARNS)
op(np.mean, np.var, np.std, layout=Layout.KEPT, risk_alone=Risk.WARNS)
op(np.any, np.all, layout=Layout.KEPT, risk_alone=Risk.QUIET)
op(
    np.argmax, np.argmin, np.nansum, np.sort, np.argsort, np.diff, np.round,
    layout=Layout.KEPT,
)  # fmt: skip
also(np.ptp, writes_early=True)
op(np.percentile, np.quantile, np.nanpercentile, np.nanquantile, risk=Risk.RAISES)
