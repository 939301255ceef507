"""The partials of an elementwise call, as both modes write them onto a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.lifting.rule_bodies import written_down
from fwdad.ir.ops import Apply, Value
from fwdad.ir.symbol import as_divisor, as_numpy_number
from fwdad.transforms.forward.rule_table import ruled_function


def partials_of(
    op: Apply, rule: Any, symbols: Callable[[Any], Any], moves: Callable[[Any], bool]
) -> dict[Value, Any]:
    """The partial by each argument that moves; those of one that is given twice are added.

    So the derivative of ``x * x`` is one product, ``(x + x) * t``.
    """
    (v,) = op.outputs
    dtype = v.type.dtype
    args, _ = rule.of_call(op.args, op.kwargs)
    numbers = [as_numpy_number(symbols(a), dtype) for a in args]
    if ruled_function(op) is np.true_divide:
        numbers[1] = as_divisor(numbers[1], dtype)
    result = as_numpy_number(symbols(v), dtype)
    partials: dict[Value, Any] = {}
    with np.errstate(all="ignore"):  # of numbers that are known
        for k, a in enumerate(args):
            if moves(a):
                d = written_down(rule, rule.partials[k])(*numbers, result)
                partials[a] = partials[a] + d if a in partials else d
    return partials
