"""Where a program converts values that carry derivatives to integers or booleans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import DualLeakError
from fwdad.ir.ops import Apply, ElementWrite, Op, Value, is_array, values_in
from fwdad.ir.primitives.scatter_add import is_scatter
from fwdad.ops import record_of
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.laws.listing import would_lose_it
from fwdad.transforms.forward.rule_table import ruled_function


def becomes_whole(op: Apply) -> bool:
    """Whether a call converts numbers to integers or booleans: ``int``, a cast, a sum of ints.

    A sum or another linear function does so by ``dtype=int``, or beside an integer array.
    """
    if not op.outputs or any(v.type.dtype.kind in "fc" for v in op.outputs):
        return False
    f = ruled_function(op)
    record = record_of(f)
    if record.passes or record.made_of_values or f is int:
        return True
    rule = find_rule(f)
    if rule is not None and rule.kind != "constant":
        return bool(rule.linear_argnums or op.kwargs.get("dtype") is not None)
    return isinstance(f, type) and issubclass(f, (np.integer, np.bool_))


def _valued_operands(op: Apply) -> tuple[Any, ...]:
    """The operands whose values end up in the result; ``full_like`` uses only its array's shape."""
    return tuple(op.operands_read())


def check_derivatives_fit(op: Op, is_active: Callable[[Value], bool]) -> None:
    """Raise ``DualLeakError`` if an operation drops the derivative of what it returns or stores."""
    if isinstance(op, ElementWrite):
        if any(map(is_active, values_in(op.value))):
            op.check_derivatives_fit()
    elif isinstance(op, Apply):
        made = op.outputs
        operands: Any = _valued_operands(op)
        if op.function is np.copyto or is_scatter(op):
            made, operands = op.args[:1], op.args[1:]
            whole = is_array(made[0]) and made[0].type.dtype.kind not in "fc"
        else:
            whole = not op.mutated and becomes_whole(op)
        if whole and any(map(is_active, values_in(operands))):
            raise DualLeakError(would_lose_it(made[0].type.dtype), op.location)
