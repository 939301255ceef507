"""Subscripts: items of arrays, of containers, and of objects."""

from __future__ import annotations

import ast
import operator
import types
from collections import defaultdict
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, is_library_file, type_in_words
from fwdad.frontend.calls import containers
from fwdad.frontend.calls.kinds import CONTAINERS
from fwdad.frontend.slots import class_attribute
from fwdad.frontend.syntax import iteration, static_arrays
from fwdad.frontend.syntax.flags import Flags, item_of_flags
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.growing_lists.making import list_of, stored_instead
from fwdad.frontend.syntax.iterators import Enumerated, Iterator, Mapped, Range, Zipped
from fwdad.frontend.syntax.lengths import binary_add, binary_mul, length_of_range
from fwdad.frontend.syntax.raising import AlwaysRaises, native, recorded
from fwdad.frontend.syntax.symbols import Maybe, Poison
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.builder.canonical import check_apart
from fwdad.ir.primitives.view_mirrors import is_one_or_apart
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import Number, is_static_array, number_type


class Subscripts:
    """Reading, setting and deleting items."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.values = tracer.values

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        o, index = self.parts_of(node)
        self.position.at(node)
        return self.subscript(o, index)

    def parts_of(self, node: ast.Subscript) -> tuple[Any, Any]:
        """The values of ``o`` and ``index`` in ``o[index]``."""
        return self.tracer.evaluate(node.value), self._index(node.slice)

    def _index(self, node: ast.expr) -> Any:
        """An index, with slices."""
        if isinstance(node, ast.Slice):
            parts = [node.lower, node.upper, node.step]
            numbers = [None if p is None else self._bound(p) for p in parts]
            return slice(*numbers)
        if isinstance(node, ast.Tuple):
            known_index: list[Any] = []
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    known_index.extend(
                        iteration.items(self.tracer, self.tracer.evaluate(item.value))
                    )
                else:
                    known_index.append(self._index(item))
            return tuple(known_index)
        return self._number(node)

    def _bound(self, node: ast.expr) -> Any:
        return self.values.settled(self.tracer.evaluate(node))

    def _number(self, node: ast.expr) -> Any:
        return self.values.number(self.tracer.evaluate(node))

    def subscript(self, o: Any, index: Any) -> Any:
        """``o[index]``."""
        o = self.values.number(o)
        if is_static_array(o):
            return static_arrays.item(self.tracer, o, index)
        if isinstance(o, np.ndarray):
            o = self.recorder.as_symbol(o)
        index = self._position(o, index)
        if type(o) is Symbol:
            if not o.is_array:
                if isinstance(o.type, Number) and o.type.python:
                    message = f"'{o.type}' object is not subscriptable"
                    raise AlwaysRaises(TypeError, (message,))
                if isinstance(index, tuple) and not index:
                    return o
                o = self.recorder.apply(np.asarray, (o,), {})
            return recorded(self.recorder.load, o, index)
        method = self.values.python_method(o, "__getitem__")
        if method is not None:
            return self.tracer.call(method, (o, index), {})
        if isinstance(o, type) and self._is_by_class(o):
            return self.tracer.call(self.tracer.attribute(o, "__class_getitem__"), (index,), {})
        if isinstance(o, Items):
            found = o.item(index)
            return list_of(self.tracer, found) if isinstance(index, slice) else found
        if isinstance(o, Flags):
            return item_of_flags(self.tracer, o, index)
        if type(o) is Range and isinstance(index, slice) and type(index.step) is not Symbol:
            length = length_of_range(self.recorder, o.start, o.stop, o.step)
            return Range(*self.tracer.call(_sliced, (o.start, length, o.step, index), {}))
        if isinstance(o, Range):
            offset = binary_mul(self.tracer, self._place(o, index), o.step)
            return binary_add(self.tracer, o.start, offset)
        if isinstance(o, (Zipped, Enumerated, Mapped, Iterator)):
            message = "an iterator cannot be indexed: make a list of it"
            raise UntraceableError(message, self.position.location())
        if type(index) is Symbol and type(o) in (list, tuple):
            item = self._item_of_numbers(o, index)
            if item is not None:
                return item
            stored_instead(self.tracer, o, "reading an item of")
        index = self.values.known(index)
        if isinstance(o, defaultdict) and index not in o:
            made = containers.missing(self.tracer, o, index)
            self.set_subscript(o, index, made)
            return made
        self.outside.looked_up(o, index)
        found = native(operator.getitem, o, index)
        if isinstance(found, (Maybe, Poison)):
            return self.values.readable(found, str(index), o, (KeyError, index))
        if not isinstance(index, slice):
            return found
        return list_of(self.tracer, found) if type(found) is list else self.values.made(found)

    def _position(self, o: Any, index: Any) -> Any:
        """An index of a sequence or an array, which may be an object that has ``__index__``."""
        if type(o) not in (Symbol, list, tuple, str) or type(index) in (int, slice, tuple, Symbol):
            return index
        own = self.values.python_method(index, "__index__")
        return index if own is None else self.tracer.call(own, (index,), {})

    def _is_by_class(self, cls: type) -> bool:
        """Whether a class has a ``__class_getitem__`` of the user's, which must stay."""
        found = class_attribute(cls, "__class_getitem__")
        self.outside.guard_class(cls, "__class_getitem__", found)
        f = getattr(found, "__func__", found)
        return isinstance(f, types.FunctionType) and not is_library_file(f.__code__.co_filename)

    def _item_of_numbers(self, items: Any, index: Symbol) -> Any:
        """An item at a place that is unknown, of numbers of one type; None if it is otherwise."""
        types = {x.type if type(x) is Symbol else number_type(x) for x in items}
        t = next(iter(types)) if len(types) == 1 else None
        if not isinstance(t, Number) or not self._is_of_values(index):
            return None
        item = self.recorder.load(self.tracer.call(np.array, (list(items),), {}), index)
        kind = type(t.dtype.type(0).item())
        return self.recorder.apply(kind, (item,), {}) if t.python else item

    def _is_of_values(self, index: Symbol) -> bool:
        """Whether an index is computed from more than whole numbers among the arguments."""
        return self.recorder.examples.forced(index.value) is UNBOUND

    def _place(self, o: Range, index: Any) -> Any:
        """The offset of an item of a range from its start, in items."""
        length = length_of_range(self.recorder, o.start, o.stop, o.step)
        if isinstance(index, slice) or type(index) is Symbol:
            message = (
                "a range whose length is unknown at trace time takes only an index, or a step of a "
                "slice, that is known"
            )
            raise UntraceableError(message, self.position.location())
        k = index if index >= 0 else self.tracer.binary(operator.add, length, index)
        fits = self.tracer.truth(self.tracer.binary(operator.lt if index >= 0 else operator.ge, k,
                                      length if index >= 0 else 0))  # fmt: skip
        self.recorder.check(fits, IndexError, ("range object index out of range",))
        return k

    def set_subscript(self, o: Any, index: Any, value: Any) -> None:
        """``o[index] = value``."""
        if is_static_array(o):
            static_arrays.set_item(self.tracer, o, index, value)
            return
        o = self.recorder.as_symbol(o) if isinstance(o, np.ndarray) else o
        index = self._position(o, index)
        if type(o) is Symbol:
            recorded(self._check_mask, o, index, value)
            recorded(self.recorder.store, o, index, self.values.number(value))
            return
        method = self.values.python_method(o, "__setitem__")
        if method is not None:
            self.tracer.call(method, (o, index, value), {})
            return
        if isinstance(o, Items):
            o.set_item(index, value)
            return
        if type(index) is Symbol and self._is_of_values(index):
            stored_instead(self.tracer, o, "changing an item of")
        if hasattr(type(o), "__setitem__"):
            self.outside.may_change(o)
            self.recorder.journal.touch(o)
        if isinstance(o, list) and isinstance(index, slice):
            value = iteration.items(self.tracer, value)
        native(operator.setitem, o, self.values.known(index), value)

    def _check_mask(self, o: Any, index: Any, value: Any) -> None:
        """Refuse values under a mask of all axes that are a view of the array, or may be one."""
        kind = getattr(getattr(index, "dtype", None), "kind", None)
        is_mask = kind == "b" and index.ndim == o.ndim > 0
        if is_mask and type(value) is Symbol and value.is_array and value.ndim:
            into = self.recorder.as_symbol(o)
            check_apart(self.recorder, into, value, is_one_or_apart)

    def delete_subscript(self, o: Any, index: Any) -> None:
        """``del o[index]``."""
        method = self.values.python_method(o, "__delitem__")
        if method is not None:
            self.tracer.call(method, (o, index), {})
            return
        if isinstance(o, Items):
            o.delete(index)
            return
        if type(index) is Symbol and self._is_of_values(index):
            stored_instead(self.tracer, o, "`del` of an item of")
        if isinstance(o, np.ndarray) or (type(o) is Symbol and o.is_array):
            raise AlwaysRaises(ValueError, ("cannot delete array elements",))
        if not isinstance(o, CONTAINERS):
            message = f"`del` of an item of {type_in_words(o)} cannot be traced"
            raise UntraceableError(message, self.position.location())
        self.outside.may_change(o)
        self.recorder.journal.touch(o)
        native(operator.delitem, o, self.values.known(index))


def _sliced(start: Any, length: Any, step: Any, part: slice) -> tuple[Any, Any, Any]:
    """Start, stop and step of a slice of a range; traced, as ``length`` may be unknown."""
    by = 1 if part.step is None else part.step
    if by == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, length) if by > 0 else (-1, length - 1)
    first, last = (low, high) if by > 0 else (high, low)
    if part.start is not None:
        first = min(max(part.start + length if part.start < 0 else part.start, low), high)
    if part.stop is not None:
        last = min(max(part.stop + length if part.stop < 0 else part.stop, low), high)
    return start + first * step, start + last * step, by * step
