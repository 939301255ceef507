"""An exception at any line of a derivative leaves nothing behind that a later call could meet."""

import contextlib
import gc
import inspect
import itertools
import linecache
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad import errors
from fwdad.core.gc_pause import NoCollection
from fwdad.eager.memory.shadow import KEPT, SHADOWED
from fwdad.eager.run import STATE
from fwdad.frontend.syntax import loops
from tests.stepping import Stepping, count_lines, interrupted

N = 5
X = np.linspace(0.3, 1.1, N)
V = np.arange(1.0, N + 1)
TABLE = np.cos(np.arange(N))
BUFFER = np.zeros(N)
LIMIT = sys.getrecursionlimit()


class Model:
    def __init__(self):
        self.weights = np.ones(N)
        self.history = [1.0]


MODEL = Model()
opaque = eval("lambda x: x * 1.5")  # has no source: what uses it is recorded


def in_place(x):
    y = np.sin(x)
    for k in range(1, N):
        y[k] = y[k] * y[k - 1] + TABLE[k] * x[k]
    return np.sum(y * TABLE)


def outside(x):
    BUFFER[:] = x
    MODEL.weights = x * 2.0
    MODEL.history.append(x[0])
    MODEL.history[0] = x[1]
    y = BUFFER * MODEL.weights
    return np.sum(y * y) * MODEL.history[0]


def recorded(x):
    y = opaque(x)
    x *= y
    BUFFER[1:] = x[1:]
    return np.sum(BUFFER * y)


def nested(x):
    x[1:] *= x[:-1]
    return np.sum(fwdad.grad(lambda z: np.sum(z**3))(x) * np.tanh(x))


PROGRAMS = [in_place, outside, recorded, nested]

WAYS = {
    "jvp": lambda f: fwdad.jvp(f, X, V)[1],
    "jacobian": lambda f: fwdad.jacobian(lambda x: x * f(x), X, chunk=2),
    "grad": lambda f: fwdad.grad(f)(X),
    "vjp": lambda f: fwdad.vjp(f, X)[1](2.0),
    "hessian": lambda f: fwdad.hessian(f, X),
    "linearize": lambda f: fwdad.linearize(f, X)[1].rmatvec(np.ones(1)),
}
FILES = (
    "build.py",
    "undo.py",
    "shadow.py",
    "record.py",
    "core/reentrant_context.py",
    "contextlib.py",
)
NAMES = ("__enter__", "__exit__", "begin", "end", "_in_run")


def enters_or_leaves(code):
    """Whether code keeps what belongs to one call, or restores what was there before."""
    return code.co_filename.endswith(FILES) or (
        code.co_name in NAMES and "fwdad" in code.co_filename
    )


def anything(code):
    return code is not world.__code__


def world():
    """What the caller could see: arrays and their contents, and numbers, which are plain ones."""
    arrays = (X, TABLE, BUFFER, MODEL.weights)
    assert [type(a) for a in arrays] == [np.ndarray] * 4
    assert {type(v) for v in MODEL.history} <= {float, np.float64}
    held = (id(X), id(TABLE), id(BUFFER), id(MODEL.history))
    return held, [(a.tobytes(), a.flags.writeable) for a in arrays], list(MODEL.history)


def put_back():
    """Set the world to what it was before all calls."""
    BUFFER[:] = 0.0
    MODEL.weights = np.ones(N)
    MODEL.history[:] = [1.0]


def left_by(f):
    """What a plain call leaves at each of its lines, beginning with nothing done."""
    states = []

    def look(frame, _event, _value):
        if frame.f_code is not f.__code__:
            return None
        states.append(world())
        return look

    x = X.copy()
    put_back()
    old = sys.gettrace()
    sys.settrace(look)
    try:
        f(x)
    finally:
        sys.settrace(old)
    put_back()
    return states


def entered():
    """What is entered now, in this thread or in all of them; empty outside of every call."""
    told = {
        "a run": STATE.run,
        "hidden tangents": STATE.hidden,
        "shadows": SHADOWED,
        "arrays that are read later": KEPT,
        "a sink of errors": errors.NOTE.sink,
        "a place": errors._RUNNING.place,
        "warnings off": loops._SILENT.on,
        "the collector off": not gc.isenabled(),
        "a higher recursion limit": sys.getrecursionlimit() != LIMIT,
    }
    return [name for name, value in told.items() if value]


def check_lines(call, f, ats, wanted, error=KeyboardInterrupt):
    """Raise at some of a call's lines, one after the other, and look around after each.

    The world is then as a plain call has left it at one of its lines, and as the whole call has
    after one that is not interrupted.
    """
    states = left_by(f)
    expected, reached = call(), 0
    assert world() == states[-1]
    for at in ats:
        put_back()
        stepping = Stepping(wanted, at, error)
        reached += stepping.run(call)
        assert entered() == [], stepping.place
        assert world() in states, stepping.place
        put_back()
        assert_allclose(call(), expected, rtol=1e-13, err_msg=str(stepping.place))
        assert world() == states[-1], stepping.place
    put_back()
    return reached


@pytest.mark.every(5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_where_something_is_entered_or_left(f, way):
    def call():
        return WAYS[way](f)

    call()
    call()  # what is looked up once is known now
    lines = count_lines(call, enters_or_leaves)
    reached = check_lines(call, f, range(1, lines + 1, 1 + lines // 60), enters_or_leaves)
    assert reached or not lines


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_anywhere(f, way):
    def call():
        return WAYS[way](f)

    call()
    lines = count_lines(call, anything)
    assert check_lines(call, f, range(1, lines + 1, 1 + lines // 5), anything)


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_anywhere_often(f, way, error):
    def call():
        return WAYS[way](f)

    call()
    lines = count_lines(call, anything)
    assert check_lines(call, f, range(1, lines + 1, 1 + lines // 300), anything, error=error)


_COUNT = itertools.count()
FIRST = {
    "jit": lambda f: fwdad.jit(f, backend="numpy")(X),
    "jit of grad": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy")(X),
    "vjp": WAYS["vjp"],
    "grad of a checkpoint": lambda f: fwdad.grad(fwdad.checkpoint(f))(X),
}
COMPILED = {
    "jit": lambda f: fwdad.jit(f)(X),
    "jit of grad": lambda f: fwdad.jit(fwdad.grad(f))(X),
    "grad of jit": lambda f: fwdad.grad(fwdad.jit(f))(X),
}


def fresh():
    """The same program as another function, of which nothing is known."""
    made = {}
    text = textwrap.dedent(inspect.getsource(in_place))
    name = f"<a program that nobody has seen, {next(_COUNT)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), globals(), made)
    return made["in_place"]


def of_the_library(code):
    return "fwdad" in code.co_filename or code.co_filename.startswith("<")


def check_first_calls(way, count, wanted):
    """Raise in first calls; what was half traced, or half compiled, can be called again."""
    lines = count_lines(lambda: way(fresh()), wanted)
    expected, before = way(fresh()), world()
    for k in range(count):
        f = fresh()
        at = 1 + (2 * k + 1) * lines // (2 * count)
        interrupted(lambda f=f: way(f), at, wanted)  # a later run may be shorter
        assert entered() == [], at
        assert world() == before
        assert_allclose(way(f), expected, rtol=1e-13)
        assert world() == before


@pytest.mark.every(2)
@pytest.mark.parametrize("way", FIRST)
def test_first_calls(way):
    check_first_calls(FIRST[way], 2, of_the_library)


@pytest.mark.slow
@pytest.mark.parametrize("way", FIRST)
def test_first_calls_often(way):
    check_first_calls(FIRST[way], 50, of_the_library)


@pytest.mark.slow
@pytest.mark.parametrize("way", COMPILED)
def test_first_calls_of_compiled_code(way):
    """Not in Numba's own lines: some of them, interrupted, leave Numba unable to compile."""
    pytest.importorskip("numba")
    check_first_calls(COMPILED[way], 8, of_the_library)


def test_collector_of_garbage_goes_on():
    """It rests while programs are traced, and every line of that may be interrupted."""

    def rest():
        with NoCollection() as resting, resting:
            assert not gc.isenabled()

    lines = count_lines(rest, enters_or_leaves)
    assert lines > 10
    for at in range(1, lines + 1):
        interrupted(rest, at, enters_or_leaves)
        assert gc.isenabled(), at
    with contextlib.suppress(ZeroDivisionError), NoCollection() as one, one:
        with NoCollection() as other, other:
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


def test_threads_of_a_pool_that_outlives_the_call():
    """What runs in them later is part of no derivative."""
    with ThreadPoolExecutor(1) as pool:

        def f(x):
            return pool.submit(np.sin, x[0]).result() * x[1]

        assert_allclose(fwdad.jacobian(f, X)[:2], [np.cos(X[0]) * X[1], np.sin(X[0])])
        assert pool.submit(lambda: (STATE.run, STATE.hidden)).result() == (None, ())
        assert pool.submit(entered).result() == []
