"""Which key of a table is equal to one that is looked up."""

from __future__ import annotations

from typing import Any


class Probe:
    """An object that equals one key; ``found`` becomes the key of a table that it matched."""

    __slots__ = ("found", "key")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.found: Any = self

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        same = bool(self.key == other)
        if same:
            self.found = other
        return same
