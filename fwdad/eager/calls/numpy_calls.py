"""Calls of NumPy's functions: ``out=`` and ``where=``, ufunc methods, functions that write."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.calls import apply
from fwdad.eager.calls.creation import as_array, cast, copied, make_array
from fwdad.eager.calls.missing import rule_to_write
from fwdad.eager.calls.ufunc_names import NAMED, reduce_arguments
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit, with_explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import isinstance_dual, top_tag
from fwdad.eager.memory import stale, store
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.run import STATE
from fwdad.errors import AliasedArgumentError, DualLeakError, MissingRuleError
from fwdad.ops import record_of
from fwdad.rules.core.by_position import LOOP_DTYPES, given_dtypes
from fwdad.rules.core.contract import arrays_in
from fwdad.rules.core.registry import (
    READ_WHILE_WRITTEN,
    RULES,
    Rule,
    find_rule,
    function_name,
    share,
)
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.sparse import scatter_add


def note_inactive(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, reads: bool = True
) -> None:
    """Check that an inactive call reads nothing left by an earlier run, and log what it writes."""
    run = STATE.run
    if run is None:
        return
    rule = find_rule(f)
    if rule is not None and rule.mutates:  # positions among the primals
        primals, _ = rule.binder.bind(args, kwargs)
        targets = [plain(primals[k]) for k in rule.mutates]
    else:
        if rule is not None and not rule.contents and rule.out_position is not None:
            args, kwargs = named_out(rule, args, kwargs)
        out = kwargs.get("out")
        targets = list(out) if isinstance(out, tuple) else [] if out is None else [out]
        if rule is None:
            targets.extend(args[k] for k in record_of(f).writes if k < len(args))
    if stale.ARRAYS and reads and (rule is None or rule.kind != "constant"):
        for a in (*args, *kwargs.values()):
            if type(a) is np.ndarray and not any(a is target for target in targets):
                stale.check_array(a)
    for target in targets:
        if type(target) is np.ndarray:
            run.writes(target)


def with_out(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a rule; if there is an ``out``, it receives the result, tangents included."""
    if rule.contents:  # what it calls `out` is a primal
        return apply.apply_rule(rule, args, kwargs)
    args, kwargs = named_out(rule, args, kwargs)
    out = kwargs.get("out")
    record = record_of(rule.function)
    combine = record.reduction
    if combine is not None and is_active((kwargs.get("initial"),)):
        initial = kwargs["initial"]
        rest = {k: v for k, v in kwargs.items() if k not in ("initial", "out")}
        if record.start is not None:  # without a start an extreme of nothing is none
            rest["initial"] = record.start
        value = combine(explicit(initial), with_out(rule, args, rest))
        return value if out is None else write_out(out, value)
    if out is None:
        if rule.kind == "elementwise" and not kwargs and not rule.binder.options:
            return _elementwise(rule, rule.function, args)
        return apply.apply_rule(rule, args, kwargs)
    rest = {k: v for k, v in kwargs.items() if k != "out"}
    # a mask selects elements in a reduction, and places of `out` in `clip`
    where = rest.pop("where", True) if rule.function is np.clip else True
    casting = rest.get("casting", "same_kind")
    if (
        rule.function is np.concatenate
        and set(rest) <= {"axis", "casting"}
        and rest.get("axis", 0) is not None
    ):
        return _concatenate_into(out, *args, **rest)
    inputs = [*args, *rest.values()]
    if record.writes_early and any(share(plain(out), a) for a in arrays_in(inputs)):
        raise AliasedArgumentError(READ_WHILE_WRITTEN)
    if is_active(inputs):
        value = apply.apply_rule(rule, args, rest)
    else:
        value = rule.function(*args, **rest)
    if rule.out_name != "out" and np.shape(plain(value)) != np.shape(plain(out)):
        message = "output shape not correct"  # SciPy's own words; it does not broadcast
        raise RuntimeError(message)
    if record.out_as_made and not _is_as_made(plain(out), np.asarray(plain(value))):
        return rule.function(*map(plain, args), out=plain(out))  # raises NumPy's error
    return write_out(out, value, where, casting)


def _is_as_made(out: Any, value: np.ndarray) -> bool:
    """Whether an array is what a function would have made for a value."""
    alike = isinstance(out, np.ndarray) and (out.dtype, out.shape) == (value.dtype, value.shape)
    return alike and out.flags.c_contiguous


def _concatenate_into(out: Any, arrays: Any, axis: int = 0, casting: Any = "same_kind") -> Any:
    """``concatenate(out=)``, which copies arrays in turn; overlapping ones see earlier copies."""
    arrays = [a if isinstance(a, np.ndarray) else make_array(a) for a in arrays]
    shapes = [np.empty_like(plain(a)) for a in arrays]
    np.concatenate(shapes, axis, out=np.empty_like(plain(out)))  # NumPy's own errors
    start = 0
    at: list[Any] = [slice(None)] * plain(out).ndim
    for a in arrays:
        stop = start + np.shape(plain(a))[axis]
        at[axis] = slice(start, stop)
        _check_castable(a, out, casting)
        store.store(out, tuple(at), a)
        start = stop
    return out


def named_out(
    rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with an ``out``, or an array as ``output``, as the keyword ``out``."""
    k = rule.out_position
    name = rule.out_name
    if k is not None and len(args) > k:
        out, rest = args[k], args[k + 1 :]
        names = rule.binder.positional[k + 1 : k + 1 + len(rest)]
        args, kwargs = args[:k], {**kwargs, **dict(zip(names, rest, strict=True)), name: out}
    if name != "out" and isinstance(kwargs.get(name), np.ndarray):
        out = kwargs[name]
        kwargs = {**kwargs, name: plain(out).dtype, "out": out}
    return args, kwargs


def write_out(out: Any, value: Any, where: Any = True, casting: Any = "same_kind") -> Any:
    """Store a result into ``out`` and return ``out``."""
    if isinstance(out, tuple):
        if len(out) == 1:
            (out,) = out
        else:
            pairs = zip(out, value, strict=True)
            return tuple(v if o is None else write_out(o, v, where, casting) for o, v in pairs)
    if not isinstance(out, np.ndarray):
        message = "return arrays must be of ArrayType"
        raise TypeError(message)
    shape = np.shape(plain(value))
    if len(shape) > out.ndim:  # a store would drop axes of length one
        message = (
            f"non-broadcastable output operand with shape {out.shape} doesn't match the broadcast "
            f"shape {shape}"
        )
        raise ValueError(message)
    _check_castable(value, out, casting)
    store_where(out, value, where)
    return out


def store_where(out: Any, value: Any, where: Any) -> None:
    """Store a value into an array where a mask is true."""
    if where is True:
        store.store(out, Ellipsis, value)
        return
    mask = _mask(where, out.shape)
    more = np.ndim(plain(value)) - out.ndim
    if more > 0:  # as a store without a mask does
        value = np.reshape(value, value.shape[more:])
    same = isinstance(value, np.ndarray) and value.shape == out.shape
    chosen = value if same else np.broadcast_to(value, out.shape)
    store.store(out, mask, chosen[mask])


def _mask(where: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The mask of elements to write; Python's numbers are truths, NumPy's raise NumPy's error."""
    of_numpy = isinstance(where, (np.ndarray, np.generic))
    mask = np.asarray(where, None if of_numpy else bool)
    if mask.dtype != bool:
        np.copyto(np.empty(mask.shape), 0.0, where=mask)  # NumPy's own error
    return np.broadcast_to(mask, shape)


def _check_castable(value: Any, out: Any, casting: Any) -> None:
    source, target = np.asarray(plain(value)).dtype, plain(out).dtype
    if isinstance_dual(value) and target.kind not in "fc":
        message = (
            f"a value that carries a derivative is stored into an array of dtype {target}, "
            "which cannot hold one: make the array float, for example numpy.zeros(n)"
        )
        raise DualLeakError(message)
    if not np.can_cast(source, target, casting):
        message = f"Cannot cast output from {source!r} to {target!r} with casting rule {casting!r}"
        raise TypeError(message)


_UFUNC_OPTIONS = {
    "out", "where", "casting", "order", "dtype", "subok", "signature", "sig", "axes", "axis",
    "keepdims",
}  # fmt: skip
_LISTS = {list, tuple, range}  # what NumPy makes arrays of


def holds_chunk(args: tuple[Any, ...]) -> bool:
    """Whether a rule body passes its tangent, so that a law of the closed list is meant."""
    for x in args:
        if issubclass(type(x), Chunk):
            return True
        if type(x) in (list, tuple) and holds_chunk(x):
            return True
    return False


# -- ufuncs


def call_ufunc(ufunc: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc or one of its methods."""
    if not kwargs and method == "__call__" and len(args) <= ufunc.nin:
        args = with_explicit(args)
        if top_tag(args) is None or holds_chunk(args):
            return ufunc(*args)
        return _simple(ufunc, args)
    if method == "at":
        return _at(ufunc, args)
    if method == "__call__" and len(args) > ufunc.nargs:
        return ufunc(*apply.primal_part(args), **kwargs)  # NumPy's own error
    if method == "__call__" and len(args) > ufunc.nin:
        kwargs = {**kwargs, "out": args[ufunc.nin :] if ufunc.nout > 1 else args[ufunc.nin]}
        args = args[: ufunc.nin]
    if holds_chunk(args):
        return getattr(ufunc, method)(*args, **kwargs)
    where = kwargs.get("where", True)
    inputs = [x for k, x in kwargs.items() if k not in ("out", "where")]
    if not is_active((*args, *inputs)) and not _active_out(kwargs.get("out")):
        note_inactive(ufunc, args, kwargs)
        return getattr(ufunc, method)(*args, **kwargs)
    if method == "__call__":
        return _general(ufunc, args, kwargs, where)
    return _method(ufunc, method, args, kwargs)


def _active_out(out: Any) -> bool:
    return out is not None and is_active(out if isinstance(out, tuple) else (out,))


def _simple(ufunc: Any, args: tuple[Any, ...]) -> Any:
    rule = RULES.get(ufunc) or find_rule(ufunc)
    if rule is None:
        if any(type(a) is np.ndarray and a.dtype.kind == "O" for a in args):
            return ufunc(*args)
        return _no_rule(ufunc, args)
    if rule.kind == "elementwise":
        return _elementwise(rule, ufunc, args)
    return apply.apply_rule(rule, args, {})


def _elementwise(rule: Rule, function: Any, args: tuple[Any, ...]) -> Any:
    args = tuple([make_array(a) if type(a) in _LISTS else a for a in args])
    if isinstance(function, np.ufunc):  # it finds the rule for duals of enclosing calls by itself
        return apply.apply_elementwise(rule, function, args)

    def primal(*inner: Any) -> Any:
        return function(*inner) if top_tag(inner) is None else _elementwise(rule, function, inner)

    return apply.apply_elementwise(rule, primal, args)


def _no_rule(ufunc: Any, args: tuple[Any, ...]) -> Any:
    position = next(k for k, a in enumerate(args) if top_tag((a,)) is not None)
    message = (
        f"no frule for {function_name(ufunc)} (argument {position} carries a derivative). "
        f"{rule_to_write(ufunc)}"
    )
    raise MissingRuleError(message)


def _general(ufunc: Any, args: tuple[Any, ...], kwargs: dict[str, Any], where: Any) -> Any:
    out = kwargs.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if out is Ellipsis:  # an array, also where a scalar would come
        rest = {k: v for k, v in kwargs.items() if k != "out"}
        return as_array(_general(ufunc, args, rest, where))
    args = with_explicit(args)
    others = set(kwargs) - {"out", "where", "casting", "order", "subok", *LOOP_DTYPES}
    rule = find_rule(ufunc) if others and top_tag(args) is not None else None
    if others and top_tag(args) is not None:
        accepted = rule is not None and (
            rule.binder.accepts_any_option or others <= set(rule.binder.options)
        )
        if rule is None or not accepted:
            if not others <= _UFUNC_OPTIONS:
                ufunc(*map(plain, args), **dict.fromkeys(others))  # raises NumPy's error
            message = f"numpy.{ufunc.__name__} with {', '.join(sorted(others))}= has no frule"
            raise MissingRuleError(message)
    if "casting" in kwargs or not LOOP_DTYPES.isdisjoint(kwargs):
        args = _as_told(ufunc, args, kwargs)
    order, casting = kwargs.get("order"), kwargs.get("casting", "same_kind")
    if rule is not None:  # of a product, which knows no `where`
        value = apply.apply_rule(rule, args, {k: v for k, v in kwargs.items() if k in others})
    elif where is True:
        value = _value(ufunc, args)
    else:
        return _masked(ufunc, args, out, where, casting)
    value = _in_order(value, order, args)
    return value if out is None else write_out(out, value, casting=casting)


def _masked(ufunc: Any, args: tuple[Any, ...], out: Any, where: Any, casting: Any) -> Any:
    """Call a ufunc where a mask is true; elsewhere neither its value nor its partial is taken."""
    if out is None:
        message = (
            f"numpy.{ufunc.__name__}(..., where=mask) without out= leaves the other elements "
            "undefined: pass out="
        )
        raise MissingRuleError(message)
    mask = _mask(where, plain(out).shape)
    chosen = [np.broadcast_to(a, mask.shape)[mask] if np.shape(plain(a)) else a for a in args]
    value = _value(ufunc, tuple(chosen))
    for o, v in zip(out, value, strict=True) if isinstance(out, tuple) else ((out, value),):
        _check_castable(v, o, casting)
        store.store(o, mask, v)
    return out


def _value(ufunc: Any, args: tuple[Any, ...]) -> Any:
    return ufunc(*args) if top_tag(args) is None else _simple(ufunc, args)


def _in_order(value: Any, order: Any, args: tuple[Any, ...]) -> Any:
    """New arrays in the ``order`` that a ufunc was told, which its rule does not know."""
    if order in (None, "K", "k"):
        return value
    if isinstance(value, tuple):
        return tuple(_in_order(v, order, args) for v in value)
    if not isinstance(value, np.ndarray):
        return value
    if order in ("A", "a"):  # of the operands, not of the result
        order = "F" if all(np.asarray(plain(a)).flags.f_contiguous for a in args) else "C"
    return copied(value, order)


def _as_told(ufunc: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """The operands as the options require; raises NumPy's error where ``casting`` forbids it."""
    kinds = []
    for a in args:
        p = plain(a)
        number = type(p) in (int, float, complex)
        kinds.append(type(p) if number else np.asarray(p).dtype)
    dtypes = given_dtypes(ufunc, kinds, options)
    if all(options.get(name) is None for name in LOOP_DTYPES):
        return args
    return tuple(_cast(a, wanted) for a, wanted in zip(args, dtypes, strict=False))


def _cast(a: Any, dtype: Any) -> Any:
    if type(a) is Scalar:
        a = make_array(a)
    return cast(a, dtype, copy=False) if type(a) is Array else np.asarray(a, dtype)


def _method(ufunc: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if method == "outer":
        if len(args) != 2:
            return getattr(ufunc, method)(*map(plain, args))  # raises NumPy's error
        a, b = (explicit(x) if not isinstance(x, list) else make_array(x) for x in args)
        wide = np.reshape(a, (*np.shape(plain(a)), *(1,) * np.ndim(plain(b))))
        return call_ufunc(ufunc, "__call__", (wide, b), kwargs)
    function = NAMED.get((ufunc, method))
    if function is not None:
        if method == "reduce":
            args, kwargs = reduce_arguments(args, kwargs)
        elif len(args) == 1:
            kwargs = {"axis": 0, **kwargs}
        return with_out(RULES[function], args, kwargs)
    rule = find_rule(getattr(ufunc, method))
    if rule is not None:
        return with_out(rule, args, kwargs)
    message = (
        f"no frule for numpy.{ufunc.__name__}.{method}. Register one for the bound method: "
        f"@fwdad.frule(np.{ufunc.__name__}.{method}, signature=...)"
    )
    raise MissingRuleError(message)


def _at(ufunc: Any, args: tuple[Any, ...]) -> Any:
    """``ufunc.at(a, index, b)``, so that repeated indices accumulate.

    Sums add their tangents up at once; else it is done element by element.
    """
    a, index, *rest = args
    if not is_active((a, *rest)):
        note_inactive(ufunc, (*rest,), {"out": a})
        return ufunc.at(*args)
    shape = plain(a).shape
    where = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)[index]
    flat = np.unravel_index(where.ravel(), shape) if shape else ()
    values = [np.broadcast_to(_copied(explicit(b)), where.shape).reshape(-1) for b in rest]
    operation = _SUMS.get(ufunc)
    if operation is not None and type(a) is np.ndarray and top_tag(values) is not None:
        summed = np.reshape(
            with_out(RULES[scatter_add], (*values, where.ravel(), a.size), {}), shape
        )
        (added,) = (np.reshape(plain(v), where.shape) for v in values)
        if store.accumulate(a, summed, operation, lambda: ufunc.at(a, index, added)):
            return None
    for k in range(where.size):
        at = tuple(int(i[k]) for i in flat)
        old = store.load(a, at) if type(a) is np.ndarray and SHADOWED else a[at]
        store.store(a, at, _value(ufunc, (old, *(v[k] for v in values))))
    return None


_SUMS = {np.add: operator.add, np.subtract: operator.sub}


def _copied(b: Any) -> Any:
    # NumPy copies an operand that overlaps before it begins
    if type(b) in _LISTS:
        return make_array(b)
    return b.copy() if isinstance(b, np.ndarray) else b


def call_scalar_type(cls: Any, args: tuple[Any, ...]) -> Any:
    """``numpy.float64(x)`` of a dual."""
    (x,) = args
    if issubclass(cls, np.inexact):
        if type(x) is Scalar:
            p = x.p
            return Scalar(
                call_scalar_type(cls, (p,)) if isinstance_dual(p) else cls(p), x.terms, x.tag
            )
        if isinstance(x, np.ndarray) and np.ndim(plain(x)) and plain(x).dtype.type is cls:
            return x  # itself, not a copy
        made = cast(make_array(x), cls, copy=True)
        return made if plain(made).ndim else store.load_dual(made, ())
    message = (
        f"a value that carries a derivative would become {cls.__name__} and lose it; if that is "
        "intended, use fwdad.stop_gradient(x)"
    )
    raise DualLeakError(message)
