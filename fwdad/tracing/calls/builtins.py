"""Builtins and methods of arrays, by their meaning."""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, is_library_file
from fwdad.rules.registry import find_rule
from fwdad.tape.symbol import Symbol, UnknownText
from fwdad.tape.types import FLOAT, Number
from fwdad.tracing.calls.calls import BUILTINS
from fwdad.tracing.calls.kinds import mentions_symbols
from fwdad.tracing.syntax import iteration
from fwdad.tracing.syntax.attributes import METHODS, class_of
from fwdad.tracing.syntax.control import AlwaysRaises, branch
from fwdad.tracing.syntax.frame import Closure, Method


def builtin(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give builtins their meaning."""

    def register(handle: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            BUILTINS[function] = handle
        return handle

    return register


def method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a method of arrays its meaning."""

    def register(handle: Callable[..., Any]) -> Callable[..., Any]:
        METHODS[name] = handle
        return handle

    return register


@builtin(len)
def _len(tracer: Any, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol:
        if not x.type.ndim:
            raise AlwaysRaises(TypeError, ("len() of unsized object",))
        return tracer.recorder.length(x, 0)
    special = tracer.python_method(x, "__len__")
    if special is not None:
        return tracer.call(special, (x,), {})
    return tracer.native(len, x)


@builtin(range)
def _range(tracer: Any, *bounds: Any) -> Any:
    if not any(type(b) is Symbol for b in bounds):
        return tracer.native(range, *bounds)
    for b in bounds:
        if type(b) is Symbol and not (isinstance(b.type, Number) and b.type.dtype.kind in "biu"):
            message = f"'{b.type}' object cannot be interpreted as an integer"
            raise AlwaysRaises(TypeError, (message,))
    start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), bounds)
    return iteration.Range(start, stop, step)


@builtin(enumerate)
def _enumerate(tracer: Any, iterable: Any, start: Any = 0) -> Any:
    if not iteration.is_lazy(tracer, iterable):
        return iteration.Enumerated(iterable, start)
    items = iteration.walk(tracer, iterable)
    pairs = ((tracer.binary_add(k, start), item) for k, item in enumerate(items))
    return iteration.Iterator(tracer, pairs)


@builtin(zip)
def _zip(tracer: Any, *xs: Any, strict: bool = False) -> Any:
    lazy = any(iteration.is_lazy(tracer, x) for x in xs)
    if not lazy and any(iteration.sequence(x) is None for x in xs) and not strict:
        return iteration.Zipped(xs)
    columns = [iteration.walk(tracer, x) for x in xs]
    rows = zip(*columns, strict=strict)
    return iteration.Iterator(tracer, _raising(tracer, rows))


def _raising(tracer: Any, rows: Any) -> Any:
    """What is iterated over; its ``ValueError`` is the program's."""
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except ValueError as error:
            tracer.raise_always(ValueError, str(error))
        yield row


@builtin(reversed)
def _reversed(tracer: Any, x: Any) -> Any:
    special = tracer.python_method(x, "__reversed__")
    if special is not None:
        return tracer.call(special, (x,), {})
    held = iteration.sequence(x)
    if held is None:
        return iteration.Reversed(x)
    return iteration.Iterator(tracer, iter(held[::-1]))


@builtin(map)
def _map(tracer: Any, f: Any, *xs: Any) -> Any:
    columns = [iteration.walk(tracer, x) for x in xs]
    rows = zip(*columns, strict=False)
    return iteration.Iterator(tracer, (tracer.call(f, row, {}) for row in rows))


@builtin(filter)
def _filter(tracer: Any, f: Any, xs: Any) -> Any:
    return kept(tracer, f, xs, wanted=True)


def kept(tracer: Any, f: Any, xs: Any, *, wanted: bool) -> Any:
    """The items of which a condition holds, or does not; it must be known."""

    def run() -> Any:
        for x in iteration.walk(tracer, xs):
            keep = tracer.truth(x if f is None else tracer.call(f, (x,), {}))
            if type(keep) is Symbol:
                message = "`filter` on values cannot be traced: its length would depend on them"
                raise UntraceableError(message, tracer.location())
            if keep is wanted:
                yield x

    return iteration.Iterator(tracer, run())


@builtin(iter)
def _iter(tracer: Any, x: Any, *sentinel: Any) -> Any:
    if not sentinel:
        return iteration.iterator(tracer, x)

    def run() -> Any:
        while True:
            item = tracer.call(x, (), {})
            same = tracer.truth(tracer.binary(operator.eq, item, sentinel[0]))
            if type(same) is Symbol:
                message = "where an iterator ends depends on a value, which cannot be traced"
                raise UntraceableError(message, tracer.location())
            if same:
                return
            yield item

    return iteration.Iterator(tracer, run())


@builtin(next)
def _next(tracer: Any, x: Any, *default: Any) -> Any:
    following = tracer.python_method(x, "__next__")
    if following is not None:
        if default:
            message = "`next` with a default, of an object of the user's, cannot be traced"
            raise UntraceableError(message, tracer.location())
        return tracer.call(following, (x,), {})
    if not isinstance(x, (*iteration.ITERATORS, iteration.Iterator, iteration.Repeated)):
        tracer.raise_always(TypeError, f"'{type(x).__name__}' object is not an iterator")
    try:
        return iteration.iterator(tracer, x).advance(tracer)
    except iteration.Ended as end:
        if default:
            return default[0]
        arguments = () if end.value is None else (end.value,)
        raise AlwaysRaises(StopIteration, arguments) from None


@builtin(list)
def _list(tracer: Any, x: Any = ()) -> Any:
    return tracer.recorder.fresh(list(iteration.items(tracer, x)))


@builtin(tuple)
def _tuple(tracer: Any, x: Any = ()) -> Any:
    return tuple(iteration.items(tracer, x))


@builtin(dict)
def _dict(tracer: Any, *args: Any, **kwargs: Any) -> Any:
    args = tuple(x if isinstance(x, dict) else _pairs(tracer, x) for x in args)
    return tracer.recorder.fresh(tracer.native(lambda: dict(*args, **kwargs)))


def _pairs(tracer: Any, x: Any) -> list[Any]:
    pairs = [iteration.items(tracer, pair) for pair in iteration.items(tracer, x)]
    return [(tracer.known(pair[0]), *pair[1:]) for pair in pairs]


@builtin(set)
def _set(tracer: Any, x: Any = ()) -> Any:
    return tracer.recorder.fresh(set(iteration.items(tracer, x)))


@builtin(sum)
def _sum(tracer: Any, xs: Any, start: Any = 0) -> Any:
    total = start
    for x in iteration.items(tracer, xs):
        total = tracer.binary(operator.add, total, x)
    return total


def _extreme(name: str, better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    own = getattr(builtins, name)

    def handle(tracer: Any, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        values = iteration.items(tracer, args[0]) if len(args) == 1 else list(args)
        if not values:
            if "default" in kwargs:
                return kwargs["default"]
            raise AlwaysRaises(ValueError, (f"{name}() arg is an empty sequence",))
        keys = [v if key is None else tracer.call(key, (v,), {}) for v in values]
        if not mentions_symbols(keys):
            return values[keys.index(own(keys))]
        best, best_key = values[0], keys[0]
        for value, k in zip(values[1:], keys[1:], strict=True):
            wins = tracer.truth(tracer.binary(better, k, best_key))
            sides = (value, k), (best, best_key)
            then, other = (functools.partial(tuple, side) for side in sides)
            best, best_key = branch(tracer.recorder, wins, then, other)
        return best

    return handle


BUILTINS[max] = _extreme("max", operator.gt)
BUILTINS[min] = _extreme("min", operator.lt)


@builtin(any)
def _any(tracer: Any, xs: Any) -> Any:
    return _joined(tracer, xs, operator.or_, start=False)


@builtin(all)
def _all(tracer: Any, xs: Any) -> Any:
    return _joined(tracer, xs, operator.and_, start=True)


def _joined(tracer: Any, xs: Any, function: Any, *, start: bool) -> Any:
    found: Any = start
    for x in iteration.items(tracer, xs):
        held = tracer.truth(x)
        if type(held) is not Symbol:
            if held is not start:
                return held
        elif found is start:
            found = held
        else:
            found = tracer.recorder.apply(function, (found, held), {})
    return tracer.python_bool(found)


@builtin(abs)
def _abs(tracer: Any, x: Any) -> Any:
    special = tracer.python_method(x, "__abs__")
    if special is not None:
        return tracer.call(special, (x,), {})
    x = tracer.number(x)
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    return tracer.recorder.apply(abs, (x,), {}) if type(x) is Symbol else tracer.native(abs, x)


def _conversion(cls: type) -> Callable[..., Any]:
    def handle(tracer: Any, *args: Any) -> Any:
        args = tuple(tracer.number(a) for a in args)
        if len(args) == 1 and cls is not bool:
            special = tracer.python_method(args[0], f"__{cls.__name__}__")
            if special is not None:
                args = (tracer.call(special, args, {}),)
        elif len(args) == 1 and type(args[0]) is not Symbol:
            return tracer.truth(args[0])
        if any(isinstance(a, UnknownText) for a in args):
            tracer.refuse_text()
        if not any(type(a) is Symbol for a in args):
            return tracer.native(cls, *args)
        (x,) = args if len(args) == 1 else (None,)
        if x is not None and x.type == FLOAT and cls is float:
            return x
        return tracer.truth(x) if cls is bool else tracer.recorder.apply(cls, args, {})

    return handle


for _cls in (int, float, complex, bool):
    BUILTINS[_cls] = _conversion(_cls)


@builtin(round)
def _round(tracer: Any, x: Any, ndigits: Any = None) -> Any:
    digits = ndigits
    special = tracer.python_method(x, "__round__")
    if special is not None:
        return tracer.call(special, (x,) if digits is None else (x, digits), {})
    args = (x,) if digits is None else (x, digits)
    return (
        tracer.recorder.apply(round, args, {}) if type(x) is Symbol else tracer.native(round, *args)
    )


@builtin(divmod)
def _divmod(tracer: Any, a: Any, b: Any) -> Any:
    special = tracer.python_method(a, "__divmod__")
    if special is not None:
        return tracer.call(special, (a, b), {})
    return tracer.binary(operator.floordiv, a, b), tracer.binary(operator.mod, a, b)


@builtin(pow)
def _pow(tracer: Any, base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is not None:
        return tracer.native(pow, *(tracer.known(x) for x in (base, exp, mod)))
    return tracer.binary(operator.pow, base, exp)


@builtin(isinstance)
def _isinstance(tracer: Any, x: Any, classes: Any) -> Any:
    if isinstance(x, (Symbol, Closure, Method)):
        return issubclass(class_of(x), classes)
    return isinstance(x, classes)


@builtin(type)
def _type(tracer: Any, x: Any, *rest: Any) -> Any:
    if rest:
        message = "a class is made by `type`, which cannot be traced"
        raise UntraceableError(message, tracer.location())
    return class_of(x)


@builtin(print)
def _print(tracer: Any, *_args: Any, **_kwargs: Any) -> None:
    """Output is not part of the tape."""
    tracer.recorder.prints = True


@builtin(warnings.warn, warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings)
def _warn(tracer: Any, *_args: Any, **_kwargs: Any) -> None:
    """Nor are warnings; a library's are no reason to record a run instead."""
    tracer.recorder.prints |= not is_library_file(tracer.frame.filename)


def has_attribute(tracer: Any, o: Any, name: str) -> bool:
    """``hasattr(o, name)``."""
    if type(o) is Symbol:
        return hasattr(class_of(o), name)
    if not isinstance(o, Closure) and not tracer.recorder.is_own(getattr(o, "__dict__", None)):
        return hasattr(o, name)
    try:
        tracer.attribute(o, name)
    except AlwaysRaises as raised:
        if raised.is_a(AttributeError):
            return False
        raise
    return True


@builtin(getattr)
def _getattr(tracer: Any, o: Any, name: str, *default: Any) -> Any:
    if default and not has_attribute(tracer, o, name):
        return default[0]
    return tracer.attribute(o, name)


builtin(hasattr)(has_attribute)


@builtin(setattr)
def _setattr(tracer: Any, o: Any, name: str, value: Any) -> None:
    tracer.set_attribute(o, name, value)


@builtin(delattr)
def _delattr(tracer: Any, o: Any, name: str) -> None:
    tracer.delete_attribute(o, name)


@builtin(vars)
def _vars(tracer: Any, o: Any) -> Any:
    return tracer.attribute(o, "__dict__")


@builtin(callable)
def _callable(tracer: Any, x: Any) -> bool:
    return type(x) is not Symbol and (callable(x) or hasattr(x, "node"))


@builtin(functools.partial)
def _partial(tracer: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
    if callable(f):
        return functools.partial(f, *args, **kwargs)
    return functools.partial(lambda *a, **k: tracer.call(f, a, k), *args, **kwargs)


@builtin(functools.reduce)
def _reduce(tracer: Any, f: Any, xs: Any, *initial: Any) -> Any:
    values = [*initial, *iteration.items(tracer, xs)]
    total = values[0]
    for x in values[1:]:
        total = tracer.call(f, (total, x), {})
    return total


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "le", "gt",
              "ge", "eq", "ne"):  # fmt: skip
    BUILTINS[getattr(operator, _name)] = functools.partial(
        lambda tracer, a, b, function: tracer.binary(function, a, b),
        function=getattr(operator, _name),
    )


@builtin(operator.is_)
def _is(tracer: Any, a: Any, b: Any) -> Any:
    return tracer.compare(ast.Is(), a, b)


@builtin(operator.is_not)
def _is_not(tracer: Any, a: Any, b: Any) -> Any:
    return tracer.compare(ast.IsNot(), a, b)


def _as_array(tracer: Any, x: Any) -> Any:
    """A list of values as the array that NumPy makes of it."""
    listed = isinstance(x, (list, tuple)) and mentions_symbols(x)
    return tracer.call(np.asarray, (x,), {}) if listed else x


@builtin(np.ndim)
def _ndim(tracer: Any, x: Any) -> Any:
    x = _as_array(tracer, x)
    return x.type.ndim if type(x) is Symbol else tracer.native(np.ndim, x)


@builtin(np.shape)
def _shape(tracer: Any, x: Any) -> Any:
    x = _as_array(tracer, x)
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    return tracer.recorder.shape(x) if type(x) is Symbol else tracer.native(np.shape, x)


@builtin(np.size)
def _size(tracer: Any, x: Any, axis: Any = None) -> Any:
    x = _as_array(tracer, x)
    if type(x) is Symbol or isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
        if axis is not None:
            return tracer.recorder.length(x, tracer.known(axis))
        return tracer.attribute(x, "size")
    return tracer.native(np.size, x)


@builtin(np.asarray, np.asanyarray)
def _asarray(tracer: Any, x: Any, dtype: Any = None, **options: Any) -> Any:
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    same = type(x) is Symbol and x.is_array and (dtype is None or np.dtype(dtype) == x.dtype)
    if same and not options.get("copy"):
        return _in_order(tracer, x, options.get("order"))
    given = options if dtype is None else {"dtype": np.dtype(dtype), **options}
    return tracer.recorder.apply(np.asarray, (x,), given)


def _as_it_is(f: Any, n_for: int) -> None:
    """A function that answers its argument itself for one value of n."""

    @builtin(f)
    def answer(tracer: Any, a: Any, *args: Any, **options: Any) -> Any:
        if type(a) is Symbol and a.is_array and len(args) + len(options) == 1:
            n = tracer.known(args[0] if args else options.get("n"))
            if n == n_for:
                return a
        call = tracer.call_numpy if find_rule(f) is None else tracer.call_native
        return call(f, (a, *args), options)


_as_it_is(np.linalg.matrix_power, 1)
_as_it_is(np.diff, 0)


# -- methods of arrays


@method("copy")
def _copy(tracer: Any, a: Symbol, order: str = "C") -> Any:
    if not a.is_array:
        return a
    return tracer.recorder.apply(np.ndarray.copy, (a,), {} if order == "C" else {"order": order})


@method("fill")
def _fill(tracer: Any, a: Symbol, value: Any) -> None:
    tracer.recorder.store(a, Ellipsis, value)


@method("astype")
def _astype(tracer: Any, a: Symbol, dtype: Any, **options: Any) -> Any:
    if not a.is_array:
        return tracer.recorder.apply(np.dtype(dtype).type, (a,), {})
    if np.dtype(dtype) == a.dtype and options.get("copy") is False:
        return _in_order(tracer, a, options.get("order"))
    return tracer.recorder.apply(np.ndarray.astype, (a, np.dtype(dtype)), options)


def _in_order(tracer: Any, a: Symbol, order: str | None) -> Symbol:
    """The array itself, or a copy if it does not lie in an order that is asked for."""
    function = {"C": np.ascontiguousarray, "F": np.asfortranarray}.get(order or "K")
    return a if function is None else tracer.recorder.apply(function, (a,), {})


@method("item")
def _item(tracer: Any, a: Symbol, *index: Any) -> Any:
    if index:
        a = tracer.recorder.load(a, index[0] if len(index) == 1 else tuple(index))
    cls = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[a.type.dtype.kind]
    return tracer.recorder.apply(cls, (a,), {})


@method("flatten")
def _flatten(tracer: Any, a: Symbol, order: str = "C") -> Any:
    if not a.is_array:
        return tracer.recorder.apply(np.ravel, (a,), {})
    return tracer.recorder.apply(np.ndarray.flatten, (a,), {} if order == "C" else {"order": order})


@method("reshape")
def _reshape(tracer: Any, a: Symbol, *shape: Any, **options: Any) -> Any:
    new = shape[0] if len(shape) == 1 else shape
    return tracer.recorder.apply(np.reshape, (a, new), options)


@method("transpose")
def _transpose(tracer: Any, a: Symbol, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 else axes or None
    return tracer.recorder.apply(np.transpose, (a,) if order is None else (a, order), {})


@method("conj")
@method("conjugate")
def _conjugate(tracer: Any, a: Symbol) -> Any:
    if a.is_array:
        return a.conj()
    made = tracer.recorder.apply(np.conjugate, (a,), {})
    if not isinstance(a.type, Number) or not a.type.python:
        return made
    return tracer.recorder.apply(class_of(a), (made,), {})


@builtin(tuple.__new__)
def _tuple_new(tracer: Any, cls: Any, x: Any = ()) -> Any:
    return tuple.__new__(cls, iteration.items(tracer, x))


@builtin(np.nonzero)
def _nonzero(tracer: Any, a: Any) -> Any:
    a = tracer.recorder.as_symbol(a)
    if a.type.ndim == 1:
        return (tracer.recorder.apply(np.flatnonzero, (a,), {}),)
    return tracer.recorder.apply(np.nonzero, (a,), {})


@method("dot")
def _dot(tracer: Any, a: Symbol, b: Any) -> Any:
    return tracer.call(np.dot, (a, b), {})


@method("tolist")
def _tolist(tracer: Any, a: Symbol) -> Any:
    if not a.is_array:
        return _item(tracer, a)
    parts = iteration.items(tracer, a)
    return tracer.recorder.fresh([_tolist(tracer, p) for p in parts])


@method("is_integer")
def _is_integer(tracer: Any, a: Symbol) -> Any:
    return tracer.recorder.apply(float.is_integer, (a,), {})
