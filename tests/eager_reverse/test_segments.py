"""Calls that are run again in the reverse pass of a recorded run: the derivatives without."""

import contextlib
import copy
import os
import random
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.eager.memory.shadow import KEPT, SHADOWED
from fwdad.eager_reverse import gradient
from fwdad.eager_reverse.segments import Again, Segment
from fwdad.eager_reverse.surroundings import Changed
from fwdad.tangents.zero import ZERO
from tests.eager_reverse import checkpointed_calls, checkpointed_kinds
from tests.eager_reverse.checkpointed_calls import (
    Model,
    global_random_state,
    lists,
    seeded,
    sequence_of_numbers,
)
from tests.eager_reverse.checkpointed_kinds import generators
from tests.eager_reverse.pulling import jacobian_of, record

X = np.array([0.7, -0.3, 1.1, 0.4, 0.6])


PROGRAMS = [*checkpointed_calls.PROGRAMS, *checkpointed_kinds.PROGRAMS]
NOTHING_RECORDED = [sequence_of_numbers, lists, seeded, global_random_state, generators]
"""Partials are multiplied while they arise, so that nothing is written down."""


def as_it_is(f):
    return f


def world():
    state = np.random.get_state()
    return (
        checkpointed_calls.WORK.tobytes(),
        checkpointed_calls.TABLE.tobytes(),
        checkpointed_calls.SCALE,
        Model.weights.tobytes(),
        Model.made,
        random.getstate(),
        (state[0], state[1].tobytes(), state[2:]),
    )


@contextlib.contextmanager
def fresh():
    """What a program writes into names of the module and its classes is not there afterwards."""
    held = [(o, name, copy.deepcopy(getattr(o, name))) for o, name in NAMES]
    random_states = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        for o, name, value in held:
            if isinstance(value, np.ndarray):
                getattr(o, name)[...] = value
            else:
                setattr(o, name, value)
        random.setstate(random_states[0])
        np.random.set_state(random_states[1])


NAMES = [(checkpointed_calls, "WORK"), (checkpointed_calls, "TABLE"), (checkpointed_calls, "SCALE"),
         (Model, "weights"), (Model, "made")]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_left():
    with fresh():
        yield
    assert not SHADOWED
    assert not KEPT


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.__name__)
def program(request):
    return request.param


def again_in(outcome):
    return sum(type(op) is Again for op in outcome._record.operations)


@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
def test_jacobian(program):
    plain = program(as_it_is)
    with fresh():
        expected = jacobian_of(record(plain, X.copy()), X, 2)
    plain = program(as_it_is)
    with fresh():
        forward = fwdad.jacobian(plain, X, mode="forward")
    assert_allclose(expected, forward, rtol=1e-9, atol=1e-11)
    x = X.copy()
    outcome = record(program(fwdad.checkpoint), x)
    assert again_in(outcome) or program in NOTHING_RECORDED
    x[:] = np.nan
    before = world()
    for width in (1, 2, 3):
        assert_allclose(jacobian_of(outcome, X, width), expected, rtol=1e-11, atol=1e-13)
        assert world() == before
    y_bar = np.ones(np.shape(outcome.y))
    (first,) = outcome.pull([y_bar])
    (second,) = outcome.pull([y_bar])
    assert_array_equal(first, second)
    assert_allclose(first, np.tensordot(y_bar, expected, y_bar.ndim), rtol=1e-11, atol=1e-13)


def scalar(program, mark):
    f = program(mark)
    weights = np.array([1.0, -0.5, 0.3, 0.8, 0.2])

    def value(x):
        y = f(x)
        return np.sum(y * weights[: len(y)])

    return value


@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
@pytest.mark.parametrize("once", [True, False])
def test_pulled_at_once_and_later(program, once):
    with fresh():
        expected = gradient(scalar(program, as_it_is), X)
    outcome = record(scalar(program, fwdad.checkpoint), X, once=once)
    (found,) = outcome.pull([1.0])
    assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.slow_cases("nested")
@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
def test_second_derivatives(program):
    with fresh():
        plain = scalar(program, as_it_is)
        expected = fwdad.jacobian(lambda x: gradient(plain, x), X)
    for chunk in (1, 3):
        with fresh():
            marked = scalar(program, fwdad.checkpoint)
            found = fwdad.jacobian(lambda x: gradient(marked, x), X, chunk=chunk)  # noqa: B023
        assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    for inner in (gradient, lambda f, x: fwdad.jacobian(f, x, mode="forward")):
        with fresh():
            marked = scalar(program, fwdad.checkpoint)
            outcome = record(lambda x: inner(marked, x), X)  # noqa: B023
            assert_allclose(jacobian_of(outcome, X, 2), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
def test_pulled_inside_another_derivative(program):
    """The pullback is of before; the cotangents carry derivatives."""
    with fresh():
        expected = jacobian_of(record(program(as_it_is), X), X, 5)
    outcome = record(program(fwdad.checkpoint), X)
    y_bar = np.cos(np.arange(len(outcome.y)))
    for chunk in (1, 3):
        found = fwdad.jacobian(lambda b: outcome.pull([b * b])[0], y_bar, chunk=chunk)
        assert_allclose(found, expected.T * 2 * y_bar, rtol=1e-10, atol=1e-12)


# -- memory


def peak(f, x):
    outcome = None
    tracemalloc.start()
    try:
        outcome = record(f, x, once=True)
        held = tracemalloc.get_traced_memory()[0]
        outcome.pull([1.0])
        return held, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def many_operations(u, w):
    y = np.sin(u) * w
    for _ in range(10):
        y = np.cumsum(np.sort(y)) * 0.01
    scratch = np.zeros(len(u))
    scratch[1:] = y[:-1]
    scratch *= y
    return scratch + u


def summed(g):
    def f(x):
        for k in range(12):
            x = g(x, 0.9 + 0.01 * k)
        return np.sum(x)

    return f


def test_less_is_kept():
    x = np.linspace(0.1, 1.0, 5000)
    kept, plain = peak(summed(many_operations), x)
    inputs, marked = peak(summed(fwdad.checkpoint(many_operations)), x)
    assert plain > 12 * 10 * x.nbytes
    assert marked < plain / 4
    assert inputs < kept / 5
    assert inputs < 3 * 12 * x.nbytes  # what each call was given, and what was restored


@pytest.mark.slow
def test_less_is_kept_of_calls_inside_of_calls():
    def outer(u, w):
        for k in range(6):
            u = inner(u, w + 0.01 * k)
        return u

    x = np.linspace(0.1, 1.0, 3000)
    inner = many_operations
    _, plain = peak(summed(outer), x)
    inner = fwdad.checkpoint(many_operations)
    _, marked = peak(summed(fwdad.checkpoint(outer)), x)
    assert marked < plain / 12


def test_one_array_for_all_steps():
    """A row is an argument: the array is not copied for each call."""

    def steps(g):
        def f(x):
            u = np.zeros((31, len(x)))
            u[0] = x
            for k in range(30):
                u[k + 1] = g(u[k], 0.9)
            return np.sum(u[-1])

        return f

    x = np.linspace(0.1, 1.0, 1000)
    _, plain = peak(steps(many_operations), x)
    _, marked = peak(steps(fwdad.checkpoint(many_operations)), x)
    assert marked < plain / 3
    expected = gradient(steps(many_operations), x)
    assert_array_equal(gradient(steps(fwdad.checkpoint(many_operations)), x), expected)


def test_how_often_a_call_is_made(capsys, monkeypatch):
    calls, enter = [], Segment.__enter__

    def counted(segment):
        calls.append(segment)
        return enter(segment)

    monkeypatch.setattr(Segment, "__enter__", counted)

    def inner(u):
        print("i", end="")
        return np.sort(np.sin(u))

    def outer(u):
        print("o", end="")
        return inner(inner(u)) * u

    inner, outer = fwdad.checkpoint(inner), fwdad.checkpoint(outer)
    outcome = record(lambda x: (outer(outer(x)), outer(x[::-1])), X)
    assert capsys.readouterr().out == "oiioiioii"
    assert len(calls) == 9
    outcome.pull([np.ones(5), ZERO])
    assert len(calls) == 9 + len("oiiiioiiii")  # what no cotangent reaches is left out
    assert capsys.readouterr().out == ""  # printed once
    assert outcome.operations < 9


# -- what cannot be made again


def clock(u, _folder):
    return np.sort(np.sort(u) * (time.perf_counter() % 1.0))


def entropy(u, _folder):
    return np.sort(np.sort(u) * int.from_bytes(os.urandom(4)) * 2.0**-32)


def file(u, folder):
    return np.sort(np.sort(u) * float((folder / "number").read_text()))


def deep(u, _folder):
    """A part that no name leads to."""
    return np.sort(np.sort(u) * globals()["FACTORS"][0])


FACTORS = [2.0]
FAILS = [False]


@pytest.mark.parametrize("g", [entropy, file])
def test_what_is_outside_of_python_is_asked_once(g, tmp_path):
    (tmp_path / "number").write_text("2.0")
    marked = fwdad.checkpoint(g)
    outcome = record(lambda x: np.sum(np.exp(marked(x, tmp_path))), X.copy())
    (tmp_path / "number").write_text("3.0")
    (found,) = outcome.pull([1.0])
    factor = 2.0 if g is file else np.log(found[0] / found[1]) / (X[0] - X[1])
    assert_allclose(found, factor * np.exp(factor * X), rtol=1e-9)


@pytest.mark.parametrize("g", [clock, deep])
def test_another_result(g, tmp_path):
    (tmp_path / "number").write_text("2.0")
    x, marked = X.copy(), fwdad.checkpoint(g)
    outcome = record(lambda x: np.sum(np.exp(marked(x, tmp_path))), x)
    (tmp_path / "number").write_text("3.0")
    FACTORS[0] = 3.0
    try:
        with pytest.raises(
            fwdad.errors.NondeterministicFunctionError, match=f"{g.__name__} is run again"
        ):
            outcome.pull([1.0])
    finally:
        FACTORS[0] = 2.0
    assert_array_equal(x, X)
    if g is deep:
        (tmp_path / "number").write_text("2.0")
        (found,) = outcome.pull([1.0])
        assert_allclose(found, 2.0 * np.exp(2.0 * X), rtol=1e-12)  # the order is that of X


def test_a_constant_may_change():
    """The derivative is what it was."""

    @fwdad.checkpoint
    def g(u):
        return np.sort(u) * u + time.perf_counter()

    assert_allclose(gradient(lambda x: np.sum(g(x)), X), [d @ np.ones(5) for d in _jacobian()])


def _jacobian():
    return fwdad.jacobian(lambda u: np.sort(u) * u, X, mode="forward").T


@pytest.mark.parametrize("error", [FileNotFoundError, KeyboardInterrupt, MemoryError])
def test_a_second_run_that_fails(error):
    work, x = np.zeros(5), X.copy()

    @fwdad.checkpoint
    def g(u):
        work[:] = u * u
        u[:] = work
        if globals()["FAILS"][0]:
            raise error
        return np.sort(u) * work

    def f(x):
        u = x * 1.0
        y = g(u)
        return np.sum(g(u) * y)

    expected = gradient(f, X)
    outcome = record(f, x)
    after = work.copy()
    FAILS[0] = True
    for _ in range(2):
        with pytest.raises(error):
            outcome.pull([1.0])
        assert_array_equal(work, after)
        assert_array_equal(x, X)
        assert not SHADOWED
        assert not KEPT
    FAILS[0] = False
    assert_array_equal(outcome.pull([1.0])[0], expected)


def test_an_interrupt_while_arrays_are_put_back(monkeypatch):
    work, x = np.arange(5.0), X.copy()

    @fwdad.checkpoint
    def g(u):
        return np.sort(u) * work

    def f(x):
        y = g(x)
        work[:] = 2.0
        return np.sum(g(y) * y)

    expected = gradient(f, X)
    work[:] = np.arange(5.0)
    outcome = record(f, x)
    work[:] = 7.0
    ends, put_back = [], Changed.end

    def interrupted(self):
        if len(ends) < 2 and self.arrays:
            ends.append(self)
            if len(ends) == 1:
                raise KeyboardInterrupt
        put_back(self)

    monkeypatch.setattr(Changed, "end", interrupted)
    with pytest.raises(KeyboardInterrupt):
        outcome.pull([1.0])
    assert len(ends) == 2
    assert_array_equal(work, np.full(5, 7.0))
    assert_array_equal(outcome.pull([1.0])[0], expected)


def test_the_caller_changes_what_it_reads():
    table, held = np.arange(1.0, 6.0), {"scale": 2.0, "all": [np.ones(5)]}
    model = Model(as_it_is)
    model.t = 3.0

    @fwdad.checkpoint
    def g(u):
        y = np.sort(u) * table * held["scale"] * checkpointed_calls.SCALE + held["all"][0] * u
        return y * model.t + model.u * u

    def f(x):
        return np.sum(g(g(x)))

    expected = gradient(f, X)
    outcome = record(f, X)
    held["all"][0][:] = np.nan
    table[:], held["scale"], held["all"] = np.nan, np.nan, None
    checkpointed_calls.SCALE, model.t, model.u = 7.0, 11.0, None
    try:
        assert_array_equal(outcome.pull([1.0])[0], expected)
        assert (model.t, model.u, checkpointed_calls.SCALE) == (11.0, None, 7.0)
        assert np.isnan(table).all()
    finally:
        checkpointed_calls.SCALE = 1.0


def test_what_is_kept():
    def of_an_iterator(u, parts):
        return np.sort(u) * next(parts)

    def of_objects(u, parts):
        return np.sort(u) * parts[0]

    def in_a_thread(u, _parts):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(sort, u).result() * 1.0

    sort = fwdad.checkpoint(lambda u: np.sort(u) * u)
    for g, parts, mark, reason in (
        (of_an_iterator, lambda: iter([2.0, 3.0]), fwdad.checkpoint, "a list_iterator"),
        (of_objects, lambda: np.array([2.0, None]), fwdad.checkpoint, "an array of objects"),
        (in_a_thread, lambda: None, as_it_is, "in a different thread"),
    ):
        marked = mark(g)

        def f(x, g=marked, parts=parts):
            return np.sum(g(x, parts()) * x)

        with pytest.warns(fwdad.TraceWarning, match=f"has no effect on .*{reason}"):
            found = gradient(f, X)
        assert_allclose(found, fwdad.jacobian(f, X, mode="forward"), rtol=1e-12)


def test_pulled_by_several_threads():
    program = checkpointed_calls.nested
    outcome = record(program(fwdad.checkpoint), X)
    expected = [outcome.pull([np.eye(5)[k]])[0] for k in range(5)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: outcome.pull([np.eye(5)[k % 5]])[0], range(10)))
    assert_array_equal(found, expected + expected)


# -- from outside


def untraced(u, w):
    return np.sort(u) * w + min(u.tolist()) * u


def by_steps(g):
    def f(x):
        y = x
        for k in range(3):
            y = g(y, 0.8 + 0.1 * k) + 0.1 * y[::-1]
        return y

    return f


@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
def test_evaluators():
    plain, marked = by_steps(untraced), by_steps(fwdad.checkpoint(untraced))
    expected = fwdad.jacobian(plain, X, mode="forward")
    for chunk in (1, 2, 3, None):
        assert_allclose(fwdad.jacrev(marked, chunk=chunk)(X), expected, rtol=1e-12)
    x = X.copy()
    y, pullback = fwdad.vjp(marked, x)
    assert_allclose(y, plain(X), rtol=1e-15)
    x[:] = np.nan
    for _ in range(2):
        assert_allclose(pullback(np.eye(5)), expected, rtol=1e-12)
    assert_allclose(fwdad.jacobian(marked, X, mode="forward"), expected, rtol=1e-15)
    assert_allclose(fwdad.jvp(marked, X, X)[1], expected @ X, rtol=1e-12)

    def value(x):
        return np.sum(marked(x) ** 2)

    hessian = fwdad.hessian(lambda x: np.sum(plain(x) ** 2), X)
    assert_allclose(fwdad.grad(value)(X), 2.0 * plain(X) @ expected, rtol=1e-12)
    assert_allclose(fwdad.hvp(value, X, X), hessian @ X, rtol=1e-9)
    slope = fwdad.grad(lambda x: fwdad.grad(value)(x) @ X)
    assert_allclose(slope(X), hessian @ X, rtol=1e-9)
