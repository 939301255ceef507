"""Functions that workers differentiate: imported there by name, or pickled by value."""

import os
import time
from pathlib import Path

import numpy as np

TABLE = np.linspace(0.0, 1.0, 40)
BUFFER = np.zeros(80)
SEEN = []
GENERATOR = np.random.default_rng(0)
COUNT = 0


class Refused(Exception):  # noqa: N818
    """An exception of the user's."""


def waves(x):
    """Many numbers of many."""
    return np.sin(x[:40] * TABLE[:, None]).sum(1) * np.exp(-x[40:])


def matrix_product(x):
    """BLAS, whose roundings depend on how many lanes travel together."""
    return np.outer(x, x) @ np.cos(x)


def few(x):
    """Few numbers of many, for rows."""
    return np.array([x @ x, np.sum(np.sin(x) * x[::-1])])


def tree(p):
    """A composite of one."""
    return {"a": p["u"] * p["v"][0], "b": [np.sum(p["u"]), p["v"] @ p["v"]]}


def complex_valued(x):
    """Complex numbers of real ones."""
    return np.exp(1j * x) * x.sum()


def branching(x):
    """A loop that cannot be traced: recorded in reverse mode."""
    y = x
    while float(np.sum(y)) < 1e3:
        y = y * 1.5
    return y * x


def with_aux(x):
    """With aux."""
    return x * x, {"n": x.size}


def number(x):
    """A number, for Hessians."""
    return np.sum(np.sin(x) * x[::-1] ** 2)


def refuse(x):
    """Raises."""
    if x[3] > 0:
        raise Refused(f"{x[3]} is refused")
    return x


def writes_array(x):
    """Scratch memory outside."""
    BUFFER[: x.size] = x * 2
    return BUFFER[: x.size] * x


def appends(x):
    """A list outside."""
    SEEN.append(1)
    return x * x


def counts(x):
    """A global variable."""
    global COUNT
    COUNT += 1
    return x * x


def draws(x):
    """NumPy's global generator."""
    return x * np.random.rand()


def draws_own(x):
    """A generator of its own."""
    return x * GENERATOR.random()


def scratch(x):
    """Memory of its own: nothing that others see."""
    out = np.empty_like(x)
    out[:] = x * x
    return out


class Slow:
    """Takes its time, and notes in a file that it ran."""

    def __init__(self, path, seconds=0.0, kill_at=None):
        self.path = str(path)
        self.seconds = seconds
        self.kill_at = kill_at

    def __call__(self, x):
        with Path(self.path).open("a") as file:
            file.write("x")
            file.flush()
            count = file.tell()  # behind what was appended: each run has a number of its own
        if count == self.kill_at:
            os.kill(os.getpid(), 9)
        time.sleep(self.seconds)
        return waves(x)

    def runs(self):
        """How often it ran."""
        return Path(self.path).stat().st_size if Path(self.path).exists() else 0


def square_loss(s, part):
    """Of an array."""
    return np.sum((s * part) ** 2)


def bag_loss(s, part):
    """Of a partition of a bag, which is a list."""
    return sum((s * x) ** 2 for x in part)


def vector_loss(w, part):
    """Not a number."""
    return w * part


def drawn_loss(w, part):
    """Draws."""
    return np.sum(w) * np.random.rand()


def refuse_part(s, part):
    """Raises."""
    raise Refused(str(s))


class SlowLoss(Slow):
    """The loss that takes its time."""

    def __call__(self, s, part):
        super().__call__(TABLE.repeat(2))
        return square_loss(s, part)
