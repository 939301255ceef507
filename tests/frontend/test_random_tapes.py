"""Random programs with loops, branches, jumps and stores: tapes do what Python does."""

import copy
import linecache
import random
import warnings

import numpy as np
import pytest

from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.frontend.trace import trace
from fwdad.ir.check import check_program, checked
from fwdad.transforms.passes import optimise
from tests.ir.running import bits, call, run, values

NUMBERS = ["a", "b", "c", "d"]
ARRAYS = ["x", "y", "z"]


class Maker:
    """Writes a random function of (a, b, x, n); every name is bound before it is used."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.counters = []
        self.budget = 18

    def pick(self, *options):
        return self.random.choice(options)

    def number(self, depth=2):
        r = self.random.random()
        if depth == 0 or r < 0.35:
            counters = [f"{k} * 0.5" for k in self.counters]
            return self.pick(*NUMBERS, *NUMBERS, "1.5", "-0.25", "0.0", *counters)
        if r < 0.5:
            return f"{self.pick(*ARRAYS)}[{self.index()}]"
        if r < 0.6:
            return f"np.sin({self.number(depth - 1)})"
        if r < 0.65:
            return f"np.sum({self.pick(*ARRAYS)})"
        operator = self.pick("+", "-", "*")
        return f"({self.number(depth - 1)} {operator} {self.number(depth - 1)})"

    def index(self):
        return self.pick("0", "1", "2", *(f"{k} % 3" for k in self.counters))

    def condition(self):
        options = [f"{self.number(1)} {self.pick('<', '>')} {self.number(1)}"]
        options += [f"{k} % 2 == 0" for k in self.counters]
        return self.pick(f"not ({options[0]})", *options, *options)

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def block(self, depth, *, in_loop=False):
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth, in_loop=in_loop)

    def statement(self, depth, *, in_loop):
        self.budget -= 1
        r = self.random.random()
        if self.budget < 0 or depth > 4 or r < 0.4:
            self.line(depth, f"{self.pick(*NUMBERS)} = {self.number()}")
        elif r < 0.5:
            target = f"{self.pick('y', 'z')}[{self.index()}]"
            self.line(depth, f"{target} {self.pick('', '+', '-')}= {self.number()}")
        elif r < 0.55:
            self.line(depth, self.pick("y, z = z, y", "y = z * 0.5", "z = x + y", "y = x.copy()",
                                       "y[1:] = z[:2]", "y = z", "y += z", "a, b = b, a",
                                       "a, b, c = b, c, a + 1.0"))  # fmt: skip
        elif r < 0.75:
            self.line(depth, f"if {self.condition()}:")
            self.block(depth + 1, in_loop=in_loop)
            if self.random.random() < 0.5:
                self.line(depth, "else:")
                self.block(depth + 1, in_loop=in_loop)
        elif r < 0.9:
            counter = "ijkl"[len(self.counters)] if len(self.counters) < 3 else "l"
            bounds = self.pick("n", "n", "2", "1, n", "n, 0, -1", "0")
            self.line(depth, f"for {counter} in range({bounds}):")
            self.counters.append(counter)
            self.block(depth + 1, in_loop=True)
            self.counters.pop()
            if self.random.random() < 0.2:
                self.line(depth, "else:")
                self.block(depth + 1, in_loop=in_loop)
        else:
            jump = ["return " + self.pick(*NUMBERS)]
            if in_loop:
                jump += ["break", "continue"] * 2
            self.line(depth, f"if {self.condition()}:")
            self.line(depth + 1, self.pick(*jump))

    def source(self):
        self.line(0, "def f(a, b, x, n):")
        self.line(1, "c, d = a * 0.5, np.cos(b)")
        self.line(1, "y, z = np.zeros_like(x), x * 2.0")
        for _ in range(5):
            self.statement(1, in_loop=False)
        last = self.pick("y[1]", "np.sum(z)", "c")
        self.line(1, f"return {self.pick(*NUMBERS)} + {self.pick(*NUMBERS)} + {last}")
        return "\n".join(self.lines) + "\n"


def function(seed):
    text = Maker(seed).source()
    filename = f"<random {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"np": np}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text


RUNS = [
    (a, b, x, n)
    for a, b, x in [
        (0.7, -1.2, np.array([0.3, -0.4, 1.1])),
        (-0.5, 0.9, np.array([-1.3, 0.8, 0.1])),
        (1.5, 1.5, np.array([0.2, 0.2, -2.0])),
    ]
    for n in (3, 0, 1, 4)
]


SEEDS = [*range(24), 136, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1000, 1400))]


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_tape_of_a_random_program_does_what_python_does(seed):
    f, text = function(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tape = trace(f, *copy.deepcopy(RUNS[0]))
        check_program(tape.program)
        before = [run(tape, args) for args in RUNS]
        optimise(tape.program, checked)
        assert [run(tape, args) for args in RUNS] == before, text
        source = numpy_source(tape.program)
        g = compiled(source)
        for args in RUNS:
            wanted, left = call(f, args)
            given = copy.deepcopy(args)
            found = tape.rebuild(list(g(*given)))
            shown = f"{text}\n{args}\n{source.text}"
            np.testing.assert_array_equal(values(found), values(wanted), err_msg=shown)
            assert bits(given) == bits(left), shown
