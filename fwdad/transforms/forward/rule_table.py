"""Which functions of a tape are treated specially in forward mode, and how."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.leaves import Leaves
from fwdad.ir.ops import Apply
from fwdad.ir.primitives.running_extremes import place_of_extreme, place_of_larger, place_of_smaller

# The operators of numbers and arrays have the rules of NumPy's ufuncs.
RULE_OF: dict[Any, Callable[..., Any]] = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply,
    operator.truediv: np.true_divide, operator.floordiv: np.floor_divide,
    operator.mod: np.remainder, operator.pow: np.power, operator.matmul: np.matmul,
    operator.neg: np.negative, operator.pos: np.positive, abs: np.absolute,
    np.ndarray.flatten: np.ravel,
}  # fmt: skip


CONSTANT = {
    bool, int, round, operator.not_, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne, operator.invert, operator.and_, operator.or_, operator.xor,
    place_of_extreme, place_of_larger, place_of_smaller,
}  # fmt: skip


GATHERING = {
    np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray,
    np.asarray_chkfinite,
}  # fmt: skip


# return a view exactly where the same call on the lanes, which are laid out alike, returns one
MIRRORED = {
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.squeeze, np.expand_dims, np.moveaxis,
    np.broadcast_to, np.asarray, np.asanyarray, np.real, np.imag, np.diagonal, np.flip, np.flipud,
    np.fliplr, np.rot90, np.rollaxis, np.matrix_transpose, np.split, np.array_split,
    np.atleast_1d, np.atleast_2d,
}  # fmt: skip


# of one value
PASSING = GATHERING | {float, complex, np.copy, *(
    getattr(np.ndarray, name) for name in ("item", "copy", "astype")
)}  # fmt: skip


def ruled_function(op: Apply) -> Any:
    """The function whose rule a call uses."""
    function = op.function.function if isinstance(op.function, Leaves) else op.function
    return RULE_OF.get(function, function)
