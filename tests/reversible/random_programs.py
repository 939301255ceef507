"""Random well-formed reversible programs: source text, with every kind of statement."""

import linecache
import random

import numpy as np

from fwdad.reversible import reversible

SCALARS = ("a", "b", "c")
ARRAYS = ("x", "y")
HEADER = (
    "import numpy as np\n"
    "from fwdad.reversible import ancilla, compute, cond, copy_out, free, rotate\n"
)


class Generator:
    """Writes one program; ``kinds`` counts the statements by kind."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.depth = 1
        self.count = 0
        self.kinds = {}
        self.indices = []
        self.extra = []  # ancillas that can be read

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def note(self, kind):
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    def fresh(self, name):
        self.count += 1
        return f"{name}{self.count}"

    def index(self):
        choices = ["0", "1", "2", "-1", *self.indices]
        return self.random.choice(choices)

    def place(self, avoid=()):
        """A number that can be read or updated."""
        options = [s for s in (*SCALARS, *self.extra) if s not in avoid]
        options += [f"{v}[{self.index()}]" for v in ARRAYS if v not in avoid]
        return self.random.choice(options)

    def expression(self, avoid):
        """A number that does not read some variables, bounded on bounded values."""
        p, q = self.place(avoid), self.place(avoid)
        forms = [
            f"0.3 * {p}",
            f"np.sin({p} + {q})",
            f"0.2 * np.tanh({p}) * np.cos({q})",
            f"0.1 * {p} / (1.0 + {q} ** 2)",
            f"0.1 * np.exp(-({p} ** 2)) + 0.05",
        ]
        return self.random.choice(forms)

    def root(self, place):
        return place.split("[")[0]

    def block(self, size):
        before = len(self.lines)
        for _ in range(self.random.randint(1, size)):
            self.statement(size - 1)
        if len(self.lines) == before:
            self.line("pass")

    def statement(self, size):
        simple = [self.update, self.update, self.update, self.array_update, self.swap, self.flip]
        simple += [self.rotate]
        nested = [self.loop, self.branch, self.scope, self.computed, self.while_loop]
        self.random.choice(simple + (nested if size > 0 else []))(size)

    def update(self, _size):
        self.note("update")
        p = self.place()
        self.line(f"{p} {self.random.choice('+-')}= {self.expression((self.root(p),))}")

    def array_update(self, _size):
        self.note("array")
        v, w = self.random.sample(ARRAYS, 2)
        s = self.place((*ARRAYS,))
        forms = [
            f"{v} += 0.2 * np.sin({w}) * {s}",
            f"{v}[1:] -= 0.1 * {w}[:-1] * {w}[1:]",
            f"{v}[::2] += 0.1 * {s}",
        ]
        self.line(self.random.choice(forms))

    def swap(self, _size):
        self.note("swap")
        a, b = self.random.sample(SCALARS, 2)
        forms = [f"{a}, {b} = {b}, {a}", f"{a}, x[1] = x[1], {a}", "y[0], y[2] = y[2], y[0]"]
        self.line(self.random.choice([*forms, "x, y = y, x"]))

    def flip(self, _size):
        self.note("flip")
        v = self.random.choice([*SCALARS, "x", "y[1]"])
        self.line(f"{v} = -{v}")

    def rotate(self, _size):
        self.note("instruction")
        a, b = self.random.sample(SCALARS, 2)
        inverse = self.random.random() < 0.5
        name = "(~rotate)" if inverse else "rotate"
        self.line(f"{name}({a}, {b}, {self.expression(SCALARS)})")

    def loop(self, size):
        self.note("for")
        i = self.fresh("i")
        over = self.random.choice(["range(2)", "range(3)", "range(2, -1, -1)", "range(0, 3, 2)"])
        self.line(f"for {i} in {over}:")
        self.inside(i, size)

    def inside(self, index, size):
        self.depth += 1
        self.indices.append(index)
        self.block(size)
        self.indices.pop()
        self.depth -= 1

    def while_loop(self, size):
        self.note("while")
        n = self.fresh("n")
        self.line(f"{n} = ancilla(0)")
        self.line(f"while cond({n} < 2, {n} > 0):")
        self.depth += 1
        self.block(size)
        self.line(f"{n} += 1")
        self.depth -= 1
        self.line(f"free({n}, 2)")

    def branch(self, size):
        """A branch on a number that nothing inside changes."""
        self.note("if")
        t = self.fresh("t")
        e = self.expression(())
        self.line(f"{t} = ancilla(0.0)")
        self.line("with compute():")
        self.depth += 1
        self.line(f"{t} += {e}")
        self.line("with copy_out():")
        self.depth += 1
        self.line("pass")
        self.depth -= 2
        self.line(f"if {t} > -1.0:")
        self.depth += 1
        self.block(size)
        self.depth -= 1
        if self.random.random() < 0.5:
            self.line("else:")
            self.depth += 1
            self.block(size)
            self.depth -= 1
        self.line(f"free({t}, 0.0)")

    def scope(self, size):
        """An ancilla that begins with a value of the program's and is given back."""
        self.note("ancilla")
        t = self.fresh("t")
        k = self.random.choice(SCALARS)
        self.line(f"{t} = ancilla({k})")
        self.line(f"x[0] += 0.2 * np.sin({t})")
        self.line(f"free({t}, {k})")

    def computed(self, size):
        self.note("compute")
        t = self.fresh("t")
        self.line("with compute():")
        self.depth += 1
        self.line(f"{t} = ancilla(0.0)")
        self.extra.append(t)
        for _ in range(2):
            self.line(f"{t} += {self.expression((t,))}")
        if self.random.random() < 0.3:
            self.update(0)
        self.line("with copy_out():")
        self.depth += 1
        p = self.place((t,))
        self.line(f"{p} += np.sin({t})")
        self.depth -= 2
        self.extra.remove(t)


def make(seed, **options):
    """A random reversible function of (a, b, c, x, y), its text, and what it is made of."""
    g = Generator(seed)
    for _ in range(g.random.randint(2, 4)):
        g.statement(2)
    text = HEADER + "\n".join(["def program(a, b, c, x, y):", *g.lines]) + "\n"
    filename = f"<random reversible program {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    space = {"__name__": f"random_{seed}"}
    exec(compile(text, filename, "exec"), space)
    return reversible(space["program"], **options), text, g.kinds


def arguments(seed):
    """Its arguments."""
    rng = np.random.default_rng(seed)
    return (*rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3))
