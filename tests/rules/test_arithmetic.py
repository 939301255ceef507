"""Sums, products, quotients, remainders, and functions that select."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import MissingRuleError
from fwdad.rules.core.define import call_rule
from fwdad.rules.core.registry import RULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule
from tests.differences import difference_along
from tests.rules.case import Case, Draw

draw = Draw(32)
X = np.array([-1.3, 0.4, 2.2])
# no element of a column equals X's, or is a multiple of it
MATRIX = np.array([[0.713, -1.637, 0.919], [1.871, -0.353, -2.447]])
COMPLEX = np.array([0.5 + 0.3j, -1.2 + 0.7j, 0.8 - 1.1j])


def _two(function):
    """Both orders of unequal ranks; a Python number on either side; numbers only."""
    return [
        Case(function, X, MATRIX),
        Case(function, MATRIX, X),
        Case(function, X, X + 0.3),
        Case(function, X[:, None], MATRIX.T[:, :1]),
        Case(function, X, 1.7),
        Case(function, 2.5, MATRIX),
        Case(function, 0.6, -1.9),
        Case(function, X[1], MATRIX),
        Case(function, np.array(0.6), np.float64(1.3)),
        Case(function, X, np.array([[2], [5]])),  # integers promote, and carry no tangent
    ]


def _complex(function):
    return [
        Case(function, COMPLEX, draw.complex(2, 3)),
        Case(function, X, draw.complex(2, 3)),
        Case(function, COMPLEX, draw.real(2, 3)),
        Case(function, 0.5 + 0.3j, draw.real(2, 3)),
        Case(function, COMPLEX[0], 1.7),
    ]


FIELD = (np.add, np.subtract, np.multiply, np.divide)
BINARY = (
    *(np.remainder, np.fmod, np.divmod, np.hypot, np.arctan2, np.logaddexp, np.logaddexp2),
    *(np.maximum, np.minimum, np.fmax, np.fmin, np.copysign, np.heaviside, np.nextafter),
)
CASES = [
    *[case for f in FIELD for case in _two(f) + _complex(f)],
    *[case for f in BINARY for case in _two(f)],
    *[
        Case(f, x)
        for f in (np.negative, np.positive)
        for x in (X, MATRIX, COMPLEX, -0.4, X[1], 0.5 + 0.3j)
    ],
    *[Case(f, x) for f in (np.modf, np.frexp) for x in (X, 7 * MATRIX, -3.7, X[2])],
    Case(np.ldexp, X, 3),
    Case(np.ldexp, X, np.array([[1], [-2]])),
    Case(np.ldexp, 0.4, 5),
    Case(np.clip, X, -0.5, 1.0),
    Case(np.clip, X, None, MATRIX),
    Case(np.clip, MATRIX, X - 2, X),
    Case(np.clip, MATRIX, X, X - 2),  # ends in the wrong order: the upper one wins
    Case(np.clip, MATRIX, np.array([[-0.5], [0.5]]), None),
    Case(np.clip, 0.4, 0.1, 0.3),
    Case(np.clip, X[0], -0.2, 2.0),
    Case(np.nan_to_num, X),
    Case(np.nan_to_num, COMPLEX),
    Case(np.nan_to_num, -0.4),
]
if "min" in inspect.signature(np.clip).parameters:  # NumPy 2.1
    CASES += [Case(np.clip, X, min=-0.5, max=MATRIX), Case(np.clip, X, max=np.array(0.5))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


def _partials(f, *x):
    """The partial derivatives of a function of scalars."""
    dots = [[Chunk(np.ones(1)) if j == k else ZERO for j in range(len(x))] for k in range(len(x))]
    with np.errstate(all="ignore"):
        tangents = [call_rule(f, x, dot)[1] for dot in dots]
        return [0.0 if t is ZERO else t.lanes.item() for t in tangents]


def test_aliases_share_one_rule():
    for name, other in (
        ("true_divide", "divide"),
        ("mod", "remainder"),
        ("pow", "power"),
        ("conj", "conjugate"),
        ("abs", "absolute"),
        ("asin", "arcsin"),
        ("atan2", "arctan2"),
    ):
        assert RULES[getattr(np, name)] is RULES[getattr(np, other)]


def test_an_angle_of_extreme_lengths():
    """x1**2 + x2**2 would overflow, or be zero, where the angle's derivative is a number."""
    for scale in (1e200, 1e-200):
        got = _partials(np.arctan2, 3 * scale, 4 * scale)
        assert_allclose(np.array(got) * scale, [4 / 25, -3 / 25], rtol=1e-14)
        assert_allclose(_partials(np.hypot, 3 * scale, 4 * scale), [0.6, 0.8], rtol=1e-14)


def test_logaddexp_with_a_probability_of_zero():
    assert _partials(np.logaddexp, -np.inf, 2.0) == [0.0, 1.0]
    assert _partials(np.logaddexp2, 2.0, -np.inf) == [1.0, 0.0]


def test_the_quotient_of_an_almost_whole_ratio():
    """floor(x1 / x2) rounds up to 10 where the remainder was taken with the quotient 9."""
    x1, x2 = 1.0, 0.1
    assert np.floor(x1 / x2) == 10.0
    assert np.remainder(x1, x2) == pytest.approx(0.1, rel=1e-12)
    assert _partials(np.remainder, x1, x2) == [1.0, -9.0]
    assert _partials(np.fmod, x1, x2) == [1.0, -9.0]
    (_, r), (_, r_dot) = call_rule(np.divmod, (x1, x2), (ZERO, Chunk(np.ones(1))))
    assert r == np.remainder(x1, x2)
    assert_array_equal(r_dot.lanes, [-9.0])


def test_a_remainder_by_infinity():
    assert _partials(np.remainder, 5.0, np.inf) == [1.0, 0.0]
    assert _partials(np.fmod, 5.0, np.inf) == [1.0, 0.0]


def test_nan_to_num_drops_the_tangent_of_what_it_replaces():
    x = np.array([1.0, np.nan, np.inf, -np.inf])
    y, y_dot = call_rule(np.nan_to_num, (x,), (Chunk(np.ones((2, 4))),), posinf=7.0)
    assert_array_equal(y, [1.0, 0.0, 7.0, np.finfo(float).min])
    assert_array_equal(y_dot.lanes, [[1.0, 0.0, 0.0, 0.0]] * 2)
    z = np.array([complex(np.nan, 2.0), complex(1.0, np.inf)])
    _, y_dot = call_rule(np.nan_to_num, (z,), (Chunk(np.full((1, 2), 3.0 + 5.0j)),))
    assert_array_equal(y_dot.lanes, [[5.0j, 3.0]])


def test_nan_to_num_in_place_says_what_to_do():
    with pytest.raises(MissingRuleError, match="leave out copy=False"):
        call_rule(np.nan_to_num, (X,), (Chunk(np.ones((1, 3))),), copy=False)


@pytest.mark.parametrize("f", [np.maximum, np.minimum, np.fmax, np.fmin], ids=lambda f: f.__name__)
def test_selection_of_an_infinite_tangent(f):
    """A mask of zeros and ones would make 0 * inf of the side that is not taken."""
    low, high = np.array([1.0]), np.array([2.0])
    infinite = Chunk(np.array([[np.inf]]))
    finite = Chunk(np.array([[3.0]]))
    takes_first = f(1.0, 2.0) == 1.0
    _, y_dot = call_rule(f, (low, high), (finite, infinite) if takes_first else (infinite, finite))
    assert_array_equal(y_dot.lanes, [[3.0]])


@pytest.mark.parametrize(
    "f", [np.multiply, np.divide, np.hypot, np.arctan2, np.logaddexp, np.power]
)
def test_mixed_second_derivatives_commute(f):
    """The partials are differentiable themselves."""

    def mixed(outer, inner):
        x = [0.8, 1.7]

        def at(value, k, args):
            return f(*[value if j == k else a for j, a in enumerate(args)])

        def by_inner(value):
            args = [value if j == outer else a for j, a in enumerate(x)]
            return fwdad.derivative(lambda v: at(v, inner, args), x[inner])

        return fwdad.derivative(by_inner, x[outer])

    assert_allclose(mixed(0, 1), mixed(1, 0), rtol=1e-13)
    want = difference_along(lambda a: difference_along(lambda b: f(a, b), 1.7), 0.8)
    assert_allclose(mixed(0, 1), want, rtol=1e-4, atol=1e-5)
