"""Functions that choose, search and store elements."""

from __future__ import annotations

import numpy as np

from fwdad.ops.record import Layout, Risk, named, op

op(np.where, np.clip, layout=Layout.ELEMENTWISE)
op(np.take_along_axis, layout=Layout.KEPT)
op(np.select, layout=Layout.KEPT, of_arrays=True)
op(np.choose, layout=Layout.KEPT, of_arrays=True, risk=Risk.RAISES)
op(np.take, layout=Layout.C)

# -- as many as the values say
op(
    np.unique, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.nonzero,
    np.flatnonzero, np.argwhere, np.compress, np.extract,
    lengths_of_values=(0,),
)  # fmt: skip
op(np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, lengths_of_values=(0, 1))
op(np.bincount, lengths_of_values=(0,), risk=Risk.RAISES)
named("scipy.signal._peak_finding_utils", "_local_maxima_1d", lengths_of_values=(0,))

# -- indices
op(np.digitize, np.interp, np.unravel_index, np.ravel_multi_index, risk=Risk.RAISES)

# -- stores
op(
    np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis, np.ndarray.sort,
    writes=(0,),
)  # fmt: skip
