"""Elementwise functions as terms, beside NumPy's ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.codegen.loops.terms.number_terms import Term, cast, literal, numpy_number
from fwdad.codegen.loops.terms.numpy_terms import as_ufunc, numpy_term, where_term
from fwdad.ir.ops import Apply
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.straight import with_derivative_of


def _clip(dtype: np.dtype[Any], x: Term, low: Term, high: Term) -> Term:
    term = numpy_term(np.minimum, [numpy_term(np.maximum, [x, low]), high])
    return cast(term, dtype)


def _scale(dtype: np.dtype[Any], d: Term, lanes: Term) -> Term:
    """A product in which a lane that is zero stays zero, whatever the partial is."""
    product = cast(numpy_term(np.multiply, [d, lanes]), dtype)
    zero = literal(0, numpy_number(dtype))
    return Term(f"{zero} if {lanes.at(1)} == 0 else {product.at(1)}", -2, numpy_number(dtype))


ELEMENTWISE: dict[Any, Callable[..., Term]] = {
    scale_lanes: _scale,
    sum_to: lambda _dtype, x: x,
    np.ndarray.copy: lambda _dtype, x: x,
    np.clip: _clip,
    np.where: lambda dtype, c, a, b: where_term(c, a, b, dtype),
    with_derivative_of: lambda dtype, value, _: cast(value, dtype),
}


def arity(op: Apply) -> int | None:
    """How many arguments an elementwise function takes, or None for other functions."""
    ufunc = as_ufunc(op.function)
    if ufunc is not None and len(op.args) == ufunc.nin and not op.kwargs:
        return ufunc.nin
    if op.function is np.where and len(op.args) == 3:
        return 3
    try:
        known = op.function in ELEMENTWISE
    except TypeError:
        return None
    return len(op.args) if known and not op.kwargs else None
