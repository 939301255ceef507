"""Derivatives asked for very often, and from many threads: no memory is lost, and no result."""

import ctypes
import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.tiers import every

X = np.array([0.3, 0.7, 0.9])
FIRST = 1_000  # calls, after which the resident memory stays
FLAT = 2**20
STATM = Path("/proc/self/statm")
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

needs_statm = pytest.mark.skipif(not STATM.exists(), reason="nothing tells the resident memory")


def short(x):
    t = x[0]
    for k in range(len(x)):
        t = np.sin(t) * x[k]
    return t


def untraced(x):
    kept = {k: x[k] for k in range(3) if x[k] > 0.4}
    return kept[1] * kept[2]


def stacked(x):
    t = x.copy()
    for k in range(len(x)):
        t = np.sin(t) * x[k]
    return np.sum(t)


def compiled():
    gradient = fwdad.jit(fwdad.grad(short), backend="numba")
    return lambda: gradient(X)


def compiled_with_arrays():
    """Stacks of arrays, and a result too large to be copied: its memory is handed over."""
    gradient, x = fwdad.jit(fwdad.grad(stacked), backend="numba"), np.linspace(0.1, 0.9, 600)
    return lambda: gradient(x)


def that_raises():
    """An exception leaves the stacks behind that compiled code has made until then."""
    gradient = fwdad.jit(fwdad.grad(lambda x, k: short(x) * x[k]), backend="numba")

    def call():
        with pytest.raises(IndexError):
            gradient(X, 5)

    return call


def recorded():
    gradient = fwdad.grad(untraced)
    assert "recorded as it runs" in fwdad.explain(gradient, X)
    return lambda: gradient(X)


def pullback():
    _, pull = fwdad.vjp(short, X)
    return lambda: pull(1.0)


def new_pullback():
    return lambda: fwdad.vjp(short, X)[1](1.0)


MADE = [(compiled, 20_000), (compiled_with_arrays, 500), (recorded, 500), (that_raises, 500),
        (pullback, 3_000), (new_pullback, 500)]  # fmt: skip


def resident():
    """The resident memory, without what has been freed: it would be taken before new pages are."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # the GNU C library's
    if trim is not None:
        trim(0)
    return int(STATM.read_text(encoding="ascii").split()[1]) * PAGE


def flat(make, first, count):
    """Make calls; the growth of the resident memory between the first of them and the last."""
    if make is not recorded:
        pytest.importorskip("numba")
    call = make()
    for _ in range(first):
        call()
    start = resident()
    for _ in range(count):
        call()
    return resident() - start


@pytest.mark.slow_cases("pullback")
@needs_statm
@pytest.mark.parametrize(("make", "count"), every(2, MADE))
def test_some_calls_leave_the_memory_flat(make, count):
    assert flat(make, min(FIRST, count), count) < FLAT


@needs_statm
@pytest.mark.slow
@pytest.mark.parametrize("make", [make for make, _ in MADE if make is not that_raises])
def test_calls_leave_the_memory_flat(make):
    assert flat(make, FIRST, 100_000) < FLAT


@needs_statm
@pytest.mark.slow
def test_what_an_exception_leaves_behind_is_little():
    """Numba's code does not unwind: arrays that it has made until then are not freed."""
    assert flat(that_raises, FIRST, 10_000) < 10_000 * 1024


@needs_statm
def test_a_leak_is_seen():
    """A test that cannot fail is none."""
    kept = []
    assert flat(lambda: lambda: kept.append(np.ones(1000)), FIRST, 3_000) > FLAT


def in_rows(x):
    t = x * 1.0
    for k in range(len(x)):
        t = np.sin(t) * np.sum(x[k])
    return np.sum(t)


def test_threads_share_a_compiled_gradient():
    """Each of eight comes with shapes of its own, all at once, also while it is compiled."""
    pytest.importorskip("numba")
    gradient = fwdad.jit(fwdad.value_and_grad(in_rows), backend="numba")
    shapes = [(1,), (2,), (7,), (300,), (1, 1), (2, 3), (3, 2), (40, 5)]
    draws = np.random.default_rng(8)
    given = [[draws.uniform(-1, 1, s) for _ in range(5)] for s in shapes]
    begin, failed = threading.Barrier(len(shapes)), []

    def run(own):
        try:
            wanted = [fwdad.jacobian(in_rows, x, mode="forward") for x in own]
            begin.wait()
            for k in range(200):
                y, found = gradient(own[k % 5])
                assert_allclose(y, in_rows(own[k % 5]), rtol=1e-10, atol=1e-13)
                assert_allclose(found, wanted[k % 5], rtol=1e-10, atol=1e-12)
        except BaseException as error:  # noqa: BLE001  (told by the main thread)
            failed.append(error)

    threads = [threading.Thread(target=run, args=(own,)) for own in given]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed
