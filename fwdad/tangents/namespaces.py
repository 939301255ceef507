"""The ``__dict__`` of an object, read without calling its class."""

from __future__ import annotations

from typing import Any


def namespace_of(o: Any) -> Any:
    """The ``__dict__`` of an object; None if it has none.

    No ``__getattr__`` or ``__getattribute__`` of its class is called: one that returns something
    for every name would do so here, and one that reads an unset slot would recurse forever.
    """
    try:
        return object.__getattribute__(o, "__dict__")
    except AttributeError:
        return None
