"""The names of a program's values in its source."""

from __future__ import annotations

import builtins
import keyword
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from fwdad.ir.ops import Value, is_array

_TAKEN = {"np", "math"}


class Names:
    """Names of values, each unique among all that one function of the source uses.

    The values of a group share a name. ``note`` is called for each value that gets one.
    """

    def __init__(
        self,
        groups: Mapping[Value, list[Value]],
        note: Callable[[Value, str], None] = lambda _value, _name: None,
    ) -> None:
        self.of: dict[Value, str] = {}
        self.groups = groups
        self._note = note
        self._used: Counter[str] = Counter()

    def name(self, value: Value) -> str:
        """A value's name: the user's if it has one, made unique by a number."""
        if value not in self.of:
            group = self.groups.get(value, [value])
            wanted = next((v.name for v in group if v.name is not None), _hint(value))
            name = self.unique(wanted)
            for v in group:
                self.give(v, name)
        return self.of[value]

    def give(self, value: Value, name: str) -> None:
        """Give a value a name that was made before."""
        self.of[value] = name
        self._note(value, name)

    def alias(self, value: Value, like: Value) -> None:
        """Give a value the name of another."""
        self.give(value, self.name(like))

    def unique(self, wanted: str) -> str:
        """A new name: the one asked for, with a number if it is taken."""
        wanted = wanted if wanted.isidentifier() else "t"
        while True:
            self._used[wanted] += 1
            k = self._used[wanted]
            candidate = wanted if k == 1 else f"{wanted}_{k}"
            if (
                not keyword.iskeyword(candidate)
                and not hasattr(builtins, candidate)
                and candidate not in _TAKEN
            ):
                if k == 1:
                    return candidate
                if candidate not in self._used:
                    self._used[candidate] += 1  # the user may have a name like that, too
                    return candidate

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve names, so that no value gets them."""
        self._used.update(list(names))

    def of_arrays(self) -> set[str]:
        """The names given so far to arrays."""
        return {name for value, name in self.of.items() if is_array(value)}


def _hint(value: Value) -> str:
    return "a" if is_array(value) else "t"
