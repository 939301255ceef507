"""Functions under ``jit`` that are called inside a derivative: their tapes are pushed forward."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

RNG = np.random.default_rng(3)
U, V, B = RNG.random((3, 5, 6))
P = np.array([1.0, 2.0])


def stepped(u, v, b, n):
    """Two fields of a grid, written in place."""
    for _ in range(n):
        before = u.copy()
        u[1:-1] = before[1:-1] + 0.1 * (before[2:] - 2 * before[1:-1] + before[:-2]) + b[1:-1]
        v += 0.1 * np.sin(u)


fast = fwdad.jit(stepped)


def program(step):
    def of_parameters(p):
        u, v, b = U * p[0], V.copy(), B * p[1]
        step(u, v, b, 3)
        return np.stack([u, v])

    return of_parameters


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_what_it_writes_into_its_arguments(chunk):
    found = fwdad.jacobian(program(fast), P, chunk=chunk, mode="forward")
    assert_allclose(found, central_differences(program(stepped), P), rtol=1e-7, atol=1e-9)
    reason = fwdad.explain(fwdad.jacfwd(program(fast)), P)
    assert "writes" not in reason


def test_the_caller_s_arrays_stay():
    u, v, b = U.copy(), V.copy(), B.copy()
    direction = np.cos(U)
    y, y_dot = fwdad.jvp(fast, u, direction, args=(v, b, 3), outputs="mutated")
    for given, own in ((u, U), (v, V), (b, B)):
        assert_array_equal(given, own)
    wanted = fwdad.jvp(stepped, u, direction, args=(v, b, 3), outputs="mutated")
    for found, right in zip((*y, *y_dot), (*wanted[0], *wanted[1]), strict=True):
        assert_allclose(found, right, rtol=1e-12, atol=1e-14)


def test_parts_of_arrays_are_written():
    def of_rows(step):
        def f(p):
            whole = np.outer(p[0] * np.arange(1.0, 8.0), np.ones(6)) * p[1]
            step(whole[1:6], whole[1:6] * 0.5, B, 2)
            return whole

        return f

    found = fwdad.jacobian(of_rows(fast), P, mode="forward")
    assert_allclose(found, central_differences(of_rows(stepped), P), rtol=1e-7, atol=1e-9)


KEPT = np.zeros(3)


def test_an_array_from_outside_is_written():
    @fwdad.jit
    def noted(x):
        KEPT[:] = x * x

    def f(x):
        noted(x)
        return KEPT * 2

    KEPT[:] = 0.0
    x = np.array([1.0, -2.0, 0.5])
    assert_allclose(fwdad.jacobian(f, x, mode="forward"), np.diag(4 * x), rtol=1e-14)
    assert_array_equal(KEPT, x * x)


def test_ints_are_written():
    @fwdad.jit
    def counted(counts, x):
        counts[0] += 3
        x *= 2.0

    def f(x):
        counts, y = np.zeros(2, int), x * x
        counted(counts, y)
        return y * counts[0]

    x = np.array([1.0, -2.0])
    assert_allclose(fwdad.jacobian(f, x, mode="forward"), np.diag(12 * x), rtol=1e-14)


def test_what_it_writes_and_returns_is_one_array():
    @fwdad.jit
    def doubled(u):
        u *= 2.0
        return u

    def f(x):
        u = x * x
        v = doubled(u)
        v += x
        return u

    x = np.array([1.0, -2.0])
    assert_allclose(fwdad.jacobian(f, x, mode="forward"), np.diag(4 * x + 1), rtol=1e-14)


def test_one_array_in_two_places_of_an_argument():
    c = np.array([2.0, 3.0])

    def product(pair, more):
        return pair[0] * pair[1] * c * more[0]

    def f(g):
        return lambda x: g([x, x], [B[0, :2] * x])

    x = np.array([1.5, -0.5])
    found = fwdad.jacobian(f(fwdad.jit(product)), x, mode="forward")
    assert_allclose(found, central_differences(f(product), x), rtol=1e-8, atol=1e-9)


@dataclass
class Model:
    """What a caller may hold in an object: an array, a number, a list, and a text."""

    weights: np.ndarray
    scale: float
    more: list
    name: str = "model"

    def apply(self, x):
        return np.sin(self.weights * x) * self.scale + self.more[0]


def of_model(x, model):
    y = model.apply(x)
    for i in range(1, len(x)):
        y[i] += y[i - 1] * model.scale
    return y * len(model.name)


class Slotted:
    """An object that is no record for a tape: it is looked at by identity."""

    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class OwnNew:
    """One whose attributes are not taken for arguments."""

    def __new__(cls, *_args):
        return object.__new__(cls)

    def __init__(self, held):
        self.held = held


def test_objects_among_the_arguments():
    x, fast_one = np.linspace(0.2, 1.0, 4), fwdad.jit(of_model)
    model = Model(np.cos(x), 0.5, [2.0])
    seeds = RNG.random((3, 4))
    found = fwdad.jvp(fast_one, x, seeds, args=(model,))
    wanted = fwdad.jvp(of_model, x, seeds, args=(model,))
    assert_allclose(found[0], wanted[0], rtol=1e-14)
    assert_allclose(found[1], wanted[1], rtol=1e-13)
    assert fwdad.cache_info(fast_one).traces == 1
    fwdad.jvp(fast_one, x, seeds, args=(Model(np.cos(x) + 1, 0.25, [1.0]),))
    assert fwdad.cache_info(fast_one).traces == 1


def test_objects_that_carry_tangents():
    x, fast_one = np.linspace(0.2, 1.0, 4), fwdad.jit(of_model)

    def of_parameters(f):
        return lambda p: f(x * p[0], Model(np.cos(x) * p[1], p[2], [p[0]]))

    p = np.array([1.0, 2.0, 0.5])
    found = fwdad.jacobian(of_parameters(fast_one), p, mode="forward")
    assert_allclose(found, central_differences(of_parameters(of_model), p), rtol=1e-7, atol=1e-9)
    model = Model(np.cos(x), 0.5, [2.0])
    J = fwdad.jacobian(lambda m: fast_one(x, m), model, mode="forward")
    wanted = fwdad.jacobian(lambda m: of_model(x, m), model, mode="forward")
    assert_allclose(J.weights, wanted.weights, rtol=1e-13, atol=1e-15)
    assert_allclose(J.scale, wanted.scale, rtol=1e-13)


@pytest.mark.parametrize("kind", [Slotted, OwnNew])
def test_objects_that_are_not_taken_apart_lose_nothing(kind):
    fast_one = fwdad.jit(lambda x, o: x * o.held)
    x = np.array([1.0, 2.0])
    found = fwdad.jacobian(lambda p: fast_one(p, kind(p * 2)), x, mode="forward")
    assert_allclose(found, np.diag(4 * x), rtol=1e-14)


def test_second_derivatives():
    def total(step):
        return lambda p: np.sum(program(step)(p) ** 2)

    found = fwdad.hessian(total(fast), P)
    gradient = fwdad.grad(total(stepped))
    assert_allclose(found, central_differences(gradient, P), rtol=1e-6, atol=1e-7)


def test_what_is_written_before_an_exception_stays():
    @fwdad.jit
    def filled(u, n):
        for k in range(n):
            u[k] = u[k] * 2.0

    def f(x):
        u = x * x
        try:
            filled(u, 5)  # one too many
        except IndexError:
            u[0] += 1.0
        return u

    x = np.array([1.0, -2.0, 0.5])
    found = fwdad.jacobian(f, x, mode="forward")
    assert_allclose(found, central_differences(f, x), rtol=1e-8, atol=1e-9)
    assert_allclose(np.diag(found), 4 * x, rtol=1e-12)


def test_what_it_prints_is_printed_once(capsys):
    @fwdad.jit
    def told(u):
        print("sum", np.sum(u))
        u *= 2.0
        return u

    def f(x):
        return told(x * x) + x

    x = np.array([1.0, -2.0])
    assert_allclose(fwdad.jacobian(f, x, mode="forward"), np.diag(4 * x + 1), rtol=1e-14)
    assert capsys.readouterr().out.count("sum") == 1


def test_second_derivatives_of_what_is_recorded():
    """A dual of two derivatives was taken for an array of a class that has no tape."""
    cubes, seen = fwdad.jit(lambda x: np.sum(x**3)), set()

    def f(p):
        seen.add(1)  # changes what is outside: there is no tape
        return cubes(np.array([0.3, 1.0]) * p[0]) * p[1]

    s = 0.3**3 + 1.0
    a, b = P
    wanted = [[6 * a * b * s, 3 * a**2 * s], [3 * a**2 * s, 0.0]]
    assert_allclose(fwdad.hessian(f, P), wanted, rtol=1e-13, atol=1e-14)
    assert_allclose(fwdad.hvp(f, P, np.ones(2)), np.sum(wanted, axis=1), rtol=1e-13)


def returned_view(x):
    z = x * 1.0
    w = fwdad.jit(lambda a: a[::-1])(z)
    w[0] = 5.0
    return z * x + w


def returned_transpose(x):
    z = np.outer(x, x)
    w = fwdad.jit(lambda a: a.T)(z)
    w[0] = 5.0
    return z[:, 0] * x


def returned_with_its_view(x):
    def both(a):
        b = a * 2
        return b, b[::-1]

    w, u = fwdad.jit(both)(x * 1.0)
    w[0] = 5.0
    return u * x


def returned_twice(x):
    def both(a):
        b = a * 2
        return b, b

    w, u = fwdad.jit(both)(x * 1.0)
    w[0] = 5.0
    return u * x


@pytest.mark.parametrize(
    "f", [returned_view, returned_transpose, returned_with_its_view, returned_twice]
)
def test_memory_that_is_returned_and_written(f):
    """What is one array is one, tangents included."""
    x = np.array([0.4, 0.9, -0.3])
    expected = central_differences(f, x)
    for chunk in (1, 2, 3):
        found = fwdad.jacobian(f, x, mode="forward", chunk=chunk)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    for derivative in (fwdad.jacrev(f), fwdad.jit(fwdad.jacfwd(f), backend="numpy")):
        assert_allclose(derivative(x), expected, rtol=1e-6, atol=1e-8)
