"""The ``__dict__`` of an object, read without a word to its class."""

from __future__ import annotations

from typing import Any


def namespace_of(o: Any) -> Any:
    """What an object holds in its ``__dict__``; None if it has none.

    No ``__getattr__`` or ``__getattribute__`` of its class is called: one that returns for every
    name would return for this, and one that reads a slot that is not set yet would never end.
    """
    try:
        return object.__getattribute__(o, "__dict__")
    except AttributeError:
        return None
