"""Programs whose calls are run again in the reverse pass of a recorded run.

Each is a function of what marks a call (``fwdad.checkpoint``, or what leaves it as it is), and
returns a function of one array of five numbers.
"""

import dataclasses
import functools
import random
from typing import NamedTuple

import numpy as np

WORK = np.zeros(5)
TABLE = np.array([0.3, -0.2, 0.8, 0.1, 0.5])
SCALE = 1.0


def layer(u, w):
    y = np.sin(u) * w
    y = y * np.tanh(u) + np.cumsum(u) * 0.1
    return y + 1e-2 * u[0] * u[-1]


def layers(mark):
    g = mark(layer)

    def f(x):
        for k in range(6):
            x = g(x, 0.5 + 0.1 * k)
        return x * x

    return f


def sequence_of_numbers(mark):
    @mark
    def step(a, b, k):
        for _ in range(4):
            a, b = a * np.cos(b) + 0.1 * k, b + np.sin(a * b)
        return a, b

    def f(x):
        a, b = x[0], x[1]
        for k in range(5):
            a, b = step(a, b, k)
        return np.array([a, b, x[2] * a])

    return f


def argument_in_place(mark):
    @mark
    def step(u, w):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2]) * u[1:-1]
        u *= w
        u[0] = u[4] * u[1]

    def f(x):
        u = x * 1.5
        for k in range(5):
            step(u, 0.9 + 0.02 * k)
        return u

    return f


def argument_of_the_run_in_place(mark):
    @mark
    def step(u):
        u[1:] = u[1:] * u[:-1]
        return np.sum(u)

    def f(x):
        s = 0.0
        for _ in range(3):
            s = s + step(x)
        return x * s

    return f


def rows(mark):
    @mark
    def step(before, after):
        after[:] = np.sin(before) * before[::-1]
        after[2] += before[1]

    def f(x):
        u = np.zeros((6, 5))
        u[0] = x
        for k in range(5):
            step(u[k], u[k + 1])
        return u[-1] + u[2]

    return f


def rows_answered(mark):
    g = mark(layer)

    def f(x):
        u = np.zeros((6, 5))
        u[0] = x
        for k in range(5):
            u[k + 1] = g(u[k], 0.7)
        return u.sum(axis=0)

    return f


def overwritten_later(mark):
    @mark
    def product(u, v):
        return np.sin(u) * v

    def f(x):
        u, v = x * 2.0, TABLE.copy()
        y = product(u, v)
        u[:] = 0.0
        v[:] = 7.0
        z = product(u + y, v)
        u[1:] = z[1:]
        v *= 0.0
        return y * z + product(u, v + 1.0)

    return f


def captured(mark):
    def f(x):
        c = x * 2.0 + np.sin(x)
        number = x[1] * x[2] + x[0]
        table = TABLE * 1.0

        @mark
        def g(u):
            return np.sin(u) * c + number * table

        y = g(x)
        z = g(y * c)
        table[:] = 3.0
        c = c * y
        number = number + y[0]
        return z + c + number + g(TABLE)

    return f


def captured_and_written(mark):
    def f(x):
        u, count = x * 1.0, 0
        held = {"last": x[0]}

        @mark
        def step(w):
            nonlocal count, u
            count += 1
            u = u * 1.0
            u[count % 5] = u[count % 5] * w + held["last"]
            held["last"] = u[count % 5] * count

        for k in range(7):
            step(0.5 + 0.1 * k)
        return u * held["last"]

    return f


class Model:
    weights = np.array([1.0, 0.5, -0.3, 0.2, 0.9])
    made = 0

    def __init__(self, mark):
        self.u = np.zeros(5)
        self.t = 0.0
        self.history = []
        self.advance = functools.partial(mark(type(self).step), self)

    def step(self, forcing):
        type(self).made += 1
        self.u[:] = np.sin(self.u * self.weights) + forcing * (1.0 + self.t)
        self.u[1] *= self.u[0] + 0.1 * self.made
        self.t += 0.1
        self.history.append(self.u[2] * self.u[1])


def methods(mark):
    model = Model(mark)

    def f(x):
        for k in range(5):
            model.advance(x * 0.3 * k)
            model.weights[k] += 0.1
        return model.u * model.history[2] + model.history[-1]

    return f


class Pair(NamedTuple):
    first: object
    second: object


@dataclasses.dataclass
class State:
    u: object
    parts: dict


def trees(mark):
    @mark
    def step(state, *, pair):
        u = state.u * pair.first + state.parts["a"][1]
        parts = {"a": [np.sum(u), u[1] * u[2]], "name": "x"}
        return State(u, parts), Pair(pair.second * u[0], np.cos(pair.first))

    def f(x):
        state, pair = State(x, {"a": [x[0], x[1]], "name": "y"}), Pair(x[2], x * 0.1)
        for _ in range(4):
            state, pair = step(state, pair=pair)
        return state.u * state.parts["a"][0] + pair.first + pair.second

    return f


def nested(mark):
    inner = mark(layer)

    @mark
    def middle(u):
        u = inner(u, 0.8)
        work = np.zeros(5)
        for k in range(3):
            work[k] = u[k] * u[k + 1]
            u = inner(u + work, 0.5)
        return u, work

    @mark
    def outer(u):
        total = u * 0.0
        for _ in range(2):
            u, work = middle(u)
            total += work * u
        return u + total

    def f(x):
        for _ in range(3):
            x = outer(x)
        return x

    return f


def recursive(mark):
    @mark
    def halves(u, depth):
        if depth == 0 or len(u) < 2:
            return np.sum(np.sin(u))
        k = len(u) // 2
        return halves(u[:k] * u[-k:], depth - 1) * halves(u[k:], depth - 1) + u[0]

    def f(x):
        return np.array([halves(x, 3), halves(x[1:] * x[0], 2)])

    return f


def global_work(mark):
    @mark
    def step(u):
        WORK[:] = u * u
        WORK[0] += WORK[3]
        return np.sin(WORK) * SCALE + 0.1 * np.sum(WORK)

    def f(x):
        global SCALE
        y = step(x)
        SCALE = SCALE * 1.5
        z = step(y) + WORK * y
        SCALE = z[0] * z[1]
        return step(z)

    return f


def lists(mark):
    @mark
    def push(states, w):
        states.append(np.sin(states[-1]) * w)
        if len(states) > 3:
            states.pop(0)

    def f(x):
        states = [x]
        for k in range(6):
            push(states, 0.9 + 0.05 * k)
        return states[0] * states[-1]

    return f


def aliases(mark):
    @mark
    def both(u, v):
        u[0] = v[-1] * v[0]
        v *= 1.1
        return u * v[: len(u)]

    def f(x):
        u = np.sin(x)
        y = both(u, u)
        z = both(u[1:], u[:-1])
        return y + u + np.sum(z) + both(u[:2], u)[0]

    return f


def seeded(mark):
    def f(x):
        rng = np.random.default_rng(3)

        @mark
        def noisy(u):
            return u * rng.normal(size=5) + np.sin(u) * rng.uniform()

        y = noisy(x)
        w = rng.normal(size=5)
        return noisy(y * w) * noisy(x) + rng.normal()

    return f


def global_random_state(mark):
    @mark
    def noisy(u):
        return u * np.random.rand(5) * random.random() + np.sin(u) * np.random.normal()

    def f(x):
        np.random.seed(5)
        random.seed(7)
        y = noisy(x)
        return noisy(y) * noisy(x) * np.random.rand()

    return f


PROGRAMS = [
    layers, sequence_of_numbers, argument_in_place, argument_of_the_run_in_place, rows,
    rows_answered, overwritten_later, captured, captured_and_written, methods, trees, nested,
    recursive, global_work, lists, aliases, seeded, global_random_state,
]  # fmt: skip
