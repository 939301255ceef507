"""Random programs that take derivatives inside, and write into these, and into what they are of.

Gradients, products, pullbacks and Jacobians of functions that share arrays with the program around
them. ``f`` takes four numbers in an array.
"""

PROLOGUE = """\
import numpy as np

import fwdad


def energy(a, b):
    return np.sum(np.sin(a) * b) + a @ a * 0.1


def steps(a, n=2):
    y = a * 1.0
    for i in range(n):
        y[i] = y[i] * y[i + 1] + 0.1
    return y


def grown(a):
    total = 0.0
    for y in a:
        if y > 0.4:
            total = total + y * y
        else:
            total = total * 0.5 + y
    return total


class Model:
    def __init__(self, w):
        self.w = w

    def __call__(self, a):
        return np.tanh(self.w * a)

    def loss(self, a):
        return np.sum(self(a) ** 2)


def f(x):
    a = x * 1.0
    b = x[::-1] * 0.5
    c = a[1:3]
    s = x[0] * 0.5
    o = Model(b)
    g = np.ones(4)
    d = {"a": a, "b": x * 0.3}
    k = 1.5

"""
EPILOGUE = "    return s + a @ b * 0.1 + b.sum() + c.sum() * 0.5 + (g * g).sum() * 0.1 + g @ a * 0.05 + o.w.sum() * 0.3 + d['a'] @ d['b'] + k\n"
GRADIENTS = [
    "fwdad.grad(lambda a: np.sum(a * {v}))({v})",
    "fwdad.grad(lambda a: np.sum(a) * {n})({v})",
    "fwdad.grad(energy)({v}, {v})",
    "fwdad.grad(energy, argnums=1)({v}, {v})",
    "fwdad.grad(energy, argnums=(0, 1))({v}, {v})[{j}]",
    "fwdad.grad(grown)({v})",
    "fwdad.grad(lambda a: np.sum(steps(a)))({v})",
    "fwdad.grad(o.loss)({v})",
    "fwdad.grad(lambda a: o(a)[{i}])({v})",
    "fwdad.grad(lambda t: t['a'] @ t['b'])({'a': {v}, 'b': {v}})['a']",
    "fwdad.grad(lambda t: t['a'] @ t['b'])(d)['b']",
    "fwdad.value_and_grad(grown)({v})[1]",
    "fwdad.grad(lambda a: (np.sum(a * {v}), a * 2.0), has_aux=True)({v})[{j}]",
    "fwdad.jvp(steps, {v}, {v})[{j}]",
    "fwdad.jvp(lambda a: a * {v}, {v}, {v})[1]",
    "fwdad.jvp(o, {v}, {v})[{j}]",
    "fwdad.vjp(steps, {v})[1]({v})",
    "fwdad.vjp(lambda a: a + {v}, {v})[1]({v})",
    "fwdad.vjp(lambda a, b: a * b, {v}, {v})[1]({v})[{j}]",
    "fwdad.vjp(np.exp, {v})[0]",
    "fwdad.vjp(np.exp, {v})[1]({v})",
    "fwdad.hvp(grown, {v}, {v})",
    "fwdad.hvp(lambda a: energy(a, {v}), {v}, {v})",
    "fwdad.jacfwd(steps)({v})[{i}]",
    "fwdad.jacrev(o)({v})[:, {i}]",
    "fwdad.jacfwd(lambda a: a * {v})({v}).diagonal() * 1.0",
    "fwdad.jacrev(lambda a: a[::-1] * {n})({v})[{i}]",
    "fwdad.hessian(lambda a: energy(a, {v}))({v})[{i}]",
    "fwdad.hessian(grown)({v}) @ {v}",
    "fwdad.vmap(lambda y: y * {n})({v})",
    "fwdad.grad(lambda a: np.sum(fwdad.grad(grown)(a) * {v}))({v})",
    "fwdad.grad(lambda a: fwdad.jvp(grown, a, {v})[1])({v})",
    "fwdad.checkpoint(steps)({v})",
]
NUMBERS = ["s", "a[0]", "b[1]", "c[0]", "g[2]", "x[1]", "np.sin(s)", "o.w[3]", "k", "a.sum() * 0.2"]
STATE = [
    "g[{i}] = {n}",
    "g *= 0.5",
    "g += {v} * 0.1",
    "g -= a",
    "a[{i}] = {n}",
    "a *= 0.5",
    "a += g * 0.1",
    "b[{i}] += {n}",
    "b = g",
    "a = g",
    "c = g[1:3]",
    "c[0] = {n}",
    "c *= 0.5",
    "o.w = {v}",
    "o.w[{i}] = {n}",
    "o = Model({v})",
    "d['a'] = {v}",
    "d['b'] = g",
    "d['b'][{i}] = {n}",
    "b, g = g, b",
    "s = g[{i}]",
    "k = g @ b * 0.1",
    "np.add(g, 0.1, out=g)",
    "g[g > 0.8] = {n}",
    "g = g[::-1]",
]
WORDS = {
    "call": GRADIENTS,
    "n": NUMBERS,
    "v": ["a", "b", "g", "x", "o.w", "d['a']", "d['b']", "a[::-1]", "(a + b)", "np.sin(a)", "g.copy()"],
    "i": ["0", "1", "2", "3"],
    "j": ["0", "1"],
}  # fmt: skip
SETS = [
    "g = {call}",
    "g = {call} * 0.3",
    "a = {call}",
    "b = {call} + b * 0.1",
    "g += {call} * 0.1",
    "o.w = {call}",
    "d['a'] = {call}",
    "c = {call}[1:3]",
    "s = np.sum({call}) * 0.1",
    "a[:] = {call} * 0.2",
    "g = {call}\ng[{i}] = {n}",
    "a[{i}] = {n}\ng = {call}",
]
TESTS = ["s > 0.5", "a[0] > b[0]", "x[0] > 0.9", "g.sum() > 1.0"]
LOOPS = ["for i in range(3):", "for i in range(len(a)):", "for y in a:", "for v in (a, g):"]
LEAVES = ["if s > 3.0:", "    return s * a.sum()"]
NESTED = "np.sum({call} * 0.2)"
