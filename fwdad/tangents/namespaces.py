"""The ``__dict__`` of an object, read without calling its class."""

from __future__ import annotations

from threading import local
from typing import Any


def namespace_of(o: Any) -> Any:
    """The ``__dict__`` of an object; None if it has none.

    No ``__getattr__`` or ``__getattribute__`` of its class is called: one that returns something
    for every name would do so here, and one that reads an unset slot would recurse forever.
    """
    # a thread-local object has one for each thread, which only its own base reads
    read = local.__getattribute__ if issubclass(type(o), local) else object.__getattribute__
    try:
        return read(o, "__dict__")
    except AttributeError:
        return None
