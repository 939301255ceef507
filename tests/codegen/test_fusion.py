"""Elementwise programs as loops over vectors: what they return, and what becomes an array."""

import runpy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.runtime import libmvec
from tests.codegen.compiled_programs import prepared
from tests.tiers import every

needs_library = pytest.mark.skipif(not libmvec.register_bits(), reason="no vector functions")
LENGTHS = [7, 8, 9, 1000]
EPS = np.finfo(float).eps


def transcendental(x):
    return np.tanh(x) * np.exp(-x * x) + np.log1p(x * x) * np.sin(3 * x) + np.cos(x) * x


def two_inputs(x, y):
    return np.exp(x * y) * np.sin(y), x / (1 + np.exp(-y))


def assert_near(found, wanted, ulps=32):
    found, wanted = ((y if isinstance(y, tuple) else (y,)) for y in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        eps = np.finfo(b.dtype).eps if b.dtype.kind == "f" else 0
        scale = np.abs(b).max(initial=0, where=np.isfinite(b)) if b.dtype.kind == "f" else 0
        assert_allclose(a, b, rtol=ulps * eps, atol=ulps * eps * scale)


@pytest.mark.every(4)
@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_derivative(lanes, rng):
    """Of an array function, with the tangents of the interpreted evaluator; any length."""

    def push(x, v):
        return fwdad.jvp(transcendental, x, v)

    call, _ = prepared(push, np.ones(5), np.ones((lanes, 5)))
    for n in LENGTHS:
        x, v = rng.standard_normal(n), rng.standard_normal((lanes, n))
        assert_near(call(x, v), fwdad.jvp(transcendental, x, v))


@pytest.mark.parametrize("n", [0, 1])
def test_few_elements(n, rng):
    x = rng.standard_normal(n)
    assert_near(fwdad.jit(transcendental)(x), transcendental(x))


@needs_library
def test_one_loop_for_the_lanes(rng):
    """Only results become arrays; partials wait in strips, of which the last is shorter."""

    def push(x, v):
        return fwdad.jvp(transcendental, x, v)

    call, text = prepared(push, np.ones(5), np.ones((2, 5)))
    assert text.count("np.empty((n,)") == text.count("np.empty((n_2, n)") == 1
    assert text.count("np.empty") == 3
    assert text.count("vector_exp") == 2  # of two arguments
    for n in (16383, 16384, 16385, 33000):
        x, v = rng.standard_normal(n), rng.standard_normal((2, n))
        assert_near(call(x, v), fwdad.jvp(transcendental, x, v))


@needs_library
def test_two_inputs(rng):
    """Lanes of several inputs meet in one pass; results of a region may be wanted twice."""

    def push(x, y, v, w):
        (a, b), (a_dot, b_dot) = fwdad.jvp(two_inputs, x, (v, w), args=(y,), argnums=(0, 1))
        return a, b, a_dot, b_dot

    def wanted(x, y, v, w):
        values, tangents = fwdad.jvp(two_inputs, x, (v, w), args=(y,), argnums=(0, 1))
        return (*values, *tangents)

    args = [rng.standard_normal(s) for s in ((20,), (20,), (3, 20), (3, 20))]
    call, text = prepared(push, *args)
    assert text.count("for start") == 1
    assert_near(call(*args), wanted(*args))


def zero_lanes_at_infinite_slopes(x, v):
    return fwdad.jvp(lambda x: np.log(x) + np.sqrt(x), x, v)


@needs_library
def test_a_zero_tangent_of_an_infinite_slope_stays_zero():
    x = np.array([0.0, 1.0, 0.0, 4.0, np.inf, 2.0, 3.0, 5.0, 0.0])
    v = np.array([[0.0, 1, 1, 0, 0, 1, 1, 1, 0], np.ones(9)])
    call, text = prepared(zero_lanes_at_infinite_slopes, x, v)
    assert "vector_scale" in text
    with np.errstate(all="ignore"):
        _, found = call(x, v)
    assert_array_equal(found[0, [0, 3, 4, 8]], 0)
    assert_array_equal(found[1, [0, 2, 8]], np.inf)
    assert np.isfinite(found[0, [1, 5, 6, 7]]).all()


def shared(x):
    e = np.exp(x)
    return e, e * e + x, np.where(e > 1, e, -x), e > 1


def choices(x, k, flag):
    m = (x > 0) & ~(k > 2) | np.isnan(x)
    y = np.where(m, np.log(np.abs(x) + 1), k * 0.5)
    return np.where(flag, y, x) * np.clip(x, -1, 1.0), np.maximum(y, 0) ** 2, np.hypot(x, 2) ** 1.5


def tables(x, b, c):
    y = np.tanh(x * b + 1.0)
    return y * x + np.exp(-b), np.sin(y) + c, np.cbrt(c) * 2


def stores(x):
    u = x.copy()
    a = np.exp(-u * u) + 1
    u[0] = 5.0
    b = np.exp(-u * u) * a
    u[1:] = b[:-1]
    return a, b, np.sin(u) * a


def steps(x, n):
    u = x.copy()
    for k in range(n):
        v = np.sin(u) * 0.1 * k
        u[1:] = u[:-1] + v[1:]
        u = np.cos(u) * v if u.sum() > 3 else u + v
    return u


def views(x):
    y = np.zeros_like(x)
    y[1:-1] = np.exp(x[1:-1]) * (x[2:] - x[:-2]) + np.sin(x[1:-1])
    return y + np.log1p(y * y)


def nested(x, depth):
    if depth == 0:
        return np.exp(-x * x)
    return np.sin(nested(x * 0.5, depth - 1)) + x


X = np.linspace(-2.5, 3, 21)
PROGRAMS = [
    (shared, (X,)),
    (choices, (X, np.arange(21), X[::-1] > 0)),
    (tables, (np.outer(X[:6], X), X, X[:6, None] + 2)),
    (stores, (X,)),
    (steps, (X, 4)),
    (views, (X,)),
    (nested, (X, 3)),
]


@pytest.mark.every(5)
@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_program(f, args):
    call, text = prepared(f, *args)
    assert not libmvec.register_bits() or "vector_write" in text
    assert_near(call(*args), f(*args))
    other = [np.asfortranarray(np.repeat(a, 2, -1))[..., ::2] if np.ndim(a) else a for a in args]
    assert_near(call(*other), f(*args))  # the same elements, not next to each other


@needs_library
def test_lanes_of_tables(rng):
    x, b, v = rng.standard_normal((5, 13)), rng.standard_normal(13), rng.standard_normal((3, 5, 13))

    def f(x, b):
        return np.tanh(x * b + 1.0) * x

    def push(x, b, v):
        return fwdad.jvp(f, x, v, args=(b,))

    call, text = prepared(push, x, b, v)
    assert "for start" in text
    assert_near(call(x, b, v), push(x, b, v))


@needs_library
def test_float32(rng):
    """Computed with twice as many elements at once, never as float64."""
    x, v = rng.standard_normal(45).astype(np.float32), rng.standard_normal((2, 45))
    v = v.astype(np.float32)

    def push(x, v):
        return fwdad.jvp(lambda x: np.exp(x) * np.sin(x) ** 2, x, v)

    call, text = prepared(push, x, v)
    assert f"vector_read({libmvec.register_bits() // 32}, " in text
    assert "float64" not in text
    assert_near(call(x, v), push(x, v))


@needs_library
def test_mixed_precision(rng):
    x, y = rng.standard_normal(30).astype(np.float32), rng.standard_normal(30)

    def f(x, y):
        return np.exp(x) + 1, np.exp(x) * y + np.sin(y)

    call, _ = prepared(f, x, y)
    for a, b in zip(call(x, y), f(x, y), strict=True):
        assert a.dtype == b.dtype
        assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.slow_cases("columns")
@needs_library
@pytest.mark.parametrize("index", [np.s_[:1], np.s_[:, :1]], ids=["rows", "columns"])
def test_what_is_repeated_is_a_loop_of_its_own(index, rng):
    def f(x):
        return np.exp(x - np.sin(x[index]))

    x = rng.normal(size=(2, 5, 9))
    for g in (f, fwdad.jacfwd(f)):
        assert_near(prepared(g, x)[0](x), g(x))


def test_lengths_that_differ_raise():
    call, _ = prepared(lambda x, y: np.exp(x) + y, np.ones(5), np.ones(5))
    with pytest.raises(ValueError, match="broadcast"):
        call(np.ones(9), np.ones(8))


def test_without_the_library(monkeypatch, rng):
    """The switch: plain loops over elements, with the scalar functions."""
    monkeypatch.setenv("FWDAD_VECTOR_MATH", "0")

    def push(x, v):
        return fwdad.jvp(transcendental, x, v)

    call, text = prepared(push, np.ones(5), np.ones((2, 5)))
    assert "vector" not in text
    x, v = rng.standard_normal(77), rng.standard_normal((2, 77))
    assert_near(call(x, v), push(x, v))


def test_without_transcendental_functions_nothing_changes(rng):
    """Such loops are left to the compiler, and have NumPy's bits."""
    x, y = rng.standard_normal(33), rng.standard_normal(33)
    call, text = prepared(lambda x, y: (x * y + x / 3, np.sqrt(np.abs(x)) - y), x, y)
    assert "vector" not in text
    for a, b in zip(call(x, y), (x * y + x / 3, np.sqrt(np.abs(x)) - y), strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("n", every(2, [300, 1000]))
def test_long_sum(n, tmp_path, rng):
    """Of 2n operations, each of which the next one uses, become loops of bounded length."""
    lines = ["def f(x, y):", "    s = x", *(f"    s = s * y + {k}.5" for k in range(n))]
    path = tmp_path / "long_sum.py"
    path.write_text("\n".join([*lines, "    return s", ""]), encoding="utf-8")
    names = runpy.run_path(str(path))
    x, y = rng.standard_normal(5), rng.uniform(0.2, 0.4, 5)
    call, _ = prepared(names["f"], x, y)
    assert_allclose(call(x, y), names["f"](x, y), rtol=1e-14)


@pytest.mark.parametrize("n", [5, 8, 64])
def test_quotients_of_a_reverse_pass(n, rng):
    """Their guarded products are one loop over vectors; a cotangent of zero stays zero."""

    def f(x, y, w):
        length = np.sqrt(x * x + y * y)
        return np.sum(w * (x / length)) + np.sum(w * (y / length) ** 2)

    gradient = fwdad.jit(fwdad.grad(f, argnums=(0, 1)))
    x, y, w = rng.standard_normal((3, n))
    found = gradient(x, y, w)
    for k in range(2):
        for j in range(n):
            moved = [x.astype(complex), y.astype(complex), w]
            moved[k][j] += 1e-30j
            wanted = f(*moved).imag / 1e-30
            assert_allclose(found[k][j], wanted, rtol=1e-13, atol=1e-14)
    x[2] = y[2] = w[2] = 0.0  # 0 / 0, which nothing depends on
    with np.errstate(invalid="ignore"):
        for bar, before in zip(gradient(x, y, w), found, strict=True):
            assert bar[2] == 0
            assert_array_equal(np.delete(bar, 2), np.delete(before, 2))


def test_powers_of_single_precision_by_a_number_of_double_precision(rng):
    """A mask is of single precision, the power is not: these are vectors of different lengths."""

    def slope(x, k):
        return fwdad.grad(lambda x: np.sum(x**k))(x)

    x, k = rng.uniform(1.0, 2.0, 18).astype(np.float32), np.float64(2.5)
    call, _ = prepared(slope, x, k)
    assert_allclose(call(x, k), 2.5 * x.astype(float) ** 1.5, rtol=1e-6)


def test_a_deferred_copy_in_a_given_order():
    """The cotangent of a covariance reads such a copy, which waits; NumPy ran all of it."""

    def f(x):
        return np.sum(np.sin(np.cov(x, rowvar=False)))

    def g(x):
        y = (x * 2).copy("F")
        return y.ravel("K"), np.cos((y + x).copy("K"))

    slope, copied = fwdad.jit(fwdad.grad(f)), fwdad.jit(g)
    for x in (np.arange(12.0).reshape(4, 3) ** 0.5, np.ones((5, 2)), np.asfortranarray(np.eye(3))):
        assert_allclose(slope(x), fwdad.grad(f)(x), rtol=1e-12, atol=1e-14)
        for found, wanted in zip(copied(x), g(x), strict=True):
            assert_allclose(found, wanted, rtol=1e-15)
    assert "NumPy" not in fwdad.explain(slope)
