"""The hooks of subscripts: ``o[i]``, ``o[i] = value``, ``o[i] += value``, ``del o[i]``."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from fwdad.eager.calls import protocols
from fwdad.eager.calls.apply import primal_part
from fwdad.eager.calls.creation import as_array
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals import flat
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.probe import Probe
from fwdad.eager.duals.scalar import Scalar, same_terms
from fwdad.eager.duals.tags import isinstance_dual, top_tag
from fwdad.eager.hooks.iteration import iterate
from fwdad.eager.hooks.known_types import KEYS, NATIVE, PLAIN
from fwdad.eager.memory import stale, store
from fwdad.eager.memory.containers import CONTAINERS, log_container, log_object
from fwdad.eager.memory.shadow import SHADOWED, find_shadow, untouched
from fwdad.eager.run import STATE
from fwdad.errors import DualLeakError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import is_leaf
from fwdad.tangents.plain import plain


def getitem(o: Any, index: Any) -> Any:
    """``o[index]``."""
    t = type(o)
    if t is Array:
        u = type(index)
        if (u is int or u is slice) and o.tag.alive and isinstance(o.held, _READABLE):
            p = o.p
            if type(p) is np.ndarray and (not SHADOWED or untouched(p)):
                if u is slice:
                    return o.part(index)
                if p.ndim == 1:
                    return o.element(index)
        return store.load_dual(o, index)
    if t is np.ndarray:
        if type(index) is slice or type(index) is str:
            return o[index]  # a view: its memory has what tangents it has
        shadow = find_shadow(o) if SHADOWED else None
        if shadow is not None:
            return store.load(o, index, shadow)
        item = o[index]
        if stale.ARRAYS and (type(item) is not np.ndarray or item.base is None):
            stale.check_array(o, index)
        return item
    if t is np.flatiter:
        return flat.flat_load(o, index)
    if SHADOWED and protocols.is_buffer(t):
        protocols.check_buffer(o)
    if isinstance(o, dict):
        if type(index) in KEYS:
            check_key(o, index)
        missing = getattr(t, "__missing__", None)
        if isinstance(missing, types.FunctionType) and index not in o:
            return call(missing, o, index)
        if missing is not None:
            log_container(o)
    if t is Scalar and isinstance(plain(o), np.generic):
        return store.load_dual(as_array(o), index)
    if t in PLAIN:
        return stale.revive(o[index]) if stale.NUMBERS else o[index]
    method = getattr(t, "__getitem__", None)
    if isinstance(method, types.FunctionType):
        return call(method, o, index)
    return o[index]


_READABLE = (Chunk, tuple)  # what a dual array holds, unless its tangent does not exist


def setitem(value: Any, o: Any, index: Any) -> None:
    """``o[index] = value``."""
    t = type(o)
    if t is np.ndarray and type(value) is Scalar:
        run = STATE.run
        if run is not None:
            run.writes(o, index)
        if store.store_number(o, index, value):
            return
    if t is np.ndarray or t is Array:
        if SHADOWED and type(value) not in NATIVE:
            value = protocols.as_number(protocols.as_numpy_reads(value))
        store.store(o, index, value)
        return
    if isinstance(o, CONTAINERS) and not isinstance(
        getattr(t, "__setitem__", None), types.FunctionType
    ):
        log_container(o)
        if isinstance(index, slice) and isinstance(o, list):
            value = list(iterate(value))
        o[index] = value
        return
    if t is np.flatiter or t is flat.Flat:
        flat.flat_store(o, index, value)
        return
    method = getattr(t, "__setitem__", None)
    if isinstance(method, types.FunctionType):
        call(method, o, index, value)
        return
    log_object(o)
    o[index] = value


def aug_setitem(o: Any, index: Any, old: Any, new: Any) -> None:
    """The store of ``o[index] += v``, skipped for a view that was updated in place."""
    if new is old and type(o) in (np.ndarray, Array) and type(old) in (np.ndarray, Array):
        if _shares(o, old):
            return
    setitem(new, o, index)


def _shares(o: Any, view: Any) -> bool:
    a, b = plain(o), plain(view)
    base = b.base
    return base is not None and (base is a or base is a.base or np.may_share_memory(a, b))


def delitem(o: Any, index: Any) -> None:
    """``del o[index]``."""
    method = getattr(type(o), "__delitem__", None)
    if isinstance(method, types.FunctionType):
        call(method, o, index)
        return
    if isinstance(o, CONTAINERS):
        log_container(o)
    else:
        log_object(o)
    del plain(o)[index]  # arrays have NumPy's own error


def check_key(table: dict[Any, Any], key: Any) -> None:
    """Refuse a look-up that matches an equal number with another derivative."""
    if not table:
        return
    probe = Probe(key)
    if probe not in table:
        return
    equal_key = probe.found
    value = table[equal_key]
    if type(key) is tuple and type(equal_key) is tuple:
        wrong = any(_is_another(h, k, value) for h, k in zip(equal_key, key, strict=True))
    else:
        wrong = _is_another(equal_key, key, value)
    if wrong:
        message = (
            f"a number that carries a derivative ({primal_part(key)!r}) is looked up in a dict "
            "whose equal key carries a different derivative (or none), so the result would have "
            "the wrong derivative. Use an index as the key instead, or fwdad.stop_gradient(x)"
        )
        raise DualLeakError(message)


def _is_another(equal_key: Any, key: Any, value: Any) -> bool:
    if equal_key is key:
        return False
    if type(key) is not Scalar:  # a constant finds the entry of a dual
        return type(equal_key) is Scalar and top_tag((value,)) is not None
    if not is_leaf(value):
        return False
    if type(equal_key) is Scalar:
        return equal_key.tag is not key.tag or not same_terms(equal_key, key)
    return not isinstance_dual(value)
