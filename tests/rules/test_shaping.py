"""Shapes: other axes, other places, copies, joins."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fwdad.errors import DualLeakError
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(33)
fortran = np.asfortranarray(draw.real(3, 4, 2))
strided = draw.real(4, 3, 4).transpose(1, 2, 0)[:, :, ::-2]


def _linear(function, *arguments, shape=(3, 4, 2)):
    """One function on a real and on a complex array, for each choice of its other arguments."""
    return [
        Case(function, make(*shape), *rest, linear=(0,), **options)
        for make in (draw.real, draw.complex)
        for *rest, options in [
            (*a, {}) if not a or not isinstance(a[-1], dict) else a for a in arguments
        ]
    ]


def _unsigned_shifts():
    """Shifts that NumPy 2.0 takes the negative of as they are, and raises."""
    try:
        np.roll(np.arange(3), np.uint8(1))
    except (ValueError, RuntimeWarning):
        return []
    return [(np.uint8(2), 0), (np.array([1, 2], np.uint8), (0, 1))]


CASES = [
    *_linear(np.transpose, (), ((2, 0, 1),), ((-1, 0, 1),), ({"axes": [1, 0, 2]},)),
    *_linear(np.moveaxis, (0, -1), ((0, 1), (2, 0)), (-1, 0)),
    *_linear(np.swapaxes, (0, 2), (-1, 1)),
    *_linear(np.squeeze, (), (1,), ((0, 3),), ((-1,),), shape=(1, 1, 3, 1)),
    *_linear(np.expand_dims, (0,), (-1,), ((0, 2),)),
    *_linear(np.broadcast_to, ((4, 3, 4, 2),), ((3, 4, 2),)),
    *_linear(np.broadcast_to, ((3, 5, 2),), ((2, 3, 5, 2),), shape=(3, 1, 2)),
    *_linear(np.broadcast_to, ((3,),), (4,), shape=()),
    *_linear(np.flip, (), (0,), ((-1, 1),)),
    *_linear(np.roll, (2,), (-1, 0), ((1, 2), (0, 1)), (3, (0, -1)), (5,)),
    *_linear(np.roll, *_unsigned_shifts(), ([1, -2], (1, 0))),
    *_linear(np.repeat, (3,), (2, 0), ([2, 0, 1, 3], 1), ([1, 2], -1), (0, 0)),
    *_linear(np.tile, (2,), ((2, 1, 3),), ((2, 1, 2, 1),), ((0, 1),)),
    *_linear(np.tile, (3,), ((2, 3),), shape=(4,)),
    *_linear(np.reshape, ((4, 6),), (-1,), ((2, -1, 3),), ((4, 6), "F"), ((3, 8),)),
    *_linear(np.ravel, (), ("F",)),
    Case(np.transpose, 1.5),
    Case(np.ravel, 1.5),
    Case(np.reshape, 1.5, (1, 1)),
    Case(np.squeeze, np.array([[1.5]])),
    Case(np.reshape, np.zeros((0, 3)), (3, 0), linear=(0,)),
    Case(np.transpose, np.zeros((0, 3)), linear=(0,)),
    *[Case(np.reshape, fortran, (4, 6), order, linear=(0,)) for order in "CF"],
    *[Case(np.ravel, a, order, linear=(0,)) for a in (fortran, strided) for order in "CF"],
    *[
        Case(np.concatenate, [make(3, 2), make(4, 2)], linear=(0,))
        for make in (draw.real, draw.complex)
    ],
    Case(np.concatenate, (draw.real(2, 3), draw.real(2, 1), draw.real(2, 2)), linear=(0,), axis=-1),
    Case(np.concatenate, [draw.real(2, 3), draw.real(4)], linear=(0,), axis=None),
    Case(inspect.unwrap(np.concatenate), [draw.real(3, 2), draw.real(4, 2)]),
    Case(np.concatenate, [draw.real(3, 2), np.arange(4).reshape(2, 2)]),
    Case(np.concatenate, [draw.real(3).astype("f"), draw.real(2)], check={"float32": False}),
    Case(np.concatenate, [draw.real(3), draw.complex(2)], linear=(0,)),
    Case(np.concatenate, [draw.real(3), draw.real(2)], dtype=np.complex128),
    Case(np.concatenate, draw.real(3, 2, 4), axis=1),
    Case(np.concatenate, [[1.0, 2.0], draw.real(2), [3, 4]]),
    Case(np.concatenate, [draw.real(0), draw.real(2)], linear=(0,)),
    *[
        Case(np.stack, [make(3, 2), make(3, 2)], linear=(0,), axis=axis)
        for make in (draw.real, draw.complex)
        for axis in (0, 1, -1)
    ],
    Case(np.stack, (1.5, np.float64(2.5), draw.real()), check={"float32": False}),
    Case(np.stack, [draw.real(2), [1, 2], [3.0, 4.0]], axis=1),
    Case(np.stack, draw.real(3, 4), axis=1),
    Case(np.stack, draw.real(3)),
    *[
        Case(f, items)
        for f in (np.hstack, np.vstack, np.dstack, np.column_stack)
        for items in [
            [draw.real(3), draw.real(3)],
            (draw.real(2, 3), draw.complex(2, 3)),
            [draw.real(2, 3, 2), draw.real(2, 3, 2)],
            [1.5, np.float64(2.5)],
        ]
    ],
    Case(np.hstack, [draw.real(3), 2.5, [1.0, 2.0]]),
    Case(np.vstack, [draw.real(3), draw.real(2, 3), np.arange(3)]),
    Case(np.column_stack, [draw.real(3), draw.real(3, 2), np.arange(3)]),
    Case(np.vstack, draw.real(3, 2)),
    Case(np.hstack, draw.real(3)),
    *[
        Case(np.meshgrid, draw.real(2), draw.complex(3), draw.real(4), **options)
        for options in [{}, {"indexing": "ij"}, {"sparse": True}, {"sparse": True, "copy": False}]
    ],
    Case(np.meshgrid, draw.real(3), 1.5),
    Case(np.meshgrid, draw.real(3)),
    Case(np.broadcast_arrays, draw.real(3, 1), draw.real(4), 2.5),
    Case(np.broadcast_arrays, draw.real(2), draw.complex(2)),
    Case(np.broadcast_arrays, draw.real(2, 3)),
]


@pytest.mark.filterwarnings("ignore:future versions will not create a writeable array")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


LAYOUTS = {
    "C": lambda memory: memory.reshape(2, 3, 4),
    "F": lambda memory: memory.reshape(4, 3, 2).T,
    "permuted": lambda memory: memory.reshape(3, 2, 4).transpose(1, 0, 2),
    "reversed": lambda memory: memory.reshape(4, 3, 2).T[:, ::-1],
    "every other": lambda memory: memory.reshape(4, 3, 2).T[:, :, ::2],
}


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_orders_that_look_at_memory_look_at_the_primal_s(layout, order):
    a, *lanes = (layout(draw.real(24)) for _ in range(4))
    x_dot = Chunk(np.stack(lanes))  # whose own memory is ordered in another way
    _, y_dot = call_rule(np.ravel, (a,), (x_dot,), order=order)
    assert_array_equal(y_dot.lanes, [np.ravel(lane, order) for lane in lanes])
    if order != "K":
        shape = (a.shape[2], -1)
        _, y_dot = call_rule(np.reshape, (a, shape), (x_dot,), order=order)
        assert_array_equal(y_dot.lanes, [np.reshape(lane, shape, order=order) for lane in lanes])


def test_joining_inactive_items_only_has_no_tangent():
    for f in (np.concatenate, np.stack):
        _, y_dot = call_rule(f, ([np.ones(2), np.zeros(2)],), ([ZERO, ZERO],))
        assert y_dot is ZERO


def test_joining_into_integers_would_lose_the_tangent():
    x = [np.ones(2), np.zeros(2)]
    with pytest.raises(DualLeakError, match="int64"):
        call_rule(
            np.concatenate,
            (x,),
            ([Chunk(np.ones((1, 2))), ZERO],),
            dtype=np.int64,
            casting="unsafe",
        )


def test_joining_shapes_that_do_not_fit_raises_as_numpy_does():
    x = [np.ones((2, 3)), np.zeros((3, 2))]
    tangents = [Chunk(np.ones((1, 2, 3))), ZERO]
    with pytest.raises(ValueError, match="must match exactly"):
        call_rule(np.concatenate, (x,), (tangents,))
    with pytest.raises(ValueError, match="same shape"):
        call_rule(np.stack, (x,), (tangents,))
