"""Methods of ufuncs that are NumPy functions under another name."""

from __future__ import annotations

from typing import Any

from fwdad.ops import functions_with, record_of

NAMED: dict[tuple[Any, str], Any] = {}
for _function in functions_with(lambda record: bool(record.reduction or record.accumulation)):
    _record = record_of(_function)
    _method = "reduce" if _record.reduction else "accumulate"
    NAMED.setdefault((_record.reduction or _record.accumulation, _method), _function)


def reduce_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``ufunc.reduce(a, axis=0, …)``, with all options as keywords."""
    names = ("axis", "dtype", "out", "keepdims", "initial", "where")
    merged = {"axis": 0, **dict(zip(names, args[1:], strict=False)), **kwargs}
    merged = {k: v for k, v in merged.items() if v is not None or k == "axis"}
    return args[:1], merged
