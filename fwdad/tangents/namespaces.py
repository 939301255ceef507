"""What an object holds, read without calling its class."""

from __future__ import annotations

import gc
import weakref
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


def referents(o: Any) -> list[Any]:
    """What an object refers to, as the garbage collector sees it.

    Without weak proxies: all that is asked of one is asked of its object, which may be gone.
    """
    return [r for r in gc.get_referents(o) if type(r) not in weakref.ProxyTypes]
