"""Random programs with state: every call, compiled, sees and leaves what Python does."""

import importlib.util
import random
import sys
import warnings

import numpy as np
import pytest

import fwdad
from fwdad.errors import UntraceableError
from tests.frontend import (
    random_arrays,
    random_calls,
    random_conditions,
    random_derivatives,
    random_exceptions,
    random_memory,
)

X = np.array([0.8313, 0.4117, 1.2171, -0.3371]), np.array([-0.2313, 1.3117, 0.5171, 0.7371])
ALONG = np.array([0.31, -0.72, 1.13, 0.54])
ARGUMENTS = {
    random_calls: [(0.8313, 1.0), (1.7171, 1.0)],
    random_arrays: [(x, ALONG) for x in X],
    random_memory: [(x, ALONG) for x in X],
    random_derivatives: [(x, ALONG) for x in X],
    random_conditions: [(x, ALONG) for x in X],
    random_exceptions: [(0.8313, 1.0), (1.7171, 1.0), (-0.4242, 1.0)],
}
SEEDS = [*range(12), *(pytest.param(k, marks=pytest.mark.slow) for k in range(12, 300))]


class Author:
    """Writes programs of a vocabulary: a module of words and statements."""

    def __init__(self, words, seed):
        self.words = words
        self.draws = random.Random(seed)

    def program(self):
        body = [line for _ in range(self.draws.randint(3, 7)) for line in self.statement(1)]
        return self.words.PROLOGUE + "\n".join(body) + "\n" + self.words.EPILOGUE

    def filled(self, text, depth=0):
        """A text with words for its places, which may hold others."""
        for key, choices in self.words.WORDS.items():
            place = "{" + key + "}"
            while place in text:
                word = self.draws.choice(choices)
                if key == "n" and depth < 2 and self.draws.random() < 0.2:
                    word = self.words.NESTED
                if key == "call":
                    word = f"({word})"
                text = text.replace(place, self.filled(word, depth + 1), 1)
        return text

    def statement(self, indent, depth=0, *, loops=True):
        pad, kind = "    " * indent, self.draws.random()
        if kind < 0.4:
            return [
                pad + line for line in self.filled(self.draws.choice(self.words.SETS)).split("\n")
            ]
        if kind < 0.85 or depth > 1:
            return [pad + self.filled(self.draws.choice(self.words.STATE))]
        if kind < 0.93:
            lines = [pad + f"if {self.draws.choice(self.words.TESTS)}:"]
            lines += self.block(indent + 1, depth + 1, loops=loops)
            if self.draws.random() < 0.5:
                lines += [pad + "else:", *self.block(indent + 1, depth + 1, loops=loops)]
            return lines
        if kind < 0.985 and loops:
            head = [pad + line for line in self.draws.choice(self.words.LOOPS).split("\n")]
            return [*head, *self.block(indent + 1, depth + 1, loops=False)]
        return [pad + line for line in self.words.LEAVES]

    def block(self, indent, depth, *, loops):
        count = self.draws.randint(1, 3)
        return [line for _ in range(count) for line in self.statement(indent, depth, loops=loops)]


def load(source, name, folder):
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def own(x):
    return x.copy() if isinstance(x, np.ndarray) else x


def reference(f, x, v):
    """The value and the slope along v, or what f raises; None at a kink, and where f is wild."""
    try:
        y = float(f(own(x)))
    except Exception as error:
        return type(error)
    try:
        slopes = [float(f(x + h * v) - f(x - h * v)) / (2 * h) for h in (1e-6, 3e-7)]
    except Exception:
        return None
    smooth = abs(slopes[0] - slopes[1]) < 1e-6 * (1 + abs(slopes[0]))
    return (y, slopes[0]) if smooth and np.isfinite(y) and abs(slopes[0]) < 1e6 else None


MODES = {
    "jit": lambda f, _: fwdad.jit(f, backend="numpy"),
    "jit of grad": lambda f, v: along(fwdad.jit(fwdad.grad(f), backend="numpy"), v),
    "jit of jvp": lambda f, v: fwdad.jit(lambda x: fwdad.jvp(f, x, v)[1], backend="numpy"),
    "grad": lambda f, v: along(fwdad.grad(f), v),
    "jvp": lambda f, v: lambda x: fwdad.jvp(f, x, v)[1],
}


def along(gradient, v):
    return lambda x: np.sum(gradient(x) * v)


@pytest.mark.every(3, first=1)
@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
@pytest.mark.parametrize("words", ARGUMENTS, ids=lambda words: words.__name__.split("_")[-1])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_state(seed, words, tmp_path):
    source, name = Author(words, seed).program(), f"random_state_{seed}"
    f = load(source, name, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = [reference(f, *at) for at in ARGUMENTS[words]]
    for mode, way in MODES.items():
        g = way(f, ARGUMENTS[words][0][1])
        for (x, _), known in zip(ARGUMENTS[words], wanted, strict=True):
            if known is None:
                continue
            try:
                found = g(own(x))
            except UntraceableError:  # refused, never wrong; without jit nothing is
                assert mode.startswith("jit"), source
                break
            except Exception as error:
                assert type(error) is known, (mode, x, source)  # noqa: PT017
                continue
            assert isinstance(known, tuple), (mode, x, found, known, source)
            y = known[mode != "jit"]
            assert abs(found - y) < 1e-5 * (1 + abs(y)), (mode, x, found, y, source)
