"""Random programs in which names change their arrays: in loops, in branches, by other names.

The holding ones keep arrays in lists, dicts and objects, too, and hand them to functions.
"""

import linecache

import numpy as np


class Writer:
    """Writes one program."""

    names = ("u", "v", "w")
    new = ("np.sin({b})", "{b} * {c}", "{b} + 0.5 * x", "{b}.copy()", "{b} * x")

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.lines = ["def f(x, n):", "    u = x * 1.0"]

    def pick(self, *items):
        return items[self.rng.integers(len(items))]

    def name(self):
        return self.pick(*self.names)

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
            return f"{a} = {self.pick(*self.new).format(b=b, c=self.name())}"
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

    def begin(self):
        self.lines.append(f"    v = {self.pick('u', 'np.cos(x)', 'x * 2.0')}")
        self.lines.append(f"    w = {self.pick('v', 'u', 'np.ones(x.size)', 'x * x')}")

    def end(self):
        return "np.sum(u * u) + np.sum(np.sin(v)) + np.sum(w * x)"

    def program(self):
        self.begin()
        self.lines += ["    s = 0.0", "    for k in range(n):", *self.block("        ", 1, 1)]
        if self.rng.random() < 0.4:
            self.lines += self.block("    ", 2, 0)
        self.lines.append(f"    return s + {self.end()}")
        return "\n".join(self.lines)


class Branching(Writer):
    """Writes programs whose loops, if any, are inside of branches."""

    def program(self):
        self.begin()
        self.lines += ["    s = 0.0", *self.branch("    ", 0, 0), *self.block("    ", 0, 0)]
        self.lines.append(f"    return s + {self.end()}")
        return "\n".join(self.lines)


class Pair:
    """Two arrays."""

    def __init__(self, a, b):
        self.a = a
        self.b = b

    def step(self, c):
        self.a = self.a * c
        self.b[0] = self.a[1]
        return self.b


class Holding(Writer):
    """Writes programs whose arrays are held by containers."""

    names = ("u", "v", "items[0]", "items[1]", "by_name['p']", "by_name['q']", "pair.a", "pair.b")
    new = (*Writer.new, "g({b}, {c})", "h({b})", "pair.step(1.5)", "np.where({b} > {c}, {b}, x)")

    def begin(self):
        first = self.pick("v", "u", "np.ones(x.size)", "x * x")
        same = self.pick("return a", "a = a.copy(); a[1] *= 2.0; return a", "return a * u")
        self.lines += [
            f"    v = {self.pick('u', 'np.cos(x)', 'x * 2.0')}",
            f"    items = [{first}, u * 0.5]",
            f"    by_name = {{'p': {self.pick('v', 'np.cos(x)', 'items[0]')}, 'q': x + 1.0}}",
            f"    pair = Pair({self.pick('u', 'x * 0.5', 'items[1]')}, np.sin(x))",
            "    def g(a, b):",
            f"        {self.pick('return a * b', 'a[0] = b[1]; return a', 'return b * a')}",
            "    def h(a):",
            f"        {same}",
        ]

    def simple(self, kind):
        if kind < 0.05:
            return f"items = [{self.name()}, {self.name()}]"
        return super().simple(kind)

    def end(self):
        return (
            "np.sum(u * u) + np.sum(np.sin(v)) + np.sum(items[0] * x) + np.sum(np.cos(pair.b))"
            " + np.sum(items[1] * by_name['p']) + np.sum(by_name['q'] * pair.a)"
        )


def program(seed, kind=Writer):
    """A function of an array and how often its loop runs, and its source."""
    text = kind(seed).program()
    name = f"<{kind.__name__} {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"np": np, "Pair": Pair}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"], text
