"""Derivatives of first and second order, and transformed functions as functions."""

import functools
import inspect
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse.linalg
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.evaluation import evaluators
from tests.differences import difference_along
from tests.smooth import MATRIX, X, cubes, energy, energy_gradient, energy_hessian, product

# -- first and second order


def test_grad_and_value_and_grad():
    assert_allclose(fwdad.grad(energy)(X), energy_gradient(X), rtol=1e-15)
    y, gradient = fwdad.value_and_grad(energy, chunk=2)(X)
    assert y == energy(X)
    assert_allclose(gradient, energy_gradient(X), rtol=1e-15)
    assert_array_equal(fwdad.grad(np.sum)(MATRIX), np.ones((2, 3)))
    assert_array_equal(fwdad.grad(lambda x: np.sum(x).reshape(()))(X), np.ones(3))


@pytest.mark.parametrize("f", [cubes, lambda x: x[:1], lambda x: 1j * x[0], lambda _: "a"])
def test_gradient_of_something_else(f):
    with pytest.raises(fwdad.errors.NonScalarOutputError):
        fwdad.grad(f)(X)


@pytest.mark.parametrize("chunk", [1, 2, 3, None, "auto"])
def test_hessian_and_hvp(chunk):
    assert_allclose(fwdad.hessian(energy, X, chunk=chunk), energy_hessian(X), rtol=1e-14)
    v = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    H = energy_hessian(X)
    assert_allclose(fwdad.hvp(energy, X, v[0], chunk=chunk), H @ v[0], rtol=1e-14)
    assert_allclose(fwdad.hvp(energy, X, v, chunk=chunk), v @ H, rtol=1e-14)


def test_chunks_of_directions_of_hvp(monkeypatch):
    """All at once where one is given, which then goes the shortest way."""
    widths = []
    run = evaluators.run_forward

    def counted(f, arguments, seeds, width, **options):
        widths.append(width)
        return run(f, arguments, seeds, width, **options)

    monkeypatch.setattr(evaluators, "run_forward", counted)
    V = np.arange(15.0).reshape(5, 3)
    assert_allclose(fwdad.hvp(energy, X, V, chunk=2), V @ energy_hessian(X), rtol=1e-14)
    assert widths == [2]
    fwdad.hvp(energy, X, V[0], chunk=2)
    assert widths == [2]


def test_second_order_with_args():
    def f(x, k, *, p=2):
        return k * np.sum(x**p)

    assert_allclose(fwdad.hessian(f, X, args=(3.0,), kwargs={"p": 3}), np.diag(18 * X))
    assert_allclose(fwdad.hvp(f, X, np.ones(3), args=(3.0,), kwargs={"p": 3}), 18 * X)
    assert fwdad.hessian(f, X, args=(3.0,), argnums=1) == 0.0
    assert fwdad.hessian(lambda t: t**3, 2.0) == 12.0


def test_linearize():
    y, J = fwdad.linearize(product, X[:2], args=(X,), chunk=1)
    dense = fwdad.jacobian(product, X[:2], args=(X,)).reshape(6, 2)
    assert isinstance(J, scipy.sparse.linalg.LinearOperator)
    assert_array_equal(y, np.outer(X[:2], X))
    assert J.shape == (6, 2)
    assert J.dtype == np.float64
    v = np.array([[1.0, 0.5, 2.0], [3.0, -1.0, 0.0]])
    assert_allclose(J.matvec(v[:, 0]), dense @ v[:, 0])
    assert_allclose(J @ v, dense @ v)
    assert_allclose(J.rmatvec(np.arange(6.0)), np.arange(6.0) @ dense)
    assert_allclose(J.rmatmat(np.eye(6)[:, :3]), dense[:3].T)
    y, J = fwdad.linearize(lambda p: [p["a"] ** 2, p["b"] * p["a"]], {"a": 2.0, "b": X})
    assert_allclose(J @ np.eye(4), np.block([[4.0, np.zeros(3)], [X[:, None], 2.0 * np.eye(3)]]))


def test_stop_gradient():
    def f(x):
        held = fwdad.stop_gradient({"x": x, "s": x[0]})
        return x * held["x"] * held["s"]

    assert_array_equal(fwdad.jacobian(f, X), np.diag(X * X[0]))
    kept = fwdad.stop_gradient(X)
    assert_array_equal(kept, X)
    assert not np.shares_memory(kept, X)
    assert fwdad.stop_gradient(2.0) == 2.0


# -- transformed functions are functions


@pytest.mark.parametrize("transform", [fwdad.jacfwd, fwdad.grad, fwdad.value_and_grad])
def test_transformed_function_keeps_name_and_signature(transform):
    made = transform(energy)
    assert made.__name__ == "energy"
    assert made.__wrapped__ is energy
    assert inspect.signature(made) == inspect.signature(energy)


@pytest.mark.parametrize(
    "made",
    [
        fwdad.grad(energy),
        fwdad.value_and_grad(energy, chunk=2),
        fwdad.jacfwd(cubes, chunk=1),
        fwdad.jacfwd(fwdad.grad(energy)),
        fwdad.jacfwd(functools.partial(product, X), stack=True),
    ],
    ids=["grad", "value_and_grad", "jacfwd", "hessian", "partial"],
)
def test_transformed_function_pickles(made):
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_equal(again(X), made(X))
    assert again._options == made._options


def test_transformed_lambda_does_not_pickle():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(fwdad.grad(lambda x: x))


def test_jacfwd_of_jacfwd():
    third = fwdad.jacfwd(fwdad.jacfwd(fwdad.grad(lambda x: np.sum(x**3))))(X)
    expected = np.zeros((3, 3, 3))
    expected[[0, 1, 2], [0, 1, 2], [0, 1, 2]] = 6.0
    assert_allclose(third, expected, atol=1e-14)


class Fitted:
    """No composite of its attributes: each copy would be finalised, too."""

    def __init__(self, slope, at):
        self.slope = slope
        self.at = at

    def __del__(self):
        pass


class Background(threading.Thread):
    """Has attributes of a library, too."""

    def __init__(self, slope, at):
        super().__init__()
        self.slope, self.at = slope, [at]


class OfThread(threading.local):
    """Each thread has attributes of its own, which are not in the object's own ``__dict__``."""

    def __init__(self, slope, at):
        self.slope, self.at = slope, [at]


class HiddenOfThread(threading.local):
    __slots__ = ("at",)

    def __init__(self, slope, at):
        self.slope, self.at = slope, [at]

    def __getattribute__(self, name):
        raise AttributeError(name)


@pytest.mark.parametrize("make", [Fitted, Background, OfThread, HiddenOfThread])
@pytest.mark.parametrize(
    "derivative",
    [
        lambda f, x: fwdad.jvp(f, x, x),
        fwdad.jacobian,
        lambda f, x: fwdad.jacrev(f)(x),
        lambda f, x: fwdad.vjp(f, x)[1](None),
        lambda f, x: fwdad.jvp(lambda x: (x, [f(x)]), x, x),
    ],
)
def test_objects_without_a_tangent_type_lose_no_derivative(make, derivative):
    x = np.array([1.0, 2.0])
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match=r"attribute '(slope|at)' carries"):
        derivative(lambda x: make(x * 2, x.sum()), x)


def test_objects_of_constants_may_be_returned_beside_a_value():
    x, fitted = np.array([1.0, 2.0]), Fitted(np.ones(2), 3.0)
    (y, _), (y_dot, none) = fwdad.jvp(lambda x: (x * fitted.slope, fitted), x, x)
    assert_array_equal(y, y_dot)
    assert none is fwdad.NoTangent
    _, pullback = fwdad.vjp(lambda x: (x * fitted.slope, fitted), x)
    assert_array_equal(pullback((x, None)), x)


@pytest.mark.parametrize(
    "f",
    [
        lambda z: np.sum(np.abs(z) ** 2),
        lambda z: np.sum(z.real**2 * z.imag),
        lambda z: np.real(np.sum(z**3)),
    ],
)
def test_gradient_at_a_complex_point(f):
    """``df/d(Re z) + i df/d(Im z)``, beside differences along both axes."""
    z = np.array([1.0 + 2.0j, 3.0 - 1.0j])
    expected = [difference_along(f, z, e) + 1j * difference_along(f, z, 1j * e) for e in np.eye(2)]
    for gradient in (fwdad.grad(f)(z), fwdad.jit(fwdad.grad(f))(z), fwdad.vjp(f, z)[1](1.0)):
        np.testing.assert_allclose(gradient, expected, rtol=1e-8)
