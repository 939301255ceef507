"""Reversible programs, and their arguments."""

import numpy as np

from fwdad.reversible import ancilla, compute, cond, copy_out, free, reversible, rotate


@reversible
def norm(y, r2, x):
    for i in range(len(x)):
        r2 += x[i] ** 2
    y += np.sqrt(r2)
    return y, r2, x


@reversible
def dot(s, x, y):
    with compute():
        t = ancilla(0.0)
        for i in range(len(x)):
            t += x[i] * y[i]
        with copy_out():
            s += np.exp(t)


@reversible
def copied(x, y):
    t = ancilla(y)
    x += t
    free(t, y)


@reversible
def fibonacci(out, n):
    with compute():
        n1 = ancilla(0)
        n2 = ancilla(0)
        n1 += n - 1
        n2 += n - 2
        with copy_out():
            if n <= 2:
                out += 1
            else:
                fibonacci(out, n1)
                fibonacci(out, n2)


@reversible
def until(x, y):
    while cond(x < 100, x > 0):
        x += y


@reversible
def moves(a, b, x):
    a, b = b, a
    x[0], x[1] = x[1], x[0]
    a = -a
    rotate(x[0], x[1], b)
    (~dot)(a, x[:2], x[2:])


@reversible
def backwards(x, y):
    for i in range(len(x) - 1, -1, -1):
        k = len(x) - 1 - i
        y[i] += np.sin(x[k])
    for i in range(1, len(x), 2):
        y[i] -= x[i] * x[i - 1]
    for v in x:
        y[0] += v * v


@reversible
def apply(y, x, f, g):
    y += f(x)
    g(y, x, 2.0 * x)


@reversible
def scaled(y, x, c):
    y += c * x


@reversible
def matrix(y, a, x):
    y += a @ np.tanh(x)
    a[:, 0] += x[0] * y
    y = -y


X = np.array([0.3, -1.2, 0.7, 2.0])


PROGRAMS = {
    "norm": (norm, (0.0, 0.0, X)),
    "dot": (dot, (0.5, X, X[::-1].copy())),
    "copied": (copied, (1.0, 2.0)),
    "moves": (moves, (0.3, 0.4, X)),
    "backwards": (backwards, (X, np.zeros(4))),
    "apply": (apply, (0.2, 1.3, np.cos, scaled)),
    "matrix": (matrix, (np.zeros(3), np.arange(12.0).reshape(3, 4) / 7, X)),
}


def flat(value):
    parts = value if isinstance(value, tuple) else (value,)
    return np.concatenate([np.ravel(p) for p in parts if not callable(p)])


def is_float(a):
    return isinstance(a, float) or (isinstance(a, np.ndarray) and a.dtype.kind == "f")
