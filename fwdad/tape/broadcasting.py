"""The types of elementwise results: shapes broadcast, and one element tells the dtype."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import type_in_words
from fwdad.tape.ops import Operand, Value
from fwdad.tape.purity import is_pure
from fwdad.tape.samples import CannotInferError, concrete, reason_of, run_on_sample, sample_of
from fwdad.tape.types import ArrayType, Dimension, Number, Size, joined, number_type

ELEMENTWISE = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.neg, operator.pos, operator.invert, operator.and_, operator.or_,
    operator.xor, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    abs,
}  # fmt: skip

# Functions whose arguments broadcast against each other; others say so by adding themselves.
BROADCASTING: set[Any] = {*ELEMENTWISE, np.clip}

_ELEMENTS: dict[Any, Any] = {}
_ELEMENTS_KEPT = 4096


def broadcast(
    function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand], known: dict[Size, int]
) -> Any:
    """An elementwise function: shapes broadcast, and one element tells the dtype."""
    ufunc = ufunc_of(function)
    if ufunc is None or is_pure(function):
        made = _element(function, args, kwargs)
    else:
        made = _told_by_loops(function, ufunc, args, kwargs)
    shapes = [shape_of(a, known) for a in (*args, *kwargs.values())]
    return _with_shape(made, joined_shapes(shapes))


def ufunc_of(function: Any) -> np.ufunc | None:
    """A ufunc, or that inside one of Numba's; None of anything else."""
    if isinstance(function, np.ufunc):
        return function
    inside = function.__dict__.get("ufunc") if hasattr(function, "_dispatcher") else None
    return inside if isinstance(inside, np.ufunc) else None


def _told_by_loops(function: Any, ufunc: np.ufunc, args: Operand, kwargs: Any) -> Any:
    """An element of the dtype that the loops of anybody's ufunc have; none of them is run."""
    if kwargs:
        message = "the type of a ufunc with options is not told by its loops"
        raise CannotInferError(message)
    types = [a.type if isinstance(a, Value) else number_type(a) for a in args]
    if None in types:
        types = [t or ArrayType(np.asarray(a).dtype, ()) for t, a in zip(types, args, strict=True)]
    numbers = all(isinstance(t, Number) for t in types)
    if ufunc is not function:  # Numba's has no weak types, and compiles a loop for those it gets
        _compile(function, ufunc, [t.dtype for t in types])  # type: ignore[union-attr]
        given: list[Any] = [t.dtype for t in types]  # type: ignore[union-attr]
    else:
        given = [_WEAK[t.dtype.kind] if getattr(t, "python", False) else t.dtype for t in types]  # type: ignore[union-attr]
    try:
        found = ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout))[ufunc.nin :]
    except TypeError as error:
        raise CannotInferError(reason_of(error)) from error
    if any(t.kind not in "biufc" for t in found):
        message = f"it answers {', '.join(map(str, found))}"
        raise CannotInferError(message)
    made = [np.zeros((), t)[()] if numbers else np.zeros(1, t) for t in found]
    return tuple(made) if ufunc.nout > 1 else made[0]


def _compile(function: Any, ufunc: np.ufunc, dtypes: list[np.dtype]) -> None:
    """Have Numba compile the loop of some types, as a call with them does."""
    codes = "".join(t.char for t in dtypes)
    if not any(types.startswith(f"{codes}->") for types in ufunc.types):
        numba = sys.modules["numba"]
        try:
            function.add(tuple(numba.from_dtype(t) for t in dtypes))
        except Exception as error:  # whatever Numba says of the source, or of one that is frozen
            raise CannotInferError(reason_of(error)) from error


_WEAK: dict[str, Any] = {"b": np.dtype(bool), "i": int, "f": float, "c": complex}


def _element(function: Callable[..., Any], args: Operand, kwargs: dict[str, Operand]) -> Any:
    """What an elementwise function answers for one element; what has been tried is known."""

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
    """Equal for operands that stand for equal samples; None where that is not sure."""
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
        message = f"it answers {type_in_words(made)}"
        raise CannotInferError(message)
    return found


def shape_of(operand: Operand, known: dict[Size, int]) -> tuple[Dimension, ...]:
    """The shape of a value, or of a list of numbers, with lengths as they are known."""
    if isinstance(operand, Value):
        return tuple(known.get(d, d) if isinstance(d, Size) else d for d in operand.type.shape)
    return np.shape(operand) if isinstance(operand, (list, tuple)) else ()


def joined_shapes(shapes: list[tuple[Dimension, ...]]) -> tuple[Dimension, ...]:
    """The shapes broadcast; of lengths that are not known one that cannot be 1, if there is one.

    A computed length may turn out to be 1: what it makes together with another one is new.
    """
    rank = max((len(s) for s in shapes), default=0)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    found: list[Dimension] = []
    for lengths in zip(*padded, strict=True):
        many = [d for d in lengths if isinstance(d, Size) or d != 1]
        ints = {d for d in many if not isinstance(d, Size)}
        if len(ints) > 1:
            message = f"operands could not be broadcast together: lengths {sorted(ints)}"
            raise CannotInferError(message)
        sure = [d for d in many if isinstance(d, Size) and not d.may_be_one]
        if ints or not many:
            found.append(ints.pop() if ints else 1)
        elif sure or all(d is many[0] for d in many):
            found.append(sure[0] if sure else many[0])
        else:
            found.append(joined(*(d for d in many if isinstance(d, Size))))
    return tuple(found)
