"""Which objects existed at a moment, without a look at each of them.

The garbage collector lists what it tracks. A list of all objects of a large process, and a set of
their addresses, take seconds. Freezing the heap takes no time, and leaves in the list what is made
later.
"""

from __future__ import annotations

import gc
import threading
from typing import Any

from fwdad.core.reentrant_context import EnteredTwice

_LOCK = threading.RLock()
_watching: list[Existing] = []
_frozen = False  # by us: what a user has frozen stays so


class Existing(EnteredTwice):
    """The objects that exist when the block is entered; asked for before it is left.

    New is what has been made until the first question, which keeps it alive. Of what the garbage
    collector does not track, a number or a dict of numbers, this is unknown, and it is no member.
    """

    def __init__(self) -> None:
        self._before: list[Any] = []  # kept: no new object gets the address of one of them
        self._noted: dict[int, Any] = {}  # what is frozen, but has been made since
        self._made: dict[int, Any] | None = None

    def begin(self) -> None:
        """Note what exists."""
        global _frozen  # noqa: PLW0603  (the collector is one for all)
        with _LOCK:
            _watching.append(self)
            if not _frozen and not gc.get_freeze_count():
                _frozen = True
                gc.freeze()
            self._before = gc.get_objects()

    def end(self) -> None:
        """Forget it; the last to leave lets the collector see all objects again."""
        global _frozen  # noqa: PLW0603
        with _LOCK:
            if self in _watching:
                _watching.remove(self)
            if _frozen and not _watching:
                gc.unfreeze()
                _frozen = False
        self._before, self._noted, self._made = [], {}, None  # who owns an object is counted

    def __contains__(self, o: object) -> bool:
        if self._made is None:
            self._made = self._made_by_now()
        return gc.is_tracked(o) and id(o) not in self._made

    def hold(self, o: object) -> bool:
        """Whether one of them refers to an object; this looks at all there are."""
        with _LOCK:
            for each in _watching:  # below, what they would list is frozen
                each._noted = each._made_by_now()  # noqa: SLF001
            if _frozen:
                gc.unfreeze()
            referrers = gc.get_referrers(o)
            if _frozen:
                gc.freeze()
            made = self._noted
        return any(gc.is_tracked(r) and id(r) not in made for r in referrers)

    def _made_by_now(self) -> dict[int, Any]:
        """What has been made since, by address."""
        with _LOCK:
            old = set(map(id, self._before))
            return self._noted | {id(o): o for o in gc.get_objects() if id(o) not in old}
