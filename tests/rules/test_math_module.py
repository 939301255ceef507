"""Python's ``math`` and ``cmath``: their own values and exceptions, and the derivative."""

import cmath
import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.rules.core.define import call_rule
from fwdad.rules.core.registry import RULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule
from tests.rules.case import Case
from tests.rules.slopes import mp_slope, second_slope, slope

# name: a point where it is smooth, mpmath's function
REAL = {
    "acos": (0.3, mpmath.acos),
    "acosh": (1.7, mpmath.acosh),
    "asin": (0.3, mpmath.asin),
    "asinh": (0.3, mpmath.asinh),
    "atan": (0.3, mpmath.atan),
    "atanh": (0.3, mpmath.atanh),
    "cbrt": (1.3, mpmath.cbrt),
    "cos": (0.3, mpmath.cos),
    "cosh": (0.3, mpmath.cosh),
    "degrees": (0.3, mpmath.degrees),
    "erf": (0.3, mpmath.erf),
    "erfc": (1.3, mpmath.erfc),
    "exp": (0.3, mpmath.exp),
    "exp2": (0.3, lambda x: mpmath.power(2, x)),
    "expm1": (0.3, mpmath.expm1),
    "fabs": (-0.3, abs),
    "gamma": (1.8, mpmath.gamma),
    "lgamma": (1.8, mpmath.loggamma),
    "log": (1.3, mpmath.log),
    "log10": (1.3, mpmath.log10),
    "log1p": (0.3, mpmath.log1p),
    "log2": (1.3, lambda x: mpmath.log(x, 2)),
    "radians": (0.3, mpmath.radians),
    "sin": (0.3, mpmath.sin),
    "sinh": (0.3, mpmath.sinh),
    "sqrt": (1.3, mpmath.sqrt),
    "tan": (0.3, mpmath.tan),
    "tanh": (0.3, mpmath.tanh),
}
COMPLEX = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10"),
    *("sin", "sinh", "sqrt", "tan", "tanh"),
)
CASES = [
    *[
        Case(getattr(math, name), kind(x))
        for name, (x, _) in REAL.items()
        for kind in (float, np.float64)
    ],
    *[
        Case(getattr(cmath, name), z)
        for name in (*COMPLEX, "phase", "polar")
        for z in (0.5 + 0.3j, -1.2 - 0.3j, np.complex128(0.3 - 1.4j))
    ],
    *[Case(getattr(cmath, name), 1.4) for name in COMPLEX],
    *[Case(getattr(cmath, name), -0.4) for name in (*COMPLEX, "phase", "polar")],
    Case(cmath.log, 0.5 + 0.3j, 2.0 + 1.0j),
    Case(cmath.rect, 1.2, 0.4),
    Case(math.log, 3.0, 2.0),
    Case(math.log, 3, 2.5),
    Case(math.atan2, 0.3, -0.5),
    Case(math.copysign, 0.3, -1.0),
    Case(math.fmod, 5.3, 1.2),
    Case(math.remainder, 5.3, 1.2),
    Case(math.pow, 1.2, 2.3),
    Case(math.pow, -1.2, 3),
    Case(math.ldexp, 0.3, 4),
    Case(math.frexp, 5.3),
    Case(math.modf, -5.3),
    Case(math.nextafter, 1.1, 2.0),
    Case(math.hypot, 1.0, 2.0, -3.0),
    Case(math.hypot, -1.7),
    Case(math.dist, [1.0, 2.0], (3.0, 5.0)),
    Case(math.dist, np.array([1.0, 2.0]), [3.0, 5]),
    Case(math.fsum, [1.0, 2.0, 4]),
    Case(math.fsum, np.array([1.0, 2.0])),
    Case(math.prod, [1.5, 2.0, 4.0]),
    Case(math.prod, (1.5, 0.0, 3), start=2.0),
    Case(math.prod, np.array([1.5, 0.0, 0.0])),
]
if hasattr(math, "sumprod"):
    CASES.append(Case(math.sumprod, [1.0, 2.0], (3.0, 5)))
if hasattr(math, "fma"):
    CASES.append(Case(math.fma, 1.2, 2.5, -0.7))

CONSTANT = [
    *[
        (getattr(math, n), (2.7,))
        for n in ("ceil", "floor", "trunc", "ulp", "isfinite", "isinf", "isnan")
    ],
    *[(getattr(cmath, n), (2.7 + 1j,)) for n in ("isfinite", "isinf", "isnan")],
    (math.isclose, (2.7, 2.7 + 1e-12)),
    (cmath.isclose, (2.7 + 1j, 2.7 + 1.1j)),
]
CASES += [Case(f, *args) for f, args in CONSTANT]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


def test_every_function_of_both_modules_has_a_rule():
    """All but those of whole numbers, whose arguments have no tangent space."""
    whole = {"comb", "factorial", "gcd", "isqrt", "lcm", "perm"}
    for module in (math, cmath):
        names = [n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))]
        assert not [n for n in names if n not in whole and getattr(module, n) not in RULES]


@pytest.mark.parametrize("name", REAL)
def test_first_and_second_derivative(name):
    x, reference = REAL[name]
    f = getattr(math, name)
    assert_allclose(slope(f, x), mp_slope(reference, x), rtol=2e-15)
    want = mp_slope(reference, x, order=2)
    assert_allclose(second_slope(f, x), want, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(("function", "args"), CONSTANT, ids=lambda v: getattr(v, "__name__", ""))
def test_locally_constant(function, args):
    y, y_dot = call_rule(function, args, (Chunk(np.ones(2)),) * len(args))
    assert y == function(*args)
    assert type(y) is type(function(*args))
    assert y_dot is ZERO


@pytest.mark.parametrize(
    ("f", "x", "error"),
    [
        (math.sqrt, -1.0, ValueError),
        (math.log, 0.0, ValueError),
        (math.acos, 1.5, ValueError),
        (math.atanh, 1.0, ValueError),
        (math.gamma, -1.0, ValueError),
        (math.exp, 1000.0, OverflowError),
        (lambda x: math.pow(x, -1), 0.0, ValueError),
        (lambda x: math.fmod(x, 0.0), 1.0, ValueError),
        (cmath.log, 0.0, ValueError),
    ],
)
def test_the_primal_raises_as_it_does_without_fwdad(f, x, error):
    with pytest.raises(error) as plain:
        f(x)
    with pytest.raises(error) as derived:
        fwdad.derivative(f, x)
    assert str(derived.value) == str(plain.value)


def test_the_value_is_that_of_math():
    """NumPy's own functions differ in the last digit on some machines."""
    for name, (x, _) in REAL.items():
        f = getattr(math, name)
        for k in range(20):
            y, _ = call_rule(f, (x * (1 - k / 100),), (Chunk(np.ones(1)),))
            assert y == f(x * (1 - k / 100))
            assert type(y) is float


def test_zero_lengths_have_tangent_zero():
    assert fwdad.grad(lambda x: math.hypot(*x))([0.0, 0.0]) == [0.0, 0.0]
    assert fwdad.grad(lambda x: math.dist(x, [1.0, 2.0]))([1.0, 2.0]) == [0.0, 0.0]
    _, (r_dot, _) = call_rule(cmath.polar, (0j,), (Chunk(np.ones(1, complex)),))
    assert_array_equal(r_dot.lanes, [0.0])


def test_polar_and_rect_are_inverse():
    lanes = Chunk(np.array([1.0, 1j, 0.3 - 2.0j]))
    for z in (0.5 + 0.3j, -1.2 - 0.3j, -2.0 + 0.0j):
        polar, polar_dot = call_rule(cmath.polar, (z,), (lanes,))
        back, back_dot = call_rule(cmath.rect, polar, polar_dot)
        assert_allclose(back, z, rtol=1e-15)
        assert_allclose(back_dot.lanes, lanes.lanes, rtol=1e-14)


def test_a_product_with_zeros_is_exact():
    assert fwdad.grad(math.prod)([3.0, 0.0, 5.0]) == [0.0, 15.0, 0.0]
    assert fwdad.grad(math.prod)([3.0, 0.0, 0.0]) == [0.0, 0.0, 0.0]


def test_in_a_model_of_scalars():
    """A pendulum's energy, as written without NumPy."""

    def energy(angle, speed, length=2.0):
        height = length * (1 - math.cos(angle))
        return 9.81 * height + math.pow(math.fabs(length * speed), 2) / 2

    slopes = fwdad.grad(energy, argnums=(0, 1))(0.7, -1.5)
    assert_allclose(slopes, [9.81 * 2 * math.sin(0.7), 4 * -1.5], rtol=1e-15)
