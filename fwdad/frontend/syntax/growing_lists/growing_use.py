"""Uses of a growing list: methods, operators, functions of sequences."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.frontend.calls.tables import ATTRIBUTES_OF, CALLED
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.growing_lists.changing import Stored
from fwdad.frontend.syntax.growing_lists.growing import Growing
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.growing_lists.lists_apart import ListOfLists, Row
from fwdad.frontend.syntax.growing_lists.making import list_of
from fwdad.frontend.syntax.growing_lists.stored_arrays import StoredArrays
from fwdad.frontend.syntax.growing_lists.storing import StoredTuples
from fwdad.frontend.syntax.growing_lists.tables import Table
from fwdad.frontend.syntax.symbols import OfFunction
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number, number_type


def _attribute(_tracer: Tracer, o: Items, name: str) -> Any:
    """``o.name``."""
    if name not in METHODS or not hasattr(o.like, name):
        o.refused(f"`{name}` of")
    return Bound(o, name)


_KINDS = (Items, Growing, Tuples, Stored, StoredTuples, Table, ListOfLists, Row, StoredArrays)
ATTRIBUTES_OF.update(dict.fromkeys(_KINDS, _attribute))


class Bound(OfFunction):
    """A bound method of a growing list."""

    kind = types.BuiltinMethodType

    def __init__(self, owner: Items, name: str) -> None:
        self.owner = owner
        self.name = name
        self.like = getattr(owner.like(), name)


def _call_bound(tracer: Tracer, f: Bound, args: Any, kwargs: Any) -> Any:
    """Call a method of a growing list."""
    if kwargs:
        f.owner.refused("keyword arguments of a method of")
    return METHODS[f.name](tracer, f.owner, *args)


CALLED[Bound] = _call_bound


def _append(_tracer: Tracer, o: Items, x: Any) -> None:
    o.append(x)


def extend(tracer: Tracer, o: Items, xs: Any) -> None:
    """``o.extend(xs)`` for items that are known one by one."""
    for x in iteration.items(tracer, xs):
        _append(tracer, o, x)


def contains(xs: Any, item: Any) -> bool:
    """``item in xs``, traced."""
    for x in xs:  # noqa: SIM110  (it is traced)
        if x == item:
            return True
    return False


def _count(xs: Any, item: Any) -> int:
    found = 0
    for x in xs:
        if x == item:
            found += 1
    return found


def _index(xs: Any, item: Any) -> int:
    for k, x in enumerate(xs):
        if x == item:
            return k
    raise ValueError("list.index(x): x not in list")


def _remove(xs: Any, item: Any) -> None:
    place = -1
    for k, x in enumerate(xs):
        if x == item:
            place = k
            break
    if place < 0:
        raise ValueError("list.remove(x): x not in list")
    del xs[place]


METHODS: dict[str, Callable[..., Any]] = {
    "append": _append,
    "appendleft": lambda _tracer, o, x: o.append_left(x),
    "popleft": lambda _tracer, o: o.pop(0),
    "count": lambda tracer, o, x: tracer.call(_count, (o, x), {}),
    "index": lambda tracer, o, x: tracer.call(_index, (o, x), {}),
    "remove": lambda tracer, o, x: tracer.call(_remove, (o, x), {}),
    "extend": extend,
    "insert": lambda _tracer, o, place, x: o.insert(place, x),
    "copy": lambda tracer, o: list_of(tracer, o.copied()),
    "pop": lambda _tracer, o, place=-1: o.pop(place),
    "clear": lambda _tracer, o: o.clear(),
    "reverse": lambda _tracer, o: o.reverse(),
    "sort": lambda _tracer, o: o.sort(),
    "__len__": lambda _tracer, o: o.length(),
}


# -- Python's functions of sequences


def summed(xs: Any, start: Any) -> Any:
    """``sum(xs, start)``."""
    total = start
    for x in xs:
        total = total + x
    return total


def _best_by(is_better: Any, key: Any, xs: Any) -> Any:
    best = xs[0]
    reached = key(best)
    for x in xs[1:]:
        found = key(x)
        if is_better(found, reached):
            best, reached = x, found
    return best


def _greatest(xs: Any) -> Any:
    best = xs[0]
    for x in xs:
        best = max(best, x)
    return best


def _least(xs: Any) -> Any:
    best = xs[0]
    for x in xs:
        best = min(best, x)
    return best


def extreme(tracer: Tracer, f: Any, xs: Items, key: Any, options: Any) -> Any:
    """``max(xs)`` or ``min(xs)``."""
    if options:
        xs.refused(f"`{f.__name__}` with options on")
    xs.not_empty(f"{f.__name__}() arg is an empty sequence")
    if key is not None:
        is_better = operator.gt if f is max else operator.lt
        return tracer.call(_best_by, (is_better, key, xs), {})
    return tracer.call(_greatest if f is max else _least, (xs,), {})


def _over(tracer: Tracer, x: Items) -> iteration.Steps:
    """A loop over a growing list, which it must not change."""
    length = x.length()
    x.settled()
    before = x.state()

    def unchanged() -> None:
        if any(a is not b for a, b in zip(x.state(), before, strict=True)):
            x.refused("changing, in a loop over it,")

    def item(k: Any) -> Any:
        unchanged()
        return x.at(k)

    return iteration.Steps(length, item, (0, length, 1), one_body=True, unchanged=unchanged)


iteration.OVER.update(dict.fromkeys(_KINDS, _over))


def operated(tracer: Tracer, function: Any, a: Any, b: Any) -> Any:
    """An operator on a growing list, which becomes an array beside an array."""
    own, other = (a, b) if isinstance(a, Items) else (b, a)
    if isinstance(other, np.ndarray) or (type(other) is Symbol and other.is_array):
        a, b = (x.array() if isinstance(x, Items) else x for x in (a, b))
        return tracer.binary(function, a, b)
    if function is operator.add and type(other) in (list, *_KINDS):
        return list_of(tracer, _joined(tracer, own, a, b))
    if function in (operator.eq, operator.ne) and type(other) in (list, *_KINDS):
        return tracer.call(_equal if function is operator.eq else _unequal, (a, b), {})
    if function is operator.mul and number_kind(other) in ("i", "b"):
        return list_of(tracer, repeated(tracer, own, other))
    return own.refused(f"`{function.__name__.strip('_')}` with")


def _equal(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):  # noqa: SIM110  (it is traced)
        if x != y:
            return False
    return True


def _unequal(a: Any, b: Any) -> bool:
    return not a == b  # noqa: SIM201  (what is unequal of items is theirs)


def _joined(tracer: Tracer, own: Items, a: Any, b: Any) -> Items:
    """``a + b`` of two lists of numbers, one of which is ``own``."""
    parts = []
    for x in (a, b):
        items = x if isinstance(x, Items) else known_items(tracer, x)
        if items is not None and not (items.arrays or items.inner or isinstance(items, Tuples)):
            parts.append(items)
        elif type(x) is not list or x:
            own.refused("`add` of lists that are not both of numbers, to")
    rows = [x.rows() for x in parts]
    if len({(x.python, r.dtype) for x, r in zip(parts, rows, strict=True)}) > 1:
        own.refused("`add` of lists of different types, to")
    whole = tracer.recorder.apply(np.concatenate, (rows,), {})
    return Items(tracer, whole, python=parts[0].python)


def known_items(tracer: Tracer, x: list[Any]) -> Items | None:
    """A list of numbers of one type as an array; None for any other list."""
    types = {item.type if type(item) is Symbol else number_type(item) for item in x}
    t = next(iter(types)) if len(types) == 1 else None
    if not isinstance(t, Number):
        return None
    return Items(tracer, tracer.recorder.apply(np.array, (list(x),), {}), python=t.python)


def repeated(tracer: Tracer, x: Items, times: Any) -> Items:
    """``x * times``."""
    if x.arrays or x.inner or isinstance(x, Tuples):
        x.refused("`mul` of anything but numbers in")
    rows = tracer.recorder.apply(np.tile, (x.rows(), tracer.call(max, (times, 0), {})), {})
    return Items(tracer, rows, python=x.python)


def number_kind(x: Any) -> str | None:
    """The kind of a number's dtype; None of anything else."""
    t = x.type if type(x) is Symbol else number_type(x)
    return t.dtype.kind if isinstance(t, Number) else None
