"""Python's containers: the methods that change them, and their content kept before a change."""

from __future__ import annotations

import array
from collections import deque
from typing import Any

from fwdad.eager.run import STATE

CONTAINERS = (list, dict, set, deque, bytearray, array.array)

CONTAINER_METHODS: dict[type, frozenset[str]] = {
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


def log_container(o: Any) -> None:
    """Keep the content of a container."""
    run = STATE.run
    if run is not None:
        run.log.container(o)


def log_object(o: Any) -> None:
    """Keep the content of an object with items of its own, if it can be copied."""
    run = STATE.run
    if run is not None and hasattr(o, "copy"):
        run.log.container(o)
