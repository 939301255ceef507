"""Random programs of branches, loops, jumps, stores, views and containers."""

PROLOGUE = """\
import math

import numpy as np


class Box:
    def __init__(self, w):
        self.w = w


def halved(y):
    if y > 1:
        return y * 0.5
    return y + 1


def shrunk(y):
    for j in range(3):
        y = y * 0.5
        if y < 0.2:
            break
    return y


def f(x, n, a, b):
    s, t, u = 1.0, x, 0.3
    k = i = 0
    m = None
    d = {"p": x}
    o = Box(0.25)
    e = o
    q = [x, 1.0]
    z = q
    v = a[1:]
"""
EPILOGUE = "    return s, t, u, a, b, v, q, z, d, o.w, e.w, k, i, m\n"
SIMPLE = {
    "number": "{name} = {number}",
    "update": "{name} {augmented} {number}",
    "store": "{array}[{place}] {assigned} {number}",
    "array": "{buffer} {assigned} {whole}",
    "view": "v = {view}",
    "swap": "{swap}",
    "pair": "s, t = {number}, {number}",
    "key": "d['p'] = {number}",
    "attribute": "o.w {assigned} {number}",
    "item": "q[{bit}] = {number}",
    "list": "{list}",
    "object": "{object}",
    "none": "m = {option}",
}
WORDS = {
    "name": ["s", "t", "u"],
    "augmented": ["+=", "-=", "*="],
    "assigned": ["=", "+=", "*="],
    "array": ["a", "b", "v"],
    "buffer": ["a", "b"],
    "place": ["0", "1", "-1", "k % 3", "i % 2", ":2", "1:"],
    "whole": ["a", "b", "a.copy()", "b * 2", "a + b", "np.sin(a)", "b[::-1]", "a * s", "a + x",
              "np.where(a > 0, a, b)", "np.zeros(len(a))"],
    "view": ["a[1:]", "b[:2]", "a[::-1]", "b", "a"],
    "swap": ["a, b = b, a", "s, t = t, s", "s, t, u = t, u, s"],
    "bit": ["0", "1"],
    "list": ["q = [s, t]", "q = [u, q[0]]", "z = q", "q, z = z, q", "z[0] = s"],
    "object": ["o = Box(s)", "o = Box(o.w)", "e = o", "e.w = t", "d = {'p': s}"],
    "span": ["range(n)", "range(3)", "range(n, 0, -1)", "range(1, n)"],
    "leaf": ["x", "s", "t", "u", "0.5", "1.5", "-0.7", "2", "a[0]", "b[-1]", "v[1]", "a[k % 3]"],
    "other": ["d['p']", "o.w", "q[0]", "q[1]", "n", "k", "i"],
    "test": ["m is None", "m is not None", "k % 2 == 0", "i % 2", "n > 2"],
}  # fmt: skip


class Author:
    """Writes one program.

    Parameters
    ----------
    draws : random.Random
        What it chooses by.
    """

    def __init__(self, draws):
        self.draws = draws
        self.loops = 0

    def pick(self, kind):
        return self.draws.choice(WORDS[kind])

    def number(self, depth=0):
        kind = self.draws.choice(["leaf", "leaf", "other", "both", "call", "choice"])
        if depth > 1 or kind in ("leaf", "other"):
            return self.pick("leaf" if depth > 1 else kind)
        inner = self.number(depth + 1)
        if kind == "both":
            return f"({inner} {self.draws.choice('+-*')} {self.number(depth + 1)})"
        if kind == "call":
            return f"{self.draws.choice(['math.sin', 'abs', 'halved', 'shrunk'])}({inner})"
        return f"({inner} if {self.condition(depth + 1)} else {self.number(depth + 1)})"

    def condition(self, depth=0):
        kind = self.draws.choice(["compare", "compare", "both", "not", "test"])
        if depth > 1 or kind == "compare":
            sign = self.draws.choice(["<", ">", "<=", ">="])
            return f"{self.number(2)} {sign} {self.number(2)}"
        if kind == "both":
            word = self.draws.choice(["and", "or"])
            return f"({self.condition(depth + 1)} {word} {self.condition(depth + 1)})"
        return f"not {self.condition(depth + 1)}" if kind == "not" else self.pick("test")

    def simple(self):
        template = self.draws.choice([*["number", "store"] * 3, *SIMPLE])
        words = {key: self.pick(key) for key in WORDS}
        option = self.draws.choice(["None", self.number()])
        return SIMPLE[template].format(**words, number=self.number(), option=option)

    def statement(self, depth, looping):
        """The lines of one statement."""
        kinds = ["simple"] * 8
        kinds += ["if", "if", "if", "for", "while"] if depth < 3 else []
        kinds += ["break", "continue"] if looping else []
        kinds += ["return"] if depth else []
        kind = self.draws.choice(kinds)
        if kind == "simple":
            return [self.simple()]
        if kind in ("break", "continue"):
            return [f"if {self.condition()}:", f"    {kind}"]
        if kind == "return":
            return [f"if {self.condition()}:", "    return s, t, a, b, o.w"]
        if kind == "if":
            lines = [f"if {self.condition()}:", *self.body(depth, looping)]
            if self.draws.random() < 0.5:
                lines += ["else:", *self.body(depth, looping)]
            return lines
        if kind == "for":
            head = f"for {self.draws.choice('ki')} in {self.pick('span')}:"
            lines = [head, *self.body(depth, looping=True)]
            if self.draws.random() < 0.2:
                lines += ["else:", *self.body(depth, looping)]
            return lines
        self.loops += 1
        name = f"c{self.loops}"
        head = f"while {name} < n and {self.condition(1)}:"
        return [f"{name} = 0", head, f"    {name} += 1", *self.body(depth, looping=True)]

    def body(self, depth, looping):
        lines = []
        for _ in range(self.draws.randint(1, 3)):
            lines += self.statement(depth + 1, looping)
        return [f"    {line}" for line in lines]

    def program(self, length):
        """The source of a module with a function ``f(x, n, a, b)``."""
        lines = []
        for _ in range(length):
            lines += self.statement(0, looping=False)
        return PROLOGUE + "".join(f"    {line}\n" for line in lines) + EPILOGUE
