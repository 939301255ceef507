"""Products with cotangents that share a test: zero stays zero beside infinities and NaN."""

import math

import numpy as np
import pytest

import fwdad
from fwdad.codegen.loops.nan_guards import without_tests

pytest.importorskip("numba")

from fwdad.codegen.loops.source import numba_source


def by_hand(x, w, c):
    signs = np.array([1.0, -1.0, 1.0])
    scaled = lambda d, bar: np.where(bar == 0, 0.0, d * bar)  # noqa: E731
    return scaled(w, signs * c).sum(axis=1), scaled(x[:, None], signs * c)


def products(x, w, c):
    """Of each factor three, whose cotangents are the numbers of a row of ``c``."""
    total = 0.0
    for i in range(len(x)):
        d = x[i]
        u, v, t = d * w[i, 0], d * w[i, 1], d * w[i, 2]
        total += c[i, 0] * u - c[i, 1] * v + c[i, 2] * t
    return total


@pytest.fixture(scope="module")
def gradient():
    return fwdad.jit(fwdad.grad(products, argnums=(0, 1)))


@pytest.fixture(scope="module")
def gradient_of_factor():
    return fwdad.jit(fwdad.grad(products))


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_zeros_stay_zeros_beside_what_is_odd(gradient, gradient_of_factor, rng, n):
    x, w, c = rng.normal(size=n), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))

    def check():
        with np.errstate(invalid="ignore"):
            expected = by_hand(x, w, c)
        found = gradient(x, w, c)
        for x_bar in (found[0], gradient_of_factor(x, w, c)):
            np.testing.assert_allclose(x_bar, expected[0], rtol=1e-13)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-13)
        return found

    check()
    for odd in (math.inf, -math.inf, math.nan):
        for at in {0, n - 1}:
            for k in range(3):
                kept = x[at], w[at, k], c[at, k]
                x[at], w[at, k], c[at, k] = odd, odd, 0.0
                x_bar, w_bar = check()
                assert np.isfinite(x_bar).all()
                assert w_bar[at, k] == 0.0
                c[at, k] = math.nan  # which is no zero
                x_bar, w_bar = check()
                assert np.flatnonzero(np.isnan(x_bar)).tolist() == [at]
                x[at], w[at, k], c[at, k] = kept


def test_one_test_stands_for_several(gradient, gradient_of_factor, rng):
    args = rng.normal(size=2), rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    for f, products_with_tests in ((gradient, 6), (gradient_of_factor, 3)):
        f(*args)
        source = numba_source(f.last.tape.program)[0].code  # where a result is NaN, that runs
        assert source.count("is_odd(") == 1, source
        assert source.count("scaled(") == products_with_tests, source


def complex_products(x, w, c):
    """As ``products``, of complex numbers: the real part of their sum."""
    total = 0j
    for i in range(len(x)):
        d = x[i]
        total += c[i, 0] * (d * w[i, 0]) - c[i, 1] * (d * w[i, 1]) + c[i, 2] * (d * w[i, 2])
    return total.real


@pytest.mark.parametrize("n", [1, 2, 3])
def test_complex_zeros_stay_zeros_too(rng, n):
    gradient = fwdad.jit(fwdad.grad(complex_products))
    x = rng.normal(size=n)
    w, c = (rng.normal(size=(n, 3)) + 1j * rng.normal(size=(n, 3)) for _ in range(2))
    signs = np.array([1.0, -1.0, 1.0])
    assert_by_hand = lambda: np.testing.assert_allclose(  # noqa: E731
        gradient(x, w, c),
        np.where(c == 0, 0.0, signs * c * np.where(c == 0, 0.0, w)).sum(axis=1).real,
        rtol=1e-13,
    )
    assert_by_hand()
    for odd in (math.inf, complex(1.0, math.inf), complex(math.nan, 2.0)):
        for k in range(3):
            kept = w[0, k], c[0, k]
            w[0, k], c[0, k] = odd, 0.0
            assert_by_hand()
            c[0, k] = 1.0 + 1e-3j
            found = gradient(x, w, c)
            assert not np.isfinite(found[0])
            assert np.isfinite(found[1:]).all()
            w[0, k], c[0, k] = kept
    assert "scaled_complex(" in numba_source(gradient.last.tape.program)[0].code


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("scaled(a, b) + scaled(c, d)", "a * b + c * d"),
        ("x - (scaled(a + b, c) + -scaled(d, e[i]))", "x - ((a + b) * c + -(d * e[i]))"),
        ("scaled(a, scaled(b, c))", None),
        ("2.0 * (scaled(a, b) + scaled(c, d))", None),
        ("scaled(a, b) + c", None),
        ("scaled(a, scaled(b, c)) + scaled(d, e)", "a * scaled(b, c) + d * e"),
    ],
)
def test_sums_without_tests(value, expected):
    assert without_tests(value) == expected
