"""The checker refuses every kind of malformed program, and says what is wrong."""

import operator

import numpy as np
import pytest

from fwdad.errors import Location
from fwdad.ir.check import MalformedTapeError, check_program, checked
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Load,
    Loop,
    Missing,
    Program,
    Store,
    Value,
)
from fwdad.ir.types import BOOL, FLOAT, INT, ArrayType, Size

VECTOR = ArrayType(np.dtype(float), (Size(),))


def add(a, b, y):
    return Apply(operator.add, (a, b), outputs=(y,))


def program(params, ops, results):
    return Program("f", Block(params, ops, results), written=[False] * len(params))


def loop(n, initial, params, ops, results, outputs, **options):
    body = Block([Value(INT), *params], ops, results)
    return Loop((0, n, 1), initial, body, outputs=outputs, **options)


def test_well_formed_programs_pass():
    x, n, p, q, y, c, z = (Value(t) for t in (FLOAT, INT, FLOAT, FLOAT, FLOAT, BOOL, FLOAT))
    counted = loop(n, [x], [p], [add(p, x, q)], [q], (y,))
    compared = Apply(operator.gt, (y, 0), outputs=(c,))
    branch = Branch(c, Block([], [], [y]), Block([], [], [Missing(FLOAT)]), outputs=(z,))
    check_program(program([x, n], [counted, compared, branch], [z, counted.exec_count]))


def test_condition_and_body_of_a_while_share_a_scope():
    x, p, c, t, q, y = (Value(t) for t in (FLOAT, FLOAT, BOOL, FLOAT, FLOAT, FLOAT))
    test = Block([], [add(p, 1.0, t), Apply(operator.lt, (t, 9.0), outputs=(c,))], [c])
    body = Block([p], [add(t, p, q)], [q])
    check_program(program([x], [Loop(None, [x], body, test, outputs=(y,))], [y]))


def malformed():
    x, n, y, c, p, q, z, w = (Value(t) for t in (FLOAT, INT, FLOAT, BOOL, FLOAT, FLOAT, FLOAT, INT))
    a = Value(VECTOR)
    empty = Block([], [], [])
    yield "before it is defined", program([], [add(x, 1.0, y)], [y])
    yield "before it is defined", program([x], [add(z, 1.0, y), add(x, 1.0, z)], [y])
    yield "defined twice", program([x], [add(x, 1.0, y), add(x, 2.0, y)], [y])
    yield "defined twice", program([x], [add(x, 1.0, x)], [x])
    side = Block([], [add(x, 1.0, y)], [])
    yield "outside its block", program([x, c], [Branch(c, side, empty)], [y])
    yield "outside its block", program([x, n], [loop(n, [x], [p], [], [p], (z,))], [p])
    yield "results of a side", program([c], [Branch(c, Block([], [], [1.0]), empty)], [])
    sides = Block([], [], [1.0]), Block([], [], [2])
    yield "differ in type", program([c], [Branch(c, *sides, outputs=(y,))], [y])
    yield "no parameters", program([c], [Branch(c, Block([x], [], []), empty)], [])
    yield "initial values", program([n], [loop(n, [], [p], [], [p], (z,))], [z])
    yield "next values", program([n], [loop(n, [1.0], [p], [], [], (z,))], [z])
    yield "differ in type", program([n], [loop(n, [1], [p], [], [p], (z,))], [z])
    yield "differ in type", program([n], [loop(n, [1.0], [p], [], [2], (z,))], [z])
    yield "0 outputs, but 1 carried", program([n], [loop(n, [1.0], [p], [], [p], ())], [])
    yield "with `leaves`", program([n], [loop(n, [1.0], [p], [], [p], (z,), leaves=True)], [z])
    leaving = loop(n, [1.0], [p], [], [p, 1.0], (z,), leaves=True)
    yield "not a bool", program([n], [leaving], [z])
    both = Loop((0, n, 1), [], Block([w]), Block([], [], [True]))
    yield "a range or a condition", program([n], [both], [])
    yield "counter", program([n], [Loop((0, n, 1), [], Block())], [])
    yield "start, a stop", program([n], [Loop((0, n), [], Block([w]))], [])
    tests = Block([p], [], [True])
    yield "no parameters of its own", program([], [Loop(None, [], Block(), tests)], [])
    yield "must have one result, not 0", program([], [Loop(None, [], Block(), Block())], [])
    yield "is not a bool", program([x], [Loop(None, [], Block(), Block([], [], [x]))], [])
    yield "is not a number", program([a], [Check(a, ValueError)], [])
    yield "is written, but is not an array", program([x], [Store(x, (0,), 1.0)], [])
    yield "is indexed", program([x], [Load(x, (0,), False, outputs=(y,))], [y])
    yield "a view must be an array", program([a], [Load(a, (0,), True, outputs=(y,))], [y])
    yield "one output", program([a], [Load(a, (0,), False)], [])
    inner = program([q], [], [])
    yield "has 1 parameters, not 2", program([x], [Call(inner, [x, x])], [])
    broken = program([], [], [q])
    yield "before it is defined", program([], [Call(broken, [])], [])
    yield "entries in `written`", Program("f", Block([x]), written=[True, False])


@pytest.mark.parametrize(("what", "bad"), list(malformed()), ids=lambda x: str(x)[:30])
def test_malformed_programs_are_refused(what, bad):
    with pytest.raises(MalformedTapeError, match=what):
        check_program(bad)


def test_message_names_the_line_and_the_pass():
    x, y = Value(FLOAT), Value(FLOAT)
    op = add(x, 1.0, y)
    op.location = Location("model.py", 12, 1)

    def forgetful(p):
        p.block.params.clear()
        return True

    with pytest.raises(MalformedTapeError, match=r"pass forgetful.*Apply \(model.py:12\)"):
        checked(forgetful, Program("f", Block([x], [op], [y])))
