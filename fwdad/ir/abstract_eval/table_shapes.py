"""The types of what SciPy's compiled interpolation returns, from shapes: it checks no lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import ArrayType, Dimension, Size

_FLOAT, _PLACE = np.dtype(float), np.dtype(np.intp)


def _type(x: Any) -> Any:
    return x.type if isinstance(x, Value) else ArrayType(np.asarray(x).dtype, np.shape(x))


def _sum(p: Dimension, r: Dimension) -> Dimension:
    return p + r if isinstance(p, int) and isinstance(r, int) else p if r == 0 else Size()


def _named(names: str, result: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of a function whose parameters have these names."""

    def of_call(args: Operand, kwargs: dict[str, Operand]) -> Any:
        return result(**dict(zip(names.split(), args, strict=False)), **kwargs)

    return of_call


def _indices(grid: Any, xi: Any) -> tuple[ArrayType, ArrayType]:  # noqa: ARG001
    shape = _type(xi).shape
    return ArrayType(_PLACE, shape), ArrayType(_FLOAT, shape)


def _in_cells(values: Any, indices: Any, **_: Any) -> ArrayType:
    return ArrayType(_type(values).dtype, _type(indices).shape[1:])


def _system(y: Any, d: Any, powers: Any, **_: Any) -> tuple[ArrayType, ...]:
    p, n = _type(y).shape
    q = _sum(p, _type(powers).shape[0])
    shapes: tuple[Any, ...] = ((q, q), (q, _type(d).shape[1]), (n,), (n,))
    return tuple(ArrayType(_FLOAT, shape) for shape in shapes)


def _coefficients(x: Any, y: Any, powers: Any, **_: Any) -> ArrayType:
    p, r = _type(y).shape[0], _type(powers).shape[0]
    return ArrayType(_FLOAT, (_type(x).shape[0], _sum(p, r)))


_RULES = {
    "find_indices": _named("grid xi", _indices),
    "evaluate_linear_2d": _named("values indices norm_distances grid out", _in_cells),
    "_build_system": _named("y d smoothing kernel epsilon powers", _system),
    "_build_evaluation_coefficients": _named(
        "x y kernel epsilon powers shift scale", _coefficients
    ),
}
BY_NAME = {f"scipy.interpolate.{name}": rule for name, rule in _RULES.items()}
"""By dotted name, the rule that tells the type of what a function returns."""
