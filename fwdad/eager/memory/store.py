"""Loads from and stores into arrays that carry tangents."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.calls.creation import explicit_items, make_array
from fwdad.eager.duals.array import Array, root_of, wrap
from fwdad.eager.duals.dual import check_alive
from fwdad.eager.duals.explicit import explicit, records, settled
from fwdad.eager.duals.scalar import DOUBLE, Scalar, across_lanes, number, parts_of
from fwdad.eager.duals.tags import isinstance_dual, top_tag
from fwdad.eager.memory.shadow import (
    SHADOWED,
    Shadow,
    any_shadow,
    find_shadow,
    make_shadow,
    shadow_for,
    shadow_of_memory,
    untouched,
)
from fwdad.eager.memory.stale import ARRAYS, check_array, check_read
from fwdad.eager.run import STATE
from fwdad.errors import AliasedArgumentError, DualLeakError, UnsupportedTypeError
from fwdad.rules.core.registry import READ_WHILE_WRITTEN, share
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes, is_basic, lane_last_index
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Undefined


def settle(y: Array) -> None:
    """Move the tangents of a dual array, and so of all its views, into shadow memory."""
    level: Any = y
    while isinstance_dual(level):
        if level.tag.alive:
            root = root_of(level)
            raw = plain(root)
            shadow = any_shadow(raw)
            if shadow is None or level.tag not in shadow.lanes:
                t = root._t
                shadow = make_shadow(raw, level.tag)
                if isinstance(t, Chunk):
                    assign_to_lanes(shadow.view(level.tag, raw), (Ellipsis,), t)
        level = level.p


def as_index(index: Any) -> tuple[Any, ...]:
    """An index as the tuple that NumPy makes of it."""
    return index if type(index) is tuple else (index,)


def assign_to_lanes(target: Any, index: tuple[Any, ...], t: Any) -> None:
    """Store a chunk into lanes ``(N, *shape)`` under the primal's index; ``ZERO`` stores zeros."""
    if type(target) is not np.ndarray:  # a view that records
        target.assign(index, t)
        return
    last = target.transpose((*range(1, target.ndim), 0))
    at = lane_last_index(index)
    if not isinstance(t, Chunk):
        store_plain(last, at, 0)  # of an enclosing call, these lanes may have tangents themselves
        return
    lanes = t.lanes.transpose((*range(1, t.ndim + 1), 0))
    if plain(lanes).dtype.kind == "c" and target.dtype.kind != "c":
        lanes = lanes.real
    store_plain(last, at, lanes)


def store_plain(a: np.ndarray, index: Any, v: Any) -> None:
    """``a[index] = v`` for a plain array and any value, tangents included."""
    check_read((v,))
    if a.dtype.kind == "O":
        a[index] = v
        return
    shadow = find_shadow(a) if SHADOWED else None
    if shadow is None and SHADOWED and a.dtype.kind not in "fcV" and _hides_tangents(a):
        message = (
            f"cannot write through a view as {a.dtype} of an array whose values carry "
            "derivatives: their tangents would not change. Write into the array itself"
        )
        raise DualLeakError(message)
    carried: dict[Any, Any] = {}
    while isinstance_dual(v):
        check_alive(v.tag)
        t = v.t
        if isinstance(t, Undefined):
            t.use()
        carried[v.tag] = t
        v = v.p
    if carried and a.dtype.kind not in "fcV":
        message = (
            f"a value that carries a derivative is stored into an array of dtype {a.dtype}, which "
            "cannot hold one: make the array float, for example numpy.zeros(n)"
        )
        raise DualLeakError(message)
    a[index] = v
    if not carried and shadow is None:
        return
    shadowed = any_shadow(a)
    for tag in set(carried) | set(() if shadowed is None else shadowed.lanes):
        shadow = make_shadow(a, tag)
        assign_to_lanes(shadow.view(tag, a), as_index(index), carried.get(tag, ZERO))


def _hides_tangents(a: np.ndarray) -> bool:
    """Whether a view with a dtype that has no tangents covers memory that may have some."""
    shadow = shadow_of_memory(a)
    if shadow is None:
        return False
    fields = getattr(getattr(shadow.owner, "dtype", None), "fields", None)
    if not fields or all(a.dtype != field[0].base for field in fields.values()):
        return True
    views = [(tag, shadow.view(tag, a)) for tag in list(shadow.lanes)]
    return any(np.any(v) if tag.record is None else v.touched() for tag, v in views)


def store(o: Any, index: Any, v: Any) -> None:
    """``o[index] = v`` for a plain or dual array."""
    if type(index) is str:  # a field of a structured array is a view
        store(o[index], Ellipsis, v)
        return
    if type(o) is Array:
        check_alive(o.tag)
        raw = plain(o)
        _log(raw, index)
        _check_mask(raw, index, v)
        v = _value(v)
        settle(o)
    else:
        raw = o
        _log(raw, index)
        _check_mask(raw, index, v)
        if type(v) is Scalar and store_number(raw, index, v):
            return
        if type(v) is Array and store_array(raw, index, v):
            return
        v = _value(v)
    store_plain(raw, index, v)


def _check_mask(a: np.ndarray, index: Any, v: Any) -> None:
    """Refuse values under a mask of all axes that are a view of the array, if it has tangents."""
    if type(index) is not np.ndarray or index.dtype != bool or index.ndim != a.ndim:
        return
    given = plain(v)
    if isinstance(given, np.ndarray) and given.size > 1 and share(a, given):
        if isinstance_dual(v) or any_shadow(a) is not None:
            raise AliasedArgumentError(READ_WHILE_WRITTEN)


def store_number(a: np.ndarray, index: Any, v: Scalar) -> bool:
    """``a[i, j] = v`` for one element and a dual of one call: the commonest store in a loop.

    Returns False, with nothing done, where the general store is needed.
    """
    at = index if type(index) is tuple else (index,)
    tag = v.tag
    if len(at) != a.ndim or a.dtype.kind != "f" or not tag.alive or not _all_int(at):
        return False
    if type(v.p) is Scalar or type(v.p) is Array:
        return False
    shadow = shadow_for(a, tag)
    if shadow is None:
        return False
    a[index] = v.p
    if tag.record is not None:
        shadow.view(tag, a).assign_terms(at, v.terms)
        return True
    column = shadow.view(tag, a)[(_ALL, *at)]
    if len(v.terms) != tag.n:
        column.fill(0.0)
    for held, d in v.terms.items():  # seeds of a basis: the coefficients are the tangent
        if held.lane < 0 or type(d) is not float:
            column[...] = v.t.lanes
            break
        column[held.lane] = d
    return True


_ALL = slice(None)


def store_array(a: np.ndarray, index: Any, v: Array) -> bool:
    """``a[i:j] = v``, or ``a[...] = v``, for a dual of one call and of the same shape.

    Returns False, with nothing done, where the general store is needed.
    """
    p, t = v.p, v._t
    if type(p) is not np.ndarray or type(t) is not Chunk or a.dtype.kind != "f":
        return False
    if not v.tag.alive or (SHADOWED and not untouched(p)):
        return False
    if type(index) is slice:
        target = a[index]
    elif index is Ellipsis:
        target, index = a, _ALL
    else:
        return False
    lanes = t.lanes
    if target.shape != p.shape or type(lanes) is not np.ndarray or lanes.dtype.kind == "c":
        return False
    shadow = shadow_for(a, v.tag)
    if shadow is None:
        return False
    target[...] = p
    shadow.view(v.tag, a)[:, index] = lanes
    return True


def _log(raw: np.ndarray, index: Any = Ellipsis) -> None:
    run = STATE.run
    if run is not None:
        run.writes(raw, index)


def _value(v: Any) -> Any:
    """A value to store, with its tangents made explicit before anything is written."""
    if type(v) is np.ndarray:
        return wrap(v, copy=True) if SHADOWED and find_shadow(v) is not None else v
    if type(v) in (list, tuple):
        items = explicit_items(v) if SHADOWED else v
        return make_array(items) if top_tag(items) is not None else v
    if type(v) is Array and SHADOWED:
        return settled(v) if find_shadow(plain(v)) is not None else v
    return v


def accumulate(
    a: np.ndarray, b: Any, operation: Any, write: Callable[[], Any] | None = None
) -> bool:
    """``a += b`` or ``a -= b`` on a plain array, without reading the old tangents.

    ``write`` writes the values, if they are not to be added so. Returns False, with nothing done,
    where the general store is needed.
    """
    b = explicit(b)
    if not isinstance_dual(b) or a.dtype.kind != "f":
        return False
    tag, p, t = b.tag, b.p, b.t
    if not isinstance(t, Chunk) or isinstance_dual(p) or not tag.alive or len(t.shape) > a.ndim:
        return False
    if ARRAYS:
        check_array(a)
    _log(a)
    shadow = shadow_for(a, tag)
    if shadow is None:
        return False
    adds = operation is operator.add
    try:
        wide = t.broadcast_to(a.shape)
    except ValueError:  # the general store raises NumPy's error about the shapes
        return False
    if tag.record is None:
        lanes = wide.lanes
        if type(lanes) is not np.ndarray or lanes.dtype.kind == "c":
            return False
    elif wide.dtype.kind == "c":
        return False
    if write is not None:
        write()
    elif adds:
        a += p
    else:
        a -= p
    view = shadow.view(tag, a)
    if tag.record is not None:
        view.accumulate(wide if adds else -wide)
    elif adds:
        view += lanes
    else:
        view -= lanes
    return True


def load(a: Any, index: Any, shadow: Shadow | None = None) -> Any:
    """``a[index]`` for a plain array whose memory carries tangents, in ``shadow`` if given."""
    index = as_index(index)
    if a.dtype.kind == "V":
        fields = (
            len(index) == 1 and type(index[0]) is list and index[0] and type(index[0][0]) is str
        )
        if not fields and not is_basic(index):
            return load_records(a, index)
        item = a[index[0]] if fields else a[index]
        if not isinstance(item, np.ndarray):
            message = (
                "a record of a structured array whose fields carry derivatives is read as a whole: "
                "read the field first, a['field'][i]"
            )
            raise UnsupportedTypeError(message)
        return item
    whole = bool(index) and len(index) == a.ndim and _all_int(index)
    if ARRAYS and (whole or not isinstance(a[index], np.ndarray) or not is_basic(index)):
        check_array(a, index)  # a view is checked where it is read
    if whole:
        shadow = shadow or find_shadow(a)
        if shadow is not None and len(shadow.lanes) == 1:
            (tag,) = shadow.lanes
            if shadow.only(tag):
                p, lanes = a[index], shadow.view(tag, a)
                if tag.record is not None:
                    return Scalar(p, {lanes.load(index): 1.0}, tag)
                if tag.eager and a.dtype is DOUBLE:
                    x_dot = lanes[across_lanes(tag.n, index)]
                    return number(p, [(x_dot if tag.n == 1 else x_dot.copy(), None)], tag)
                return Scalar(p, {Lanes(lanes[(_ALL, *index)].copy()): 1.0}, tag)
    if is_basic(index):
        item = a[index]
        if isinstance(item, np.ndarray):
            return item  # a view, of no axes too if the index has an ellipsis
        return _scalar(item, wrap(a[(*index, Ellipsis)], copy=True))
    return load_dual(wrap(a, copy=False), index)


def _all_int(index: tuple[Any, ...]) -> bool:
    for i in index:  # noqa: SIM110  (a generator would cost as much as the rest)
        if type(i) is not int:
            return False
    return True


def load_records(a: np.ndarray, index: Any) -> np.ndarray:
    """A copy of the records ``a[index]`` of a structured array, with tangents of its own."""
    shadow = find_shadow(a)
    assert shadow is not None
    copied = np.array(a[index])
    for tag in list(shadow.lanes):
        if not shadow.only(tag):
            raise UnsupportedTypeError(records("a nested derivative copies"))
        copied_shadow = make_shadow(copied, tag)
        if tag.record is not None:
            _copy_fields(shadow, a, index, copied_shadow, copied, tag)
            continue
        source, target = shadow.view(tag, a), copied_shadow.view(tag, copied)
        for k in range(tag.n):
            target[k] = source[k][index]
    return copied


def _copy_fields(
    source: Shadow, a: np.ndarray, index: Any, target_shadow: Shadow, target: np.ndarray, tag: Any
) -> None:
    """Copy the recorded tangents of ``a[index]`` field by field."""
    for name in a.dtype.names or ():
        field, copied = a[name], target[name]
        if field.dtype.kind == "V":
            _copy_fields(source, field, index, target_shadow, copied, tag)
        elif field.dtype.kind in "fc":
            target_shadow.view(tag, copied).assign(
                (Ellipsis,), source.view(tag, field).read()[index]
            )


def _scalar(value: Any, zero_d: Any) -> Any:
    """Turn the dual of a 0-d view into the dual of the element."""
    if not isinstance_dual(zero_d):
        return value
    inner = _scalar(value, zero_d.p)
    terms = {lanes: 1.0 if d is None else d for lanes, d in zero_d._t.terms.items()}
    return Scalar(inner, terms, zero_d.tag)


def load_dual(a: Any, index: Any) -> Any:
    """``a[index]`` for a dual array."""
    if SHADOWED and type(a) is Array:
        raw = plain(a)
        if find_shadow(raw) is not None and is_basic(as_index(index)):
            item = load(raw, index)
            return item if type(item) is not np.ndarray else _view(a, index)
        a = explicit(a)
    return _view(a, index)


def _view(a: Any, index: Any) -> Any:
    if type(a) is not Array:
        return a[index]
    check_alive(a.tag)
    p = _view(a.p, index)
    t = a.t[index]
    if not isinstance(t, Chunk):
        return p if not isinstance(t, Undefined) else t.use()
    if isinstance(p, np.ndarray):
        basic = is_basic(as_index(index))
        return Array(p, t, a.tag, root_of(a) if basic else None)
    parts = parts_of(t, ()) if a.tag.eager else None
    if parts is not None:
        return number(p, parts, a.tag)
    terms = {lanes: 1.0 if d is None else _number(d) for lanes, d in t.terms.items()}
    return Scalar(p, terms, a.tag)


def _number(d: Any) -> Any:
    """A scalar's scaling as a Python number, because float arithmetic is three times as fast."""
    if isinstance_dual(d):
        return d[()] if type(d) is Array else d
    if isinstance(d, np.floating):
        return float(d)
    if isinstance(d, np.complexfloating):
        return complex(d)
    if isinstance(d, np.ndarray):
        return d.item()
    return d
