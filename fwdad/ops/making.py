"""Functions that make arrays, of nothing or of few numbers, and those that copy."""

from __future__ import annotations

import numpy as np

from fwdad.ops.record import Layout, Risk, also, op

op(np.zeros, np.empty, layout=Layout.C, order_at=2, constant=True, fill=0, has_loop=True)
op(np.ones, layout=Layout.C, order_at=2, constant=True, fill=1, has_loop=True)
op(np.eye, np.identity, layout=Layout.C, has_loop=True)
op(np.tri, layout=Layout.C)
op(np.full, layout=Layout.C, order_at=3, made_of_values=True, has_loop=True)
op(np.arange, layout=Layout.C, made_of_values=True, risk=Risk.RAISES)
op(np.linspace, made_of_values=True, has_loop=True, risk=Risk.RAISES)
op(np.logspace, np.geomspace, made_of_values=True)
op(
    np.zeros_like, np.empty_like,
    layout=Layout.KEPT, order_at=2, shape_only=(0,), constant=True, fill=0, risk_alone=Risk.QUIET,
)  # fmt: skip
op(
    np.ones_like,
    layout=Layout.KEPT, order_at=2, shape_only=(0,), constant=True, fill=1, risk_alone=Risk.QUIET,
)  # fmt: skip
op(np.full_like, layout=Layout.KEPT, order_at=3, shape_only=(0,), made_of_values=True)

# -- copies
op(
    np.copy,
    layout=Layout.KEPT, order_at=1, moves=True, passes=True, risk_alone=Risk.QUIET,
)  # fmt: skip
op(np.ndarray.copy, layout=Layout.C, order_at=1, moves=True, passes=True, risk=Risk.QUIET)
op(
    np.ndarray.flatten,
    layout=Layout.C, order_at=1, moves=True, reads_in_order=True, stands_for=np.ravel,
    risk=Risk.QUIET,
)  # fmt: skip
op(np.ndarray.item, passes=True)

# -- questions about types and shapes
op(
    np.finfo, np.iinfo, np.dtype, np.result_type, np.promote_types, np.can_cast, np.isscalar,
    np.broadcast_shapes, np.errstate, np.ndim, np.shape, np.size,
    about_types=True,
)  # fmt: skip

# -- made of text or of the counts of values
op(np.fromstring, np.histogram, np.histogram2d, np.histogramdd, risk=Risk.RAISES)

# -- arrays of other classes
op(np.ma.MaskedArray, np.ma.array, np.ma.asarray, cannot_carry="masked arrays")
op(np.matrix, np.asmatrix, cannot_carry="numpy.matrix")
also(
    np.polyadd, np.polysub, np.polymul, np.polydiv, np.polyder, np.polyint, np.polyval,
    takes_polynomials=True,
)  # fmt: skip
