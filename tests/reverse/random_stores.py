"""Random programs that overwrite what they have read: slices, elements, views, loops, branches."""

import linecache

import numpy as np

SLICES = ["0:4", "1:5", "2:6", "::-1", ":"]
POINT = np.array([0.7, -0.4, 1.1, 0.3, -0.9, 0.5])


class Writer:
    """Writes one program."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.lines = []
        self.counters = []
        self.views = 0

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def line(self, text, depth):
        self.lines.append("    " * depth + text)

    def index(self):
        if self.counters and self.rng.random() < 0.7:
            return self.pick(["{}", "{} - 1", "{} + 1"]).format(self.pick(self.counters))
        return str(self.rng.integers(6))

    def number(self):
        a, b = self.pick("uv"), self.pick("uv")
        return self.pick([
            f"{a}[{self.index()}] * {b}[{self.index()}]", f"np.sin({a}[{self.index()}])",
            f"s * {a}[{self.index()}]", f"{a}[{self.index()}] - 0.5 * s", f"np.sum({a}[1:4] ** 2)",
        ])  # fmt: skip

    def window(self, length):
        """A slice of u or v of the same length as another one."""
        same = [s for s in SLICES if (s in SLICES[:3]) == (length == 4)]
        return f"{self.pick('uv')}[{self.pick(same)}]"

    def array(self, at):
        a, b = (self.window(4 if at in SLICES[:3] else 6) for _ in range(2))
        return self.pick([
            f"np.sin({a}) * {b}", f"{a} * {b} - 0.3", f"np.cos({a}) + s * {b}", f"{a} ** 2", a,
        ])  # fmt: skip

    def statement(self, depth):
        kind = self.rng.random()
        if kind < 0.25:
            at = self.pick(SLICES)
            operator = self.pick(["=", "+=", "*=", "-="])
            self.line(f"{self.pick('uv')}[{at}] {operator} {self.array(at)}", depth)
        elif kind < 0.5:
            operator = self.pick(["=", "=", "+=", "*="])
            self.line(f"{self.pick('uv')}[{self.index()}] {operator} {self.number()}", depth)
        elif kind < 0.6:
            self.views += 1
            name = f"w{self.views}"
            self.line(f"{name} = {self.pick('uv')}[{self.pick(SLICES[:3])}]", depth)
            self.line(f"{name}[{self.rng.integers(4)}] = {self.number()}", depth)
            self.line(f"{name} *= np.cos({name})", depth)
        elif kind < 0.7:
            self.line(f"s = np.tanh({self.number()})", depth)
        elif kind < 0.85 and depth < 4:
            counter = "ijk"[len(self.counters)]
            span = self.pick(["range(1, 5)", "range(4, 0, -1)", "range(1, 4)"])
            self.line(f"for {counter} in {span}:", depth)
            self.counters.append(counter)
            self.body(depth + 1)
            self.counters.pop()
        elif depth < 4:
            self.line(f"if {self.number()} > 0.1:", depth)
            self.body(depth + 1)
            self.line("else:", depth)
            self.body(depth + 1)

    def body(self, depth):
        start = len(self.lines)
        for _ in range(self.rng.integers(1, 4)):
            self.statement(depth)
        if len(self.lines) == start:
            self.line("u *= np.cos(v)", depth)


def program(seed):
    """A function of one array, and its source."""
    writer = Writer(seed)
    for text in ("def f(x):", "    u = x.copy()", "    v = np.sin(2 * x)", "    s = x[0] * x[1]"):
        writer.line(text, 0)
    for _ in range(4):
        writer.statement(1)
    writer.line("    return np.sum(np.tanh(u) * v) + s", 0)
    text = "\n".join(writer.lines) + "\n"
    filename = f"<stores {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"np": np}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text
