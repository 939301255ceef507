"""Functions that put arrays together, or repeat and move their elements."""

from __future__ import annotations

import numpy as np

from fwdad.ops.record import Layout, Risk, also, op

op(np.concatenate, np.stack, np.hstack, np.vstack, layout=Layout.KEPT, joins=True)
also(np.concatenate, np.stack, writes_early=True)
op(np.column_stack, joins=True)
op(np.dstack, joins=True, of_arrays=True)
op(np.block, np.ix_, np.lexsort, of_arrays=True)
op(np.roll, np.tile, layout=Layout.KEPT, moves=True)
op(np.repeat, layout=Layout.C, moves=True, risk=Risk.RAISES)
op(np.pad, np.triu, np.tril, layout=Layout.KEPT)
