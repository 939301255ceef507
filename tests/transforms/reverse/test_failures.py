"""What raises in the middle of a sweep leaves what a plain call does, and can be done again.

The sweeps are interrupted at their lines, one after the other: in the user's code, in generated
code, and in the rules that both of them run.
"""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.core import generated_source
from fwdad.drivers import residual_store
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.run import STATE
from tests.stepping import count_lines, interrupted
from tests.tiers import every

N = 6
X = np.linspace(0.3, 1.1, N)
TABLE = np.cos(np.arange(N))
BUFFER = np.zeros(N)
FAILS = np.zeros(1)  # how the programs fail; 0: they do not
TOLD = []  # what rules call when they run


class Model:
    """What a program may change, beside BUFFER."""

    def __init__(self):
        self.weights = np.ones(N)
        self.count = 0


MODEL = Model()


def turned(x):
    return x[::-1] * 2.0


@fwdad.frule(turned)
def _(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    if float(np.asarray(x)[0]) == np.inf:  # a tape runs it whole, when the program runs
        return x, x_dot
    for call in TOLD:
        call()
    return x[::-1] * 2.0, x_dot[::-1] * 2.0


def fail(y):
    if FAILS[0] == 1:
        y[0] = y[N + 3]
    if FAILS[0] == 2:
        y[:2] = np.linalg.solve(np.zeros((2, 2)) * y[0], y[:2])
    if FAILS[0] == 3:
        raise ValueError("so it is")
    assert FAILS[0] != 4, "so it is"


def stored(x, y):
    for k in range(1, N):
        y[k] = y[k] * y[k - 1] + TABLE[k] * x[k]
        if k == 4:
            fail(y)


def in_place(x):
    x[1:] *= x[:-1]
    s = np.sum(x * x)
    stored(x, x)
    return s * np.sum(turned(x) * x)


def outside(x):
    """Writes into memory, and an object, that others have."""
    BUFFER[:] = x
    old, MODEL.weights = MODEL.weights, x * 2.0
    MODEL.count += 1
    stored(MODEL.weights, BUFFER)
    y = np.sum(BUFFER * MODEL.weights * turned(x))
    MODEL.weights = old
    return y


opaque = eval("lambda x: x * 1.0")


def recorded(x):
    y = opaque(x)
    x *= y
    stored(y, x)
    return np.sum(turned(x) * y)


PROGRAMS = [in_place, outside, recorded]
ERRORS = {1: IndexError, 2: np.linalg.LinAlgError, 3: ValueError, 4: AssertionError}


def vector(f):
    return lambda x: np.stack([f(x) * k for k in (1.0, -2.0)])


def linearized(method, *v):
    return lambda f: lambda x: getattr(fwdad.linearize(vector(f), x)[1], method)(*v)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-13)


WAYS = {
    "grad": fwdad.grad,
    "value_and_grad": lambda f: lambda x: np.append(*fwdad.value_and_grad(f)(x)),
    "jit of grad": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy"),
    "grad of jit": lambda f: fwdad.grad(fwdad.jit(f, backend="numpy")),
    "grad of a checkpoint": lambda f: fwdad.grad(fwdad.checkpoint(f)),
    "grad of grad": lambda f: fwdad.grad(lambda x: np.sum(fwdad.grad(f)(x) ** 2)),
    "jacrev": lambda f: fwdad.jacrev(vector(f)),
    "vjp": lambda f: lambda x: fwdad.vjp(vector(f), x)[1](np.ones(2)),
    "hvp": lambda f: lambda x: fwdad.hvp(f, x, TABLE),
    "hessian": lambda f: lambda x: fwdad.hessian(f, x),
    "matvec": linearized("matvec", TABLE),
    "rmatvec": linearized("rmatvec", np.ones(2)),
    "matmat": linearized("matmat", np.eye(N)),
    "jvp": lambda f: lambda x: fwdad.jvp(vector(f), x, TABLE)[1],
}


def world(x):
    """All that a call could have changed."""
    arrays = (x, TABLE, BUFFER, MODEL.weights)
    return [(a.tobytes(), a.flags.writeable) for a in arrays], MODEL.count


def made_anew(x):
    """The world as it is before the first call."""
    BUFFER[:] = 0.0
    vars(MODEL).update(vars(Model()))
    return world(x)


def left_by(call, x, error=None):
    """What a call that is made in a new world leaves there."""
    made_anew(x)
    if error is None:
        call()
    else:
        with pytest.raises(error):
            call()
    return world(x)


TWICE = {"jacrev", "vjp", "matvec", "rmatvec", "matmat", "jvp"}
"""The ways that differentiate :func:`vector`, which runs the program twice."""


def plain_call(f, way):
    """One plain call, on a copy of its argument, which derivatives leave as it is."""
    plain = vector(f) if way in TWICE else f
    return lambda: plain(X.copy())


@pytest.fixture(autouse=True)
def _works_again():
    yield
    FAILS[:] = 0
    TOLD.clear()


@pytest.mark.slow_cases(
    "in_place-jacrev-False", "in_place-grad of grad-False", "in_place-grad of a checkpoint-True"
)
@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
@pytest.mark.parametrize("writeable", [True, False])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", every(2, PROGRAMS))
def test_forward(f, way, writeable, monkeypatch):
    if way == "jit of grad" and f is not in_place:
        pytest.skip("it is refused")
    x = X.copy()
    x.flags.writeable = writeable
    g, plainly = WAYS[way](f), plain_call(f, way)
    left = left_by(plainly, x)
    made_anew(x)
    expected = WAYS[way](f)(X.copy())
    # of closures that are made anew at each call soon no tape is written any more: the last bit
    agree = close if way in ("matvec", "rmatvec", "matmat") else assert_array_equal
    for kind, error in ERRORS.items():
        FAILS[:] = kind
        broken_off = left_by(plainly, x, error)
        assert left_by(lambda: g(x), x, error) == broken_off
        FAILS[:] = 0
        made_anew(x)
        agree(g(x), expected)
        assert world(x) == left
    for error in (MemoryError, KeyboardInterrupt):
        with monkeypatch.context() as patch:  # a plain call does not ask the rule
            patch.setitem(globals(), "turned", striking(error))
            broken_off = left_by(plainly, x, error)
        TOLD.append(striking(error))
        assert left_by(lambda: g(x), x, error) == broken_off
        TOLD.clear()
        made_anew(x)
        agree(g(x), expected)
        assert world(x) == left


def striking(error):
    def call(*_args):
        raise error

    return call


@pytest.mark.parametrize("way", ["grad", "vjp", "hvp", "rmatvec", "jvp"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_interrupted_in_the_program(f, way):
    """At each line of the user's code and of generated code."""
    x = X.copy()
    g, plainly = WAYS[way](f), plain_call(f, way)
    lefts = [left_by(plainly, x)]
    for at in range(1, count_lines(plainly, _is_program)):
        made_anew(x)
        assert interrupted(plainly, at, _is_program)
        lefts.append(world(x))
    made_anew(x)
    expected = g(x)
    lines = count_lines(lambda: g(x), _is_program)
    reached = 0
    for at in range(1, lines, 1 + lines // 25):
        made_anew(x)
        reached += interrupted(lambda: g(x), at, _is_program)  # a later run may be shorter
        assert world(x) in lefts, at
    assert reached  # a tape that is known runs few lines of the program
    made_anew(x)
    assert_array_equal(g(x), expected)
    assert world(x) == lefts[0]


@pytest.mark.slow_cases("in_place-False", "recorded-True")
@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize("f", [in_place, recorded])
def test_interrupted_pullback(f, swap, monkeypatch):
    """At each line of the library and of generated code; the next call has the right result."""
    monkeypatch.setattr(residual_store, "_LESS", 0 if swap else np.inf)

    def twice(x):
        y = f(x)
        return np.stack([y, -2.0 * y])

    x = X.copy()
    before, rows = world(x), fwdad.jacfwd(twice)(x)
    y, pullback = fwdad.vjp(twice, x)
    assert (pullback._kept is None) == (f is recorded)
    bars = [np.array([1.0, 2.0]), np.array([[1.0, 2.0], [0.5, 1.0], [3.0, 4.0]])]
    value = y.copy()
    for bar in bars:
        pullback(bar)
        lines = count_lines(lambda bar=bar: pullback(bar), _is_anything)
        reached = 0
        for at in range(1, lines, 1 + lines // 70):
            reached += interrupted(lambda bar=bar: pullback(bar), at, _is_anything)
            assert_allclose(pullback(bars[0]), bars[0] @ rows, rtol=1e-12)
            assert_allclose(pullback(bars[1]), bars[1] @ rows, rtol=1e-12)
        assert reached > 20  # a later run may be shorter: what it looks up is known
    assert world(x) == before
    assert not SHADOWED
    assert STATE.run is None
    assert_array_equal(y, value)


def _is_program(code):
    name = code.co_filename
    return code is not world.__code__ and (name == __file__ or name.startswith("<"))


def _is_anything(code):
    forgets = (
        code.co_name == "forget" and code.co_filename == generated_source.__file__
    )  # of garbage
    return code is not world.__code__ and not forgets


def overwriting(x):
    """Its reverse pass puts something back before, and after, it has asked the rule."""
    y = x * 2.0
    s = np.sum(y * y)
    z = turned(y) * y
    y[1:4] = y[:3] * z[1:4]
    z = turned(z * y)
    y[0] *= np.sum(z * y)
    return s * y * turned(y)


@pytest.mark.parametrize("swap", [True, False])
def test_a_rule_that_calls_the_pullback_that_runs_it(swap, monkeypatch):
    monkeypatch.setattr(residual_store, "_LESS", 0 if swap else np.inf)
    rows = fwdad.jacfwd(overwriting)(X)
    _, pullback = fwdad.vjp(overwriting, X)
    assert (pullback._kept._logs_for(pullback._kept.sweeps.passes.reverse) is not None) == swap
    _, J = fwdad.linearize(overwriting, X)
    for pull in (pullback, J.rmatvec):
        found = []

        def again(pull=pull, found=found):
            TOLD.clear()
            found.append(pull(TABLE))
            if pull is pullback:
                found.extend(pull(np.stack([TABLE, X])))
            TOLD.append(again)

        TOLD.append(again)
        assert_allclose(pull(X), X @ rows, rtol=1e-11)
        TOLD.clear()
        assert len(found) >= 2
        for k, x_bar in enumerate(found):
            bar = X if pull is pullback and k % 3 == 2 else TABLE
            assert_allclose(x_bar, bar @ rows, rtol=1e-11)
        assert_allclose(pull(TABLE), TABLE @ rows, rtol=1e-11)


def test_threads_of_which_one_swaps_and_one_copies(monkeypatch):
    """A copy of what is kept waits until what another thread has swapped is swapped again."""
    rows = fwdad.jacfwd(overwriting)(X)
    _, pullback = fwdad.vjp(overwriting, X)
    kept = pullback._kept
    logs = kept._logs_for

    def only_single(program):
        return logs(program) if program is kept.sweeps.passes.reverse else None

    monkeypatch.setattr(residual_store, "_LESS", 0)
    monkeypatch.setattr(kept, "_logs_for", only_single)
    inside, found, many, calls = threading.Event(), [], np.stack([TABLE, X]), []

    def ask():
        inside.wait(10)
        found.append(pullback(many))

    def wait():
        if threading.current_thread() is not thread:
            calls.append(1)
            if len(calls) == 3:  # y[0] and y[1:4] have been restored
                inside.set()
                thread.join(0.1)

    pullback(many)
    thread = threading.Thread(target=ask)
    TOLD.append(wait)
    thread.start()
    x_bar = pullback(TABLE)
    thread.join()
    assert_allclose(x_bar, TABLE @ rows, rtol=1e-11)
    assert_allclose(found[0], many @ rows, rtol=1e-11)


def test_a_store_before_what_always_raises():
    def f(x):
        y = x.copy()
        y[0] = 3.0
        return len(np.sum(y))

    x = np.ones(2)
    for derivative in (
        fwdad.grad(f),
        lambda x: fwdad.vjp(f, x),
        lambda x: fwdad.jacobian(f, x, mode="reverse"),
        lambda x: fwdad.linearize(f, x),
        fwdad.jit(fwdad.grad(f), backend="numpy"),
    ):
        with pytest.raises(TypeError, match=r"has no len\(\)"):
            derivative(x)
