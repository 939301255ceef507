"""``memory_report``: what is kept, against the cases that copy, and against other measures."""

import gc
import tracemalloc
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.api.memory_report import measured_tape
from fwdad.codegen.numpy_backend.source import numpy_source
from fwdad.display.words import file_in_words
from fwdad.ir.primitives.stacks import new_stack, turn
from tests.transforms.reverse.checkpointed import power, power_while


def recurrence(a):
    y = np.zeros(len(a))
    for i in range(1, len(a)):
        y[i] = a[i] * y[i - 1] + np.sin(y[i - 1])
    return np.sum(y)


def first_squared(x):
    if x[0] > 0:
        x[0] = x[0] ** 2
    return x


def squares(x):
    for i in range(len(x)):
        x[i] = x[i] * x[i]
    return x


def changing_matrix(x, a, k):
    s = 0.0
    for i in range(k):
        y = a @ x
        s += np.sum(y * y)
        a[i, i] = y[i]
    return s


def smoothing(x, n):
    u = x.copy()
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
    return np.sum(u * u)


def layers(x):
    a = np.tanh(x)
    b = np.exp(a) * a
    c = np.tanh(b)
    return np.sum(c * b)


def line_of(f, offset):
    return f.__code__.co_firstlineno + offset


def test_recurrence_saves_nothing():
    report = fwdad.memory_report(recurrence, np.linspace(0.0, 1.0, 1000))
    assert report.saved == 0
    assert report.copies == 0
    assert report.arrays == 8000


def test_one_element():
    """CASES, in place, 2: one element, and one copy of x."""
    x = np.linspace(1.0, 2.0, 1_000_000)
    kept = x.copy()
    report = fwdad.memory_report(first_squared, x)
    assert report.saved == 8
    assert report.copies == x.nbytes
    assert report.arrays == 0
    np.testing.assert_array_equal(x, kept)


@pytest.mark.slow_cases("1000000")
@pytest.mark.parametrize("n", [1000, 1_000_000])
def test_squares(n):
    """CASES, in place, 5: eight bytes an element."""
    report = fwdad.memory_report(squares, np.linspace(1.0, 2.0, n))
    assert_allclose(report.saved, 8 * n, rtol=0.1)
    (line,) = (k for k in report.lines if k.kind == "saved")
    assert (line.filename, line.line) == (__file__, line_of(squares, 2))
    assert line.text == "x[i] = x[i] * x[i]"
    assert line.number == n


@pytest.mark.parametrize("f", [power, power_while])
def test_powers(f):
    """CASES, in place, 8: few states, and all of them without checkpoints."""
    n = 10_000
    assert fwdad.memory_report(f, 1.0, n).saved >= 8 * n
    report = fwdad.memory_report(fwdad.checkpoint(f), 1.0, n)
    assert report.saved <= 3 * 22 * 24
    few = fwdad.memory_report(fwdad.checkpoint(f, snapshots=10), 1.0, n)
    assert few.saved <= 10 * 24


def test_matrix():
    """CASES, in place, 10: k elements and k vectors, not k matrices."""
    rng = np.random.default_rng(0)
    x, a = rng.standard_normal(50), rng.standard_normal((50, 50))
    one, two = (fwdad.memory_report(changing_matrix, x, a, k).saved for k in (5, 10))
    assert two - one <= 5 * (24 + x.nbytes)


def factorised(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    s = 0.0
    for i in range(n):
        s += np.log(abs(a[i, i]))
    return s


def test_triangles():
    """CASES, in place, 13: what a factorisation overwrites is kept where a division reads it."""
    n = 12
    a = np.random.default_rng(0).standard_normal((n, n)) + 10 * np.eye(n)
    report = fwdad.memory_report(factorised, a)
    assert report.saved <= 8 * n * n
    assert_allclose(fwdad.grad(factorised)(a), np.linalg.inv(a).T, rtol=1e-10, atol=1e-13)


def test_states_of_arrays():
    x = np.linspace(0.0, 1.0, 1000)
    plain = fwdad.memory_report(smoothing, x, 500)
    assert plain.saved >= 500 * 998 * 8
    report = fwdad.memory_report(fwdad.checkpoint(smoothing, snapshots=10), x, 500)
    assert 10 * x.nbytes <= report.saved <= 13 * x.nbytes  # the states, and one iteration
    budget = fwdad.memory_report(fwdad.checkpoint(smoothing, memory=20 * 8008), x, 500)
    assert 20 * x.nbytes <= budget.saved <= 23 * x.nbytes


# -- other measures of the same run


def at_the_turn(f, *args):
    """The bytes that are there where the reverse pass begins, beyond those at the start."""
    made, leaves, _ = measured_tape(f, 0, args, {})
    source = numpy_source(made.tape.program)
    seen, stacks = [], []

    def new():
        stacks.append([])
        return stacks[-1]

    def look():
        arrays = sum(a.nbytes for stack in stacks for a in stack if isinstance(a, np.ndarray))
        seen.append((tracemalloc.get_traced_memory()[0], arrays))

    names = {v: k for k, v in source.namespace.items() if isinstance(v, types.FunctionType)}
    namespace = {**source.namespace, names[turn]: look}
    if new_stack in names:
        namespace[names[new_stack]] = new
    exec(source.code, namespace)
    run = namespace[source.name]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run(*leaves)
    finally:
        tracemalloc.stop()
    return seen[-1][0] - before, seen[-1][1]


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (layers, (np.linspace(0.1, 1.0, 100_000),)),
        (smoothing, (np.linspace(0.0, 1.0, 100_000), 10)),
        (recurrence, (np.linspace(-0.5, 0.0, 20_000),)),
        (first_squared, (np.linspace(1.0, 2.0, 100_000),)),
    ],
)
def test_against_the_allocator(f, args):
    """No more is there, at the turn, than is told: what the primal leaves in variables apart."""
    report = fwdad.memory_report(f, *args)
    told = report.saved + report.copies + report.arrays
    measured, on_stacks = at_the_turn(f, *args)
    temporaries = 3 * args[0].nbytes  # variables that are not read again live on under NumPy
    assert told - 0.01 * told <= measured <= told + temporaries + 10_000
    assert on_stacks <= report.saved


def weighted(x, w):
    return np.sum(np.sin(x * w) * TABLE)


def overwriting(x, w):
    x *= w
    x *= TABLE
    return np.sum(x**2)


def views(x):
    y = np.sin(x)
    return np.sum(y[1:] * y[:-1])


TABLE = np.cos(np.arange(100_000.0))


@pytest.mark.slow_cases("weighted", "views", "layers")
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (weighted, (np.linspace(0.1, 1.0, 100_000), TABLE[::-1].copy())),
        pytest.param(
            overwriting,
            (np.linspace(0.1, 1.0, 100_000), TABLE[::-1].copy()),
            marks=pytest.mark.slow,
        ),
        (views, (np.linspace(0.1, 1.0, 100_000),)),
        (layers, (np.linspace(0.1, 1.0, 100_000),)),
        (smoothing, (np.linspace(0.0, 1.0, 100_000), 10)),
    ],
)
def test_what_a_pullback_keeps(f, args):
    """All of it is told, copies of arguments and captured arrays included, and no more."""
    report = fwdad.memory_report(f, *args)
    told = report.saved + report.copies + report.arrays + report.of("held")
    fwdad.vjp(f, args[0], args=args[1:])  # traced
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = fwdad.vjp(f, args[0], args=args[1:])
        gc.collect()
        measured = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert callable(kept[1])
    assert_allclose(measured, told, rtol=0.01, atol=30_000)


# -- other functions


def test_transformed():
    x = np.linspace(0.0, 1.0, 100)
    for f in (fwdad.grad(recurrence), fwdad.jit(fwdad.grad(recurrence), backend="numpy")):
        assert fwdad.memory_report(f, x) == fwdad.memory_report(recurrence, x)


def test_recorded():
    def drawing(x):
        return np.sum(x * np.random.standard_normal(3))

    report = fwdad.memory_report(drawing, np.ones(3))
    assert "random numbers are drawn" in report.recorded
    assert report.saved > 0
    assert "recorded as it runs" in str(report)


def test_text():
    report = fwdad.memory_report(squares, np.linspace(1.0, 2.0, 1000))
    said = str(report).splitlines()
    assert said[0] == "8,000 bytes are kept for the reverse pass"
    place = f"{file_in_words(__file__)}:{line_of(squares, 2)}"
    assert any(f"{place}: x[i] = x[i] * x[i]" in row for row in said)
    assert "copies of arguments that are written into: 8,000 bytes" in said


def test_each_line_says_what_it_is():
    """Cotangents that are added up between the user's lines have none."""

    def step(u, n):
        u = u.copy()
        for _ in range(n):
            u[1:-1] += 0.1 * u[1:-1] * (u[2:] - u[:-2])
        return np.sum(u**2)

    report = fwdad.memory_report(step, np.linspace(0.1, 1.0, 10), 5)
    assert all(kept.text for kept in report.lines)
    assert report.saved == 2 * 5 * 8 * 8  # both factors of the product, in each step
