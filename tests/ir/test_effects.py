"""What operations may raise, read and write, each compared with what Python and NumPy do."""

import math
import operator

import numpy as np
import pytest

from fwdad.ir.analysis.alias import aliased_arguments, makes_its_own, memory_of
from fwdad.ir.analysis.effects import footprint, reads, risk, writes
from fwdad.ir.ops import Apply, Block, Load, Loop, Program, Store, Value
from fwdad.ir.types import COMPLEX, FLOAT, INT, ArrayType, Number, Size
from fwdad.ops import Risk

F8 = np.dtype(float)
NPF = Number(F8, python=False)
NPI = Number(np.dtype(np.int64), python=False)
NARROW = Number(np.dtype(np.int8), python=False)
VECTOR = ArrayType(F8, (Size(),))
OTHER = ArrayType(F8, (Size(),))


def apply(f, *types, **kwargs):
    args = tuple(Value(t) if isinstance(t, (Number, ArrayType)) else t for t in types)
    return Apply(f, args, kwargs, outputs=(Value(FLOAT),))


# An operation, its types or constants, and values at which Python raises if it may.
RAISING = [
    (operator.truediv, (FLOAT, FLOAT), (1.0, 0.0)),
    (operator.truediv, (FLOAT, 0.0), (1.0, 0.0)),
    (operator.floordiv, (INT, INT), (1, 0)),
    (operator.mod, (FLOAT, INT), (1.0, 0)),
    (operator.pow, (FLOAT, 2.5), (1e300, 2.5)),
    (operator.pow, (FLOAT, 2), (1e300, 2)),
    (operator.pow, (INT, INT), (0, -1)),
    (operator.pow, (NPI, NPI), (np.int64(2), np.int64(-1))),
    (np.power, (NPI, NPI), (np.int64(2), np.int64(-1))),
    (operator.lshift, (INT, INT), (1, -1)),
    (operator.add, (NARROW, INT), (np.int8(1), 1000)),
    (abs, (COMPLEX,), (complex(1.5e308, 1.5e308),)),
    (int, (FLOAT,), (math.nan,)),
    (math.sqrt, (FLOAT,), (-1.0,)),
    (math.exp, (FLOAT,), (1e4,)),
    (math.sin, (FLOAT,), (math.inf,)),
    (np.linalg.inv, (ArrayType(F8, (2, 2)),), (np.zeros((2, 2)),)),
    (np.linalg.cholesky, (ArrayType(F8, (2, 2)),), (-np.eye(2),)),
]


@pytest.mark.parametrize(("f", "types", "at"), RAISING)
def test_what_raises_because_of_a_value_is_known_to(f, types, at):
    with pytest.raises((ArithmeticError, ValueError, np.linalg.LinAlgError)):
        f(*at)
    assert risk(apply(f, *types)) is Risk.RAISES


NASTY_FLOATS = [0.0, -0.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]
NASTY_INTS = [0, -1, 1, 2**62, -(2**62)]
QUIET = [
    (operator.add, (FLOAT, FLOAT)),
    (operator.mul, (FLOAT, INT)),
    (operator.sub, (INT, INT)),
    (operator.truediv, (FLOAT, 2.0)),
    (operator.mod, (INT, 7)),
    (operator.pow, (INT, 3)),
    (operator.lt, (FLOAT, FLOAT)),
    (operator.lt, (NPF, FLOAT)),
    (operator.neg, (NPF,)),
    (abs, (NPF,)),
    (operator.not_, (NPF,)),
    (bool, (NPF,)),
    (float, (INT,)),
    (int, (INT,)),
    (math.atan2, (FLOAT, FLOAT)),
    (math.tanh, (FLOAT,)),
    (np.isfinite, (NPF,)),
    (np.less, (NPF, NPF)),
    (np.zeros_like, (VECTOR,)),
]


@pytest.mark.parametrize(("f", "types"), QUIET)
@pytest.mark.filterwarnings("error")
def test_what_is_quiet_neither_raises_nor_warns(f, types):
    def nasty(t):
        if t == VECTOR:
            return [np.array(NASTY_FLOATS)]
        if not isinstance(t, Number):
            return [t]
        held = NASTY_INTS if t.dtype.kind == "i" else NASTY_FLOATS
        return held if t.python else [t.dtype.type(x) for x in held]

    assert risk(apply(f, *types)) is Risk.QUIET
    first, *rest = (nasty(t) for t in types)
    for x in first:
        for y in rest[0] if rest else [None]:
            f(x, y) if rest else f(x)


def test_numpy_numbers_warn_where_python_raises():
    assert risk(apply(operator.truediv, NPF, NPF)) is Risk.WARNS
    assert risk(apply(np.log, NPF)) is Risk.WARNS
    assert risk(apply(operator.add, VECTOR, VECTOR)) is Risk.WARNS
    assert risk(apply(operator.add, VECTOR, OTHER)) is Risk.SHAPES
    assert risk(apply(operator.matmul, VECTOR, VECTOR)) is Risk.SHAPES


def test_index_decides_about_a_load():
    a = Value(VECTOR)
    assert risk(Load(a, (slice(1, None),), view=True)) is Risk.QUIET
    assert risk(Load(a, (0,), view=False)) is Risk.SHAPES
    assert risk(Load(a, (slice(None, None, Value(INT)),), view=True)) is Risk.SHAPES


def test_step_that_may_be_zero_makes_a_loop_raise():
    body = Block([Value(INT)], [], [])
    assert risk(Loop((0, 3, 1), [], body)) is Risk.QUIET
    assert risk(Loop((0, 3, Value(INT)), [], body)) is Risk.RAISES


SQUARE = np.arange(9.0).reshape(3, 3) + 1j
ANSWERS = [
    (np.sin, SQUARE), (np.copy, SQUARE), (np.sort, SQUARE), (np.cumsum, SQUARE), (np.triu, SQUARE),
    (np.linalg.inv, SQUARE + np.eye(3)), (np.ndarray.copy, SQUARE), (np.ndarray.flatten, SQUARE),
    (np.roll, SQUARE, 1), (np.tile, SQUARE, 1), (np.concatenate, [SQUARE]), (operator.pos, SQUARE),
    (np.repeat, SQUARE, 1), (np.clip, SQUARE, None, 9.0), (np.where, SQUARE, SQUARE, SQUARE),
    (np.pad, SQUARE, 0), (np.around, SQUARE), (np.nansum, SQUARE), (np.delete, SQUARE, []),
    (np.take, SQUARE, [0, 1, 2], 0), (np.conj, SQUARE), (np.conj, SQUARE.real), (abs, SQUARE.real),
    (np.einsum, "ij->ji", SQUARE), (np.reshape, SQUARE, 9), (np.ravel, SQUARE), (np.real, SQUARE),
    (np.transpose, SQUARE), (np.diagonal, SQUARE), (np.squeeze, SQUARE), (np.flip, SQUARE),
    (np.broadcast_to, SQUARE, (2, 3, 3)), (np.asarray, SQUARE), (np.atleast_3d, SQUARE),
    (np.trim_zeros, SQUARE[0]), (np.split, SQUARE, 3), (np.real_if_close, SQUARE),
    (np.ndarray.astype, SQUARE, complex, "K", "unsafe", True, False), (np.diag, SQUARE),
    (np.linalg.diagonal, SQUARE), (np.require, SQUARE), (np.rot90, SQUARE),
    (np.average, SQUARE), (np.select, [SQUARE.real > 0], [SQUARE]), (np.insert, SQUARE, [], 0),
    (np.fft.fft, SQUARE), (np.fft.fftshift, SQUARE), (np.fft.irfft, SQUARE),
    (np.unwrap, SQUARE.real), (np.interp, SQUARE.real[0], SQUARE.real[0], SQUARE.real[0]),
]  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS, ids=lambda c: c[0].__name__)
def test_what_shares_memory_is_known_to(case):
    f, *args = case
    found = f(*args)
    results = found if isinstance(found, (list, tuple)) else [found]
    arrays = [a for arg in args for a in (arg if isinstance(arg, list) else [arg])]
    shares = any(
        np.shares_memory(r, a) for r in results for a in arrays if isinstance(a, np.ndarray)
    )
    if shares:
        assert not makes_its_own(f)


def test_view_of_a_view_is_found():
    x, v, w, c = (Value(VECTOR) for _ in range(4))
    program = Program(
        "f",
        Block(
            [x],
            [
                Load(x, (slice(1, None),), view=True, outputs=(v,)),
                Apply(np.ravel, (v,), outputs=(w,)),
                Apply(np.copy, (w,), outputs=(c,)),
            ],
            [w, c],
        ),
    )
    roots = memory_of(program)
    assert roots[v] == {x}
    assert roots[w] == {x, w}
    assert roots[c] == {c}
    assert aliased_arguments(program.block.ops[2]) == []


def test_operations_on_one_memory_keep_their_order():
    x, y, e = Value(VECTOR), Value(VECTOR), Value(NPF)
    roots = {x: {x}, y: {y}}
    load = Apply(np.sum, (x,), outputs=(e,))
    store = Store(x, (0,), 1.0)
    elsewhere = Store(y, (0,), 1.0)
    assert reads(load, roots) == {x}
    assert writes(store, roots) == {x}
    of_load, of_store, of_other = (footprint(op, roots) for op in (load, store, elsewhere))
    assert not of_load.commutes(of_store)
    assert not of_store.commutes(of_load)
    assert not of_store.commutes(of_other)  # both may raise
    assert of_load.commutes(of_other)
    of_load.include(of_other)
    assert not of_load.commutes(of_other)
