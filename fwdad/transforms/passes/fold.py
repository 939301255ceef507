"""Constant folding: what depends only on constants is computed now, by Python's own operators.

So is whether an array is C-contiguous, where the operations that made it tell. The result must have
the type that the operation declares; what raises or warns is left to the run. Identities of
Python's ``int`` and ``bool`` are applied. Those of floats could change a bit, except for the
product of a partial and lanes, one of which is 1. With a finite partial, or nonzero lanes, that
product becomes an ordinary one.
"""

from __future__ import annotations

import cmath
import functools
import operator
import warnings
from typing import Any

import numpy as np

from fwdad.ir.abstract_eval.purity import is_pure
from fwdad.ir.analysis.layout import Like, Order, Orders
from fwdad.ir.ops import Apply, Block, Missing, Operand, Program, Value, values_in
from fwdad.ir.primitives.argument_memory import is_c_contiguous
from fwdad.ir.primitives.identity import identity
from fwdad.ir.rewrite import Mapping, give_name, substitute
from fwdad.ir.types import BOOL, INT, Number, number_type
from fwdad.tangents.scaling import scale_lanes

_LARGEST = 1 << 62  # an integer that is folded fits into 64 bits, as the tape's integers do

_UNFOLDED: Any = object()


def fold(program: Program) -> bool:
    """Fold constants; return whether there were any."""
    folding = _Folding(program)
    changed = folding.block(program.block)
    substitute(program.block, folding.mapping)
    give_name(folding.mapping)
    return changed or bool(folding.mapping)


class _Folding:
    """Folds the operations of a program; ``mapping`` tells what replaces their outputs."""

    def __init__(self, program: Program) -> None:
        self.mapping: Mapping = {}
        self._program = program

    def block(self, block: Block) -> bool:
        """Fold operations in a block; return whether products were rewritten."""
        ops = []
        changed = False
        for op in block.ops:
            if isinstance(op, Apply) and len(op.outputs) == 1 and not op.mutated:
                if self.mapping:
                    op.replace(lambda v: self.mapping.get(v, v))
                folded = self._contiguous(op) if op.function is is_c_contiguous else _folded(op)
                if folded is not _UNFOLDED:
                    self.mapping[op.outputs[0]] = folded
                    continue
                changed |= _unscaled(op)
            for inner in op.blocks():
                changed |= self.block(inner)
            ops.append(op)
        block.ops = ops
        return changed

    @functools.cached_property
    def _orders(self) -> Orders:
        return Orders(self._program, called=True)

    def _contiguous(self, op: Apply) -> Operand:
        (a,) = op.args
        known = self._orders.of(a) is Order.ROWS and self._orders.like(a) is Like.SAME
        return True if known else _UNFOLDED


def _unscaled(op: Apply) -> bool:
    """Replace a product of lanes by an ordinary one if it needs no select; whether it was one."""
    if op.function is not scale_lanes or op.kwargs:
        return False
    d, lanes = op.args
    finite = _is_number(d) and not isinstance(d, Value) and cmath.isfinite(d)
    nonzero = _is_number(lanes) and not isinstance(lanes, Value) and bool(lanes != 0)
    if finite or nonzero:
        op.function, op.args = operator.mul, (lanes, d)
    return finite or nonzero


def _folded(op: Apply) -> Operand:
    """What replaces the output of a call, or ``_UNFOLDED``."""
    t = op.outputs[0].type
    if not isinstance(t, Number):
        return _UNFOLDED
    if op.function is identity:
        return op.args[0]
    if not values_in(op.operands()):
        return _computed(op, t)
    if op.function is scale_lanes and not op.kwargs:
        return _scaled_by_one(op, t)
    return _UNFOLDED if op.kwargs else _without_neutral(op, t)


def _scaled_by_one(op: Apply, t: Number) -> Operand:
    """A product with 1 is the other factor, bit for bit."""
    for x, other in (op.args, op.args[::-1]):
        is_one = number_type(other) is not None and not isinstance(other, Value) and other == 1
        if is_one and isinstance(x, Value) and x.type == t:
            return x
    return _UNFOLDED


def _computed(op: Apply, t: Number) -> Operand:
    if not _is_scalar_function(op.function) or not all(_is_number(a) for a in op.args):
        return _UNFOLDED
    try:
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            made = op.function(*op.args, **op.kwargs)
    except (ArithmeticError, ValueError, TypeError, Warning):  # raised where the program runs
        return _UNFOLDED
    if number_type(made) != t:
        return _UNFOLDED
    if isinstance(made, int) and not -_LARGEST < made < _LARGEST:
        return _UNFOLDED
    return made


def _is_number(x: Operand) -> bool:
    return not isinstance(x, Missing) and number_type(x) is not None


def _is_scalar_function(f: Any) -> bool:
    """Whether a function returns a number that depends only on its arguments."""
    if isinstance(f, np.ufunc) or f in (bool, int, float, complex, abs, round):
        return True
    if isinstance(f, type):
        return issubclass(f, np.generic)
    name, module = getattr(f, "__name__", ""), getattr(f, "__module__", None) or ""
    if getattr(operator, name, None) is f or module in ("math", "cmath"):
        return True
    return module.partition(".")[0] in ("numpy", "scipy") and is_pure(f)


def _without_neutral(op: Apply, t: Number) -> Operand:
    """``x + 0``, ``x * 1``, ``not not``: for Python's integers and booleans."""
    f, args = op.function, op.args
    if len(args) == 1:
        (x,) = args
        same = isinstance(x, Value) and x.type == t and f in (bool, int, float, complex)
        return x if same else _UNFOLDED
    if len(args) != 2 or f not in _NEUTRAL:
        return _UNFOLDED
    wanted, constants = _NEUTRAL[f]
    if t != wanted:
        return _UNFOLDED
    for k, x in enumerate(args):
        other = args[1 - k]
        if isinstance(x, Value) and x.type == t and type(other) is type(constants[1 - k]):
            if other == constants[1 - k]:
                return x
            if t == BOOL:  # x or True, x and False
                return other
    return _UNFOLDED


# The type, and the neutral constants on the left and on the right (None where there is none).
_NEUTRAL: dict[Any, tuple[Number, tuple[Any, Any]]] = {
    operator.add: (INT, (0, 0)),
    operator.sub: (INT, (None, 0)),
    operator.mul: (INT, (1, 1)),
    operator.floordiv: (INT, (None, 1)),
    operator.or_: (BOOL, (False, False)),
    operator.and_: (BOOL, (True, True)),
}
