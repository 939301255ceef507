"""Random programs whose indices may be out of range: in loops, branches, and views of views."""

import linecache
import random

import numpy as np

HEAD = "def f(a, m, i, j):\n    s = 0.0\n"


class Writer:
    """Writes the source of one program; the arguments are written into."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.arrays = [("a", 1), ("m", 2)]
        self.ints = ["i", "j", "2", "-1", "0", "1"]
        self.names = 0

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def index(self):
        found = self.random.choice(self.ints)
        if self.random.random() < 0.4:
            found += f" {self.random.choice('+-*')} {self.random.choice(self.ints)}"
        return found

    def vector(self):
        return self.random.choice([name for name, rank in self.arrays if rank == 1])

    def element(self):
        name, rank = self.random.choice(self.arrays)
        return f"{name}[{', '.join(self.index() for _ in range(rank))}]"

    def number(self):
        return self.random.choice([self.element(), self.element(), "s", "0.5"])

    def view(self):
        name, rank = self.random.choice(self.arrays)
        if rank == 1:
            return f"{name}[{self.index()}:{self.random.choice(['', self.index()])}]", 1
        return self.random.choice([
            (f"{name}[{self.index()}]", 1),
            (f"{name}[:, {self.index()}]", 1),
            (f"{name}[{self.index()}:, :{self.index()}]", 2),
            (f"{name}.T", 2),
        ])  # fmt: skip

    def simple(self):
        v, i, j = self.vector(), self.index(), self.index()
        return self.random.choice([
            f"s = s + {self.element()} * {self.number()}",
            f"{self.element()} {self.random.choice(['=', '+=', '*='])} {self.number()}",
            f"s = s + {v}[[{i}, {j}]].sum()",
            f"s = s + np.take({v}, {i}) + {v}[{j}:].sum()",
            f"{v}[{i}:{j}] = {self.number()}",
            f"{v}[[{i}, 0]] = {self.number()}",
            f"{v}[:] = {self.vector()}",
        ])  # fmt: skip

    def statement(self, depth=0):
        indent = "    " * (depth + 1)
        kind = self.random.random()
        if kind < 0.2:
            text, rank = self.view()
            made = self.name("v")
            self.lines += [f"{indent}{made} = {text}", f"{indent}s = s + {made}.sum()"]
            self.arrays.append((made, rank))
        elif kind < 0.7 or depth == 3:
            self.lines.append(indent + self.simple())
        else:
            arrays, ints = list(self.arrays), list(self.ints)
            if self.random.random() < 0.5:
                counter = self.name("k")
                trips = self.random.choice(["i", "j", "3", "len(a)", "m.shape[1]"])
                self.lines.append(f"{indent}for {counter} in range({trips}):")
                self.ints.append(counter)
            else:
                self.lines.append(f"{indent}if {self.random.choice(['i > j', 's < 0.3'])}:")
            for _ in range(self.random.randint(1, 3)):
                self.statement(depth + 1)
            self.arrays, self.ints = arrays, ints


def program(seed):
    """A function, and its source in the cache of lines."""
    writer = Writer(seed)
    for _ in range(writer.random.randint(3, 7)):
        writer.statement()
    text = "\n".join([HEAD.rstrip(), *writer.lines, "    return s, a, m", ""])
    filename = f"<indices {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    held = {"np": np}
    exec(compile(text, filename, "exec"), held)
    return held["f"]
