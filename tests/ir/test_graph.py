"""The picture of a tape: its lines are the nodes, values are the edges, blocks are frames."""

import base64
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest

import fwdad
from fwdad.ir.drawing.graph import Cluster, Node, graph_of
from fwdad.ir.ops import Call, walk
from fwdad.ir.printer import show_program
from fwdad.transforms.passes import optimise
from tests.ir.programs import CASES
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
    nodes.pop("node"), nodes.pop("edge")  # what all of them have in common
    for a, b, _ in edges:
        assert a in nodes
        assert b in nodes
    return nodes, edges, frames


@pytest.mark.parametrize("text", ["digraph g {", "digraph g { a -> ; }", 'digraph g { a [x="]; }'])
def test_the_parser_refuses(text):
    with pytest.raises((AssertionError, IndexError)):
        parse_dot(text)


def label_of(node):
    """The text of a node that was read back: its lines joined, without the dots of what is cut."""
    return " ".join(node["label"].strip('"').replace("\\l", " ").split())


CONTROL = re.compile(r"(for|if|elif|else|while|break|pass|tape)\b")


def lines_of(program):
    """The lines of the printed program, without those of control flow."""
    lines = [line.strip() for line in show_program(program).splitlines()]
    return Counter(line for line in lines if not CONTROL.match(line))


def find_items(cluster):
    """Every node and frame inside a frame."""
    for item in cluster.items:
        yield item
        if isinstance(item, Cluster):
            yield from find_items(item)


def reachable(program):
    """A program and those that it calls, each once."""
    found = [program]
    for each in found:
        called = [op.program for op in walk(each.block) if isinstance(op, Call)]
        found += [p for p in dict.fromkeys(called) if p not in found]
    return found


@pytest.mark.parametrize("optimised", [False, True], ids=["traced", "optimised"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_lines_of_the_printed_program_are_the_nodes(case, optimised):
    tape = tape_of(case)
    if optimised:
        optimise(tape.program)
    graph = graph_of(tape.program)
    programs = reachable(tape.program)
    assert len(graph.clusters) == len(programs)
    for cluster, program in zip(graph.clusters, programs, strict=True):
        drawn = Counter()
        for node in cluster.nodes():
            if node.kind not in ("input", "condition"):
                drawn.update(line for line in node.label.split("\n") if not CONTROL.match(line))
        assert drawn == lines_of(program)

    nodes, edges, frames = parse_dot(tape.draw())
    items = [item for c in graph.clusters for item in find_items(c)]
    assert len(nodes) == sum(isinstance(item, Node) for item in items)
    assert len(frames) == 1 + len(graph.clusters) + sum(isinstance(i, Cluster) for i in items)
    assert len(edges) == len(graph.edges)


def test_every_use_is_reached():
    """From the line that makes a value, arrows lead to the line that uses it."""
    uses = 0
    for case in CASES:
        tape = tape_of(case)
        graph = graph_of(tape.program)
        found = [node for c in graph.clusters for node in c.nodes()]
        node_of = {node.op: node for node in found if node.op is not None}
        following = {}
        for e in graph.edges:
            following.setdefault(e.source, set()).add(e.target)
        maker = {v: op for op in tape.program.walk() if op in node_of for v in op.outputs}
        for user in (op for op in tape.program.walk() if op in node_of and not op.nests):
            for v in flat(user.operands_read() if hasattr(user, "args") and
                          hasattr(user, "kwargs") else user.operands()):  # fmt: skip
                if v in maker:
                    start, end = node_of[maker[v]], node_of[user]
                    assert end in closure(start, following), (case, start.label, end.label)
                    uses += 1
    assert uses > len(CASES) / 2


def closure(start, following):
    """All that arrows lead to."""
    found, waiting = set(), [start]
    while waiting:
        for node in following.get(waiting.pop(), set()) - found:
            found.add(node)
            waiting.append(node)
    return found


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
    nodes, _, frames = parse_dot(traced(bounce, 30.0, 2).draw())
    label = {key: frame.get("label", "").strip('"') for key, frame in frames.items()}

    def path(key):
        return [*path(frames[key]["around"]), label[key]] if key is not None else []

    (innermost,) = (key for key, text in label.items() if text.startswith("for k"))
    assert path(innermost) == [
        "tape bounce", "while x > 1.0", "if x > 10.0", "else", "for k in range(n)",
    ]  # fmt: skip
    (halved,) = (node for node in nodes.values() if "x / 2" in node["label"])
    assert path(halved["around"]) == ["tape bounce", "while x > 1.0", "if x > 10.0", "then"]
    assert any("AssertionError" in node["label"] for node in nodes.values())


def edges_of(program):
    """The edges of a program's graph, by the labels of their ends."""
    return {(e.source.label, e.target.label): e.kind for e in graph_of(program).edges}


def test_a_carried_value_flows_into_the_next_iteration():
    def halved(x, n):
        for _ in range(n):
            x = x / 2
        return x

    kinds = edges_of(traced(halved, 3.0, 2).program)
    assert kinds == {
        ("x: float", "x = x / 2"): "value",
        ("x = x / 2", "x = x / 2"): "carried",
        ("x = x / 2", "return x"): "value",
        ("n: int", "x = x / 2"): "value",  # it ends at the loop
    }


def test_a_called_program_has_a_frame_of_its_own():
    tape = traced(factorial, 3.0)
    _, edges, frames = parse_dot(tape.draw())
    outer = [f["label"] for key, f in frames.items() if key is not None and f["around"] is None]
    assert outer == ['"tape factorial"', '"program factorial"']
    assert sum("arrowhead" in style for _, _, style in edges) == 2  # from the tape, and from itself


def test_what_is_written_flows_on_from_the_line_that_writes_it():
    program = traced(smooth, np.arange(4.0)).program
    kinds = edges_of(program)
    assert kinds["flux = np.zeros(3)", "flux[:] = u[1:] - u[:-1]"] == "value"
    assert kinds["flux[:] = u[1:] - u[:-1]", "u[:-1] += flux"] == "value"
    assert kinds["u[:-1] += flux", "return np.exp(u)"] == "value"
    assert ("u: float64[?]", "return np.exp(u)") not in kinds  # that is not what it holds then
    stores = {n.label for n in graph_of(program).clusters[0].nodes() if n.kind == "store"}
    assert stores == {"flux[:] = u[1:] - u[:-1]", "u[:-1] += flux"}


def test_after_a_branch_either_side_may_have_written():
    def either(x, a):
        if x > 0:
            a[0] = x
        else:
            a[1] = x
        return a * 2.0

    kinds = edges_of(traced(either, 1.0, np.ones(2)).program)
    assert {a for a, b in kinds if b == "return a * 2.0"} == {"a[0] = x", "a[1] = x"}


def test_what_a_loop_wrote_is_read_an_iteration_later():
    def running(a, n):
        for k in range(n):
            t = a[k] * 2.0
            a[k + 1] = np.sin(t) + t
        return a

    kinds = edges_of(traced(running, np.ones(9), 5).program)
    assert kinds["a[k + 1] = np.sin(t) + t", "t = a[k] * 2.0"] == "carried"


def products(x, n):
    y = x.copy()
    for _ in range(n):
        y = y * np.sin(y)
    return np.sum(y)


def test_the_reverse_pass_is_told_from_the_forward_pass():
    tape = fwdad.trace(fwdad.value_and_grad(products), np.ones(3), 2)
    graph = graph_of(tape.program)
    (whole,) = graph.clusters
    passes = {c.group: c for c in whole.items if isinstance(c, Cluster)}
    assert [c.label for c in passes.values()] == ["forward pass", "reverse pass"]
    assert all(c.kind == "pass" for c in passes.values())
    there = {n.label for n in passes["forward"].nodes()}
    back = {n.label for n in passes["reverse"].nodes()}
    assert any(label.startswith("y = ") for label in there)
    assert not any("bar" in label for label in there)
    assert any(label.startswith("y_bar = ") for label in back)
    # stacks are not drawn: what is kept flows from the line that makes it
    assert not any(re.search(r"\b(push|pop|new_stack)\(", label) for label in there | back)
    kept = [e for e in graph.edges if e.kind == "kept"]
    assert kept
    assert all(e.source.group != "reverse" == e.target.group for e in kept)
    assert any(e.source.group == "forward" for e in kept)
    # a program without a derivative has no passes
    (plain,) = graph_of(fwdad.trace(products, np.ones(3), 2).program).clusters
    assert {n.group for n in plain.nodes()} == {""}


def test_quotes_and_long_lines_are_written_so_that_they_can_be_read():
    def quoted(x):
        if x < 0:
            raise ValueError('say "no" \\ never')
        return np.where(x > 1.123456789, x * 2.123456789, np.maximum(x, 3.987654321))

    nodes, _, _ = parse_dot(traced(quoted, 1.0).draw())
    lines = [line for n in nodes.values() for line in n["label"].strip('"').split("\\l")]
    assert all(len(line) <= 44 for line in lines)
    assert any("3.987654321" in label_of(n) for n in nodes.values())


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
        "from tests.ir.test_graph import bounce, products, smooth; import numpy as np, fwdad\n"
        "print(fwdad.trace(bounce, 30.0, 2).draw(), fwdad.trace(smooth, np.arange(4.0)).draw())\n"
        "print(fwdad.trace(fwdad.grad(products), np.ones(3), 2).draw())\n"
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


# -- pictures


def test_without_graphviz_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    picture = traced(bounce, 30.0, 2).draw()
    shown = picture._repr_mimebundle_()
    assert shown.keys() == {"text/html", "text/plain"}
    assert "graphviz" in shown["text/html"]
    assert "graphviz" in shown["text/plain"]
    with pytest.raises(ImportError, match="graphviz"):
        picture.save(tmp_path / "tape.svg")
    picture.save(tmp_path / "tape.dot")
    assert (tmp_path / "tape.dot").read_text() == picture
    with pytest.raises(ValueError, match=r"svg, png, pdf, dot; got 'tape\.jpg'"):
        picture.save(tmp_path / "tape.jpg")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_every_line(tmp_path):
    tape = fwdad.trace(fwdad.grad(products), np.ones(3), 2)
    picture = tape.draw()
    shown = picture._repr_mimebundle_()
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    svg = shown["image/svg+xml"]
    drawn = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    texts = {" ".join(t.text.split()) for t in drawn}
    nodes, _, _ = parse_dot(picture)
    labels = [n["label"].strip('"').split("\\l") for n in nodes.values()]
    assert {"forward pass", "reverse pass"} <= texts
    assert {" ".join(line.split()) for label in labels for line in label if line} <= texts
    assert os.fspath(tmp_path) not in svg
    assert "Generated by" not in svg  # the version of Graphviz
    for kind, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        picture.save(tmp_path / f"tape.{kind}")
        assert (tmp_path / f"tape.{kind}").read_bytes().startswith(magic)
