"""Common subexpressions: what is merged, and what must not be."""

import math
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.check import checked
from fwdad.ir.ops import Apply, Block, Load, Program, Value
from fwdad.ir.types import FLOAT
from fwdad.transforms.passes import cse
from tests.differences import central_differences
from tests.ir.programs import named
from tests.ir.running import count, run, traced

X = np.array([1.0, 2.0, 3.0])


def merged(f, *args):
    tape = traced(f, *args)
    before = run(tape, args)
    checked(cse, tape.program)
    assert run(tape, args) == before
    assert not cse(tape.program)
    return tape


def test_one_sine_remains():
    def f(x):
        return np.sin(x) * np.cos(x) + np.sin(x)

    assert count(traced(f, 0.7), np.sin) == 2
    assert count(merged(f, 0.7), np.sin) == 1
    assert count(merged(f, X), np.sin) == 1


def test_body_uses_what_is_known_outside():
    def f(x, n):
        s = np.exp(x)
        for _ in range(n):
            if n > 2:
                s = s + np.exp(x)
        return s

    assert count(merged(f, 0.7, 3), np.exp) == 1


def test_outside_does_not_use_what_a_body_computes():
    def f(x, n):
        s = 0.0
        for _ in range(n):
            s = s + np.exp(x)
        return s + np.exp(x)

    assert count(merged(f, 0.7, 3), np.exp) == 2


def test_sides_of_a_branch_do_not_share():
    def f(x):
        if x > 0:
            y = np.exp(x)
        else:
            y = -np.exp(x)
        return y

    assert count(merged(f, 0.7), np.exp) == 2


def test_nothing_is_merged_across_iterations():
    tape = traced(named("sines").f, 0.7, 3)
    checked(cse, tape.program)
    assert count(tape, np.sin) == 1  # of the value of this iteration
    assert run(tape, (0.7, 3)) == run(traced(named("sines").f, 0.7, 3), (0.7, 3))


def test_condition_and_body_share():
    def f(x):
        while np.sin(x) < 0.9:
            x = x + np.sin(x) * 0.1
        return x

    assert count(merged(f, 0.3), np.sin) == 1


def test_nothing_is_merged_across_a_store():
    tape = traced(named("element_sines").f, X, 3)
    sines = count(tape, np.sin)
    loads = tape.program.count(Load)
    checked(cse, tape.program)
    assert (sines, count(tape, np.sin)) == (2, 2)  # one of each content of y[i]
    assert (loads, tape.program.count(Load)) == (4, 2)


def test_store_through_a_view_counts():
    def f(x, c):
        v = x[1:]
        s = x[2] + np.sum(x)
        v[1] = c
        return s + x[2] + np.sum(x)

    tape = merged(f, X, 9.0)
    assert count(tape, np.sum) == 2


def test_store_elsewhere_does_not_count():
    def f(x, y):
        s = np.sum(x)
        y[0] = s
        return s + np.sum(x)

    assert count(merged(f, X, X * 2), np.sum) == 1


def test_store_later_in_the_body_counts_for_the_next_iteration():
    def f(x, n):
        s = np.sum(x)
        for i in range(n):
            s = s + np.sum(x)
            x[i] = 0.0
        return s + np.sum(x)

    assert count(merged(f, X, 3), np.sum) == 3


def test_store_on_one_side_counts_afterwards():
    def f(x, c):
        s = np.sum(x)
        if c > 0:
            x[0] = 0.0
            s = s + np.sum(x)
        else:
            s = s - np.sum(x)
        return s + np.sum(x)

    tape = merged(f, X, 1.0)
    assert count(tape, np.sum) == 3
    assert run(tape, (X, -1.0)) == run(traced(f, X, 1.0), (X, -1.0))


def test_arrays_that_are_written_stay_apart():
    def f(x):
        y, z = np.zeros_like(x), np.zeros_like(x)
        y[0] = 1.0
        return y + z

    assert count(merged(f, X), np.zeros_like) == 2


def test_arrays_that_are_returned_stay_apart():
    tape = merged(named("two_arrays").f, X)
    assert count(tape, np.cos) == 2
    assert count(tape, np.sin) == 2  # the one that is written, and the one that is returned


def test_views_are_merged_even_if_written():
    def f(x):
        x[1:][0] = 5.0
        return np.sum(x[1:])

    tape = merged(f, X)
    assert sum(isinstance(op, Load) and op.view for op in tape.program.walk()) == 1


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        (1, 1, True), (1, 1.0, False), (1, True, False), (1.0, np.float64(1.0), False),
        (0.0, -0.0, False), (math.nan, math.nan, True), (np.float32(1), np.float64(1), False),
        (1j, complex(0.0, 1.0), True), (complex(0.0, 1.0), complex(-0.0, 1.0), False),
    ],
)  # fmt: skip
def test_constants_are_compared_by_type_and_bits(a, b, alike):
    x, y, z = Value(FLOAT), Value(FLOAT), Value(FLOAT)
    ops = [Apply(max, (x, a), outputs=(y,)), Apply(max, (x, b), outputs=(z,))]
    program = Program("f", Block([x], ops, [y, z]), written=[False])
    assert checked(cse, program) is alike
    assert len(program.block.ops) == (1 if alike else 2)


def test_options_are_compared():
    def f(x):
        return np.sum(x, keepdims=True) + np.sum(x, keepdims=False) + np.sum(x, keepdims=True)

    assert count(merged(f, X), np.sum) == 2


def test_equal_lengths_of_inputs_are_asked_once():
    def f(x):
        y = np.sin(x)
        return len(x) + len(y)

    tape = traced(f, X)
    assert tape.program.count() == 4
    checked(cse, tape.program)
    assert tape.program.count() == 3


def test_second_check_of_one_condition_goes():
    def f(x):
        positive = x > 0
        assert positive
        y = x + 1.0
        assert positive
        return y

    tape = merged(f, 1.0)
    assert tape.program.count() == 3
    assert run(tape, (-1.0,))[0] is AssertionError


def functions_of(f, x):
    compiled = fwdad.jit(fwdad.value_and_grad(f), backend="numpy")
    compiled(x)
    program = compiled.specialisations()[0].tape.program
    return Counter(op.function for op in program.walk() if isinstance(op, Apply))


def test_slopes_use_what_math_has_computed():
    """Also where the reverse pass of a branch is another branch."""

    def straight(x):
        t = x[0] * x[1]
        return math.sin(t) * x[0] + math.cos(t) * x[1]

    def under_a_condition(x):
        t = float(x[0] * x[1])
        c, s = (math.cos(t), math.sin(t)) if t > 0.0 else (1.0, 0.0)
        return c * x[1] - s * x[0]

    x = np.array([0.7, 0.4])
    for f in (straight, under_a_condition):
        counts = functions_of(f, x)
        assert counts[math.sin] + counts[np.sin] == 1
        assert counts[math.cos] + counts[np.cos] == 1
        assert_allclose(
            fwdad.jit(fwdad.grad(f), backend="numpy")(x), central_differences(f, x), rtol=1e-8
        )


def test_slopes_in_single_precision_stay_so():
    def f(x):
        return np.float32(math.sin(x[0])) * x[1] + np.cos(x[0])

    x = np.array([0.7, 0.4], np.float32)
    counts = functions_of(f, x)
    assert counts[math.sin] == 1
    assert counts[np.sin] == 1  # of a number in single precision: another value


def test_branches_that_are_not_on_one_condition():
    def f(x):
        t = float(x[0])
        a = math.sin(t) if t > 0.0 else math.cos(t)
        b = math.cos(t) if x[1] > 0.0 else math.sin(t)
        return a * b * x[1]

    for x in np.array([[0.7, 0.4], [-0.7, 0.4], [0.7, -0.4], [-0.7, -0.4]]):
        assert_allclose(
            fwdad.jit(fwdad.grad(f), backend="numpy")(x), central_differences(f, x), rtol=1e-7
        )
