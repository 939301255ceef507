"""Random programs of lengths: ints that are one on some ways only, and arrays that are as long.

One tape is called with arguments of several lengths; what it returns is compared with Python's.
"""

import linecache
import random

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

SEEDS = [
    *range(20),
    *(1226, 1254, 1372, 1421, 1430, 1443, 1496, 1501),  # in which lengths that change matter
    *(pytest.param(k, marks=pytest.mark.slow) for k in range(2000, 3000)),
]
ARGUMENTS = [
    (np.array([0.5, -1.0, 2.0, 3.0]), np.array([1.0, 2.0, -3.0])),
    (np.array([-0.5, 1.0, 2.0, 3.0, 4.0, -2.0, 0.25]), np.array([-1.0, 2.0, 3.0, 1.0, 0.5])),
    (np.array([1.0, 2.0]), np.array([0.5, 1.0, 1.0, 2.0])),
    (np.array([-1.0, 0.5, 0.5]), np.array([0.5, -1.0])),
    (np.array([0.5, -1.0, 2.0, 3.0]), np.array([0.5, 1.0, 1.0, 2.0])),
]
INTS = [
    "min({n}, {m})", "max({n}, {m})", "{n} // 2", "max({n} - 1, 0)", "{n} + 1", "len({v})",
    "{v}.shape[0]", "({n} if a[0] > 0 else {m})", "abs({n} - {m})", "len({v}[:{n}])",
    "len({v}[{m}:])", "np.size({v})", "len({v}[::2])",
]  # fmt: skip
ARRAYS = [
    "{v}[:{n}]", "{v}[{n}:]", "np.zeros({n}) + 1.0", "np.arange({n}) * 1.0", "np.full({n}, 2.0)",
    "np.concatenate([{v}, {w}])", "{v}[1:]", "{v}[:-1]", "{v}[::-1]", "{v} * 2.0", "np.diff({v})",
    "np.arange(len({v})) * {v}", "np.ones(len({v}))", "np.outer({v}, {w}).sum(axis=0)",
    "np.outer({v}, {w}).sum(axis=1)", "np.cumsum({v})", "np.repeat({v}, 2)", "np.pad({v}, 1)",
    "np.linspace(0.0, 1.0, {n})", "{v}[{v} > 0]", "np.where({v} > 0, {v}, 1.0)",
]  # fmt: skip


class Writer:
    """Writes one program: assignments of ints and arrays, branches and loops."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = ["def f(a, b):", "    na, nb = len(a), len(b)"]
        self.ints, self.arrays = ["na", "nb"], ["a", "b"]
        self.count = 0
        self.block("    ", 0, self.random.randint(6, 12))
        results = [f"np.arange(len({v})) * {v}" for v in self.arrays]
        results += [f"np.zeros({n})" for n in self.ints] + self.ints
        self.lines.append(f"    return {', '.join(results)}")

    def pick(self, forms):
        names = {"n": self.random.choice(self.ints), "m": self.random.choice([*self.ints, 1, 3])}
        names.update({name: self.random.choice(self.arrays) for name in "vw"})
        return self.random.choice(forms).format(**names)

    def assign(self, names, own, forms, indent):
        """To a new name, or to one that is there."""
        value = self.pick(forms)
        if len(names) == 2 or self.random.random() < 0.7:
            self.count += 1
            names.append(f"{own}{self.count}")
            self.lines.append(f"{indent}{names[-1]} = {value}")
        else:
            self.lines.append(f"{indent}{self.random.choice(names[2:])} = {value}")

    def block(self, indent, depth, statements):
        for _ in range(statements):
            kind = self.random.random()
            if kind < 0.4:
                self.assign(self.ints, "n", INTS, indent)
            elif kind < 0.8 or depth == 2:
                self.assign(self.arrays, "v", ARRAYS, indent)
            else:
                tests = ["a[0] > 0", "b[0] > 0", "na > nb", self.pick(["{n} > 2"])]
                head = f"if {self.random.choice(tests)}:"
                if kind > 0.9:
                    head = f"for _ in range({self.pick(['2', '3', '{n}'])}):"
                self.lines.append(indent + head)
                ints, arrays = [*self.ints], [*self.arrays]
                self.block(indent + "    ", depth + 1, self.random.randint(1, 2))
                self.ints, self.arrays = ints, arrays


def program(seed):
    source = "\n".join(Writer(seed).lines) + "\n"
    name = f"<random lengths {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space = {"np": np}
    exec(compile(source, name, "exec"), space)
    return space["f"]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_tape_is_right_for_all_lengths(seed):
    f = program(seed)
    traced = fwdad.jit(f, backend="numpy")
    for a, b in ARGUMENTS:
        found, wanted = traced(a, b), f(a, b)
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted, strict=True):
            assert np.shape(x) == np.shape(y)
            assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_the_programs_have_loops_and_branches():
    sources = ["\n".join(Writer(seed).lines) for seed in range(60)]
    assert sum("for _" in s and "if " in s for s in sources) >= 10
