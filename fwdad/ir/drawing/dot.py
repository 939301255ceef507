"""A graph in Graphviz's language.

Of two passes, the forward pass runs down the page, and beside it the reverse pass runs up: what is
kept leads across.
"""

from __future__ import annotations

import textwrap

from fwdad.ir.drawing.graph import Cluster, Edge, Graph, Node

_WIDEST = 26  # characters of a line of a label
_LINES = 6
FONT = "Menlo, Consolas, DejaVu Sans Mono, monospace"
# blue and orange are told apart by everybody
FILLS = {"forward": "#e3eff8", "reverse": "#fbe9d9", "": "#f3f3f3"}
LINES = {"forward": "#2f86c9", "reverse": "#d9731a", "": "#777777"}
_SHAPES = {
    "input": "shape=box, style=rounded",
    "step": 'shape=box, style="filled,rounded", penwidth=0',
    "store": 'shape=box, style="filled", penwidth=1.4',
    "check": 'shape=box, style="filled,dashed"',
    "call": 'shape=box, style="filled", peripheries=2',
    "condition": 'shape=box, style="filled,dashed"',
    "return": "shape=box, style=rounded",
}
_EDGES = {
    "value": ("", "a value"),
    "carried": ("style=dashed, constraint=false", "into the next iteration"),
    "kept": ("style=dotted, penwidth=1.6, constraint=false", "kept for the reverse pass"),
    "call": ("style=bold, arrowhead=open", "a call"),
}


def dot_source(name: str, graph: Graph) -> str:
    """The text of a graph."""
    groups = {node: node.group for cluster in graph.clusters for node in cluster.nodes()}
    kinds = [kind for kind in _EDGES if any(e.kind == kind for e in graph.edges)]
    legend = " · ".join(f"{_WORDS[kind]}: {_EDGES[kind][1]}" for kind in kinds if kind != "value")
    lines = [
        f"digraph {_quoted(name)} {{",
        "  compound=true; newrank=true; nodesep=0.18; ranksep=0.24; bgcolor=transparent;",
        f"  fontname={_quoted(FONT)}; fontsize=10; labelloc=b; label={_quoted(legend)};",
        f'  node [fontname={_quoted(FONT)}, fontsize=10, height=0.26, margin="0.09,0.045"];',
        '  edge [arrowsize=0.55, color="#777777"];',
    ]  # fmt: skip
    names: dict[Node, str] = {}
    frames: dict[Cluster, str] = {}

    def write(cluster: Cluster, indent: str) -> None:
        frames[cluster] = f"cluster_{len(frames)}"
        line = LINES[cluster.group]
        look = f'style={"rounded" if cluster.kind != "side" else "dotted"}; color="{line}"'
        lines.append(f"{indent}subgraph {frames[cluster]} {{")
        lines.append(
            f"{indent}  label={_quoted(_wrapped(cluster.label))}; labelloc=t; labeljust=l;"
        )
        lines.append(f"{indent}  {look}; class=frame;")
        for item in cluster.items:
            if isinstance(item, Cluster):
                write(item, f"{indent}  ")
            else:
                names[item] = f"n{len(names)}"
                lines.append(f"{indent}  {names[item]} [{_look(item)}];")
        lines.append(f"{indent}}}")

    for cluster in graph.clusters:
        write(cluster, "  ")
    lines += [f"  {_arrow(edge, names, frames, groups)};" for edge in graph.edges]
    inputs = [node for node in groups if node.kind == "input"]
    ends = [node for node in groups if node.kind == "return"]
    if "reverse" in groups.values() and inputs:  # both are on top, the forward pass to the left
        a, b = names[inputs[0]], names[ends[0]]
        first = next(k for k, line in enumerate(lines) if "subgraph" in line) + 1
        lines.insert(first, f"    subgraph tops {{ rank=same; {a} -> {b} [style=invis]; }}")
    lines.append("}")
    return "\n".join(lines)


_WORDS = {"carried": "dashed", "kept": "dotted", "call": "bold"}


def _look(node: Node) -> str:
    fill, line = FILLS[node.group], LINES[node.group]
    tooltip = f", tooltip={_quoted(node.label)}" if node.label != _wrapped(node.label) else ""
    return (
        f'label={_quoted(_wrapped(node.label))}, {_SHAPES[node.kind]}, fillcolor="{fill}", '
        f'color="{line}", class="{node.group or "plain"}"{tooltip}'
    )


def _arrow(
    edge: Edge, names: dict[Node, str], frames: dict[Cluster, str], groups: dict[Node, str]
) -> str:
    """An edge; what flows up the page is written downwards, with its head behind."""
    a, b = edge.source, edge.target
    style, _ = _EDGES[edge.kind]
    upwards = groups[a] == "reverse"
    across = groups[b] == "reverse" and not upwards
    given = [style] if style else []
    if across and "constraint" not in style:  # the two passes stand beside one another
        given.append("constraint=false")
    if edge.frame is not None:
        given.append(f"{'ltail' if upwards else 'lhead'}={frames[edge.frame]}")
    if upwards:
        a, b = b, a
        given.append("dir=back")
    color = LINES["reverse" if groups[edge.target] == "reverse" else groups[edge.source]]
    given.append(f'color="{color}"')
    return f"{names[a]} -> {names[b]} [{', '.join(given)}]"


def _wrapped(label: str) -> str:
    """A label in lines, cut off where it is very long."""
    lines = [
        part
        for line in label.split("\n")
        for part in textwrap.wrap(line, _WIDEST, subsequent_indent="  ", break_long_words=False)
    ]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], f"{lines[_LINES - 1]} …"]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    lines = escaped.split("\n")
    return '"' + (lines[0] if len(lines) == 1 else "".join(f"{line}\\l" for line in lines)) + '"'
