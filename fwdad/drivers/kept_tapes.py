"""The tapes of a function that are kept: the least recently used go, by number and by bytes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from fwdad.drivers.specialisation import Specialisation
from fwdad.frontend.arguments import Flattened

MOST_TAPES = 64
MOST_BYTES = 2**28
_COMPILED = 2**19  # of Numba's objects for one function, beside its code (measured: 600 kB)


class KeptTapes:
    """The tapes of one function, by the kinds of their arguments.

    Attributes
    ----------
    dropped : int
        How many are gone because others were used since.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._kinds: dict[Any, list[Specialisation]] = {}
        self._used: dict[Specialisation, int] = {}
        self._clock = itertools.count()

    def of_kind(self, key: Any) -> list[Specialisation]:
        """Those for arguments of a kind, in the order in which they are tried; not to be changed.

        A thread may read it while another one adds to the kind.
        """
        return self._kinds.get(key, [])

    def all(self) -> list[Specialisation]:
        """All of them."""
        return [made for held in list(self._kinds.values()) for made in held]

    def add(self, made: Specialisation, *, first: bool) -> None:
        """Keep one, to be tried first or last."""
        held = self.of_kind(made.tape.key)
        self._kinds[made.tape.key] = [made, *held] if first else [*held, made]
        self._used[made] = next(self._clock)

    def first(self, made: Specialisation) -> None:
        """Let one be tried first from now on."""
        held = self.of_kind(made.tape.key)
        self._kinds[made.tape.key] = [made, *(m for m in held if m is not made)]
        self.use(made)

    def use(self, made: Specialisation) -> None:
        """Note that one is used, if it is kept still."""
        if made in self._used:
            self._used[made] = next(self._clock)

    def use_by(self, shortcut: Any) -> None:
        """Note that the tape of a shortcut is used."""
        made = shortcut.tape()
        if made is not None:
            self.use(made)

    def forget(self) -> None:
        """Let all of them go."""
        self._kinds.clear()
        self._used.clear()

    def drop_beyond_limits(self, latest: Specialisation) -> Iterator[Specialisation]:
        """Drop the least recently used beyond the limits, but not the latest."""
        sizes = {made: nbytes_of(made) for made in self.all()}
        total = sum(sizes.values())
        oldest = iter(sorted(sizes, key=lambda made: self._used.get(made, 0)))
        while len(sizes) > MOST_TAPES or total > MOST_BYTES:
            gone = next(oldest, None)
            if gone is None:
                return
            if gone is latest or (gone.gaining is not None and gone.tape.key == latest.tape.key):
                continue  # beside a tape for all lengths there may be its own for some
            total -= sizes.pop(gone)
            self._drop(gone)
            yield gone

    def _drop(self, gone: Specialisation) -> None:
        key = gone.tape.key
        left = [made for made in self.of_kind(key) if made is not gone]
        if left:
            self._kinds[key] = left
        else:
            self._kinds.pop(key, None)
        self._used.pop(gone, None)
        self.dropped += 1


def tried_equal(held: list[Specialisation], flat: Flattened) -> bool:
    """Whether a tape in ``held`` assumes equal lengths that these arguments do not have."""
    return any(
        leaves[k].shape[axis] != leaves[other].shape[at]
        for made in held
        for leaves in [made.tape.leaves(flat.leaves)]
        for k, axis, other, at in made.tape.equal_lengths
    )


def wide(held: list[Specialisation], flat: Flattened) -> Specialisation | None:
    """A tape that fits, for all lengths, beside which small arrays may have their own."""
    fits = (m for m in held if m.gaining is not None and m.tape.holds(m.tape.leaves(flat.leaves)))
    return next(fits, None) if flat.examples else None


def nbytes_of(made: Specialisation) -> int:
    """About how much memory a tape takes, with the arrays that it holds and its compiled code."""
    return made.held_bytes + (_COMPILED if made.is_compiled else 0)
