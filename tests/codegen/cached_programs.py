"""Programs that a process runs with compiled code from the disk; see test_disk_cache.py."""

import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from numba import njit
from numba.core import event

import fwdad
from fwdad.codegen.cache import private_files
from fwdad.codegen.call_entry import compile_program
from fwdad.frontend.trace import trace

ROOT = Path(__file__).parents[2]
X = np.array([0.5, 1.25, -2.0])


class TooLargeError(Exception):
    pass


def powers(x, n):
    """Helpers that check for overflow; Numba may leave them as functions of their own."""
    y = 1.0
    k = 1
    for i in range(n):
        y = y * x + k % 7 + k // 3
        k = k**2 % 11 + i**3
    return y, k


def rotated(x):
    """Its Jacobian is in registers."""
    return np.array([x[0] * x[1], np.sin(x[1]) / x[2], x[2] ** 3 - x[0]])


def solved(a, b):
    return np.linalg.solve(a, b).sum()


def waves(x):
    """Functions of the C library's vector library, where there is one."""
    return np.sin(x) * np.exp(-x)


def element(x, k):
    return x[k] * 2.0


def doubled_below(x, bound):
    """It writes, so that what compiled code raises is what the user sees."""
    for i in range(len(x)):
        if x[i] > bound:
            raise TooLargeError("too large")
        x[i] = 2 * x[i]
    return x.sum()


def answer(f, *args):
    try:
        y = fwdad.jit(f)(*args)
    except (IndexError, TooLargeError) as error:
        return [type(error).__name__, str(error)]
    return [np.asarray(item).tolist() for item in (y if isinstance(y, tuple) else (y,))]


def answers():
    x = X
    a = np.array([[2.0, 1.0], [0.5, 3.0]])
    return [
        answer(powers, 1.5, 6),
        answer(fwdad.jacfwd(rotated), x),
        answer(solved, a, np.array([1.0, 2.0])),
        answer(element, x, 1),
        answer(element, x, 7),
        answer(doubled_below, x.copy(), 4.0),
        answer(doubled_below, x.copy(), 1.0),
        answer(waves, np.linspace(0.1, 3, 21)),
    ]


def assert_answers(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        if isinstance(b[0], str):
            assert a == b
        else:
            for x, y in zip(a, b, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-14)


class Count(logging.Handler):
    """What the cache says that it does."""

    def __init__(self):
        super().__init__()
        self.words = Counter()

    def emit(self, record):
        self.words[record.getMessage().partition(" ")[0]] += 1


def counted():
    """A counter that listens from now on."""
    log, count = logging.getLogger("fwdad.cache"), Count()
    log.setLevel(logging.DEBUG)
    log.addHandler(count)
    return count.words


def square(x, y):
    return x * x - y


def call(x=3.0, y=1.5):
    """A function that is jitted and called for the first time."""
    return fwdad.jit(square)(x, y)


def inside():
    """What a caller that Numba compiles gets from code that may come from the disk."""
    jacobian = trace(fwdad.jacfwd(rotated), X)
    first, second = (compile_program(t.program) for t in (jacobian, trace(powers, 1.5, 6)))
    first.call(X)
    second.call(1.5, 6)
    j, p = first.kernel, second.kernel

    @njit
    def caller(x, n):
        return j(x)[0].sum() + p(x[1], n)[0]

    return caller(X, 6)


def main():
    """Print what the cache did and every result, as JSON; for a process of its own."""
    count = counted()
    with event.install_recorder("numba:compile") as compiled:
        found = {"answers": answers(), "count": dict(count), "compiled": len(compiled.buffer)}
    print(json.dumps(found | {"inside": inside()}))


def stopped(stage):
    """Run one program until a stage, say so, and wait to be killed."""

    def stop(*_):
        print("stopped", flush=True)
        time.sleep(600)

    if stage == "compiling":
        event.register("numba:compile", Stopping(stop))
    else:
        what, _, how_far = stage.partition(", ")
        write = os.fdopen

        def opened(handle, mode):
            """A file that stops when half of a key or of an entry is written."""
            file = write(handle, mode)
            return Half(file, stop, what == "the key") if mode == "wb" else file

        rename = private_files.Folder._name

        def named(folder, draft, name, new):
            if name.endswith(".key") == (what == "the key"):
                stop()
            rename(folder, draft, name, new)

        if how_far == "half written":
            os.fdopen = opened
        else:
            private_files.Folder._name = named
    call()


class Stopping(event.Listener):
    def __init__(self, stop):
        self.on_start = stop

    def on_start(self, _):
        pass

    def on_end(self, _):
        pass


class Half:
    """A file that stops when half of a key, or of what is no key, has been written."""

    def __init__(self, file, stop, is_key):
        self.file, self.stop, self.is_key = file, stop, is_key

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, data):
        if (len(data) < 100) == self.is_key:
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            self.stop()
        self.file.write(data)


def start(folder, package=ROOT, call="main()"):
    """A process that runs programs with a package and a cache directory."""
    code = f"from tests.codegen import cached_programs; cached_programs.{call}"
    env = os.environ | {"FWDAD_CACHE_DIR": str(folder), "PYTHONPATH": str(package)}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=env, cwd=package, stdout=subprocess.PIPE, text=True
    )


def finish(process):
    """What such a process has printed."""
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])
