"""``np.mgrid`` and ``np.ogrid``: coordinates of grids, whose bounds and steps may be values."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number


@builtin(type(np.mgrid).__getitem__)
def _grid(tracer: Tracer, o: Any, key: Any) -> Any:
    """``np.mgrid[0:h, 0:w]``: NumPy counts the points, and steps from the first one."""
    if isinstance(key, slice):
        return _line(tracer, key)
    if not isinstance(key, tuple) or not all(isinstance(part, slice) for part in key):
        return native(operator.getitem, o, tracer.values.known(key))
    ends = [_ends(part) for part in key]
    dtype = np.result_type(0, *(_example(_size_of(x)) for part in ends for x in part))
    lines = [_points(tracer, part, dtype) for part in ends]
    sparse = o is np.ogrid
    parts = tracer.call(np.meshgrid, tuple(lines), {"indexing": "ij", "sparse": sparse})
    return tuple(parts) if sparse else tracer.call(np.stack, (list(parts),), {})


def _line(tracer: Tracer, key: slice) -> Any:
    """Coordinates along a single axis."""
    start, stop, step = _ends(key)
    if not isinstance(step, complex):
        return tracer.call(np.arange, (start, stop, step), {})
    dtype = np.result_type(*(_example(x) for x in (start, stop, abs(step))))
    return _points(tracer, (start, stop, step), dtype)


def _ends(key: slice) -> tuple[Any, Any, Any]:
    return 0 if key.start is None else key.start, key.stop, 1 if key.step is None else key.step


def _points(tracer: Tracer, ends: tuple[Any, Any, Any], dtype: Any) -> Any:
    """One axis; an imaginary step is the number of points, the last one included."""
    start, stop, step = ends
    span = tracer.binary(operator.sub, stop, start)
    if isinstance(step, complex):
        count: Any = int(abs(step))
        step = count if count == 1 else tracer.binary(operator.truediv, span, float(count - 1))
    else:
        count = tracer.call(math.ceil, (tracer.binary(operator.truediv, span, step),), {})
    points = tracer.call(np.arange, (count,), {"dtype": dtype})
    return tracer.binary(operator.add, tracer.binary(operator.mul, points, step), start)


def _size_of(x: Any) -> Any:
    """A step as it enters the dtype: the absolute value of an imaginary one."""
    return abs(x) if isinstance(x, complex) else x


def _example(x: Any) -> Any:
    """A number of the same kind, since ``np.result_type`` treats Python's numbers specially."""
    if type(x) is not Symbol:
        return x
    one = x.type.dtype.type(0)
    return one.item() if isinstance(x.type, Number) and x.type.python else one
