"""Loop-invariant code."""

import operator

import numpy as np

from fwdad.ir.check import checked
from fwdad.ir.ops import Apply, Branch, Load, Loop, walk
from fwdad.transforms.passes import hoist, optimise
from tests.ir.programs import named
from tests.ir.running import run, traced

X = np.array([1.0, -2.0, 3.0])


def hoisted(f, *runs):
    tape = traced(f, *runs[0])
    before = [run(tape, args) for args in runs]
    checked(hoist, tape.program)
    assert [run(tape, args) for args in runs] == before
    return tape


def inside(tape, function):
    """How many calls of a function stand inside loops."""
    loops = [op for op in tape.program.walk() if isinstance(op, Loop)]
    inner = {op for loop in loops for b in loop.blocks() for op in walk(b)}
    return sum(getattr(op, "function", None) is function for op in inner)


def test_quiet_operations_move_before_the_loop():
    def f(x, n):
        s = 0.0
        for i in range(n):
            s = s + (x * 2.0 - 1.0) * i
        return s

    tape = hoisted(f, (3.0, 4), (3.0, 0))
    loop = tape.program.block.ops[-1]
    assert isinstance(loop, Loop)
    assert len(tape.program.block.ops) == 3
    assert loop.body.ops[-1].args[0] is loop.carried[0]


def test_calls_move_under_a_branch_if_the_loop_may_not_run():
    tape = hoisted(named("invariant").f, (X, 2.0, 3), (X, 2.0, 0))
    assert inside(tape, np.exp) == inside(tape, np.sin) == 0
    (guard,) = (op for op in tape.program.block.ops if isinstance(op, Branch))
    assert {op.function for op in guard.then.ops if isinstance(op, Apply)} >= {np.exp, np.sin}


def test_numbers_that_may_warn_move_where_nobody_is_warned():
    def f(x, y, n):
        s = 0.0
        for i in range(n):
            s = s + i * (1.0 / y) + i * np.sum(x)
        return s

    runs = [(X, np.float64(4.0), 3), (X, np.float64(0.0), 0)]
    loud, silent = traced(f, *runs[0]), traced(f, *runs[0])
    silent.program.quiet = True
    for tape in (loud, silent):
        checked(hoist, tape.program)
    counts = [inside(tape, operator.truediv) for tape in (loud, silent)]
    assert counts == [1, 0]  # under a branch, a division would cost more than it saves
    assert [inside(tape, np.sum) for tape in (loud, silent)] == [0, 0]
    assert not any(
        isinstance(op, Apply) and op.function is np.sum for op in silent.program.block.ops
    )
    with np.errstate(all="ignore"):
        assert [run(silent, args) for args in runs] == [run(loud, args) for args in runs]


def test_loops_that_do_not_run_do_not_warn():
    def f(x, n):
        s = 0.0
        for _ in range(n):
            s = s + np.log(x)
        return s

    tape = hoisted(f, (2.0, 3))
    assert inside(tape, np.log) == 0
    run(tape, (-1.0, 0))  # warnings are errors here


def test_no_branch_is_needed_if_the_loop_surely_runs():
    def f(x):
        s = 0.0
        for _ in range(3):
            s = s + np.exp(x)
        return s

    tape = hoisted(f, (2.0,))
    assert inside(tape, np.exp) == 0
    assert tape.program.count(Branch) == 0


def test_division_of_python_numbers_stays():
    tape = hoisted(named("python_division").f, (1.0, 2.0, 3), (1.0, 0.0, 0), (1.0, 0.0, 2))
    assert len(tape.program.block.ops) == 1


def test_exceptions_keep_their_order():
    def f(x, y, k):
        s = 0.0
        for i in range(2):
            s = s + x[i] + y[k]
        return s

    tape = hoisted(f, (X, X, 0), (X[:0], X, 7))
    body = tape.program.block.ops[-1].body
    assert sum(isinstance(op, Load) for op in body.ops) == 2
    assert "index 0 " in run(tape, (X[:0], X, 7))[1]


def test_first_that_may_raise_moves_out_of_a_loop_that_surely_runs():
    def f(x, k):
        s = 0.0
        for i in range(2):
            s = s + x[k] * i
        return s

    tape = hoisted(f, (X, 1), (X, 7))
    assert isinstance(tape.program.block.ops[0], Load)


def test_reads_of_memory_that_the_loop_writes_stay():
    tape = hoisted(named("not_invariant").f, (X, 3), (X, 0))
    assert inside(tape, np.exp) == 2


def test_arrays_that_are_written_are_made_anew():
    def f(x, n):
        s = 0.0
        for i in range(n):
            y = np.zeros_like(x)
            y[i] += 1.0
            s = s + np.sum(y)
        return s

    tape = hoisted(f, (X, 3), (X, 0))
    assert inside(tape, np.zeros_like) == 1


def test_arrays_that_are_returned_are_made_anew():
    def f(x, n):
        a, b = x, x
        for _ in range(n):
            a, b = np.exp(x), a
        return a, b

    tape = traced(f, X, 2)
    optimise(tape.program, checked)
    assert inside(tape, np.exp) == 1


def test_invariants_leave_nested_loops_altogether():
    tape = traced(named("invariant_nested").f, X, 2, 3)
    optimise(tape.program, checked)
    assert inside(tape, np.exp) == 0


def test_condition_of_a_while_does_not_let_the_body_move():
    def f(x, y):
        while x > 1.0:
            x = x - np.exp(y)
        return x

    tape = hoisted(f, (3.0, 0.0), (0.0, 1e5))
    assert inside(tape, np.exp) == 1


def test_side_of_a_branch_stays():
    def f(x, n):
        s = 0.0
        for i in range(n):
            if i > 1:
                s = s + np.log(x)
        return s

    tape = hoisted(f, (2.0, 3), (-1.0, 1))
    assert inside(tape, np.log) == 1


def test_what_is_there_only_if_the_loop_runs_is_not_used_before_it():
    def f(x, y, n):
        for _ in range(n):
            if x < np.sin(y):
                return x
        return y

    tape = traced(f, 0.5, 2.0, 3)
    runs = [(0.5, 2.0, 3), (0.5, 2.0, 0), (0.95, 2.0, 3)]
    before = [run(tape, args) for args in runs]
    for _ in range(3):
        checked(hoist, tape.program)
    assert [run(tape, args) for args in runs] == before
    assert inside(tape, np.sin) == 0
