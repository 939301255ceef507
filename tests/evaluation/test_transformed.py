"""Evaluators without a point return functions; the forms that neighbours write."""

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import SeedError, UnsupportedTypeError
from tests.differences import central_differences
from tests.smooth import X, cubes

V = np.array([0.3, -1.0, 0.5])
AT_ONCE_AND_TRACED = pytest.mark.parametrize(
    "ways", [lambda f: f, lambda f: fwdad.jit(f, backend="numpy")], ids=["at once", "jit"]
)


def scaled(x, k=1.0, *, power=3):
    return k * x**power * x[0]


def total(x, k=1.0, *, power=3):
    return np.sum(scaled(x, k, power=power))


def both(x, y):
    return x * y + np.sin(x)


# -- without a point


@AT_ONCE_AND_TRACED
@pytest.mark.parametrize("options", [{}, {"mode": "reverse"}, {"chunk": 2, "stack": True}])
def test_jacobian_as_a_function(ways, options):
    J = ways(fwdad.jacobian(scaled, **options))
    assert_allclose(
        J(X, 2.0), central_differences(lambda x: scaled(x, 2.0), X), rtol=1e-6, atol=1e-6
    )
    assert_array_equal(J(X, 2.0), fwdad.jacobian(scaled, X, args=2.0, **options))
    assert_array_equal(J(X, power=2), fwdad.jacobian(scaled, X, kwargs={"power": 2}, **options))
    y, same = ways(fwdad.value_and_jacobian(scaled, **options))(X, 2.0)
    assert_array_equal(y, scaled(X, 2.0))
    assert_array_equal(same, J(X, 2.0))


@AT_ONCE_AND_TRACED
def test_hessian_and_its_products_as_functions(ways):
    H = ways(fwdad.hessian(total))
    gradient = fwdad.grad(total)
    assert_allclose(
        H(X, 2.0), central_differences(lambda x: gradient(x, 2.0), X), rtol=1e-6, atol=1e-6
    )
    assert_array_equal(H(X, 2.0), fwdad.hessian(total, X, args=2.0))
    assert_allclose(ways(fwdad.hvp(total))(X, V, 2.0, power=3), H(X, 2.0) @ V, rtol=1e-12)
    assert_allclose(fwdad.hvp(total)(X, np.stack([V, X])), np.stack([V, X]) @ H(X), rtol=1e-12)
    by_second = ways(fwdad.hessian(lambda k, x: total(x, k), argnums=1))
    assert_array_equal(by_second(2.0, X), H(X, 2.0))


def test_in_a_traced_function():
    f = fwdad.jit(lambda x: (fwdad.jacobian(cubes)(x), fwdad.derivative(math.sin)(x[0])))
    J, slope = f(X)
    assert_array_equal(J, np.diag(3 * X**2))
    assert slope == math.cos(X[0])


def test_several_arguments_and_aux():
    J = fwdad.jacobian(both, argnums=(0, 1))(X, V)
    assert_allclose(J[0], np.diag(V + np.cos(X)))
    assert_allclose(J[1], np.diag(X))
    J, aux = fwdad.jacobian(lambda x: (cubes(x), "aux"), has_aux=True)(X)
    assert_array_equal(J, np.diag(3 * X**2))
    assert aux == "aux"


@pytest.mark.parametrize("make", [fwdad.jacobian, fwdad.hessian, fwdad.hvp, fwdad.derivative])
def test_functions_are_named_and_pickled(make):
    made = make(total)
    assert repr(made).startswith(f"<fwdad.{make.__name__} of total")
    assert made.__name__ == "total"
    args = (2.0,) if make is fwdad.derivative else (X, V) if make is fwdad.hvp else (X,)
    made = make(cubes if make in (fwdad.jacobian, fwdad.derivative) else total)
    assert_array_equal(pickle.loads(pickle.dumps(made))(*args), made(*args))


@pytest.mark.parametrize("make", [fwdad.jacobian, fwdad.value_and_jacobian, fwdad.hessian,
                                  fwdad.hvp, fwdad.derivative])  # fmt: skip
def test_wrong_calls(make):
    name = make.__name__
    for given in ({"args": (1.0,)}, {"kwargs": {"k": 1.0}}):
        with pytest.raises(UnsupportedTypeError, match=rf"{name}\(f, x, args=…\)"):
            make(total, **given)
    with pytest.raises(UnsupportedTypeError, match=rf"{name}\(f\)\(x\)"):
        make(total)(x=X)
    with pytest.raises(UnsupportedTypeError, match="function"):
        make(3.0)
    if make is not fwdad.hvp:
        with pytest.raises(UnsupportedTypeError, match="None"):
            make(total, None)


def test_a_missing_direction():
    with pytest.raises(SeedError, match=r"hvp\(f, x, v\)"):
        fwdad.hvp(total, X)
    with pytest.raises(SeedError, match=r"hvp\(f\)\(x, v\)"):
        fwdad.hvp(total)(X)


def test_options_are_checked_when_they_are_given():
    with pytest.raises(ValueError, match="mode"):
        fwdad.jacobian(cubes, mode="sideways")
    with pytest.raises(SeedError, match="chunk"):
        fwdad.hessian(total, chunk="all")


# -- jvp of tuples


@AT_ONCE_AND_TRACED
def test_tuples_are_several_arguments_where_f_needs_them(ways):
    expected = V * V + X * X + np.cos(X) * V
    for kind in (tuple, list):
        pushed = ways(lambda x, y, kind=kind: fwdad.jvp(both, kind([x, y]), kind([y, x])))
        y, y_dot = pushed(X, V)
        assert_array_equal(y, both(X, V))
        assert_allclose(y_dot, expected)
    assert_allclose(fwdad.jvp(np.multiply, (X, V), (V, X))[1], V * V + X * X)


@AT_ONCE_AND_TRACED
def test_tuples_are_one_argument_where_f_has_one(ways):
    pushed = ways(lambda x, y: fwdad.jvp(lambda p: p[0] * p[1], (x, y), (y, x)))
    assert_allclose(pushed(X, V)[1], V * V + X * X)


@AT_ONCE_AND_TRACED
@pytest.mark.parametrize("f", [lambda x: x[0] ** 2, np.sin, lambda *p: p[0] * 2, min])
def test_tuples_that_could_be_either_are_refused(f, ways):
    pushed = ways(lambda x, v: fwdad.jvp(f, (x,), (v,)))
    with pytest.raises(UnsupportedTypeError, match=r"jvp\(f, a, da\).*argnums=\(0,\)"):
        pushed(X, V)


def test_what_the_message_says_works():
    f = lambda x, k=2.0: x[0] * k  # noqa: E731
    with pytest.raises(UnsupportedTypeError, match=r"jvp\(f, a, \(da, db\), args=\(b,\)"):
        fwdad.jvp(f, (X, V), (V, X))
    assert_array_equal(fwdad.jvp(f, (X, V), ((V, X),), argnums=(0,))[1], V * 2.0)
    parts = fwdad.jvp(both, X, (V, X), args=(V,), argnums=(0, 1))[1]
    assert_allclose(parts, V * V + X * X + np.cos(X) * V)


def test_a_product_with_a_hessian_takes_a_tuple_as_one_argument():
    H_v = fwdad.hvp(lambda p: p[0] @ p[1], (X, V), (V, X))
    assert_array_equal(H_v[0], X)
    assert_array_equal(H_v[1], V)
    assert_array_equal(fwdad.hvp(lambda p: p[0] @ p[0], (X,), (V,))[0], 2 * V)


# -- vjp of several arguments, and linearize


@AT_ONCE_AND_TRACED
def test_pullbacks_of_several_arguments(ways):
    def pulled(x, y):
        value, pullback = fwdad.vjp(both, x, y)
        x_bar, y_bar = pullback(np.ones(3))
        return value, x_bar, y_bar

    value, x_bar, y_bar = ways(pulled)(X, V)
    assert_array_equal(value, both(X, V))
    assert_allclose(x_bar, V + np.cos(X))
    assert_array_equal(y_bar, X)
    assert_array_equal(fwdad.vjp(both, X, V, argnums=1)[1](np.ones(3)), X)
    assert_array_equal(fwdad.vjp(both, X, args=(V,), argnums=1)[1](np.ones(3)), X)


def test_linearize_of_several_arguments_is_refused():
    with pytest.raises(UnsupportedTypeError, match=r"lambda p: f\(\*p\)"):
        fwdad.linearize(both, X, V)
    _, J = fwdad.linearize(lambda p: both(*p), (X, V))
    assert_allclose(J((V, X)), V * V + X * X + np.cos(X) * V)


def untraceable(x):
    return np.outer(x, x) * float(str(2.0))


@pytest.mark.parametrize("f", [lambda x: np.outer(x, x) * 2.0, untraceable])
def test_operators_as_functions(f):
    _, J = fwdad.linearize(f, X)
    assert_allclose(J(V), 2 * (np.outer(X, V) + np.outer(V, X)))
    assert_allclose(J.matvec(V), J(V).ravel())
    square = np.arange(9.0).reshape(3, 3)
    _, J = fwdad.linearize(f, X[:1])
    assert J(V[:1]).shape == (1, 1)
    _, J = fwdad.linearize(lambda x: x * 2.0, square)
    assert_array_equal(J(square), 2 * square)
    assert_array_equal(J(square.ravel()), 2 * square.ravel())
    assert J(np.ones((9, 2))).shape == (9, 2)


def test_operators_of_numbers_and_structures():
    _, J = fwdad.linearize(math.sin, 0.5)
    assert J(2.0) == 2 * math.cos(0.5)
    assert type(J(2.0)) is float
    _, J = fwdad.linearize(lambda p: {"y": p["a"] * p["b"], "n": 3}, {"a": X, "b": 2.0})
    found = J({"a": V, "b": 1.0})
    assert_allclose(found["y"], 2 * V + X)
    assert found["n"] is fwdad.NoTangent


@pytest.mark.parametrize("v", [{"a": V}, {"a": V[:2], "b": 1.0}, {"a": 1j * V, "b": 1.0}, V])
def test_directions_that_do_not_fit(v):
    _, J = fwdad.linearize(lambda p: p["a"] * p["b"], {"a": X, "b": 2.0})
    with pytest.raises(SeedError):
        J(v)


def test_a_direction_that_carries_a_derivative_is_refused():
    _, J = fwdad.linearize(np.sin, X)
    with pytest.raises(fwdad.errors.DualLeakError):
        fwdad.jacobian(J, V, mode="forward")
