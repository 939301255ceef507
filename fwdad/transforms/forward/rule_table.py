"""The function whose rule a call on a tape uses."""

from __future__ import annotations

from typing import Any

from fwdad.ir.leaves import Leaves
from fwdad.ir.ops import Apply, Update
from fwdad.ops import record_of


def ruled_function(op: Apply | Update) -> Any:
    """The function of NumPy's whose rule a call uses: operators have the rules of its ufuncs."""
    function = op.function.function if isinstance(op.function, Leaves) else op.function
    return record_of(function).stands_for or function
