"""The cases of the Loop operator: replayed, differentiated and counted."""

import math
import warnings

import numpy as np
import pytest

import fwdad
from fwdad.api.jit import cache_info, jit
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Apply, Branch, Loop
from fwdad.transforms.passes import optimise


def doubled_by_factors(a, n):
    a = 2 * a
    for _ in range(n):
        a *= n
    return a


def doubled(x, n):
    for _ in range(n):
        x = x + x
    return x


def alternating(y, n):
    for i in range(n):
        y = 3 * y if i % 2 == 0 else -y
    return y


def nested(a, n, m):
    for _ in range(n):
        for _ in range(m):
            a = a + a
    return a


def absolute(x):
    return x if x >= 0 else -x


def shared(x, n):
    for _ in range(n):
        x = math.sin(x) * math.cos(x) + math.sin(x)
    return x


def leaves_early(x, n):
    k = 0
    while True:
        k += 1
        if k == 2:
            continue
        x = x * x if x < 3 else x + 1
        if k >= n:
            break
    for _ in range(n):
        if x > 1e9:
            break
        x = 2 * x
    else:
        x = x + 0.5
    return x


def slope(f, x, *rest):
    """The derivative through jit, checked against the one without, at both modes of asking."""
    y, y_dot = fwdad.jvp(f, x, 1.0, args=rest)
    assert fwdad.derivative(f, x, args=rest) == y_dot
    plain = f.__wrapped__
    assert fwdad.jvp(plain, x, 1.0, args=rest) == (y, pytest.approx(y_dot, rel=1e-14))
    return y_dot


def test_case_1_trip_count_that_is_a_factor():
    tape = trace(doubled_by_factors, 2.0, 3)
    assert tape(2.0, 4) == 1024.0
    f = jit(doubled_by_factors)
    assert (f(2.0, 3), f(2.0, 4)) == (108.0, 1024.0)
    assert slope(f, 2.0, 4) == 512.0
    assert cache_info(f).traces == 3  # f, jvp, derivative


def test_case_2_other_trip_counts():
    tape = trace(doubled, 2.0, 3)
    assert [tape(2.0, n) for n in (3, 4, 5)] == [16.0, 32.0, 64.0]
    f = jit(doubled)
    assert [slope(f, 2.0, n) for n in (3, 4, 5)] == [8.0, 16.0, 32.0]
    assert cache_info(f).traces == 2  # jvp, derivative


def test_case_3_size_does_not_depend_on_the_trip_count():
    few, many = trace(doubled, 2.0, 10), trace(doubled, 2.0, 100_000)
    assert few.count() == many.count()
    assert many(0.0, 100_000) == 0.0


def test_case_3_exec_count():
    tape = trace(doubled, 2.0, 3)
    (loop,) = [op for op in tape.program.walk() if isinstance(op, Loop)]
    tape.program.block.results.append(loop.exec_count)
    tape.rebuild = lambda values, _: values
    assert tape(2.0, 7) == (256.0, 7)
    assert tape(2.0, 0) == (2.0, 0)


@pytest.mark.parametrize("example", [0, 3])
def test_case_4_no_iteration(example):
    tape = trace(doubled, 2.0, example)
    assert (tape(5.0, 0), tape(5.0, 2)) == (5.0, 20.0)
    f = jit(doubled)
    assert f(2.0, example) == doubled(2.0, example)
    assert slope(f, 5.0, 0) == 1.0
    assert slope(f, 5.0, 2) == 4.0


def test_case_5_branch_of_each_iteration():
    f = jit(alternating)
    assert trace(alternating, 1.0, 3)(1.0, 3) == -9.0
    assert slope(f, 1.0, 3) == -9.0
    assert slope(f, 1.0, 4) == 9.0


def test_case_6_nested_loops():
    tape = trace(nested, 2.0, 2, 3)
    assert tape(2.0, 3, 4) == 8192.0
    (outer,) = [op for op in tape.program.block.ops if isinstance(op, Loop)]
    assert [type(op) for op in outer.body.ops if isinstance(op, Loop)] == [Loop]
    f = jit(nested)
    assert f(2.0, 2, 3) == 128.0
    assert slope(f, 2.0, 3, 4) == 4096.0
    assert cache_info(f).traces == 3  # f, jvp, derivative


def test_case_7_other_branch():
    assert trace(absolute, 3.0)(-3.0) == 3.0
    f = jit(absolute)
    assert f(3.0) == 3.0
    assert slope(f, -3.0) == -1.0
    assert cache_info(f).traces == 3  # f, jvp, derivative


@pytest.mark.every(2)
@pytest.mark.parametrize(("x", "n"), [(2.0, 1), (2.0, 3), (0.5, 6), (4.0, 40)])
def test_case_7_break_continue_else(x, n):
    f = jit(leaves_early)
    f(2.0, 2)
    assert f(x, n) == leaves_early(x, n)
    slope(f, x, n)
    assert cache_info(f).traces == 3  # f, jvp, derivative


def test_case_8_common_subexpression_in_a_body():
    tape = trace(shared, 0.5, 3)
    optimise(tape.program)
    sines = [op for op in tape.program.walk() if getattr(op, "function", None) is math.sin]
    assert len(sines) == 1
    assert [tape(0.5, n) for n in (0, 1, 3, 4)] == [shared(0.5, n) for n in (0, 1, 3, 4)]
    f = jit(shared)
    assert f(0.5, 3) == shared(0.5, 3)
    assert f(0.5, 4) == shared(0.5, 4)
    assert cache_info(f).traces == 1
    slope(f, 0.5, 4)


def test_case_8_nothing_is_merged_across_a_store():
    def f(a, n):
        a = a.copy()
        for k in range(n):
            s = np.sin(a[0])
            a[0] = a[0] + 1.0
            a[1] += s * np.sin(a[0]) - k
        return a

    a = np.array([0.3, 0.1])
    g = jit(f)
    for n in (0, 1, 4):
        np.testing.assert_array_equal(g(a, n), f(a, n))
        wanted = fwdad.jacobian(f, a, args=(n,))
        np.testing.assert_allclose(fwdad.jacobian(g, a, args=(n,)), wanted, rtol=1e-14)
    assert cache_info(g).traces == 2  # f, and its derivative


def test_both_sides_of_a_branch_are_on_the_tape():
    tape = trace(absolute, 3.0)
    assert tape.count(Branch) == 1
    assert tape.count(Apply) == 2


def test_unrolled_loop_warns_with_its_line():
    def f(x):
        found = []
        for k in range(3):
            found.append(x * k)
        return found

    with pytest.warns(
        fwdad.frontend.syntax.loops.TraceWarning, match=r"test_loops.py:\d+: .*3 times"
    ):
        tape = trace(f, 2.0)
    assert tape(3.0) == [0.0, 3.0, 6.0]


def test_a_loop_of_one_body_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace(doubled, 2.0, 3)
