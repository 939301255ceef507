"""Branches, checks, flags and carried values."""

import operator

import numpy as np
import pytest

from fwdad.ir.check import check_program, checked
from fwdad.ir.ops import Apply, Block, Branch, Check, Loop, Missing, Program, Store, Value
from fwdad.ir.types import BOOL, FLOAT, INT, ArrayType
from fwdad.transforms.passes import cse, dead, fold, simplify
from tests.ir.programs import named
from tests.ir.running import count, run, traced

X = np.array([1.0, -2.0, 3.0])


def simplified(f, *runs):
    tape = traced(f, *runs[0])
    before = [run(tape, args) for args in runs]
    for _ in range(4):
        for each in (fold, simplify, cse, dead):
            checked(each, tape.program)
    assert [run(tape, args) for args in runs] == before
    assert not simplify(tape.program)
    return tape


def test_early_return_becomes_one_branch():
    tape = simplified(named("absolute").f, (3.0,), (-3.0,))
    assert tape.program.count(Branch) == 1
    assert tape.program.count() == 3  # the comparison, the branch, the negation


def test_chain_of_returns_becomes_nested_branches():
    def f(x):
        if x > 1:
            return x * 2.0
        if x > 0:
            return x * 3.0
        return x * 4.0

    tape = simplified(f, (2.0,), (0.5,), (-1.0,))
    assert tape.program.count(Branch) == 2
    assert sum(isinstance(op, Branch) for op in tape.program.block.ops) == 1


def test_branches_on_one_condition_and_its_negation_are_merged():
    tape = simplified(named("same_condition").f, (1.0,), (-1.0,))
    assert tape.program.count(Branch) == 1


def test_branches_with_a_store_between_that_minds_are_not_merged():
    tape = simplified(named("stores_between").f, (X, 1.0), (X, -1.0))
    assert tape.program.count(Branch) == 2
    assert tape.program.count(Store) == 3


def test_branches_with_a_store_elsewhere_between_are_merged():
    def f(x, y, c):
        if c > 0:
            s = np.sum(x)
        else:
            s = 0.0
        y[0] = 1.0
        if c > 0:
            s = s * 2.0
        return s

    assert simplified(f, (X, X, 1.0), (X, X, -1.0)).program.count(Branch) == 1


def test_exceptions_keep_their_order():
    def f(x, c):
        if c > 0:
            assert x[0] > 0, "first"
        assert x[1] > 0, "second"
        if c > 0:
            assert x[2] > 0, "third"
        return c

    none = np.array([-1.0, -1.0, -1.0])
    tape = simplified(f, (X, -1.0), (none, 1.0), (none, -1.0))
    assert run(tape, (none, 1.0)) == (AssertionError, "first")
    assert run(tape, (none, -1.0)) == (AssertionError, "second")
    assert tape.program.count(Branch) == 2


def test_condition_is_known_inside_its_sides():
    def f(x):
        positive = x > 0
        y = 0.0
        if positive:
            y = 1.0 if positive else np.sin(x)
        elif not positive:
            y = 2.0 if positive else 3.0
        return y

    tape = simplified(f, (1.0,), (-1.0,))
    assert tape.program.count(Branch) == 1
    assert count(tape, np.sin) == 0


def test_condition_is_known_after_a_check_and_not_before():
    def f(x):
        positive = x > 0
        y = 1.0 if positive else 2.0
        assert positive
        return y + (3.0 if positive else np.sin(x))

    tape = simplified(f, (1.0,), (-1.0,))
    assert tape.program.count(Branch) == 1
    assert tape.program.count(Check) == 1


def test_condition_of_a_while_is_known_in_its_body():
    def f(x):
        while x > 1.0:
            x = x - (0.5 if x > 1.0 else 0.25)
        return x

    tape = traced(f, 3.0)
    (loop,) = tape.program.block.ops
    again = next(op for op in loop.body.ops if isinstance(op, Branch))
    again.condition = loop.test.results[0]  # what `cse` does
    checked(simplify, tape.program)
    assert tape.program.count(Branch) == 0


def test_branch_on_a_constant_is_taken_in_line():
    x, y, z = Value(FLOAT), Value(FLOAT), Value(FLOAT)
    side = Block([], [Apply(operator.neg, (x,), outputs=(z,))], [z])
    for condition, wanted in ((True, z), (False, x)):
        op = Branch(condition, Block([], list(side.ops), [z]), Block([], [], [x]), outputs=(y,))
        program = Program("f", Block([x], [op], [y]))
        assert checked(simplify, program)
        assert program.count(Branch) == 0
        assert program.block.results == [wanted]


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [(1.5, 1.5, 1.5), (Missing(FLOAT), 2.5, 2.5), (3.5, Missing(FLOAT), 3.5)],
)
def test_output_that_needs_no_branch(a, b, wanted):
    c, y = Value(BOOL), Value(FLOAT)
    op = Branch(c, Block([], [], [a]), Block([], [], [b]), outputs=(y,))
    program = Program("f", Block([c], [op], [y]))
    assert checked(simplify, program)
    assert program.block.ops == []
    assert program.block.results == [wanted]


def test_zeros_of_both_signs_need_a_branch():
    c, y = Value(BOOL), Value(FLOAT)
    op = Branch(c, Block([], [], [0.0]), Block([], [], [-0.0]), outputs=(y,))
    program = Program("f", Block([c], [op], [y]))
    assert not checked(simplify, program)


def test_true_and_false_are_the_condition():
    c, y, z = Value(BOOL), Value(BOOL), Value(BOOL)
    op = Branch(c, Block([], [], [True, False]), Block([], [], [False, True]), outputs=(y, z))
    program = Program("f", Block([c], [op], [y, z]))
    assert checked(simplify, program)
    checked(fold, program)
    assert program.count(Branch) == 0
    assert program.block.results[0] is c
    (negation,) = program.block.ops
    assert negation.function is operator.not_


def test_double_negation():
    def f(flag):
        return bool(flag)

    assert simplified(f, (True,), (False,)).program.count() == 0


def test_what_follows_a_check_that_fails_is_left_out():
    c, x, y, z = Value(BOOL), Value(FLOAT), Value(FLOAT), Value(FLOAT)
    fails = Block([], [Check(c, ValueError), Apply(np.sin, (x,), outputs=(y,))], [y])
    op = Branch(c, Block([], [], [x]), fails, outputs=(z,))
    program = Program("f", Block([c, x], [op], [z]))
    assert checked(simplify, program)
    assert [type(o) for o in fails.ops] == [Check]
    assert program.block.results == [x]


# -- loops


def loop_of(tape):
    (loop,) = (op for op in tape.program.walk() if isinstance(op, Loop))
    return loop


def test_flag_of_a_loop_that_ran_is_asked_of_its_bounds():
    tape = simplified(named("last_item").f, (X, 3), (X, 0))
    assert len(loop_of(tape).outputs) == 2  # s and last
    assert count(tape, operator.lt) == 1
    assert run(tape, (X, 0))[0] is UnboundLocalError


def test_flag_of_a_while_that_ran_is_asked_of_its_count():
    def f(x):
        while x > 1.0:
            y = x
            x = x * 0.5
        return y

    tape = simplified(f, (3.0,), (0.5,))
    (asked,) = (op for op in tape.program.block.ops if isinstance(op, Apply))
    assert asked.args == (loop_of(tape).exec_count, 0)
    assert run(tape, (0.5,))[0] is UnboundLocalError


def test_negative_steps_run_downwards():
    def f(x, n):
        for i in range(n, 0, -1):
            x = x * i
            last = x
        return last

    tape = simplified(f, (2.0, 3), (2.0, 0), (2.0, -2))
    assert count(tape, operator.gt) == 1
    assert run(tape, (2.0, 0))[0] is UnboundLocalError


def test_loop_that_surely_runs_needs_no_flag():
    def f(x):
        for i in range(3):
            last = x * i
        return last

    tape = simplified(f, (2.0,))
    assert tape.program.count(Check) == 0
    assert len(loop_of(tape).outputs) == 1


def test_while_true_needs_no_flags():
    tape = simplified(named("newton").f, (2.0,), (9.0,))
    assert tape.program.count(Check) == 0
    assert [v.type for v in loop_of(tape).outputs] == [FLOAT, FLOAT]
    assert sum(isinstance(op, Branch) for op in tape.program.block.ops) == 0


def test_flag_that_is_used_inside_is_kept():
    def f(x):
        first = True
        s = 0.0
        for v in x:
            s = s + (v * 10.0 if first else v)
            first = False
        return s

    tape = simplified(f, (X,), (X[:0],))
    assert {v.type for v in loop_of(tape).outputs} >= {BOOL}


def test_value_that_no_iteration_changes_is_not_carried():
    x, n, i, p, y = Value(FLOAT), Value(INT), Value(INT), Value(FLOAT), Value(FLOAT)
    q, r, z = Value(FLOAT), Value(FLOAT), Value(FLOAT)
    body = Block([i, p, q], [Apply(operator.mul, (p, q), outputs=(r,))], [p, r])
    loop = Loop((0, n, 1), [x, 1.0], body, outputs=(y, z))
    program = Program("f", Block([x, n], [loop], [y, z]))
    assert checked(simplify, program)
    checked(dead, program)
    assert loop.initial == [1.0]
    assert body.ops[0].args == (x, q)
    assert program.block.results[0] is x


def test_value_that_is_carried_twice_is_carried_once():
    def f(x, n):
        for i in range(n):
            a = x * i
            b = a
        return a + b

    tape = simplified(f, (2.0, 3), (2.0, 0))
    assert len(loop_of(tape).outputs) == 1


def test_loop_over_nothing_goes():
    n, i, p, q, y = Value(INT), Value(INT), Value(FLOAT), Value(FLOAT), Value(FLOAT)
    body = Block([i, p], [Apply(np.sin, (p,), outputs=(q,))], [q])
    loop = Loop((3, 3, 1), [1.5], body, outputs=(y,))
    program = Program("f", Block([n], [loop], [y, loop.exec_count]))
    assert checked(simplify, program)
    assert program.block.ops == []
    assert program.block.results == [1.5, 0]


def test_missing_arrays_in_code_that_no_run_reaches_are_well_formed():
    t = ArrayType(np.dtype(float), (3,))
    program = Program("f", Block([], [Check(False, ValueError), Store(Missing(t), (0,), 1.0)], []))
    check_program(program)
    assert checked(simplify, program)
    assert program.count() == 1
