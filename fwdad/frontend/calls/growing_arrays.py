"""Growing lists in NumPy's functions, where they become arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.ir.symbol import Symbol
from fwdad.ops import record_of


def _joined(o: Items) -> Symbol:
    """The items concatenated along their first axis."""
    rows, recorder = o.rows(), o.tracer.recorder
    rest = [recorder.length(rows, k) for k in range(2, rows.type.ndim)]
    symbol: Symbol = recorder.apply(np.reshape, (o.array(), (-1, *rest)), {})
    return symbol


def _concatenated(o: Items, axis: Any = 0) -> Any:
    o.not_empty("need at least one array to concatenate")
    rank = o.rows().type.ndim - 1
    if rank < 1 or axis not in (0, -rank):
        o.refused("`np.concatenate` along this axis of")
    return _joined(o)


def _stacked(o: Items, axis: Any = 0) -> Any:
    o.not_empty("need at least one array to stack")
    whole = o.array()
    return whole if axis == 0 else o.tracer.recorder.apply(np.moveaxis, (whole, 0, axis), {})


def _vstacked(o: Items) -> Any:
    o.not_empty("need at least one array to concatenate")
    if o.rows().type.ndim == 1:
        return o.tracer.recorder.apply(np.reshape, (o.array(), (-1, 1)), {})
    return o.array() if o.rows().type.ndim == 2 else _joined(o)


def _hstacked(o: Items) -> Any:
    o.not_empty("need at least one array to concatenate")
    if o.rows().type.ndim > 2:
        o.refused("`np.hstack` of matrices in")
    return o.array() if o.rows().type.ndim == 1 else _joined(o)


def _column_stacked(o: Items) -> Any:
    o.not_empty("need at least one array to concatenate")
    if o.rows().type.ndim != 2:
        o.refused("`np.column_stack` of anything but vectors in")
    recorder = o.tracer.recorder
    return recorder.apply(np.transpose, (o.array(),), {})


_SEQUENCES: dict[Any, Callable[..., Any]] = {
    np.concatenate: _concatenated,
    np.stack: _stacked,
    np.vstack: _vstacked,
    np.hstack: _hstacked,
    np.column_stack: _column_stacked,
}


def is_among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a growing list is an argument, or an item of a list or tuple among them."""
    for x in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(x, Items):
            return True
        if type(x) in (list, tuple) and any(isinstance(item, Items) for item in x):
            return True
    return False


def in_numpy(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a NumPy function that joins arrays; ``NotImplemented`` for any other."""
    if not any(f is g for g in _SEQUENCES) or not args or not isinstance(args[0], Items):
        return NotImplemented
    first, *others = args
    if len(others) > 1 or set(kwargs) - {"axis"}:
        first.refused(f"`np.{f.__name__}` with these options on")
    axis = [first.tracer.values.known(a) for a in (*others, *kwargs.values())]
    return _SEQUENCES[f](first, *axis)


def as_arrays(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Arguments of NumPy's functions with growing lists as arrays; of others, unchanged."""
    module = (getattr(f, "__module__", None) or "").split(".")[0]
    if not (isinstance(f, np.ufunc) or module in ("numpy", "scipy")):
        return args, kwargs

    def array_of(x: Any) -> Any:
        if isinstance(x, Items):
            if record_of(f).of_arrays:
                x.refused(f"`np.{f.__name__}` of")
            return x.array()
        if type(x) in (list, tuple) and any(isinstance(item, Items) for item in x):
            return type(x)(array_of(item) for item in x)
        return x

    return tuple(map(array_of, args)), {key: array_of(x) for key, x in kwargs.items()}
