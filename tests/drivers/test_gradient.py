"""Gradients whose tape is found by the types and shapes of the arguments: what must not change."""

import operator

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.drivers import gradient as gradients
from fwdad.drivers import tape_cache
from fwdad.drivers.jitted_function import Jitted

WEIGHTS = np.array([2.0, 3.0])


class Model:
    """Holds what a loss reads."""

    def __init__(self, weights):
        self.weights = weights
        self.scale = 2.0

    def loss(self, x):
        return self.scale * np.sum(self.weights * x)


MODEL = Model(np.array([1.0, 4.0]))


def linear(x):
    return np.sum(WEIGHTS * x)


def of_two(x, y):
    return np.sum(x * x * y)


def of_model(x):
    return MODEL.scale * np.sum(MODEL.weights * x)


@pytest.fixture
def short(monkeypatch):
    """After the first three calls of a gradient nothing may be looked up, or run by Python."""

    def check(f, *args):
        found = [f(*args) for _ in range(3)]
        with monkeypatch.context() as patch:
            patch.setattr(Jitted, "find", None)
            patch.setattr(gradients, "_recorded", None)
            found.append(f(*args))
        for answer in found[1:]:
            for part, expected in (
                zip(answer, found[0], strict=True)
                if isinstance(answer, tuple)
                else [(answer, found[0])]
            ):
                assert_allclose(part, expected, rtol=0)
        return found[-1]

    return check


@pytest.mark.parametrize("f", [linear, of_model, MODEL.loss, lambda x: np.sum(WEIGHTS * x)])
def test_the_third_call_looks_nothing_up(f, short):
    expected = fwdad.jacobian(f, np.ones(2), mode="forward")
    assert_allclose(short(fwdad.grad(f), np.ones(2)), expected)


def test_numbers_and_several_arguments(short):
    assert short(fwdad.grad(lambda x, y: x * x * y), 3.0, 2.0) == 12.0
    gradient = fwdad.grad(of_two, argnums=(0, 1))
    assert_allclose(short(gradient, np.ones(2), np.full(2, 3.0)), [[6.0, 6.0], [1.0, 1.0]])
    y, x_bar = short(fwdad.value_and_grad(linear), np.ones(2))
    assert y == 5.0
    assert_allclose(x_bar, WEIGHTS)
    (x_bar,) = (short(fwdad.grad(fwdad.jit(linear, backend="numpy")), np.ones(2)),)
    assert_allclose(x_bar, WEIGHTS)


def test_results_are_in_memory_of_their_own():
    gradient = fwdad.grad(linear)
    for _ in range(5):
        x_bar = gradient(np.ones(2))
        assert not np.shares_memory(x_bar, WEIGHTS)
        x_bar[:] = 0.0
    assert_allclose(WEIGHTS, [2.0, 3.0])


def test_arguments_that_share_memory_are_distinguished():
    gradient = fwdad.grad(of_two, argnums=(0, 1))
    x = np.array([1.0, 2.0])
    for _ in range(4):
        gradient(x, x.copy())
    for answer in (gradient(x, x) for _ in range(4)):
        assert_allclose(answer, [2.0 * x * x, x * x])
    for _ in range(4):
        assert_allclose(fwdad.grad(lambda x: np.sum(x * WEIGHTS))(WEIGHTS), WEIGHTS)


def test_what_it_reads_from_outside_may_change(monkeypatch, short):
    x = np.ones(2)
    gradient = fwdad.grad(of_model)
    assert_allclose(short(gradient, x), [2.0, 8.0])
    monkeypatch.setattr(MODEL, "scale", 3.0)
    assert_allclose(short(gradient, x), [3.0, 12.0])
    monkeypatch.setattr(MODEL, "weights", np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert_allclose(short(gradient, x), [12.0, 18.0])
    monkeypatch.setattr(MODEL, "scale", 1)
    assert_allclose(short(gradient, x), [4.0, 6.0])


def test_what_it_reads_from_outside_may_carry_tangents():
    gradient = fwdad.grad(linear)
    for _ in range(4):
        gradient(np.ones(2))
    inner = fwdad.grad(of_model)
    for _ in range(4):
        inner(np.ones(2))

    def outer(w):
        MODEL.weights = w
        return np.sum(inner(np.ones(2)) * np.array([1.0, 10.0]))

    weights = MODEL.weights
    for _ in range(3):
        assert_allclose(fwdad.jacobian(outer, weights, mode="forward"), [2.0, 20.0])
        assert_allclose(fwdad.grad(outer)(weights), [2.0, 20.0])
    assert np.array_equal(MODEL.weights, weights)


def test_an_active_memory_behind_a_plain_array_is_seen():
    inner = fwdad.grad(of_two)
    for _ in range(4):
        inner(np.ones(2), np.ones(2))

    def outer(z):
        held = np.zeros(2)
        held[:] = z
        return np.sum(inner(held, np.array([1.0, 10.0])))

    for _ in range(3):
        assert_allclose(fwdad.jacobian(outer, np.ones(2), mode="forward"), [2.0, 20.0])


def test_second_derivatives_after_many_gradients(short):
    gradient = fwdad.grad(of_two)
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    short(gradient, x, y)
    assert_allclose(fwdad.jacobian(lambda x: gradient(x, y), x), np.diag(2 * y))
    assert_allclose(fwdad.grad(lambda x: np.sum(gradient(x, y)))(x), 2 * y)
    assert_allclose(fwdad.jvp(lambda y: gradient(x, y), y, np.ones(2))[1], 2 * x)


def test_another_function_under_the_same_name():
    def f(x):
        return np.sum(x)

    def other(x):
        return np.sum(x * x)

    gradient = fwdad.grad(f)
    for _ in range(4):
        assert_allclose(gradient(np.full(2, 3.0)), [1.0, 1.0])
    f.__code__ = other.__code__
    for _ in range(4):
        assert_allclose(gradient(np.full(2, 3.0)), [6.0, 6.0])


def test_output_is_repeated(capsys):
    def loud(x):
        print("called")
        return np.sum(x)

    gradient = fwdad.grad(loud)
    for _ in range(5):
        gradient(np.ones(2))
    assert capsys.readouterr().out == "called\n" * 5


def test_an_exception_is_the_function_s_own():
    def f(x):
        if x[0] > 1.0:
            message = "too large"
            raise ValueError(message)
        return np.sum(x)

    gradient = fwdad.grad(f)
    for _ in range(4):
        assert_allclose(gradient(np.ones(2)), [1.0, 1.0])
    with pytest.raises(ValueError, match="too large"):
        gradient(np.full(2, 2.0))
    with pytest.raises(TypeError):
        gradient(np.ones(2), 1.0)
    assert_allclose(gradient(np.ones(2)), [1.0, 1.0])


def test_what_the_value_alone_needs_is_left_out(monkeypatch):
    x = np.ones((3, 3))
    held = tape_cache.tape_for
    seen = []

    def noted(*args):
        seen.append(held(*args))
        return seen[-1]

    monkeypatch.setattr(tape_cache, "tape_for", noted)

    def f(a, b):
        return np.sum(np.exp(a @ b))

    def g(a, b):
        return np.sum(a @ b)

    for function, products in ((f, (2, 2)), (g, (1, 2))):
        for made, wanted in zip((fwdad.grad, fwdad.value_and_grad), products, strict=True):
            seen.clear()
            answer = made(function)(x, x)
            program = seen[0].last.tape.program
            names = [getattr(op, "function", None) for op in program.walk()]
            assert sum(n in (np.matmul, operator.matmul) for n in names) == wanted
            if made is fwdad.value_and_grad:
                assert answer[0] == function(x, x)


def test_what_raises_because_of_a_value_is_not_left_out():
    def f(x):
        return np.sum(x * x) + np.linalg.inv(np.zeros((2, 2)))[0, 0]

    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError):
            fwdad.grad(f)(np.ones(2))
