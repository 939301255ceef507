"""Calls in canonical form: without ``out``, without lists where rules expect arrays, and so on."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Any

import numpy as np

from fwdad.errors import AliasedArgumentError, UntraceableError
from fwdad.ir.builder.index_parts import check_rank
from fwdad.ir.einsum_letters import in_letters
from fwdad.ir.ops import is_array, values_in
from fwdad.ir.primitives.argument_memory import is_c_contiguous
from fwdad.ir.primitives.view_mirrors import lie_apart
from fwdad.ir.symbol import Recording, Symbol
from fwdad.ir.types import BOOL
from fwdad.ops import record_of
from fwdad.rules.core.by_position import LOOP_DTYPES, given_dtypes
from fwdad.rules.core.registry import (
    READ_WHILE_WRITTEN,
    find_rule,
    function_name,
    out_name,
    writes_no_array,
    writes_shared,
)
from fwdad.tangents.shapes import same_shape

_LISTS = {list, tuple}
_MADE_ARRAYS: dict[str, set[Any]] = {  # by kind of rule
    "linear": {*_LISTS},
    "multilinear": {*_LISTS},
    "frule": {list},
}
OF_UFUNCS = {"casting", "order", "subok", *LOOP_DTYPES}
_OF_PYTHON: dict[str, Any] = {"i": int, "f": float, "c": complex}


def apply_writer(
    recorder: Recording, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Record a writing call as one that returns the new contents, and stores of these."""
    primals, _ = rule.binder.bind(args, kwargs)
    arrays = {
        k: recorder.as_symbol(x) for k, x in enumerate(primals)
        if isinstance(x, np.ndarray) or (type(x) is Symbol and x.is_array)
    }  # fmt: skip
    for k in rule.mutates:
        if k not in arrays:
            raise UntraceableError(writes_no_array(rule, k, primals[k]), recorder.place())
        for j, other in arrays.items():
            if j != k and recorder.may_share(arrays[k].value, other.value):
                apart = recorder.apply_typed(lie_apart, (arrays[k], other), BOOL)
                message = writes_shared(rule, k, j)
                recorder.check(apart, AliasedArgumentError, (message,), recorder.place())
    returned, *written = recorder.apply(rule.pure, args, kwargs)
    for k, new in zip(rule.mutates, written, strict=True):
        recorder.store(arrays[k], Ellipsis, new)
    return returned


def cast_before(recorder: Recording, ufunc: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Record a ufunc without the options common to all ufuncs, which its rule rejects.

    The results are copied into the ``order`` that was asked for.
    """
    rest = {key: a for key, a in kwargs.items() if key not in OF_UFUNCS}
    order = kwargs.get("order") or "K"
    if order not in ("K", "C", "F"):
        message = f"{function_name(ufunc)} with dtype= and order={order!r} cannot be traced"
        raise UntraceableError(message, recorder.place())
    y = recorder.apply(ufunc, _cast(recorder, ufunc, args, kwargs), rest)
    if order == "K":
        return y
    made = [recorder.apply(np.ndarray.copy, (part, order), {}) if part.is_array else part
            for part in (y if isinstance(y, tuple) else (y,))]  # fmt: skip
    return tuple(made) if isinstance(y, tuple) else made[0]


def _cast(recorder: Recording, ufunc: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The operands of a ufunc as the options require."""
    if all(kwargs.get(key) is None for key in LOOP_DTYPES):
        return args
    arrays = [recorder.as_symbol(np.asarray(a) if type(a) in _LISTS else a) for a in args]
    given = [
        _OF_PYTHON.get(a.type.dtype.kind, a.type.dtype)
        if getattr(a.type, "python", False)
        else a.type.dtype
        for a in arrays
    ]
    found = given_dtypes(ufunc, given, kwargs)

    def cast(a: Symbol, wanted: np.dtype) -> Symbol:
        if a.type.dtype == wanted:
            return a
        if a.is_array:
            return recorder.apply(np.ndarray.astype, (a, wanted), {})
        return recorder.apply(wanted.type, (a,), {})

    return tuple(map(cast, arrays, found))


def with_arrays(
    recorder: Recording, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call with lists that hold symbols as arrays, where NumPy would convert them."""
    if _LISTS.isdisjoint(map(type, args)) and _LISTS.isdisjoint(map(type, kwargs.values())):
        return args, kwargs
    if function is np.full:
        args = (*args[:1], *map(recorder.as_array, args[1:2]), *args[2:])
        given = {"fill_value": recorder.as_array(kwargs["fill_value"])} if len(args) < 2 else {}
        return args, {**kwargs, **given}
    rule = find_rule(function)
    if rule is None or not (rule.takes_arrays or rule.takes_sequences):
        return args, kwargs
    names, primals = rule.binder.positional, rule.binder.primals
    numbers = _MADE_ARRAYS.get(rule.kind, set())

    def array_of(x: Any) -> Any:
        if type(x) in numbers and _holds_numbers(x):  # bodies read its shape
            return recorder.apply(np.array, (x,), {})
        return recorder.as_array(x)

    def made(a: Any, name: str | None) -> Any:
        if name not in primals and not (name is None and rule.binder.variadic_active):
            return a
        first = primals.index(name) if name in primals else len(primals)
        whole = recorder.as_array if name is None else array_of  # numbers of einsum name axes
        return rule.with_arrays((a,), whole, first)[0]

    args = tuple(made(a, name) for a, name in zip_longest(args, names[: len(args)]))
    return args, {key: made(a, key) for key, a in kwargs.items()}


def under_one_name(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """A call in the form by which its views are followed: of a diagonal, and of axes in letters."""
    if function is np.diag and not kwargs and np.ndim(args[0]) == 2:
        return np.diagonal, args
    if function is np.einsum and not isinstance(args[0], str):
        subscripts, operands = in_letters(args)
        return function, (subscripts, *operands)
    return function, args


def check_apart(recorder: Recording, a: Symbol, given: Any, test: Any = lie_apart) -> None:
    """Check that values are not read from the memory they go to, where the order would count."""
    for v in filter(is_array, values_in(recorder.operand(given))):
        if recorder.may_share(a.value, v):
            apart = recorder.apply_typed(test, (a, Symbol(v, recorder)), BOOL)
            recorder.check(apart, AliasedArgumentError, (READ_WHILE_WRITTEN,), recorder.place())


def apply_out(
    recorder: Recording, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Record a call whose results are written into given arrays."""
    out = kwargs.pop("out")
    if isinstance(function, np.ufunc) and _lengths_of_out(function.signature or ""):
        message = f"the result of {function_name(function)} has a length that only `out` tells"
        raise UntraceableError(message, recorder.place())
    # in a reduction it selects elements to reduce, in these elements of `out` to write
    of_out = isinstance(function, np.ufunc) or function is np.clip
    where = kwargs.pop("where", True) if of_out else True
    if record_of(function).writes_early and out is not None:
        check_apart(recorder, recorder.as_symbol(out), [args, list(kwargs.values())])
    casting = kwargs.get("casting", "same_kind")
    results = recorder.apply(function, args, kwargs)
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if out is None:
        return results
    pairs = zip(out, results, strict=True) if isinstance(out, tuple) else [(out, results)]
    for target, y in pairs:
        if target is None:
            continue
        if not isinstance(target, np.ndarray) and not getattr(target, "is_array", False):
            raise TypeError("return arrays must be of ArrayType")
        into = recorder.as_symbol(target)
        check_rank(into.type.ndim, y.type)
        if record_of(function).out_as_made:
            _check_as_made(recorder, into, y)
        if not np.can_cast(y.type.dtype, into.type.dtype, casting):
            message = (
                f"cannot store {y.type} into an `out` array of dtype {into.type.dtype}: give "
                "an array of a wider dtype"
            )
            raise UntraceableError(message, recorder.place())
        if out_name(function) != "out" and not same_shape(into.shape, y.shape):
            message = "output shape not correct"  # SciPy's own words; it does not broadcast
            raise RuntimeError(message)
        recorder.store_where(into, y, where)
    if isinstance(out, tuple):
        return tuple(y if t is None else t for t, y in zip(out, results, strict=True))
    return out


def _check_as_made(recorder: Recording, into: Symbol, y: Symbol) -> None:
    """Check that an array is like the one which a function has made, as NumPy requires."""
    message = (
        "output array is not acceptable (must have the right datatype, number of dimensions, and "
        "be a C-Array)"
    )
    alike = into.type.dtype == y.type.dtype and into.type.ndim == y.type.ndim
    if not alike or (into.is_array and not same_shape(into.shape, y.shape)):
        raise ValueError(message)
    holds = recorder.apply(is_c_contiguous, (into,), {})
    recorder.check(holds, ValueError, (message,), recorder.place())


def _lengths_of_out(signature: str) -> set[str]:
    """The lengths of a generalised ufunc's results that none of its arguments has."""
    of_arguments, _, of_results = signature.partition("->")
    return set(re.findall(r"[^\W\d]\w*", of_results)) - set(re.findall(r"\w+", of_arguments))


def _holds_numbers(x: Any) -> bool:
    """Whether a list, at any depth, holds only Python numbers."""
    return all(
        _holds_numbers(item) if type(item) in _LISTS else type(item) in (bool, int, float, complex)
        for item in x
    )


def check_castable(recorder: Recording, a: Symbol, value: Any) -> None:
    """Raise if a complex value goes into a real array, which NumPy forbids for scalars only."""
    dtype = a.type.dtype
    given = value.type.dtype if type(value) is Symbol else getattr(value, "dtype", None)
    complex_ = isinstance(value, complex) or (given is not None and given.kind == "c")
    if complex_ and dtype.kind != "c":
        message = f"a complex value is stored into an array of dtype {dtype}"
        raise UntraceableError(message, recorder.place())
