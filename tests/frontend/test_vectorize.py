"""``np.vectorize`` in traced functions: a loop of calls, with values, types and derivatives."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Loop, walk
from tests.differences import central_differences
from tests.tiers import every

X = np.array([0.4, -1.3, 0.8, 2.1])
GRID = np.array([[0.3, -0.5, 1.2], [0.9, 0.1, -0.7]])


def kinked(v):
    if v > 0:
        return math.sin(v) * v
    return v * v


@np.vectorize(otypes=[float])
def decorated(v):
    return max(v, 0) * 2 if v < 1 else v**3


def weighted(v, weights, power=2):
    total = 0.0
    for w in weights:
        total += w * v**power
    return total


of_three = np.vectorize(weighted, excluded={1, "power"})
both = np.vectorize(lambda a, b: (a * b, math.exp(a) - b))
inner = np.vectorize(lambda a, b: np.sum(np.sin(a) * b), signature="(n),(n)->()")


def on_a_grid(x):
    return np.vectorize(lambda v, w: v * w if v > w else math.cos(v))(x, x[0])


def made_inside(x):
    a = x[0]

    @np.vectorize
    def f(v):
        return a * v if v > 0 else a / v

    return f(x) + decorated(x)


def of_a_number(x):
    return np.vectorize(kinked)(x[0]) * np.vectorize(kinked)(x)


def by_rows(x):
    outer = np.vectorize(lambda r: r * np.sum(r), signature="(n)->(n)", otypes=[float])
    return outer(x * 2) + outer(x[0]) + inner(x, x[0])[0]


PROGRAMS = {
    "a function of the module": (lambda x: np.vectorize(kinked)(x), X),
    "a decorator with otypes": (lambda x: decorated(x), X),
    "broadcast": (on_a_grid, GRID + 1),
    "excluded": (lambda x: of_three(x, x[:2], power=3), X),
    "excluded by name": (lambda x: of_three(x, [0.5, 0.25]) * x[1], X),
    "keywords": (lambda x: np.vectorize(weighted, excluded=["weights"])(v=x, weights=x[1:]), X),
    "two results": (lambda x: both(x, x[::-1])[0] + both(x, 2.0)[1], X),
    "defined inside": (made_inside, X),
    "a number": (of_a_number, X),
    "with a cache": (lambda x: np.vectorize(kinked, cache=True)(x) * x[0], X),
    "signature": (by_rows, GRID),
    "signature of two": (lambda x: inner(x, np.exp(x)), GRID),
    "signature of all": (lambda x: inner(x, x[::-1]) * x, X),
    "integers beside": (lambda x: np.vectorize(lambda k, v: k * v)(np.arange(4), x), X),
    "one element": (lambda x: np.vectorize(kinked)(x[:1]), X),
}
CASES = [pytest.param(*p, id=name) for name, p in PROGRAMS.items()]


@pytest.mark.slow_cases("two results")
@pytest.mark.parametrize(("f", "x"), every(6, CASES))
def test_values_and_derivatives(f, x):
    tape = trace(f, x)
    found, wanted = tape(x), f(x)
    assert type(found) is type(wanted)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert_allclose(found, wanted, rtol=1e-15)
    slope = central_differences(f, x)
    for n in (1, 2, 3):
        assert_allclose(fwdad.jacobian(fwdad.jit(f), x, chunk=n), slope, rtol=1e-7, atol=1e-8)
    weights = np.cos(np.arange(wanted.size)).reshape(wanted.shape)
    found = fwdad.grad(lambda x: np.sum(f(x) * weights))(x)
    assert_allclose(found, np.tensordot(weights, slope, wanted.ndim), rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jacrev(f)(x), slope, rtol=1e-7, atol=1e-8)


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize("name", ["a decorator with otypes", "excluded", "two results"])
def test_compiled(name):
    pytest.importorskip("numba")
    f, x = PROGRAMS[name]
    assert_allclose(fwdad.jit(f, backend="numba")(x), f(x), rtol=1e-14)
    found = fwdad.jit(fwdad.jacfwd(f), backend="numba")(x)
    assert_allclose(found, central_differences(f, x), rtol=1e-7, atol=1e-8)
    total = fwdad.jit(fwdad.grad(lambda x: np.sum(f(x))), backend="numba")(x)
    assert_allclose(total, central_differences(f, x).sum(0), rtol=1e-7, atol=1e-8)


def test_it_is_one_loop_for_all_lengths():
    jitted = fwdad.jit(lambda x: np.vectorize(kinked)(x))
    for n in (3, 5, 40):
        x = np.linspace(-1.0, 2.0, n)
        assert_allclose(jitted(x), np.vectorize(kinked)(x), rtol=1e-15)
    assert fwdad.cache_info(jitted).traces == 1
    tape = trace(lambda x: np.vectorize(kinked)(x), X)
    assert sum(isinstance(op, Loop) for op in walk(tape.program.block)) == 1


def clipped(x):
    return np.vectorize(lambda v: max(0, v))(x)


def greatest(x):
    return np.vectorize(lambda v: max(v, 0))(x)


@pytest.mark.parametrize("f", [clipped, greatest])
def test_types_that_depend_on_the_first_value_are_refused(f):
    with pytest.raises(UntraceableError, match=r"give `otypes=\[float\]`"):
        trace(f, X)


@pytest.mark.parametrize("name", ["a number", "broadcast", "two results"])
def test_as_it_runs(name):
    f, x = PROGRAMS[name]
    for n in (1, 2, 3):
        assert_allclose(
            fwdad.jacobian(f, x, chunk=n), central_differences(f, x), rtol=1e-7, atol=1e-8
        )


def test_results_that_are_rounded_have_no_derivative():
    with pytest.raises(fwdad.errors.DualLeakError, match="int32"):
        fwdad.grad(lambda x: np.sum(np.vectorize(lambda v: v * 1.5, otypes="i")(x) * x))(X)


def test_numbers_that_a_function_reads_are_not_constants():
    factor = [2.0]
    jitted = fwdad.jit(lambda x: x * np.vectorize(lambda v: v * factor[0])(3.0))
    assert jitted(1.0) == 6.0
    factor[0] = 5.0
    assert jitted(1.0) == 15.0


def test_what_does_not_fit_raises_as_in_numpy():
    f = fwdad.jit(lambda x, y: inner(x, y))
    with pytest.raises(ValueError, match="inconsistent size"):
        f(X, X[:3])
    with pytest.raises(ValueError, match="size 0"):
        fwdad.jit(lambda x: np.vectorize(kinked)(x))(X[:0])
    with pytest.raises(TypeError, match="positional arguments"):
        fwdad.jit(lambda x: inner(x))(X)
