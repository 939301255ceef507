"""convolve, correlate, interp, and padding with zeros."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(26)
BOTH = (0, 1)
KNOTS = np.array([0.0, 1.0, 1.5, 3.0])
PLACES = (
    np.array([-1.0, 0.3, 1.2, 2.9, 5.0]),
    np.float64(0.7),
    np.array([[0.3, 0.4], [2.0, 0.1]]),
    np.linspace(0.1, 2.9, 4),
)


def _tables(make):
    values = make(4)
    return [
        case
        for x in PLACES
        for case in [
            Case(np.interp, x, KNOTS, values, linear=(2,)),
            Case(np.interp, x, KNOTS, values, 0.5, 0.25, linear=(2,)),
            Case(np.interp, x, KNOTS, values, left=0.125),
            Case(np.interp, x, KNOTS[[2, 0, 3, 1]], values, period=2.75, linear=(2,)),
        ]
    ]


CASES = [
    *(
        Case(f, g(n), g(m), mode=mode, linear=BOTH)
        for f in (np.convolve, np.correlate)
        for g in (draw.real, draw.complex)
        for n, m in ((5, 3), (3, 5), (4, 4), (6, 2), (2, 6), (4, 5), (1, 3), (3, 1))
        for mode in ("full", "same", "valid")
    ),
    *(Case(f, draw.real(4), draw.complex(3), linear=BOTH) for f in (np.convolve, np.correlate)),
    *(Case(f, draw.complex(4), draw.real(3), linear=BOTH) for f in (np.convolve, np.correlate)),
    *_tables(draw.real),
    *_tables(draw.complex),
    Case(np.interp, np.array([-1.0, 0.5]), np.array([0.2]), draw.real(1), linear=(2,)),
    Case(np.pad, draw.real(3), (1, 2), linear=(0,)),
    Case(np.pad, draw.complex(2, 3), ((0, 1), (2, 0)), linear=(0,)),
    Case(np.pad, draw.real(2, 3), 1, linear=(0,)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


def slope(x, **options):
    return fwdad.jvp(lambda t: np.interp(t, KNOTS, [0.0, 2.0, 1.0, 4.0], **options), x, 1.0)[1]


def test_at_a_knot_the_slope_to_its_right_is_taken():
    assert slope(0.0) == 2.0
    assert slope(1.0) == -2.0
    assert slope(1.5) == 2.0
    assert slope(3.0) == 2.0  # at the last knot, that to its left
    assert slope(-0.1) == slope(3.1) == 0.0


def test_outside_the_table_the_ends_count():
    fp_dot, ends_dot = draw.real(2, 4), draw.real(2, 2)
    x = np.array([-1.0, 4.0])
    free = call_rule(
        np.interp,
        (x, KNOTS, np.ones(4)),
        (0 * Chunk(np.ones((2, 2))), 0 * Chunk(np.ones((2, 4))), Chunk(fp_dot)),
    )[1]
    assert_allclose(free.lanes, fp_dot[:, [0, -1]])
    _, bound = fwdad.jvp(
        lambda fp, ends: np.interp(x, KNOTS, fp, ends[0], ends[1]),
        np.ones(4),
        fp_dot[0],
        args=(np.zeros(2),),
    )
    assert_array_equal(bound, [0.0, 0.0])
    _, moved = fwdad.jvp(
        lambda ends: np.interp(x, KNOTS, np.ones(4), ends[0], ends[1]), np.zeros(2), ends_dot[0]
    )
    assert_array_equal(moved, ends_dot[0])


def test_a_table_given_as_lists():
    jacobian = fwdad.jacobian(lambda x: np.interp(x, [0, 1, 2], [0, 1, 4]), np.array([0.5, 1.5]))
    assert_array_equal(jacobian, np.diag([1.0, 3.0]))


def test_repeated_knots_give_no_nan():
    y, y_dot = fwdad.jvp(
        lambda x: np.interp(x, [0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 6.0]),
        np.array([0.5, 1.5]),
        np.ones(2),
    )
    assert_array_equal(y, [0.5, 5.5])
    assert_array_equal(y_dot, [1.0, 1.0])
