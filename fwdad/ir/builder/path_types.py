"""Arithmetic with a number that is of several types on different paths.

A name that is Python's 0 on one path and a ``uint8`` on another holds one value in either type, but
``b - 1`` is -1 on the first path and 255 on the second. A tape computes in one type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError
from fwdad.ir.ops import Value, map_values, values_in
from fwdad.ir.types import ArrayType, CannotInferError, Number, paths_of, rounds_early
from fwdad.rules.core.registry import function_name


def check_paths(
    function: Any,
    operands: Any,
    found: Any,
    infer: Callable[..., Any],
    place: Callable[[], Location | None],
) -> None:
    """Refuse a call whose result on one path is of another dtype, in which it wraps around.

    ``found`` is its type, and ``infer`` finds that of another call of the function.
    """
    for v in dict.fromkeys(values_in(operands)):
        for t in paths_of(v.type):
            try:
                on_path = infer(function, *_with_type(operands, v, t))
            except CannotInferError:
                continue
            if any(map(_differ, _dtypes(found), _dtypes(on_path))):
                names = " and ".join(sorted(f"{'Python' if p.python else 'NumPy'}'s {p}"
                                            for p in paths_of(v.type)))  # fmt: skip
                message = (
                    f"a number is {names} on different paths, with which {function_name(function)} "
                    "computes differently: convert it to one type, as by int(x) or np.int64(x)"
                )
                raise UntraceableError(message, place())


def _with_type(operands: Any, v: Value, t: Number) -> Any:
    stand_in = Value(t)
    return map_values(lambda w: stand_in if w is v else w, operands)


def _dtypes(found: Any) -> Iterator[np.dtype[Any]]:
    if isinstance(found, (tuple, list)):
        for item in found:
            yield from _dtypes(item)
    elif isinstance(found, (Number, ArrayType)):
        yield found.dtype


def _differ(a: np.dtype[Any], b: np.dtype[Any]) -> bool:
    return a != b and (rounds_early(a) or rounds_early(b))
