"""Programs that touch the world around them: factories of a function, and of a look at its world.

Files go into the folder that is given. A look returns plain data that is compared by ``==``.
"""

import collections
import contextlib
import csv
import io
import json
import logging
import os
import pickle
import queue
import sys
import warnings
from pathlib import Path

import numpy as np

PROGRAMS = []


def program(make):
    PROGRAMS.append(make)
    return make


def said(x):
    """A value as data: arrays by dtype, shape and bytes, other things by type and text."""
    if isinstance(x, np.ndarray):
        return ("array", x.dtype.str, x.shape, x.tobytes())
    if isinstance(x, dict):
        return (type(x).__name__, [(key, said(value)) for key, value in x.items()])
    if isinstance(x, (list, tuple, collections.deque)):
        return (type(x).__name__, [said(item) for item in x])
    if isinstance(x, set):
        return ("set", sorted(x))
    if hasattr(x, "__dict__") and not isinstance(x, type):
        return (type(x).__name__, said(vars(x)))
    return (type(x).__name__, repr(x))


def files(folder):
    return {p.name: p.read_bytes() for p in sorted(Path(folder).iterdir())}


class Simulation:
    """Work arrays, a history, counters, the last result: what objectives of users keep."""

    def __init__(self):
        self.u, self.calls, self.history, self.best = np.zeros(7), 0, [], None
        self.table = {"a": [0.0]}

    def __call__(self, x):
        self.calls += 1
        self.u[1:-1] = x[:5]
        for k in range(1, 6):
            self.u[k] = self.u[k] * self.u[k + 1] + self.u[k - 1]
        value = np.sum(self.u**2)
        self.history.append(value)
        self.history.append((x.copy(), {"last": x[0]}))
        self.table["a"][0] = value * 2.0
        self.table[f"call {self.calls}"] = self.calls
        self.last_u = self.u * 3.0
        return value


@program
def simulation(_folder):
    s = Simulation()
    return s, lambda: said(s)


@program
def containers(_folder):
    items = {
        "list": [], "dict": {}, "set": set(), "deque": collections.deque(maxlen=3),
        "ordered": collections.OrderedDict(a=1.0), "counter": collections.Counter(),
        "queue": queue.Queue(), "default": collections.defaultdict(list),
    }  # fmt: skip

    def f(x):
        for k in range(4):
            items["list"].append(x[k] * 2.0)
            items["set"].add(k)
            items["deque"].appendleft(x * k)
            items["counter"]["calls"] += 1
            items["default"][k % 2].append(x[k])
        items["dict"]["x"] = [x, (x[0], "text")]
        items["ordered"]["b"] = x[1]
        items["ordered"].move_to_end("a")
        items["queue"].put(x[0] + x[1])
        return np.sum(x**2) * items["list"][-1]

    def look():
        held = {key: value for key, value in items.items() if key != "queue"}
        return said(held), said(items["queue"].queue)

    return f, look


COUNT, TOTAL = 0, None


@program
def names(_folder):
    global COUNT, TOTAL
    COUNT, TOTAL, seen = 0, None, 0

    def f(x):
        global COUNT, TOTAL
        nonlocal seen
        COUNT += 1
        seen += 2
        TOTAL = np.sum(x)
        f.last = x[0]
        os.environ["FWDAD_TEST_WORLD"] = f"{COUNT}"
        return TOTAL * x[1]

    f.last = None
    os.environ.pop("FWDAD_TEST_WORLD", None)
    return f, lambda: (COUNT, said(TOTAL), seen, said(f.last), os.environ.get("FWDAD_TEST_WORLD"))


@program
def output(_folder):
    text = io.StringIO()

    def f(x):
        print("x =", x, x[0], f"{x[1]:.3f}", "%.2e" % x[2])  # noqa: UP031
        print("error", file=sys.stderr)
        sys.stdout.write(f"first {x[0]}\n")
        for k in range(3):
            if x[k] > 0.5:
                print(k, x[k], file=text)
        return np.sum(x * x)

    return f, text.getvalue


@program
def files_by_numpy(folder):
    def f(x):
        np.save(folder / "a.npy", x)
        np.savez(folder / "b.npz", x=x, twice=2 * x)
        np.savetxt(folder / "c.txt", x)
        (x * 3.0).tofile(folder / "d.bin")
        return np.sum(x**3)

    return f, lambda: files(folder)


@program
def files_by_hand(folder):
    def f(x):
        with open(folder / "log.txt", "a") as file:  # noqa: PTH123 - it is what people write
            file.write(f"{x[0]}\n")
            print(x, file=file)
        with (folder / "rows.csv").open("a", newline="") as file:
            csv.writer(file).writerow([x[0], x[1]])
        with (folder / "x.json").open("w") as file:
            json.dump({"x": [x[0], x[1]]}, file)
        with (folder / "x.pickle").open("wb") as file:
            pickle.dump({"x": x}, file)
        return np.sum(x) * x[0]

    return f, lambda: files(folder)


class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append((record.levelname, record.getMessage(), said(record.args)))


@program
def logs(_folder):
    logger, handler = logging.getLogger("tests.world"), Kept()
    logger.handlers[:], logger.propagate = [handler], False
    logger.setLevel(logging.DEBUG)

    def f(x):
        logger.info("x=%s, first %s", x, x[0])
        for k in range(2):
            logger.debug(f"{k}: {x[k]}")  # noqa: G004 - it is what people write
        return np.sum(np.sin(x))

    return f, lambda: handler.records


@program
def warned(_folder):
    def f(x):
        if x[0] > 0:
            warnings.warn(f"first is {x[0]}", stacklevel=1)
        return np.sum(x**2)

    return f, lambda: None


@program
def generators(_folder):
    rng = np.random.default_rng(3)

    def f(x):
        return np.sum(x * rng.normal(size=len(x))) * rng.random()

    return f, lambda: rng.bit_generator.state


@program
def raises_and_catches(folder):
    held = []

    def f(x):
        try:
            held.append(x[0])
            (folder / "missing").read_text()
        except FileNotFoundError as error:
            held.append(type(error).__name__)
        with contextlib.suppress(KeyError):
            held.append({}[len(held)])
        for value in steps(x):
            held.append(value)  # noqa: PERF402 - one by one, while the generator runs
        return x[0] * x[1] + held[-1]

    def steps(x):
        for k in range(3):
            held.append(k)
            yield x[k] * k

    return f, lambda: said(held)
