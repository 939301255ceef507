"""NumPy's numbers beside lists, ints among floats, lazy objects, complex pullbacks."""

import operator
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences
from tests.tiers import every

X = np.array([2.3, 3.1, 4.7])
OPERATORS = [operator.add, operator.sub, operator.truediv, operator.floordiv, operator.mod,
             operator.pow]  # fmt: skip
LISTS = [[3, 5, 2], (3.0, 5.0), [[1.0, 2.0], [3.0, 4.0]], range(1, 4)]


@pytest.mark.parametrize("k", every(2, range(len(LISTS))))
@pytest.mark.parametrize("function", OPERATORS)
@pytest.mark.parametrize("first", [True, False])
def test_number_of_numpy_beside_a_list(function, k, first):
    items = LISTS[k]

    def f(x):
        return function(x[0], items) if first else function(items, x[0])

    want = central_differences(f, X)
    for mode in ("forward", "reverse"):
        assert_allclose(fwdad.jacobian(f, X, mode=mode), want, rtol=1e-6, atol=1e-7)
    assert_allclose(fwdad.jit(f)(X), f(X))
    assert_allclose(fwdad.jit(fwdad.jacfwd(f))(X), want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("wrap", [fwdad.grad, lambda f: fwdad.jit(fwdad.grad(f))])
def test_number_of_python_beside_a_list_is_an_error_of_pythons(wrap):
    with pytest.raises(TypeError, match="unsupported operand"):
        wrap(lambda x: x - [1, 2])(2.0)


@pytest.mark.parametrize("x", [[1, 2.0], (1, 2.0), [[1, 2.0], [3.0, 4.0]], [np.int64(1), 2.0]])
def test_int_among_floats(x):
    def f(x):
        return np.sum(np.asarray(x[0]) * x[1])

    for ask in (fwdad.grad(f), fwdad.jacrev(f), fwdad.jacfwd(f), fwdad.jit(fwdad.grad(f))):
        with pytest.raises(TypeError, match=r"item \[0\].* is an int, which has no derivative"):
            ask(x)


def test_int_fields_of_structures_have_no_tangent():
    found = fwdad.grad(lambda p: p["a"] * p["n"])({"a": 2.0, "n": 3})
    assert found == {"a": 3.0, "n": fwdad.NoTangent}
    assert fwdad.jvp(lambda p: p[0] * p[1], [3, 2.0], [fwdad.NoTangent, 1.0])[1] == 3.0


@pytest.mark.parametrize(
    "f", [lambda _x: 3, lambda x: np.argmax(x), lambda x: np.argsort(x), lambda _x: np.arange(2)]
)
def test_derivative_of_an_int_is_zero_in_every_mode(f):
    """By rows, and under jit, the Jacobian was ``NoTangent``."""
    want = np.zeros((*np.shape(f(X)), 3))
    for derive in (fwdad.jacfwd, fwdad.jacrev):
        for found in (derive(f)(X), fwdad.jit(derive(f))(X), derive(fwdad.jit(f))(X)):
            assert_array_equal(found, want, strict=True)
    for g in (f, fwdad.jit(f)):
        y, y_dot = fwdad.jvp(g, X, X)
        assert_array_equal(y, np.asarray(f(X), float), strict=np.ndim(y) > 0)
        assert_array_equal(y_dot, want[..., 0])
    y, aux = fwdad.jit(partial(fwdad.jacobian, lambda x: (f(x), 7), has_aux=True))(X)
    assert_array_equal(y, want)
    assert aux == 7


class Lazy:
    """Returns for every name, by a slot that may not be set yet."""

    __slots__ = ("_items",)

    def __getattr__(self, name):
        return self._items[name]


HELD = Lazy()
HELD._items = {"w": 3.0}


def lazy(x):
    o = Lazy.__new__(Lazy)
    o._items = {"a": x}
    return o.a**2 * HELD.w


@pytest.mark.parametrize(
    "derive",
    [lambda f: lambda x: fwdad.derivative(f, x), fwdad.grad, lambda f: fwdad.jit(fwdad.grad(f)),
     lambda f: lambda x: fwdad.vjp(f, x)[1](1.0)],
)  # fmt: skip
def test_slots_and_getattr(derive):
    assert derive(lazy)(3.0) == 18.0
    second = fwdad.derivative(lambda x: fwdad.derivative(lazy, x), 3.0)
    assert second == 6.0


class Model:
    def apply(self, x, k=1.0):
        return x * k


def test_partial_of_a_bound_method():
    model = Model()
    f = lambda x: np.sum(partial(model.apply, k=2.0)(x))  # noqa: E731
    for derive in (fwdad.grad, lambda f: fwdad.jit(fwdad.grad(f))):
        assert_allclose(derive(f)(X), [2.0, 2.0, 2.0])


def test_complex_sum():
    def mixed(a):
        b = a + 1.0j
        return np.sum(np.real(b + b[0]))

    for derive in (fwdad.grad, lambda f: fwdad.jit(fwdad.grad(f))):
        assert_allclose(derive(mixed)(np.arange(3.0)), [4.0, 1.0, 1.0])


def test_pullback_of_a_complex_argument_stays_complex():
    def pull(z, u):
        return fwdad.vjp(np.real, z)[1](u)

    y, y_dot = fwdad.jvp(lambda u: pull(0.4 - 0.1j, u), 1.0, 1.0)
    assert isinstance(y, complex)
    assert isinstance(y_dot, complex)
    bars = fwdad.vjp(lambda p: pull(*p), (0.4 - 0.1j, 1.0))[1](1 + 2j)
    assert_allclose(bars[1], 1.0)


def test_tensorsolve():
    m = np.eye(3) + 0.1
    f = lambda m: np.sum(np.linalg.tensorsolve(m, m[:, 0] ** 2))  # noqa: E731
    want = fwdad.jacobian(f, m, mode="forward")
    assert_allclose(fwdad.grad(f)(m), want)
    assert_allclose(fwdad.jit(fwdad.grad(f))(m), want)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_sequence_times_an_integer_of_numpy_is_repeated(mode):
    def f(x):
        return np.concatenate([(x[0],) * np.int64(2), np.int64(3) * [x[1]]]) * x[0]

    def by_hand(x):
        return np.array([x[0], x[0], x[1], x[1], x[1]]) * x[0]

    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(f(x), by_hand(x))
    wanted = fwdad.jacobian(by_hand, x, mode="forward")
    np.testing.assert_allclose(fwdad.jacobian(f, x, mode=mode), wanted, rtol=1e-13)
    a = np.arange(6.0).reshape(2, 3)
    found = fwdad.jacobian(lambda x: np.resize(x, np.array([3, 3])), a, mode=mode)
    assert found.shape == (3, 3, 2, 3)
    np.testing.assert_array_equal(found.reshape(9, 6), np.eye(6)[np.arange(9) % 6])
