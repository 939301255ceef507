"""The effects of an operation besides its outputs: exceptions, warnings, memory accesses."""

from __future__ import annotations

import operator
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory
from fwdad.ir.ops import (
    Apply,
    Branch,
    Load,
    Loop,
    Op,
    Operand,
    Store,
    Update,
    Value,
    type_of_operand,
)
from fwdad.ir.primitives.ranges import range_length
from fwdad.ir.types import ArrayType, Number, number_type
from fwdad.ops import Risk, record_of
from fwdad.tangents.symbolic import as_traced, defined

_COMPARISONS = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
_BITS = {operator.and_, operator.or_, operator.xor, operator.invert}
_EXACT = {operator.neg, operator.pos, operator.not_, operator.is_, operator.is_not, abs}
_RINGS = {operator.add, operator.sub, operator.mul}
_DIVISIONS = {operator.truediv, operator.floordiv, operator.mod}
_SHIFTS = {operator.lshift, operator.rshift}
_QUIET_OPERATORS = _COMPARISONS | _BITS | _EXACT
_OPERATORS = {*_COMPARISONS, *_BITS, *_EXACT, *_RINGS, *_DIVISIONS, *_SHIFTS,
              operator.pow, operator.matmul}  # fmt: skip


def risk(op: Op) -> Risk:
    """What may happen when an operation runs; of a branch or loop, the worst of what is inside."""
    if isinstance(op, Apply):
        return _of_call(op)
    if isinstance(op, Load):
        return Risk.QUIET if all(_slices_all(i) for i in op.index) else Risk.SHAPES
    if isinstance(op, (Store, Update)):
        return Risk.SHAPES
    if isinstance(op, (Branch, Loop)):
        risks = [risk(inner) for block in op.blocks() for inner in block.ops]
        if isinstance(op, Loop) and op.span is not None and not is_nonzero(op.span[2]):
            risks.append(Risk.RAISES)
        return max(risks, default=Risk.QUIET)
    return Risk.RAISES


def _slices_all(i: Operand) -> bool:
    if isinstance(i, slice):
        return i.step is None or is_nonzero(i.step)
    return i is None or i is Ellipsis


def is_nonzero(x: Operand) -> bool:
    """Whether an operand is a constant number other than zero."""
    return not isinstance(x, Value) and number_type(x) is not None and bool(x)


def _is_natural(x: Operand) -> bool:
    return isinstance(x, (int, np.integer)) and bool(x >= 0)


def _of_call(op: Apply) -> Risk:
    f = op.function
    if op.mutated:
        return Risk.RAISES
    if f in (defined, as_traced):  # used for derivatives only: it raises where one is used
        return Risk.SHAPES
    record = record_of(f)
    if record.own:
        if f is range_length and not is_nonzero(op.args[2]):
            return Risk.RAISES
        return Risk.RAISES if record.risk is None else record.risk
    kinds = [type_of_operand(a) for a in op.args]
    if f in _OPERATORS:
        return _of_operator(op, kinds)
    if isinstance(f, np.ufunc):
        return _of_ufunc(op, kinds)
    if isinstance(f, type):
        return _of_conversion(f, kinds)
    if record.risk_alone is not None and len(op.args) == 1 and not op.kwargs:
        return record.risk_alone
    if record.risk is not None:
        return record.risk
    name = getattr(f, "__name__", "")
    if isinstance(f, types.MethodDescriptorType):
        return Risk.SHAPES
    if isinstance(getattr(f, "__self__", None), np.ufunc) or getattr(np, name, None) is f:
        return Risk.SHAPES
    return Risk.RAISES


def _of_operator(op: Apply, kinds: list[Any]) -> Risk:
    f, args = op.function, op.args
    if f is operator.pow:
        return _of_power(args, kinds)
    if f in _SHIFTS and not _is_natural(args[1]):
        return Risk.RAISES
    if all(isinstance(t, Number) and t.python for t in kinds):
        if f in _DIVISIONS and not is_nonzero(args[1]):
            return Risk.RAISES
        if f is abs and kinds[0].dtype.kind == "c":
            return Risk.RAISES  # OverflowError
        return Risk.QUIET
    if f is operator.matmul:
        return Risk.SHAPES
    found = Risk.QUIET if f in _QUIET_OPERATORS else Risk.WARNS
    return max(found, _of_operands(kinds))


def _of_power(args: Any, kinds: list[Any]) -> Risk:
    base, exponent = kinds
    if base is None or exponent is None:
        return Risk.RAISES
    python = all(isinstance(t, Number) and t.python for t in kinds)
    if base.dtype.kind in "biu" and exponent.dtype.kind in "biu":
        if not _is_natural(args[1]):
            return Risk.RAISES
        return Risk.QUIET if python else max(Risk.WARNS, _of_operands(kinds))
    return Risk.RAISES if python else max(Risk.WARNS, _of_operands(kinds))


def _of_operands(kinds: list[Any]) -> Risk:
    """The risk of elementwise operands: shapes that may not match, integers out of bounds."""
    if any(t is None for t in kinds):
        return Risk.RAISES
    narrow = any(not _is_python(t) and t.dtype.kind in "iu" and t.dtype != np.int64 for t in kinds)
    if narrow and any(_is_python(t) and t.dtype.kind == "i" for t in kinds):
        return Risk.RAISES  # OverflowError: Python integer out of bounds
    shapes = {t.shape for t in kinds if isinstance(t, ArrayType) and t.shape}
    return Risk.SHAPES if len(shapes) > 1 else Risk.QUIET


def _is_python(t: Any) -> bool:
    return isinstance(t, Number) and t.python


def _of_ufunc(op: Apply, kinds: list[Any]) -> Risk:
    f: Any = op.function
    if f is np.matmul and not op.kwargs:
        return Risk.SHAPES
    if op.kwargs or f.signature is not None:
        return Risk.RAISES
    if f is np.power:
        return max(Risk.WARNS, _of_power(op.args, kinds))
    found = record_of(f).risk
    return max(Risk.WARNS if found is None else found, _of_operands(kinds))


def _of_conversion(f: type, kinds: list[Any]) -> Risk:
    if len(kinds) != 1 or not isinstance(kinds[0], Number):
        return Risk.RAISES
    kind = kinds[0].dtype.kind
    if f is bool or (f in (float, complex) and kind != "c") or (f is complex and kind == "c"):
        return Risk.QUIET
    if f is int:
        return Risk.QUIET if kind in "biu" else Risk.RAISES
    if issubclass(f, (np.bool_, np.inexact)):
        return Risk.WARNS
    return Risk.RAISES


# -- memory


def reads(op: Op, roots: Roots) -> set[Value]:
    """The memory whose content an operation, or what is inside it, may read."""
    if isinstance(op, (Branch, Loop)):
        return set().union(*(reads(inner, roots) for b in op.blocks() for inner in b.ops))
    if isinstance(op, Load):
        return memory(op.index if op.view else [op.array, op.index], roots)
    if isinstance(op, Store):
        return memory([op.index, op.value], roots)
    if isinstance(op, Apply):
        return memory(op.operands_read(), roots)
    return memory(op.operands(), roots)


def writes(op: Op, roots: Roots) -> set[Value]:
    """The memory that an operation, or what is inside it, may write."""
    owners = memory(op.writes(), roots)
    if op.nests:
        for block in op.blocks():
            for inner in block.ops:
                owners |= writes(inner, roots)
    return owners


@dataclass
class Footprint:
    """What operations do, all together: the memory that they read and write, the worst risk."""

    reads: set[Value]
    writes: set[Value]
    risk: Risk

    def include(self, other: Footprint) -> None:
        """Add what other operations do."""
        self.reads |= other.reads
        self.writes |= other.writes
        self.risk = max(self.risk, other.risk)

    def commutes(self, other: Footprint) -> bool:
        """Whether neighbours may be swapped, data dependences through values aside.

        Exceptions are preserved: two operations that may raise keep their order.
        """
        if self.writes & other.reads or other.writes & (self.reads | self.writes):
            return False
        if min(self.risk, other.risk) >= Risk.SHAPES:
            return False
        visible = (self.risk >= Risk.SHAPES and other.writes) or (
            other.risk >= Risk.SHAPES and self.writes
        )
        return not visible


def footprint(op: Op, roots: Roots) -> Footprint:
    """What one operation does."""
    return Footprint(reads(op, roots), writes(op, roots), risk(op))
