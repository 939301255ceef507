"""A reverse pass leaves memory as it found it: what it restores is swapped, and swapped again."""

import threading
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.drivers import residual_store
from fwdad.ir.check import check_program
from fwdad.ir.primitives.undo_log import RedoLog, copied_together
from fwdad.transforms.reverse import swap_log
from tests.transforms.reverse.random_stores import POINT, Wide, Writer, program

N = 12
X = np.linspace(0.1, 1.0, N)
TABLE = np.cos(np.arange(N))


def rows(x):
    """Views of rows, of columns, with steps and from the end; elements of them."""
    y = np.zeros((3, 4))
    y[...] = x.reshape(3, 4)
    column, row = y[:, 1], y[2, ::-1]
    s = np.sum(y * y)
    for k in range(2):
        column[k] = column[k] * row[k + 1]
        y[k, ::2] = y[k, ::2] ** 2 * column[2]
        row[-1] = row[0] * s
        y[:, k] *= y[:, k + 1]
    y[-1, -1] = np.sin(y[-1, -1]) * y[0, 0]
    return np.sum(y**3, axis=0)


def shifted(a, k):
    a[k] = a[k] * a[k - 1]
    a[1:3] = a[1:3] * a[2:4]


def branching(x):
    """Stores on both sides of branches, in calls, in loops that end early."""
    y = x * TABLE
    for k in range(1, len(x) - 1):
        if y[k] > 0.2:
            y[k] = y[k] * y[k + 1]
            shifted(y, k)
        elif y[k] > -0.2:
            y[:3] = y[1:4] * y[k]
        else:
            break
    while y[0] < 3.0:
        y[0] = 1.5 * y[0] + 0.5
        y[1] *= y[0]
    return y * x


def several(x):
    """Memory of two dtypes; a captured array that is copied and written."""
    y, z, t = x * (1 + 2j), x * 3.0, TABLE.copy()
    before = np.abs(y) * z * t
    for k in range(3):
        z[k] = z[k + 1] * t[k]
        y[k] = y[k] * y[k + 1] * z[k]
        t[k] = 0.5 * z[k]
        y[3:5] *= t[k]
    return np.abs(y) * z * t * before


def changing_places(x):
    """Which array a name means depends on how often the loop has run."""
    a, b, c = x * 1.0, x * 0.5, x * x
    for _ in range(4):
        c[1:-1] = a[1:-1] * b[2:] * 0.3 + c[:-2] * c[1:-1]
        a, b, c = b, c, a
    s = a * b
    a[0] = b[1] * c[2]
    b[1] *= a[0]
    return s + a * b * c


def flattened(x):
    """What may be a view or a copy."""
    y = (x * x).reshape(2, -1)
    flat = y.ravel()
    s = np.exp(y) * y
    for k in range(3):
        flat[k] = flat[k] * y[1, k]
        y[0, k] = np.sin(y[0, k]) * flat[-k]
    return s.ravel() * flat**2 + y.ravel() ** 3


def chosen(x):
    """One of two arrays under a further name."""
    a, b = x * 2.0, x * x
    s = np.sum(a * b * b)
    c = a if x[2] > 0.5 else b
    c[1:3] = c[1:3] * a[2:4] * b[3:5]
    c[4] = c[4] * s
    d = b if x[0] > 0.05 else a
    d[0] = np.exp(d[1]) * c[4]
    return a * c * d * b


def transposed(x):
    """What the reverse pass reads under one name is restored under the other, after that."""
    y = x * 2.0
    s = y * y
    y[[0, -1]] -= 0.5
    t = y.T
    return t * x + s


ALIASES = [changing_places, flattened, chosen]
PROGRAMS = [rows, branching, several, *ALIASES]
OTHERS = [transposed]  # an array of indices: these are always copied


@pytest.fixture
def always(monkeypatch):
    """Logs are kept however long they become; returns how much each has held at its end."""
    monkeypatch.setattr(residual_store, "_LESS", 0)
    held, undo = [], RedoLog.undo

    def watched(log):
        held.append(log.noted)
        undo(log)

    monkeypatch.setattr(RedoLog, "undo", watched)
    return held


def memory(pullback):
    """What a reverse pass writes into, copied."""
    kept = pullback._kept
    found = [kept.values[k] for k in kept.sweeps.passes.written]
    return [a.copy() for a in found if a is not None]  # a branch may leave one out


def check(pullback, expected, counts=(1, 2, 3)):
    before = memory(pullback)
    bars = np.random.default_rng(0).normal(size=(3, *expected.shape[:-1]))
    for bar in bars:
        assert_allclose(pullback(bar), bar @ expected, rtol=1e-11, atol=1e-12)
    for count in counts:
        found = pullback(bars[:count])
        assert_allclose(found, bars[:count] @ expected, rtol=1e-11, atol=1e-12)
    for was, now in zip(before, memory(pullback), strict=True):
        assert_array_equal(was, now)


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("chunk", [1, 2])
def test_again_and_for_many(f, chunk, always):
    expected, point, table = fwdad.jacobian(f, X, mode="forward"), X.copy(), TABLE.copy()
    y, pullback = fwdad.vjp(f, point, chunk=chunk)
    assert_array_equal(point, X)
    try:
        point[:] = y[:] = TABLE[:] = 7.0
        check(pullback, expected)
    finally:
        TABLE[:] = table
    assert any(always)


def test_compiled(always, monkeypatch):
    pytest.importorskip("numba")
    f = fwdad.jit(branching, backend="numba")
    _, pullback = fwdad.vjp(f, X)
    kept = pullback._kept
    check(pullback, fwdad.jacobian(branching, X, mode="forward"), counts=(3,))
    run, _ = kept.sweeps.swapping(kept.sweeps.passes.reverse)
    assert run._run.explain() == "Numba"
    assert any(always)
    before, elements = memory(pullback), kept._elements
    monkeypatch.setattr(kept, "_elements", lambda _: 1)  # too little room: it raises on its way
    with pytest.raises(IndexError):
        pullback(np.ones(N))
    assert always[-1] > 0
    for was, now in zip(before, memory(pullback), strict=True):
        assert_array_equal(was, now)
    monkeypatch.setattr(kept, "_elements", elements)
    check(pullback, fwdad.jacobian(branching, X, mode="forward"), counts=())


@pytest.mark.slow
def test_compiled_views(always):
    pytest.importorskip("numba")
    f = fwdad.jit(rows, backend="numba")
    _, pullback = fwdad.vjp(f, X)
    check(pullback, fwdad.jacobian(rows, X, mode="forward"), counts=())
    assert any(always)


@pytest.mark.parametrize("f", [*ALIASES, *OTHERS])
def test_copies_are_together(f, monkeypatch):
    """Where the arrays are copied, the copies share memory as they do."""
    monkeypatch.setattr(residual_store, "_LESS", np.inf)
    _, pullback = fwdad.vjp(f, X)
    assert pullback._kept.sweeps.passes.reverse.together
    check(pullback, fwdad.jacobian(f, X, mode="forward"), counts=(2,))


def test_copied_together():
    a = np.arange(24.0).reshape(4, 6)
    b = np.arange(3.0)
    given = [a[1:, ::2], b, a, a.T[::-1], a[:0], b[::-1], a[1:, ::2]]
    made = copied_together(given)
    for x, y in zip(given, made, strict=True):
        assert_array_equal(x, y)
        assert not np.shares_memory(x, y)
    made[0][...] = -1.0
    given[0][...] = -1.0
    made[5][0] = given[5][0] = 7.0
    for x, y in zip(given, made, strict=True):
        assert_array_equal(x, y)


@pytest.mark.every(2)
@pytest.mark.slow_cases("4-Writer")
@pytest.mark.parametrize("kind", [Writer, Wide])
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(kind, seed, always):
    f, text = program(seed, kind)
    expected = fwdad.jacobian(f, POINT, mode="forward")
    _, pullback = fwdad.vjp(f, POINT)
    before = memory(pullback)
    scale = max(1.0, np.abs(expected).max())
    for _ in range(2):
        assert_allclose(pullback(1.0), expected, rtol=1e-8, atol=1e-9 * scale, err_msg=text)
    found = pullback(np.array([1.0, -2.0, 0.5]))
    assert_allclose(found[1], -2.0 * expected, rtol=1e-8, atol=1e-9 * scale, err_msg=text)
    for was, now in zip(before, memory(pullback), strict=True):
        assert_array_equal(was, now, err_msg=text)
    assert any(always) or kind is Wide


def test_one_that_is_not_noted(always, monkeypatch):
    """A planted fault: an element that is restored and not noted is not as it was."""
    noting = swap_log._noting

    def forgetful(op, parts):
        made = noting(op, parts)
        made.args = (*made.args[:-1], 1)  # notes another element
        return made

    monkeypatch.setattr(swap_log, "_noting", forgetful)

    def f(x):
        y = x * 2.0
        s = np.sum(y * y)
        y[3] = y[4] * s
        return np.sum(y * y)

    _, pullback = fwdad.vjp(f, X)
    before = memory(pullback)
    pullback(1.0)
    assert any((was != now).any() for was, now in zip(before, memory(pullback), strict=True))


def one_of_many(x):
    y = x * 2.0
    s = np.sum(y * y)
    for k in range(3):
        y[k] = np.sin(y[k]) * y[k + 1]
    y[-2:] *= s
    return np.sum(y * y)


def test_a_log_is_as_long_as_what_was_saved(monkeypatch):
    """Three elements and a view of two: the log has five places, and no array is copied."""
    made = []

    class Watched(RedoLog):
        def __init__(self, arrays, dtype, room):
            super().__init__(arrays, dtype, room)
            made.append((self.nbytes, room))

        def undo(self):
            made.append(self.noted)
            super().undo()

    monkeypatch.setattr(residual_store, "RedoLog", Watched)
    x = np.linspace(0.1, 1.0, 50_000)

    def peak():
        _, pullback = fwdad.vjp(one_of_many, x)
        pullback(1.0)
        made.clear()
        tracemalloc.start()
        try:
            x_bar = pullback(1.0)
            return x_bar, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    swapped, least = peak()
    assert made == [(80, 5), 5]
    monkeypatch.setattr(residual_store, "_LESS", np.inf)  # copies always
    copied, most = peak()
    assert made == []
    assert_array_equal(swapped, copied)
    assert most - least > 0.9 * x.nbytes


def test_what_is_overwritten_as_a_whole_is_copied():
    """A log of all elements would be twice as long as the arrays, and slower."""

    def f(x):
        y = x * 1.0
        for _ in range(3):
            y[:] = np.sin(y) * y
        return y * y

    _, pullback = fwdad.vjp(f, X)
    assert len(memory(pullback)) == 1
    assert pullback._kept._logs_for(pullback._kept.sweeps.passes.reverse) is None
    check(pullback, fwdad.jacobian(f, X, mode="forward"), counts=(2,))


@pytest.mark.parametrize("before", [True, False])
def test_interrupted(before, always, monkeypatch):
    """Between what is noted and what is written, or after it: all is as it was, at once."""
    calls, note = [], swap_log.note

    def striking(*given):
        calls.append(len(given))
        strikes = len(calls) == 3
        if strikes and before:
            raise KeyboardInterrupt
        note(*given)
        if strikes:
            raise KeyboardInterrupt

    monkeypatch.setattr(swap_log, "note", striking)
    factor = 2.0 + before  # another function each time, with a tape of its own

    def f(x):
        y = x * factor
        z = y * y
        for k in range(4):
            y[k] = np.sin(y[k]) * y[k + 1]
        return y * z

    _, pullback = fwdad.vjp(f, X)
    kept = memory(pullback)
    with pytest.raises(KeyboardInterrupt):
        pullback(np.ones(N))
    assert always[-1] == 3 - before
    for was, now in zip(kept, memory(pullback), strict=True):
        assert_array_equal(was, now)
    check(pullback, fwdad.jacobian(f, X, mode="forward"))


def test_undone_later(always, monkeypatch):
    """What could not be put away, because of another interruption, the next call puts away."""

    def f(x):
        y = x * 2.0
        z = y * y
        for k in range(4):
            y[k] = np.sin(y[k]) * y[k + 1]
        return y * z

    _, pullback = fwdad.vjp(f, X)
    kept, undo = memory(pullback), RedoLog.undo

    def interrupted(log):
        if log.noted:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RedoLog, "undo", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pullback(np.ones(N))
    assert any((was != now).any() for was, now in zip(kept, memory(pullback), strict=True))
    assert_allclose(pullback(np.ones(N)), fwdad.jacobian(f, X, mode="forward").sum(0), rtol=1e-11)
    for was, now in zip(kept, memory(pullback), strict=True):
        assert_array_equal(was, now)
    assert RedoLog.undo is undo


def test_from_two_threads(always):
    _, pullback = fwdad.vjp(branching, X)
    expected = fwdad.jacobian(branching, X, mode="forward")
    bars = np.random.default_rng(1).normal(size=(40, N))
    found = {}

    def work(k):
        for i in range(k, 40, 2):
            found[i] = pullback(bars[i])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, bar in enumerate(bars):
        assert_allclose(found[i], bar @ expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("f", PROGRAMS)
def test_well_formed(f):
    _, pullback = fwdad.vjp(f, X)
    passes = pullback._kept.sweeps.passes
    check_program(swap_log.swapping(passes.reverse, passes.written).program)
