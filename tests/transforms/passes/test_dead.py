"""Dead code: what goes, and what has to stay."""

import logging
import math

import numpy as np
import pytest

import fwdad
from fwdad.ir.check import checked
from fwdad.ir.ops import Apply, Block, Branch, Call, Load, Loop, Program, Store, Update, Value
from fwdad.ir.types import FLOAT, INT
from fwdad.transforms.passes import dead
from tests.ir.programs import named
from tests.ir.running import count, run, traced


def cleaned(f, *args):
    tape = traced(f, *args)
    before = run(tape, args)
    checked(dead, tape.program)
    assert run(tape, args) == before
    assert not dead(tape.program)
    return tape


X = np.array([1.0, 2.0, 3.0])


def test_unused_expressions_go():
    def f(x):
        y = np.exp(x) + np.sin(x) * x[0]
        z = y @ y
        return 2.0 * x

    assert traced(f, X).program.count() == 7
    assert cleaned(f, X).program.count() == 1


@pytest.mark.parametrize(
    "function",
    [lambda x: np.linalg.inv(np.eye(2) * x), math.sqrt, lambda x: 1.0 / x, int, lambda x: x**2.5],
)
def test_what_raises_because_of_a_value_stays(function):
    def f(x):
        function(x)
        return x

    assert cleaned(f, 2.0).program.count() >= 1


def test_check_stays():
    def f(x):
        assert x > 0, "negative"
        return 1.0

    tape = cleaned(f, 1.0)
    assert run(tape, (-1.0,)) == (AssertionError, "negative")


def test_ring_of_carried_values_goes():
    tape = traced(named("unused_work").f, X, 3)
    (loop,) = (op for op in tape.program.block.ops if isinstance(op, Loop))
    assert {v.name for v in loop.outputs} >= {"t", "u", "s"}
    checked(dead, tape.program)
    assert [v.name for v in loop.outputs] == ["s"]
    assert [len(x) for x in (loop.initial, loop.carried, loop.body.results)] == [1, 1, 1]
    assert tape.program.count((Store, Update)) == 0
    assert count(tape, np.zeros) == count(tape, np.exp) == count(tape, np.add.at) == 0


def test_values_that_feed_a_used_one_stay():
    def f(x, n):
        a, b, c = x, 1.0, 2.0
        for _ in range(n):
            a, b, c = b, c, a
        return a

    tape = cleaned(f, 3.0, 4)
    (loop,) = tape.program.block.ops
    assert len(loop.outputs) == 3


def test_value_that_decides_to_leave_stays():
    def f(x):
        count, steps = 0, 0.0
        while x > 1.0:
            count = count + 1
            steps = steps + 1.0
            x = x - 0.25
            if count > 5:
                break
        return x

    tape = cleaned(f, 3.0)
    (loop,) = tape.program.block.ops
    assert {v.name for v in loop.outputs} == {"x", "count"}


def test_loop_that_nobody_needs_goes():
    def f(x, n):
        s = 0.0
        for i in range(n):
            for j in range(i):
                s = s + x[j]
        return x

    assert cleaned(f, X, 3).program.count() == 0


def test_loop_with_a_check_inside_stays():
    def f(x, n):
        for i in range(n):
            if x[i] > 2.5:
                raise ValueError(i)
        return n

    tape = cleaned(f, X, 2)
    assert run(tape, (X, 3)) == (ValueError, "2")


def test_step_of_zero_still_raises():
    def f(x, n, step):
        for _ in range(0, n, step):
            pass
        return x

    tape = cleaned(f, 1.0, 3, 1)
    assert run(tape, (1.0, 3, 0))[0] is ValueError


def test_branch_with_two_empty_sides_goes():
    def f(x):
        y = 0.0
        if x > 0:
            y = np.sin(x)
        else:
            y = np.cos(x)
        return x

    assert cleaned(f, 1.0).program.count() == 0


def test_one_dead_output_of_a_branch_goes():
    def f(x):
        if x > 0:
            y, z = np.sin(x), np.exp(x)
        else:
            y, z = np.cos(x), 0.0
        return y

    tape = cleaned(f, 1.0)
    (branch,) = (op for op in tape.program.block.ops if isinstance(op, Branch))
    assert len(branch.outputs) == len(branch.then.results) == len(branch.other.results) == 1
    assert count(tape, np.exp) == 0
    assert run(tape, (-1.0,))[0] == run(traced(f, 1.0), (-1.0,))[0]


def test_stores_into_a_parameter_stay():
    def f(x):
        x[0] = 5.0
        x[1:] += 1.0
        return 0.0

    assert cleaned(f, X).program.count((Store, Update)) == 2


def test_stores_that_are_read_through_a_view_stay():
    def f(x):
        y = np.zeros(3)
        v = y[1:]
        y[1] = x[0]
        return v[0]

    assert cleaned(f, X).program.count(Store) == 1


def test_stores_into_an_array_that_only_feeds_dead_memory_go():
    def f(x):
        y, z = np.zeros(3), np.zeros(3)
        y[0] = x[0]
        z[1] = y[0]
        z += y
        return x[1]

    tape = cleaned(f, X)
    assert tape.program.count() == tape.program.count(Load) == 1


def test_swapped_arrays_stay():
    tape = traced(named("swapped_arrays").f, X, X, 2)
    checked(dead, tape.program)
    assert tape.program.count(Store) == 1
    assert count(tape, np.zeros_like) == 1


def test_call_of_a_program_stays():
    x, y, unused = Value(FLOAT), Value(FLOAT), Value(FLOAT)
    inner = Program("inner", Block([y], [], [y]), written=[False])
    block = Block([x], [Call(inner, [x], outputs=(unused,))], [x])
    program = Program("f", block, written=[False])
    assert not checked(dead, program)
    assert program.count(Call) == 1


def test_exec_count_keeps_a_loop():
    n, i, t = Value(INT), Value(INT), Value(INT)
    body = Block([i], [Apply(int, (i,), outputs=(t,))], [])
    loop = Loop((0, n, 1), [], body)
    program = Program("f", Block([n], [loop], [loop.exec_count]), written=[False])
    assert checked(dead, program)
    assert program.block.ops == [loop]
    assert body.ops == []


def test_last_stores_that_nobody_reads_go():
    def f(x):
        u = x * 1.0
        u[1:] = x[0]
        y = u * 2.0
        u[0] = y[1]
        u[1:] += 1.0
        u[...] = y
        return y

    assert cleaned(f, X).program.count((Store, Update)) == 1


@pytest.mark.parametrize("where", ["result", "argument", "view"])
def test_last_stores_that_somebody_reads_stay(where):
    def f(x):
        u = x if where == "argument" else x * 1.0
        y = u * 2.0
        view = u[1:]
        u[1] = 5.0
        return {"result": u, "view": view}.get(where, y)

    tape = traced(f, X.copy())
    dead(tape.program)
    assert tape.program.count(Store) == 1


def test_last_stores_into_what_was_logged_stay(caplog):
    """A record keeps its arguments, and formats them later."""

    def f(x):
        u = x * 1.0
        y = np.sum(u)
        logging.getLogger("fwdad.tests").warning("%s", u)
        u[1] = 5.0
        return y

    assert fwdad.jit(f, backend="numpy")(X) == np.sum(X)
    assert caplog.records[-1].args[0][1] == 5.0
