"""Programs with a real argument, to be differentiated on the tape and by other means."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class State(NamedTuple):
    position: float
    velocity: float


@dataclass(frozen=True)
class Oscillator:
    position: float
    velocity: float


def power(x, n):
    y = 1.0
    for _ in range(n):
        y = y * x
    return y


def horner(x, coefficients):
    y = 0.0
    for c in coefficients:
        y = y * x + c
    return y


def alternating(x, n):
    for i in range(n):
        x = 3 * x if i % 2 == 0 else -x
    return x


def newton_root(a):
    x = a
    while abs(x * x - a) > 1e-14 * a:
        x = 0.5 * (x + a / x)
    return x


def first_above(x, bound):
    for k in range(100):
        x = x * 1.5 + 0.1
        if x > bound:
            return x * x + k
    return -x


def absolute(x):
    if x > 0:
        return x
    return -x


def elementwise(x):
    return np.exp(np.sin(x) * x) + np.tanh(x) / x


def unequal_ranks(x):
    weights = np.arange(6.0).reshape(2, 3) + 1
    return np.sin(x) * weights + x[0]


def recurrence(x):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1] + math.sin(i) * np.sin(y[i - 1])
    return y


def running_sums(x):
    y = x.copy()
    for i in range(1, len(y)):
        y[i] += y[i - 1]
    return y


def in_place(x):
    x *= 2.0
    x[1:-1] += x[:-2] ** 2
    x[0] = x[-1] * x[1]
    return x


def through_views(x):
    y = np.zeros((2, x.shape[0]))
    row = y[1]
    row[:] = np.cos(x)
    y[0] = row * x
    y[:, 0] -= x[-1]
    return y


def swapped_buffers(x):
    u, v = x, np.zeros_like(x)
    for _ in range(3):
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u, v = v, u
    return u


def lorenz(x):
    s = np.empty(3)
    s[:] = x
    for _ in range(20):
        a, b, c = s[0], s[1], s[2]
        s[0] = a + 0.01 * 10 * (b - a)
        s[1] = b + 0.01 * (a * (28 - c) - b)
        s[2] = c + 0.01 * (a * b - 8 / 3 * c)
    return s


def tuple_state(x):
    state = State(x[0], x[1])
    for _ in range(5):
        state = State(state.position + 0.1 * state.velocity, state.velocity - 0.1 * state.position)
    return np.array([state.position, state.velocity * x[2]])


def record_state(x):
    o = Oscillator(x[0], x[1])
    for _ in range(5):
        o = Oscillator(o.position + 0.1 * o.velocity, o.velocity - 0.1 * math.sin(o.position))
    return np.array([o.position, o.velocity])


def list_of_scalars(x):
    parts = [x[0] * x[-1], 2 * x[1] * x[-2], x[2]]
    return np.array(parts)


def growing_slices(x):
    total = 0.0
    for j in range(1, x.shape[0]):
        total += x[:j] @ x[:j] * x[j]
    return total


def inactive_side(x):
    y = np.ones(2)
    if x[0] > 100:
        y = x[:2] * 3
    return y * x[1]


def branch_stores(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i] > 1:
            y[i] = x[i] ** 2
        else:
            y[i] = np.exp(x[i])
    return y


def best_so_far(x):
    best = None
    for i in range(x.shape[0]):
        if best is None or x[i] > best:
            best = x[i]
    return best * 2


def captured_matrix(x):
    return MATRIX @ x + np.sum(MATRIX, axis=1) * x[0]


MATRIX = np.array([[1.0, 2.0, 0.5], [0.0, 1.5, -1.0], [3.0, 1.0, 2.0]])


def closure(x):
    scale = x[0]

    def inner(y, factor=2.0):
        return scale * y * factor

    return inner(x[1]) + inner(x[2], factor=x[1])


X = np.array([1.2, 0.7, 2.1])


def undefined_on_one_side(x):
    """Lengths are not asked of what has none on the way that is taken."""
    y = None
    if x[0] > 9.0:
        y = np.zeros(x.shape[0] + 1)
        y[1:] = x
        z = y * x[0]
    else:
        z = np.concatenate([x, x[:1]]) ** 2
    z = np.reshape(np.sin(z), (x.shape[0] + 1, 1))
    if x[0] > 9.0:
        z = z + y[:, None]
    return z[:, 0] * x[1]


def shrinking_views(x):
    """A length that the loop's body has, too, each time another one, is asked for behind it."""
    while len(x) > 2:
        x = x[1:] * x[:-1]
    return np.sum(x[:-1].reshape(-1) * np.sin(x[1:]))


def sides_of_other_lengths(x):
    y = x[1:].reshape(-1) * 2 if x[0] > 0 else x[1:].reshape(-1) * x[:-1]
    return np.sum(np.sin(y))


def gathered_then_stored(x):
    """What an index array takes out is memory of its own."""
    y = x[np.array([1, 2, 0, 1])]
    y[2:] = x[0] ** 2
    z = np.array([1.0, 2.0, 3.0])[[2, 0]]
    z *= y[:2]
    w = x[x > 1]
    w[0] = z[1] * y[3]
    return np.concatenate([y, z, w])


def tiled_then_stored(x):
    y = np.tile(np.sin(x), 2)[: x.size].reshape((3,))
    y.T[0] = x[1]
    return y


def broadcast_then_stored(x):
    """Lanes of what was broadcast are C-contiguous: a view by reshape is one."""
    y = (x + x[:2, None]).copy()
    y.reshape(-1)[1:] = x[1]
    y *= x[0]
    return y


PROGRAMS = {
    "power": (power, (1.3, 4)),
    "power 0": (power, (1.3, 0)),
    "horner": (horner, (0.7, np.array([1.0, -2.0, 0.5]))),
    "alternating": (alternating, (1.0, 3)),
    "newton_root": (newton_root, (2.0,)),
    "first_above": (first_above, (1.0, 7.0)),
    "never_above": (first_above, (-1.0, 7.0)),
    "absolute +": (absolute, (3.0,)),
    "absolute -": (absolute, (-3.0,)),
    **{
        f.__name__: (f, (X,))
        for f in (
            elementwise, unequal_ranks, recurrence, running_sums, in_place, through_views,
            swapped_buffers, lorenz, tuple_state, record_state, list_of_scalars, growing_slices,
            inactive_side, branch_stores, best_so_far, captured_matrix, closure,
            shrinking_views, sides_of_other_lengths, gathered_then_stored, tiled_then_stored,
            broadcast_then_stored, undefined_on_one_side,
        )
    },
}  # fmt: skip
