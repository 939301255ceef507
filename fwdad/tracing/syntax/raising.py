"""Which exceptions operations may raise, as far as ``try`` and ``with`` have to know."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from fwdad.tape.ops import Apply, Check, Load, Op, Store, Update
from fwdad.tape.types import Number

if TYPE_CHECKING:
    pass

_TOTAL = {operator.add, operator.sub, operator.mul, operator.neg, operator.lt, operator.le,
          operator.gt, operator.ge, operator.eq, operator.ne, operator.not_, bool, abs}  # fmt: skip
_RAISED: dict[Any, tuple[type[BaseException], ...]] = {
    operator.truediv: (ZeroDivisionError, OverflowError),
    operator.floordiv: (ZeroDivisionError,),
    operator.mod: (ZeroDivisionError,),
    operator.pow: (ZeroDivisionError, OverflowError),
}


def may_raise(op: Op, wanted: tuple[Any, ...] = (BaseException,)) -> bool:
    """Whether an operation may raise one of some exceptions when it runs."""
    if any(may_raise(o, wanted) for b in op.blocks() for o in b.ops):
        return True
    if isinstance(op, Check):
        raised = op.exception if isinstance(op.exception, type) else type(op.exception)
        return issubclass(raised, wanted)
    if isinstance(op, Apply):
        numbers = all(isinstance(v.type, Number) for v in op.outputs)
        if isinstance(op.function, np.ufunc) or (numbers and op.function in _TOTAL):
            return False
        found = _RAISED.get(op.function, (Exception,)) if numbers else (Exception,)
    elif isinstance(op, Load):
        found = (IndexError,)
    elif isinstance(op, (Store, Update)):
        found = (IndexError, ValueError, TypeError)
    else:
        return False
    return any(issubclass(f, wanted) or issubclass(w, f) for f in found for w in wanted)
