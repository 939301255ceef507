"""Python's containers: how they are made anew, which of their methods change them, or read."""

from __future__ import annotations

import array
from collections import deque
from collections.abc import Iterable
from typing import Any

CHANGING: dict[type, frozenset[str]] = {
    list: frozenset(("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse",
                     "__setitem__", "__delitem__", "__iadd__", "__imul__")),
    dict: frozenset(("update", "pop", "popitem", "setdefault", "clear", "__setitem__",
                     "__delitem__", "__ior__")),
    set: frozenset(("add", "discard", "remove", "pop", "clear", "update", "__ior__", "__iand__",
                    "__isub__", "__ixor__", "intersection_update", "difference_update",
                    "symmetric_difference_update")),
    deque: frozenset(("append", "appendleft", "extend", "extendleft", "pop", "popleft", "clear",
                      "rotate", "insert", "remove", "reverse", "__setitem__", "__delitem__")),
    array.array: frozenset(("append", "extend", "insert", "pop", "remove", "reverse", "fromlist",
                            "frombytes", "byteswap", "clear")),
    bytearray: frozenset(("append", "extend", "insert", "pop", "remove", "clear", "reverse")),
}  # fmt: skip
"""The methods of Python's containers that change them."""


def of_class(cls: Any, items: Iterable[Any]) -> Any:
    """A list or tuple of a class, of other items.

    Of a subclass of tuple ``__new__`` is not called: it may take other arguments, or change them.
    C's own classes, such as ``time.struct_time``, allow nothing else.
    """
    of_c = hasattr(cls, "n_sequence_fields")
    return tuple.__new__(cls, items) if issubclass(cls, tuple) and not of_c else cls(items)


READING_ITEMS = {
    "extend", "extendleft", "update", "__iadd__", "__ior__", "union", "intersection", "difference",
    "symmetric_difference", "intersection_update", "difference_update",
    "symmetric_difference_update", "issubset", "issuperset", "isdisjoint",
}  # fmt: skip
"""The methods that take items out of an argument."""
