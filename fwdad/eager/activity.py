"""Tests for which values carry tangents, and which can neither carry nor reach any."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from fwdad.eager.duals.array import Array
from fwdad.eager.duals.tags import isinstance_dual, top_tag
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.memory.stale import any_left, is_left


def is_active(values: Any) -> bool:
    """Whether any value, or item of a list or dict among them, carries a tangent."""
    if top_tag(values) is not None:
        return True
    return bool(SHADOWED) and any(_shadowed(v) for v in values)


def _shadowed(v: Any) -> bool:
    t = type(v)
    if t is np.flatiter:
        return find_shadow(v.base) is not None
    if t is not Array and issubclass(t, np.ndarray):
        return find_shadow(v) is not None
    if t is list or t is tuple:
        return any(_shadowed(item) for item in v)
    if t is dict:
        return any(_shadowed(item) for item in v.values())
    return False


_INERT = {
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range,
    np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128, np.complex64,
    types.BuiltinFunctionType, types.ModuleType, np.ufunc, type,
}  # fmt: skip


def is_inert(values: Any) -> bool:
    """Whether values can neither carry a tangent, nor have lost one, nor reach user code."""
    for v in values:
        t = type(v)
        if t in _INERT:
            continue
        if t is np.ndarray:
            if v.dtype.kind == "O" or (SHADOWED and find_shadow(v) is not None) or is_left(v):
                return False
            continue
        if t is tuple or t is list or t is set or t is frozenset:
            if is_inert(v) and not any_left(v):
                continue
            return False
        if t is dict:
            if is_inert(v.values()) and not any_left(v.values()):
                continue
            return False
        if isinstance(v, (np.dtype, np.generic)) and not isinstance_dual(v):
            continue
        return False
    return True
