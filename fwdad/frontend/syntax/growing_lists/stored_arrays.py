"""Lists of arrays that are changed, or read while they grow: the arrays lie in one array.

An array on a list is the array itself, and what lies here is its content. So the arrays must not be
written later, under the name that they had or as items: ``frontend/appended.py`` checks that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.frontend.syntax.growing_lists.changing import Stored, refuse_item, rooms
from fwdad.frontend.syntax.growing_lists.items import Items, ListGrows, root
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Op, Value
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType

_ROOM, _NUMBERS = 1024, 2**22
"""For how many arrays there is room at first, and for how many numbers in them."""


class StoredArrays(Stored):
    """A list of arrays of one dtype and shape; the lengths are known."""

    rebuilt = False
    arrays = True
    head: tuple[Any, ...] = ()
    made: Op | None = None

    def __init__(self, tracer: Tracer, items: Any, place: Any, t: ArrayType) -> None:
        arrays = items.rows() if isinstance(items, Items) else None
        count = len(items) if arrays is None else items.length()
        super().__init__(tracer, count, place, t)
        for k, x in enumerate(items if arrays is None else ()):
            self.put(k, x)
        if arrays is not None:
            self.check_room(count)
            self._keep(slice(None, count), arrays)

    def _allocated(self, _rows: Any) -> Symbol:
        """The memory."""
        t, place = self.type, root(self.place)
        if self.resized:
            size = max(int(np.prod(t.shape)), 1)
            self.room = rooms.get(place, min(_ROOM, max(_NUMBERS // size, 16)))
        memory: Symbol = self.tracer.recorder.apply(np.zeros, ((self.room, *t.shape), t.dtype), {})
        self._own: set[Op] = set()
        self._given: list[Value] = []
        self.tracer.recorder.lists.append(self)
        return memory

    @property
    def python(self) -> bool:  # type: ignore[override]
        """Whether the items are Python's numbers."""
        return False

    def value_at(self, place: Any) -> Symbol:
        """The array at an index that is in bounds; it stays if another one is put there."""
        recorder = self.tracer.recorder
        given: Symbol = recorder.apply(
            np.ndarray.copy, (recorder.load(self._memory, (place, ...)),), {}
        )
        self._given.append(given.value)
        return given

    def put(self, k: Any, x: Any) -> None:
        """Put an array at a place."""
        if self.stores_none(k, x):
            return
        x = self.operand(x)
        if type(x) is not Symbol or not x.is_array or shaped(self.tracer, x) != self.type:
            refuse_item(self.tracer, x)
        self._keep(k, x)

    def _keep(self, k: Any, x: Any) -> None:
        self.store(self._memory, k, x)
        assert self.tracer.recorder.latest is not None
        self._own.add(self.tracer.recorder.latest)

    def move(self, source: slice, into: slice) -> None:
        """Copy items to other places, which may be some of their own."""
        super().move(source, into)
        self._own.add(self.tracer.recorder.latest)  # type: ignore[arg-type]

    def reverse(self) -> None:
        """Turn the order of the items around."""
        super().reverse()
        self._own.add(self.tracer.recorder.latest)  # type: ignore[arg-type]

    def sort(self) -> None:
        """Refuse to sort arrays."""
        self.refused("`sort` of arrays in")

    # -- what `check_items` asks for

    @property
    def into(self) -> Value:
        """The memory that the items are stored in."""
        return self._memory.value

    def read(self) -> list[tuple[Value, set[Op]]]:
        """The arrays that the list is, and has given; the operations that may write into each."""
        return [(self._memory.value, self._own), *((v, set()) for v in self._given)]


def shaped(tracer: Tracer, x: Symbol) -> ArrayType:
    """The type of an array with its lengths, which the tape assumes from now on."""
    known = tracer.recorder.lengths.known_length
    return ArrayType(x.type.dtype, tuple(known(x, k) for k in range(x.type.ndim)))


def item_type(tracer: Tracer, x: Any) -> ArrayType | None:
    """The type of an array that is an item; None of anything else."""
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    return shaped(tracer, x) if type(x) is Symbol and x.is_array else None


def begin_with_arrays(tracer: Tracer, place: Any, x: Any) -> None:
    """Begin the trace anew with a list of arrays, if x is one."""
    t = item_type(tracer, x)
    if t is not None:
        raise ListGrows(place, t)
