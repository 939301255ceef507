"""Comprehensions, maps and generators, which are loops of a tape where their items are alike."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.frontend.syntax.growing_lists import filled
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Loop, walk
from tests.differences import central_differences
from tests.frontend.comprehensions import PROGRAMS, g
from tests.tiers import every

POINTS = [np.array([0.3, -0.2, 0.5, 0.7]), np.array([-0.4, 0.25, 0.1, -0.7])]
LONG = np.linspace(0.1, 1.0, 40)

pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")


@pytest.fixture
def short_ones(monkeypatch):
    """Lists of a few items are filled by loops, too."""
    monkeypatch.setattr(filled, "_FEW", 2)
    monkeypatch.setattr(filled, "_MANY", 0)


@pytest.mark.usefixtures("short_ones")
@pytest.mark.every(2)
@pytest.mark.parametrize("x", POINTS, ids=["first", "second"])
@pytest.mark.parametrize("f", every(2, PROGRAMS))
def test_values_and_derivatives(f, x):
    expected = central_differences(f, x)
    assert_allclose(fwdad.jit(f, backend="numpy")(x.copy()), f(x.copy()), rtol=1e-13)
    for derivative in (fwdad.grad, fwdad.jacfwd):
        found = fwdad.jit(derivative(f), backend="numpy")(x.copy())
        assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("short_ones")
@pytest.mark.parametrize("f", every(10, PROGRAMS))
def test_compiled(f):
    def all_of(x):
        return f(x), fwdad.grad(f)(x)

    y, slope = fwdad.jit(all_of, backend="numba")(POINTS[0].copy())
    assert_allclose(y, f(POINTS[0].copy()), rtol=1e-12)
    assert_allclose(slope, central_differences(f, POINTS[0]), rtol=1e-6, atol=1e-6)


def listed(x):
    return np.sum(np.array([g(t) * g(t + 1.0) for t in x]) ** 2)


def mapped(x):
    return np.sum(np.array(list(map(lambda t: g(t) * g(t + 1.0), x))) ** 2)


def generated(x):
    return np.sum(np.fromiter((g(t) * g(t + 1.0) for t in x), float) ** 2)


def nested(x):
    return np.sum(np.array([[g(a) * g(b) for b in x] for a in x]) ** 2)


def in_tuples(x):
    return sum(a * b for a, b in [(g(t), g(t) ** 2) for t in x])


@pytest.mark.parametrize("f", [listed, mapped, generated, nested, in_tuples])
def test_the_program_is_as_long_for_more_items(f):
    few, many = (trace(f, np.linspace(0.1, 1.0, n)).program for n in (60, 90))
    assert len(list(few.walk())) == len(list(many.walk())) < 100
    assert any(isinstance(op, Loop) for op in walk(many.block))
    assert_allclose(fwdad.jit(fwdad.grad(f))(LONG), central_differences(f, LONG), rtol=1e-6)


def test_a_list_that_is_changed_is_made_by_a_loop():
    def f(x):
        items = [g(t) * g(t + 1.0) for t in x]
        items[3] = 1.0
        return sum(items)

    assert len(list(trace(f, LONG).program.walk())) < 100
    assert_allclose(fwdad.jit(fwdad.grad(f))(LONG), central_differences(f, LONG), rtol=1e-6)


def test_lists_are_returned_with_the_types_of_their_items():
    def f(x):
        numbers = [g(t) * g(t + 1.0) for t in x]
        whole = [np.array(g(t) * g(t + 1.0)) for t in x]
        rows = [g(x[:3]) * t * g(t) for t in x]
        python = [v * v + 1.0 for v in x.tolist()]
        return numbers, whole, rows, python, [(t, g(t) * g(t + 1.0)) for t in x]

    for found, expected in zip(fwdad.jit(f)(LONG), f(LONG), strict=True):
        assert type(found) is list
        assert len(found) == len(expected)
        assert type(found[0]) is type(expected[0])
        assert np.shape(found[0]) == np.shape(expected[0])
        assert_allclose(found, expected, rtol=1e-13)


def test_a_tape_that_returns_a_list_is_called_in_another_function():
    tape = trace(lambda x: [g(t) * g(t + 1.0) for t in x], LONG)

    def f(x):
        items = tape(x)
        return items[0] * items[3] + sum(items)

    assert_allclose(fwdad.jit(fwdad.grad(f))(LONG), central_differences(f, LONG), rtol=1e-6)


def test_the_first_iterable_of_a_sum_is_evaluated_outside():
    def f(x):
        return sum(x * x for x in x) + sum(a * b for x in [x, 2.0 * x] for a, b in zip(x, x[::-1]))

    assert_allclose(fwdad.jit(f)(LONG), f(LONG))


def squares_of_some(x):
    return sum([v * v for v in x if v > 0.2])


def places_of_some(x):
    return sum([x[k] * k for k in [i for i, v in enumerate(x) if v > 0.2]])


@pytest.mark.parametrize("f", [squares_of_some, places_of_some])
def test_one_tape_serves_all_that_values_choose(f):
    value, slope = fwdad.jit(f, backend="numpy"), fwdad.jit(fwdad.grad(f), backend="numpy")
    for x in (LONG, -LONG, np.sin(9 * LONG), LONG[::-1].copy()):
        assert_allclose(value(x), f(x))
        assert_allclose(slope(x), central_differences(f, x), rtol=1e-6, atol=1e-9)
    assert fwdad.cache_info(value).traces == 1
    assert fwdad.cache_info(slope).traces == 1
