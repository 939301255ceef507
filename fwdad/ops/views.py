"""Functions whose results are views, always or sometimes."""

from __future__ import annotations

import numpy as np

from fwdad.ops.record import Layout, Memory, Risk, of_numpy, op

# -- all elements, in another shape or order
op(
    np.expand_dims, np.squeeze, np.atleast_1d, np.atleast_2d,
    memory=Memory.VIEW, mirrored=True, moves=True, layout=Layout.SAME,
)  # fmt: skip
op(
    np.flip, np.flipud, np.fliplr,
    memory=Memory.VIEW, mirrored=True, moves=True, layout=Layout.FALLING,
)  # fmt: skip
op(
    np.transpose, np.matrix_transpose, np.swapaxes, np.moveaxis, np.rollaxis,
    np.rot90,
    memory=Memory.VIEW, mirrored=True, moves=True, layout=Layout.TURNED,
)  # fmt: skip
op(
    np.reshape,
    memory=Memory.IF_CONTIGUOUS, mirrored=True, moves=True, order_at=2, by_layout=True,
    reads_in_order=True,
)  # fmt: skip
op(
    np.ravel,
    memory=Memory.IF_CONTIGUOUS, mirrored=True, moves=True, order_at=1, by_layout=True,
    reads_in_order=True, risk_alone=Risk.QUIET,
)  # fmt: skip

# -- some elements, or some of them several times
op(
    np.diagonal,
    memory=Memory.VIEW, read_only=True, mirrored=True, moves=True, layout=Layout.TURNED,
)  # fmt: skip
op(
    np.broadcast_to,
    memory=Memory.VIEW, read_only=True, mirrored=True, moves=True, layout=Layout.REPEATED,
)  # fmt: skip
op(np.broadcast_arrays, memory=Memory.VIEW, read_only=True, several=True, of_arrays=True)
op(np.split, np.array_split, memory=Memory.VIEW, several=True, mirrored=True, layout=Layout.FALLING)
op(np.hsplit, np.vsplit, np.dsplit, memory=Memory.VIEW, several=True)
op(np.lib.stride_tricks.sliding_window_view, memory=Memory.VIEW, read_only=True)
op(np.lib.stride_tricks.as_strided, memory=Memory.UNKNOWN, sees_strides=True)
op(np.frombuffer, memory=Memory.MAYBE, sees_strides=True)
op(
    np.real, np.imag,
    memory=Memory.MAYBE, mirrored=True, layout=Layout.FALLING, risk_alone=Risk.QUIET,
)  # fmt: skip
op(np.real_if_close, memory=Memory.MAYBE, dtype_of_values=True)
op(np.trim_zeros, memory=Memory.MAYBE, lengths_of_values=(0,))
op(
    np.atleast_3d, np.diag, np.fix, np.linalg.diagonal, np.linalg.matrix_transpose, np.resize,
    *of_numpy("astype", "unstack"),
    memory=Memory.MAYBE,
)  # fmt: skip
op(np.einsum, np.meshgrid, memory=Memory.MAYBE, of_arrays=True)

# -- the argument itself, if it already is what is asked for
op(
    np.array,
    memory=Memory.MAYBE, layout=Layout.KEPT, by_layout=True, gathers=True, passes=True,
)  # fmt: skip
op(
    np.asarray, np.asanyarray,
    memory=Memory.MAYBE, mirrored=True, order_at=2, by_layout=True, gathers=True, passes=True,
)  # fmt: skip
op(
    np.ascontiguousarray,
    memory=Memory.MAYBE, by_layout=True, gathers=True, passes=True, moves=True,
)  # fmt: skip
op(np.asfortranarray, memory=Memory.MAYBE, by_layout=True, gathers=True, passes=True)
op(np.asarray_chkfinite, memory=Memory.MAYBE, gathers=True, passes=True, risk=Risk.RAISES)
op(np.require, memory=Memory.MAYBE, by_layout=True)
op(
    np.ndarray.astype,
    memory=Memory.MAYBE, layout=Layout.KEPT, order_at=2, by_layout=True, passes=True,
)  # fmt: skip
