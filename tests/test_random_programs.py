"""Random NumPy programs: their derivatives against differences, at every chunk size.

Small programs are written statement by statement: views, stores, overlaps, loops, branches,
closures, helpers, objects, nested derivatives. Each is written to a file, because the builder
wants source, and is run as a user would run it. The plain program is the only reference.
"""

import copy
import importlib.util
import itertools
import linecache
import random
import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import fwdad

PROLOGUE = """\
import functools
import math
import operator

import numpy as np

import fwdad

N = {n}
KEYS = np.arange(float(N))
INDEX = np.arange(N)
G = np.linspace(0.3, 0.9, N)
H = np.cos(np.arange(float(N * N))).reshape(N, N)


class Box:
    scale = 0.7

    def __init__(self):
        self.work = np.linspace(-0.5, 0.5, N)
        self.level = 0.4
        self.kept = []

    def update(self, v):
        self.work[:-1] = v[1:] * self.scale
        self.level = self.level + 0.1 * v[0]
        self.kept.append(v[-1])
        return self.work

    @property
    def total(self):
        return self.work.sum() * self.level + sum(self.kept)

    def __call__(self, a, b=0.5):
        return math.sin(a) * b + self.level


box = Box()


def shift(v, by=1):
    v[by:] = 0.5 * v[:-by]
    return v


def walk(v):
    held = 0.0
    for a in v:
        held = math.tanh(held + a)
        yield held


def damp(a, k):
    return a if k == 0 else damp(0.5 * a + 0.1, k - 1)


def scaled(function):
    @functools.wraps(function)
    def wrapper(*args):
        return 0.5 * function(*args)

    return wrapper


@scaled
def mixed(a, b):
    return a * b + np.cos(a)

"""


class Author:
    """Writes one program. Variables are scalars, vectors of length N and N by N matrices."""

    def __init__(self, pick, n):
        self.pick = pick
        self.n = n
        self.lines = []
        self.depth = 1
        self.names = {"s": ["x[0]", "c0"], "v": ["x", "p", "G"], "m": ["H"]}
        self.counter = itertools.count(1)

    # -- pieces

    def new(self, kind):
        return f"{kind}{next(self.counter)}"

    def var(self, kind):
        return self.pick(self.names[kind])

    def index(self):
        return str(self.pick(range(-self.n, self.n)))

    def places(self):
        """An index of N places: a permutation, or one that repeats."""
        return f"[{', '.join(self.index() for _ in range(self.n))}]"

    def mask(self):
        if self.pick(range(3)) == 0:
            return f"({self.var('v')} > {self.pick((0.123, -0.217))})"
        return f"np.array([{', '.join(self.pick(('True', 'False')) for _ in range(self.n))}])"

    def parts(self):
        """Two slices of one length."""
        length = self.pick(range(self.n + 1))
        return self.part(length), self.part(length)

    def part(self, length):
        start = self.pick(range(self.n - length + 1))
        stop = start + length
        forms = [f"{start}:{stop}", f"{stop - 1}:{start - 1 if start else ''}:-1"]
        if length == (self.n + 1) // 2:
            forms.append("::2")
        if stop == self.n and length:
            forms.append(f"{start - self.n}:")
        return self.pick(forms if length else forms[:1])

    # -- expressions

    def scalar(self, deep=2):
        v, i, m = self.var("v"), self.index(), self.var("m")
        forms = [
            f"{v}[{i}]",
            self.var("s"),
            f"{m}[{i}, {self.index()}]",
            f"{m}[{i}][{self.index()}]",
        ]
        if deep:
            a, b = self.scalar(deep - 1), self.scalar(deep - 1)
            u = self.vector(deep - 1)
            forms += [
                f"({a} + {b})",
                f"({a} - 0.5 * {b})",
                f"math.sin({a} * {b})",
                f"(np.tanh({a}) * {b})",
                f"({a} / (2.0 + {b} ** 2))",
                f"(-{a})",
                f"(+{a})",
                f"{u}.sum()",
                f"np.tanh({u} @ {v})",
                f"np.max(0.4 * np.tanh({u}) + KEYS)",
                f"float(np.mean({u}))",
                f"sum(math.tanh(t) for t in {u})",
                f"math.fsum({u})",
                f"mixed({a}, {b})",
                f"damp({a}, 2)",
                f"box({a}, b={b})",
                "box.total",
                f"({a} if {b} > 0.131 else 0.3 * {b})",
                f"functools.reduce(lambda a, b: 0.5 * a * b + a, {u}, {a})",
                f"max(0.2 * math.tanh({a}), 2.0 + math.tanh({b}))",
                f"{v}.item({self.pick(range(self.n))})",
                f"[{a}, {b}][{self.pick((0, 1))}]",
                f"np.einsum('i,ij,j', {v}, 0.2 * {m}, {u})",
                f"fwdad.derivative(lambda t: math.sin(t * {a}) * {b}, {b})",
                f"fwdad.derivative(lambda t: np.sum(np.tanh(t * {v})), {a})",
                f"(lambda q, r={b}: q * np.cos(r))({a})",
            ]
        return self.pick(forms)

    def vector(self, deep=2):
        v, m, i = self.var("v"), self.var("m"), self.index()
        forms = [v, f"{m}[{i}]", f"{m}[:, {i}]", f"{v}[::-1]", f"{m}.T[{i}]", f"{m}.diagonal()"]
        if deep:
            a, u, w = self.scalar(deep - 1), self.vector(deep - 1), self.vector(deep - 1)
            k = self.matrix(deep - 1)
            one, other = self.parts()
            forms += [
                f"({u} + {w})",
                f"({u} * 0.5 * {w})",
                f"({a} - {u})",
                f"({u} / (1.5 + {w} ** 2))",
                f"(-{u})",
                f"(+{u})",
                f"np.sin({u})",
                f"np.tanh({u} * {a})",
                f"(0.3 * {k} @ {u})",
                f"(0.3 * {u} @ {k})",
                f"np.where({self.mask()}, {u}, {w})",
                f"np.roll({u}, {self.pick((1, 2, -1))})",
                f"np.cumsum({u})",
                f"{u}[{self.places()}]",
                f"{u}[np.array({self.places()})]",
                f"np.take({u}, {self.places()}, mode='wrap')",
                f"{k}[INDEX, {self.places()}]",
                f"np.array([{', '.join(self.scalar(deep - 1) for _ in range(self.n))}])",
                f"np.concatenate([{u}[:1], {w}[1:]])",
                f"np.hstack([{a}, {u}[1:]])",
                f"(0.5 * {k}.sum(axis={self.pick((0, 1, -1))}))",
                f"np.array([t * {a} for t in {u}])",
                f"np.array([s * t for s, t in zip({u}, {w})])",
                f"np.array([s + t for s, t in 0.5 * {k}[:, :2]])",
                f"np.array(list(map(operator.mul, {u}, {w})))",
                f"np.array(list(walk({u})))",
                f"np.array([[{u}, {w}], [{w}, {v}]])[{self.pick((0, 1))}, {self.pick((0, 1))}]",
                f"np.sort(0.4 * np.tanh({u}) + KEYS[::-1])",
                f"shift({u}.copy())",
                f"shift({u} * 1.0, by=2)" if self.n > 2 else f"shift({u} * 1.0)",
                f"(np.dot({k}, {u}) * 0.2)",
                f"np.einsum('ij,j->i', {k}, 0.2 * {u})",
                f"(np.convolve({u}, {w})[:N] * 0.3)",
                f"np.add.accumulate({u})",
                f"np.interp({u}, KEYS - 1.0, {w})",
                f"np.ravel({k}, order='{self.pick(('C', 'F'))}')[{self.pick(range(self.n))}:][:N]",
                f"fwdad.jvp(lambda q: np.sin(q) * {u}, {w}, {v})[1]",
                f"fwdad.grad(lambda q: np.sum(np.tanh(q * {u})))({w})",
                f"(fwdad.jacobian(lambda q: q * np.sum(q), {u}, chunk=2) @ {w} * 0.1)",
                f"np.clip({u}, -0.413, 0.617)",
                f"np.repeat({u}, 2)[1 : N + 1]",
                f"np.linalg.solve(5.0 * np.eye(N) + np.tanh({k}), {u})",
                f"np.asarray({u}).reshape(1, N)[0]",
                f"np.apply_along_axis(lambda r: r * r[0], 0, {u})",
                f"np.concatenate([{u}[{one}], {w}[{other}], {u}])[:N]",
            ]
        return self.pick(forms)

    def matrix(self, deep=2):
        m = self.var("m")
        forms = [m, f"{m}.T", f"{m}[::-1]", f"{m}[:, ::-1]"]
        if deep:
            u, w, k, q = (
                self.vector(deep - 1),
                self.vector(deep - 1),
                self.matrix(deep - 1),
                self.matrix(deep - 1),
            )
            forms += [
                f"np.outer({u}, 0.5 * {w})",
                f"({k} + 0.5 * {q})",
                f"({k} * np.tanh({u}))",
                f"({k} * np.tanh({u})[:, None])",
                f"(0.2 * {k} @ {q})",
                f"np.diag({u})",
                f"np.stack([{', '.join([u, w, u, u][: self.n])}], axis={self.pick((0, 1))})",
                f"np.sin({k})",
                f"{k}[{self.places()}]",
                f"{k}[:, {self.places()}]",
                f"({self.scalar(deep - 1)} * {k})",
                f"np.where({self.mask()}, {k}, {q})",
                f"np.where({self.mask()}[:, None], {k}, 0.0)",
                f"{k}.ravel(order='{self.pick(('C', 'F', 'A', 'K'))}').reshape(N, N)",
                f"np.tril({k})",
                f"{k}.swapaxes(0, 1)",
                f"np.broadcast_to({u}, (N, N))",
                f"np.array([list({u})] * N)",
                f"np.vstack([{u}] * N)",
                f"(np.cumsum({k}, axis={self.pick((0, 1))}) * 0.5)",
            ]
        return self.pick(forms)

    # -- statements

    def say(self, line):
        self.lines.append("    " * self.depth + line)

    def block(self, head, count=2):
        self.say(head)
        self.depth += 1
        kept = {kind: list(names) for kind, names in self.names.items()}
        for _ in range(count):
            self.statement(nested=True)
        self.names = kept
        self.depth -= 1

    def fresh(self, kind):
        """A variable of one's own to write into."""
        name = self.new(kind)
        if kind == "v":
            makers = ["np.zeros(N)", "np.ones(N)", "np.empty(N)", f"{self.vector(1)}.copy()",
                      f"np.zeros_like({self.var('v')})", f"np.full(N, {self.scalar(1)})",
                      f"1.0 * {self.vector(1)}", f"np.array({self.vector(0)})"]  # fmt: skip
            made = self.pick(makers)
            self.say(f"{name} = {made}")
            if made == "np.empty(N)":
                self.say(f"{name}[...] = {self.pick(('0.25', self.vector(1)))}")
        else:
            makers = ["np.zeros((N, N))", f"{self.matrix(1)}.copy()", "np.asfortranarray(H)",
                      f"np.array({self.matrix(0)}, order='F')",
                      f"1.0 * {self.matrix(1)}"]  # fmt: skip
            self.say(f"{name} = {self.pick(makers)}")
        self.names[kind].append(name)
        return name

    def statement(self, *, nested=False):
        kinds = [
            self.assign_scalar, self.assign_vector, self.assign_matrix, self.view_vector,
            self.view_matrix, self.store_vector, self.store_vector, self.store_matrix,
            self.store_matrix, self.in_place, self.in_place, self.write_function, self.into_out,
            self.swap, self.containers, self.objects, self.unpack,
        ]  # fmt: skip
        if not nested:
            kinds += [self.loop, self.loop, self.branch, self.attempt, self.closure, self.generator]
        self.pick(kinds)()

    def assign_scalar(self):
        name, value = self.new("s"), self.scalar()
        self.say(f"{name} = {value}")
        self.names["s"].append(name)

    def assign_vector(self):
        self.fresh("v")
        name, value = self.new("v"), self.vector()
        self.say(f"{name} = np.array({value})")
        self.names["v"].append(name)

    def assign_matrix(self):
        self.fresh("m")
        name, value = self.new("m"), self.matrix()
        self.say(f"{name} = np.array({value})")
        self.names["m"].append(name)

    def view_vector(self):
        m, v, name = self.var("m"), self.var("v"), self.new("v")
        i = self.index()
        views = [
            v,
            f"{m}[{i}]",
            f"{m}[:, {i}]",
            f"{m}.T[{i}]",
            f"{m}[::-1, {i}]",
            f"{m}[{i}, ::-1]",
            f"{m}.reshape(-1)[1 : N + 1]",
            f"{m}[1:, {i}][:1] + {v}",
            f"{v}[::-1]",
            f"{v}.reshape(N, 1)[:, 0]",
            f"np.ravel({v})",
            f"{v}.view()",
            f"np.asarray({v})",
            f"np.atleast_2d({v})[0]",
            f"{v}.squeeze()",
        ]
        self.say(f"{name} = {self.pick(views)}")
        self.names["v"].append(name)

    def view_matrix(self):
        m, name = self.var("m"), self.new("m")
        views = [
            m,
            f"{m}.T",
            f"{m}[::-1]",
            f"{m}[:, ::-1]",
            f"{m}.reshape(N, N)",
            f"{m}[None][0]",
            f"np.transpose({m})",
            f"np.flip({m})",
            f"np.swapaxes({m}, 0, 1)",
            f"np.rot90({m})",
        ]
        self.say(f"{name} = {self.pick(views)}")
        self.names["m"].append(name)

    def store_vector(self):
        v, i = self.var("v"), self.index()
        one, other = self.parts()
        mask = self.mask()
        forms = [
            f"{v}[{i}] = {self.scalar()}",
            f"{v}[{one}] = {self.vector(1)}[{other}]",
            f"{v}[{one}] = {v}[{other}]",
            f"{v}[{one}] = {self.scalar(1)}",
            f"{v}[:] = {self.vector()}",
            f"{v}[::-1] = {self.vector(1)}",
            f"{v}[...] = {self.scalar()}",
            f"{v}[{mask}] = {self.scalar(1)}",
            f"q = {mask}; {v}[q] = {self.vector(1)}[q]",
            f"{v}[{self.places()}] = {self.vector(1)}",
            f"{v}[{one}] = list({self.vector(1)}[{other}])",
            f"{v}[:] = [{', '.join(self.scalar(1) for _ in range(self.n))}]",
            f"{v}.fill({self.scalar(1)})",
            f"{v}.flat[{i}] = {self.scalar(1)}",
            f"{v}.put({self.places()}, {self.vector(1)})",
            f"{v}.__setitem__({i}, {self.scalar(1)})",
            f"operator.setitem({v}, {i}, {self.scalar(1)})",
        ]
        self.say(self.pick(forms))

    def store_matrix(self):
        m, i, j = self.var("m"), self.index(), self.index()
        one, other = self.parts()
        forms = [
            f"{m}[{i}] = {self.vector()}",
            f"{m}[:, {j}] = {self.vector()}",
            f"{m}[{i}, {j}] = {self.scalar()}",
            f"{m}[{i}][{j}] = {self.scalar(1)}",
            f"{m}[:] = {self.matrix(1)}",
            f"{m}[:, ::-1] = {self.matrix(1)}",
            f"{m}.T[{i}] = {self.vector(1)}",
            f"{m}[{one}] = {self.matrix(1)}[{other}]",
            f"{m}[{one}, {j}] = {self.vector(1)}[{other}]",
            f"{m}[:, {one}] = {m}[:, {other}]",
            f"{m}[{self.mask()}] = {self.vector(1)}",
            f"{m}[INDEX, {self.places()}] = {self.vector(1)}",
            f"{m}[{self.places()}] = {self.matrix(1)}",
            f"{m}[{self.places()}, {j}] = {self.vector(1)}",
            f"{m}.flat[1 : N + 1] = 1.0 * {self.vector(1)}",
            f"{m}[np.ix_([0, 1], [1, 0])] = {self.matrix(1)}[:2, :2]",
            f"{m}[...] = {self.vector(1)}",
            f"{m}[{m} > 0.317] = {self.scalar(1)}",
            f"{m}.ravel()[{i}] = {self.scalar(1)}",
        ]
        self.say(self.pick(forms))

    def in_place(self):
        v, m, i = self.var("v"), self.var("m"), self.index()
        one, other = self.parts()
        op = self.pick(("+=", "-=", "*="))
        forms = [
            f"{v} {op} {self.vector()}",
            f"{v} {op} {self.scalar()}",
            f"{v} /= 1.5 + {self.vector(1)} ** 2",
            f"{v} {op} {v}[::-1]",
            f"{v}[{one}] {op} {self.vector(1)}[{other}]",
            f"{v}[{one}] {op} {v}[{other}]",
            f"{v}[{i}] {op} {self.scalar()}",
            f"{v}[{self.places()}] {op} {self.vector(1)}",
            f"{v}[{self.mask()}] {op} {self.scalar(1)}",
            f"{m} {op} {self.vector(1)}",
            f"{m}[{i}] {op} {self.vector(1)}",
            f"{m}[:, {i}] {op} {self.scalar(1)}",
            f"{m} {op} 0.5 * {m}.T",
            f"{m}.T[{one}] {op} {self.scalar(1)}",
            f"{m}[{i}, {self.index()}] {op} {self.scalar(1)}",
            f"{m} @= 0.3 * {self.matrix(1)}",
        ]
        self.say(self.pick(forms))

    def write_function(self):
        v, m = self.var("v"), self.var("m")
        forms = [
            f"np.copyto({v}, {self.vector(1)}, where={self.mask()})",
            f"np.copyto({m}, {self.vector(1)})",
            f"np.putmask({v}, {self.mask()}, {self.vector(1)})",
            f"np.put({v}, {self.places()}, {self.vector(1)}, mode='wrap')",
            f"np.place({v}, {self.mask()}, [{self.scalar(1)}, 0.2])",
            f"np.fill_diagonal({m}, {self.vector(1)})",
            f"np.add.at({v}, {self.places()}, {self.vector(1)})",
            f"np.multiply.at({v}, {self.places()}, 0.5)",
            f"np.add.at({m}, ({self.places()}, {self.places()}), {self.scalar(1)})",
            f"np.put_along_axis({m}, np.array([{self.places()}]), {self.scalar(1)}, axis=0)",
            f"shift({v})",
            f"shift({m}[:, {self.index()}])",
        ]
        self.say(self.pick(forms))

    def into_out(self):
        v = self.var("v")
        w = self.fresh("v")
        one, other = self.parts()
        forms = [
            f"np.sin({self.vector(1)}, out={v})",
            f"np.tanh({self.vector(1)}, {v})",
            f"np.multiply({v}, {self.vector(1)}, out={v}[::-1])",
            f"np.add({v}[{one}], {self.scalar(1)}, out={v}[{other}])",
            f"np.subtract({self.vector(1)}, {self.vector(1)}, out={v}, where={self.mask()})",
            f"np.cumsum({self.vector(1)}, out={w})",
            f"np.dot(0.3 * {self.matrix(1)}, {self.vector(1)}, out={w})",
            f"np.matmul(0.3 * {self.matrix(1)}, {self.vector(1)}, {w})",
            f"np.sum(0.5 * {self.matrix(1)}, axis=0, out={w})",
            f"np.clip({self.vector(1)}, -0.7, 0.419, out={w})",
            f"np.clip({self.vector(1)}, -0.7, 0.419, {w})",
            f"np.take({self.vector(1)}, {self.places()}, out={w}, mode='wrap')",
            f"np.einsum('ij,j->i', 0.3 * {self.matrix(1)}, {self.vector(1)}, out={w})",
        ]
        self.say(self.pick(forms))

    def swap(self):
        v, w, m = self.var("v"), self.var("v"), self.var("m")
        i, j = self.index(), self.index()
        forms = [
            f"{v}[{i}], {v}[{j}] = {v}[{j}], {v}[{i}]",
            f"{m}[{i}], {m}[{j}] = {m}[{j}], {m}[{i}].copy()",
            f"{m}[[{i}, {j}]] = {m}[[{j}, {i}]]",
            f"{v}[{i}] = {w}[{j}] = {self.scalar(1)}",
        ]
        if "[" not in v + w and not {v, w} & {"G", "x", "p"}:
            forms.append(f"{v}, {w} = {w}, {v}" if v != w else f"{v} = {w}")
        self.say(self.pick(forms))

    def containers(self):
        name, key = self.new("d"), self.new("s")
        v = self.new("v")
        form = self.pick(range(4))
        if form == 0:
            self.say(f"{name} = [{self.scalar(1)}, {self.vector(1)}]")
            self.say(f"{name}.append({self.vector(1)})")
            self.say(f"{name}[1] = {name}[1] * {name}[0]")
            self.say(f"{v}, {key} = {name}[-2], {name}[0]")
        elif form == 1:
            self.say(f"{name} = {{'a': {self.var('v')}, 'b': {self.scalar(1)}}}")
            self.say(f"{name}['b'] *= 0.5")
            self.say(f"{name}['a'][{self.index()}] += {name}['b']")
            self.say(f"{v}, {key} = {name}['a'], {name}.pop('b')")
        elif form == 2:
            self.say(f"{name} = dict(enumerate({self.vector(1)}))")
            self.say(f"{name}.update({{0: {self.scalar(1)}}})")
            self.say(f"{key} = sum({name}.values())")
            self.say(f"{v} = np.array([t * 0.5 for _, t in sorted({name}.items())])")
        else:
            self.say(f"{name} = [r for r in {self.var('m')}]")
            self.say(f"{name}[0][{self.index()}] = {self.scalar(1)}")
            self.say(f"{key} = {name}[-1][{self.index()}]")
            self.say(f"{v} = 0.5 * sum({name})")
        self.names["s"].append(key)
        self.names["v"].append(v)

    def objects(self):
        v = self.new("v")
        forms = [
            f"{v} = box.update({self.vector(1)})",
            f"{v} = box.work; box.level = {self.scalar(1)}",
            f"box.level += 0.3 * {self.scalar(1)}; {v} = box.work[::-1]",
            f"box.work *= {self.vector(1)}; {v} = box.work",
            f"{v} = np.array(box.kept[-1:] * N + [0.0] * N)[:N]",
            f"setattr(box, 'work', {self.vector(1)} * 1.0); {v} = box.work",
        ]
        self.say(self.pick(forms))
        self.names["v"].append(v)

    def unpack(self):
        a, b = self.new("s"), self.new("s")
        forms = [
            f"{a}, *_, {b} = {self.vector(1)}",
            f"{a}, {b} = {self.vector(1)}[:2]",
            f"({a}, _), {b} = {self.matrix(1)}[0][:2], {self.scalar(1)}",
            f"{a}, {b} = {self.scalar(1)}, {self.scalar(1)}",
            f"{a} = {b} = {self.scalar(1)}",
        ]
        self.say(self.pick(forms))
        self.names["s"] += [a, b]

    def loop(self):
        form = self.pick(range(5))
        v, w = self.var("v"), self.fresh("v")
        if form == 0:
            i = self.new("i")
            self.say(f"for {i} in range(1, N):")
            self.say(f"    {v}[{i}] = 0.5 * {v}[{i} - 1] + {self.var('v')}[-{i}]")
            self.say(f"    {w}[{i}] += {self.scalar(1)}")
        elif form == 1:
            s = self.new("s")
            self.say(f"{s} = {self.scalar(1)}")
            self.names["s"].append(s)
            self.block(f"for e in {v}:")
            self.say(f"    {s} = 0.5 * {s} + e * {self.scalar(0)}")
        elif form == 2:
            k = self.new("k")
            self.say(f"{k} = 0")
            self.block(f"while {k} < 3:")
            self.say(f"    {k} += 1")
            self.say(f"    if {self.scalar(0)} > 0.419 and {k} > 1: break")
        elif form == 3:
            self.say(f"for r, e in zip({self.var('m')}, {self.vector(1)}):")
            self.say("    r *= 0.5")
            self.say(f"    r[{self.index()}] = e + {self.scalar(0)}")
        else:
            u, t = self.new("v"), self.new("v")
            self.say(f"{u}, {t} = {v}.copy(), np.zeros(N)")
            self.say("for _ in range(3):")
            self.say(f"    {t}[1:-1] = {u}[1:-1] + 0.3 * {u}[2:] * {u}[:-2]")
            self.say(f"    {t}[0] = {u}[{self.index()}]")
            self.say(f"    {u}, {t} = {t}, {u}")
            self.names["v"] += [u, t]

    def branch(self):
        self.block(f"if {self.scalar(1)} > {self.pick((0.127, -0.319))}:")
        if self.pick((True, False)):
            self.block("else:", 1)

    def attempt(self):
        self.block("try:", 1)
        self.say(f"    {self.var('v')}[{self.n + 3}] = {self.scalar(1)}")
        self.block("except IndexError:", 1)
        if self.pick((True, False)):
            self.block("finally:", 1)

    def closure(self):
        name, v, s = self.new("f"), self.new("v"), self.new("s")
        held = self.var("v")
        self.say(f"{s} = {self.scalar(1)}")
        self.say(f"def {name}(a, b={self.scalar(0)}):")
        self.say(f"    nonlocal {s}")
        self.say(f"    {s} = 0.5 * {s} + a[0]")
        self.say(f"    {held}[{self.index()}] = b * {s}")
        self.say(f"    return a * {s} + {self.vector(1)}")
        self.say(f"{v} = {name}({self.vector(1)}) + {name}({self.vector(1)}, {self.scalar(1)})")
        self.names["s"].append(s)
        self.names["v"].append(v)

    def generator(self):
        name, v = self.new("g"), self.new("v")
        self.say(f"{name} = walk({self.var('v')})")
        self.say(f"{self.new('s')} = next({name})")
        self.statement(nested=True)
        self.say(f"{v} = np.array([*{name}, 0.5])")
        self.names["v"].append(v)

    def program(self, length):
        for _ in range(length):
            self.statement()
        self.depth = 1
        v, w, m = self.vector(1), self.names["v"][-1], self.names["m"][-1]
        everything = ", ".join(f"np.ravel({a})" for a in [*self.names["v"], *self.names["m"]])
        forms = [
            f"return np.concatenate([{everything}, [{', '.join(self.names['s'])}, box.level]])",
            f"return np.concatenate([{everything}, [box.total]])",
            f"return {w}",
            f"return {m}",
            f"return np.stack([{v}, {w}])",
            f"return np.array([{self.scalar()}, {self.scalar()}])",
        ]
        self.say(self.pick([*forms[:2] * 3, *forms[2:]]))
        head = ["def f(x, p):", "    global G, H", "    c0 = 0.6"]
        return PROLOGUE.format(n=self.n) + "\n".join([*head, *self.lines]) + "\n"


class Module:
    """A program written to a file and imported; its state is put back before each plain call."""

    counter = itertools.count()

    def __init__(self, source, folder):
        name = f"random_program_{next(self.counter)}"
        path = folder / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        self.module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.name, self.path = name, str(path)
        self.first = self.state()

    def close(self):
        del sys.modules[self.name]
        linecache.cache.pop(self.path, None)

    def state(self):
        module = self.module
        return copy.deepcopy((module.G, module.H, vars(module.box)))

    def reset(self):
        G, H, box = copy.deepcopy(self.first)
        self.module.G[...] = G
        self.module.H[...] = H
        vars(self.module.box).clear()
        vars(self.module.box).update(box)

    def plain(self, x, p):
        self.reset()
        return np.array(self.module.f(x.copy(), p.copy()))


def same_state(a, b):
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same_state, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_state(a[k], b[k]) for k in a)
    return type(a) is type(b) and np.array_equal(a, b, equal_nan=True)


def differences(f, x):
    """Extrapolated central differences, and how far two estimates are apart."""
    columns, gaps = [], []
    for i in range(x.size):
        slopes = []
        for h in (2e-3, 1e-3, 5e-4):
            ahead, behind = x.copy(), x.copy()
            ahead[i] += h
            behind[i] -= h
            slopes.append((f(ahead) - f(behind)) / (ahead[i] - behind[i]))
        rough, better, best = slopes
        first, second = (4 * better - rough) / 3, (4 * best - better) / 3
        columns.append((16 * second - first) / 15)
        gaps.append(np.max(np.abs(first - second), initial=0.0))
    return np.stack(columns, axis=-1), max(gaps)


def check_program(source, x, p, folder):
    """Whether the program is smooth enough to tell; it fails if a derivative is wrong."""
    module = Module(source, folder)
    try:
        return _check(module, x, p)
    finally:
        module.close()


def _check(module, x, p):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            y = module.plain(x, p)
            reference, gap = differences(lambda z: module.plain(z, p), x)
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            return False  # a program that fails has no derivative
    scale = np.max(np.abs(reference), initial=1.0)
    if not np.all(np.isfinite(reference)) or scale > 1e4 or gap > 1e-7 * scale:
        return False  # a branch within the step, or growth without bound
    f = module.module.f
    module.reset()
    before_x, before_p = x.copy(), p.copy()
    for chunk in sorted({1, 2, 3, x.size}):
        value, J = fwdad.value_and_jacobian(f, x, args=(p,), chunk=chunk)
        assert np.shape(value) == y.shape
        assert np.array_equal(value, y), f"value at chunk={chunk}"
        assert_allclose(J, reference, rtol=1e-6, atol=1e-6 * scale, err_msg=f"chunk={chunk}")
        assert same_state(module.state(), module.first), f"the outside world at chunk={chunk}"
        assert np.array_equal(x, before_x)
        assert np.array_equal(p, before_p)
    v = np.random.default_rng(0).normal(size=(3, x.size))
    value, y_dot = fwdad.jvp(f, x, v, args=(p,))
    assert_allclose(
        y_dot, np.moveaxis(reference @ v.T, -1, 0), rtol=1e-6, atol=1e-6 * scale * x.size
    )
    assert np.array_equal(value, y)
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@settings(
    max_examples=700,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(length=st.integers(1, 7), n=st.integers(2, 4), seed=st.integers(0, 2**32 - 1))
def test_random_program(folder, length, n, seed):
    """A seed is a program, so that a failure shrinks quickly: to the shortest of its beginnings."""
    draws = random.Random(seed)
    source = Author(lambda options: draws.choice(list(options)), n).program(length)
    note(source)
    x = np.array([0.731, -0.452, 1.213, 0.287])[:n]
    p = np.array([0.35, 0.81, -0.64, 0.93])[:n]
    assume(check_program(source, x, p, folder))
