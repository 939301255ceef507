"""Writing rules: registration, binding, functions that write into an argument."""

import ctypes
import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UndefinedDerivativeError
from tests.differences import central_differences


def scale_rows(a, factors):
    """A kernel that works in place and returns the largest factor."""
    a *= factors[:, None]
    return float(np.max(factors))


@fwdad.frule(scale_rows, mutates=(0,))
def scale_rows_frule(primals, tangents):
    (a, factors), (a_dot, factors_dot) = primals, tangents
    new = a * factors[:, None]
    new_dot = factors[:, None] * a_dot + a * factors_dot[:, None]
    k = int(np.argmax(factors))
    return (np.max(factors), new), (factors_dot[k], new_dot)


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_rule_of_a_function_that_writes(chunk):
    matrix = np.arange(6.0).reshape(3, 2)

    def f(x):
        work = matrix * x[0]
        largest = scale_rows(work, x)
        return work * largest

    def plain(x):
        return matrix * x[0] * x[:, None] * np.max(x)

    x = np.array([0.5, 2.0, 1.5])
    y, jacobian = fwdad.value_and_jacobian(f, x, chunk=chunk)
    assert_allclose(y, plain(x), rtol=1e-15)
    assert_allclose(jacobian, central_differences(plain, x), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("chunk", [1, 2])
def test_an_inactive_call_writes_once(chunk):
    outside = np.ones((3, 2))

    def f(x):
        scale_rows(outside, np.array([1.0, 2.0, 3.0]))
        return x * outside[2, 0]

    assert_array_equal(fwdad.jacobian(f, np.ones(2), chunk=chunk), 3.0 * np.eye(2))
    assert_array_equal(outside, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])


def test_a_second_rule_names_the_first():
    with pytest.raises(fwdad.errors.DuplicateRuleError, match=r"test_define\.py:\d+") as caught:
        fwdad.frule(scale_rows, mutates=(0,))(lambda primals, tangents: None)
    assert "override=True" in str(caught.value)


def test_an_active_option_is_refused():
    def shifted(x, *, by=0.0):
        return x + by

    @fwdad.frule(shifted)
    def shifted_frule(primals, tangents, *, by):
        return primals[0] + by, tangents[0]

    with pytest.raises(fwdad.errors.MissingRuleError, match="`by`"):
        fwdad.jacobian(lambda x: shifted(x, by=x[0]), np.ones(2))
    assert_array_equal(fwdad.jacobian(lambda x: shifted(x, by=2.0), np.ones(2)), np.eye(2))


def test_what_has_no_partial_says_of_which_function_and_argument():
    def scaled(x, power):
        return x * power

    fwdad.elementwise(scaled, lambda x, power, y: power, fwdad.no_derivative("it is a setting"))
    assert_allclose(fwdad.derivative(lambda x: scaled(x, 3.0), 2.0), 3.0)
    says = r"scaled has no rule .* its argument power: it is a setting\. "
    for derivative in (fwdad.derivative, fwdad.grad):
        with pytest.raises(UndefinedDerivativeError, match=says):
            derivative(lambda p: scaled(2.0, p))(3.0)
    without = fwdad.no_derivative("it is a setting")
    with pytest.raises(UndefinedDerivativeError, match=r"^the function has no rule .* argument"):
        without()


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def __call__(self, x):
        return self.stiffness * x**2

    def force(self, x):
        return self.stiffness * x

    @classmethod
    def unit(cls, x):
        return cls(1.0).force(x)


def triple_frule(primals, tangents, **options):
    return 3 * primals[-1], 30 * tangents[-1]


@pytest.mark.parametrize(
    ("f", "hint"),
    [
        (Spring(2.0), "function of your own"),
        (Spring(2.0).force, r"Write it for Spring\.force"),
        (Spring.unit, r"Write it for Spring\.unit\.__func__"),
        (Spring, "function of your own"),
        (functools.partial(pow, 2.0), "function of your own"),
        (functools.lru_cache(lambda x: 3 * x), "function of your own"),
        (np.vectorize(lambda x: 3 * x), "function of your own"),
        (fwdad.jit(lambda x: 3 * x), "function of your own"),
        (ctypes.CDLL(None).abs, "function of your own"),
    ],
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
def test_what_is_looked_into_takes_no_rule(f, hint):
    for register in (
        lambda: fwdad.frule(f, signature="(x)")(triple_frule),
        lambda: fwdad.elementwise(f, lambda x, y: 3.0, signature="(x)"),
        lambda: fwdad.locally_constant(f),
    ):
        with pytest.raises(fwdad.errors.UnsupportedTypeError, match=hint):
            register()


def test_rules_of_the_functions_of_methods_are_used():
    class Tripling:
        def __call__(self):
            """What cannot be called is no argument of an operation of a tape."""

        def method(self, x):
            return 3 * x

        @classmethod
        def of_class(cls, x):
            return 3 * x

        @staticmethod
        def static(x):
            return 3 * x

    for f in (Tripling.method, Tripling.of_class.__func__, Tripling.static):
        fwdad.frule(f, argnums="x")(triple_frule)
    one = Tripling()
    for f in (one.method, one.of_class, Tripling.of_class, one.static):
        for g in (lambda x, f=f: np.sum(f(x)), lambda x, f=f: np.sum(np.stack([*map(f, [x])]))):
            x = np.array([1.0, 2.0])
            for gradient in (fwdad.grad(g), fwdad.jit(fwdad.grad(g)), fwdad.grad(fwdad.jit(g))):
                assert_array_equal(gradient(x), [30.0, 30.0])
            assert_array_equal(fwdad.jacobian(g, x, mode="forward"), [30.0, 30.0])


def mean(f, low, high):
    return (f(low) + f(high)) / 2


@fwdad.frule(mean, argnums=("low", "high"))
def mean_frule(primals, tangents, *, f):
    (low, high), (low_dot, high_dot) = primals, tangents
    slopes = fwdad.derivative(f, low), fwdad.derivative(f, high)
    return mean(f, low, high), (slopes[0] * low_dot + slopes[1] * high_dot) / 2


HIDING = {
    "function": lambda x, low: mean(lambda t: x[0] * t**2, low, x[1]),
    "object": lambda x, low: mean(Spring(x[0]), low, x[1]),
    "method": lambda x, low: mean(Spring(x[0]).__call__, low, x[1]),
    "partial": lambda x, low: mean(functools.partial(lambda k, t: k * t**2, x[0]), low, x[1]),
    "only there": lambda x, low: mean(Spring(x[0]), low, 2.0),
}


@pytest.mark.parametrize("hiding", HIDING)
def test_derivatives_that_a_rule_is_not_given_are_refused(hiding):
    """They were lost on tapes, and on duals the result was one of a call that had ended."""
    x = np.array([1.5, 2.0, 3.0])

    def f(x):
        return HIDING[hiding](x, 1.0)

    assert f(x) == 3.75
    for mode in ("forward", "reverse"):
        for chunk in (1, 2, 3):
            with pytest.raises(fwdad.errors.MissingRuleError, match=r"not given all"):
                fwdad.jacobian(f, x, mode=mode, chunk=chunk)
    for ask in (fwdad.jit(f), fwdad.jit(fwdad.grad(f)), fwdad.jit(fwdad.jacfwd(f))):
        with pytest.raises(fwdad.errors.UntraceableError):
            ask(x)
    with pytest.raises(fwdad.errors.FwdadError):
        fwdad.grad(fwdad.jit(f))(x)


def test_what_a_rule_is_given_beside_constant_functions():
    def f(x):
        return mean(Spring(1.5), x[0], x[1])

    x = np.array([1.0, 2.0])
    expected = central_differences(f, x)
    spring = Spring(1.5)
    for g in (f, lambda x: mean(spring, x[0], x[1])):
        assert_allclose(fwdad.grad(g)(x), expected, rtol=1e-8)
        assert_allclose(fwdad.jacobian(g, x, mode="forward"), expected, rtol=1e-8)
    assert_allclose(fwdad.jit(fwdad.grad(g))(x), expected, rtol=1e-8)


def test_values_of_an_outer_derivative_inside_an_object():
    """The outer derivative runs through the inner rule's body."""

    def slope(k):
        return fwdad.derivative(lambda t: mean(Spring(k), t, 2.0), 3.0)

    assert fwdad.derivative(slope, 1.5) == 3.0


def test_locally_constant_functions_of_objects():
    def level(spring):
        return spring.stiffness - 0.5

    fwdad.locally_constant(level)
    assert fwdad.derivative(lambda k: k * level(Spring(2.5)), 3.0) == 2.0
    with pytest.raises(fwdad.errors.MissingRuleError, match="not given all"):
        fwdad.derivative(lambda k: k * level(Spring(k * 1.5)), 3.0)


def apply_to(f, x):
    return f(x)


@fwdad.frule(apply_to, argnums="x")
def apply_to_frule(primals, tangents, *, f):
    (x,), (x_dot,) = primals, tangents
    return f(x), 2 * f.stiffness * x * x_dot


def changed_between(x):
    spring = Spring(1.0)
    first = apply_to(spring, x)
    spring.stiffness = 2.0
    return first + apply_to(spring, x)


def changed_in_a_loop(x):
    spring, total = Spring(1.0), 0.0
    for _ in range(3):
        total = total + apply_to(spring, x)
        spring.stiffness += 1
    return total


@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("f", [changed_between, changed_in_a_loop])
def test_objects_that_change_between_calls_of_a_ruled_function(f):
    """On a tape both calls saw the object as the program left it."""
    x = np.array([1.0, -0.5])
    for g in (f, fwdad.jit(f)):
        assert_array_equal(g(x), f(x))
        assert_allclose(fwdad.jacobian(g, x), central_differences(f, x), rtol=1e-7, atol=1e-7)
        assert_allclose(fwdad.vjp(g, x)[1](np.ones(2)), np.diag(central_differences(f, x)))
        for n in (1, 2, 3):
            v = np.arange(2.0 * n).reshape(n, 2)
            slopes = np.diag(central_differences(f, x))
            assert_allclose(fwdad.jvp(g, x, v)[1], v * slopes, rtol=1e-7)
    assert_allclose(fwdad.jit(fwdad.grad(lambda x: np.sum(f(x))))(x), 2 * f(x) / x)


def test_objects_that_change_between_runs_of_a_tape():
    """What the rule read of the object was kept from the first run."""
    spring = Spring(1.0)
    gradient = fwdad.jit(fwdad.value_and_grad(lambda x: apply_to(spring, x)))
    for stiffness in (1.0, 5.0, 1.0):
        spring.stiffness = stiffness
        assert gradient(3.0) == (9.0 * stiffness, 6.0 * stiffness)


def energy(x):
    return np.sum(np.sin(x) ** 2)


def total_energy(x):
    return energy(x)


@fwdad.frule(total_energy)
def total_energy_frule(primals, tangents):
    return fwdad.call_rule(energy, primals, tangents)


def test_a_rule_that_differentiates_a_function_without_one():
    """Its derivative was zero on a tape."""
    x = np.array([0.4, 1.3, -0.7])
    expected = central_differences(total_energy, x)
    for mode in ("forward", "auto"):
        assert_allclose(fwdad.jacobian(total_energy, x, mode=mode), expected, rtol=1e-8)
    assert_allclose(fwdad.jit(fwdad.jacfwd(total_energy))(x), expected, rtol=1e-8)
    assert_allclose(fwdad.jacobian(fwdad.jit(total_energy), x), expected, rtol=1e-8)
    for n in (1, 2, 3):
        v = np.arange(3.0 * n).reshape(n, 3)
        pushed = fwdad.jit(lambda x, v: fwdad.jvp(total_energy, x, v)[1])(x, v)
        assert_allclose(pushed, v @ expected, rtol=1e-8)
    for gradient in (fwdad.grad(total_energy), fwdad.jit(fwdad.grad(total_energy))):
        with pytest.raises(fwdad.errors.MissingTransposeError, match="total_energy"):
            gradient(x)
