"""Programs with lists of tuples that grow, and lists that grow at their front, of six numbers."""

from typing import Any, NamedTuple

import numpy as np

PROGRAMS = []


def program(f):
    """Enter a program."""
    PROGRAMS.append(f)
    return f


@program
def a_trail_until_it_converges(x):
    trail = []
    y, t = x[0], 0.0
    while abs(y * y - 2) > 1e-8:
        y = y - (y * y - 2) / (2 * y)
        t = t + x[1]
        trail.append((t, y))
    total = 0.0
    for t, y in trail:
        total += t * y * y
    return total * x[2] + trail[-1][1] + trail[0][0] * trail[1][1]


@program
def states_and_times(x):
    trail = [(0.0, x)]
    for _ in range(70):
        t, y = trail[-1]
        trail.append((t + 0.1 * x[0], y * 0.95 + 0.01 * np.sin(y)))
    return sum(t * np.sum(y) for t, y in trail[::2]) + trail[-1][1][2]


@program
def a_loop_that_appends_nothing(x):
    found = [(x[0], 1)]
    for v in x:
        if v > 100:
            found.append((v * v, 2))
    total = x[1] * len(found)
    for v, k in found:
        total += v * v * k
    return total


@program
def an_array_of_pairs(x):
    found = []
    for k in range(len(x)):
        if x[k] > 0:
            found.append((k, x[k]))
    table = np.array(found)
    places, values = table.T
    return np.sum(values**3) + table[1, 0] * x[0] + np.sum(places * values)


@program
def tuples_in_tuples(x):
    found = []
    for v in x:
        for w in x:
            if v * w > 1.07:
                found.append(((v, w), x * v))
    total = 0.0
    for (a, b), z in found:
        total += a * b * np.sum(z**2)
    return total


@program
def arrays_copied_before_they_are_written(x):
    y = x * 1.0
    trail = []
    for k in range(len(x)):
        if y[k] > 3:
            break
        trail.append((k, y.copy()))
        y *= x[k]
        y[0] = y[1] * y[2]
    return sum(k * np.sum(z**2) for k, z in trail) + np.sum(y)


class Step(NamedTuple):
    time: float
    state: Any


@program
def named_tuples(x):
    steps = []
    for v in x:
        if v > 0:
            steps.append(Step(v, v * x[0]))
    total = 0.0
    for s in reversed(steps):
        total += s.time**2 * s.state + total * 0.1
    return total + steps[-1].state


@program
def reversed_tuples(x):
    found = []
    for k, v in enumerate(x):
        if v > 0:
            found.append((k, v, x[:2] * v))
    found.reverse()
    place, value, rows = found.pop()
    total = place + value**3 + rows.sum()
    for k, v, a in found:
        total = total * 0.7 + k * v + a @ a
    return total


@program
def extremes_by_a_key(x):
    found = []
    for v in x:
        if v > 0:
            found.append((v, v * x[0]))
    a, b = max(found, key=lambda pair: pair[1])
    c, d = min(found, key=lambda pair: pair[0])
    return a * b + 3 * c * d


@program
def types_of_parts_that_widen(x):
    out = [(0, 1)]
    for k, v in enumerate(x):
        out.append((out[-1][0] + v, k))
    return sum(t * t * k for t, k in out)


@program
def pairs_read_while_and_after_it_grows(x):
    out = []
    total = 0.0
    for v in x:
        out.append((v, v * x[1]))
        total += out[-1][0] * out[-1][1] * len(out)
    for a, b in out[1:]:
        total += a * np.cos(b)
    for v in x:
        out.append((v * 2, total))
    return total + sum(a * b for a, b in out)


@program
def inserted_at_the_front(x):
    out = []
    for v in x:
        if v > 0:
            out.insert(0, v)
    total = 0.0
    for k, v in enumerate(out):
        total += k * v * v
    return total + out[0] * out[-1]


@program
def arrays_inserted_before_others(x):
    out = [x * 2, x**2]
    for v in x:
        out.insert(0, out[0] * v * 0.7)
    return np.sum(np.array(out) * np.arange(8.0)[:, None])


@program
def pairs_inserted_in_two_loops(x):
    out = [(0, 1.0)]
    for k, v in enumerate(x):
        if v > 1:
            break
        out.insert(0, (k, v * out[0][1]))
    total = 0.0
    for k, v in out:
        total += (k + 1) * v * v
    for v in x:
        out.insert(0, (7, v * total))
    for k, (m, v) in enumerate(out):
        total += (k + 1) * v * v * m
    return total


@program
def a_path_taken_back(x):
    """Where each of the best sums came from, found from the end."""
    best = np.zeros((6, 3))
    came = np.zeros((6, 3), dtype=int)
    for i in range(1, 6):
        for j in range(3):
            low = 0
            for k in range(3):
                if best[i - 1, k] * (1 + 0.1 * k) < best[i - 1, low]:
                    low = k
            best[i, j] = best[i - 1, low] + x[i] * np.cos(x[j] * (j + 1))
            came[i, j] = low
    path = []
    i, j = 5, 0
    while i > 0:
        path.insert(0, (i, j))
        j = came[i, j]
        i -= 1
    return sum(x[i] * x[j] for i, j in path) + best[5, 0]
