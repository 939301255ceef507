"""Elementwise rules applied to dual arrays: the short way for one array, and whose memory it is."""

import math
import operator
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad import Chunk
from fwdad.eager.build import Run
from fwdad.eager.calls import apply
from fwdad.eager.duals.array import Array
from fwdad.eager.hooks import OPERATORS
from fwdad.errors import DeadDualError, UndefinedDerivativeError
from fwdad.rules.core.registry import RULES
from fwdad.tangents.zero import undefined

UNARY = sorted(
    (f for f in RULES if isinstance(f, np.ufunc) and f.nin == 1 and RULES[f].kind == "elementwise"),
    key=lambda f: f.__name__,
)


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda f: f.__name__)
def test_the_short_way_for_one_array_is_the_general_one(ufunc, rng):
    """To the last bit: for lanes without a scaling, with one, and for sums of two."""
    p = rng.uniform(1.1, 1.9, size=(2, 3)) if ufunc is np.arccosh else rng.uniform(0.1, 0.9, (2, 3))
    lanes = Chunk(rng.normal(size=(4, 2, 3)))
    other = Chunk(rng.normal(size=(4, 2, 3)))
    with Run(4) as run, run:
        for t in (lanes, 2.5 * lanes, p * lanes, lanes + p * other):
            x = Array(p, t, run.tag)
            short = apply.apply_to_array(RULES[ufunc], ufunc, x)
            general = apply.apply_elementwise(RULES[ufunc], ufunc, (x,))
            assert_array_equal(short.p, general.p)
            assert_array_equal(short.t.lanes, general.t.lanes)


@pytest.mark.parametrize("scale", [None, 3.0])
@pytest.mark.parametrize(
    ("ufunc", "slope"),
    [(np.exp, np.exp), (np.square, lambda u: 2 * u), (np.sqrt, lambda u: 0.5 / np.sqrt(u))],
)
def test_a_result_that_is_its_own_derivative_may_be_written(ufunc, slope, scale):
    """The slope of exp is its value; what is stored there later must not change a tangent."""
    x, z = np.array([0.3, 1.2, 2.0]), np.ones(3)

    def f(pair):
        x, z = pair
        u = x if scale is None else scale * x
        y = ufunc(u)
        kept = y + z  # a sum of two scaled lanes, of which y's scaling is one
        y[:] = 0.0
        u[:] = 0.0
        return kept

    factor = 1.0 if scale is None else scale
    y, (by_x, by_z) = fwdad.value_and_jacobian(f, (x, z))
    assert_array_equal(y, ufunc(factor * x) + z)
    assert_allclose(by_x, np.diag(factor * slope(factor * x)), rtol=1e-15)
    assert_array_equal(by_z, np.eye(3))


@pytest.mark.parametrize("same", [False, True])
def test_factors_of_a_product_may_be_written(same):
    a, b = np.array([0.3, 1.2]), np.array([2.0, -0.7])

    def f(pair):
        p, q = pair
        p = q if same else p
        y = p * q
        kept = y.copy()
        p[:] = 0.0
        q[:] = 0.0
        return kept

    y, (by_a, by_b) = fwdad.value_and_jacobian(f, (a, b))
    assert_array_equal(y, b * b if same else a * b)
    assert_array_equal(by_a, np.zeros((2, 2)) if same else np.diag(b))
    assert_array_equal(by_b, np.diag(2 * b if same else a))


def test_arrays_without_axes_and_enclosing_calls_take_the_general_way():
    zero = np.array(0.7)
    y, y_dot = fwdad.jvp(np.sin, zero, np.ones(()))
    assert_allclose([y, y_dot], [math.sin(0.7), math.cos(0.7)], rtol=1e-15)
    x = np.array([0.2, 1.1])
    second = fwdad.jvp(lambda x: fwdad.jvp(np.sin, x, np.ones(2))[1], x, np.ones(2))[1]
    assert_allclose(second, -np.sin(x), rtol=1e-15)


def test_an_array_kept_beyond_its_call_is_refused():
    with Run(1) as run, run:
        x = Array(np.ones(2), Chunk(np.ones((1, 2))), run.tag)
    with pytest.raises(DeadDualError):
        apply.apply_to_array(RULES[np.sin], np.sin, x)


def test_an_undefined_tangent_is_refused():
    with Run(1) as run, run:
        x = Array(np.ones(2), undefined("it has no slope"), run.tag)
        with pytest.raises(UndefinedDerivativeError, match="it has no slope"):
            apply.apply_to_array(RULES[np.sin], np.sin, x)


@pytest.mark.parametrize("combine", [lambda a, b: a + b, lambda a, b: a - (-b), lambda a, b: a * b])
def test_what_is_combined_without_a_number_warns_of_nothing(combine):
    """``inf - inf`` among slopes is no fault of the user's arithmetic."""
    x = np.array([0.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, y_dot = fwdad.jvp(lambda x: combine(np.sqrt(x), -np.sqrt(x)), x, np.ones(2))
    assert np.isnan(y_dot[0])
    assert y_dot[1] == (0.0 if combine(2.0, -2.0) == 0.0 else -1.0)


def test_a_large_partial_that_somebody_holds_is_not_written():
    """NumPy multiplies into large temporaries; the value of exp and a user's table are none."""
    n = 1 << 16
    table = np.linspace(0.5, 1.5, n)

    def looked_up(x):
        return 0.0 * x

    fwdad.elementwise(looked_up, lambda x, y: table)
    x, held = np.linspace(-1.0, 1.0, n), table.copy()

    def f(x):
        u = np.exp(2.0 * x)
        return u, looked_up(np.sin(x)), np.exp(np.sin(x))

    try:
        values, (_, by_table, _) = fwdad.jvp(f, x, np.ones(n))
    finally:
        RULES.pop(looked_up)
    assert_array_equal(values[0], np.exp(2.0 * x))
    assert_array_equal(values[2], np.exp(np.sin(x)))
    assert_array_equal(table, held)
    assert_allclose(by_table, table * np.cos(x), rtol=1e-15)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
@pytest.mark.parametrize("constant_first", [False, True])
def test_a_constant_array_beside_an_array_is_as_in_general(name, constant_first, rng):
    """To the last bit, and whatever is written into the constant afterwards."""
    p, c = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    c[0, 0] = 0.0
    lanes, other = Chunk(rng.normal(size=(4, 2, 3))), Chunk(rng.normal(size=(4, 2, 3)))
    function = getattr(operator, name)
    ufunc = getattr(np, {"sub": "subtract", "mul": "multiply", "truediv": "divide"}.get(name, name))
    hook = OPERATORS[function]
    with Run(4) as run, run, np.errstate(all="ignore"):
        for t in (lanes, 2.5 * lanes, p * lanes, lanes + p * other):
            x, kept = Array(p, t, run.tag), c.copy()
            pair = (kept, x) if constant_first else (x, kept)
            general = apply.apply_elementwise(RULES[ufunc], function, pair)
            expected = general.p, general.t.lanes.copy()
            short = hook(*pair)
            kept[:] = 7.0
            assert_array_equal(short.p, expected[0])
            assert_array_equal(short.t.lanes, expected[1])


def test_a_constant_array_that_was_written_carries_tangents():
    def f(x):
        c = np.zeros(2)
        c[:] = 3.0 * x
        return x * c + c * x, x - c, c / x

    x = np.array([0.5, -2.0])
    _, (square, difference, quotient) = fwdad.jvp(f, x, np.ones(2))
    assert_allclose(square, 12.0 * x, rtol=1e-15)
    assert_allclose(difference, [-2.0, -2.0], rtol=1e-15)
    assert_allclose(quotient, [0.0, 0.0], atol=1e-14)
