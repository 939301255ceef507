"""NumPy functions that write into an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.eager import hooks
from fwdad.eager.activity import is_active
from fwdad.eager.calls import numpy_calls
from fwdad.eager.calls.creation import make_array
from fwdad.eager.calls.dispatch import handler
from fwdad.eager.duals import flat
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.memory import store
from fwdad.rules.core.registry import RULES
from fwdad.tangents.plain import plain


@handler(np.copyto)
def _copyto(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("dst", "src", "casting", "where"), args, strict=False)) | kwargs
    dst, where = bound["dst"], bound.get("where", True)
    if not is_active((dst, bound["src"])):
        numpy_calls.note_inactive(np.copyto, (dst, bound["src"]), {})
        return np.copyto(*args, **kwargs)
    value = explicit(bound["src"])
    if isinstance(value, (list, tuple)):
        value = make_array(value)
    casting = bound.get("casting", "same_kind")
    into, given = (np.empty(0, _dtype(x)) for x in (dst, value))
    np.copyto(into, given, casting=casting)  # NumPy's own error
    numpy_calls.store_where(dst, value, where)
    return None


@handler(np.put)
def _put(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, indices, values, *mode = args
    hooks.method(a, "put", indices, values, *mode, **kwargs)


@handler(np.putmask)
def _putmask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("a", "mask", "values"), args, strict=False)) | kwargs
    a, mask, values = bound["a"], bound["mask"], bound["values"]
    if not is_active((a, values)):
        numpy_calls.note_inactive(np.putmask, (a, mask, values), {})
        return np.putmask(a, mask, values)
    np.putmask(np.empty(plain(a).shape), mask, 0.0)  # NumPy's own error
    chosen = np.flatnonzero(mask)
    values = _flat_values(values)
    if chosen.size and plain(values).size:
        picked = values[chosen % plain(values).size]
        _store_elements(a, chosen, picked)
    return None


@handler(np.place)
def _place(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("arr", "mask", "vals"), args, strict=False)) | kwargs
    a, mask, values = bound["arr"], bound["mask"], bound["vals"]
    if not is_active((a, values)):
        numpy_calls.note_inactive(np.place, (a, mask, values), {})
        return np.place(a, mask, values)
    flat_values = _flat_values(values)
    numbers = np.zeros(plain(flat_values).size)
    np.place(np.empty(plain(a).shape), mask, numbers)  # NumPy's own error
    chosen = np.flatnonzero(mask)
    contiguous = all(isinstance(v, np.ndarray) and plain(v).flags.carray for v in (a, values))
    # else NumPy copies first
    if contiguous and plain(a).ndim and flat.reads_while_it_writes(a, values):
        flat.store_in_order(a, np.unravel_index(chosen, plain(a).shape), values)
        return None
    if chosen.size:
        picked = flat_values[np.arange(chosen.size) % plain(flat_values).size]
        _store_elements(a, chosen, picked)
    return None


def _dtype(x: Any) -> Any:
    return np.asarray(plain(x)).dtype


@handler(np.nan_to_num)
def _nan_to_num(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("x", "copy", "nan", "posinf", "neginf"), args, strict=False)) | kwargs
    x, copy = bound.pop("x"), bound.pop("copy", True)
    if not is_active((x, *bound.values())):
        if not copy:
            numpy_calls.note_inactive(np.copyto, (x,), {})
        return np.nan_to_num(x, copy, **bound)
    x = explicit(x)
    value = numpy_calls.with_out(RULES[np.nan_to_num], (x,), bound)
    return value if copy or not isinstance(x, np.ndarray) else numpy_calls.write_out(x, value)


def _store_elements(a: Any, numbers: np.ndarray, values: Any) -> None:
    """Store values into the elements with some flat indices."""
    shape = plain(a).shape
    if shape:
        store.store(a, np.unravel_index(numbers, shape), values)
    else:
        store.store(a, (), values[0])


def _flat_values(values: Any) -> Any:
    values = explicit(values)
    if isinstance(values, (list, tuple)):
        values = make_array(values)
    return np.reshape(values, (-1,))
