"""Tangents along one direction are numbers in compiled code, with the same results."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from benchmarks.reverse_programs import PROBLEMS
from fwdad.codegen.numba_support import have_numba
from fwdad.codegen.passes.single_lanes import with_single_lanes_as_numbers
from fwdad.ir.ops import is_array, walk

pytestmark = pytest.mark.skipif(not have_numba(), reason="Numba compiles")
RNG = np.random.default_rng(8)


def chain(x):
    y = x[0]
    for k in range(1, x.shape[0]):
        y = math.sin(y) * x[k] if y > 0 else y - x[k] ** 2
    return y


def until(x):
    s, k = 1.0, 0
    while s < 3.0 and k < x.shape[0]:
        s = s + x[k] ** 2 * s
        k += 1
    return s


def in_place(x):
    y = x.copy()
    for k in range(1, y.shape[0]):
        y[k] = y[k] * y[k - 1] + math.exp(-y[k])
    return y


def left_unbound(x):
    total = 0.0
    for k in range(x.shape[0]):
        if x[k] > 0:
            part = x[k] ** 3
        if x[k] > 0:
            total += part
    return total


def as_array(x):
    """Numbers that are gathered again: what other operations are given is an array."""
    a = np.array([x[0] * x[1], math.cos(x[2])])
    return np.outer(a, np.array([x[1]])).sum() + np.sort(a)[0]


PROGRAMS = [chain, until, in_place, left_unbound, as_array]
X = np.array([0.7, -0.4, 1.2, 0.9, -1.1, 0.3])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("f", PROGRAMS)
def test_jvp(f, n):
    v = RNG.standard_normal((n, X.size))
    wanted = np.stack([(f(X + 1e-6 * d) - f(X - 1e-6 * d)) / 2e-6 for d in v])
    found = fwdad.jit(lambda x, v: fwdad.jvp(f, x, v)[1])(X, v)
    assert_allclose(found, wanted, rtol=2e-8, atol=1e-8)
    assert_allclose(found, fwdad.jvp(f, X, v)[1], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("f", [chain, until, left_unbound, lambda x: np.sum(in_place(x) ** 2)])
def test_hvp(f):
    v = RNG.standard_normal(X.size)
    found = fwdad.jit(lambda x, v: fwdad.hvp(f, x, v))(X, v)
    assert_allclose(found, fwdad.hessian(f, X) @ v, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("f", PROGRAMS)
def test_zeros_stay_zero(f):
    """As for lanes: a partial that is not finite does not matter where the tangent is zero."""
    x = X.copy()
    x[-1] = np.inf
    v = np.zeros((1, X.size))
    found = fwdad.jit(lambda x, v: fwdad.jvp(f, x, v)[1])(x, v)
    with np.errstate(all="ignore"):
        assert_allclose(found, fwdad.jvp(f, x, v)[1])


def test_there_is_no_lane_left():
    """Of a loop of numbers, so that its loops are those of a program of numbers."""

    def g(x, v):
        return fwdad.hvp(chain, x, v)

    program = fwdad.trace(g, X, X).program
    after = with_single_lanes_as_numbers(program)

    def lanes(program):
        """Those inside of its loops."""
        inner = (op for loop in program.walk() for block in loop.blocks() for op in walk(block))
        values = {v for op in inner for v in op.outputs}
        return [v for v in values if is_array(v) and v.type.shape == (1,)]

    assert lanes(program)
    assert not lanes(after)
    assert with_single_lanes_as_numbers(after) is after


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_the_reverse_set(problem):
    from benchmarks.directions import TOLERANCE, Calls, error  # noqa: PLC0415

    assert error(Calls(problem), problem) < TOLERANCE
