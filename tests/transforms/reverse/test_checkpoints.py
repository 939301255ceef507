"""Loops run again from checkpoints: the bits without, few states, and no more work than is said."""

import importlib.util
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.ir.check import check_program
from fwdad.ir.ops import Loop
from tests.differences import central_differences
from tests.transforms.reverse.checkpointed import (
    CALLS,
    LOOPS,
    filled,
    heun,
    layer,
    power,
    power_while,
    repeated,
    sides,
    stencil,
    two_buffers,
)
from tests.transforms.reverse.programs import PROGRAMS

X = np.array([0.5, 0.7, 0.3, 1.1, 0.9])
NAMES = [f"{f.__name__}-{k}" for k, (f, _) in enumerate(PROGRAMS)]

NUMBA = ["numba"] if importlib.util.find_spec("numba") else []
PLANS = [{"snapshots": 1}, {"snapshots": 2}, {"snapshots": 7}, {}, {"memory": 200}]


def compiled(f, backend="numpy", **plan):
    g = fwdad.checkpoint(f, **plan) if plan is not None else f
    return fwdad.jit(fwdad.grad(g), backend=backend)


@pytest.mark.every(6)
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


@pytest.mark.every(6)
@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=NAMES)
def test_programs(f, x):
    expected = fwdad.jit(fwdad.grad(f), backend="numpy")(x)
    for plan in ({"snapshots": 1}, {"snapshots": 3}, {}):
        assert_array_equal(compiled(f, **plan)(x), expected)


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
    assert kept >= 3 * 40 * x.nbytes
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


def test_recursion():
    """A call inside of the function itself was asked what it writes, before that was known."""

    def made(mark):
        @mark
        def tree(u, d):
            if d == 0:
                return np.sin(u[0]) * u[1]
            return tree(u[1:], d - 1) * tree(u[:-1], d - 1) + u[0]

        return lambda x, d: tree(x, d) * x[0]

    plain = fwdad.jit(fwdad.grad(made(lambda f: f)), backend="numpy")
    gradient = fwdad.jit(fwdad.grad(made(fwdad.checkpoint)), backend="numpy")
    for d in (0, 1, 3):
        assert_array_equal(gradient(X, d), plain(X, d))
    forward = fwdad.jacobian(made(fwdad.checkpoint), X, args=(3,), mode="forward")
    assert_allclose(gradient(X, 3), forward, rtol=1e-12)


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


def remembering(mark):
    """Steps that change a small array outside of them, whose elements become numbers."""

    def f(x, n):
        w = np.zeros(3)

        @mark
        def step(y):
            w[:] = w * 0.5 + y
            return np.sin(w) * y

        y = x[:3]
        for _ in range(n):
            y = step(y)
        return y + w

    return f


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("inner", [fwdad.jacfwd, fwdad.jacrev])
def test_calls_that_carry_elements_of_arrays(inner, n):
    plain = remembering(lambda f: f)
    found = fwdad.jacrev(inner(remembering(fwdad.checkpoint)))(X, n)
    differences = central_differences(lambda x: fwdad.jacfwd(plain)(x, n), X)
    assert_allclose(found, differences, rtol=1e-8, atol=1e-8)
    expected = fwdad.jacfwd(fwdad.jacfwd(plain))(X, n)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    for backend in ("numpy", *NUMBA):
        jitted = fwdad.jit(fwdad.jacrev(inner(remembering(fwdad.checkpoint))), backend=backend)
        assert_allclose(jitted(X, n), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.every(3, first=1)
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


@pytest.mark.every(4, first=2)
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
    """A function that cannot be traced: the result is the same, with a warning."""

    def f(x, n):
        y = x
        for _ in range(n):
            y = np.sin(y) if float(np.sum(y)) > 2 else y * y
            y = y + min(y[y > -1e9].tolist())
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
