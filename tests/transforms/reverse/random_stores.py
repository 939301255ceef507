"""Random programs that overwrite what they have read: slices, elements, views, loops, branches.

The wide ones call functions, with arrays under two names, and have ``while`` with ``break``,
matrices that are views, transposes, arrays of indices, and arrays that change places.
"""

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
        self.count = 0

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

    def view(self, length):
        """A slice of u or v of the same length as another one."""
        same = [s for s in SLICES if (s in SLICES[:3]) == (length == 4)]
        return f"{self.pick('uv')}[{self.pick(same)}]"

    def array(self, at):
        a, b = (self.view(4 if at in SLICES[:3] else 6) for _ in range(2))
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
            self.count += 1
            name = f"w{self.count}"
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


HELPERS = [
    "def relax(p, q):",
    "    p[1:] *= np.cos(q[:-1])",
    "    return p[0] * q[1]",
    "def mix(p, q, k):",
    "    if k > 2:",
    "        return np.sum(p * q)",
    "    p[k] = q[k + 1] * p[k + 2]",
    "    for i in range(1, 4):",
    "        p[i] += q[i - 1] * 0.5",
    "    return p[k]",
]


class Wide(Writer):
    """Writes programs with everything that reverse mode meets."""

    def statement(self, depth):
        kinds = [
            self.call, self.matrix, self.indices, self.swap, self.fresh, self.until, self.chosen,
        ]  # fmt: skip
        if self.rng.random() < 0.55:
            super().statement(depth)
        else:
            self.pick(kinds)(depth)

    def call(self, depth):
        a, b = self.pick("uv"), self.pick("uv")
        text = self.pick([
            f"relax({a}, {b})", f"mix({a}, {b}, {self.rng.integers(4)})",
            f"relax({a}[1:], {b}[:-1])",
        ])  # fmt: skip
        self.line(f"s = np.tanh({text})", depth)

    def matrix(self, depth):
        self.count += 1
        name, a, b = f"m{self.count}", self.pick("uv"), self.pick("uv")
        make = self.pick(["{}.reshape(2, 3)", "{}.reshape(3, 2).T", "{}.reshape(2, 3)[:, ::-1]"])
        self.line(f"{name} = {make.format(a)}", depth)
        self.line(self.pick([
            f"{name}[0] = {name}[1] * {b}[1:4]", f"{name}[:, 1] *= {name}[:, 0]",
            f"{name} += {name}[::-1] * s", f"{name}[1, 2] = {self.number()}",
            f"{name}[:, 1:] = np.sin({name}[:, :2])", f"{b}[0:4] += {name}.ravel()[2:]",
            f"{name}.T[1] *= {b}[:2]", f"{name}[:] = {name} @ np.ones((3, 3)) * 0.3",
        ]), depth)  # fmt: skip
        if self.rng.random() < 0.5:
            self.line(f"{a}[2] = np.sum({name}[0] * {name}[1])", depth)

    def indices(self, depth):
        a, b = self.pick("uv"), self.pick("uv")
        at = self.pick(["[0, 2, 2]", "[5, 1, 0]", "np.array([3, 3, 4])", "[k for k in (1, 1, 2)]"])
        self.line(self.pick([
            f"{a}[{at}] += {b}[1:4]", f"{a}[{at}] = {b}[2:5] * s", f"{a}[{at}] *= {b}[{at}]",
            f"np.add.at({a}, {at}, {b}[0:3])", f"np.subtract.at({a}, {at}, s * {a}[3:6])",
            f"{a}[{a} > 0.2] *= 0.5", f"{b}[:3] = {a}[{at}] ** 2",
            f"np.copyto({a}, {b}, where={b} < {a})",
        ]), depth)  # fmt: skip

    def swap(self, depth):
        self.line(self.pick(["u, v = v, u", "u[:3], v[3:] = v[:3] * 1.0, u[3:] * 1.0"]), depth)

    def fresh(self, depth):
        self.line(f"t = {self.pick('uv')} * np.cos({self.pick('uv')})", depth)
        self.line("t[1:] *= t[:-1]", depth)
        self.line(f"{self.pick('uv')}[{self.pick(['::-1', ':'])}] = np.sin(t)", depth)

    def until(self, depth):
        if depth >= 3:
            return
        self.count += 1
        counter = f"n{self.count}"
        self.line(f"{counter} = 0", depth)
        self.line(f"while {counter} < 4 and abs(u[{self.rng.integers(6)}]) < 2.0:", depth)
        self.line(f"{counter} += 1", depth + 1)
        self.body(depth + 1)
        if self.rng.random() < 0.6:
            self.line(f"if {self.number()} > 0.4:", depth + 1)
            self.line("break", depth + 2)
        self.body(depth + 1)

    def chosen(self, depth):
        self.count += 1
        name = f"c{self.count}"
        self.line(f"{name} = u if {self.number()} > 0.0 else v", depth)
        self.line(f"{name}[{self.index()}] = {self.number()}", depth)
        self.line(f"{name}[1:] *= {self.pick('uv')}[:-1]", depth)


class Moving(Wide):
    """Writes programs whose names are one view or another, or one array or another."""

    def statement(self, depth):
        if depth < 3 and self.rng.random() < 0.5:
            self.pick([self.view_chosen, self.view_moved, self.taken_over, self.taken_in_turn])(
                depth
            )
        else:
            super().statement(depth)

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def part(self, at):
        """A view of two elements of u or v."""
        a = self.pick("uv")
        odd = [f"{a}.reshape(3, 2)[{at} % 3]", f"{a}[::2][:2]"]
        plain = [f"{a}[{at}:{at} + 2]", f"{a}[1:3]", f"{a}[{at} + 1:{at} + 3]"]
        return self.pick(odd if self.rng.random() < 0.1 else plain)

    def use(self, name, depth):
        for _ in range(self.rng.integers(1, 3)):
            i = self.pick(["0", "1", "-1"])
            self.line(self.pick([
                f"{name}[{i}] = {self.number()}", f"{name} *= np.cos({self.pick('uv')}[1:3])",
                f"{self.pick('uv')}[{self.index()}] = np.sin({name}[{i}])",
                f"s = np.tanh(s + np.sum({name} ** 2))", f"{name}[:1] += {name}[1:] * s",
            ]), depth)  # fmt: skip

    def view_chosen(self, depth):
        name, at = self.name("c"), str(self.rng.integers(3))
        if self.counters:
            at = self.pick([at, f"abs({self.counters[-1]} - 2)"])
        other = self.part(at) if self.rng.random() < 0.7 else f"np.sin({self.part(at)})"
        if self.rng.random() < 0.5:
            self.line(f"{name} = {self.part(at)} if {self.number()} > 0.0 else {other}", depth)
        else:
            self.line(f"{name} = {self.part(at)}", depth)
            self.line(f"if {self.number()} > 0.0:", depth)
            self.line(f"{name} = {other}", depth + 1)
        self.use(name, depth)

    def view_moved(self, depth):
        name, k = self.name("w"), self.name("k")
        a = self.pick("uv")
        self.line(f"{name} = {a}[{self.pick(['1:3', '4:6', ':2'])}]", depth)
        self.line(f"for {k} in range(4):", depth)
        self.counters.append(k)
        self.use(name, depth + 1)
        found = self.pick([f"{a}[{k}:{k} + 2]", f"{a}[1:3]", self.part(k), f"{a}[{k} + 1:{k} + 3]"])
        if self.rng.random() < 0.5:
            self.line(f"if {self.number()} > 0.0:", depth + 1)
            self.line(f"{name} = {found}", depth + 2)
        else:
            self.line(f"{name} = {found}", depth + 1)
        if self.rng.random() < 0.4:
            self.statement(depth + 1)
        self.counters.pop()
        self.use(name, depth)

    def taken_over(self, depth):
        """The best so far, as optimisers keep it."""
        best, t, k = self.name("b"), self.name("t"), self.name("k")
        first = self.pick(["{}.copy()", "{} * 0.9", "{} * 0.9", "{}"]).format(self.pick("uv"))
        self.line(f"{best} = {first}", depth)
        self.line(f"for {k} in range(3):", depth)
        self.counters.append(k)
        self.line(f"{t} = np.cos({best}) * {self.pick('uv')}", depth + 1)
        self.line(f"{t}[{k}] = {self.number()}", depth + 1)
        self.line(f"if np.sum({t}) < np.sum({best}) + s:", depth + 1)
        self.line(f"{best} = {t}", depth + 2)
        if self.rng.random() < 0.4:
            self.line(f"{best}[{self.index()}] *= 0.9", depth + 1)
        if self.rng.random() < 0.2:
            self.line(f"{t}[1] = {self.number()}", depth + 1)
        if self.rng.random() < 0.3:
            self.statement(depth + 1)
        self.counters.pop()
        self.line(f"{self.pick('uv')}[:] = {best}", depth)

    def taken_in_turn(self, depth):
        """Two arrays, one of which is replaced by a new one."""
        p, q, t, k = (self.name(letter) for letter in "pqtk")
        self.line(f"{p}, {q} = {self.pick('uv')} * 1.1, {self.pick('uv')}.copy()", depth)
        self.line(f"for {k} in range(3):", depth)
        self.counters.append(k)
        self.line(f"{t} = 0.6 * {p} + 0.4 * {q}", depth + 1)
        self.line(f"{t}[{k}] = {self.number()}", depth + 1)
        self.line(f"if {self.number()} > 0.0:", depth + 1)
        ways = [f"{p} = {t}", f"{q} = {t}", f"{p}, {q} = {q}, {t}", f"{q}, {p} = {p}, {t}"]
        self.line(self.pick(ways), depth + 2)
        if self.rng.random() < 0.6:
            self.line("else:", depth + 1)
            self.line(self.pick(ways), depth + 2)
        if self.rng.random() < 0.5:
            self.line(f"{self.pick((p, q))}[{self.index()}] *= 0.9", depth + 1)
        self.counters.pop()
        self.line(f"{self.pick('uv')}[:] = {p} * {q}", depth)


class Sweeping(Writer):
    """Writes loops with one or two stores, beside the elements that they read.

    Nothing else reads what a store overwrites: each mistake about two indices shows.
    """

    def statement(self, depth):
        if depth > 1:
            (self.views if self.rng.random() < 0.3 else self.elements)(depth)
            return
        spans = ["range(1, 5)", "range(1, 5)", "range(4, 0, -1)", "range(1, 5, 2)"]
        self.line(f"for i in {self.pick(spans)}:", depth)
        self.body(depth + 1)

    def body(self, depth):
        for _ in range(self.rng.integers(1, 3)):
            self.statement(depth)

    def elements(self, depth):
        a, to, of = self.pick("uv"), *(self.pick(["i", "i - 1", "i + 1"]) for _ in range(2))
        operator = self.pick(["=", "=", "+=", "*="])
        value = self.pick([f"np.sin({a}[{of}])", f"{a}[{of}] * {a}[i]", f"np.cos({a}[{of}]) * s"])
        self.line(f"{a}[{to}] {operator} {value}", depth)

    def views(self, depth):
        a, to, of = self.pick("uv"), *(self.pick(["i:i + 2", "i - 1:i + 1"]) for _ in range(2))
        operator = self.pick(["=", "=", "+=", "*="])
        value = self.pick([f"np.sin({a}[{of}])", f"{a}[{of}] ** 2", f"{a}[{of}] * {a}[i]"])
        self.line(f"{a}[{to}] {operator} {value}", depth)


LAST = "return np.sum(np.tanh(u) * v) + s"


def program(seed, kind=Writer, last=LAST):
    """A function of one array, and its source."""
    writer = kind(seed)
    for text in HELPERS if issubclass(kind, Wide) else ():
        writer.line(text, 0)
    for text in ("def f(x):", "    u = x.copy()", "    v = np.sin(2 * x)", "    s = x[0] * x[1]"):
        writer.line(text, 0)
    for _ in range(4):
        writer.statement(1)
    writer.line(f"    {last}", 0)
    text = "\n".join(writer.lines) + "\n"
    filename = f"<stores {kind.__name__} {seed} {last}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"np": np}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text
