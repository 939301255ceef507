"""Random programs that read and store by indices of every kind, also ones out of range."""

PROLOGUE = """\
import numpy as np

C1 = np.cos(np.arange(5.0))
C2 = np.sin(np.arange(12.0)).reshape(3, 4)
C3 = np.cos(np.arange(24.0) / 3.1).reshape(2, 3, 4)
W = np.linspace(0.4, 0.9, 43)
ONE, TWO, LAST = np.int64(1), np.array(2), np.array(-1, dtype=np.int32)
THREE, BYTE = 3, np.uint8(2)
HALF, MORE, WHOLE = np.array(0.5), np.float64(1.3), np.array(2)
PLACES, GRID = np.array([0, -1, 2, 0]), np.array([[1, 0], [-2, 2]])
ODD6, ODD3 = np.arange(6) % 2 == 1, np.array([True, False, True])


"""
SHAPES = {"v": (6,), "x": (6,), "m": (3, 4), "t": (2, 3, 4), "C1": (5,), "C2": (3, 4),
          "C3": (2, 3, 4)}  # fmt: skip
KNOWN = {"ONE": 1, "TWO": 2, "LAST": -1, "THREE": 3, "BYTE": 2}
SPANS = {"range(4)": (0, 3), "range(3, 0, -1)": (1, 3), "range(1, 6, 2)": (1, 5), "PLACES": (-1, 2),
         "reversed(range(3))": (0, 2), "[0, 2, -1]": (-1, 2), "range(THREE)": (0, 2)}  # fmt: skip
END = "return np.concatenate([v, m.ravel(), t.ravel(), np.array([s])])"


class Author:
    """Writes one program: ``g(x)`` returns an array, ``f(x)`` a number.

    Parameters
    ----------
    draws : random.Random
        What it chooses by.
    out_of_range : float
        How often an index need not be one of the array.
    """

    def __init__(self, draws, out_of_range=0.01):
        self.draws = draws
        self.out_of_range = out_of_range
        self.lines, self.depth = [], 1
        self.counters = {}  # by name, the least and the greatest value
        self.made = 0

    def pick(self, options):
        return self.draws.choice(list(options))

    def say(self, *lines):
        self.lines += ["    " * self.depth + line for line in lines]

    # -- indices

    def whole(self, n):
        """A whole number, for an axis of n elements."""
        if self.draws.random() < self.out_of_range:
            return self.pick((str(n), str(-n - 1), "9", "TWO + THREE + 4", "-7 - ONE"))
        forms = [str(self.pick(range(-n, n)))] * 3
        forms += [name for name, k in KNOWN.items() if -n <= k < n]
        forms += [f"int(np.argmax(v)) % {n}", f"np.argmin(m[0]) % {n}"] if n > 1 else []
        for k, (least, most) in self.counters.items():
            forms += [
                f"-1 - {k} % {n}",
                f"({k} + {self.pick(range(5))}) % {n}",
                f"{k} % {n} - {n}",
            ] * 2
            linear = {f"{k}": (least, most), f"{k} - 1": (least - 1, most - 1), f"-{k}": (-most, -least),
                      f"{k} * 2 - 1": (2 * least - 1, 2 * most - 1), f"{n} - {k}": (n - most, n - least),
                      f"{k} // 2": (least // 2, most // 2), f"-1 - {k}": (-1 - most, -1 - least),
                      f"{k} + ONE": (least + 1, most + 1), f"{k} - TWO": (least - 2, most - 2)}  # fmt: skip
            forms += [form for form, (a, b) in linear.items() if -n <= a and b < n] * 2
        return self.pick(forms)

    def bound(self, n):
        forms = ["", "", str(self.pick(range(-n - 2, n + 3))), *KNOWN]
        forms += [f"{k} + {self.pick((-2, 0, 1))}" for k in self.counters] * 2
        return self.pick(forms)

    def cut(self, n):
        step = self.pick(("", "", "1", "2", "-1", "-1", "-2", "3", "THREE", "LAST"))
        found = f"{self.bound(n)}:{self.bound(n)}"
        return f"{found}:{step}" if step else found

    def several(self, n):
        """An array of places, or of truth values."""
        fits = [self.pick(range(-n, n)) for _ in range(self.pick((1, 2, 3)))]
        forms = [str(fits), f"np.array({fits})", f"({fits[0]} + np.arange(2)) % {n}",
                 f"PLACES % {n}", f"GRID % {n}"]  # fmt: skip
        forms += ["PLACES", "GRID"] if n >= 3 else []
        forms += [f"np.array([{k} % {n}, 0])" for k in self.counters]
        forms += {
            6: ["ODD6", "~ODD6", "v > 0.713", "np.argsort(v, kind='stable')[:3]"],
            3: ["ODD3", "m[:, 1] > 0.313"],
        }.get(n, [])
        return self.pick(forms)

    def index(self, name):
        """An index of an array, and whether it is of whole numbers and slices only."""
        shape = SHAPES[name]
        if self.draws.random() < 0.08:
            return self.pick(
                (("...", True), ("()", True), ("None", True), (f"{name} > 0.571", False))
            )
        axes = shape[: self.pick(range(1, len(shape) + 1))]
        kinds = [self.pick((self.whole, self.whole, self.cut)) for _ in axes]
        basic = self.draws.random() < 0.7
        if not basic:
            kinds[self.pick(range(len(kinds)))] = self.several
        parts = [kind(n) for kind, n in zip(kinds, axes, strict=True)]
        if len(axes) < len(shape) and self.draws.random() < 0.4:
            last = self.pick((self.whole, self.cut))(shape[-1])
            parts = [*parts[: len(shape) - 1], "...", *([last] if len(parts) < len(shape) else [])]
        if self.draws.random() < 0.12:
            parts.insert(self.pick(range(len(parts) + 1)), "None")
        if len(parts) == 1 and self.draws.random() < 0.1:
            parts.append("")
        return ", ".join(parts), basic

    # -- statements

    def number(self):
        one = self.pick(("v", "m", "t", "x"))
        every = ", ".join(self.whole(n) for n in SHAPES[one])
        forms = ["s", f"{one}[{every}]", f"{one}[{every}]", "HALF", "MORE", "WHOLE", "0.7", "HALF[()]",
                 f"C1[{self.whole(5)}]", f"HALF * x[{self.whole(6)}]", f"np.sin({one}[{every}])",
                 *[f"0.1 * {k}" for k in self.counters]]  # fmt: skip
        return self.pick(forms)

    def read(self):
        name = self.pick(SHAPES)
        index, _ = self.index(name)
        found = f"{name}[{index}]"
        if len(SHAPES[name]) > 1 and self.draws.random() < 0.2:
            found = f"{name}[{self.whole(SHAPES[name][0])}][{self.pick(('0', '-1', '1:', '::-1', 'TWO', '...'))}]"
        self.say(
            f"s = np.tanh(s + 0.3 * np.sum({self.pick(('{}', 'np.sin({})', '{} * MORE')).format(found)}))"
        )

    def store(self):
        name = self.pick(("v", "v", "m", "m", "t"))
        index, _ = self.index(name)
        other = {"v": ("x", "v"), "m": ("C2", "m"), "t": ("C3", "t")}[name]
        values = [
            self.number(),
            self.number(),
            f"0.5 * {self.pick(other)}[{index}]",
            f"s * {name}[{index}]",
        ]
        self.say(f"{name}[{index}] {self.pick(('=', '=', '+=', '*=', '-='))} {self.pick(values)}")

    def view(self):
        """A store through a view."""
        name = self.pick(("v", "m", "t"))
        index, basic = self.index(name)
        if not basic:
            self.read()
            return
        self.made += 1
        self.say(f"r{self.made} = {name}[{index}]")
        self.say(
            f"if np.ndim(r{self.made}):", f"    r{self.made}[...] = {self.number()} * r{self.made}"
        )

    def block(self, head):
        self.say(head)
        self.depth += 1
        for _ in range(self.pick((1, 2))):
            self.statement()
        self.depth -= 1

    def loop(self):
        k, span = "kjl"[len(self.counters)], self.pick(SPANS)
        self.counters[k] = SPANS[span]
        self.block(f"for {k} in {span}:")
        del self.counters[k]

    def branch(self):
        tests = ["s > 0.313", "x[1] > 0.2", "TWO > ONE", *[f"{k} % 2" for k in self.counters]]
        self.block(f"if {self.pick(tests)}:")
        if self.pick((True, False)):
            self.block("else:")

    def statement(self):
        kinds = [self.read] * 3 + [self.store] * 4 + [self.view]
        kinds += [self.loop] * 2 + [self.branch] if self.depth < 3 else []
        self.pick(kinds)()

    def program(self, length):
        """The source of a module."""
        self.say(
            "v, s = np.sin(x), x[0] * 0.5", "m = np.outer(x[:3], x[2:])", "t = C3 * m + 0.1 * x[1]"
        )
        for _ in range(length):
            self.statement()
        self.say(END)
        lines = [
            "def g(x):",
            *self.lines,
            "",
            "",
            "def f(x):",
            "    return np.dot(np.sin(g(x)), W)",
        ]
        return PROLOGUE + "\n".join(lines) + "\n"
