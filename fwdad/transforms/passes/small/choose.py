"""The choice of small arrays to be replaced by numbers.

An array is chosen if its length is known, every index into it is a constant, and the replacement is
unobservable: it is written only under names that certainly are this array or a view of it. Carried
values, results of branches and views that a function may return are snapshots of the content, so no
memory that they may alias is written afterwards.

Any other use of a chosen array gets a new array of its numbers. That must pay off: connected arrays
are chosen together, if this removes more memory operations than it adds, with a weight of eight for
each surrounding loop.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory, memory_of
from fwdad.ir.analysis.layout import Orders
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ops import Cost, record_of
from fwdad.transforms.passes.small.elements import (
    element_function,
    expansion,
    is_small,
    loaded_places,
    size,
    stores,
    taken,
)

_LOOP = 8  # how much more often what is in a loop is run
_ACCESS = 0.25  # what the load or store of an element costs, where a new array costs one
_CALL = 0.75  # what such a function costs for one element, which for eight at once costs no more
_MOST = 2000  # numbers that connected arrays may always be replaced by,
_MOST_EACH = 10  # or so many for each array, which takes as long to compile as ten numbers


class Choice:
    """The arrays of a program that are chosen: ``chosen``.

    These are arrays made here, views of them, carried values and results of branches.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._roots: Roots = memory_of(program)
        self._definitions: dict[Value, Op] = {}
        self._span: dict[Op, tuple[int, int]] = {}  # where an operation begins and ends
        self._depth: dict[Op, int] = {}
        self._loops: dict[Op, list[Op]] = {}  # the loops and branches around an operation
        self._tested: set[Op] = set()  # in the condition of a loop
        self._merges: dict[Value, list[Operand]] = {}
        self._merging: dict[Value, Op] = {}
        self._survey(program.block, [], 0, tested=False)
        self._expandable = {
            op for op in walk(program.block) if isinstance(op, Apply) and expansion(op) is not None
        }
        self._loads = [op for op in walk(program.block) if isinstance(op, Load)]
        self._writes: dict[Value, list[int]] = {}  # memory, and where it is written
        self._unclear: set[Value] = set()  # memory that is written under unclear names
        for op in walk(program.block):
            for v in op.writes():
                for r in self._roots.get(v, {v}):
                    self._writes.setdefault(r, []).append(self._span[op][0])
        self.chosen = self._candidates()
        self._reject({v for op in Orders(program).on_other_orders() for v in op.outputs})
        self._drop_written()
        if any(self._is_input(r) and r not in program.block.params for r in self._writes):
            self.chosen.clear()  # a part of a program, which does not know what shares memory
        self._drop_merged()
        self._drop_indexed()
        self._drop_views()
        self._settle()
        while self._drop_worthless():
            self._settle()

    def in_loops(self) -> int:
        """How many of the chosen arrays are made in loops, or carried by them."""
        ops = [self._merging.get(v) or self._definitions[v] for v in self.chosen]
        return sum(isinstance(op, Loop) or self._depth[op] > 0 for op in ops)

    # -- what there is

    def _survey(self, block: Block, around: list[Op], k: int, *, tested: bool) -> int:
        for op in block.ops:
            start, k = k, k + 1
            self._loops[op] = around
            self._depth[op] = sum(isinstance(o, Loop) for o in around)
            if tested:
                self._tested.add(op)
            for inner in op.blocks():
                test = isinstance(op, Loop) and inner is op.test
                k = self._survey(inner, [*around, op], k, tested=tested or test)
            self._span[op] = (start, k)
            for v in op.outputs:
                self._definitions[v] = op
            self._note_merges(op)
        return k

    def _note_merges(self, op: Op) -> None:
        if isinstance(op, Branch):
            for v, a, b in zip(op.outputs, op.then.results, op.other.results, strict=True):
                if is_array(v):
                    self._merges[v], self._merging[v] = [a, b], op
        elif isinstance(op, Loop):
            rows = zip(op.carried, op.outputs, op.initial, op.body.results, strict=False)
            for p, out, first, last in rows:
                if is_array(p):
                    self._merges[p], self._merging[p] = [first, last], op
                    self._merges[out], self._merging[out] = [p], op

    def _candidates(self) -> set[Value]:
        values: set[Value] = set()
        for op in walk(self._program.block):
            if op in self._expandable:
                values.update(v for v in op.outputs if is_array(v))
            elif isinstance(op, Load) and is_small(op.outputs[0].type):
                whole = loaded_places(op) if is_small(op.array.type) else None
                if whole is not None or self._is_row(op):
                    values.add(op.outputs[0])
        return values | {v for v in self._merges if is_small(v.type)}

    def _is_row(self, op: Load) -> bool:
        """Whether a load takes known elements of memory that is never written."""
        roots = self._roots.get(op.array, {op.array})
        return not roots & self._writes.keys() and taken(op) is not None

    def _base(self, v: Value) -> Value:
        """The array that a value is a view of, through constant indices."""
        op = self._definitions.get(v)
        while isinstance(op, Load) and op.view and is_small(op.array.type):
            v = op.array
            op = self._definitions.get(v)
        return v

    def _reject(self, values: set[Value]) -> None:
        self.chosen -= values

    def _reject_all_of(self, roots: set[Value]) -> None:
        """Reject all arrays that may share some memory."""
        if roots:
            self._reject({v for v in self.chosen if self._roots.get(v, {v}) & roots})

    # -- what may not be

    def _drop_written(self) -> None:
        """Reject arrays written under a name that may be another array, or at unknown indices."""
        for op in walk(self._program.block):
            for v in op.writes():
                roots, base = self._roots.get(v, {v}), self._base(v)
                owner = self._definitions.get(base)
                clear = (
                    isinstance(op, (Store, Update))
                    and isinstance(owner, (Apply, Load))
                    and base in self.chosen
                    and roots == {base}
                    and v in self.chosen
                    and op not in self._tested
                    and stores(op.array, op.index, op.value)
                    and (
                        not isinstance(op, Update)
                        or element_function(op.function, (op.array, op.value)) is not None
                    )
                )
                if not clear:
                    self._unclear |= roots
                    self._reject(roots | {base, v})

    def _written_after(self, roots: set[Value], limit: int) -> set[Value]:
        return {r for r in roots if any(w > limit for w in self._writes.get(r, ()))}

    def _drop_merged(self) -> None:
        """Reject carried values and results of branches whose memory is written afterwards."""
        for v, sources in self._merges.items():
            op = self._merging[v]
            start, end = self._span[op]
            for source in sources:
                roots = memory(source, self._roots)
                for r in roots:
                    definition = self._definitions.get(r)
                    inside = definition is not None and op in self._loops[definition]
                    late = not isinstance(op, Loop) or (inside and r not in self._unclear)
                    if self._written_after({r}, end - 1 if late else start):
                        self._reject_all_of({r})

    def _drop_indexed(self) -> None:
        """Reject arrays with indices that are not constant."""
        for op in walk(self._program.block):
            if isinstance(op, Load):
                if is_small(op.array.type) and loaded_places(op) is None:
                    self._reject({op.array})
                self._reject(set(values_in(op.index)))
            elif isinstance(op, Branch):
                self._reject(set(values_in(op.condition)))

    def _drop_views(self) -> None:
        """Reject arrays whose memory is visible through something that is not rewritten."""
        results: dict[Value, set[Operand]] = {}
        for r in self._program.block.results:
            for v in values_in(r):
                for root in memory(v, self._roots):
                    results.setdefault(root, set()).add(v)
            if isinstance(self._definitions.get(r), Load):
                self._reject({r})  # it may be a view of an argument
        for root, held in results.items():
            if len(held) > 1 and not self._is_input(root):
                self._reject({root, *held})
        for op in walk(self._program.block):
            if isinstance(op, Load):
                continue
            outputs = {*op.outputs}
            shared = (
                set().union(*(self._roots.get(v, set()) for v in outputs if is_array(v))) - outputs
            )
            if isinstance(op, (Loop, Branch)) or not shared:
                continue
            self._reject_all_of(self._written_after(shared, self._span[op][0]))

    def _settle(self) -> None:
        """Reject arrays that depend on rejected ones."""
        while True:
            before = len(self.chosen)
            for v in list(self.chosen):
                op = self._definitions.get(v)
                if v in self._merges:
                    partners = self._slots_of(v)
                    if not all(p in self.chosen for p in partners) or not self._agree(v):
                        self.chosen -= {v, *partners}
                elif isinstance(op, Load) and op.view and op.array not in self.chosen:
                    written = self._roots.get(op.array, {op.array}) & self._writes.keys()
                    if written or not (self._is_input(op.array) or self._is_row(op)):
                        self.chosen.discard(v)
            for op in self._loads:
                if is_array(op.outputs[0]) and op.outputs[0] not in self.chosen:
                    self.chosen.discard(op.array)
            if len(self.chosen) == before:
                return

    def _is_input(self, v: Value) -> bool:
        return v not in self._definitions and v not in self._merges

    def _slots_of(self, v: Value) -> list[Value]:
        """The values that are chosen with a carried value: itself inside and after the loop."""
        op = self._merging[v]
        if isinstance(op, Loop):
            for p, out in zip(op.carried, op.outputs, strict=True):
                if v is p or v is out:
                    return [p, out]
        return [v]

    def _agree(self, v: Value) -> bool:
        return all(
            isinstance(s, Missing) or (isinstance(s, Value) and s.type == v.type)
            for s in self._merges[v]
        )

    # -- what is worth it

    def _uses(self) -> Iterator[tuple[Value, int, Value | None, bool]]:
        """Each use of a chosen array: its depth, the chosen array it feeds, whether it is free."""
        for op in walk(self._program.block):
            depth = self._depth[op]
            if isinstance(op, (Store, Update)) and op.array in self.chosen:
                yield op.array, depth, None, True
            for v in self._chosen_in(op):
                into = self._goes_into(op)
                yield v, depth, into, into is not None or self._is_number(op)
        for v, sources in self._merges.items():
            op = self._merging[v]
            into = v if v in self.chosen else None
            for s in self._chosen_in_all(sources):
                inside = isinstance(op, Loop) and s is not sources[0]
                yield s, self._depth[op] + inside, into, into is not None
        for v in set(self._chosen_in_all(self._program.block.results)):
            yield v, 0, None, False

    def _chosen_in_all(self, operand: Operand) -> list[Value]:
        return [v for v in values_in(operand) if v in self.chosen]

    def _chosen_in(self, op: Op) -> list[Value]:
        """The chosen arrays that an operation reads, except in blocks and as carried values."""
        if isinstance(op, (Loop, Branch)):
            return []
        if isinstance(op, Load):
            return self._chosen_in_all(op.array)
        return self._chosen_in_all(op.value if isinstance(op, (Store, Update)) else op.operands())

    def _goes_into(self, op: Op) -> Value | None:
        if isinstance(op, (Store, Update)):
            return op.array if op.array in self.chosen else None
        return next((v for v in op.outputs if v in self.chosen), None)

    def _is_number(self, op: Op) -> bool:
        """Whether an operation computes a number from the numbers that replace arrays."""
        alone = isinstance(op, Load) or op in self._expandable
        return alone and not is_array(op.outputs[0])

    def _drop_worthless(self) -> bool:
        groups = _Groups()
        gain: dict[Value, float] = {}
        numbers: dict[Value, int] = {}
        for v in self.chosen:
            op = self._definitions.get(v)
            groups.find(v)
            if isinstance(op, Apply) or (isinstance(op, Load) and not op.view):
                gain[v] = gain.get(v, 0.0) + _LOOP ** self._depth[op] * (1.0 - _calls(op))
                numbers[v] = _numbers(op)
        for v, depth, into, fit in self._uses():
            weight = float(_LOOP**depth)
            if into is not None:
                groups.join(v, into)
            elif fit:
                gain[v] = gain.get(v, 0.0) + _ACCESS * weight
            else:
                gain[v] = gain.get(v, 0.0) - weight
        totals: dict[Value, float] = {}
        sizes: dict[Value, int] = {}
        most: dict[Value, int] = {}
        for v in self.chosen:
            head = groups.find(v)
            totals[head] = totals.get(head, 0.0) + gain.get(v, 0.0)
            sizes[head] = sizes.get(head, 0) + numbers.get(v, 0)
            most[head] = most.get(head, 0) + _MOST_EACH * (v in numbers)
        lost_heads = {h for h, n in sizes.items() if totals[h] <= 0 or n > max(_MOST, most[h])}
        lost = {v for v in self.chosen if groups.find(v) in lost_heads}
        self.chosen -= lost
        return bool(lost)


def _calls(op: Apply | Load) -> float:
    """The cost of calls of a function that compiled code vectorises over elements."""
    function = getattr(op, "function", None)
    called = isinstance(function, np.ufunc) and record_of(function).cost is Cost.LIBRARY
    return _CALL * size(op.outputs[0]) if called else 0.0


def _numbers(op: Apply | Load) -> int:
    """Approximately how many operations on numbers replace an array."""
    made = size(op.outputs[0])
    if getattr(getattr(op, "function", None), "__name__", "") in ("matmul", "dot"):
        return made * 2 * op.operands()[0].type.shape[-1]
    return made


class _Groups:
    """Disjoint sets of connected values."""

    def __init__(self) -> None:
        self._above: dict[Value, Value] = {}

    def find(self, v: Value) -> Value:
        """The representative of a value's set."""
        above = self._above
        while above.setdefault(v, v) is not v:
            above[v] = above[above[v]]  # each search halves the path
            v = above[v]
        return v

    def join(self, a: Value, b: Value) -> None:
        """Merge two sets."""
        self._above[self.find(a)] = self.find(b)
