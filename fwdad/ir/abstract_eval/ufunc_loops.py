"""The result types of third-party ufuncs, read from their loops without running any."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from fwdad.ir.abstract_eval.samples import reason_of
from fwdad.ir.abstract_eval.shapes import joined_shapes, shape_of
from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import ArrayType, CannotInferError, Dimension, Number, Size, Type, number_type

_WEAK: dict[str, Any] = {"b": np.dtype(bool), "i": int, "f": float, "c": complex}


def ufunc_of(function: Any) -> np.ufunc | None:
    """The ufunc that a function is, or that a Numba wrapper holds; None for anything else."""
    if isinstance(function, np.ufunc):
        return function
    by_numba = type(function).__module__.startswith("numba.") and hasattr(function, "nin")
    inside = getattr(function, "ufunc", None) if by_numba else None
    return inside if isinstance(inside, np.ufunc) else None


def type_by_loops(
    function: Any, args: Operand, kwargs: dict[str, Operand], known: dict[Size, int]
) -> Any:
    """The type of a ufunc's result, or a tuple of types."""
    ufunc: Any = ufunc_of(function)
    if kwargs or len(args) != ufunc.nin:
        raise CannotInferError("the loops of a ufunc give no result type for a call with options")
    types = [_type_of(a) for a in args]
    given: list[Any] = [t.dtype for t in types]
    if ufunc is not function:  # Numba's compiles a loop for those it gets, and has no weak types
        _compile(function, ufunc, given)
    else:
        given = [_WEAK[t.dtype.kind] if getattr(t, "python", False) else t.dtype for t in types]
    try:
        found = ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout))[ufunc.nin :]
    except TypeError as error:
        raise CannotInferError(reason_of(error)) from error
    if any(t.kind not in "biufc" for t in found):
        raise CannotInferError(f"it returns values of dtype {', '.join(map(str, found))}")
    shapes = _result_shapes(ufunc, [shape_of(a, known) for a in args])
    numbers = all(isinstance(t, Number) for t in types)
    made = tuple(
        Number(t, python=False) if numbers and not shape else ArrayType(t, shape)
        for t, shape in zip(found, shapes, strict=True)
    )
    return made if ufunc.nout > 1 else made[0]


def _type_of(x: Operand) -> Type:
    return x.type if isinstance(x, Value) else number_type(x) or ArrayType(
        np.asarray(x).dtype, np.shape(x)
    )  # fmt: skip


def _compile(function: Any, ufunc: np.ufunc, dtypes: list[np.dtype]) -> None:
    """Have Numba compile the loop for some dtypes, as a call with them does."""
    codes = "".join(t.char for t in dtypes)
    if ufunc.signature or any(types.startswith(f"{codes}->") for types in ufunc.types):
        return
    numba = sys.modules["numba"]
    try:
        function.add(tuple(numba.from_dtype(t) for t in dtypes))
    except Exception as error:  # whatever Numba says of the source, or of one that is frozen
        raise CannotInferError(reason_of(error)) from error


def _result_shapes(
    ufunc: np.ufunc, shapes: list[tuple[Dimension, ...]]
) -> list[tuple[Dimension, ...]]:
    """The shapes of the results; a generalised ufunc's by the names of its core dimensions."""
    if ufunc.signature is None:
        return [joined_shapes(shapes)] * ufunc.nout
    takes, _, gives = ufunc.signature.partition("->")
    cores = [_names(part) for part in re.findall(r"\((.*?)\)", takes)]
    named: dict[str, Dimension] = {}
    outer = []
    for shape, core in zip(shapes, cores, strict=True):
        if len(shape) < len(core) or any(not name.isidentifier() for name in core):
            raise CannotInferError(
                f"the lengths in its signature {ufunc.signature} cannot be determined from its "
                "arguments"
            )
        split = len(shape) - len(core)
        outer.append(shape[:split])
        for name, n in zip(core, shape[split:], strict=True):
            if isinstance(named.setdefault(name, n), Size):
                named[name] = n
    batch = joined_shapes(outer)
    results = [_names(part) for part in re.findall(r"\((.*?)\)", gives)]
    return [(*batch, *(named.get(name) or Size() for name in core)) for core in results]


def _names(part: str) -> list[str]:
    return [name.strip() for name in part.split(",") if name.strip()]
