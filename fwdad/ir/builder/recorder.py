"""The recorder: appends calls to the block that is open."""

from __future__ import annotations

import types
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np

from fwdad.errors import AliasedArgumentError, UntraceableError
from fwdad.ir.abstract_eval.rule_trials import check_on_samples
from fwdad.ir.builder.arrays import Arrays
from fwdad.ir.builder.call_form import tidy, with_named_out
from fwdad.ir.leaves import Leaves
from fwdad.ir.ops import Apply
from fwdad.ir.primitives.view_mirrors import lie_apart
from fwdad.ir.symbol import Symbol, UnknownText
from fwdad.ir.types import BOOL
from fwdad.rules.core.by_position import by_position, told_dtypes
from fwdad.rules.core.registry import (
    find_rule,
    function_name,
    out_name,
    writes_no_array,
    writes_shared,
)
from fwdad.tangents.shapes import same_shape


def _dtype_of(x: Any) -> Any:
    return x.dtype if type(x) is Symbol else getattr(x, "dtype", None) or np.asarray(x).dtype


_LISTS = {list, tuple}
_MADE_ARRAYS: dict[str, set[Any]] = {  # by kind of rule
    "linear": {*_LISTS},
    "multilinear": {*_LISTS},
    "frule": {list},
}
_OF_UFUNCS = {"dtype", "casting", "order", "subok"}
_OF_PYTHON: dict[str, Any] = {"i": int, "f": float, "c": complex}

# Questions about types: returned when the tape is written.
STATIC: dict[Any, Callable[..., Any]] = {
    np.iscomplexobj: lambda x: _dtype_of(x).kind == "c",
    np.isrealobj: lambda x: _dtype_of(x).kind != "c",
    np.ndim: lambda a: a.ndim if type(a) is Symbol else np.ndim(a),
    np.shape: lambda a: a.shape if type(a) is Symbol else np.shape(a),
    np.size: lambda a: a.size if type(a) is Symbol else np.size(a),
    np.isscalar: lambda element: type(element) is Symbol and not element.is_array,
    np.result_type: lambda *parts: np.result_type(
        *(p.dtype if type(p) is Symbol else p for p in parts)
    ),
}


class Recorder(Arrays):
    """Records one tape: canonical calls, with arrays where rules expect them."""

    def apply(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record a call of a function without side effects, and return its result.

        ``UntraceableError`` if the type of the result is unknown.
        """
        if kwargs:
            args, kwargs = by_position(function, args, kwargs)
        known = STATIC.get(function)
        if known is not None:
            return known(*args, **kwargs)
        rule = find_rule(function)
        if rule is not None and rule.mutates:
            return self._apply_writer(rule, args, kwargs)
        args, kwargs = with_named_out(function, args, kwargs)
        if kwargs.get("out") is not None:
            return self._apply_out(function, args, dict(kwargs))
        args, kwargs = self._with_arrays(function, *tidy(function, args, kwargs))
        inputs = tuple(self.operand(a) for a in args)
        options = {key: self.operand(a) for key, a in kwargs.items()}
        if rule is not None and rule.of_user:
            check_on_samples(rule, inputs, options, self.place())
        found = self.infer(function, inputs, options)
        if isinstance(found, (str, bytes)):
            return UnknownText(self.place())
        if isinstance(function, np.ufunc) and not _OF_UFUNCS.isdisjoint(options):
            rule = find_rule(function)
            ruled = rule is not None and rule.kind not in ("elementwise", "constant")
            if ruled or "dtype" in options:
                return self._cast_before(function, args, kwargs)
        if found is None and isinstance(function, types.BuiltinFunctionType):
            message = (
                f"{function_name(function)} returns None: it writes into an array that it is "
                "given, which cannot be traced"
            )
            raise UntraceableError(message, self.place())
        made, values = self.symbols(found)
        if isinstance(found, (tuple, list)) and (len(found) < 2 or len(values) != len(found)):
            function = Leaves(function)
        self.emit(Apply(function, inputs, options, outputs=tuple(values)))
        return made

    def _apply_writer(self, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a writing call as one that returns the new contents, and stores of these."""
        primals, _ = rule.binder.bind(args, kwargs)
        arrays = {
            k: self.as_symbol(x) for k, x in enumerate(primals)
            if isinstance(x, np.ndarray) or (type(x) is Symbol and x.is_array)
        }  # fmt: skip
        for k in rule.mutates:
            if k not in arrays:
                raise UntraceableError(writes_no_array(rule, k, primals[k]), self.place())
            for j, other in arrays.items():
                if j != k and self.may_share(arrays[k].value, other.value):
                    apart = self.apply_typed(lie_apart, (arrays[k], other), BOOL)
                    message = writes_shared(rule, k, j)
                    self.check(apart, AliasedArgumentError, (message,), self.place())
        returned, *written = self.apply(rule.pure, args, kwargs)
        for k, new in zip(rule.mutates, written, strict=True):
            self.store(arrays[k], Ellipsis, new)
        return returned

    def _cast_before(self, ufunc: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Record a ufunc without the options common to all ufuncs, which its rule rejects."""
        rest = {key: a for key, a in kwargs.items() if key not in _OF_UFUNCS}
        if kwargs.get("dtype") is None:
            return self.apply(ufunc, args, rest)
        arrays = [self.as_symbol(np.asarray(a) if type(a) in _LISTS else a) for a in args]
        given = [
            _OF_PYTHON.get(a.type.dtype.kind, a.type.dtype)
            if getattr(a.type, "python", False)
            else a.type.dtype
            for a in arrays
        ]
        found = told_dtypes(ufunc, given, kwargs["dtype"], kwargs.get("casting", "same_kind"))

        def cast(a: Symbol, wanted: np.dtype) -> Symbol:
            if a.type.dtype == wanted:
                return a
            if a.is_array:
                return self.apply(np.ndarray.astype, (a, wanted), {})
            return self.apply(wanted.type, (a,), {})

        return self.apply(ufunc, tuple(map(cast, arrays, found)), rest)

    def _with_arrays(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call with lists that hold symbols as arrays, where NumPy would convert them."""
        if _LISTS.isdisjoint(map(type, args)) and _LISTS.isdisjoint(map(type, kwargs.values())):
            return args, kwargs
        if function is np.full:
            args = (*args[:1], *map(self.as_array, args[1:2]), *args[2:])
            given = {"fill_value": self.as_array(kwargs["fill_value"])} if len(args) < 2 else {}
            return args, {**kwargs, **given}
        rule = find_rule(function)
        if rule is None or not (rule.takes_arrays or rule.takes_sequences):
            return args, kwargs
        names, primals = rule.binder.positional, rule.binder.primals
        numbers = _MADE_ARRAYS.get(rule.kind, set())

        def array_of(x: Any) -> Any:
            if type(x) in numbers and _holds_numbers(x):  # bodies read its shape
                return self.apply(np.array, (x,), {})
            return self.as_array(x)

        def made(a: Any, name: str | None) -> Any:
            if name not in primals and not (name is None and rule.binder.variadic_active):
                return a
            first = primals.index(name) if name in primals else len(primals)
            whole = self.as_array if name is None else array_of  # numbers of einsum name axes
            return rule.with_arrays((a,), whole, first)[0]

        args = tuple(made(a, name) for a, name in zip_longest(args, names[: len(args)]))
        return args, {key: made(a, key) for key, a in kwargs.items()}

    def _apply_out(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a call whose results are written into given arrays."""
        out = kwargs.pop("out")
        # in a reduction it selects elements to reduce, in these elements of `out` to write
        of_out = isinstance(function, np.ufunc) or function is np.clip
        where = kwargs.pop("where", True) if of_out else True
        answers = self.apply(function, args, kwargs)
        if isinstance(out, tuple) and len(out) == 1:
            (out,) = out
        if out is None:
            return answers
        pairs = zip(out, answers, strict=True) if isinstance(out, tuple) else [(out, answers)]
        for target, y in pairs:
            if target is None:
                continue
            if not isinstance(target, np.ndarray) and not getattr(target, "is_array", False):
                message = "return arrays must be of ArrayType"
                raise TypeError(message)
            into = self.as_symbol(target)
            if not np.can_cast(y.type.dtype, into.type.dtype, "same_kind"):
                message = (
                    f"cannot store {y.type} into an `out` array of dtype {into.type.dtype}: give "
                    "an array of a wider dtype"
                )
                raise UntraceableError(message, self.place())
            if out_name(function) != "out" and not same_shape(into.shape, y.shape):
                message = "output shape not correct"  # SciPy's own words; it does not broadcast
                raise RuntimeError(message)
            self.store_where(into, y, where)
        if isinstance(out, tuple):
            return tuple(y if t is None else t for t, y in zip(out, answers, strict=True))
        return out


def _holds_numbers(x: Any) -> bool:
    """Whether a list, at any depth, holds only Python numbers."""
    return all(
        _holds_numbers(item) if type(item) in _LISTS else type(item) in (bool, int, float, complex)
        for item in x
    )
