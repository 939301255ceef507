"""Programs with lists whose length is known when they run only, all functions of six numbers."""

import numpy as np

import fwdad

PROGRAMS = []


def program(f):
    """Enter a program."""
    PROGRAMS.append(f)
    return f


@program
def appended_in_a_loop(x):
    out = []
    for k in range(len(x)):
        out.append(np.sin(x[k]) * k)
    return np.sum(np.array(out) ** 2)


@program
def many(x):
    out = [x]
    for _ in range(200):
        out.append(np.tanh(out[-1]) * 1.1)
    return np.sum(np.stack(out) ** 2)


@program
def until_it_converges(x):
    history = []
    y = x[0]
    while abs(y * y - 2) > 1e-8:
        y = y - (y * y - 2) / (2 * y)
        history.append(y)
    return y * x[1] + history[-1] * len(history)


@program
def left_by_a_break(x):
    history = []
    y = x[0]
    for _ in range(50):
        y = y - (y * y - 2) / (2 * y)
        history.append(y)
        if abs(y * y - 2) < 1e-8:
            break
    return y * x[1] + np.sum(np.diff(history)) * x[2]


@program
def on_one_side(x):
    found = [x[1]]
    if x[0] > 0:
        found.append(x[2] * x[3])
    return sum(v * v for v in found)


@program
def under_a_condition(x):
    positive = []
    for v in x:
        if v > 0.4:
            positive.append(v * v)
    return np.sum(np.array(positive) ** 2)


@program
def numbers_that_are_constants(x):
    out = []
    for v in x:
        out.append(v if v > 1 else 0.5)
    return np.sum(np.array(out) ** 2 * x)


@program
def ints_that_are_places(x):
    places = []
    for k in range(len(x)):
        if x[k] > 0:
            places.append(k)
    return np.sum(x[np.array(places)] ** 2)


@program
def types_that_widen(x):
    out = [0]
    for v in x:
        out.append(out[-1] + v)
    return np.sum(np.array(out) ** 2)


@program
def loops_in_loops(x):
    out = []
    for i in range(len(x)):
        for j in range(i):
            out.append(x[i] * x[j])
    s = 0.0
    for k, o in enumerate(out):
        s += o * k
    return s


@program
def made_in_each_iteration(x):
    total = 0.0
    for i in range(len(x)):
        row = []
        for j in range(len(x)):
            row.append(x[i] * np.cos(x[j]))
        total += np.sum(np.array(row) ** 2)
    return total


@program
def arrays_until_it_converges(x):
    path = [x]
    y = x
    while np.sum(y * y) > 1e-2:
        y = y - 0.3 * np.tanh(y)
        path.append(y)
    return np.sum(np.array(path) ** 2) + path[-1][0] + path[1][2] * len(path)


@program
def snapshots(x):
    u = x * 1.0
    seen = []
    for n in range(100):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        if n % 10 == 0:
            seen.append(u.copy())
    return np.sum(np.stack(seen) ** 2)


@program
def views(x):
    u = x * 1.0
    seen = []
    for _ in range(70):
        u = u * 0.9
        seen.append(u[1:-1])
    return np.sum(np.vstack(seen) ** 2)


@program
def new_arrays_filled_before(x):
    u = x * 1.0
    seen = []
    for k in range(len(x)):
        new = np.zeros_like(u)
        new[1:] = u[:-1] * x[k]
        new[0] = x[0]
        u = new
        seen.append(u)
    return np.sum(np.array(seen) ** 2)


@program
def new_arrays_filled_behind(x):
    u = x * 1.0
    seen = []
    for k in range(len(x)):
        seen.append(u)
        new = np.zeros_like(u)
        new[1:] = u[:-1] * x[k]
        new[0] = x[0]
        u = new
    return np.sum(np.array(seen) ** 2)


@program
def two_lists(x):
    times, values = [0.0], [x[0]]
    t, y, h = 0.0, x[0], 0.1
    while t < 1.0:
        k = -x[1] * y
        y = y + h / 2 * (k - x[1] * (y + h * k))
        t = t + h
        times.append(t)
        values.append(y)
    steps = np.diff(times)
    v = np.array(values)
    return np.sum(steps * (v[1:] + v[:-1])) / 2


@program
def grows_again(x):
    out = []
    for v in x:
        out.append(v)
    s = np.sum(np.array(out) ** 2)
    for v in x:
        out.append(v * 2)
    out.append(x[0] * x[1])
    s = s * np.mean(out)
    out += [x[2], x[3]]
    out.extend([1.0])
    return s + np.sum(np.array(out) ** 3) * out[7]


@program
def in_pythons_functions(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    s = sum(out) * max(out) + min(out)
    for a, b in zip(out, out[2:]):
        s += a * b
    for v in reversed(out):
        s = s * 0.5 + v
    return s + len(list(out)) * out[2] + (1.0 if isinstance(out, list) else 0.0)


@program
def reversed_in_place(x):
    path = [int(np.argmax(x))]
    for k in range(len(x) - 1, 0, -1):
        path.append((path[-1] + k) % 4)
    forth = path.copy()
    path.reverse()
    back = {"path": path}["path"]
    steps = zip(path, path[1:])  # noqa: RUF007 (slices are meant)
    return sum(x[a] * x[b] for a, b in steps) + x[back[0]] ** 3 * forth[-2]


@program
def taken_off_at_both_ends(x):
    found = []
    for v in x:
        if v > 0:
            found.append(v * x[1])
    last, first = found.pop(), found.pop(0)
    return last * 2 + first**3 + sum(found) * found[-1] + len(found)


@program
def sorted_in_place(x):
    found = []
    for v in x:
        if v < 3:
            found.append(v * x[3])
    found.sort()
    return found[0] ** 2 + 3 * found[-1] + np.diff(found) @ np.arange(len(found) - 1)


@program
def taken_off_one_by_one(x):
    found = []
    for v in x:
        if v > 0.4:
            found.append(v * v)
    s = 0.0
    while len(found) > 1:
        s = s * 0.5 + found.pop() * found[-1]
    return s + found.pop()


@program
def in_numpys_functions(x):
    out = []
    for k in range(len(x)):
        out.append(x[:2] * x[k])
    joined = np.sum(np.concatenate(out) ** 3) + np.sum(np.hstack(out))
    columns = np.sum(np.column_stack(out)[1] ** 2) + np.sum(np.stack(out, axis=1)[0] ** 2)
    return joined + columns + np.mean(np.array(out) * out) + np.sum(np.asarray(out)[-1])


@program
def nothing_appended(x):
    out = []
    for v in x:
        if v > 100:
            out.append(v)
    s = x[0] * 2 + (np.sum(np.array(out)) if len(out) else x[1])
    if not out:
        return s * x[2]
    return out[0] * 3


class Recorded:
    def __init__(self):
        self.seen = []
        self.count = 0

    def add(self, v):
        self.seen.append(v)
        self.count += 1


@program
def held_by_an_object(x):
    r = Recorded()
    for k in range(len(x)):
        r.add(np.tanh(x[k]))
    return np.mean(r.seen) * r.count


@program
def inside_a_derivative(x):
    def cubes(w):
        out = []
        for v in w:
            out.append(v * v * v)
        return np.sum(np.array(out) * np.cos(x))

    return fwdad.grad(cubes)(x) @ x


@program
def read_inside_a_derivative(x):
    out = []
    for v in x:
        out.append(v * v)
    return fwdad.grad(lambda w: np.sum(np.array(out) * w**2))(x) @ np.sin(x)


@program
def never_read(x):
    history = []
    y = x[0]
    while abs(y * y - 2) > 1e-8:
        history.append(y)
        y = y - (y * y - 2) / (2 * y)
    return y * x[1]
