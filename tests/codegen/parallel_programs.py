"""Run by test_parallel.py in processes of their own, which have two threads."""

import logging
import sys
import threading

import numba
import numpy as np
import pytest

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
    assert "on_threads(region" in source  # functions of the C library's, vectors at a time
    assert "loop_" in source  # the lanes of the store
    assert "on_threads(" not in fwdad.show(serial, backend="numba")
    one, two = fwdad.jit(outer, backend="numba"), fwdad.jit(outer, parallel=True)
    for shape in ((3, 40_001), (40_001, 3), (2, 2)):
        a, b = rng.normal(size=shape[0]), rng.normal(size=shape[1])
        equal(one(a, b), two(a, b))
    assert "run by Numba" in fwdad.explain(two)


def reductions(x):
    y = x * x / (1.0 + x)
    return np.sum(y), np.mean(np.sqrt(x), axis=0), np.var(x), np.any(x > 2.0), x[:, 0] @ x[:, 1]


def sums():
    """Of rows and of all, in blocks: the bits do not depend on the number of threads."""
    serial, parallel = fwdad.jit(reductions, backend="numba"), fwdad.jit(reductions, parallel=True)
    rng = np.random.default_rng(0)
    for shape in ((700_001, 2), (3, 200_001), (2, 3), (1, 2)):
        x = rng.random(shape)
        two = parallel(x)
        numba.set_num_threads(1)
        one = parallel(x)
        numba.set_num_threads(2)
        equal(one, two)
        for a, b in zip(two, serial(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)
    assert "run by Numba" in fwdad.explain(parallel)
    text = fwdad.show(parallel, np.ones((3, 2)), backend="numba")
    assert text.count("if on_threads(") == 5  # var has two, a mean of rows none
    short, x = parallel(np.ones((3, 2))), np.ones((3, 2))
    np.testing.assert_allclose(short[0], reductions(x)[0], rtol=1e-15)


def elements(x, at, n):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        s = np.zeros(2)
        for k in range(n):
            s[k % 2] = np.sin(s[0]) + x[at[i]]
        y[i] = s[1]
    return y


def flow(p, n):
    x, y, z = p[0], p[1], p[2]
    for k in range(n):
        x, y, z = x + 1e-3 * (y - x), y + 1e-3 * (x * (p[3] - z) - y), z + 1e-3 * (x * y - p[k % 5])
    return np.array([x, y, z]), x * z


def loops():
    """Loops of the user's, whose iterations may raise, and columns of Jacobians in chunks."""
    serial, parallel = fwdad.jit(elements, backend="numba"), fwdad.jit(elements, parallel=True)
    x, at = np.random.default_rng(0).normal(size=1001), np.arange(1001)
    for n in (2, 3000):
        equal(serial(x, at, n), parallel(x, at, n))
    assert "if on_threads(loop" in fwdad.show(parallel, backend="numba")
    at[900] = 1001
    with pytest.raises(IndexError) as raised:
        parallel(x, at, 3000)
    assert "s[k % 2] = np.sin(s[0]) + x[at[i]]" in "".join(raised.value.__notes__)
    columns = fwdad.jacfwd(flow, chunk=2)  # five columns: the last chunk has one
    one, two = fwdad.jit(columns, backend="numba"), fwdad.jit(columns, parallel=True)
    p = np.array([1.0, 0.5, 0.2, 0.7, 0.1])
    for n in (3, 30_000):
        for a, b in zip(one(p, n), two(p, n), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)
    assert "if on_threads(loop" in fwdad.show(two, backend="numba")


def newton(p):
    """Kepler's equation: as many steps as a point takes."""
    E, e, k = p[0], p[1] / 2.0, 0
    while abs(E - e * np.sin(E) - p[0]) > 1e-12 and k < 50:
        E, k = E - (E - e * np.sin(E) - p[0]) / (1.0 - e * np.cos(E)), k + 1
    return E


def layers(p):
    y = p
    for _ in range(4):
        y = np.tanh(WEIGHTS @ y) + p[::-1]
    return np.sum(y**2)


def in_place(p):
    y = p.copy()
    for k in range(1, len(p)):
        y[k] += np.exp(-y[k - 1]) * p[k]
    return y[-1] if p[0] > 1.0 else y[1]


WEIGHTS = np.random.default_rng(3).normal(size=(5, 5))


def some_points():
    """Each program and each derivative of `points` once."""
    points([fwdad.hessian(newton), fwdad.grad(layers), fwdad.value_and_grad(in_place)])


def points(derivatives=None):
    """Derivatives at many points, with what each of them keeps for its reverse pass."""
    few, many = (np.random.default_rng(1).uniform(0.1, 1.5, (n, 5)) for n in (3, 3001))
    ways = fwdad.grad, fwdad.value_and_grad, fwdad.hessian
    for g in derivatives or [way(f) for f in (newton, layers, in_place) for way in ways]:
        serial = fwdad.jit(fwdad.vmap(g), backend="numba")
        parallel = fwdad.jit(fwdad.vmap(g), parallel=True)
        for x in (few, many, many[:2000]):
            equal(serial(x), parallel(x))
        assert "if on_threads(loop" in fwdad.show(parallel, backend="numba")
    eager = [fwdad.jacobian(newton, p, mode="forward") for p in few]
    np.testing.assert_allclose(fwdad.jit(fwdad.vmap(fwdad.grad(newton)))(few), eager, rtol=1e-12)


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
    assert "on_threads(" not in fwdad.show(g, backend="numba")
    assert ["parallel=True has no effect" in each.getMessage() for each in said] == [True]


if __name__ == "__main__":
    assert numba.config.NUMBA_NUM_THREADS == 2
    globals()[sys.argv[1]]()
