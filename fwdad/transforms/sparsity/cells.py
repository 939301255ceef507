"""What is known of a value while a program is interpreted: its nodes, and perhaps the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from fwdad.ir.abstract_eval.samples import concrete, run_on_sample, sample_of
from fwdad.ir.ops import Apply, Operand, Value, is_array, values_in
from fwdad.ir.types import ArrayType, CannotInferError
from fwdad.ops import record_of


class UnstructuredError(Exception):
    """A program, or an operation, whose structure cannot be told; the argument says why."""


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
"""The value of what depends on the values of the inputs."""


class Cell:
    """Nodes, one for each element, and the value.

    An array's nodes are an array that has views and is written as the program's array is; those of
    a number are an int.
    """

    __slots__ = ("nodes", "value")

    def __init__(self, nodes: Any, value: Any = UNKNOWN) -> None:
        self.nodes = nodes
        self.value = value

    @property
    def active(self) -> bool:
        """Whether an element depends on an input."""
        return bool(self.nodes) if type(self.nodes) is int else bool(np.any(self.nodes))


def root(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that owns the memory of one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def is_float(v: Value) -> bool:
    """Whether a value has derivatives."""
    return v.type.dtype.kind in "fc"


def shape_of(v: Value, value: Any = UNKNOWN) -> tuple[int, ...]:
    """The shape of a value, which must be known."""
    if value is not UNKNOWN:
        return np.shape(value)
    if not isinstance(v.type, ArrayType):
        return ()
    if not all(isinstance(n, int) for n in v.type.shape):
        raise UnstructuredError("a length depends on the values of the arguments")
    return tuple(v.type.shape)  # type: ignore[arg-type]


def shape_of_result(
    op: Apply, k: int, value: Any, cell: Callable[[Value], Cell]
) -> tuple[int, ...]:
    """The shape of a call's result number k, by that of a sample if its type does not tell it."""
    try:
        return shape_of(op.outputs[k], value)
    except UnstructuredError:
        if any(is_float(v) and cell(v).value is UNKNOWN for v in values_in(_deciding(op))):
            raise
        try:
            args, kwargs = (
                concrete(lambda v: _sample(v, cell(v)), x) for x in (op.args, op.kwargs)
            )
            made = run_on_sample(op.function, args, kwargs)
        except (CannotInferError, ValueError, TypeError, ArithmeticError):
            made = None
        if made is None:
            raise
        return np.shape(made[k] if len(op.outputs) != 1 else made)


def _deciding(op: Apply) -> list[Operand]:
    """The arguments on whose values lengths of the result depend."""
    positions = record_of(op.function).lengths_of_values
    if len(op.args) <= max(positions, default=-1):  # some may be given by name
        return [*op.args, *op.kwargs.values()]
    return [op.args[k] for k in positions]


def _sample(v: Value, cell: Cell) -> Any:
    """A value, or a harmless one of its shape; an unknown int may be a length."""
    if cell.value is not UNKNOWN:
        return cell.value
    if not is_float(v):
        raise CannotInferError(f"{v.name} is not known")
    of = ArrayType(v.type.dtype, np.shape(cell.nodes)) if is_array(v) else v.type
    return sample_of(of, {})


def as_cell(v: Value, nodes: Any, value: Any = UNKNOWN) -> Cell:
    """The cell of a value: numbers have one node."""
    if not isinstance(v.type, ArrayType):
        return Cell(int(nodes) if is_float(v) else 0, value)
    if not is_float(v):
        nodes = np.zeros(shape_of(v, value), np.int64)
    return Cell(nodes, value)
