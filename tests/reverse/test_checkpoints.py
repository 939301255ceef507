"""Loops run again from checkpoints: the bits without, few states, and no more work than is said."""

import math
import pickle
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.backends.numpy_source import numpy_source
from fwdad.tape import snapshots
from fwdad.tape.check import check_program
from fwdad.tape.ops import Loop
from fwdad.tape.stacks import new_stack, push
from tests.reverse.programs import PROGRAMS

X = np.array([0.5, 0.7, 0.3, 1.1, 0.9])
NAMES = [f"{f.__name__}-{k}" for k, (f, _) in enumerate(PROGRAMS)]


def power(x, n):
    r = 1.0
    for _ in range(n):
        r *= x
    return r


def power_while(x, n):
    r, k = 1.0, 0
    while k < n:
        r *= x
        k += 1
    return r


def whole_arrays(x, n):
    for _ in range(n):
        x = np.sin(x) + 0.1 * x
    return np.sum(x)


def stencil(x, n):
    u = x.copy()
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
    return np.sum(u * u)


def seidel(x, n):
    u = x.copy()
    for _ in range(n):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + 0.1 * (u[i + 1] - 2 * u[i] + u[i - 1]) * u[i]
    return np.sum(u * u)


def two_buffers(x, n):
    u, v = x.copy(), np.zeros(len(x))
    for _ in range(n):
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
        u, v = v, u
    return np.sum(u * u)


def recurrence(x, n):
    y = np.zeros(n + 1)
    y[0] = 0.3
    for i in range(1, n + 1):
        y[i] = x[i % 5] * y[i - 1] + np.sin(y[i - 1])
    return y[n]


def accumulated(x, n):
    a = np.zeros(3)
    for i in range(n):
        a[i % 3] += x[i % 5] * a[(i + 1) % 3] + 1.0
        a *= 0.9
    return np.sum(a)


def read_before(x, n):
    """What was read before the loop is put back after it."""
    u = x.copy()
    s = u[0] * u[1]
    for _ in range(n):
        u[0] = u[0] * u[1]
        u[1] = np.sin(u[1])
    return s * u[0] + np.sum(x)


def overwritten_later(x, n):
    """What the loop reads when it is run again is overwritten after it."""
    u, w = x.copy(), 0.0
    for i in range(n):
        w = w + np.sin(u[i % 5] * w + 1.0)
    u[:] = 0.0
    u[2] = w
    return u[2] * w + np.sum(u)


def sides(x, n):
    y = x[0]
    for _ in range(n):
        if y > 1.0:
            y = y * 0.5
            y = y * x[1]
        else:
            y = y + x[2]
    return y


def left_early(x, n):
    y = x[0]
    for _ in range(2 * n):
        y = y * 1.1 + x[1]
        if y > 1.1**n:
            break
    return y


def heun(x, n):
    t, y, h = 0.0, x.copy(), 1.0 / (n + 0.5)
    while t < 1.0:
        k1 = -y * y
        k2 = -((y + h * k1) ** 2)
        y = y + 0.5 * h * (k1 + k2)
        t += h
    return np.sum(y)


def downwards(x, n):
    r = x[0]
    for i in range(2 * n + 1, 1, -2):
        r = r + np.sin(r * x[1]) / i
    return r


def twice(x, n):
    s = 0.0
    for j in range(3):
        a = x[j]
        for _ in range(n):
            a = a * np.cos(a) + x[4]
        s += a * a
    return s


def mixed_names(x, n):
    """A window on an array, and the array itself, are written."""
    u = x.copy()
    w = u[1:4]
    for i in range(n):
        w *= 1.0 + 0.1 * x[i % 5]
        u[2] = u[2] * u[0] + w[0]
    return np.sum(u * u)


LOOPS = [
    whole_arrays, stencil, seidel, two_buffers, recurrence, accumulated, read_before,
    overwritten_later, sides, left_early, heun, downwards, twice, mixed_names,
]  # fmt: skip
PLANS = [{"snapshots": 1}, {"snapshots": 2}, {"snapshots": 7}, {}, {"memory": 200}]


def compiled(f, backend="numpy", **plan):
    g = fwdad.checkpoint(f, **plan) if plan is not None else f
    return fwdad.jit(fwdad.grad(g), backend=backend)


@pytest.mark.parametrize("f", LOOPS)
def test_bits(f):
    plain = fwdad.jit(fwdad.grad(f), backend="numpy")
    for plan in PLANS:
        g = compiled(f, **plan)
        for n in (0, 1, 2, 3, 17, 60):
            assert_array_equal(g(X, n), plain(X, n))
    tape = fwdad.trace(fwdad.grad(fwdad.checkpoint(f)), X, 3)
    check_program(tape.program)
    forward = fwdad.jacobian(f, X, args=(5,), mode="forward")
    assert_allclose(compiled(f, snapshots=2)(X, 5), forward, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=NAMES)
def test_programs(f, x):
    expected = fwdad.jit(fwdad.grad(f), backend="numpy")(x)
    for plan in ({"snapshots": 1}, {"snapshots": 3}, {}):
        assert_array_equal(compiled(f, **plan)(x), expected)


# -- calls


def layer(x, w):
    y = np.tanh(x * w)
    z = np.exp(y) * y
    return np.sin(z) + z * y


def filled(x, w):
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) * x[i] + w
    return y


def written_into(x, w):
    x[1:] = x[1:] * x[:-1] + w
    x *= 0.9
    return np.sum(x) * x[0]


def pair(x, w):
    return np.sin(x) * w, np.sum(x * x) * w


def repeated(g):
    def f(x, n):
        for i in range(n):
            x = g(x, 0.5 + 0.1 * i)
        return np.sum(x * x)

    return f


def in_a_row(g):
    def f(x, n):
        a = g(x, 0.3)
        b = g(a, 0.7 * n)
        c = g(b * a, 0.2)
        c[0] = b[0] * a[1]
        return np.sum(c * b)

    return f


def on_an_array(g):
    def f(x, n):
        u, s = x.copy(), 0.0
        for i in range(n):
            s = s + g(u, 0.1 * i)
            u[0] = u[0] + s * 0.01
        return s + np.sum(u)

    return f


def two_values(g):
    def f(x, n):
        s = 0.0
        for i in range(n):
            if i % 2 == 0:
                x, t = g(x, 0.9)
                s += t
        return s + np.sum(x)

    return f


CALLS = [
    (repeated, layer), (repeated, filled), (in_a_row, layer), (in_a_row, filled),
    (on_an_array, written_into), (two_values, pair),
]  # fmt: skip


@pytest.mark.parametrize(("made", "g"), CALLS)
def test_calls(made, g):
    plain = fwdad.jit(fwdad.grad(made(g)), backend="numpy")
    again = made(fwdad.checkpoint(g, snapshots=2))
    for f in (again, fwdad.checkpoint(again, snapshots=2)):
        gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
        for n in (0, 1, 2, 5):
            assert_array_equal(gradient(X, n), plain(X, n))
    check_program(fwdad.trace(fwdad.grad(again), X, 3).program)
    assert_allclose(fwdad.jacobian(again, X, args=(3,), mode="forward"), plain(X, 3), rtol=1e-12)


def test_calls_keep_less():
    x = np.linspace(0.1, 1.0, 50)
    kept = fwdad.memory_report(repeated(layer), x, 40).saved
    assert kept >= 4 * 40 * x.nbytes
    again = fwdad.memory_report(repeated(fwdad.checkpoint(layer)), x, 40).saved
    assert again <= 1.1 * 40 * x.nbytes


def test_calls_that_cannot_be_run_again():
    def appended(x, held):
        held.append(np.sin(x))
        return held[-1] * x

    def f(x, g):
        held = []
        return np.sum(g(x, held) * held[0])

    expected = fwdad.grad(lambda x: f(x, appended))(X)
    assert_array_equal(fwdad.grad(lambda x: f(x, fwdad.checkpoint(appended)))(X), expected)


@pytest.mark.parametrize("f", [power, power_while])
def test_powers(f):
    g = fwdad.grad(fwdad.checkpoint(f))
    assert g(4.0, 3) == 48.0
    assert g(3.0, 9) == 59049.0
    assert g(1.0, 20_000) == 20_000.0
    assert g(2.0, 0) == 0.0


def test_argument_written_into():
    def f(x):
        for i in range(20):
            x[i % 5] = x[i % 5] * x[(i + 1) % 5]
        return np.sum(x)

    x = X.copy()
    assert_array_equal(fwdad.grad(fwdad.checkpoint(f, snapshots=2))(x), fwdad.grad(f)(X))
    assert_array_equal(x, X)
    _, pullback = fwdad.vjp(fwdad.checkpoint(f, snapshots=2), x)
    first = pullback(1.0)
    assert_array_equal(pullback(1.0), first)
    assert_allclose(pullback(np.array([1.0, 2.0])), [first, 2 * first], rtol=1e-15)


def test_operations_do_not_depend_on_the_length():
    f = fwdad.checkpoint(stencil, snapshots=4)
    few, many = (fwdad.trace(fwdad.grad(f), X, n).program for n in (3, 3000))
    assert few.count() == many.count()
    assert few.count(Loop) == 6  # forwards, back, on to a state, to a leaf, and a leaf both ways


@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")  # one of them is recorded
@pytest.mark.parametrize("f", [stencil, sides, heun])
def test_second_derivatives(f):
    g = fwdad.checkpoint(f, snapshots=3)
    n = 9
    expected = fwdad.hessian(f, X, args=(n,))
    assert_allclose(fwdad.hessian(g, X, args=(n,)), expected, rtol=1e-12, atol=1e-13)

    def slope(h):
        return lambda x: np.sum(fwdad.grad(h)(x, n) * np.arange(5.0))

    assert_allclose(fwdad.grad(slope(g))(X), fwdad.grad(slope(f))(X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("f", [power_while, two_buffers, heun, repeated(fwdad.checkpoint(filled))])
def test_compiled(f):
    pytest.importorskip("numba")
    x = 1.05 if f is power_while else X
    expected = fwdad.jit(fwdad.grad(f), backend="numpy")
    g = compiled(f, "numba", snapshots=5)
    for n in (0, 1, 2, 40):
        assert_allclose(g(x, n), expected(x, n), rtol=1e-14)  # sums in another order
    assert fwdad.explain(g, x, 4).endswith("run by Numba")
    if f is power_while:
        assert fwdad.jit(fwdad.grad(fwdad.checkpoint(f)))(1.0, 1_000_000) == 1e6


# -- how much is kept, and how often an iteration runs


class Counting:
    """NumPy with a counted ``sin``."""

    def __init__(self):
        self.calls = 0

    def __getattr__(self, name):
        return getattr(np, name)

    def sin(self, x):
        self.calls += 1
        return np.sin(x)


class Counted(list):
    """A stack that knows how high it has been."""

    highest = 0

    def append(self, x):
        super().append(x)
        self.highest = max(self.highest, len(self))


def run_counted(f, *args):
    """How many states were kept at once, iterations kept together, and sines computed."""
    program = fwdad.trace(fwdad.grad(f), *args).program
    source = numpy_source(program)
    stacks, np_counted = [], Counting()

    def new():
        stacks.append(Counted())
        return stacks[-1]

    names = {v: k for k, v in source.namespace.items() if isinstance(v, types.FunctionType)}
    namespace = {**source.namespace, names[new_stack]: new, "np": np_counted}
    exec(source.code, namespace)
    namespace[source.name](*args)
    assert names[push] in namespace
    heights = [s.highest for s in stacks]
    return heights[0], max(heights[1:]), np_counted.calls


def over_range(x, n):
    r = np.float64(0.1)
    for _ in range(n):
        r = np.sin(r * x)
    return r


def until(x, n):
    r, k = np.float64(0.1), 0
    while k < n:
        r = np.sin(r * x)
        k += 1
    return r


@pytest.mark.parametrize(("f", "most"), [(over_range, 4), (until, 5)])
def test_states_and_repetitions(f, most):
    n = 1000
    kept, _, calls = run_counted(fwdad.checkpoint(f), 0.7, n)
    assert kept <= 3 * 10
    assert calls <= most * n
    kept, _, calls = run_counted(fwdad.checkpoint(f, snapshots=9), 0.7, n)
    assert kept <= 9
    kept, _, calls = run_counted(fwdad.checkpoint(f, memory=9 * 16), 0.7, n)
    assert kept <= 9


def repetitions(n, places, leaf, *, known=True):
    """What the way forward and back do, on positions alone: (most, all, states at once)."""
    runs, stack, following, spacing, most = [0] * n, [], 0, 1, 0
    for i in range(n):
        if i == following:
            full = len(stack) >= snapshots.most_of_unknown(i, places) and len(stack) % 2 == 0
            if not known and full:
                del stack[1::2]
                spacing *= 2
            stack.append(i)
            following = i + spacing
            if known:
                following = snapshots.next_snapshot(i, n, len(stack), places, leaf)
        runs[i] += 1
        most = max(most, len(stack))
    end = n
    while end > 0:
        p = stack[-1]
        while end - p > leaf:
            stop = snapshots.next_stop(p, end, len(stack), places, leaf)
            assert p < stop < end
            for j in range(p, stop):
                runs[j] += 1
            p = stop
            if len(stack) < places and end - p > leaf:
                stack.append(p)
                most = max(most, len(stack))
        for j in range(p, end):
            runs[j] += 1
        end = p
        if stack[-1] == p:
            stack.pop()
    return max(runs), sum(runs), most


def fewest(n, s, known):
    """The fewest iterations that have to be run again: by trying all places."""
    if n <= 1:
        return 0
    if s == 1:
        return n * (n - 1) // 2
    if (n, s) not in known:
        known[n, s] = min(m + fewest(n - m, s - 1, known) + fewest(m, s, known)
                          for m in range(1, n))  # fmt: skip
    return known[n, s]


def reach(n, s):
    return next(t for t in range(math.ceil(n) + 1) if math.comb(s + t, t) >= n)


@pytest.mark.parametrize("s", [1, 2, 3, 7, 20])
def test_schedule_is_the_best(s):
    known = {}
    for n in (1, 2, 3, 10, 47, 100):
        most, runs, kept = repetitions(n, s, 1)
        assert kept <= s
        assert most <= reach(n, s) + 2
        # the way forward goes to the end; what it runs up to the last leaf is the first repetition
        assert runs - 2 * n <= fewest(n, s, known) - (n - 1) + reach(n, s) + 1


@pytest.mark.parametrize("s", [4, 10, 60, 300])
def test_unknown_length(s):
    for n in (1, 2, 3, 100, 1000, 20_000):
        most, _, kept = repetitions(n, s, 1, known=False)
        assert kept <= s
        assert most <= reach(8 * n / s, s // 2) + 2


def test_a_million():
    assert snapshots.default_snapshots(10**6) == 300
    assert reach(10**6, 300) == 3
    most, _, kept = repetitions(10**6, 200, 100)
    assert kept <= 200
    assert most <= 4


# -- the function


def test_without_derivatives():
    f = fwdad.checkpoint(snapshots=3)(stencil)
    assert f(X, 4) == stencil(X, 4)
    assert f.__name__ == "stencil"
    assert_array_equal(fwdad.jacobian(f, X, args=(4,)), fwdad.jacobian(stencil, X, args=(4,)))
    assert fwdad.jit(f, backend="numpy")(X, 4) == stencil(X, 4)
    again = pickle.loads(pickle.dumps(f))
    assert again.snapshots == 3
    assert again(X, 4) == stencil(X, 4)


def test_what_is_recorded():
    """A function that cannot be traced: the answer is the same, with a warning."""

    def f(x, n):
        y = x
        for _ in range(n):
            y = np.sin(y) if float(np.sum(y)) > 2 else y * y
            y = y + min(y.tolist())
        return np.sum(y)

    with pytest.warns(fwdad.TraceWarning, match="checkpoint has no effect on .*f: the run is rec"):
        found = fwdad.grad(fwdad.checkpoint(f))(X, 6)
    assert_array_equal(found, fwdad.grad(f)(X, 6))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"snapshots": 0}, ValueError),
        ({"memory": -5}, ValueError),
        ({"snapshots": 2, "memory": 100}, ValueError),
        ({"snapshots": 2.0}, TypeError),
        ({"snapshots": True}, TypeError),
    ],
)
def test_options(options, error):
    with pytest.raises(error, match=r"snapshots|memory"):
        fwdad.checkpoint(stencil, **options)
    with pytest.raises(TypeError, match="function"):
        fwdad.checkpoint(3)


@fwdad.checkpoint(snapshots=2)
def scattered(a, s):
    for _ in range(6):
        s = s + np.sum(a[[1, 3, 3, 0]] ** 2)
        np.add.at(a, [1, 3, 3, 0], np.sin(a[:4]))
    return s


def test_what_is_added_at_indices_is_part_of_a_state():
    """A state had only what stores and updates overwrite."""

    def f(x):
        a = x * 1.0
        s = np.sum(a**3)
        return s * scattered(a, s) + np.sum(a * a)

    expected = fwdad.jacobian(f, X, mode="forward")
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(X), expected, rtol=1e-11)


def test_numbers_of_states_that_a_traced_function_gives():
    def f(x):
        @fwdad.checkpoint(snapshots=2)
        def run(a):
            s = 0.0
            for k in range(5):
                s = s * 0.5 + np.sum(a * a) * k
            return s

        return run(x) * x[2]

    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    assert_allclose(gradient(X), fwdad.jacobian(f, X, mode="forward"), rtol=1e-12)
