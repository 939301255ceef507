"""Random programs whose results are stored and read again: recurrences, eliminations, views.

Every value stays between -3 and 3, whatever the seed: nothing overflows, and differences hold.
"""

import random

import numpy as np

LENGTH = 6
POINT = np.linspace(0.35, 1.3, LENGTH)

_HEAD = "def f(x):\n    y = np.sin(x)\n    z = x * 0.5\n    w = {view}\n    s = 0.0\n"
_VIEWS = ("y[::-1]", "y[1:]", "z[:]", "y", "z[::-1]", "np.cos(x)")


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.names = 0

    def index(self) -> str:
        """A place that is in all arrays: these have five elements at least."""
        if not self.counters or self.random.random() < 0.15:
            return str(self.random.randrange(5))
        i = self.random.choice(self.counters)
        return self.random.choice((i, i, i, f"{i} - 1", f"4 - {i}"))

    def element(self) -> str:
        """An element of an array."""
        return f"{self.random.choice('yyzzwx')}[{self.index()}]"

    def target(self) -> str:
        """An element to write into: often one that nobody else writes."""
        if self.counters and self.random.random() < 0.6:
            return f"{self.random.choice('yz')}[{self.counters[-1]}]"
        return f"{self.random.choice('yyzzw')}[{self.index()}]"

    def term(self) -> str:
        """A number between -1 and 1 for elements between -3 and 3."""
        a, b = self.element(), self.element()
        return self.random.choice(
            (f"np.tanh({a} * {b})", f"np.sin({a})", f"{a} * {b} / 9.0", f"{a} / (4.0 + {b})",
             f"np.exp(-{a} * {a})", f"({a} - {b}) / 6.0")
        )  # fmt: skip

    def statement(self, depth: int) -> None:
        """One statement."""
        pad = "    " * (depth + 1)
        target = self.target()
        kind = self.random.random()
        if kind < 0.25:
            self.lines.append(f"{pad}{target} = {self.term()}")
        elif kind < 0.45:
            self.names += 1
            t = f"t{self.names}"
            self.lines.append(f"{pad}{t} = {self.term()}")
            if self.random.random() < 0.3:
                self.statement(depth)
            self.lines.append(f"{pad}{target} = {t}")
            self.lines.append(f"{pad}s = s + np.sin({t} * {self.element()})")
        elif kind < 0.65:
            self.lines.append(f"{pad}{target} /= 4.0 + {self.element()}")
        elif kind < 0.75:
            self.lines.append(f"{pad}{target} *= {self.term()}")
        elif kind < 0.85:
            self.lines.append(
                f"{pad}{target} = np.tanh({target} - {self.element()} * {self.term()})"
            )
        elif depth < 3:
            self.block(depth)

    def block(self, depth: int) -> None:
        """A loop or a branch."""
        pad = "    " * (depth + 1)
        if self.counters and self.random.random() < 0.25:
            self.lines.append(f"{pad}if {self.element()} > 0.3:")
            self.several(depth + 1)
            return
        outer = self.counters[-1] if self.counters else None
        i = "ijkl"[len(self.counters)]
        spans = ["range(1, 5)", "range(4, 0, -1)", "range(1, 4)"]
        if outer is not None:
            spans = [f"range({outer} + 1, 5)", f"range(1, {outer})", f"range({outer}, 5)",
                     f"range(4, {outer}, -1)", "range(1, 5)"]  # fmt: skip
        self.lines.append(f"{pad}for {i} in {self.random.choice(spans)}:")
        self.counters.append(i)
        self.several(depth + 1)
        if self.random.random() < 0.5:  # an element that the loop may leave alone
            a = f"{self.random.choice('yz')}[{self.index()}]"
            self.lines.append(f"{pad}    {a} = np.tanh({a} - {self.element()} * {self.element()})")
        self.counters.pop()

    def several(self, depth: int) -> None:
        """Statements of a block."""
        before = len(self.lines)
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth)
        if len(self.lines) == before:
            self.lines.append("    " * (depth + 1) + f"s = s + {self.term()}")


def source(seed: int) -> str:
    """The source of a random program.

    Parameters
    ----------
    seed : int
        Which.
    """
    writer = _Writer(seed)
    for _ in range(2):
        writer.block(0)
    body = "\n".join(writer.lines)
    view = writer.random.choice(_VIEWS)
    end = "    return s + np.sum(y * x) + np.sum(z * z) + np.sum(w)"
    return _HEAD.format(view=view) + body + "\n" + end
