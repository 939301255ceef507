"""Tapes are dropped, the least recently used first, by number and by bytes."""

import gc
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.drivers import kept_tapes

LIMIT = 5


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(kept_tapes, "MOST_TAPES", LIMIT)


def loss(x):
    return np.sum(x[1:] * x[:-1] ** 2)


def lengths_of(f):
    return [made.tape.program.block.params[0].type.shape[0] for made in f.specialisations()]


@pytest.mark.usefixtures("young_heap")
def test_many_lengths(few):
    """37 lengths are traced, and few are kept."""
    f = fwdad.jit(loss, backend="numpy", static_shapes=True)
    tapes = []
    for n in range(2, 39):
        x = np.linspace(0.0, 1.0, n)
        assert_allclose(f(x), loss(x))
        f(x)
        tapes.append(weakref.ref(f.last))
    info = fwdad.cache_info(f)
    assert (info.traces, info.tapes, info.dropped) == (37, LIMIT, 32)
    assert lengths_of(f) == [*range(34, 39)]
    assert "dropped=32" in repr(info)
    gc.collect()
    assert sum(tape() is not None for tape in tapes) == LIMIT


def test_the_least_recently_used_goes(few):
    """Calls by shortcuts count as uses."""
    f = fwdad.jit(loss, backend="numpy", static_shapes=True)
    for n in range(20, 20 + LIMIT):
        for _ in range(3):
            f(np.ones(n))
    f(np.ones(20))
    f(np.ones(40))
    assert sorted(lengths_of(f)) == [20, 22, 23, 24, 40]
    assert_allclose(f(np.full(21, 2.0)), loss(np.full(21, 2.0)))
    assert sorted(lengths_of(f)) == [20, 21, 23, 24, 40]


def test_bytes(monkeypatch):
    """A tape that holds a large array counts as such; the latest stays, whatever it takes."""
    a = np.arange(1e5)
    f = fwdad.jit(lambda x, k: np.sum(np.arange(1e5) * x) + k, backend="numpy")
    assert_allclose(f(2.0, 1), 2 * np.sum(a) + 1)
    one = fwdad.cache_info(f).nbytes
    assert one > 0
    monkeypatch.setattr(kept_tapes, "MOST_BYTES", int(1.5 * one))
    f(2.0, 1.0)
    f(np.float64(2.0), 1.0)
    info = fwdad.cache_info(f)
    assert info.tapes == 1
    assert info.dropped == 2
    assert info.nbytes <= 1.5 * one


@pytest.mark.usefixtures("young_heap")
def test_derivatives_too(few):
    """Shortcuts to derivatives at the doors of the evaluators lead to no tape that is gone."""
    f = fwdad.jit(loss, backend="numpy", static_shapes=True)
    gradient = fwdad.grad(f)
    tapes = []
    for n in range(2, 22):
        x = np.linspace(0.0, 1.0, n)
        for _ in range(3):
            found = gradient(x)
        assert_allclose(found, fwdad.grad(loss)(x))
        (derivative,) = (d for d in f.derivatives.values() if not isinstance(d, str))
        tapes.append(weakref.ref(derivative.last))
    assert fwdad.cache_info(f).dropped == 20 - LIMIT
    gc.collect()
    assert sum(tape() is not None for tape in tapes) == LIMIT


def test_what_is_shown():
    f = fwdad.jit(loss)
    f(np.ones(3))
    info = fwdad.cache_info(f)
    assert info == (1, 0)
    assert info.tapes == len(f.specialisations())
    assert info.nbytes > 0
    assert (info.most_tapes, info.most_nbytes) == (64, 2**28)
    assert "kept at most" in info._repr_html_()
