"""The graph of a program drawn with matplotlib, which is imported when a picture is requested.

Every frame is laid out separately, innermost first: its nodes and frames are in rows, uses below
definitions, and rows are shifted to shorten the edges (Sugiyama, Tagawa and Toda, 1981). An edge
that skips rows reserves a free place in each of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fwdad.ir.drawing.graph import Cluster, Edge, Graph, Node, graph_of
from fwdad.ir.ops import Program

# Lengths are in widths of a character.
_HEIGHT = 2.4  # of a node
_ROW_GAP = 2.2
_GAP = 2.0
_MARGIN = 1.5
_TITLE = 2.4
_POINTS_PER_UNIT = 0.6  # the width of a monospaced character in parts of its size
_FONT_SIZE = 9.0  # of a figure that is made here, and the largest in others

_COLORS = {
    "input": "#dbe9f6", "constant": "none", "carried": "#fdf2cc", "apply": "white",
    "store": "#f8d7d0", "check": "#e9e0f2", "call": "#e2f0d9", "condition": "#e9e0f2",
    "merge": "#fdf2cc", "return": "#dbe9f6",
    "program": "none", "loop": "#fffdf5", "branch": "#f7f7f7", "side": "white",
}  # fmt: skip
_BORDERS = {"constant": "none", "store": "#b03a2e", "loop": "#9a7d0a", "side": "0.7"}
_EDGES = {
    "value": ("0.3", "-"), "write": ("#b03a2e", "-"), "memory": ("#b03a2e", "--"),
    "carried": ("#9a7d0a", "-"), "call": ("0.3", ":"),
}  # fmt: skip


@dataclass(eq=False)
class Box:
    """A rectangle; an ``item`` of None reserves space for an edge.

    x is to the right and y downwards, relative to the frame first, and to the page at the end.
    """

    item: Any
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    inner: list[Box] = field(default_factory=list)

    @property
    def middle(self) -> tuple[float, float]:
        """The centre."""
        return self.x + self.width / 2, self.y + self.height / 2


class Layout:
    """Boxes for everything in a graph, and the points that edges pass through."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.boxes: dict[Node | Cluster, Box] = {}
        self.passed: dict[Edge, list[Box]] = {}
        self._parents: dict[Node | Cluster, Cluster | None] = {}
        self.width = self.height = 0.0
        for cluster in graph.clusters:
            self._parents[cluster] = None
            self._note(cluster)
        self._lifted = self._lift()
        for cluster in graph.clusters:  # side by side
            box = self._measure(cluster)
            _move(box, self.width + _MARGIN, _MARGIN)
            self.width += box.width + _MARGIN
            self.height = max(self.height, box.height + 2 * _MARGIN)
        self.width += _MARGIN

    def _note(self, cluster: Cluster) -> None:
        for item in cluster.items:
            self._parents[item] = cluster
            if isinstance(item, Cluster):
                self._note(item)

    def _path(self, item: Node | Cluster) -> list[Any]:
        """An item and the frames around it, outermost first."""
        path = []
        at: Any = item
        while at is not None:
            path.append(at)
            at = self._parents[at]
        return path[::-1]

    def _lift(self) -> dict[Cluster, list[tuple[Any, Any, Edge]]]:
        """For each frame, the edges that cross it, with the items in it that they connect."""
        lifted: dict[Cluster, list[tuple[Any, Any, Edge]]] = {}
        for edge in self.graph.edges:
            if edge.kind in ("carried", "call"):  # these may go upwards, or elsewhere
                continue
            pairs = zip(self._path(edge.source), self._path(edge.target), strict=False)
            frame = None
            for a, b in pairs:
                if a is not b:
                    lifted.setdefault(frame, []).append((a, b, edge))  # type: ignore[arg-type]
                    break
                frame = a
        return lifted

    def _measure(self, item: Node | Cluster) -> Box:
        """A box for an item, with everything inside it in place."""
        if isinstance(item, Node):
            box = Box(item, len(item.label) + 2.0, _HEIGHT)
        else:
            boxes = {inner: self._measure(inner) for inner in item.items}
            rows = self._rows(item, boxes)
            width, height = _arrange(rows, self._links)
            width = max(width, len(item.label) + 1.0)
            box = Box(item, width + 2 * _MARGIN, height + _TITLE + _MARGIN)
            box.inner = [each for row in rows for each in row]
            for each in box.inner:
                _move(each, _MARGIN, _TITLE)
        self.boxes[item] = box
        return box

    def _rows(self, cluster: Cluster, made: dict[Any, Box]) -> list[list[Box]]:
        place = {item: k for k, item in enumerate(cluster.items)}
        edges = [e for e in self._lifted.get(cluster, ()) if place[e[0]] < place[e[1]]]
        rank = dict.fromkeys(place, 0)
        for item in cluster.items:
            rank[item] = max((rank[a] + 1 for a, b, _ in edges if b is item), default=0)
        for item in cluster.items:
            if isinstance(item, Node) and item.kind == "constant":
                rank[item] = min((rank[b] - 1 for a, b, _ in edges if a is item), default=0)
            elif isinstance(item, Node) and item.kind == "return":
                rank[item] = max(rank.values())
        lowest = min(rank.values(), default=0)
        rows: list[list[Box]] = [[] for _ in range(max(rank.values(), default=0) - lowest + 1)]
        for item in cluster.items:
            rows[rank[item] - lowest].append(made[item])
        self._links: dict[Box, list[Box]] = {}
        for a, b, edge in edges:
            chain = [made[a]]
            for k in range(rank[a] + 1, rank[b]):
                chain.append(Box(None, 1.0, 0.0))
                rows[k - lowest].append(chain[-1])
            self.passed[edge] = chain[1:]
            chain.append(made[b])
            for upper, lower in itertools.pairwise(chain):
                self._links.setdefault(upper, []).append(lower)
                self._links.setdefault(lower, []).append(upper)
        return rows


def _arrange(rows: list[list[Box]], links: dict[Box, list[Box]]) -> tuple[float, float]:
    """Stack rows and order them; return width and height."""
    y = 0.0
    row_of = {}
    for k, row in enumerate(rows):
        x = 0.0
        height = max((box.height for box in row), default=0.0)
        for box in row:
            row_of[box] = k
            if box.item is None:  # an edge passes from the top of the row to its bottom
                box.height = height
            box.x, box.y = x, y + (height - box.height) / 2
            x += box.width + _GAP
        y += height + _ROW_GAP
    for sweep in range(8):
        down = sweep % 2 == 0
        for k in range(len(rows)) if down else reversed(range(len(rows))):
            near = {
                box: [o for o in links.get(box, ()) if (row_of[o] < k) == down] for box in rows[k]
            }
            _shift(rows[k], near)
    left = min((box.x for row in rows for box in row), default=0.0)
    for row in rows:
        for box in row:
            box.x -= left  # what is inside moves with its frame, later
    return max((box.x + box.width for row in rows for box in row), default=0.0), y - _ROW_GAP


def _shift(row: list[Box], neighbours: dict[Box, list[Box]]) -> None:
    """Sort a row by the positions of its neighbours, and move it as close to them as it fits."""
    wanted = {}
    for box in row:
        near = [other.middle[0] for other in neighbours[box]]
        wanted[box] = sum(near) / len(near) if near else box.middle[0]
    row.sort(key=wanted.__getitem__)
    end = float("-inf")
    for box in row:
        box.x = max(wanted[box] - box.width / 2, end)
        end = box.x + box.width + _GAP
    if row:
        by = sum(wanted[box] - box.middle[0] for box in row) / len(row)
        for box in row:
            box.x += by


def _move(box: Box, x: float, y: float) -> None:
    box.x += x
    box.y += y


def _on_page(box: Box, x: float = 0.0, y: float = 0.0) -> Iterator[Box]:
    """Every box inside a box, outer ones first, moved from frame to page coordinates."""
    _move(box, x, y)
    yield box
    for inner in box.inner:
        yield from _on_page(inner, box.x, box.y)


def draw_program(program: Program, ax: Any = None) -> Any:
    """A picture of a program, on ``ax`` or on a new figure that is as large as necessary.

    ``ImportError`` if matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415  (optional, and slow to import)
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'fwdad[plot]'") from error
    layout = Layout(graph_of(program))
    boxes = [
        box
        for cluster in layout.graph.clusters
        for box in _on_page(layout.boxes[cluster])
        if box.item is not None
    ]
    unit = _POINTS_PER_UNIT * _FONT_SIZE / 72  # inches
    if ax is None:
        size = (layout.width * unit, layout.height * unit)
        ax = plt.figure(figsize=size).add_axes((0, 0, 1, 1))
    space = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    unit = min(unit, space.width / layout.width, space.height / layout.height)
    ax.set(xlim=(0, layout.width), ylim=(layout.height, 0), aspect="equal")
    ax.set_axis_off()
    for depth, box in enumerate(boxes):
        _draw_box(ax, box, depth, unit * 72 / _POINTS_PER_UNIT)
    for edge in layout.graph.edges:
        _draw_edge(ax, edge, layout)
    return ax


def _draw_box(ax: Any, box: Box, depth: int, size: float) -> None:
    from matplotlib.patches import FancyBboxPatch  # noqa: PLC0415

    item = box.item
    round_corners = item.kind in ("input", "carried", "merge", "return", "condition")
    patch = FancyBboxPatch(
        (box.x, box.y),
        box.width,
        box.height,
        boxstyle=f"round,pad=0,rounding_size={_HEIGHT / 2 if round_corners else 0.3}",
        facecolor=_COLORS[item.kind],
        edgecolor=_BORDERS.get(item.kind, "0.4"),
        linewidth=1.5 if item.kind == "store" else 0.8,
        # nodes stand above edges, which stand above all frames
        zorder=1 + depth * 1e-4 if isinstance(item, Cluster) else 3,
        gid=item.kind,
    )
    ax.add_patch(patch)
    framed = isinstance(item, Cluster)
    x, y = (box.x + _MARGIN / 2, box.y + _TITLE / 2) if framed else box.middle
    ax.text(
        x,
        y,
        item.label.replace("$", r"\$"),
        fontsize=size,
        family="monospace",
        ha="left" if framed else "center",
        va="center",
        weight="bold" if framed else "normal",
        zorder=4,
    )


def _draw_edge(ax: Any, edge: Edge, layout: Layout) -> None:
    from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415
    from matplotlib.path import Path  # noqa: PLC0415

    color, style = _EDGES[edge.kind]
    start, end = layout.boxes[edge.source], layout.boxes[edge.target]
    if edge.kind == "carried":  # upwards, around the right of what is between
        beside = max(start.x + start.width, end.x + end.width) + 2 * _GAP
        a = (start.x + start.width, start.middle[1])
        b = (end.x + end.width, end.middle[1])
        path = Path([a, (beside, a[1]), (beside, b[1]), b], [1, 4, 4, 4])
    else:
        passed = layout.passed.get(edge, ())
        between = [(b.middle[0], y) for b in passed for y in (b.y, b.y + b.height)]
        points = [start.middle, *between, end.middle]
        points[0] = _border(start, points[1])
        points[-1] = _border(end, points[-2])
        path = Path(points)
    arrow = FancyArrowPatch(
        path=path,
        arrowstyle="-|>",
        mutation_scale=6,
        color=color,
        linestyle=style,
        linewidth=0.8,
        zorder=2,
        gid=edge.kind,
    )
    ax.add_patch(arrow)


def _border(box: Box, towards: tuple[float, float]) -> tuple[float, float]:
    """Where a line from the middle of a box leaves it."""
    x, y = box.middle
    dx, dy = towards[0] - x, towards[1] - y
    scale = max(2 * abs(dx) / box.width, 2 * abs(dy) / box.height)
    return (x + dx / scale, y + dy / scale) if scale > 1 else (x, y)
