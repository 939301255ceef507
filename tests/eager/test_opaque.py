"""Classes with a tangent class of their own, through derivatives."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences, difference_along
from tests.eager.own_tangents import Angle, Rotation, Spin, Turn, moved, registered


@pytest.fixture(autouse=True)
def _registered():
    with registered():
        yield


def test_one_direction():
    y, y_dot = fwdad.jvp(lambda a: 3 * a.height() ** 2, Angle.of(0.7), Turn(1.0))
    assert_allclose(y, 3 * math.sin(0.7) ** 2)
    assert_allclose(y_dot, 6 * math.sin(0.7) * math.cos(0.7))


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_directions_and_results_of_the_class(chunk, count):
    turn, time = np.arange(count) - 1.0, np.arange(count) ** 2 + 0.5
    y, y_dot = fwdad.jvp(
        lambda x: (x["a"].turned(x["t"]), x["a"].turned(2 * x["t"]).height()),
        {"a": Angle.of(0.3), "t": 0.5},
        {"a": [Turn(rate) for rate in turn], "t": time},
        chunk=chunk,
    )
    assert_allclose([y[0].cos, y[0].sin], [math.cos(0.8), math.sin(0.8)])
    assert_allclose([each.rate for each in y_dot[0]], turn + time)
    assert_allclose(y_dot[1], (turn + 2 * time) * math.cos(1.3))


def squared_height(t):
    return Angle.of(t * t).height()


def test_made_inside():
    assert_allclose(fwdad.derivative(squared_height, 0.9), 1.8 * math.cos(0.81))


def pose(r, x):
    """A program: rotations made, composed, applied by operators and calls, in containers."""
    turn = Rotation.about(0.3 * x + np.array([0.1, -0.2, 0.4]))
    chain = [turn, r * turn, turn * r]
    y = x
    for each in chain:
        y = each @ y + np.sin(each(y))
    return y


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_rotations(chunk):
    rng = np.random.default_rng(1)
    r, x = Rotation.about(rng.normal(size=3)), rng.normal(size=3)
    w, v = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    y, y_dot = fwdad.jvp(
        lambda both: pose(*both), (r, x), ([Spin(each) for each in w], v), chunk=chunk
    )
    assert_allclose(y, pose(r, x), rtol=1e-14)
    expected = [
        difference_along(lambda h, k=k: pose(moved(r, h * w[k]), x + h * v[k]), 0.0)
        for k in range(5)
    ]
    assert_allclose(y_dot, expected, rtol=1e-7, atol=1e-8)


def test_jacobian_of_a_program_with_rotations_inside():
    r, x = Rotation.about(np.array([0.2, 0.5, -0.3])), np.array([0.4, -0.7, 1.1])
    expected = central_differences(lambda x: pose(r, x), x)
    for chunk in (1, 2, None):
        got = fwdad.jacobian(lambda x: pose(r, x), x, chunk=chunk)
        assert_allclose(got, expected, rtol=1e-7, atol=1e-8)


def test_jacobian_of_a_result_of_the_class():
    x = np.array([0.4, -0.7, 1.1])
    columns = fwdad.jacobian(lambda x: Rotation.about(0.5 * x), x, chunk=2)
    assert columns.shape == (3,)
    for k, spin in enumerate(columns):
        moving = difference_along(lambda x: Rotation.about(0.5 * x).matrix(), x, np.eye(3)[k])
        rate = Rotation.about(0.5 * x).matrix().T @ moving  # the matrix of the cross product
        assert_allclose(spin.w, [rate[2, 1], rate[0, 2], rate[1, 0]], atol=1e-8)


def test_seeds_and_scalings_of_the_chunk():
    def program(a):
        return a.turned(0.0).turned(1.0).height()

    _, y_dot = fwdad.jvp(program, Angle.of(0.2), [Turn(1.0), Turn(-2.0)])
    assert_allclose(y_dot, np.array([1.0, -2.0]) * math.cos(1.2))
    _, y_dot = fwdad.jvp(
        lambda x: x[0].turned(x[1]).height(), (Angle.of(0.2), 1.0), (fwdad.tangents.zero.ZERO, 1.0)
    )
    assert_allclose(y_dot, math.cos(1.2))


def test_a_result_that_does_not_move():
    _, y_dot = fwdad.jvp(lambda t: (Angle.of(1.0), t), 2.0, [1.0, 2.0])
    assert [turn.rate for turn in y_dot[0]] == [0.0, 0.0]


# -- nested


def test_second_derivative():
    t = 0.6
    second = 2 * math.cos(t * t) - 4 * t * t * math.sin(t * t)
    assert_allclose(fwdad.derivative(fwdad.jacfwd(squared_height), t), second)
    assert_allclose(fwdad.hessian(squared_height, t), second)


def test_an_inner_derivative_of_an_outer_instance():
    def f(a):  # cos(angle + s) at s = 0.4, differentiated by s: -sin(angle + 0.4)
        return fwdad.derivative(lambda s: a.turned(s).width(), 0.4)

    y, y_dot = fwdad.jvp(f, Angle.of(0.3), [Turn(1.0), Turn(2.0)])
    assert_allclose(y, -math.sin(0.7))
    assert_allclose(y_dot, np.array([-1.0, -2.0]) * math.cos(0.7))


def test_outer_and_inner_directions_are_kept_apart():
    def f(t):
        inner = fwdad.derivative(lambda s: Angle.of(t).turned(s).height(), 0.0)
        return inner * t  # cos(t) t

    assert_allclose(fwdad.derivative(f, 1.1), math.cos(1.1) - 1.1 * math.sin(1.1))


def test_derivatives_of_a_tangent():
    def speed(t):  # d/ds of the angle s t**2, at s = 1
        return fwdad.jvp(lambda s: Angle.of(s * t * t), 1.0, 1.0)[1].rate

    assert_allclose(fwdad.derivative(speed, 0.6), 1.2)
    assert_allclose(fwdad.derivative(fwdad.jacfwd(speed), 0.6), 2.0)

    def second(x):
        return fwdad.jacobian(lambda s: Angle.of(s @ x**2), np.ones(2))[1].rate

    for chunk in (1, 2):
        assert_allclose(fwdad.jacobian(second, np.array([0.6, 0.7]), chunk=chunk), [0.0, 1.4])


# -- what a program may ask of an instance


def test_methods_properties_and_constants_of_the_class():
    for f, scale in (
        (Angle.height, 1.0),
        (lambda a: a.twice_height(), 2.0),
        (lambda a: a.up, 3.0),
        (lambda a: getattr(a, "up") * 1.0, 3.0),  # noqa: B009  (the builtin is what is tested)
        (lambda a: a.turns * a.height(), 2 * math.pi),
        (lambda a: a.full() * a.height(), 2 * math.pi),
        (lambda a: sum([a.height(), *map(Angle.height, [a])]), 2.0),
    ):
        _, y_dot = fwdad.jvp(f, Angle.of(0.7), Turn(1.0))
        assert_allclose(y_dot, scale * math.cos(0.7))


def test_decisions_see_the_value():
    high = Angle.of(1.5)

    def f(a):
        assert isinstance(a, Angle)
        assert type(a) is Angle
        assert a < high
        assert not high < a
        assert a == Angle(a_plain.cos, a_plain.sin)
        assert a != high
        assert bool(a)
        assert hasattr(a, "cos")
        assert not hasattr(a, "tan")
        assert not callable(a)
        return min(a, high, key=Angle.height).height()

    a_plain = Angle.of(0.7)
    _, y_dot = fwdad.jvp(f, a_plain, Turn(1.0))
    assert_allclose(y_dot, math.cos(0.7))


def test_containers_and_closures_hold_instances():
    @dataclass
    class Arm:
        joint: Angle
        length: float

    def f(a, length):
        arms = {"upper": Arm(a, length), "lower": [Arm(a.turned(0.5), 2.0)]}

        def reach(arm):
            return arm.joint.height() * arm.length

        return reach(arms["upper"]) + sum(reach(arm) for arm in arms["lower"])

    _, y_dot = fwdad.jvp(lambda x: f(*x), (Angle.of(0.2), 1.5), (Turn(1.0), 1.0))
    assert_allclose(y_dot, 1.5 * math.cos(0.2) + math.sin(0.2) + 2 * math.cos(0.7))


def test_cached_functions_do_not_mix_tangents():
    @functools.cache
    def high(a):
        return a.height()

    high(Angle.of(0.7))
    _, y_dot = fwdad.jvp(high, Angle.of(0.7), Turn(1.0))
    assert_allclose(y_dot, math.cos(0.7))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_cached_function_that_reads_what_has_changed(n):
    """Python keeps its first result; the derivative of that cannot be told from the second's."""
    scale = [1.0]

    @functools.cache
    def scaled(v, k=None):
        return v * scale[0] if k is None else k

    def f(x):
        scale[0] = 1.0
        scaled.cache_clear()
        total = scaled(x * 2) + scaled(x * 2)
        scale[0] = 5.0
        return total + scaled(x * 2)

    assert f(1.5) == 9.0
    x = np.array([1.5, 2.0])
    for mode in ("forward", "reverse"):
        with pytest.raises(fwdad.errors.NondeterministicFunctionError, match="first result"):
            fwdad.jacobian(lambda x: f(x[0]), x, chunk=n, mode=mode)


def test_a_cached_function_at_equal_numbers():
    @functools.cache
    def square(v):
        return np.array([v * v, np.nan])

    x = np.array([0.7, 0.7])
    found = fwdad.jacobian(lambda x: square(x[0])[0] + 2.0 * square(x[1])[0], x)
    assert_allclose(found, [1.4, 2.8])


def test_stop_gradient_and_auxiliary_values():
    a = Angle.of(0.7)
    _, y_dot = fwdad.jvp(lambda a: a.height() * fwdad.stop_gradient(a).sin, a, Turn(1.0))
    assert_allclose(y_dot, math.cos(0.7) * math.sin(0.7))
    y, _, aux = fwdad.jvp(lambda a: (a.height(), a), a, Turn(1.0), has_aux=True)
    assert_allclose(y, math.sin(0.7))
    assert type(aux) is Angle
