"""Run by test_parallel.py in processes of their own, which have two threads."""

import logging
import sys
import threading

import numba
import numpy as np

import fwdad

N = 60_000


def f(x):
    y = np.exp(np.sin(x))
    y[1:] = x[:-1] / (2.0 + y[1:])
    return y


def push(x, v):
    return fwdad.jvp(f, x, v)


def outer(a, b):
    return np.exp(np.sin(a[:, None]) * b)  # the longest axis is split, whichever it is


def equal(one, two):
    pairs = zip(one, two, strict=True) if isinstance(one, tuple) else [(one, two)]
    for a, b in pairs:
        assert a.tobytes() == b.tobytes()


def same_bits():
    """Serial and parallel results, on both sides of the threshold and at ragged lengths."""
    serial = fwdad.jit(push, backend="numba")
    parallel = fwdad.jit(push, backend="numba", parallel=True)
    rng = np.random.default_rng(0)
    for n, lanes in ((2, 2), (7, 3), (N, 2), (N + 1, 3), (2 * N, 1)):
        x, v = rng.normal(size=n), rng.normal(size=(lanes, n))
        equal(serial(x, v), parallel(x, v))
    source = fwdad.show(parallel, backend="numba")
    assert "region_on_threads(" in source  # functions of the C library's, vectors at a time
    assert "loop_" in source  # the lanes of the store
    assert "prange(" not in fwdad.show(serial, backend="numba")
    one, two = fwdad.jit(outer, backend="numba"), fwdad.jit(outer, parallel=True)
    for shape in ((3, 40_001), (40_001, 3), (2, 2)):
        a, b = rng.normal(size=shape[0]), rng.normal(size=shape[1])
        equal(one(a, b), two(a, b))
    assert "run by Numba" in fwdad.explain(two)


def nested():
    """Calls by two threads at once, and by a loop that is parallel itself."""
    serial = fwdad.jit(lambda x: np.sin(np.exp(np.sin(x))), backend="numba")
    parallel = fwdad.jit(lambda x: np.sin(np.exp(np.sin(x))), backend="numba", parallel=True)
    xs = np.random.default_rng(0).normal(size=(4, N))
    expected = np.array([serial(x) for x in xs])
    parallel(xs[0])
    found = [None] * 4

    def run(k):
        found[k] = parallel(xs[k])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    equal(np.array(found), expected)

    @numba.njit(parallel=True)
    def rows(xs):
        made = np.empty_like(xs)
        for k in numba.prange(xs.shape[0]):
            made[k] = parallel(xs[k])
        return made

    equal(rows(xs), expected)


def unsafe_layer():
    """Where only Numba's own pool is there, nothing is parallel, and a message says so."""
    said = []
    handler = logging.Handler()
    handler.emit = said.append
    logging.getLogger("fwdad").addHandler(handler)
    g = fwdad.jit(outer, parallel=True)
    a, b = np.ones(2), np.linspace(0, 1, N)
    np.testing.assert_allclose(g(a, b), outer(a, b), rtol=1e-14)
    assert "prange(" not in fwdad.show(g, backend="numba")
    assert ["parallel=True has no effect" in each.getMessage() for each in said] == [True]


if __name__ == "__main__":
    assert numba.config.NUMBA_NUM_THREADS == 2
    globals()[sys.argv[1]]()
