"""Look-ups, convolutions, distinct elements and repeats: compiled, against NumPy."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.loops.source import numba_source
from tests.differences import central_differences

TABLE = np.array([-1.5, 0.0, 0.0, 0.25, 2.0, np.inf, np.nan])
X = np.array([-3.0, -1.5, 0.0, 0.1, 2.0, 7.0, np.inf, -np.inf, np.nan])
VALUES = np.array([1.0, -2.0, 4.0, 0.5, 3.0])
KNOTS = np.array([-1.0, 0.0, 0.5, 2.0, 2.5])
A = np.array([3.0, 1.0, 3.0, np.nan, -2.0, 1.0, np.nan, 0.0, -0.0])


def look_ups(table, x, knots, values):
    bins = knots[::-1]
    return (
        np.searchsorted(table, x),
        np.searchsorted(table, x, side="right"),
        np.searchsorted(table, 0.0),
        np.digitize(x, knots),
        np.digitize(x, bins, right=True),
        np.digitize(x, bins),
        np.interp(x, knots, values),
        np.interp(x, knots, values, left=-7.0, right=9.0),
        np.interp(0.3, knots, values),
    )


def elements(a, counts):
    values, first, inverse, often = np.unique(
        a, return_index=True, return_inverse=True, return_counts=True
    )
    return values, first, inverse, often, np.unique(a), np.repeat(a, counts)


def convolutions(a, v):
    return tuple(
        f(x, y, mode)
        for f in (np.convolve, np.correlate)
        for x, y in ((a, v), (v, a), (a + 1j, v * 2j))
        for mode in ("full", "same", "valid")
    )


@pytest.mark.slow_cases("convolutions-args2")
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (look_ups, (TABLE, X, KNOTS, VALUES)),
        (elements, (A, np.array([1, 0, 2, 3, 0, 0, 1, 1, 2]))),
        (convolutions, (X[1:6], VALUES[:2])),
    ],
)
def test_values(f, args):
    run = fwdad.jit(f)
    for found, expected in zip(run(*args), f(*args), strict=True):
        assert np.result_type(found) == np.result_type(expected)
        assert np.shape(found) == np.shape(expected)
        assert_allclose(found, expected, rtol=1e-15)
    assert "NumPy" not in str(fwdad.explain(run, *args))


@pytest.mark.parametrize("n", [1, 3, 9, 40, 1030, 2100])
def test_convolutions_of_every_length(n):
    """Around eight items at once, and around blocks of 1024."""
    rng = np.random.default_rng(n)
    run = fwdad.jit(lambda x, v: tuple(np.convolve(x, v, m) for m in ("full", "same", "valid")))
    x = rng.normal(size=n)
    for m in (*range(1, 19), n):
        v = rng.normal(size=m)
        for found, mode in zip(run(x, v), ("full", "same", "valid"), strict=True):
            assert_allclose(found, np.convolve(x, v, mode), rtol=1e-12, atol=1e-12)


def test_lengths_of_one_and_none():
    run = fwdad.jit(lambda t, x: (np.searchsorted(t, x), np.unique(x), np.convolve(x, t + x[:1])))
    one = np.array([0.5])
    for found, expected in zip(run(one, X[1:4]), (np.searchsorted(one, X[1:4]), X[1:4],
                               np.convolve(X[1:4], one + X[1])), strict=True):  # fmt: skip
        assert_allclose(found, expected)


def test_exceptions_are_those_of_numpy():
    run = fwdad.jit(np.digitize)
    with pytest.raises(ValueError, match="monoton"):
        run(X, np.array([1.0, 3.0, 2.0]))
    with pytest.raises(ValueError, match="length"):
        fwdad.jit(np.interp)(X, KNOTS, VALUES[:-1])


Y = np.array([0.3, -0.7, 1.4, 2.2, -2.0, 0.9])

GRADIENTS = {
    "interp": lambda x: np.interp(x, KNOTS, x[:5] ** 2) * x,
    "interp of active knots": lambda x: np.interp(x, KNOTS + 0.1 * x[1], VALUES, left=x[0]),
    "convolve": lambda x: np.convolve(x, x[:3] ** 2),
    "convolve the same": lambda x: np.convolve(x, x[:3] ** 2, "same"),
    "correlate": lambda x: np.correlate(x, x[:3] ** 2, "full"),
    "correlate valid": lambda x: np.correlate(x**2, x[:4]),
    "unique": lambda x: np.unique(x) ** 2,
    "unique with places": lambda x: np.unique(x**2, return_index=True)[0],
    "searchsorted": lambda x: x[np.minimum(np.searchsorted(np.sort(x), x * 1.1), 5)] * x,
    "digitize": lambda x: x * np.digitize(x, KNOTS),
    "repeat": lambda x: np.repeat(x, [1, 2, 0, 1, 3, 1]) ** 2,
    "bincount": lambda x: np.bincount([0, 1, 0, 2, 1, 2], weights=x**2),
    "concatenate flat": lambda x: np.concatenate([x.reshape(2, 3), x[:2] ** 2], axis=None),
}


@pytest.mark.parametrize("f", GRADIENTS.values(), ids=GRADIENTS)
def test_derivatives_are_written_out(f):
    """On a tape, forwards and backwards, with a compiled form; against differences."""
    expected = central_differences(f, Y)
    for wrap in (fwdad.jacfwd, fwdad.jacrev):
        g = wrap(f)
        assert_allclose(fwdad.jit(g, backend="numpy")(Y), expected, rtol=1e-8, atol=1e-8)
        numba_source(fwdad.trace(g, Y).program)


def test_a_compiled_gradient():
    def f(x):
        y = np.convolve(np.interp(x, KNOTS, x[:5] ** 2), x[:3], "same")
        return np.sum(np.unique(y) ** 2)

    run = fwdad.jit(fwdad.grad(f))
    assert_allclose(run(Y), fwdad.jacobian(f, Y, mode="forward"), rtol=1e-12)
    assert "NumPy" not in str(fwdad.explain(run, Y))


def test_single_precision():
    x = Y.astype(np.float32)
    for f in (lambda x: np.convolve(x, x[:2]), lambda x: np.interp(x, x[:1], x[:1])):
        found = fwdad.jit(f)(x)
        assert found.dtype == f(x).dtype
        assert_allclose(found, f(x), rtol=4e-7)  # products of a convolution may be fused


def small_functions(x, y, v, n):
    return (
        math.fmod(x, y) + math.cbrt(x) * math.exp2(y),
        np.ldexp(v, n),
        np.moveaxis(v.reshape(2, 3), FIRST, SECOND).copy(),
        np.swapaxes(v.reshape(2, 3), FIRST, SECOND) * 2,
        np.tile(v, SECOND + 1),
        np.float_power(v, 2),
    )


FIRST, SECOND = 0, 1


def test_small_functions():
    """Numbers of ``math`` with its exceptions; axes that are globals."""
    run, n = fwdad.jit(small_functions), np.array([1, -2, 3, 0, 5, 1])
    found, expected = run(7.5, -2.0, Y, n), small_functions(7.5, -2.0, Y, n)
    for a, b in zip(found, expected, strict=True):
        assert_array_equal(a, b)
        assert np.result_type(a) == np.result_type(b)
    assert "NumPy" not in str(fwdad.explain(run, 7.5, -2.0, Y, n))
    for x, y, error in (
        (1.0, 0.0, ValueError),
        (math.inf, 1.0, ValueError),
        (1.0, 2e3, OverflowError),
    ):
        with pytest.raises(error):
            run(x, y, Y, n)
    assert math.isnan(run(1.0, math.nan, Y, n)[0])


@pytest.mark.every(5)
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [1, 7, 8, 40, 1030, 2100])
def test_parts_of_convolutions(n, dtype, rng):
    """Few and many results, from vectors with and without gaps; eight are computed at once."""
    lookups = pytest.importorskip("fwdad.codegen.runtime.lookups")
    for m in (1, 3, 8, 9, 63, 1025, 2000):
        a, v = (rng.standard_normal(k).astype(dtype) for k in (n, m))
        full = np.convolve(a, v)
        shorter, longer = min(n, m), max(n, m)
        parts = [(0, n + m - 1), (shorter - 1, longer - shorter + 1), (n + m - 2, 1)]
        parts += [
            ((shorter - 1) // 2, longer),
            ((n + m - 1) // 2, min(9, n + m - 1 - (n + m - 1) // 2)),
        ]
        for start, length in parts:
            for x, y in ((a, v), (a[::-1].copy()[::-1], v), (a, v[::-1].copy()[::-1])):
                found = lookups.convolved(x, y, start, length)
                assert_allclose(found, full[start : start + length], rtol=1e-11, atol=1e-11)


@pytest.mark.every(6, first=3)
@pytest.mark.parametrize("shape", [(5,), (0,), (1,), (3, 4), (4, 1, 3), (2, 3, 4)])
def test_rolled(shape):
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    weights = (x + 1) ** 2
    for axis in range(-len(shape), len(shape)):
        rolled = fwdad.jit(lambda x, by, axis=axis: np.roll(x, by, axis))
        gradient = fwdad.jit(
            fwdad.grad(lambda x, by, w, axis=axis: np.sum(np.roll(x, by, axis) * w))
        )
        for by in (0, 1, -1, 7, -9):
            for each in (x, np.asfortranarray(x), x[::-1]):
                assert_array_equal(rolled(each, by), np.roll(each, by, axis))
                assert_array_equal(gradient(each, by, weights), np.roll(weights, -by, axis))


@pytest.mark.parametrize(("n", "m", "length"), [(2100, 2000, 40), (3000, 20, 1500)])
def test_an_infinite_item_of_a_convolution(n, m, length, rng):
    """It reaches the results that it is a summand of, and no other."""
    lookups = pytest.importorskip("fwdad.codegen.runtime.lookups")
    start = (n + m) // 2
    a, v = rng.standard_normal(n), rng.standard_normal(m)
    a[start - m + 3] = np.inf
    found = lookups.convolved(a, v, start, length)
    touched = np.isinf(found)
    reached = np.convolve(np.isinf(a), np.ones(m))[start : start + length] > 0
    assert_array_equal(touched, reached)
    assert np.isfinite(found[~touched]).all()
