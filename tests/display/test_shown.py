"""What objects show, at a prompt and in a notebook: words, never the fields of a dataclass."""

import re
import subprocess
import sys

import numpy as np
import pytest

import fwdad
from fwdad.reversible import reversible
from tests.display.reading import read

X = np.linspace(0.1, 0.9, 6)


def loss(x, a, n):
    y = x.copy()
    s = 0.0
    for _ in range(n):
        r = a * y
        if s > 1.0:
            r = r / s
        y = y + np.sin(r)
        s = s + np.sum(y * y)
    return s


def unreadable(x):
    return np.array([float(str(t)) for t in x]) * 0.0 + x


@reversible
def shuffle(a, b):
    a, b = b, a
    a += np.sin(b)


def called(f, *args):
    f(*args)
    return f


def untraced(x):
    exec("pass")
    return x * 2


def made():
    """Each kind of object, with words that it must show."""
    jitted = called(fwdad.jit(fwdad.grad(loss), backend="numpy"), X, 0.3, 4)
    read_outside = np.ones(6)

    def outside(x):
        return x * read_outside

    return {
        "tape": (fwdad.trace(loss, X, 0.3, 4), ["tape loss(", "for _ in range(n):", "float64[?]"]),
        "gradient": (
            fwdad.trace(fwdad.grad(loss), X, 0.3, 4), ["forward pass", "reverse pass", "return"],
        ),
        "captures": (
            fwdad.trace(outside, X), ["read_outside is read from outside", "what it assumes"],
        ),
        "report": (fwdad.memory_report(loss, X, 0.3, 4), ["are kept", "r = a * y", "cotangents"]),
        "recorded report": (fwdad.memory_report(lambda x: np.sum(untraced(x)), X), ["recorded"]),
        "explain": (fwdad.explain(fwdad.grad(loss), X, 0.3, 4), ["the tape of loss"]),
        "show": (fwdad.show(jitted), ["def loss(", "for _ in range(n):"]),
        "support": (fwdad.supported(np.sin), ["forward", "elementwise rule"]),
        "operator": (fwdad.linearize(loss, X, args=(0.3, 4))[1],
                     ["Jacobian of loss: 1 × 6, float64", "float64 of shape (6,)", "the tape"]),
        "untraced operator": (fwdad.linearize(untraced, X)[1], ["Jacobian of", "on duals"]),
        "pullback": (fwdad.vjp(loss, X, args=(0.3, 4))[1], ["pullback of loss", "(6,)"]),
        "jit": (jitted, ["jit(fwdad.grad of loss)(x, a, n)", "numpy", "1 tape", "run by NumPy"]),
        "not called": (fwdad.jit(loss), ["jit(loss)(x, a, n)", "0 tapes"]),
        "grad": (fwdad.grad(loss, argnums=(0, 1)), ["grad(loss)(x, a, n)", "x, a"]),
        "jacfwd": (fwdad.jacfwd(np.sin, chunk=3), ["jacfwd(sin)", "chunk3"]),
        "reversible": (shuffle, ["shuffle", "a += np.sin(b)", "a -= np.sin(b)"]),
        "inverse": (~shuffle, ["shuffle_inverse", "a -= np.sin(b)"]),
        "chunk": (fwdad.Chunk(np.eye(3)) * 2.0, ["Chunk(3 lanes of shape (3,))", "[2. 0. 0.]"]),
        "scalar chunk": (fwdad.Chunk(np.arange(3.0)), ["[0. 1. 2.]"]),
        "cache": (fwdad.cache_info(jitted), ["traced1"]),
        "drawing": (fwdad.trace(loss, X, 0.3, 4).draw(), []),
        "tangent type": (fwdad.tangent_type(float, 3), []),
    }  # fmt: skip


OBJECTS = made()


@pytest.fixture(autouse=True)
def _is_traced():
    """Tapes are dropped where a rule is registered, as other tests do."""
    OBJECTS["jit"][0](X, 0.3, 4)


@pytest.mark.parametrize("name", [n for n, (o, _) in OBJECTS.items() if hasattr(o, "_repr_html_")])
def test_what_a_notebook_shows(name):
    shown, words = OBJECTS[name]
    page = read(shown._repr_html_())
    for word in words:
        assert word in page.text
    assert words
    assert page.count("script") == page.count("link") == page.count("img") == 0
    assert page.elements[0] == ("div", {"class": "fwdad"})
    assert not re.search(r"0x[0-9a-f]{6}", shown._repr_html_())


@pytest.mark.parametrize("name", OBJECTS)
def test_what_a_prompt_shows(name):
    shown, _ = OBJECTS[name]
    text = repr(shown)
    assert not re.search(r"0x[0-9a-f]{6}|object at", text)
    assert name == "support" or not re.search(r"\b(Op|Block|Program|Kept|Apply)\(", text)
    assert not text.startswith("'")


def test_loops_of_a_long_tape_are_folded_at_first():
    short, long = (OBJECTS[name][0]._repr_html_() for name in ("tape", "gradient"))
    assert 'class="fwdad-block" open' in short
    assert 'class="fwdad-block"' in long
    assert 'class="fwdad-block" open' not in long


def test_lines_tell_where_they_come_from():
    page = read(OBJECTS["gradient"][0]._repr_html_())
    first = loss.__code__.co_firstlineno
    assert f"test_shown.py:{first + 4}" in page.text
    assert "r = a * y" in {a.get("title") for _, a in page.elements}


def test_a_pass_is_known_by_its_lines_not_by_names():
    """The user may call anything ``x_bar``, and a reverse pass in a loop is one, too."""

    def f(x_bar, n):
        for _ in range(n):
            x_bar = x_bar - 0.1 * fwdad.grad(lambda y: np.sum(y**3))(x_bar)
        return x_bar

    page = read(fwdad.trace(f, X, 3)._repr_html_())
    (loop,) = (op for op in fwdad.trace(f, X, 3).program.block.ops if op.nests)
    marks = [op.location.reverse for op in loop.body.ops if op.location is not None]
    assert set(marks) == {False, True}
    assert "x_bar" in page.text
    plain = fwdad.trace(lambda x_bar: np.sum(x_bar**2), X)
    assert "pass" not in read(plain._repr_html_()).text


def test_in_another_process_it_is_the_same():
    code = (
        "from tests.display.test_shown import OBJECTS\n"
        "print([o._repr_html_() for o, _ in OBJECTS.values() if hasattr(o, '_repr_html_')])\n"
        "print([repr(o) for o, _ in OBJECTS.values()])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1
