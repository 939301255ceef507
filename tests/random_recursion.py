"""Random programs that call themselves, in loops and branches, and programs whose lists grow.

What a call works on is written before it and restored behind it; what changes in a loop has to be
kept for the reverse pass, on stacks that the calls inside the loop push onto as well.
"""

import linecache
import random

import numpy as np

MOST_CALLS = 2  # that stand in one program: each may run three times at each of four levels

NUMBERS = ("x[{i}]", "np.sin(x[{i}] + 0.3 * s)", "0.5 * s", "c[{i}] * 0.7", "x[{i}] * s",
           "np.cos(total)", "0.1 * p", "m * x[{i}]")  # fmt: skip
PLACES = ("p % len(x)", "order[p % n] % len(x)", "m % len(x)", "(p + m) % len(x)", "0", "-1")
CONDITIONS = ("total > 0.4", "p % 2 == 0", "m > 1", "s < 0.9", "order[m % n] > p")
COUNTS = ("2", "3", "m", "p % 3", "n - 2", "order[p % n] % 4")


class Program:
    """One program, from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.calls = 0
        self.made = 0

    def pick(self, options):
        return self.random.choice(options)

    def number(self):
        return self.pick(NUMBERS).replace("{i}", self.pick(PLACES))

    def name(self, start):
        self.made += 1
        return f"{start}{self.made}"

    def body(self, depth, *, grows=False):
        """The lines of a block."""
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(depth, grows=grows)
        return lines

    def statement(self, depth, *, grows):
        kind = self.random.random()
        if depth < 3 and kind < 0.45:
            return self.compound(depth, grows=grows)
        if grows and kind < 0.8:
            return [f"out.append({self.number()})"]
        if not grows and self.calls < MOST_CALLS and kind < 0.75:
            self.calls += 1
            call = "walk(x, m - 1, order, c)"
            return [self.pick((f"total += 0.4 * {call}", f"s = 0.3 * s + 0.2 * {call}",
                               f"total = total + {self.number()} * {call} * 0.3"))]  # fmt: skip
        return [
            self.pick((
                f"total += 0.3 * {self.number()}", f"s = 0.5 * s + 0.2 * {self.number()}",
                "p = order[p % n]", "p += 1", f"c[{self.pick(PLACES)}] = 0.6 * {self.number()}",
                "total = 0.8 * total",
            ))
        ]  # fmt: skip

    def compound(self, depth, *, grows):
        inside = [f"    {line}" for line in self.body(depth + 1, grows=grows)]
        kind = self.random.random()
        if kind < 0.4:
            return [f"for {self.name('j')} in range({self.pick(COUNTS)}):", *inside]
        if kind < 0.6:
            k = self.name("k")
            head = [f"{k} = 0", f"while {k} < {self.pick(COUNTS)} and total < 5.0:"]
            return [*head, f"    {k} += 1", *inside]
        if kind < 0.8:
            other = [f"    {line}" for line in self.body(depth + 1, grows=grows)]
            return [f"if {self.pick(CONDITIONS)}:", *inside, "else:", *other]
        held, at = self.name("held"), self.pick(("m % n", "n - 1", "0"))
        written = [line.removeprefix("    ") for line in inside]
        return [f"{held} = order[{at}]", f"order[{at}] = order[p % n]", *written,
                f"order[{at}] = {held}"]  # fmt: skip

    def loop_with_call(self):
        """What every program has: a loop over a range that calls itself, and changes a number."""
        self.calls += 1
        return ["for j0 in range(2):", "    before = p", *(f"    {s}" for s in self.body(3)),
                "    total += s * walk(x, m - 1, order, c) * 0.3", "    p = order[before % n]",
                "    s = -0.7 * s"]  # fmt: skip

    def source(self):
        first = ["n = len(order)", "p = order[m % n]", "s = 1.0 + 0.1 * m", "total = x[m % len(x)]"]
        inner = [*first, "if m <= 0:", f"    return {self.number()} * 0.5"]
        inner += [*self.body(1), *self.loop_with_call(), *self.body(2), "return total"]
        outer = ["order = np.array([1, 3, 0, 2, 4])", "c = 0.5 * x", *first, "out = []"]
        outer += [*self.body(0, grows=True), "for i in range(len(x)):", "    out.append(x[i] * s)",
                  "    for j in range(counts[i]):", "        out.append(total * 0.1 + j)",
                  "for v in out:", "    total += np.sin(v)"]  # fmt: skip
        outer += ["return total + walk(x, m, order, c) + np.sum(c) * 0.1"]
        parts = ["def walk(x, m, order, c):", *(f"    {line}" for line in inner), "", ""]
        parts += ["def f(x, m, counts):", *(f"    {line}" for line in outer), ""]
        return "\n".join(parts)


def recursive(seed):
    """A function of ``(x, m, counts)`` with a real value, and its source."""
    text = Program(seed).source()
    filename = f"<recursive {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"np": np}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text


def arguments(seed):
    """Arguments of different lengths: a stack that just fits one does not fit another."""
    draws = np.random.default_rng(seed)
    for length, m, most in ((3, 2, 3), (4, 3, 40), (2, 0, 200), (5, 1, 0)):
        yield draws.uniform(-1.0, 1.0, length), m, draws.integers(0, most + 1, length)
