"""Random programs: what stands before them, and their statements."""

from tests.random_expressions import Expressions

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


class Author(Expressions):
    """Writes one program, a statement after the other."""

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
