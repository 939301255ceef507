"""The types of what SciPy's compiled code of splines returns: it does not check lengths or knots."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import ArrayType, CannotInferError, Dimension, Size, Type, number_type, type_of
from fwdad.rules.core.registry import RULES, when_imported

_FLOAT, _INT = np.dtype(float), np.dtype(np.intc)


def _array(*lengths: Dimension, dtype: Any = _FLOAT) -> ArrayType:
    return ArrayType(np.dtype(dtype), lengths)


def _length(x: Operand, axis: int = 0) -> Dimension:
    shape = x.type.shape if isinstance(x, Value) else np.shape(x)
    if not -len(shape) <= axis < len(shape):
        raise CannotInferError("it takes arrays of one length")
    return shape[axis]  # type: ignore[no-any-return]


def _own(x: Operand) -> Any:
    return x.type if isinstance(x, Value) else type_of(x)


def _known(k: Operand) -> Dimension:
    return Size() if isinstance(k, Value) else int(k)


_ONE, _REAL = number_type(0), number_type(0.0)


def _values(t: Any, c: Any, k: Any, xp: Any, *_: Any) -> Type:
    return _array(_length(xp), _length(c, 1))


def _row(t: Any, k: Any, *_: Any) -> Type:
    order = _known(k)
    return _array(order + 1 if isinstance(order, int) else Size())


def _rows(x: Any, t: Any, k: Any, *_: Any) -> Any:
    width = _row(t, k).shape[0]
    return _array(_length(x), width), _array(_length(x), dtype=np.int64), _ONE


def _solved(kl: Any, ku: Any, ab: Any, b: Any, *_: Any, dtype: str, **__: Any) -> Any:
    factors = _array(_length(ab), _length(ab, 1), dtype=dtype)
    x = b.type.shape if isinstance(b, Value) else np.shape(b)
    return factors, _array(_length(ab, 1), dtype=_INT), _array(*x, dtype=dtype), _ONE


def _written(position: int) -> Callable[..., Any]:
    """Of a function that returns nothing, the type of the array that it writes into."""
    return lambda *args: (None, _own(args[position]))


_RETURNED: dict[str, Callable[..., Any]] = {
    "interpolate._dierckx.evaluate_spline": _values,
    "interpolate._dierckx.evaluate_all_bspl": _row,
    "interpolate._dierckx.find_interval": lambda *_: _ONE,
    "interpolate._dierckx.data_matrix": _rows,
    "interpolate._dierckx._coloc": _written(3),
    "interpolate._bspl.evaluate_spline": _written(6),
    **{
        f"linalg.lapack.{letter}gbsv": functools.partial(_solved, dtype=dtype)
        for letter, dtype in zip("sdcz", "fdFD", strict=True)
    },
}


def enter(table: dict[Any, Callable[..., Any]]) -> None:
    """Add the rules of these functions to a table, once their modules are imported."""

    def adds(rule: Callable[..., Any]) -> Callable[[Any], None]:
        def add(function: Any) -> None:
            writes = RULES[function].pure
            table[writes or function] = lambda args, kwargs: rule(*args, **kwargs)

        return add

    for name, rule in _RETURNED.items():
        when_imported(f"scipy.{name}", adds(rule))
