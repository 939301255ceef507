"""Calls of NumPy's functions: what they read of their arguments, and by which way they go."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active, is_inert
from fwdad.eager.calls import apply, numpy_calls, protocols
from fwdad.eager.calls.dispatch import HANDLERS, call, on_call
from fwdad.eager.calls.missing import missing_rule
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.lifting.lift import lift
from fwdad.eager.memory.reach import check_objects
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.memory.stale import ARRAYS, check_copied, check_lists
from fwdad.ops import is_of_polynomials, record_of
from fwdad.rules.core.by_position import by_position
from fwdad.rules.core.registry import RULES, find_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import Undefined, Zero

NumpyFunction = type(np.sum)
"""The class of NumPy's functions that are no ufuncs."""


def _duck(values: tuple[Any, ...], name: str) -> Any:
    """The first argument whose class implements a NumPy protocol by a method in Python.

    None beside a tangent: then NumPy asks both, and one of them may leave the call to the other.
    """
    found = None
    for v in values:
        if isinstance(v, (Chunk, Zero, Undefined)):
            return None
        if found is None and isinstance(getattr(type(v), name, None), types.FunctionType):
            found = None if isinstance_dual(v) else v
    return found


@on_call(NumpyFunction)
def call_numpy(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call one of NumPy's functions."""
    if kwargs:
        args, kwargs = by_position(f, args, kwargs)
    if not kwargs and not SHADOWED and not ARRAYS:
        tag = apply.arrays_tag(args)
        if tag is not None and f not in HANDLERS:
            rule = RULES.get(f)
            if rule is not None and rule.takes_only_primals(len(args)):
                return apply.apply_to_arrays(rule, args, tag)
    duck = _duck(args, "__array_function__")
    if duck is not None:
        types_ = tuple({type(a) for a in args if hasattr(type(a), "__array_function__")})
        return call(type(duck).__array_function__, duck, f, types_, args, kwargs)
    if is_of_polynomials(f, args):
        return call(f._implementation, *args, **kwargs)
    args = protocols.rows_apart(f, args)
    if SHADOWED:
        written = record_of(f).writes  # an `a.flat` among them is no copy of its items
        args = tuple([
            a if k in written else protocols.as_numpy_reads(a) for k, a in enumerate(args)
        ])  # fmt: skip
        kwargs = {k: protocols.as_numpy_reads(v) for k, v in kwargs.items()}
        check_objects(f, args)
    else:
        args = protocols.made_arrays(args)
    special = HANDLERS.get(f)
    if special is not None:
        return special(args, kwargs)
    check_lists(args)
    check_lists(kwargs.values())
    rule = find_rule(f)
    active = is_active((*args, *kwargs.values()))
    if active and numpy_calls.holds_chunk(args):
        return f(*args, **kwargs)
    if not active:
        viewing = record_of(f).may_be_view
        numpy_calls.note_inactive(f, args, kwargs, reads=not viewing)
        if rule is not None or is_inert((*args, *kwargs.values())):
            y = f(*args, **kwargs)
            if viewing:
                check_copied(args, y)
            return y
    elif rule is not None:
        return numpy_calls.with_out(rule, args, kwargs)
    implementation = getattr(f, "_implementation", None)
    if isinstance(implementation, types.FunctionType) and not numpy_calls.holds_chunk(args):
        lifted = lift(implementation)
        if lifted is not None:
            return lifted(*args, **kwargs)
    if active:
        raise missing_rule(f, args, kwargs)
    return f(*args, **kwargs)


@on_call(np.ufunc)
def call_ufunc(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc."""
    if len(args) == 1 and type(args[0]) is Array and not kwargs:  # the commonest call
        rule = RULES.get(f)
        if rule is not None and rule.kind == "elementwise":
            return apply.apply_to_array(rule, f, args[0])
    duck = _duck(args, "__array_ufunc__")
    if duck is not None:
        return call(type(duck).__array_ufunc__, duck, f, "__call__", *args, **kwargs)
    if SHADOWED:
        args = protocols.all_as_numpy_reads(args)
        check_objects(f, args)
    else:
        args = protocols.made_arrays(args)
    check_lists(args)
    return numpy_calls.call_ufunc(f, "__call__", args, kwargs)
