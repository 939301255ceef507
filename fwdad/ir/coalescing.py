"""Coalescing: which values can share a name, ``s = s + x[i]`` for ``s_2 = s + x[i]; s = s_2``.

A carried value of a loop or the result of a branch is one value on each path; all of them may be
one variable if none is assigned while another is live (Chaitin's test, 1982, on a structured
program).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from fwdad.ir.ops import (
    Block,
    Branch,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)

Pair = tuple[Value, Value]


def shared_names(
    program: Program, inlined: Mapping[Value, Op], unused: Container[Value]
) -> dict[Value, list[Value]]:
    """For each value that can share its variable, the group of values that do.

    ``inlined`` values are written where they are used and have no name, ``unused`` ones are not
    written.
    """
    wanted = [p for p in _pairs(program) if not any(v in inlined for v in p) and _alike(*p)]
    fixed = [
        pair
        for op in walk(program.block)
        if isinstance(op, Loop)
        for pair in zip(op.carried, op.outputs, strict=True)
    ]
    groups = _Groups()
    for pair in fixed:
        groups.join(*pair)
    liveness = _Liveness({v for pair in (*fixed, *wanted) for v in pair}, inlined, unused)
    liveness.program(program)
    groups.conflicts = liveness.conflicts
    for pair in wanted:
        groups.join_if_apart(*pair)
    return {v: group for v, group in groups.of.items() if len(group) > 1}


def _pairs(program: Program) -> Iterator[Pair]:
    """Pairs of values that need a copy unless they share a name; those inside loops first."""
    for op in walk(program.block):
        if isinstance(op, Loop):
            for p, r in zip(op.carried, op.body.results, strict=False):
                if isinstance(r, Value):
                    yield p, r
    for op in walk(program.block):
        if isinstance(op, Loop):
            for p, a in zip(op.carried, op.initial, strict=True):
                if isinstance(a, Value):
                    yield p, a
        elif isinstance(op, Branch):
            for side in op.blocks():
                for v, r in zip(op.outputs, side.results, strict=True):
                    if isinstance(r, Value):
                        yield v, r


def _alike(a: Value, b: Value) -> bool:
    if a.name is not None and b.name is not None and a.name != b.name:
        return False
    return (is_array(a) and is_array(b)) or a.type == b.type


class _Groups:
    """Disjoint groups of values, merged unless they conflict."""

    def __init__(self) -> None:
        self.of: dict[Value, list[Value]] = {}
        self.conflicts: dict[Value, set[Value]] = {}

    def _group(self, v: Value) -> list[Value]:
        return self.of.setdefault(v, [v])

    def join(self, a: Value, b: Value) -> None:
        """Merge two groups."""
        one, two = self._group(a), self._group(b)
        if one is not two:
            one.extend(two)
            self.of.update(dict.fromkeys(two, one))

    def join_if_apart(self, a: Value, b: Value) -> None:
        """Merge two groups if no members are live at once, and at most one is named by the user."""
        one, two = self._group(a), self._group(b)
        names = {v.name for v in (*one, *two) if v.name is not None}
        members = set(two)
        if len(names) > 1 or any(members & self.conflicts.get(v, set()) for v in one):
            return
        self.join(a, b)


class _Liveness:
    """Walks a program backwards and records which values are live where another is assigned."""

    def __init__(
        self, candidates: set[Value], inlined: Mapping[Value, Op], unused: Container[Value]
    ) -> None:
        self.candidates = candidates
        self.inlined = inlined
        self.unused = unused
        self.conflicts: dict[Value, set[Value]] = {}

    def program(self, program: Program) -> None:
        """Walk a whole program."""
        block = program.block
        self._block(block, self._used(block.results))
        params = self.candidates.intersection(block.params)
        for p in params:
            self._assign(p, params)

    def _used(self, operands: Iterable[Operand]) -> set[Value]:
        """The candidates that operands use, directly or through inlined expressions."""
        values: set[Value] = set()
        work = list(values_in(list(operands)))
        while work:
            v = work.pop()
            if v in self.inlined:
                work.extend(values_in(self.inlined[v].operands()))
            elif v in self.candidates:
                values.add(v)
        return values

    def _assign(self, v: Value, live: set[Value], source: Operand = None) -> None:
        """Record that a value is assigned while others are live; ``source`` is no conflict."""
        if v in self.candidates:
            for w in live:
                if w is not v and w is not source:
                    self.conflicts.setdefault(v, set()).add(w)
                    self.conflicts.setdefault(w, set()).add(v)

    def _block(self, block: Block, live: set[Value]) -> set[Value]:
        for op in reversed(block.ops):
            if isinstance(op, Branch):
                live = self._branch(op, live)
            elif isinstance(op, Loop):
                live = self._loop(op, live)
            elif not (len(op.outputs) == 1 and op.outputs[0] in self.inlined):
                for v in op.outputs:
                    self._assign(v, live)
                live = live.difference(op.outputs) | self._used(op.operands())
        return live

    def _branch(self, op: Branch, live: set[Value]) -> set[Value]:
        before: set[Value] = set()
        for side in op.blocks():
            pairs = [
                (v, r)
                for v, r in zip(op.outputs, side.results, strict=True)
                if v not in self.unused
            ]
            for v, r in pairs:
                self._assign(v, live, r)
            after = live.difference(op.outputs) | self._used(r for _, r in pairs)
            before |= self._block(side, after)
        return before | self._used([op.condition])

    def _loop(self, op: Loop, live: set[Value]) -> set[Value]:
        params, results = self.candidates.intersection(op.body.params), op.body.results
        for p, v in zip(op.carried, op.outputs, strict=True):
            self._assign(v, live, p)
        beyond = live.difference(op.outputs)
        leaving = {p for p, v in zip(op.carried, op.outputs, strict=True) if v in live}
        inside = self._inside(op)
        head = beyond | leaving | inside
        after = head | self._used(results[len(op.carried) :])
        for p, r in zip(op.carried, results, strict=False):
            # all are assigned at once: what another one was is gone
            self._assign(p, after, r if r not in op.body.params else None)
        start = self._block(op.body, after.difference(params) | self._used(results))
        for p in op.body.params[: len(op.body.params) - len(op.carried)]:
            self._assign(p, start)
            start.discard(p)
        if op.test is not None:
            start = self._block(op.test, start | beyond | leaving | self._used(op.test.results))
        span = self._used([op.span])
        head |= start
        for p, a in zip(op.carried, op.initial, strict=True):
            self._assign(p, head | span, a)
        return head.difference(op.body.params) | span | self._used(op.initial)

    def _inside(self, op: Loop) -> set[Value]:
        """The candidates from before an iteration that the iteration may use."""
        used: set[Value] = set()
        values: set[Value] = set()
        for block in op.blocks():
            used |= self._used(block.results)
            for inner in walk(block):
                values.update(inner.outputs)
                used |= self._used(inner.operands())
                for held in inner.blocks():
                    used |= self._used(held.results)
                    values.update(held.params)
        return used - values
