"""The picture of a tape: every operation is in it, in the frame where the program has it."""

import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from fwdad.ir.drawing.graph import Cluster, Node, graph_of
from fwdad.ir.ops import Call, Store, Update, walk
from fwdad.transforms.passes import optimise
from tests.ir.programs import CASES, named
from tests.ir.running import traced


def tape_of(case):
    return traced(case.f, *case.runs[0])


def bounce(x, n):
    """Everything that has a frame: a while loop, a branch in it, a for loop in that."""
    assert n > 0, 'not "positive"'
    while x > 1.0:
        if x > 10.0:
            x = x / 2
        else:
            for k in range(n):
                x = x - k * 0.1
    return x


def factorial(x):
    return 1.0 if x < 1 else x * factorial(x - 1)


def smooth(u):
    flux = np.zeros(3)
    flux[:] = u[1:] - u[:-1]
    u[:-1] += flux
    return np.exp(u)


def find_items(cluster):
    """Every node and frame inside a frame, with the operations around it."""
    for item in cluster.items:
        yield (), item
        if isinstance(item, Cluster):
            held = () if item.op is None else (item.op,)
            yield from ((held + around, inner) for around, inner in find_items(item))


def find_ops(block):
    """Every operation of a block, with those around it."""
    for op in block.ops:
        yield (), op
        for inner in op.blocks():
            yield from (((op, *around), each) for around, each in find_ops(inner))


# -- Graphviz's language, read back


def tokens_of(text):
    return re.findall(r'"(?:[^"\\]|\\.)*"|->|[\w.]+|\S', text)


def parse_dot(text):
    """A parser of the part of the language that is used: returns nodes, edges and frames."""
    tokens = tokens_of(text)
    nodes, edges, frames = {}, [], {}

    def take(*expected):
        token = tokens.pop(0)
        assert not expected or token in expected, (token, expected)
        return token

    def name():
        token = take()
        assert re.fullmatch(r'\w+|"(?:[^"\\]|\\.)*"', token), token
        return token

    def value():
        token = take()
        assert re.fullmatch(r'[\w.]+|"(?:[^"\\]|\\.)*"', token), token
        return token

    def attributes():
        found = {}
        if tokens[0] == "[":
            take("[")
            while tokens[0] != "]":
                key = name()
                take("=")
                found[key] = value()
                if tokens[0] != "]":
                    take(",")
            take("]")
        return found

    def body(around):
        take("{")
        while tokens[0] != "}":
            if tokens[0] == "subgraph":
                take("subgraph")
                inner = name()
                assert inner not in frames, "a frame has two places"
                frames[inner] = {"around": around}
                body(inner)
                continue
            first = name()
            if tokens[0] == "=":
                take("=")
                frames[around][first] = value()
            elif tokens[0] == "->":
                take("->")
                edges.append((first, name(), attributes()))
            else:
                assert first not in nodes, "a node has two places"
                nodes[first] = {"around": around, **attributes()}
            take(";")
        take("}")

    take("digraph")
    frames[None] = {"name": name()}
    body(None)
    assert tokens == []
    nodes.pop("node")  # what all nodes have in common
    for a, b, _ in edges:
        assert a in nodes
        assert b in nodes
    return nodes, edges, frames


@pytest.mark.parametrize("text", ["digraph g {", "digraph g { a -> ; }", 'digraph g { a [x="]; }'])
def test_the_parser_refuses(text):
    with pytest.raises((AssertionError, IndexError)):
        parse_dot(text)


@pytest.mark.parametrize("optimised", [False, True], ids=["traced", "optimised"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operation_is_drawn_once_in_its_frame(case, optimised):
    tape = tape_of(case)
    if optimised:
        optimise(tape.program)
    graph = graph_of(tape.program)
    drawn = Counter(
        (around, item.op)
        for cluster in graph.clusters
        for around, item in find_items(cluster)
        if item.op is not None
    )
    programs = reachable(tape.program)
    expected = Counter(each for p in programs for each in find_ops(p.block))
    assert drawn == expected
    assert len(graph.clusters) == len(programs)

    nodes, edges, frames = parse_dot(tape.draw())
    items = [item for c in graph.clusters for _, item in find_items(c)]
    assert len(nodes) == sum(isinstance(item, Node) for item in items)
    assert len(frames) == 1 + len(graph.clusters) + sum(isinstance(i, Cluster) for i in items)
    assert len(edges) == len(graph.edges)


def reachable(program):
    """A program and those that it calls, each once."""
    found = [program]
    for each in found:
        called = [op.program for op in walk(each.block) if isinstance(op, Call)]
        found += [p for p in dict.fromkeys(called) if p not in found]
    return found


def test_every_use_is_an_edge():
    """What an operation uses, it is reached from."""
    uses = 0
    for case in CASES:
        tape = tape_of(case)
        graph = graph_of(tape.program)
        found = [item for c in graph.clusters for _, item in find_items(c)]
        node_of = {node.op: node for node in found if isinstance(node, Node)}
        edges = {(e.source, e.target) for e in graph.edges}
        plain = [op for op in tape.program.walk() if op in node_of]
        maker = {v: op for op in plain for v in op.outputs}
        for user in plain:
            for v in flat(user.operands()):
                if v in maker:
                    assert (node_of[maker[v]], node_of[user]) in edges, (case, user)
                    uses += 1
    assert uses > len(CASES)


def flat(operand):
    """The values in nested operands, found without the tape's own help."""
    if isinstance(operand, (tuple, list)):
        return [v for item in operand for v in flat(item)]
    if isinstance(operand, dict):
        return flat(list(operand.values()))
    if isinstance(operand, slice):
        return flat([operand.start, operand.stop, operand.step])
    return [operand] if type(operand).__name__ == "Value" else []


def test_frames_nest_as_the_source_does():
    nodes, edges, frames = parse_dot(traced(bounce, 30.0, 2).draw())
    label = {key: frame.get("label", "").strip('"') for key, frame in frames.items()}

    def path(key):
        return [*path(frames[key]["around"]), label[key]] if key is not None else []

    (innermost,) = (key for key, text in label.items() if text.startswith("for k"))
    assert path(innermost) == [
        "tape bounce", "while", "if x > 10.0", "else", "for k in range(n)",
    ]  # fmt: skip
    (halved,) = (node for node in nodes.values() if "x / 2" in node["label"])
    assert path(halved["around"]) == ["tape bounce", "while", "if x > 10.0", "then"]
    assert any("AssertionError" in node["label"] for node in nodes.values())
    back = [(nodes[a], nodes[b]) for a, b, style in edges if "constraint" in style]
    assert any(a["label"] == '"x = x - ·"' and b["label"] == '"x"' for a, b in back)


def test_a_called_program_has_a_frame_of_its_own():
    tape = traced(factorial, 3.0)
    _, edges, frames = parse_dot(tape.draw())
    outer = [f["label"] for key, f in frames.items() if key is not None and f["around"] is None]
    assert outer == ['"tape factorial"', '"program factorial"']
    called = [style for _, _, style in edges if style == {"style": "dotted"}]
    assert len(called) == 2  # from the tape, and from the program itself


def test_stores_and_what_they_write_are_marked():
    tape = traced(smooth, np.arange(4.0))
    graph = graph_of(tape.program)
    kinds = {(e.source.label, e.target.label): e.kind for e in graph.edges}
    assert kinds["flux = np.zeros(3)", "flux[:] = ·"] == "write"
    assert kinds["u: float64[?]", "u[:-1] += flux"] == "write"
    assert kinds["· - ·", "flux[:] = ·"] == "value"
    # who reads an array comes after who wrote it last
    assert kinds["flux[:] = ·", "u[:-1] += flux"] == "memory"
    assert kinds["u[:-1] += flux", "np.exp(u)"] == "memory"
    assert ("flux[:] = ·", "np.exp(u)") not in kinds
    stores = {item.op for _, item in find_items(graph.clusters[0]) if item.kind == "store"}
    assert stores == {op for op in tape.program.walk() if isinstance(op, (Store, Update))}


def test_after_a_branch_either_side_may_have_written():
    def either(x, a):
        if x > 0:
            a[0] = x
        else:
            a[1] = x
        return a * 2.0

    graph = graph_of(traced(either, 1.0, np.ones(2)).program)
    memory = {e.source.label for e in graph.edges if e.kind == "memory"}
    assert memory == {"a[0] = x", "a[1] = x"}


def test_quotes_and_long_lines_are_written_so_that_they_can_be_read():
    def quoted(x):
        if x < 0:
            raise ValueError('say "no" \\ never')
        return np.where(x > 1.123456789, x * 2.123456789, np.maximum(x, 3.987654321))

    nodes, _, _ = parse_dot(traced(quoted, 1.0).draw())
    assert all(len(node["label"]) <= 42 for node in nodes.values())


def test_drawing_twice_gives_the_same():
    def again():
        return traced(bounce, 30.0, 2).draw()

    assert again() == again()
    tape = traced(smooth, np.arange(4.0))
    before = str(tape)
    assert tape.draw() == tape.draw()
    assert str(tape) == before


def test_the_text_does_not_depend_on_the_hash_seed():
    code = (
        "from tests.ir.test_graph import bounce, smooth; import numpy as np, fwdad\n"
        "print(fwdad.trace(bounce, 30.0, 2).draw(), fwdad.trace(smooth, np.arange(4.0)).draw())"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_formats():
    tape = traced(bounce, 30.0, 2)
    assert tape.draw() == tape.draw("dot")
    with pytest.raises(ValueError, match="matplotlib"):
        tape.draw("png")


# -- matplotlib


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="pip install '.[plot]'")
    matplotlib.use("agg")
    plt = pytest.importorskip("matplotlib.pyplot")

    yield plt
    plt.close("all")


def test_the_picture_has_every_node_frame_and_edge(pyplot):
    tape = traced(bounce, 30.0, 2)
    graph = graph_of(tape.program)
    ax = tape.draw("matplotlib")
    ax.figure.canvas.draw()
    items = [*graph.clusters, *(item for c in graph.clusters for _, item in find_items(c))]
    assert Counter(text.get_text() for text in ax.texts) == Counter(i.label for i in items)
    drawn = Counter(patch.get_gid() for patch in ax.patches)
    assert drawn == Counter(i.kind for i in items) + Counter(e.kind for e in graph.edges)


def extent(patch):
    box = patch.get_bbox()
    return box.x0, box.x1, *sorted((box.y0, box.y1))


@pytest.mark.parametrize("name", ["recurrence", "search_with_else", "nested", "absolute"])
def test_nothing_overlaps_and_everything_is_in_its_frame(pyplot, name):
    tape = tape_of(named(name))
    ax = tape.draw("matplotlib")
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    leaves = [extent(p) for p in ax.patches if hasattr(p, "get_boxstyle")]
    kinds = [p.get_gid() for p in ax.patches if hasattr(p, "get_boxstyle")]
    framed = {"program", "loop", "branch", "side"}
    nodes = [e for e, kind in zip(leaves, kinds, strict=True) if kind not in framed]
    for k, a in enumerate(nodes):
        for b in nodes[:k]:
            apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
            assert apart, (a, b)
    frames = [e for e, kind in zip(leaves, kinds, strict=True) if kind in framed]
    assert len(nodes) > 5
    assert all(contains((left, right, top, bottom), each) for each in leaves)
    for frame in frames:  # a node is inside a frame or outside, never across its border
        for node in nodes:
            inside = contains(frame, node)
            apart = (
                node[1] <= frame[0] or frame[1] <= node[0]
                or node[3] <= frame[2] or frame[3] <= node[2]
            )  # fmt: skip
            assert inside or apart


def contains(outer, inner):
    return (
        outer[0] <= inner[0] and inner[1] <= outer[1]
        and outer[2] <= inner[2] and inner[3] <= outer[3]
    )  # fmt: skip


def test_the_picture_fits_the_axes_that_are_given(pyplot):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(6, 3))
    tape = traced(bounce, 30.0, 2)
    assert tape.draw(ax=left) is left
    assert len(left.patches) > 20
    assert not right.patches
    figure.canvas.draw()
    page = left.get_window_extent()
    for text in left.texts:
        box = text.get_window_extent()
        assert page.x0 - 1 <= box.x0
        assert box.x1 <= page.x1 + 1


def test_matplotlib_is_imported_by_pictures_only():
    code = (
        "import sys, fwdad\n"
        "from tests.ir.test_graph import bounce\n"
        "tape = fwdad.trace(bounce, 30.0, 2)\n"
        "tape.draw()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "try:\n"
        "    tape.draw('matplotlib')\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fwdad[plot]" in done.stdout
