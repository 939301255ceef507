"""Lists that grow while the program runs: items are pushed onto a stack of the tape.

A list whose length is the same on all paths through a program is a list while it is traced. One
that is not makes the trace restart with the place where it is made (:class:`ListGrows`): that
display is then a :class:`Growing`. Its items are numbers of one type, or arrays of one dtype and
shape; of tuples (``growing_tuples.py``) each part has a stack of its own. Where it is read, all of
its items are popped from the stack into an array, right after what changed the list last. One that
grows at its front (`insert(0, x)`) grows only there. After `reverse`, `sort` or `pop` it is a part
of that array, and grows no longer. Where more is asked of a list of numbers, or of tuples of
numbers, the trace restarts with one in memory (``changing.py``).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.growing_lists.items import OUT_OF_RANGE, Items, ListGrows, root
from fwdad.frontend.syntax.lengths import binary_add
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import Maybe
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Apply, Block, Loop, Op, Value, walk
from fwdad.ir.primitives.stacks import new_stack, pop, push, stack_type
from fwdad.ir.rewrite import all_inside, all_used
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import INT, ArrayType, Number, Size, Type, join, number_type


class Growing(Items):
    """A list that grows when the program runs.

    It is made at ``place`` with the items ``head``; ``type_of_items`` is None unless an earlier
    trace has found it.
    """

    rebuilt = False  # no stack is

    def __init__(self, tracer: Tracer, head: list[Any], type_of_items: Any, place: Any) -> None:
        self.tracer = tracer
        self.place = place
        self.front = tracer.growing.get((place, "front"), False)
        self.type: Any = type_of_items
        self.made: Op | None = None
        for x in head:
            self._take_type(self.operand(x))
        self.head = [self._converted(self.operand(x)) for x in head]
        recorder = tracer.recorder
        stack = Value(stack_type(self.type or Number(np.dtype(float), python=True)), "items")
        self.made = Apply(new_stack, (), outputs=(stack,))
        recorder.emit(self.made)
        recorder.lists.append(self)
        self.stack = Symbol(stack, recorder)
        self._unstacked: dict[Value, _Read] = {}
        self._read: list[_Read] = []
        latest = self.head[self._latest] if head else UNBOUND
        self.held: dict[str, Any] = {"count": 0, "latest": latest, "changed": UNBOUND}
        recorder.journal.own(self.held, namespace=True)

    @property
    def python(self) -> bool:  # type: ignore[override]
        """Whether the items are Python's numbers."""
        return isinstance(self.type, Number) and self.type.python

    @property
    def arrays(self) -> bool:  # type: ignore[override]
        """Whether the items are arrays."""
        return isinstance(self.type, ArrayType)

    @property
    def into(self) -> Value:
        """The memory that the items are put into."""
        return self.stack.value

    @property
    def _latest(self) -> int:
        """The index of the item that was added last."""
        return 0 if self.front else -1

    def changed(self, what: str) -> NoReturn:
        """Begin the trace anew with this list in memory, with room for more."""
        self.tracer.growing[root(self.place), "resized"] = True
        raise ListGrows((root(self.place), "stored"), what)

    # -- items

    def _take_type(self, x: Any) -> None:
        """Include the type of one more item; restart the trace if the present one is too narrow."""
        t: Any = x.type if type(x) is Symbol else number_type(x)
        if self.type is None:
            self.type = t
            if isinstance(t, Number):
                self.tracer.growing[self.place] = t
            if self.made is not None:
                self.made.outputs[0].type = stack_type(t)
            return
        old = self.type
        if isinstance(t, ArrayType) or isinstance(old, ArrayType):
            alike = type(t) is type(old) and t.dtype == old.dtype and t.ndim == old.ndim
            if not alike:
                self.refused(f"items of different types ({old} and {t}) in")
            return
        wide = join(old, t)
        if wide is None:
            self.refused(f"items of different types ({old} and {t}) in")
        if wide != old:
            raise ListGrows(self.place, wide)  # what it holds by now is converted, too

    def _converted(self, x: Any) -> Any:
        t = self.type
        if isinstance(t, ArrayType):
            return x
        if (x.type if type(x) is Symbol else number_type(x)) == t:
            return x
        kinds: dict[str, Any] = {"b": bool, "i": int, "f": float, "c": complex}
        function = kinds[t.dtype.kind] if t.python else t.dtype.type
        if type(x) is not Symbol:
            return function(x)
        return self.tracer.recorder.apply(function, (x,), {})

    def append(self, x: Any) -> None:
        """Add an item at the end."""
        if self.front:
            self.changed("both `append` and `insert` on")
        self._put(x)

    def insert(self, place: Any, x: Any) -> None:
        """Add an item at the front."""
        if type(place) is Symbol or place != 0:
            self.changed("`insert` anywhere but at 0 in")
        if not self.front:
            raise ListGrows((self.place, "front"), item=True)
        self._put(x)

    def pop(self, place: Any = -1) -> Any:
        """Take off the item at an end."""
        if type(place) is Symbol or place not in (0, -1):
            self.changed("`pop` anywhere but at an end of")
        self.not_empty("pop from empty list", IndexError)
        found = self.at(place)
        self._change(self._part(slice(None, -1) if place else slice(1, None)))
        return found

    def reverse(self) -> None:
        """Turn the order of the items around."""
        self._change(self._part(slice(None, None, -1)))

    def sort(self) -> None:
        """Bring the items, numbers, into order."""
        if self.arrays:
            self.refused("`sort` of arrays in")
        self._change(self.tracer.recorder.apply(np.sort, (self.rows(),), {}))

    def _part(self, part: slice) -> Symbol:
        rows: Symbol = self.tracer.recorder.load(self.rows(), part)
        return rows

    def _change(self, rows: Symbol) -> None:
        """From here on the items are those of an array."""
        self.tracer.recorder.journal.bind(self.held, "changed", rows)

    def _changed(self) -> Symbol | None:
        """The items as an array, if they are not those on the stack any more."""
        rows = self.held["changed"]
        if rows is UNBOUND:
            return None
        if type(rows) is not Symbol:
            self.changed("reading, where it was changed in a loop or on one side of a branch,")
        return rows

    def _put(self, x: Any) -> None:
        recorder = self.tracer.recorder
        if self.held["changed"] is not UNBOUND:
            self.changed("adding an item, after `pop`, `reverse` or `sort`, to")
        x = self.operand(x)
        if recorder.in_checkpoint or recorder.checkpoint is not None:
            self.changed("code under `checkpoint` that appends to")
        if self._level(recorder.blocks[recorder.first_block :]) is None:
            self.refused("a recursive or differentiated function that appends to")
        self._take_type(x)
        x = recorder.as_symbol(self._converted(x))
        recorder.mutate(push, (self.stack, x), {})
        count = recorder.apply_typed(operator.add, (self.held["count"], 1), INT)
        recorder.journal.bind(self.held, "count", count)
        recorder.journal.bind(self.held, "latest", x)

    # -- reading

    def length(self) -> Any:
        """The number of items."""
        rows = self._changed()
        if rows is not None:
            return self.tracer.recorder.length(rows, 0)
        return binary_add(self.tracer, self.held["count"], len(self.head))

    def item(self, index: Any) -> Any:
        """The item at an index, or the items of a slice; the latest one even while it grows."""
        if self.held["changed"] is not UNBOUND:
            return super().item(index)
        if type(self.held["count"]) is not Symbol and isinstance(index, int):
            return native(operator.getitem, self.head, index)
        if isinstance(index, slice) or type(index) is Symbol or index != self._latest:
            return super().item(index)
        latest = self.held.get("latest", UNBOUND)
        if latest is UNBOUND:
            raise AlwaysRaises(IndexError, (OUT_OF_RANGE,))
        if isinstance(latest, Maybe):
            self.tracer.recorder.check(latest.flag, IndexError, (OUT_OF_RANGE,))
            return latest.value
        return self.tracer.values.readable(latest, f"[{index}]", self.held)

    def state(self) -> tuple[Any, ...]:
        """What is another object after each change of the list."""
        return self.held["count"], self.held["changed"]

    def rows(self) -> Symbol:
        """The items, as an array that nobody may write into."""
        changed = self._changed()
        if changed is not None:
            return changed
        recorder, count = self.tracer.recorder, self.held["count"]
        if type(count) is not Symbol:
            return self._known_rows()
        block = self._level(recorder.blocks)
        if block is None:
            self.refused("a recursive or differentiated function that reads")
        assert block is not None
        at = next((k for k, op in enumerate(block.ops) if count.value in op.outputs), None)
        if at is None:  # it has another length in each iteration, or on one side
            self.changed("reading, while it grows, anything but the length or the latest item of")
        assert at is not None
        unstacked = self._unstacked.get(count.value)
        if unstacked is None or unstacked.allocated not in block.ops:
            unstacked = self._unstacked[count.value] = self._taken_off(block, at + 1, count)
            self._read.append(unstacked)
        return unstacked.rows

    def read(self) -> list[tuple[Value, set[Op]]]:
        """The arrays that the items were read into, and the operations that fill each."""
        return [(found.rows.value, found.own) for found in self._read]

    def _known_rows(self) -> Symbol:
        """The items of a list to which nothing has been appended."""
        if not self.head:
            symbol: Symbol = self.tracer.recorder.apply(np.zeros, (0,), {})
            return symbol
        made: Symbol = self.tracer.recorder.apply(np.array, (list(self.head),), {})
        self._read.append(_Read(made, self.tracer.recorder.latest, set()))
        return made

    def _level(self, blocks: list[Block]) -> Block | None:
        """The open block in which the list was made."""
        return next((b for b in reversed(blocks) if self.made in b.ops), None)

    def _taken_off(self, block: Block, at: int, count: Symbol) -> _Read:
        """Write operations that pop the items from the stack, into an outer block at an index."""
        recorder = self.tracer.recorder
        inner, recorder.block = recorder.block, Block()
        mark = recorder.lengths.mark()
        try:
            t = self._type_of_all(block.ops[:at])
            lengths = tuple(self._length(d) for d in t.shape)
            head = len(self.head)
            total = recorder.apply(operator.add, (count, head), {}) if head else count
            rows = recorder.apply(np.zeros, ((total, *lengths), t.dtype), {})
            allocated = recorder.block.ops[-1]
            earlier = [r for r in self._unstacked.values() if r.allocated in block.ops[:at]]
            if earlier:  # what was taken off then is not on the stack any more
                before = earlier[-1]
                end = recorder.length(before.rows, 0)
                since = recorder.apply(operator.sub, (total, end), {})
                there = slice(since, None) if self.front else slice(None, end)
                recorder.store(rows, there, before.rows)
            else:
                since = count
                for k, x in enumerate(self.head):
                    at_end = recorder.apply(operator.add, (count, k), {}) if self.front else k
                    recorder.store(rows, at_end, x)
            self._take_one_by_one(rows, total, since, t)
            found = recorder.block
        finally:
            recorder.block = inner
            recorder.lengths.forget(mark)
        recorder.lengths.measure(rows.value)
        self._check_visible(found, block, at)
        block.ops[at:at] = found.ops
        return _Read(rows, allocated, set(walk(found)))

    def _take_one_by_one(self, rows: Symbol, total: Any, count: Symbol, t: Type) -> None:
        recorder, body = self.tracer.recorder, Block(params=[Value(INT)])
        outer, recorder.block = recorder.block, body
        k, item = Symbol(body.params[0], recorder), Value(t)
        last = recorder.apply(operator.sub, (total, 1), {})
        place = k if self.front else recorder.apply(operator.sub, (last, k), {})
        recorder.emit(Apply(pop, (self.stack.value,), mutated=(0,), outputs=(item,)))
        recorder.store(rows, place, Symbol(item, recorder))
        recorder.block = outer
        recorder.emit(Loop((0, count.value, 1), [], body))

    def _type_of_all(self, ops: list[Op]) -> Type:
        """The common type of all items, whose shapes have to agree."""
        pushed = [
            op.args[1].type for op in walk(Block(ops=ops))
            if isinstance(op, Apply) and op.function is push and op.args[0] is self.stack.value
        ]  # fmt: skip
        types = [x.type if type(x) is Symbol else number_type(x) for x in self.head] + pushed
        resolved = self.tracer.recorder.lengths.resolved
        first, *others = [resolved(t) for t in types]
        if any(t.shape != first.shape for t in others):
            self.refused("arrays that may differ in shape as items of")
        found: Type = first if isinstance(first, ArrayType) else self.type
        return found

    def _length(self, d: Any) -> Any:
        """A length that all items have, as a number."""
        recorder = self.tracer.recorder
        if not isinstance(d, Size):
            return d
        of, by = d.shortened
        if of is not d:
            less = recorder.apply(operator.sub, (self._length(of), by), {})
            return recorder.apply(max, (less, 0), {})
        try:
            return recorder.length_symbol(d)
        except UntraceableError:
            self.refused("arrays whose length is unknown after the loop as items of")

    def _check_visible(self, found: Block, block: Block, at: int) -> None:
        """Refuse operations that use values unknown where the list has stopped growing."""
        recorder = self.tracer.recorder
        depth = next(k for k, b in enumerate(recorder.blocks) if b is block)
        inside = all_inside(block)
        for b in recorder.blocks[depth:]:
            inside |= all_inside(b)
        before = {v for op in block.ops[:at] for v in (*op.outputs, *_counts(op))}
        seen = before | all_inside(found) | set(block.params)
        used = [v for op in found.ops for v in all_used(op)]
        if any(v in inside and v not in seen for v in used):
            self.refused("arrays whose length is unknown after the loop as items of")


@dataclass(frozen=True)
class _Read:
    """The items of a list in an array, the array's allocation, and the operations that fill it."""

    rows: Symbol
    allocated: Op | None
    own: set[Op]


def _counts(op: Op) -> list[Value]:
    return [op.exec_count] if isinstance(op, Loop) else []
