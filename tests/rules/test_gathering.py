"""Gathers: take, where, choose, diagonals, triangles, unique, bincount."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(34)
BOTH = (draw.real, draw.complex)
index = draw.rng.integers(0, 4, (3, 6, 2))
mask = draw.rng.random((3, 4)) > 0.5


CASES = [
    *[
        Case(np.take, make(3, 4, 2), indices, linear=(0,), **options)
        for make in BOTH
        for indices, options in [
            (5, {}),
            ([0, 2, 2, 1], {"axis": 0}),
            (np.array([[0, 3], [3, 3]]), {"axis": 1}),
            ([5, -7, 30], {"mode": "wrap"}),
            ([5, -7, 30], {"axis": -1, "mode": "clip"}),
            ([-1, 0], {"axis": -2}),
            (np.zeros((0,), int), {"axis": 0}),
            (list(range(4)) * 3, {"axis": 1}),  # more than there is
        ]
    ],
    *[
        Case(np.take_along_axis, make(3, 4, 2), indices, linear=(0,), axis=axis)
        for make in BOTH
        for indices, axis in [
            (index, 1),
            (index[:, :1], -2),
            (index[:1], 1),
            (index[:, :, 0].ravel(), None),
        ]
    ],
    Case(np.take_along_axis, draw.real(1, 4, 2), index, linear=(0,), axis=1),
    *[
        Case(np.diagonal, make(3, 4, 5), linear=(0,), **options)
        for make in BOTH
        for options in [{}, {"offset": 1}, {"offset": -2, "axis1": 2, "axis2": 0}, {"offset": 9}]
    ],
    *[
        Case(np.trace, make(3, 4, 5), linear=(0,), **options)
        for make in BOTH
        for options in [{}, {"offset": 1}, {"offset": -2, "axis1": 2, "axis2": 0}, {"offset": 9}]
    ],
    Case(np.trace, draw.real(3, 3).astype("f"), linear=(0,), dtype=np.float64),
    *[
        Case(np.diag, make(*shape), linear=(0,), k=k)
        for make in BOTH
        for shape in [(3,), (3, 4)]
        for k in (0, 1, -2)
    ],
    *[
        Case(f, make(*shape), linear=(0,), k=k)
        for f in (np.tril, np.triu)
        for make in BOTH
        for shape in [(3,), (3, 4), (2, 3, 3)]
        for k in (0, 1, -1)
    ],
    *[
        Case(np.where, mask, x, y, linear=(1, 2))
        for make in BOTH
        for x, y in [
            (make(3, 4), make(3, 4)),
            (make(4), make(2, 3, 1)),
            (make(), make(3, 4)),
            (make(3, 4), draw.real(1)),
        ]
    ],
    Case(np.where, True, draw.real(2, 3), draw.real(3), linear=(1, 2)),
    Case(np.where, mask, draw.real(3, 4), 0.0),
    Case(np.where, mask, 2, draw.real(3, 4)),
    Case(np.where, mask, draw.real(4).astype("f"), np.ones((2, 3, 4)), check={"argnums": [1]}),
    *[
        Case(np.choose, a, choices, mode=mode)
        for a, mode in [([2, 0, 1, 2], "raise"), ([5, -1, 1, 2], "wrap"), ([[5], [-1]], "clip")]
        for choices in [
            [draw.real(4), draw.real(4), 2.5],
            draw.real(3, 4),
            (draw.complex(4), draw.real(1), draw.real(4)),
        ]
    ],
    Case(np.choose, 1, [draw.real(2, 3), 1.0, draw.real(3)]),
    *[
        Case(np.select, [mask, ~mask[:1], mask], [x, y, x], default=default)
        for x, y in [(draw.real(3, 4), draw.real(4)), (draw.complex(3, 4), draw.real(3, 1))]
        for default in (0, 2.5, draw.real(4))
    ],
    Case(np.select, [mask], [2.5], default=draw.real(3, 4), check={"argnums": ["default"]}),
    Case(np.select, [mask, mask[0]], draw.real(2, 3, 4)),
    *[
        Case(np.compress, condition, make(3, 4), **options)
        for make in BOTH
        for condition, options in [
            ([True, False, True], {"axis": 0}),
            ([0, 1], {"axis": 1}),
            (mask.ravel(), {}),
        ]
    ],
    *[
        Case(np.unique, make(2, 3), **options)
        for make in BOTH
        for options in [{}, {"return_index": True, "return_counts": True}]
    ],
    Case(np.unique, draw.real(4, 3), axis=0),
    Case(np.unique, draw.real(4, 3), axis=-1, return_inverse=True),
    Case(np.bincount, [0, 2, 2, 5], draw.real(4), linear=(0,), check={"float32": False}),
    Case(np.bincount, [0, 2, 2, 5], draw.real(4), 9, linear=(0,), check={"float32": False}),
    *[Case(f, draw.real(3, 4)) for f in (np.nonzero, np.flatnonzero, np.argwhere)],
    Case(np.searchsorted, np.array([1.0, 2.0, 3.0]), draw.real(4)),
    Case(np.digitize, draw.real(4), np.array([-1.0, 0.0, 1.0])),
]
if "sorted" in np.unique.__doc__ and np.lib.NumpyVersion(np.__version__) >= "2.3.0":
    CASES += [
        Case(np.unique, draw.real(3, 5), sorted=False),
        Case(np.unique, draw.real(3, 5), sorted=False, axis=1),
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


def test_where_of_a_condition_alone_returns_indices():
    y, y_dot = call_rule(np.where, (np.array([0.0, 2.0]), None, None), (ZERO, ZERO, ZERO))
    assert_array_equal(y[0], [1])
    assert y_dot is ZERO


def test_where_selects_tangents_and_never_multiplies_them_by_a_mask():
    x_dot = Chunk(np.array([[np.inf, np.nan, 1.0]]))
    y_dot = Chunk(np.array([[2.0, 3.0, np.nan]]))
    condition = np.array([False, False, True])
    _, z_dot = call_rule(np.where, (condition, np.ones(3), np.ones(3)), (ZERO, x_dot, y_dot))
    assert_array_equal(z_dot.lanes, [[2.0, 3.0, 1.0]])
    _, z_dot = call_rule(np.where, (condition, np.ones(3), np.ones(3)), (ZERO, ZERO, y_dot))
    assert_array_equal(z_dot.lanes, [[2.0, 3.0, 0.0]])


def test_choose_selects_and_never_multiplies():
    choices = [np.ones(3), np.ones(3)]
    tangents = [Chunk(np.array([[np.inf, 1.0, np.nan]])), Chunk(np.array([[5.0, np.nan, 6.0]]))]
    _, y_dot = call_rule(np.choose, ([1, 0, 1], choices), (tangents,))
    assert_array_equal(y_dot.lanes, [[5.0, 1.0, 6.0]])


def test_select_takes_the_first_condition_that_holds_and_never_multiplies():
    choices = [np.ones(3), np.ones(3)]
    tangents = [Chunk(np.array([[1.0, np.inf, np.nan]])), Chunk(np.array([[np.nan, 2.0, np.inf]]))]
    conditions = [np.array([True, False, False]), np.array([True, True, False])]
    _, y_dot = call_rule(np.select, (conditions, choices), (tangents, ZERO))
    assert_array_equal(y_dot.lanes, [[1.0, 2.0, 0.0]])


def test_of_equal_values_the_first_is_unique_s():
    x = np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    y, y_dot = call_rule(np.unique, (x,), (Chunk(np.eye(5)),))
    gradient = 2 * y @ y_dot.lanes.T
    assert_array_equal(gradient, [2.0, 4.0, 0.0, 0.0, 6.0])
    (y, counts), (y_dot, none) = call_rule(
        np.unique, (x[::-1],), (Chunk(np.eye(5)),), return_counts=True
    )
    assert_array_equal(counts, [2, 2, 1])
    assert none is ZERO
    assert_array_equal(2 * y @ y_dot.lanes.T, [6.0, 4.0, 2.0, 0.0, 0.0])


def test_unique_keeps_one_nan_or_all_of_them():
    x = np.array([np.nan, 1.0, np.nan])
    _, y_dot = call_rule(np.unique, (x,), (Chunk(np.eye(3)),))
    assert_array_equal(y_dot.lanes.T, [[0, 1, 0], [1, 0, 0]])
    _, y_dot = call_rule(np.unique, (x,), (Chunk(np.eye(3)),), equal_nan=False)
    assert_array_equal(y_dot.lanes.T, [[0, 1, 0], [1, 0, 0], [0, 0, 1]])


def test_counting_nothing_gives_integers_without_a_tangent():
    y, y_dot = call_rule(np.bincount, (np.zeros(0, int), np.zeros(0), 3), (Chunk(np.ones((2, 0))),))
    assert y.dtype.kind == "i"
    assert y_dot is ZERO


def test_a_gather_keeps_deferred_scalings_apart_only_where_that_is_less_work():
    x_dot = Chunk(np.ones((2, 5))) * np.arange(5.0)
    assert next(iter(np.take(x_dot, [1, 2]).terms.values())) is not None
    assert next(iter(np.take(x_dot, [1, 2] * 5).terms.values())) is None
