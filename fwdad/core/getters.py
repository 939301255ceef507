"""What ``operator.itemgetter``, ``attrgetter`` and ``methodcaller`` do with an object."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def got_items(f: Any, o: Any, item: Callable[[Any, Any], Any]) -> Any:
    """``f(o)``, where ``item(o, key)`` reads an item."""
    return _one_or_all([item(o, key) for key in f.__reduce__()[1]])


def got_attributes(f: Any, o: Any, attribute: Callable[[Any, str], Any]) -> Any:
    """``f(o)``, where ``attribute(o, name)`` reads an attribute."""
    paths = f.__reduce__()[1]
    return _one_or_all([functools.reduce(attribute, path.split("."), o) for path in paths])


def method_called(f: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """The name of the method that ``f`` calls, and the arguments."""
    made, given = f.__reduce__()  # made is a ``partial`` if there are keyword arguments
    found: tuple[Any, ...] = (*getattr(made, "args", ()), *given)
    return found[0], found[1:], getattr(made, "keywords", {})


def _one_or_all(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)
