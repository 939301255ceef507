"""Constant folding."""

import math
import operator

import numpy as np
import pytest

from fwdad.codegen.numpy_backend.source import defined, numpy_source
from fwdad.ir.check import checked
from fwdad.ir.ops import Apply, Block, Branch, Program, Value
from fwdad.ir.types import BOOL, FLOAT, INT, ArrayType, Number, number_type
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.passes import fold
from tests.ir.running import bits


def folded(function, *args, t):
    y = Value(t)
    program = Program("f", Block([], [Apply(function, args, outputs=(y,))], [y]))
    changed = checked(fold, program)
    (result,) = program.block.results
    assert changed is (result is not y)
    assert not fold(program)
    return result if changed else None


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (operator.add, (0.1, 0.2)),
        (operator.mul, (3, 7)),
        (operator.truediv, (1, 3)),
        (operator.floordiv, (-7, 2)),
        (operator.pow, (2, -1)),
        (operator.neg, (0.0,)),
        (operator.not_, (False,)),
        (operator.lt, (math.nan, 1.0)),
        (math.sin, (0.5,)),
        (abs, (-2.5,)),
        (float, (3,)),
        (np.float32, (0.1,)),
        (operator.mul, (np.float32(0.1), 3)),
        (np.sin, (0.5,)),
        (np.exp, (np.float32(0.3),)),
        (operator.truediv, (np.float64(1.0), np.float64(3.0))),
        (round, (2.675, 2)),
    ],
)
def test_result_is_what_runs_bit_for_bit(function, args):
    wanted = function(*args)
    assert bits(folded(function, *args, t=number_type(wanted))) == bits(wanted)


@pytest.mark.parametrize(
    ("function", "args", "t"),
    [
        (operator.truediv, (1.0, 0.0), FLOAT),  # raises
        (math.sqrt, (-1.0,), FLOAT),
        (operator.truediv, (np.float64(1.0), np.float64(0.0)), Number(np.dtype(float), False)),
        (np.log, (-1.0,), Number(np.dtype(float), False)),  # warns
        (operator.lshift, (1, 80), INT),  # too large for the integers of compiled code
        (operator.add, (1, 2), FLOAT),  # not of the type that is declared
    ],
)
def test_what_raises_or_warns_is_left_alone(function, args, t):
    assert folded(function, *args, t=t) is None


def test_functions_that_are_not_known_are_not_called():
    calls = []

    def impure(x):
        calls.append(x)
        return x

    assert folded(impure, 1.0, t=FLOAT) is None
    assert calls == []


def test_chains_fold_inside_blocks():
    x, a, b, c, y = Value(BOOL), Value(INT), Value(INT), Value(INT), Value(INT)
    side = Block([], [Apply(operator.mul, (b, 2), outputs=(c,))], [c])
    ops = [
        Apply(operator.add, (1, 2), outputs=(a,)),
        Apply(operator.mul, (a, a), outputs=(b,)),
        Branch(x, side, Block([], [], [b]), outputs=(y,)),
    ]
    program = Program("f", Block([x], ops, [y]))
    assert checked(fold, program)
    assert program.count() == 1
    assert (side.results, program.block.ops[0].other.results) == ([18], [9])


@pytest.mark.parametrize(
    ("function", "constant", "left", "t", "gone"),
    [
        (operator.add, 0, False, INT, True),
        (operator.add, 0, True, INT, True),
        (operator.sub, 0, False, INT, True),
        (operator.sub, 0, True, INT, False),
        (operator.mul, 1, True, INT, True),
        (operator.floordiv, 1, False, INT, True),
        (operator.floordiv, 1, True, INT, False),
        (operator.add, False, False, INT, False),
        (operator.add, 0, False, FLOAT, False),  # -0.0 + 0 is 0.0
        (operator.add, 0.0, False, FLOAT, False),
        (operator.or_, False, True, BOOL, True),
        (operator.or_, True, True, BOOL, True),
        (operator.and_, True, False, BOOL, True),
        (operator.and_, False, False, BOOL, True),
    ],
)
def test_identities_of_integers_and_booleans(function, constant, left, t, gone):
    x, y = Value(t), Value(t)
    args = (constant, x) if left else (x, constant)
    program = Program("f", Block([x], [Apply(function, args, outputs=(y,))], [y]))
    assert checked(fold, program) is gone
    if gone:
        (result,) = program.block.results
        for value in (-5, 0, 3) if t == INT else (False, True):
            given = (constant, value) if left else (value, constant)
            assert bits(function(*given)) == bits(value if result is x else result)


@pytest.mark.parametrize(
    ("d", "lanes", "is_product"),
    [
        (None, np.float64(2.0), True),
        (None, np.float64(np.nan), True),
        (None, np.float64(0.0), False),
        (np.float64(2.0), None, True),
        (2.0j, None, True),
        (np.float64(np.inf), None, False),
        (complex(0.0, np.nan), None, False),
        (None, None, False),
    ],
)
def test_products_that_need_no_select(d, lanes, is_product):
    t = ArrayType(np.dtype(complex if isinstance(d, complex) else float), (3,))
    x, z, y = Value(t), Value(t), Value(t)
    args = (x if d is None else d, z if lanes is None else lanes)
    program = Program("f", Block([x, z], [Apply(scale_lanes, args, outputs=(y,))], [y]))
    given = np.array([np.inf, 0.0, -2.0]), np.array([0.0, 3.0, -0.0])
    with np.errstate(all="ignore"):
        before = defined(numpy_source(program))(*given)[0]
        assert checked(fold, program) is is_product
        after = defined(numpy_source(program))(*given)[0]
    assert (program.block.ops[0].function is operator.mul) is is_product
    assert before.tobytes() == after.tobytes()
    assert not fold(program)


def test_functions_of_libraries_are_folded_but_draws_are_not():
    special = pytest.importorskip("scipy.special")
    t = number_type(special.multigammaln(4.0, 3))
    assert folded(special.multigammaln, 4.0, 3, t=t) == special.multigammaln(4.0, 3)
    for draw in (np.random.normal, np.random.RandomState(0).normal):
        assert folded(draw, 0.0, 1.0, t=FLOAT) is None
