"""``np.nanmedian`` along axes, for which NumPy uses masked arrays, which carry no derivatives."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call, handler

# NumPy's own functions: of one row, and of rows that are short.
_OWN = inspect.unwrap(np.nanmedian).__globals__
_of_row, _of_short_rows = (_OWN.get(name) for name in ("_nanmedian1d", "_nanmedian_small"))


def _arguments(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False
) -> tuple[Any, ...]:
    return a, axis, out, overwrite_input


def _row_by_row(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Medians of short rows, computed as NumPy does for long ones."""
    if not is_active(args):
        return _of_short_rows(*args, **kwargs)
    a, axis, out, overwrite = _arguments(*args, **kwargs)
    medians = call(np.apply_along_axis, _of_row, axis, a, overwrite)
    if out is None:
        return medians
    call(np.copyto, out, medians)
    return out


if _of_row is not None and _of_short_rows is not None:
    handler(_of_short_rows)(_row_by_row)
