"""The heap journal: changes to namespaces and containers while a program is traced.

While a side of a branch or the body of a loop is traced, every change is recorded, so that it can
be undone, and changes on several paths can be merged.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from fwdad.ir.symbol import UNBOUND


class Region:
    """The changes to the heap since a point in the program."""

    def __init__(self) -> None:
        self.saved: dict[int, tuple[Any, Any]] = {}
        self.fresh: set[int] = set()  # containers that were made since: nobody else's
        self.repeats = False  # whether it is traced, or runs, more than once
        self.always = False  # whether it is always run where it stands
        self.passes = False  # whether an exception inside of it can be caught outside
        self.point: Any = None  # where that may have been raised, if it is of what follows
        self.outer: Any = None  # the block that was open before, and what was known there

    def changes(self) -> list[tuple[Any, Any, Any]]:
        """The containers that changed: (container, before, now)."""
        found = []
        for o, before in self.saved.values():
            now = _content(o)
            if not _same_content(before, now):
                found.append((o, before, now))
        return found

    def undo(self) -> None:
        """Restore every container."""
        for o, before in self.saved.values():
            set_content(o, before)


class Watch:
    """What is changed while it is on the journal's list of watches, and may be seen elsewhere."""

    def __init__(self) -> None:
        self.made: set[int] = set()
        self.unseen: set[int] = set()  # namespaces whose changes do not count
        self.touched = False
        self.advanced: list[Any] = []  # iterators, one of whose items was asked for


class Journal:
    """The containers that the traced program has created, and changes to them."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self._own: dict[int, Any] = {}
        self._namespaces: set[int] = set()
        self._buried: list[Any] = []  # kept, so that no other object gets its address
        self.watches: list[Watch] = []
        self.resumed: set[int] = set()  # namespaces of generators and comprehensions

    def touch(self, o: Any) -> None:
        """Save the content of a container that is about to change."""
        for watch in self.watches:
            watch.touched |= id(o) not in watch.made and id(o) not in watch.unseen
        if self.regions:
            region = self.regions[-1]
            if id(o) not in region.saved and id(o) not in region.fresh:
                region.saved[id(o)] = (o, _content(o))

    def own(self, o: Any, *, namespace: bool = False) -> None:
        """Note a container that the traced program has created, and may therefore change.

        The names of a namespace may be bound on some paths only.
        """
        self._own[id(o)] = o
        for watch in self.watches:
            watch.made.add(id(o))
        if namespace:
            self._namespaces.add(id(o))
        if self.regions:
            self.regions[-1].fresh.add(id(o))

    def own_resumed(self, o: Any) -> None:
        """Note the names of a generator or comprehension, which nobody sees between its items."""
        self.own(o, namespace=True)
        self.resumed.add(id(o))

    def end_watch(self, watch: Watch) -> None:
        """Watch no more, if that has begun."""
        if watch in self.watches:
            self.watches.remove(watch)

    def disown(self, o: Any) -> None:
        """Forget a namespace that is no longer reachable."""
        self._own.pop(id(o), None)
        self._buried.append(o)

    def heap(self) -> list[Any]:
        """The containers that the traced program can see and change."""
        return list(self._own.values())

    def contents(self) -> list[tuple[Any, Any]]:
        """All containers of the heap with their current contents."""
        return self.contents_of(self.heap())

    @staticmethod
    def contents_of(containers: list[Any]) -> list[tuple[Any, Any]]:
        """Containers with their current contents."""
        return [(o, _content(o)) for o in containers]

    def is_namespace(self, o: Any) -> bool:
        """Whether a dict is the attributes of an object, or the local names of a function."""
        return id(o) in self._namespaces

    @staticmethod
    def have_changed(before: list[tuple[Any, Any]]) -> bool:
        """Whether the content of one of the containers has changed."""
        return any(not _same_content(held, _content(o)) for o, held in before)

    def fresh(self, o: Any) -> Any:
        """A container that the traced program has just created, after noting it."""
        self.own(o)
        return o

    def is_own(self, o: Any) -> bool:
        """Whether the traced program has created a container."""
        return id(o) in self._own

    def bind(self, namespace: dict[str, Any], name: str, value: Any) -> None:
        """Bind a name to a value; UNBOUND unbinds it."""
        self.touch(namespace)
        if value is UNBOUND:
            namespace.pop(name, None)
        else:
            namespace[name] = value


def _content(o: Any) -> Any:
    return type(o)(o) if type(o) in (dict, list, set) else o.copy()


def set_content(o: Any, content: Any) -> None:
    """Replace the content of a container."""
    if isinstance(o, list):
        o[:] = content
    elif isinstance(o, np.ndarray):
        o[...] = content
    else:
        if isinstance(o, defaultdict):
            o.default_factory = content.default_factory
        o.clear()
        (o.extend if hasattr(o, "extend") else o.update)(content)


def _same_content(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        if not a.dtype.hasobject:
            return a.tobytes() == b.tobytes()
        return all(x is y for x, y in zip(a.flat, b.flat, strict=True))
    if len(a) != len(b):
        return False
    if getattr(a, "default_factory", None) is not getattr(b, "default_factory", None):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(a[key] is b[key] for key in a)
    if isinstance(a, set):
        return a == b
    return all(x is y for x, y in zip(a, b, strict=True))
