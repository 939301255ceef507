"""vmap: values and derivatives are those of calls one by one, in every mode."""

import pickle
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UnsupportedTypeError
from tests.differences import central_differences
from tests.tiers import every

X = np.random.default_rng(5).normal(size=(5, 4))


def field(x):
    return np.sin(x[0]) * x[1:] + np.sum(x)


def number(x):
    return np.sum(np.sin(x) * x)


def branching(x):
    if x[0] > 0.0:
        return x[0] ** 2 * x[1]
    total = 0.0
    for k in range(1, len(x)):
        total += x[k] * x[0]
    return total


def writing(x):
    x[0] = x[1] * 2.0
    return x * x


FUNCTIONS = [field, number, branching, writing]


def each(f, X):
    return np.stack([f(x.copy()) for x in X])


def modes(f):
    """As it is, of a function under jit, and under jit as a whole."""
    return [fwdad.vmap(f), fwdad.vmap(fwdad.jit(f)), fwdad.jit(fwdad.vmap(f))]


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_values(f):
    wanted = each(f, X)
    plain, *compiled = modes(f)
    given = X.copy()
    assert_array_equal(plain(given), wanted)
    assert_array_equal(given, X)
    for g in compiled:
        for points in (X, X[:1], X[:3]):
            assert_allclose(g(points), each(f, points), rtol=1e-14, atol=1e-15)
    whole = fwdad.jit(plain)
    for n in (50, 51, 200):
        points = np.linspace(-1.0, 1.0, 4 * n).reshape(n, 4)
        assert_allclose(whole(points), each(f, points), rtol=1e-14, atol=1e-15)
    assert whole.traces == 1


@pytest.mark.every(6, first=4)
@pytest.mark.parametrize(("f", "n"), every(3, product(FUNCTIONS, [1, 2, 3, 7])))
def test_derivatives_of_it(f, n, rng):
    """Of all points together: forward for N directions, backwards, and second derivatives."""
    V = rng.standard_normal((n, *X.shape))
    J = [central_differences(f, x) for x in X]
    pushed = np.stack([np.stack([j @ v for j, v in zip(J, W, strict=True)]) for W in V])
    bar = rng.standard_normal(each(f, X).shape)
    pulled = np.stack([np.tensordot(b, j, np.ndim(b)) for j, b in zip(J, bar, strict=True)])
    for g in modes(f):
        assert_allclose(fwdad.jvp(g, X, V)[1], pushed, rtol=1e-6, atol=1e-7)
        assert_allclose(fwdad.vjp(g, X)[1](bar), pulled, rtol=1e-6, atol=1e-7)

        def total(X, g=g):
            return np.sum(g(X) * bar)

        assert_allclose(fwdad.jit(fwdad.grad(total))(X), pulled, rtol=1e-6, atol=1e-7)
        found = fwdad.jit(lambda X, V, g=g: fwdad.jvp(g, X, V)[1])(X, V)
        assert_allclose(found, pushed, rtol=1e-6, atol=1e-7)


@pytest.mark.slow_cases("branching")
@pytest.mark.parametrize("f", [number, branching])
def test_of_derivatives(f):
    """In any order with the transforms, and nested."""
    gradients = each(fwdad.grad(f), X)
    hessians = each(lambda x: fwdad.hessian(f, x), X)
    for g in modes(fwdad.grad(f)):
        assert_allclose(g(X), gradients, rtol=1e-13, atol=1e-14)
    for g in modes(fwdad.jacfwd(fwdad.grad(f))):
        assert_allclose(g(X), hessians, rtol=1e-12, atol=1e-13)
    many = np.stack([X, 2.0 * X])
    for g in modes(fwdad.vmap(fwdad.grad(f))):
        assert_allclose(g(many), np.stack([each(fwdad.grad(f), Y) for Y in many]), rtol=1e-13)
    v = np.ones(4)
    for g in modes(lambda x: fwdad.hvp(f, x, v)):
        assert_allclose(g(X), hessians @ v, rtol=1e-12, atol=1e-13)


def test_axes():
    def f(a, x, s):
        return a @ x * s

    a, s = np.arange(12.0).reshape(3, 4), np.arange(1.0, 6.0)
    wanted = np.stack([f(a, x, t) for x, t in zip(X, s, strict=True)])
    for make in (lambda g: g, fwdad.jit):
        assert_allclose(make(fwdad.vmap(f, (None, 0, 0)))(a, X, s), wanted)
        assert_allclose(make(fwdad.vmap(f, (None, 1, 0), 1))(a, X.T.copy(), s), wanted.T)
        assert_allclose(make(fwdad.vmap(f, (None, -1, 0), -1))(a, X.T.copy(), s), wanted.T)
        assert_allclose(make(fwdad.vmap(f, (None, 0, None)))(a, X, 2.0), X @ a.T * 2.0)
        assert_allclose(make(fwdad.vmap(lambda x, *, s: x * s))(X, s=s), X * s[:, None])


class Point(NamedTuple):
    x: np.ndarray
    y: np.ndarray


def test_structures():
    def f(p, d):
        return {"sum": p.x + d["z"][0], "point": Point(p.x * p.y, p.y), "list": [p.x, (p.y,)]}

    p, d = Point(X[:, 0], X), {"z": (X[:, 1],)}
    for g in (fwdad.vmap(f), fwdad.jit(fwdad.vmap(f))):
        found = g(p, d)
        assert_array_equal(found["sum"], X[:, 0] + X[:, 1])
        assert type(found["point"]) is Point
        assert_array_equal(found["point"].x, X[:, :1] * X)
        assert_array_equal(found["list"][1][0], X)
    shared = fwdad.vmap(lambda d: d["a"] * d["b"], ({"a": 0, "b": None},))
    assert_array_equal(shared({"a": X, "b": 3.0}), 3.0 * X)
    assert_array_equal(fwdad.jit(shared)({"a": X, "b": 3.0}), 3.0 * X)


def test_dtypes():
    for g in modes(lambda k: k * 2):
        found = g(np.arange(3))
        assert found.dtype == np.int64
        assert_array_equal(found, [0, 2, 4])
    for g in modes(lambda z: z * 1j):
        assert_array_equal(g(X[0] + 0j), X[0] * 1j)


def of_its_length(x):
    return x[: int(fwdad.stop_gradient(x[0]))]


@pytest.mark.parametrize("make", [lambda g: g, fwdad.jit])
def test_what_is_refused(make):
    with pytest.raises(ValueError, match="different numbers of points"):
        make(fwdad.vmap(lambda a, b: a + b))(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="there is no point"):
        make(fwdad.vmap(np.sin))(np.zeros(0))
    with pytest.raises(ValueError, match="None for all"):
        make(fwdad.vmap(lambda a: a, None))(X)
    with pytest.raises(ValueError, match="in_axes has 1 items for 2 arguments"):
        make(fwdad.vmap(lambda a, b: a + b, (0,)))(X, X)
    with pytest.raises(UnsupportedTypeError, match="holds, a float, which has no axis"):
        make(fwdad.vmap(lambda a, b: a + b))(X, 2.0)
    with pytest.raises(UnsupportedTypeError, match="returns a str"):
        make(fwdad.vmap(lambda _: "text"))(X)


def test_values_of_different_shapes():
    with pytest.raises(ValueError, match="different shapes at different points"):
        fwdad.vmap(lambda x: x[x > 0.5])(np.array([[1.0, 2.0], [0.0, 1.0]]))


def test_axes_that_are_none():
    for axes in (True, 1.5, "x", (0, "y"), {"a": 2.0}):
        with pytest.raises(UnsupportedTypeError, match="in_axes must be ints or None"):
            fwdad.vmap(np.sin, axes)
    with pytest.raises(UnsupportedTypeError, match="out_axes must be an int"):
        fwdad.vmap(np.sin, 0, None)
    with pytest.raises(UnsupportedTypeError, match="expected a function"):
        fwdad.vmap(3)


def test_a_method_and_a_pickle():
    class Model:
        scale = 3.0

        @fwdad.vmap
        def scaled(self, x):
            return x * 2.0

    with pytest.raises(UnsupportedTypeError, match="a Model, which has no axis"):
        Model().scaled(X)
    g = pickle.loads(pickle.dumps(fwdad.vmap(field)))
    assert_array_equal(g(X), each(field, X))


@pytest.mark.parametrize("f", [
    lambda x: (x.sum(), 1.0), lambda x: {"sum": x.sum(), "n": len(x)}, lambda _x: 2.0,
    lambda x: [x, np.zeros(2)],
])  # fmt: skip
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_constants_among_the_values(f, count, backend):
    wanted = fwdad.vmap(f)(X[:count])
    for made in (fwdad.jit(fwdad.vmap(f), backend=backend),
                 fwdad.jit(lambda x: fwdad.vmap(f)(x), backend=backend)):  # fmt: skip
        first, second = made(X[:count]), made(X[:count])
        for found in (first, second):
            assert type(found) is type(wanted)
            values = found.values() if isinstance(found, dict) else found
            for a, b in zip(values, wanted.values() if isinstance(wanted, dict) else wanted,
                            strict=True):  # fmt: skip
                assert_allclose(a, b)


def test_constants_where_points_are_named():
    f = fwdad.jit(lambda x: fwdad.vmap(lambda *, u: (u.sum(), 1))(u=x))
    for _ in range(2):
        assert_array_equal(f(X)[1], np.ones(5))
