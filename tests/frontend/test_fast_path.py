"""Calls that find their tape by the types and shapes of their arguments alone."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.evaluation.by_tape import MISS, never

FACTOR = 2.0


def scaled(x):
    return x * FACTOR + np.sum(x)


def doubled(x):
    return 2 * x


HELPER = doubled


def helped(x):
    return HELPER(x)


def calls(f, *args, times=4):
    """The same call again and again: the first traces, the second notes, the others are short."""
    found = [f(*args) for _ in range(times)]
    for y in found[1:]:
        assert_allclose(y, found[0], rtol=0)
    return found[0]


def test_captured_numbers_are_read_at_each_call(monkeypatch):
    f = fwdad.jit(scaled, backend="numpy")
    x = np.array([1.0, 2.0])
    assert_allclose(calls(f, x), [5.0, 7.0])
    assert f._latest is not never
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert_allclose(calls(f, x), [6.0, 9.0])
    assert fwdad.cache_info(f).traces == 1
    monkeypatch.setitem(globals(), "FACTOR", np.array([1.0, 0.0]))  # of another type
    assert_allclose(calls(f, x), [4.0, 3.0])
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert_allclose(calls(f, x), [5.0, 7.0])
    assert fwdad.cache_info(f) == (2, 14)
    monkeypatch.delitem(globals(), "FACTOR")
    with pytest.raises(NameError):
        f(x)


def test_functions_are_compared_at_each_call(monkeypatch):
    f = fwdad.jit(helped, backend="numpy")
    x = np.array([1.0, 2.0])
    assert_allclose(calls(f, x), [2.0, 4.0])
    monkeypatch.setitem(globals(), "HELPER", lambda x: x + 1)
    assert_allclose(calls(f, x), [2.0, 3.0])
    assert fwdad.cache_info(f).traces == 2
    assert f._latest is not never
    assert fwdad.cache_info(f).hits == 6


def test_cells_are_read_at_each_call():
    factor = 2.0

    @fwdad.jit(backend="numpy")
    def f(x):
        return x * factor

    assert calls(f, 3.0) == 6.0
    factor = 5.0
    assert calls(f, 3.0) == 15.0
    assert fwdad.cache_info(f).traces == 1


def test_other_arguments_take_another_way():
    f = fwdad.jit(lambda x: x * 2, backend="numpy")
    x = np.array([1.0, 2.0, 3.0])
    same = x.astype(np.dtype("f8").newbyteorder("=").newbyteorder("S").newbyteorder("S"))
    for a in (
        x,
        x[::-1],
        same,
        x.astype(np.float32),
        x[:1],
        x[:0],
        x.reshape(3, 1),
        2.0,
        3,
        [x, 1],
    ):
        expected = [x, 1] * 2 if isinstance(a, list) else a * 2
        for _ in range(4):
            found = f(a)
            assert type(found) is type(expected)
            if not isinstance(a, list):
                assert np.shape(found) == np.shape(a)
                assert getattr(found, "dtype", None) == getattr(a, "dtype", None)
                assert_allclose(found, expected, rtol=0)

    class Own(np.ndarray):
        pass

    with pytest.raises(fwdad.errors.FwdadError):
        f(x.view(Own))
    assert_allclose(calls(f, x), 2 * x)
    with pytest.raises(TypeError):
        f()
    with pytest.raises(TypeError):
        f(x, x)


def test_results_in_a_structure_are_put_together():
    f = fwdad.jit(lambda a, b: {"sum": a + b, "parts": (a, [b])}, backend="numpy")
    for _ in range(4):
        found = f(1.0, np.ones(2))
        assert found["parts"][0] == 1.0
        assert_allclose(found["sum"], [2.0, 2.0])
    first, second = f(1.0, np.ones(2)), f(1.0, np.ones(2))
    assert first["parts"][1] is not second["parts"][1]


def test_threads_share_shortcuts():
    f = fwdad.jit(scaled, backend="numpy")
    failed = []

    def work(n):
        x = np.arange(float(n))
        failed.extend(n for _ in range(200) if not np.array_equal(f(x), scaled(x)))

    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3, 4, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_the_latest_shortcut_is_for_such_arguments_alone():
    f = fwdad.jit(lambda x, c, y: c * x + y, backend="numpy")
    x = np.array([1.0, 2.0])
    assert_allclose(calls(f, x, 2.0, x), [3.0, 6.0])
    assert f._latest((x, 3.0, x), {}) is not MISS
    single = x.astype(np.float32)
    for args in [
        (x,),
        (x, 2, x),
        (x, 2.0, x[:1]),
        (x, 2.0, single),
        (x, 2.0, 1.0),
        (x[None], 2.0, x),
    ]:
        assert f._latest(args, {}) is MISS
    for args in [(x, 2, x), (x, 2.0, x[:1]), (single, 2.0, single), (x[None], 2.0, x)]:
        found, expected = calls(f, *args), args[1] * args[0] + args[2]
        assert found.dtype == expected.dtype
        assert_allclose(found, expected)
    with pytest.raises(TypeError):
        f(x)


class Held:
    """Something with attributes."""

    def __init__(self, weights):
        self.weights = weights


DATA = np.array([1.0, 2.0])
HELD = Held(np.array([3.0, 4.0]))


def with_arrays(x):
    return np.sum(x * DATA) + np.sum(HELD.weights)


def test_captured_arrays_are_read_at_each_call(monkeypatch):
    f = fwdad.jit(with_arrays, backend="numpy")
    x = np.array([1.0, 1.0])
    assert calls(f, x) == 10.0
    assert f._latest is not never
    DATA[0] += 1.0
    HELD.weights[1] -= 1.0
    assert calls(f, x) == 10.0
    monkeypatch.setitem(globals(), "DATA", np.array([5.0, 5.0]))
    monkeypatch.setattr(HELD, "weights", np.array([0.5]))
    assert calls(f, x) == 10.5
    monkeypatch.setitem(globals(), "DATA", np.ones((3, 2)))
    assert calls(f, x) == 6.5
    monkeypatch.setattr(HELD, "weights", np.array([1, 2, 3]))
    assert calls(f, x) == 12.0
    monkeypatch.setattr(HELD, "weights", 1.0)
    assert calls(f, x) == 7.0
    monkeypatch.delattr(HELD, "weights")
    with pytest.raises(AttributeError):
        f(x)


def test_a_captured_array_that_is_written_and_shares_memory_takes_another_way():
    held = np.zeros(4)

    @fwdad.jit(backend="numpy")
    def f(x):
        y = held[:3]
        x[0] += 1.0
        return np.sum(x) + np.sum(y)

    for _ in range(3):
        assert f(np.ones(3)) == 4.0
    view = held[1:]
    for k in range(3):
        assert f(view) == 2.0 * (k + 1)
        assert held[1] == k + 1
