"""Loops that look for an extreme become one call: the same element, in all modes."""

# ruff: noqa: FURB136, PLR1730  (comparisons by hand are what is tested)

import math
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.ir.check import checked
from fwdad.ir.ops import Loop
from fwdad.ir.primitives.running_extremes import (
    COMPARISONS,
    place_of_extreme,
    place_of_larger,
    place_of_smaller,
)
from fwdad.transforms.passes import find_extremes, optimise
from tests.tiers import every

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")
BACKENDS = ["numpy", pytest.param("numba", marks=needs_numba)]
ODD = [0.0, -0.0, 1.0, -1.0, 2.0, math.inf, -math.inf, math.nan]


def by_loop(row, begin, start, stop, larger):
    place, best = -1, begin
    for j in range(start, stop):
        if (row[j] > best) if larger else (row[j] < best):
            place, best = j, row[j]
    return place


def test_places_are_those_of_the_loop(rng):
    for n in (1, 2, 5, 40):
        for _ in range(100):
            a = rng.choice(ODD, size=(n, n))
            begin = rng.choice(ODD)
            start, stop = sorted(rng.integers(0, n + 1, size=2))
            for axis, row in ((1, a[0]), (0, a[:, 0])):
                for f, larger in ((place_of_larger, True), (place_of_smaller, False)):
                    expected = by_loop(row, begin, start, stop, larger)
                    assert f(a, begin, start, stop, axis, 0) == expected


HOLDS = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "not >": lambda a, b: not a > b,
    "not >=": lambda a, b: not a >= b,
    "not <": lambda a, b: not a < b,
    "not <=": lambda a, b: not a <= b,
}


def by_comparison(row, begin, start, stop, comparison):
    place, best = -1, begin
    for j in range(start, stop):
        if HOLDS[comparison](row[j], best):
            place, best = j, row[j]
    return place


def test_places_of_all_comparisons_are_those_of_the_loop(rng):
    for n in (1, 2, 5, 40):
        for _ in range(100):
            a = rng.choice(ODD if n < 40 else ODD[:-1], size=(n, n))
            begin = rng.choice(ODD)
            start, stop = sorted(rng.integers(0, n + 1, size=2))
            for axis, row in ((1, a[0]), (0, a[:, 0])):
                for comparison in COMPARISONS:
                    expected = by_comparison(row, begin, start, stop, comparison)
                    found = place_of_extreme(a, begin, start, stop, axis, comparison, 0)
                    assert found == expected


def test_places_outside_raise():
    a = np.arange(6.0).reshape(2, 3)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 1 with size 3"):
        place_of_larger(a, 0.0, 1, 4, 1, 0)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 2"):
        place_of_larger(a, 0.0, 5, 7, 0, 0)
    assert place_of_larger(a, 0.0, 3, 3, 1, 99) == -1  # no iteration, no index


def largest(x):
    m = x[0]
    for j in range(1, len(x)):
        if x[j] > m:
            m = x[j]
    return m


def smallest_turned(x):
    m = x[0]
    for j in range(1, len(x)):
        m = x[j] if m > x[j] else m
    return m


def from_a_number(x):
    m = -math.inf
    for j in range(len(x)):
        if m < x[j]:
            m = x[j]
    return m


def with_its_place(x):
    m, place = x[0], 0
    for j in range(1, len(x)):
        if x[j] > m:
            m = x[j]
            place = j
    return m * m + x[place // 2]


def of_columns(x):
    x = np.reshape(x, (-1, 1)) * np.array([1.0, -2.0])
    total = 0.0
    for k in range(2):
        m = x[0, k]
        for i in range(1, x.shape[0]):
            if x[i, k] > m:
                m = x[i, k]
        total += (k + 1.0) * m
    return total


def by_builtins(x):
    m, n = x[0], x[0]
    for j in range(1, len(x)):
        m = max(m, x[j])
    for j in range(1, len(x)):
        n = min(n, x[j])
    return 3.0 * m - n


def not_less(x):
    m = x[0]
    for j in range(1, len(x)):
        if x[j] >= m:
            m = x[j]
    return m


def not_larger_with_its_place(x):
    m, place = x[0], 0
    for j in range(1, len(x)):
        if m >= x[j]:
            m, place = x[j], j
    return m * m + x[place // 2]


def kept_unless_larger(x):
    m = x[0]
    for j in range(1, len(x)):
        m = m if m >= x[j] else x[j]
    return m


def by_builtins_of_the_element_first(x):
    m, n = x[0], x[0]
    for j in range(1, len(x)):
        m = max(x[j], m)
    for j in range(1, len(x)):
        n = min(x[j], n)
    return 3.0 * m - n


def least_of_the_element_first(x):
    n = x[0]
    for j in range(1, len(x)):
        n = min(x[j], n)
    return n


LAST = [
    not_less,
    least_of_the_element_first,
    not_larger_with_its_place,
    kept_unless_larger,
    by_builtins_of_the_element_first,
]
FOUND = [*LAST, by_builtins, largest, smallest_turned, from_a_number, with_its_place, of_columns]


def scaled(x):
    m = x[0]
    for j in range(1, len(x)):
        if x[j] > m:
            m = 2.0 * x[j]
    return m


def of_another(x):
    m = x[0]
    for j in range(1, len(x)):
        if x[j] > m:
            m = x[j - 1]
    return m


def compared_with_the_first(x):
    m = x[0]
    for j in range(1, len(x)):
        if x[j] > x[0]:
            m = x[j]
    return m


def counted(x):
    m, n = x[0], 0
    for j in range(1, len(x)):
        if x[j] > m:
            m = x[j]
            n = n + 1
    return m * n


def both_ways(x):
    m, other = x[0], x[0]
    for j in range(1, len(x)):
        if x[j] > m:
            m = x[j]
        else:
            other = x[j]
    return m + 3.0 * other


OTHERS = [scaled, of_another, compared_with_the_first, counted, both_ways]


def loops_in(f, x):
    program = fwdad.trace(f, x).program
    optimise(program, checked)
    return [op for op in program.walk() if isinstance(op, Loop)]


@pytest.mark.parametrize("f", FOUND)
def test_the_loop_is_gone(f):
    assert len(loops_in(f, np.arange(20.0))) == (f is of_columns)  # which has the one around


@pytest.mark.parametrize("f", OTHERS)
def test_other_loops_stay(f):
    assert len(loops_in(f, np.arange(20.0))) == 1


def test_few_iterations_of_a_known_number_stay():
    def few(x):
        m = x[0]
        for j in range(1, 4):
            if x[j] > m:
                m = x[j]
        return m

    program = fwdad.trace(few, np.arange(20.0)).program
    while any(p(program) for p in (fwdad.transforms.passes.cse, fwdad.transforms.passes.dead)):
        pass
    assert not find_extremes(program)


@pytest.mark.every(8, of="numba")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", every(2, [*FOUND, *OTHERS]))
def test_derivatives_are_those_of_the_untraced_run(f, backend, rng):
    value_and_grad = fwdad.jit(fwdad.value_and_grad(f), backend=backend)
    jvp = fwdad.jit(lambda x, v: fwdad.jvp(f, x, v), backend=backend)
    for n in (1, 2, 7, 8, 9, 33, 100):
        for _ in range(3):
            x, v = rng.integers(-4, 5, size=n) * 0.5, rng.normal(size=n)  # with ties
            y, x_bar = value_and_grad(x)
            assert_array_equal(y, f(x))
            assert_array_equal(x_bar, fwdad.jacobian(f, x, mode="forward"))
            assert_allclose(jvp(x, v)[1], fwdad.jvp(f, x, v)[1], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [not_less, kept_unless_larger, least_of_the_element_first])
def test_odd_numbers_where_the_last_of_equals_is_taken(f, backend, rng):
    made = fwdad.jit(fwdad.value_and_grad(f), backend=backend)
    for _ in range(200):
        x = rng.choice(ODD, size=rng.integers(1, 30))
        y, x_bar = made(x)
        assert_array_equal(np.asarray(y).tobytes(), np.asarray(f(x)).tobytes())
        assert_array_equal(x_bar, fwdad.jacobian(f, x, mode="forward"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_odd_numbers(backend, rng):
    f = fwdad.jit(fwdad.value_and_grad(largest), backend=backend)
    g = fwdad.jit(fwdad.value_and_grad(smallest_turned), backend=backend)
    for _ in range(200):
        x = rng.choice(ODD, size=rng.integers(1, 30))
        for made, larger, program in ((f, True, largest), (g, False, smallest_turned)):
            y, x_bar = made(x)
            assert_array_equal(np.asarray(y).tobytes(), np.asarray(program(x)).tobytes())
            expected = np.zeros_like(x)
            expected[max(by_loop(x, x[0], 1, len(x), larger), 0)] = 1.0
            assert_array_equal(x_bar, expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64])
def test_dtypes_and_strides(backend, dtype, rng):
    f = fwdad.jit(largest, backend=backend)
    x = rng.integers(-50, 50, size=(40, 3)).astype(dtype)
    for row in (x[:, 1], x[::-1, 2], x[:, 0].copy()):
        found = f(row)
        assert found == largest(row)
        assert np.asarray(found).dtype == dtype


def up_to(x, n):
    m = x[0]
    for j in range(1, n):
        if x[j] > m:
            m = x[j]
    return m


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_outside_raises(backend):
    f = fwdad.jit(fwdad.value_and_grad(up_to), backend=backend)
    x = np.arange(30.0)
    assert f(x, 30)[0] == 29.0
    assert f(x, 0)[0] == 0.0
    with pytest.raises(IndexError, match="index 30 is out of bounds for axis 0 with size 30"):
        f(x, 31)


def changed_after(x):
    """What the place is found in is overwritten before the reverse pass."""
    x = x.copy()
    total = 0.0
    for k in range(3):
        m = x[0]
        for j in range(1, len(x)):
            if x[j] > m:
                m = x[j]
        total += m * m
        x[:] = np.sin(x * (k + 2.0))
    return total


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_overwritten_later(backend, rng):
    x = rng.normal(size=25)
    y, x_bar = fwdad.jit(fwdad.value_and_grad(changed_after), backend=backend)(x)
    assert_allclose(y, changed_after(x), rtol=1e-14)
    expected = fwdad.jacobian(changed_after, x, mode="forward")
    assert_allclose(x_bar, expected, rtol=1e-13, atol=1e-15)
