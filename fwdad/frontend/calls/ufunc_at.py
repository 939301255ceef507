"""``np.multiply.at`` and the like where they are differentiated: loops of stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.numpy_sources.row_by_row import call_at, call_at_alone, call_once
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.builder.index_parts import is_basic, is_mask, mask_rank
from fwdad.ir.symbol import Symbol


def updated_at(tracer: Tracer, f: Any, a: Any, index: Any, others: tuple[Any, ...]) -> bool:
    """Write ``ufunc.at``, f, as a loop of stores, which has derivatives; whether it was written."""
    if a.dtype.kind not in "fc":
        return False
    parts = index if isinstance(index, tuple) else (index,)
    if any(is_mask(i) and not mask_rank(i) for i in parts):  # they make axes
        if not all(is_basic(i) or (is_mask(i) and not mask_rank(i)) for i in parts):
            message = "`at` with a bool beside index arrays cannot be traced: use `if`"
            raise UntraceableError(message, tracer.position.location())
        tracer.call(call_once, (f.__self__, a, index, *others), {})
        return True
    if f in (np.add.at, np.subtract.at):
        return False
    kind = _kind(index)
    once = all(map(is_basic, parts)) or kind == "b" or (kind in "iu" and not index.ndim)
    if once:  # no element comes twice
        tracer.call(call_once, (f.__self__, a, index, *others), {})
        return True
    if isinstance(index, (list, tuple)):
        several = isinstance(index, tuple)
        if several and not all(isinstance(i, (list, Symbol, np.ndarray)) for i in index):
            return False
        arrays = [tracer.call(np.asarray, (i,), {}) for i in (index if several else [index])]
        if not arrays or any(_kind(i) not in "iu" or (several and i.ndim != 1) for i in arrays):
            return False
        index = tuple(arrays) if several else arrays[0]
    elif kind not in "iu":
        return False
    tracer.call(call_at if others else call_at_alone, (f.__self__, a, index, *others), {})
    return True


def _kind(index: Any) -> str:
    """The kind of an array's dtype; O for anything else."""
    return str(index.dtype.kind) if isinstance(index, (Symbol, np.ndarray)) else "O"
