"""A program as a graph: its lines, and the values that flow between them.

A node is a line of the printed program. Loops and branches are frames; the forward and the reverse
pass of a derivative are frames, too. What is kept for the reverse pass flows from the line that
makes it to the lines that use it: the stacks between them are not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from fwdad.ir.analysis.alias import Roots, memory_of
from fwdad.ir.analysis.effects import writes
from fwdad.ir.expressions import range_text
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    values_in,
)
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top, turn
from fwdad.ir.printer import Writer

FORWARD, REVERSE = "forward", "reverse"


@dataclass(eq=False)
class Node:
    """A line of the program, or an input.

    ``kind`` is ``"input"``, ``"step"``, ``"store"``, ``"check"``, ``"call"``, ``"condition"`` or
    ``"return"``; ``group`` is the pass that it belongs to, or nothing. ``op`` is the operation that
    the line is written for: those of the expressions in it have no node of their own.
    """

    label: str
    kind: str
    group: str = ""
    op: Op | None = None


@dataclass(eq=False)
class Cluster:
    """A frame around nodes and other frames, which are in program order.

    ``kind`` is ``"program"``, ``"pass"``, ``"loop"``, ``"branch"`` or ``"side"``.
    """

    label: str
    kind: str
    group: str = ""
    items: list[Node | Cluster] = field(default_factory=list)
    op: Op | None = None

    def nodes(self) -> Iterator[Node]:
        """The nodes in it, also in the frames in it."""
        for item in self.items:
            if isinstance(item, Node):
                yield item
            else:
                yield from item.nodes()


@dataclass(frozen=True)
class Edge:
    """A value that flows from one line to another.

    ``kind`` is ``"value"``; ``"carried"`` into a later iteration; ``"kept"`` for the reverse pass;
    or ``"call"``, to the program that is called. A value that a ``frame`` needs, for its condition
    or its range, ends at the frame.
    """

    source: Node
    target: Node
    kind: str
    frame: Cluster | None = None


@dataclass(eq=False)
class Graph:
    """Frames, the first of which is the program, and edges between the nodes inside them."""

    clusters: list[Cluster]
    edges: list[Edge]


@dataclass(eq=False)
class _Carried:
    """What a loop's carried value comes from: before the loop, or an iteration before."""

    first: _Sources
    again: _Sources = field(default_factory=dict)


@dataclass(eq=False)
class _Stack:
    """What is pushed onto a stack."""

    pushed: _Sources = field(default_factory=dict)
    value: Operand = None


_Source = Node | _Carried | _Stack
_Sources = dict[_Source, None]


def _nodes(sources: _Sources, kind: str, seen: set[_Source]) -> Iterator[tuple[Node, str]]:
    """The nodes behind sources, and how their values get here."""
    for source in sources:
        if source in seen:
            continue
        seen.add(source)
        if isinstance(source, Node):
            yield source, kind
        elif isinstance(source, _Carried):
            if kind != "kept" or not source.again:  # what is kept was mostly made in the loop
                yield from _nodes(source.first, kind, seen)
            yield from _nodes(source.again, "carried" if kind == "value" else kind, seen)
        else:
            yield from _nodes(source.pushed, "kept", seen)


class _Builder:
    """Builds the graph of a program and of those that it calls."""

    def __init__(self) -> None:
        self.clusters: list[Cluster] = []
        self.uses: list[tuple[_Sources, Node, Cluster | None]] = []
        self.views: dict[Node, None] = {}  # lines that make views of memory that is written
        self._called: list[tuple[Node, Program]] = []
        self._frames: dict[int, Cluster] = {}

    def add(self, program: Program, title: str) -> None:
        """Add a program, then the programs that it calls and that are not drawn yet."""
        cluster = Cluster(title, "program")
        self.clusters.append(cluster)
        self._frames[id(program)] = cluster
        drawn = _Drawn(self, program)
        drawn.program(cluster)
        for callee in [p for node, p in drawn.calls if id(p) not in self._frames]:
            if id(callee) not in self._frames:
                self.add(callee, f"program {callee.name}")
        self._called += drawn.calls

    def graph(self) -> Graph:
        """The graph, with the values' ways found."""
        edges: dict[Edge, None] = {}
        for sources, target, frame in self.uses:
            inside = set() if frame is None else set(frame.nodes())
            for source, kind in _nodes(sources, "value", set()):
                to = None if source in inside else frame
                edges[Edge(source, target, kind, to)] = None
        self._without_detours(edges)
        for node, callee in self._called:
            first = next(self._frames[id(callee)].nodes())
            edges[Edge(node, first, "call")] = None
        return Graph(self.clusters, list(edges))

    def _without_detours(self, edges: dict[Edge, None]) -> None:
        """Leave out what a line uses through a view, where the view has a line of its own."""
        flows = {(e.source, e.target) for e in edges if e.kind == "value"}
        for e in list(edges):
            if e.kind == "value" and any(
                (e.source, view) in flows and (view, e.target) in flows for view in self.views
            ):
                del edges[e]


class _Drawn:
    """One program while it is drawn."""

    def __init__(self, builder: _Builder, program: Program) -> None:
        self.builder = builder
        self.block = program.block
        self.writer = Writer(program, sketch=True)
        self.roots: Roots = memory_of(program)
        self.calls: list[tuple[Node, Program]] = []
        self.sources: dict[Value, _Sources] = {}
        self.written: dict[Value, _Sources] = {}  # what some memory holds since it was written
        outputs = [v for op in program.walk() for v in op.outputs]
        self._order = {v: k for k, v in enumerate([*program.block.params, *outputs])}
        places = [op.location for op in program.walk() if op.location is not None]
        self._two_passes = any(place.reverse for place in places)
        self._group = FORWARD if self._two_passes else ""

    def program(self, cluster: Cluster) -> None:
        """Draw all of it."""
        inputs: list[Node | Cluster] = []
        for p in self.block.params:
            node = Node(f"{self.writer.names.name(p)}: {p.type}", "input")
            self.sources[p] = {node: None}
            inputs.append(node)
        self.of_block(self.block, cluster)
        text = ", ".join(self.writer.text(r) for r in self.block.results)
        results = self.of(self.block.results)
        self._node(f"return {text}", "return", results, cluster).group = ""
        runs = groupby(cluster.items, lambda item: item.group)
        passes = [(group, list(items)) for group, items in runs]
        cluster.items = inputs
        for group, items in passes:
            if group:
                cluster.items.append(Cluster(f"{group} pass", "pass", group, items))
            else:
                cluster.items += items

    # -- where values come from

    def of(self, operand: Operand) -> _Sources:
        """The sources of the values in an operand; of memory that was written, who wrote it."""
        found: _Sources = {}
        for v in values_in(operand):
            roots = self._ordered(self.roots.get(v, ()) if is_array(v) else ())
            own = self.sources.get(v, {})
            latest = [self.written[r] for r in roots if r in self.written]
            if latest and v not in self.written:  # a view, which may have a line of its own
                views = [s for s in own if isinstance(s, Node) and _makes(s, v)]
                self.builder.views.update(dict.fromkeys(views))
                found.update(dict.fromkeys(views))
            for sources in latest or [own]:
                found.update(sources)
        return found

    def _ordered(self, values: Iterable[Value]) -> list[Value]:
        return sorted(values, key=lambda v: self._order.get(v, -1))

    # -- nodes

    def _node(
        self, label: str, kind: str, sources: _Sources, cluster: Cluster, op: Op | None = None
    ) -> Node:
        node = Node(label, kind, self._group, op)
        cluster.items.append(node)
        self.builder.uses.append((sources, node, None))
        return node

    def of_block(self, block: Block, cluster: Cluster) -> None:
        """Draw every operation of a block."""
        for k, op in enumerate(block.ops):
            if self._two_passes and op.location is not None:
                self._group = REVERSE if op.location.reverse else FORWARD
            if isinstance(op, Branch):
                self._flush(cluster, op)
                self._branch(op, cluster)
            elif isinstance(op, Loop):
                self._flush(cluster, op)
                self._loop(op, cluster)
            elif not self._stacked(op):
                self._plain(op, block, k, cluster)

    def _flush(self, cluster: Cluster, upto: Op | None = None) -> None:
        """Draw the expressions that the writer puts on lines of their own now."""
        self._written_out(lambda: self.writer.flush(upto), cluster)

    def _written_out(self, write: Any, cluster: Cluster) -> list[str]:
        """Let the writer write; draw what it puts on lines of its own, return the other lines."""
        inlined, code = self.writer.inlined, self.writer.code
        waiting, start = [v for v in inlined.pending if v in inlined.held], len(code.lines)
        write()
        lines = [line.strip() for line in code.lines[start:]]
        out = [v for v in waiting if v not in inlined.held]
        for v, line in zip(out, lines, strict=False):
            self.sources[v] = {self._node(line, "step", self.sources[v], cluster): None}
        return lines[len(out) :]

    def _plain(self, op: Op, block: Block, k: int, cluster: Cluster) -> None:
        read = op.operands_read() if isinstance(op, Apply) else op.operands()
        sources = self.of([*read, *op.writes()])
        lines = self._written_out(lambda: self.writer.operation(op, block, k), cluster)
        if not lines:  # written where it is used, or not at all
            self.sources.update((v, sources) for v in op.outputs)
            return
        kind = "check" if isinstance(op, Check) else "call" if isinstance(op, Call) else "step"
        memory = self._ordered(writes(op, self.roots))
        kind = "store" if memory and kind == "step" else kind
        node = self._node("\n".join(lines), kind, sources, cluster, op)
        self.sources.update((v, {node: None}) for v in op.outputs)
        for v in op.outputs:
            self.written.pop(v, None)  # new memory, in each iteration
        self.written.update((root, {node: None}) for root in memory)
        if isinstance(op, Call):
            self.calls.append((node, op.program))

    def _stacked(self, op: Op) -> bool:
        """Note what a stack holds; such operations are not drawn."""
        if not isinstance(op, Apply) or op.function not in (new_stack, push, pop, top, thin, turn):
            return False
        if op.function is new_stack:
            self.sources[op.outputs[0]] = {_Stack(): None}
            return True
        stacks = [s for s in self.of(op.args[:1]) if isinstance(s, _Stack)]
        if op.function is push:
            for v in values_in(op.args[1]):
                self.writer.inlined.settle(v)
            for stack in stacks:
                stack.pushed.update(self.of(op.args[1]))
                stack.value = op.args[1]
        for v in op.outputs:
            self.sources[v] = dict.fromkeys(stacks)
            pushed = next((s.value for s in stacks if isinstance(s.value, Value)), None)
            if pushed in self.writer.names.of and v not in self.writer.usage.groups:
                self.writer.names.give(v, self.writer.names.of[pushed])
        return True

    def _assigned(
        self, values: list[Value], operands: list[Operand], cluster: Cluster
    ) -> list[_Sources]:
        """Draw the lines that give values the names of others; return what the values come from."""
        found = [self.of(operand) for operand in operands]
        for places, line in self.writer.control.assignments(values, operands):
            sources = {source: None for k in places for source in found[k]}
            node = self._node(line, "step", sources, cluster)
            for k in places:
                found[k] = {node: None}
        return found

    def _framed(self, frame: Cluster, needed: _Sources, around: Cluster) -> None:
        """Put a frame, unless it is empty, and lead what it needs to its first node."""
        first = next(frame.nodes(), None)
        if first is None:
            return
        around.items.append(frame)
        self.builder.uses.append((needed, first, frame))

    # -- branches and loops

    def _branch(self, op: Branch, cluster: Cluster) -> None:
        text, needed, group = self.writer.text(op.condition), self.of(op.condition), self._group
        frame = Cluster(f"if {text}", "branch", group, op=op)
        used = [k for k, v in enumerate(op.outputs) if self.writer.usage.count[v]]
        outputs = [op.outputs[k] for k in used]
        before, ends = self.written, []
        results: dict[Value, _Sources] = {v: {} for v in outputs}
        sides = [Cluster("then", "side", group), Cluster("else", "side", group)]
        for side, block in zip(sides, (op.then, op.other), strict=True):
            self.written = dict(before)
            self.of_block(block, side)
            found = self._assigned(outputs, [block.results[k] for k in used], side)
            for v, sources in zip(outputs, found, strict=True):
                results[v] |= sources
            self._flush(side)
            ends.append(self.written)
        self.written = {root: _both(ends, root) for end in ends for root in end}
        filled = [side for side in sides if side.items]
        if filled == sides[1:]:
            frame.label = f"if not ({text})"
        frame.items = list(filled) if len(filled) == 2 else [i for s in filled for i in s.items]
        if not filled:  # a choice between values that have their names already
            choice = self._node(f"if {text}", "condition", needed, cluster, op)
            for v, sources in results.items():
                self.builder.uses.append((sources, choice, None))
                results[v] = {choice: None}
        self._framed(frame, needed, cluster)
        self.sources.update(results)

    def _loop(self, op: Loop, cluster: Cluster) -> None:
        names, group = self.writer.names, self._group
        carried = list(map(_Carried, self._assigned(op.carried, op.initial, cluster)))
        for p, v, c in zip(op.carried, op.outputs, carried, strict=True):
            names.alias(v, p)
            self.sources[p] = {c: None}
        stacks = {v for v, s in self.sources.items() if any(isinstance(x, _Stack) for x in s)}
        changed = {}
        for root in self._ordered(writes(op, self.roots) - stacks):
            known = self.written.get(root) or self.sources.get(root, {})
            changed[root] = _Carried(known)
            self.written[root] = {changed[root]: None}
        frame = Cluster("while", "loop", group, op=op)
        needed: _Sources = {}
        if op.span is not None:
            counter = op.body.params[0]
            self.writer.control.name_counter(counter)
            needed, title = self.of(op.span), range_text(op.span, self.writer.text)
            frame.label = f"for {names.name(counter)} in {title}"
        if op.test is not None:
            self.of_block(op.test, frame)
            text, condition = self.writer.text(op.test.results[0]), self.of(op.test.results[0])
            frame.label = f"while {text}"
            needed = condition
        self.of_block(op.body, frame)
        results = op.body.results[: len(carried)]
        for c, sources in zip(carried, self._assigned(op.carried, results, frame), strict=True):
            c.again.update(sources)
        if op.leaves:
            last = op.body.results[-1]
            self._node(f"if {self.writer.text(last)}: break", "condition", self.of(last), frame)
        self._flush(frame)
        for root, c in changed.items():
            c.again.update(self.written.get(root, {}))
            self.written[root] = dict(c.again)
        self._framed(frame, needed, cluster)
        for v, c in zip(op.outputs, carried, strict=True):
            self.sources[v] = c.again or c.first
        self._group = group


def _makes(node: Node, value: Value) -> bool:
    return node.op is not None and value in node.op.outputs


def _both(ends: list[dict[Value, _Sources]], root: Value) -> _Sources:
    """Who may have written some memory last, where two ways meet."""
    return {source: None for end in ends for source in end.get(root, {})}


def graph_of(program: Program) -> Graph:
    """The graph of a program and of those that it calls."""
    builder = _Builder()
    builder.add(program, f"tape {program.name}")
    return builder.graph()
