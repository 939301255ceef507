"""Random programs in which names change their arrays: in loops, in branches, by other names."""

import linecache

import numpy as np

NAMES = "uvw"


class Writer:
    """Writes one program."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.lines = ["def f(x, n):", "    u = x * 1.0"]

    def pick(self, *items):
        return items[self.rng.integers(len(items))]

    def name(self):
        return self.pick(*NAMES)

    def element(self):
        return f"{self.name()}[{self.rng.integers(3)}]"

    def statement(self, indent, depth, counters):
        kind = self.rng.random()
        if kind < 0.7:
            return [indent + self.simple(kind)]
        if kind < 0.86 and depth < 3:
            return self.branch(indent, depth, counters)
        if kind < 0.94 and depth < 2:
            counter = "kk" if counters else "k"
            lines = [f"{indent}for {counter} in range({self.pick('n', '2')}):"]
            return lines + self.block(indent + "    ", depth + 1, counters + 1)
        more = self.pick(self.element(), f"np.sum({self.name()} * {self.name()})")
        return [f"{indent}s = s + {more} * 0.3"]

    def simple(self, kind):
        a, b = self.name(), self.name()
        if kind < 0.16:
            return f"{a} = {b}"
        if kind < 0.36:
            new = self.pick("np.sin({b})", "{b} * {c}", "{b} + 0.5 * x", "{b}.copy()", "{b} * x")
            return f"{a} = {new.format(b=b, c=self.name())}"
        if kind < 0.56:
            x, y = self.element(), self.element()
            value = self.pick(f"{x} * {y}", f"np.cos({x})", "0.3", f"x[1] * {y}")
            return f"{self.element()} = {value}"
        if kind < 0.64:
            at, operator = self.pick("1:", ":-1", "0", "..."), self.pick("*=", "+=")
            return f"{a}[{at}] {operator} {self.pick('0.7', self.element(), 'x[2]')}"
        return f"{a}, {b} = {b}, {a}"

    def branch(self, indent, depth, counters):
        own = [f"np.sum({self.name()}) > 0.5", f"{self.element()} > {self.element()}"]
        seldom = ["k % 2 == 0", "k == 1"] if counters else []
        lines = [f"{indent}if {self.pick(*own, *seldom)}:"]
        lines += self.block(indent + "    ", depth + 1, counters)
        if self.rng.random() < 0.5:
            lines += [f"{indent}else:", *self.block(indent + "    ", depth + 1, counters)]
        return lines

    def block(self, indent, depth, counters):
        count = self.rng.integers(1, 5)
        return [line for _ in range(count) for line in self.statement(indent, depth, counters)]

    def program(self):
        self.lines.append(f"    v = {self.pick('u', 'np.cos(x)', 'x * 2.0')}")
        self.lines.append(f"    w = {self.pick('v', 'u', 'np.ones(x.size)', 'x * x')}")
        self.lines += ["    s = 0.0", "    for k in range(n):", *self.block("        ", 1, 1)]
        if self.rng.random() < 0.4:
            self.lines += self.block("    ", 2, 0)
        self.lines.append("    return s + np.sum(u * u) + np.sum(np.sin(v)) + np.sum(w * x)")
        return "\n".join(self.lines)


def program(seed):
    """A function of an array and how often its loop runs, and its source."""
    text = Writer(seed).program()
    name = f"<names {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"], text
