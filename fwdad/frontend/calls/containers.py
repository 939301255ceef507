"""Lists, dicts and their relatives: methods that change them, and sorting by values."""

from __future__ import annotations

import itertools
import operator
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

from fwdad.core.containers import CHANGING, READING_ITEMS
from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import CONTAINERS, mentions_symbols
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.frame import Closure
from fwdad.frontend.syntax.growing_lists.making import deque_of, list_of, stored_instead
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import Optional
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import number_type


def call_method(tracer: Tracer, owner: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Call a method of a list, dict, set or deque."""
    base = next(c for c in CONTAINERS if isinstance(owner, c))
    keeps = name in CHANGING[base] and name != "remove"
    args = tuple(x if keeps and isinstance(x, Optional) else tracer.values.number(x) for x in args)
    if name in CHANGING[base] or not hasattr(base, name):
        tracer.outside.may_change(owner)
        tracer.recorder.journal.touch(owner)
    if base is list and name == "sort":
        owner[:] = in_order(tracer, list(owner), **kwargs)
        return None
    if name in READING_ITEMS:
        args = tuple(a if isinstance(a, CONTAINERS) else _items(tracer, a) for a in args)
    if name in ("insert", "pop") and args and type(args[0]) is Symbol:
        stored_instead(tracer, owner, f"`{name}` at a place of")
    if name in ("insert", "pop", "rotate", "setdefault", "get") and args:
        args = (tracer.values.known(args[0]), *args[1:])
    if name in ("get", "pop", "setdefault", "__contains__", "__getitem__") and args:
        tracer.outside.looked_up(owner, args[0])
    if name in ("index", "count", "remove"):
        tracer.outside.read_compared(owner, *args)
    result = native(lambda: _in_c(owner, name)(*args, **kwargs))
    if type(result) is list and name == "copy":
        return list_of(tracer, result)
    return tracer.values.made(result) if name == "copy" or base is set else result


def _in_c(owner: Any, name: str) -> Any:
    """The method in C, which a user's class may override."""
    methods = (t.__dict__[name] for t in type(owner).__mro__ if name in t.__dict__)
    return next(m for m in methods if not isinstance(m, types.FunctionType)).__get__(owner)


def _items(tracer: Tracer, x: Any) -> Any:
    """The items of an iterable as a list; anything else as it is, for Python to raise."""
    array = type(x) is Symbol and x.is_array
    as_list = iteration.items if array or isinstance(x, np.ndarray) else iteration.listed
    return as_list(tracer, x)


@builtin(dict.fromkeys)
def _fromkeys(tracer: Tracer, keys: Any, value: Any = None) -> Any:
    known_keys = [tracer.values.known(key) for key in iteration.items(tracer, keys)]
    return tracer.recorder.journal.fresh(native(dict.fromkeys, known_keys, value))


def _made_of_items(cls: type) -> None:
    @builtin(cls)
    def make(tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
        with_items = tuple(_items(tracer, a) for a in args[:1]) + args[1:]
        return tracer.recorder.journal.fresh(native(lambda: cls(*with_items, **kwargs)))


for _cls in (frozenset, OrderedDict):
    _made_of_items(_cls)


@builtin(deque)
def _deque(tracer: Tracer, iterable: Any = (), maxlen: Any = None) -> Any:
    items, maxlen = _items(tracer, iterable), tracer.values.known(maxlen)
    native(lambda: deque(items, maxlen))  # raises what does not fit
    return deque_of(tracer, items, maxlen)


@builtin(defaultdict)
def _defaultdict(tracer: Tracer, factory: Any = None, *args: Any, **kwargs: Any) -> Any:
    if isinstance(factory, Closure):
        factory = Factory(factory)
    args = tuple(_items(tracer, a) for a in args)
    return tracer.recorder.journal.fresh(native(lambda: defaultdict(factory, *args, **kwargs)))


class Factory:
    """A function of the traced program as a callable, for C code that checks for one."""

    def __init__(self, function: Closure) -> None:
        self.function = function

    def __call__(self) -> Any:
        raise UntraceableError(
            "a function defined inside the traced one is called by C code, which cannot be traced"
        )


def missing(tracer: Tracer, o: defaultdict[Any, Any], key: Any) -> Any:
    """The item that a ``defaultdict`` makes for a missing key."""
    factory = o.default_factory
    if factory is None:
        raise AlwaysRaises(KeyError, (key,))
    return tracer.call(factory.function if isinstance(factory, Factory) else factory, (), {})


@builtin(sorted)
def _sorted(tracer: Tracer, x: Any, *, key: Any = None, reverse: Any = False) -> Any:
    return list_of(tracer, in_order(tracer, iteration.items(tracer, x), key, reverse))


# -- operators on sequences


@builtin(operator.concat)
def _concat(tracer: Tracer, a: Any, b: Any) -> Any:
    return tracer.binary(operator.add, a, b)


@builtin(operator.abs)
def _abs(tracer: Tracer, x: Any) -> Any:
    return tracer.call(abs, (x,), {})


@builtin(operator.call)
def _call(tracer: Tracer, f: Any, *args: Any, **kwargs: Any) -> Any:
    return tracer.call(f, args, kwargs)


@builtin(operator.getitem)
def _getitem(tracer: Tracer, o: Any, index: Any) -> Any:
    return tracer.subscript(o, index)


# -- by values


def in_order(tracer: Tracer, held: list[Any], key: Any = None, reverse: Any = False) -> list[Any]:
    """``sorted(held, key=key, reverse=reverse)``: by values, a sort and a gather on the tape."""
    reverse = tracer.values.known(reverse)
    keys = held if key is None else [tracer.call(key, (item,), {}) for item in held]
    if len(held) < 2:
        return list(held)
    known = _deciding(keys)
    if known is not None:
        order = native(lambda: sorted(range(len(keys)), key=known.__getitem__, reverse=reverse))
        return [held[k] for k in order]
    places = _order(tracer, keys[::-1] if reverse else keys)
    if reverse:  # equal ones stay as they stood
        last = len(held) - 1
        places = [tracer.binary(operator.sub, last, k) for k in places[::-1]]
    return _gathered(tracer, held, places)


def _deciding(keys: list[Any]) -> list[Any] | None:
    """What is known of the keys, if that decides their order: all, or the first items of each."""
    if not mentions_symbols(keys):
        return keys
    if not any(all(type(k).__lt__ is cls.__lt__ for k in keys) for cls in (tuple, list)):
        return None
    length = min(i for k in keys for i, item in enumerate(k) if mentions_symbols(item))
    first = [k[:length] for k in keys]
    equal = native(lambda: any(a == b for a, b in itertools.combinations(first, 2)))
    return None if equal else first  # of two that are equal, the values after them decide


def _order(tracer: Tracer, keys: list[Any]) -> list[Any]:
    """The indices of the keys in ascending order, as symbols."""
    widths = {len(k) if isinstance(k, (tuple, list)) else 0 for k in keys}
    if len(widths) == 1 and widths != {0}:
        columns = list(zip(*keys, strict=True))
        if all(are_numbers(column) for column in columns):
            arrays = [tracer.call(np.array, (list(column),), {}) for column in reversed(columns)]
            places = tracer.call(np.lexsort, (tuple(arrays),), {})
            return [tracer.recorder.load(places, k) for k in range(len(keys))]
    if not are_numbers(keys):
        message = (
            "`sorted` with keys that are neither numbers nor tuples of numbers cannot be traced: "
            "use numpy.argsort on an array of keys"
        )
        raise UntraceableError(message, tracer.position.location())
    array = tracer.call(np.array, (list(keys),), {})
    places = tracer.call(np.argsort, (array,), {"kind": "stable"})
    return [tracer.recorder.load(places, k) for k in range(len(keys))]


def are_numbers(xs: Any) -> bool:
    """Whether all are numbers that NumPy orders as Python does."""
    return all(
        (type(x) is Symbol and not x.is_array and x.type.dtype.kind in "biuf")
        or isinstance(x, (bool, int, float, np.number))
        for x in xs
    )


def _gathered(tracer: Tracer, held: list[Any], places: list[Any]) -> list[Any]:
    """The items at some indices."""
    if all(item is held[0] for item in held):
        return held
    if are_numbers(held):
        types = {(t.dtype, t.python) for t in map(number_type, held) if t is not None}
        symbols: list[Any] = [x for x in held if type(x) is Symbol]
        types |= {(x.type.dtype, x.type.python) for x in symbols}
        array = tracer.call(np.array, (list(held),), {})
        items = [tracer.recorder.load(array, k) for k in places]
        if all(python for _, python in types):  # beside NumPy's, they are NumPy's
            convert = {"b": bool, "i": int, "f": float}[array.dtype.kind]
            items = [tracer.recorder.apply(convert, (item,), {}) for item in items]
        return items
    if all(type(item) is tuple and len(item) == len(held[0]) for item in held):
        columns = [_gathered(tracer, list(column), places) for column in zip(*held, strict=True)]
        return list(zip(*columns, strict=True))
    message = (
        "`sorted` by values unknown at trace time, of items that are neither numbers nor tuples "
        "of numbers, cannot be traced: sort their indices (`sorted(range(n), key=…)`, "
        "numpy.argsort), and index arrays with them"
    )
    raise UntraceableError(message, tracer.position.location())
