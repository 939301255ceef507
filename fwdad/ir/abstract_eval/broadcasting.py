"""The types of elementwise results: shapes broadcast, and one element determines the dtype."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import type_in_words
from fwdad.ir.abstract_eval.samples import concrete, reason_of, run_on_sample, sample_of
from fwdad.ir.abstract_eval.shapes import joined_shapes, shape_of
from fwdad.ir.abstract_eval.ufunc_loops import type_by_loops
from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import ArrayType, CannotInferError, Dimension, Number, Size, number_type
from fwdad.rules.core.by_position import LOOP_DTYPES
from fwdad.tangents.scaling import scale_lanes

ELEMENTWISE = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.neg, operator.pos, operator.invert, operator.and_, operator.or_,
    operator.xor, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    abs,
}  # fmt: skip

BROADCASTING: set[Any] = {*ELEMENTWISE, np.clip, scale_lanes}
"""Functions whose arguments broadcast against each other."""

_ELEMENTS: dict[Any, Any] = {}
_ELEMENTS_KEPT = 4096


def broadcast(
    function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand], known: dict[Size, int]
) -> Any:
    """The type of an elementwise result: shapes broadcast, and one element determines the dtype."""
    try:
        made = _element(function, args, kwargs)
    except CannotInferError as error:
        if isinstance(function, np.ufunc) and isinstance(error.__cause__, ArithmeticError):
            return type_by_loops(function, args, kwargs, known)  # it has no value at one
        raise
    options = [a for name, a in kwargs.items() if name not in LOOP_DTYPES]  # a tuple has no shape
    shapes = [shape_of(a, known) for a in (*args, *options)]
    found = _with_shape(made, joined_shapes(shapes))
    size = _size_of_sum(function, args)
    return found if size is None else dataclasses.replace(found, size=size)


def _size_of_sum(function: Callable[..., Any], args: Operand) -> Size | None:
    """The length that the sum or difference of a length and an int is, or None."""
    if function not in (operator.add, operator.sub):
        return None
    a, b = args[::-1] if function is operator.add and isinstance(args[1], Value) else args
    size = getattr(a.type, "size", None) if isinstance(a, Value) else None
    if size is None or type(b) is not int:
        return None
    less = -b if function is operator.add else b
    return size.minus(less) if less <= size.least else None


def _element(function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand]) -> Any:
    """What an elementwise function returns for one element, from a cache of earlier trials."""

    def single(value: Value) -> Any:
        t = value.type
        return sample_of(t, {}) if isinstance(t, Number) else np.ones((1,) * t.ndim, t.dtype)

    key = None if kwargs else (function, *map(_element_key, args))
    made = _ELEMENTS.get(key) if key is not None and None not in key else None
    if made is not None:
        return made
    try:
        made = run_on_sample(function, concrete(single, args), concrete(single, kwargs))
    except CannotInferError:
        raise
    except Exception as error:  # whatever a rule's function raises
        raise CannotInferError(reason_of(error)) from error
    if key is not None and None not in key:
        if len(_ELEMENTS) >= _ELEMENTS_KEPT:
            _ELEMENTS.clear()
        _ELEMENTS[key] = made
    return made


def _element_key(operand: Operand) -> Any:
    """A key that is equal for operands with equal samples; None where that is uncertain."""
    if isinstance(operand, Value):
        t = operand.type
        return (t.dtype, t.python) if isinstance(t, Number) else (t.dtype, t.ndim, "array")
    return (type(operand), operand) if type(operand) in (int, float, bool) else None


def _with_shape(made: Any, shape: tuple[Dimension, ...]) -> Any:
    if isinstance(made, tuple):
        return tuple(_with_shape(part, shape) for part in made)
    if isinstance(made, np.ndarray):
        return ArrayType(made.dtype, shape)
    found = number_type(made)
    if found is None:
        raise CannotInferError(f"it returns {type_in_words(made)}, not numbers or arrays")
    return found
