"""Products without tests: the same results, also where a cotangent of zero meets an infinity."""

import gc
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

pytest.importorskip("numba")

from fwdad.codegen.passes.zero_tests import LostZeroError, without_tests
from fwdad.ir.ops import Apply, Check
from fwdad.tangents.scaling import scale_lanes

X = np.linspace(0.2, 1.3, 5)


def roots(x):
    """The derivative of a root is infinite at 0, where its cotangent is zero."""
    s = 0.0
    for i in range(len(x)):
        r = np.sqrt(x[i] * x[i])
        s = s + (r * x[i] if r > 0.1 else x[i])
        s = s * (1.0 + 0.1 * x[i])
    return s


def arrays(x):
    y = x * 1.0
    for k in range(3):
        y = np.where(y > 0.1, np.sqrt(np.abs(y)) * x, y) + k
    return np.sum(y * x)


def stored(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = np.log(x[i]) if x[i] > 0.0 else x[i]
        y[i] = y[i] * x[i] + 0.0 * np.sqrt(np.abs(x[i]))
    return np.sum(y)


PROGRAMS = [roots, arrays, stored]
TRANSFORMS = [fwdad.grad, fwdad.value_and_grad, fwdad.jacfwd, fwdad.hessian]


def at_zero():
    x = X.copy()
    x[2] = 0.0
    return x


def close(found, wanted):
    pairs = zip(found, wanted, strict=True) if type(wanted) is tuple else [(found, wanted)]
    for a, b in pairs:
        assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def products_tested(g, *args):
    """How many products of a compiled function have a test."""
    lines = fwdad.show(g, *args, backend="numba").splitlines()
    return sum(line.count("scaled(") for line in lines if not line.strip().startswith("#"))


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_without_infinities(f):
    g = fwdad.jit(fwdad.grad(f))
    assert_allclose(g(X), central_differences(f, X), rtol=1e-7)
    assert products_tested(g, X) == 0
    assert_array_equal(g(X), fwdad.jit(fwdad.grad(f), backend="numpy")(X))


@pytest.mark.every(3)
@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_with_infinities(f, transform):
    """What NumPy has with all tests, before it and after it, by each way to call."""
    g, by_numpy = fwdad.jit(transform(f)), fwdad.jit(transform(f), backend="numpy")
    for x in (X, X, at_zero(), at_zero(), X, np.zeros(5), X):
        close(g(x), by_numpy(x))
    assert "run by Numba" in fwdad.explain(g)


def test_tests_stay_once_they_were_needed():
    g, wanted = fwdad.jit(fwdad.grad(roots)), fwdad.jit(fwdad.grad(roots), backend="numpy")
    for _ in range(3):
        g(X)  # by a shortcut, which knows the kernel
    made = g.last.run.compiled
    assert "scaled(" not in made.source.text
    close(g(at_zero()), wanted(at_zero()))
    assert "scaled(" in made.source.text

    def run(*_):
        raise AssertionError

    made.call = run
    close(g(at_zero()), wanted(at_zero()))  # the shortcut calls the other kernel now


@pytest.mark.parametrize("n", [1, 2, 3])
def test_directions(n):
    v = np.linspace(-1.0, 1.0, 5 * n).reshape(n, 5)
    push = lambda x: fwdad.jvp(roots, x, v)  # noqa: E731
    g, by_numpy = fwdad.jit(push), fwdad.jit(push, backend="numpy")
    for x in (X, at_zero(), X):
        close(g(x), by_numpy(x))


def test_into_out():
    g, out = fwdad.jit(fwdad.grad(roots)), np.empty(5)
    for x in (X, at_zero(), X):
        out[:] = 7.0
        assert g(x, out=out) is out
        assert_array_equal(out, fwdad.jit(fwdad.grad(roots), backend="numpy")(x))


def test_many_points():
    g = fwdad.jit(fwdad.vmap(fwdad.grad(roots)))
    points = np.stack([X, at_zero(), X[::-1]])
    wanted = fwdad.jit(fwdad.grad(roots), backend="numpy")
    assert_allclose(g(np.stack([X, X])), [wanted(X), wanted(X)], rtol=1e-12)
    assert_allclose(g(points), [wanted(x) for x in points], rtol=1e-12)


def test_pullbacks():
    for x in (X, at_zero()):
        _, pullback = fwdad.vjp(fwdad.jit(roots), x)
        wanted = fwdad.jit(fwdad.grad(roots), backend="numpy")(x)
        for _ in range(2):
            assert_allclose(pullback(1.0), wanted, rtol=1e-12)
            assert_allclose(pullback(np.array([1.0, 0.0, 2.0])), np.outer([1, 0, 2], wanted))


def test_inside_of_compiled_functions():
    """Numba calls the kernel itself, which has its tests there."""
    g = fwdad.jit(fwdad.grad(roots))

    numba = pytest.importorskip("numba")

    @numba.njit
    def caller(x):
        return g(x) * 2.0

    for x in (X, at_zero()):
        wanted = fwdad.jit(fwdad.grad(roots), backend="numpy")(x)
        assert_allclose(caller(x), 2.0 * wanted, rtol=1e-12)


# -- what loses a NaN


def compared(x):
    g = fwdad.grad(roots)(x)
    return x * 2.0 if g[2] > 0.5 else x


def greatest(x):
    return np.fmax(fwdad.grad(roots)(x), 0.3)


def counted(x):
    return np.sum(fwdad.grad(roots)(x) > 0.5)


def stepped(x):
    """Some steps of a descent, whose objective is not linear in the gradient before."""
    for _ in range(3):
        x = x - 0.1 * fwdad.grad(roots)(x)
    return x


def places(x):
    return x[np.argsort(fwdad.grad(roots)(x))]


def until(x):
    k = 0
    while fwdad.grad(roots)(x)[0] > 0.9 + k and k < 3:
        k += 1
    return x * k


def carried(x):
    """The loop's condition is of what it carries."""
    k, g = 0, fwdad.grad(roots)(x)
    while g[2] > 0.0 and k < 3:
        g, k = g - fwdad.grad(roots)(x), k + 1
    return g + k


def as_condition(x):
    """A cotangent of zero is false, and NaN is true."""
    return np.where(fwdad.grad(roots)(x) - 1.0, x + 1.0, 2.0 * x)


LOSING = [compared, greatest, counted, stepped, places, until, carried, as_condition]


@pytest.mark.parametrize("f", LOSING, ids=lambda f: f.__name__)
def test_what_loses_a_nan_has_its_tests(f):
    g, by_numpy = fwdad.jit(f), fwdad.jit(f, backend="numpy")
    for x in (X, at_zero(), np.zeros(5)):
        assert_allclose(g(x), by_numpy(x), rtol=1e-12)
    assert products_tested(g, X) > 0


def test_what_keeps_it_has_none():
    def f(x, a):
        g = fwdad.grad(roots)(x)
        return a @ g, np.where(x > 0.5, g, 0.0), np.concatenate([g, -g / x]), np.cumsum(g)[::2]

    g = fwdad.jit(f)
    a = np.arange(10.0).reshape(2, 5)
    close(g(X, a), f(X, a))
    assert products_tested(g, X, a) == 0
    for x in (at_zero(), X):
        close(g(x, a), fwdad.jit(f, backend="numpy")(x, a))


def test_programs_that_run_once_have_their_tests():
    def f(x, held):
        held[0] += 1.0
        return fwdad.grad(roots)(x)

    held = np.zeros(1)
    g = fwdad.jit(f)
    close(g(at_zero(), held), fwdad.jit(fwdad.grad(roots), backend="numpy")(at_zero()))
    assert held[0] == 1.0
    assert products_tested(g, X, held) > 0


def test_the_program_stays_as_it_is():
    program = fwdad.trace(lambda x: fwdad.grad(roots)(x), X).program
    before = list(program.walk())
    made = without_tests(program)
    assert list(program.walk()) == before
    assert any(isinstance(op, Apply) and op.function is scale_lanes for op in before)
    assert isinstance(made.block.ops[-1], Check)
    assert made.block.ops[-1].exception is LostZeroError
    assert without_tests(fwdad.trace(roots, X).program) is None


@pytest.mark.usefixtures("young_heap")
def test_what_calls_a_kernel_is_not_kept():
    """Each linear map has code of its own, with its data, which ends with it."""
    f = fwdad.jit(stored)
    for k in range(12):
        wanted = fwdad.jvp(f, X + 0.01 * k, X)[1]
        assert_allclose(fwdad.linearize(f, X + 0.01 * k)[1] @ X, wanted, rtol=1e-12)
    gc.collect()
    callers = [
        o.__dict__["callers"]
        for o in gc.get_objects()
        if type(o) is types.FunctionType and "callers" in o.__dict__  # a proxy may be dead
    ]
    assert callers
    assert max(map(len, callers)) < 12
