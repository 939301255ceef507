"""A program as a graph: data flow between operations, and the nesting of blocks.

Loops, branches and called programs are frames around their operations. The Graphviz source is
generated here; :mod:`fwdad.ir.drawing.picture` draws the same graph with matplotlib.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fwdad.ir.analysis.alias import Roots, memory_of
from fwdad.ir.analysis.effects import reads, writes
from fwdad.ir.expressions import Expressions, range_text
from fwdad.ir.inlining import Inlined, Usage
from fwdad.ir.lines import Lines
from fwdad.ir.literals import Globals, Literals
from fwdad.ir.names import Names
from fwdad.ir.notation import INFIX
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    values_in,
)

_LONGEST = 40  # characters of a label


@dataclass(eq=False)
class Node:
    """A node of the graph, with its text, its kind and the operation that it shows.

    ``kind`` is ``"input"``, ``"constant"``, ``"carried"``, ``"apply"``, ``"store"``, ``"check"``,
    ``"call"``, ``"condition"``, ``"merge"`` or ``"return"``.
    """

    label: str
    kind: str
    op: Op | None = None


@dataclass(eq=False)
class Cluster:
    """A frame around nodes and other frames, which are in program order.

    ``kind`` is ``"program"``, ``"loop"``, ``"branch"`` or ``"side"``.
    """

    label: str
    kind: str
    items: list[Node | Cluster] = field(default_factory=list)
    op: Op | None = None


@dataclass(frozen=True)
class Edge:
    """An edge from a source to a target.

    ``kind`` is ``"value"``, ``"write"`` from an array to its writer, ``"memory"`` from there to a
    later reader of the array, ``"carried"`` from one iteration to the next, or ``"call"``.
    """

    source: Node
    target: Node
    kind: str


@dataclass(eq=False)
class Graph:
    """Frames, the first of which is the program, and edges between the nodes inside them."""

    clusters: list[Cluster]
    edges: list[Edge]


class _Labels:
    """Operations as text, in which a value has the user's name or is a dot."""

    def __init__(self, program: Program) -> None:
        self.usage = Usage(program, coalesce=True)
        self.names = Names(self.usage.groups)
        literals = Literals(self.names, Globals())
        inlined = Inlined(Lines())  # none here
        self.expressions = Expressions(self.name, lambda _: "None", inlined, literals)
        self.made: dict[Value, str] = {}  # what values without a name are made of

    def name(self, value: Value) -> str:
        """The name in the printed tape, if it comes from the user."""
        group = self.names.groups.get(value, [value])
        return self.names.name(value) if any(v.name is not None for v in group) else "·"

    def text(self, operand: Operand) -> str:
        """An operand as source."""
        return self.expressions.text(operand)

    def op(self, op: Op) -> str:
        """An operation without the blocks inside it."""
        if isinstance(op, (Apply, Load)):
            return self._defined(op, self.expressions.operation(op)[0])
        if isinstance(op, Store):
            return f"{self.expressions.element(op)} = {self.text(op.value)}"
        if isinstance(op, Update):
            target = self.expressions.element(op)
            return f"{target} {INFIX[op.function][0]}= {self.text(op.value)}"
        if isinstance(op, Check):
            exception = op.exception if isinstance(op.exception, type) else type(op.exception)
            return f"{self.condition(op.condition)} or {exception.__name__}"
        if isinstance(op, Call):
            args = ", ".join(self.text(a) for a in op.args)
            return self._defined(op, f"{op.program.name}({args})")
        raise TypeError(type(op))

    def condition(self, operand: Operand) -> str:
        """A condition, written out if it has no name."""
        text = self.text(operand)
        expression = self.made.get(operand) if isinstance(operand, Value) and text == "·" else None
        return expression or _shortened(text)

    def _defined(self, op: Op, text: str) -> str:
        names = [self.name(v) for v in op.outputs]
        return text if set(names) <= {"·"} else f"{', '.join(names)} = {text}"


class _Builder:
    """Builds the graph of a program and of those that it calls."""

    def __init__(self) -> None:
        self.edges: dict[Edge, None] = {}
        self.clusters: list[Cluster] = []
        self._entries: dict[int, Node] = {}  # of programs that are called
        self._calls: list[tuple[Node, Program]] = []

    def add(self, program: Program, title: str) -> None:
        """Add a program, then the programs that it calls and that are not drawn yet."""
        params = program.block.params
        drawn = _Drawn(self, program)
        cluster = Cluster(title, "program")
        self.clusters.append(cluster)
        for p in params:
            drawn.define(p, cluster, Node(f"{drawn.labels.name(p)}: {p.type}", "input"))
        end = Node("return", "return")
        self._entries[id(program)] = drawn.nodes[params[0]] if params else end
        drawn.block(program.block, cluster)
        cluster.items.append(end)
        drawn.flow(program.block.results, end, cluster)
        for v in values_in(program.block.results):
            drawn.remember({*drawn.roots.get(v, ())}, end)
        calls, self._calls = self._calls, []
        for node, callee in calls:
            if id(callee) not in self._entries:
                self.add(callee, f"program {callee.name}")
            self.edges[Edge(node, self._entries[id(callee)], "call")] = None

    def call(self, node: Node, program: Program) -> None:
        """Note a call, whose callee gets a frame of its own."""
        self._calls.append((node, program))


class _Drawn:
    """One program while it is drawn; its edges go to ``builder``."""

    def __init__(self, builder: _Builder, program: Program) -> None:
        self.builder = builder
        self.labels = _Labels(program)
        self.roots: Roots = memory_of(program)
        self.nodes: dict[Value, Node] = {}
        self.writers: dict[Value, dict[Node, None]] = {}  # who wrote into some memory last

    def define(self, value: Value, cluster: Cluster, node: Node) -> None:
        """Add the node that a value comes from."""
        cluster.items.append(node)
        self.nodes[value] = node

    def flow(self, operand: Operand, target: Node, cluster: Cluster, kind: str = "value") -> None:
        """Add edges from the values of an operand; constants become nodes of their own."""
        if isinstance(operand, list):
            for item in operand:
                self.flow(item, target, cluster, kind)
            return
        if isinstance(operand, Missing):
            return
        values = list(values_in(operand))
        if not values:
            constant = Node(_shortened(self.labels.text(operand)), "constant")
            cluster.items.insert(_before(cluster, target), constant)
            self.edge(constant, target, kind)
        for v in values:
            self.edge(self.nodes[v], target, kind)

    def edge(self, source: Node, target: Node, kind: str) -> None:
        """Add an edge, unless it is there."""
        self.builder.edges[Edge(source, target, kind)] = None

    def remember(self, memory: set[Value], node: Node) -> None:
        """Add edges from the last writers of the memory that a node reads."""
        writers = {w: None for root in self.roots if root in memory for w in self.last(root)}
        for writer in writers:
            if writer is not node:
                self.edge(writer, node, "memory")

    def last(self, root: Value) -> dict[Node, None]:
        """The last writers of some memory: more than one after a branch."""
        return self.writers.get(root, {})

    # -- operations

    def block(self, block: Block, cluster: Cluster) -> None:
        """Add every operation of a block."""
        for op in block.ops:
            if isinstance(op, Branch):
                self._branch(op, cluster)
            elif isinstance(op, Loop):
                self._loop(op, cluster)
            else:
                self._plain(op, cluster)

    def _plain(self, op: Op, cluster: Cluster) -> None:
        node = Node(_shortened(self.labels.op(op)), _kind(op), op)
        cluster.items.append(node)
        written = op.writes()
        for v in values_in(op.operands()):
            self.edge(self.nodes[v], node, "write" if v in written else "value")
        memory = writes(op, self.roots)
        self.remember(reads(op, self.roots) | memory, node)
        for root in memory:
            self.writers[root] = {node: None}
        for v in op.outputs:
            self.nodes[v] = node
            self.labels.made[v] = node.label
        if isinstance(op, Call):
            self.builder.call(node, op.program)

    def _branch(self, op: Branch, cluster: Cluster) -> None:
        text = self.labels.condition(op.condition)
        frame = Cluster(f"if {text}", "branch", op=op)
        cluster.items.append(frame)
        condition = Node(f"{text} ?", "condition")
        frame.items.append(condition)
        for v in values_in(op.condition):
            self.edge(self.nodes[v], condition, "value")
        before, after = self.writers, []
        sides = [Cluster("then", "side"), Cluster("else", "side")]
        for side, block in zip(sides, (op.then, op.other), strict=True):
            self.writers = dict(before)
            if block.ops:
                frame.items.append(side)
            self.block(block, side)
            after.append(self.writers)
        self.writers = _united(*after)
        for v, *ways in zip(op.outputs, op.then.results, op.other.results, strict=True):
            self.define(v, frame, Node(self.labels.name(v), "merge"))
            for way in ways:
                self.flow(way, self.nodes[v], frame)

    def _loop(self, op: Loop, cluster: Cluster) -> None:
        carried = op.carried
        frame = Cluster(self._title(op), "loop", op=op)
        if op.span is not None:
            counter = Node(self.labels.name(op.body.params[0]), "carried")
            self.define(op.body.params[0], frame, counter)
            for v in values_in(op.span):
                self.edge(self.nodes[v], counter, "value")
        for p, first in zip(carried, op.initial, strict=True):
            self.define(p, frame, Node(self.labels.name(p), "carried"))
            self.flow(first, self.nodes[p], cluster)
        cluster.items.append(frame)
        before = self.writers
        if op.test is not None:
            side = Cluster("while", "side")
            frame.items.append(side)
            self.block(op.test, side)
            self._condition(op.test.results[0], "while", side)
        self.block(op.body, frame)
        results = op.body.results
        if op.leaves:
            self._condition(results[-1], "break if", frame)
        for p, r in zip(carried, results, strict=False):
            if r is not p:
                self.flow(r, self.nodes[p], frame, "carried")
        self.writers = _united(before, self.writers)
        self.nodes.update((v, self.nodes[p]) for v, p in zip(op.outputs, carried, strict=True))
        if op.exec_count in self.labels.usage.count:
            self.define(op.exec_count, frame, Node("exec_count", "carried"))

    def _condition(self, operand: Operand, word: str, cluster: Cluster) -> None:
        node = Node(f"{word} {self.labels.condition(operand)}", "condition")
        cluster.items.append(node)
        for v in values_in(operand):
            self.edge(self.nodes[v], node, "value")

    def _title(self, op: Loop) -> str:
        if op.span is None:
            return "while"
        counter = self.labels.name(op.body.params[0])
        return (
            f"for {'_' if counter == '·' else counter} in {range_text(op.span, self.labels.text)}"
        )


def _united(*states: dict[Value, dict[Node, None]]) -> dict[Value, dict[Node, None]]:
    """The possible last writers where several paths meet."""
    united: dict[Value, dict[Node, None]] = {}
    for state in states:
        for root, writers in state.items():
            united[root] = {**united.get(root, {}), **writers}
    return united


def _before(cluster: Cluster, target: Node) -> int:
    """The position of a constant: before its use if that is in the same frame, else at the end."""
    return next((k for k, item in enumerate(cluster.items) if item is target), len(cluster.items))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _kind(op: Op) -> str:
    kinds = {Check: "check", Call: "call"}
    return "store" if op.writes() and not isinstance(op, Call) else kinds.get(type(op), "apply")


def graph_of(program: Program) -> Graph:
    """The graph of a program and of those that it calls."""
    builder = _Builder()
    builder.add(program, f"tape {program.name}")
    return Graph(builder.clusters, list(builder.edges))


# -- Graphviz

_NODE_STYLES = {
    "input": 'shape=ellipse, style=filled, fillcolor="#dbe9f6"',
    "constant": "shape=plaintext",
    "carried": 'shape=ellipse, style=filled, fillcolor="#fdf2cc"',
    "apply": "shape=box",
    "store": 'shape=box, style="filled,bold", fillcolor="#f8d7d0", color="#b03a2e"',
    "check": "shape=octagon",
    "call": "shape=box, peripheries=2",
    "condition": "shape=diamond",
    "merge": 'shape=ellipse, style=filled, fillcolor="#fdf2cc"',
    "return": 'shape=ellipse, style=filled, fillcolor="#dbe9f6"',
}
_EDGE_STYLES = {
    "value": "",
    "write": ' [color="#b03a2e", style=bold]',
    "memory": ' [color="#b03a2e", style=dashed]',
    "carried": ' [color="#9a7d0a", style=bold, constraint=false]',
    "call": " [style=dotted]",
}
_CLUSTER_STYLES = {
    "program": "style=rounded; color=gray40",
    "loop": 'style="rounded,filled"; color="#9a7d0a"; fillcolor="#fffdf5"',
    "branch": 'style="rounded,filled"; color=gray40; fillcolor="#f7f7f7"',
    "side": 'style="rounded,filled"; color=gray70; fillcolor=white',
}


def dot_source(program: Program) -> str:
    """A program in Graphviz's language."""
    graph = graph_of(program)
    lines = [f"digraph {_quoted(program.name)} {{", "  node [fontname=monospace, fontsize=10];"]
    names: dict[Node, str] = {}
    counts = iter(range(10**9))

    def write(cluster: Cluster, indent: str) -> None:
        lines.append(f"{indent}subgraph cluster_{next(counts)} {{")
        style = _CLUSTER_STYLES[cluster.kind]
        lines.append(f"{indent}  label={_quoted(cluster.label)}; labeljust=l; {style};")
        for item in cluster.items:
            if isinstance(item, Cluster):
                write(item, f"{indent}  ")
            else:
                names[item] = f"n{len(names)}"
                text = f"label={_quoted(item.label)}, {_NODE_STYLES[item.kind]}"
                lines.append(f"{indent}  {names[item]} [{text}];")
        lines.append(f"{indent}}}")

    for cluster in graph.clusters:
        write(cluster, "  ")
    for edge in graph.edges:
        style = _EDGE_STYLES[edge.kind]
        lines.append(f"  {names[edge.source]} -> {names[edge.target]}{style};")
    lines.append("}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
