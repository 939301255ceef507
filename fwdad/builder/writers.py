"""NumPy functions that write into an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.builder import hooks, methods, numpy_calls, store
from fwdad.builder.activity import is_active
from fwdad.builder.creation import make_array
from fwdad.builder.dispatch import handler
from fwdad.builder.dual import explicit
from fwdad.tangents.chunk import plain


@handler(np.copyto)
def _copyto(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("dst", "src", "casting", "where"), args, strict=False)) | kwargs
    dst, where = bound["dst"], bound.get("where", True)
    if not is_active((dst, bound["src"])):
        numpy_calls.log_written(np.copyto, (dst,), {})
        return np.copyto(*args, **kwargs)
    value = explicit(bound["src"])
    if isinstance(value, (list, tuple)):
        value = make_array(value)
    numpy_calls.write_out(dst, value, where if where is True else np.asarray(where))
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
        numpy_calls.log_written(np.putmask, (a,), {})
        return np.putmask(a, mask, values)
    chosen = np.flatnonzero(np.broadcast_to(mask, plain(a).shape))
    values = _flat_values(values)
    if chosen.size:
        picked = values[chosen % plain(values).size]
        store.store(a, np.unravel_index(chosen, plain(a).shape), picked)
    return None


@handler(np.place)
def _place(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("arr", "mask", "vals"), args, strict=False)) | kwargs
    a, mask, values = bound["arr"], bound["mask"], bound["vals"]
    if not is_active((a, values)):
        numpy_calls.log_written(np.place, (a,), {})
        return np.place(a, mask, values)
    chosen = np.flatnonzero(mask)
    lies = all(isinstance(v, np.ndarray) and plain(v).flags.carray for v in (a, values))
    if lies and methods.reads_while_it_writes(a, values):  # else NumPy copies first
        methods.store_in_order(a, np.unravel_index(chosen, plain(a).shape), values)
        return None
    values = _flat_values(values)
    if chosen.size:
        picked = values[np.arange(chosen.size) % plain(values).size]
        store.store(a, np.unravel_index(chosen, plain(a).shape), picked)
    return None


def _flat_values(values: Any) -> Any:
    values = explicit(values)
    if isinstance(values, (list, tuple)):
        values = make_array(values)
    return np.reshape(values, (-1,))
