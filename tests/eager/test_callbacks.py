"""Code in C that calls the user's functions, and calls of C that need more than a rule."""

import contextvars
import heapq
import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.cases.check import check_jacobian, line_of, programs, with_widths
from tests.differences import central_differences

scipy_integrate = pytest.importorskip("scipy.integrate")
scipy_optimize = pytest.importorskip("scipy.optimize")
PROGRAMS, program = programs()

X = np.array([0.7, 1.3, 0.4])
LEVEL = contextvars.ContextVar("LEVEL", default=1.0)


class Length:
    """Knows how to be subtracted from a number, and how to become one."""

    def __init__(self, v):
        self.v = v

    def __rsub__(self, other):
        return other * 2 - self.v

    def __rtruediv__(self, other):
        return other / self.v

    def __float__(self):
        return float(self.v)


@program(X)
def reflected_operators_beside_numpys_numbers(x):
    return np.array([x[1] - Length(x[0]), x[2] / Length(x[1]), np.float64(2.0) - Length(x[2])])


@program(X)
def arange_of_active_bounds(x):
    made = [np.arange(x[0], 4.0, x[2]), np.arange(x[1] * 3), np.arange(x[0], x[0] + 2.5)]
    return np.concatenate(made) * x[1]


@program(X)
def smallest_and_largest(x):
    low, high = heapq.nsmallest(2, x), heapq.nlargest(1, list(x), key=lambda v: -v)
    return np.array([low[0] * low[1], high[0] ** 2, *heapq.nsmallest(1, [(v, 2) for v in x])[0]])


@program(X)
def distinct_values(x):
    return np.array(list(dict.fromkeys(x))) * len(dict.fromkeys([x[0], x[1]], 0.0))


class Doubled(tuple):
    __slots__ = ()

    def __new__(cls, items):
        return super().__new__(cls, items)


class Kept(list):
    def __init__(self, items, factor):
        super().__init__(items)
        self.factor = factor


class Triple(NamedTuple):
    a: float
    b: float
    c: float


@program(X)
def classes_that_extend_containers(x):
    t, k = Doubled(x * 2), Kept(x**2, x[0])
    a, b, c = Triple._make(x * 3)
    return np.array([t[0] * k[1] * k.factor, a * b, c * Triple._make(x)._replace(b=x[0]).b])


@program(X)
def lists_among_arrays_in_lists(x):
    chosen = np.select([[True, False], [True, True]], [[x[0], 1.0], [x[1], x[2]]], [x[2], 3.0])
    other = np.select([[False, True]], [np.ones(2)], default=[x[0] * x[1], 2.0])
    return chosen * other[0] + np.choose([0, 1], [[x[0], 1.0], x[1:]])


@program(X)
def context_variables(x):
    outer = LEVEL.set(x[0])
    inner = LEVEL.set(LEVEL.get() * x[1])
    y = x * LEVEL.get()
    LEVEL.reset(inner)
    y = y * LEVEL.get()
    LEVEL.reset(outer)
    return y * LEVEL.get()


@pytest.mark.parametrize(("program", "chunk"), with_widths(PROGRAMS))
def test_program(program, chunk):
    check_jacobian(program, chunk)


@pytest.mark.parametrize("chunk", [1, None])
def test_context_variables(chunk):
    given, default = contextvars.ContextVar("given"), contextvars.ContextVar("d", default=2.0)
    unset, again = contextvars.ContextVar("unset"), contextvars.ContextVar("again")
    given.set(3.0)

    def f(x):
        given.set(given.get() * x[0])
        given.set(given.get() * 2)
        default.set(x[1] + default.get())
        unset.set(x[1])
        again.reset(again.set(x[1]))
        again.set(x[2])
        return x * given.get() * unset.get() * again.get() * default.get()

    variables = (given, default, unset, again)
    plain, derived = contextvars.copy_context(), contextvars.copy_context()
    expected = plain.run(f, X)
    value, _ = derived.run(fwdad.value_and_jacobian, f, X, chunk=chunk)
    assert_array_equal(value, expected)
    for v in variables:
        assert derived[v] == plain[v]
        assert type(derived[v]) is type(plain[v])


def test_arange_has_numpys_values():
    f = lambda x: np.arange(x[0], 5.0, x[1] / 10)  # noqa: E731
    value, jacobian = fwdad.value_and_jacobian(f, X)
    assert_array_equal(value, f(X))
    steps = np.arange(len(value))
    expected = np.stack([np.ones(len(steps)), steps / 10, np.zeros(len(steps))], axis=1)
    assert_allclose(jacobian, expected, rtol=1e-15)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: scipy_integrate.ode(lambda t, y: x[0]).set_initial_value(0.0).integrate(1.0),
        lambda x: scipy_optimize.leastsq(lambda t: t - x, np.zeros(3))[0],
    ],
    ids=line_of,
)
def test_solvers_in_c_over_closures_say_so(f):
    with pytest.raises((fwdad.errors.DualLeakError, fwdad.errors.MissingRuleError)) as found:
        fwdad.jacobian(f, X)
    assert found.value.filename == __file__
    assert found.value.lineno == f.__code__.co_firstlineno


def test_solvers_in_c_over_constants_run():
    f = lambda x: x * scipy_optimize.brentq(lambda t: t**2 - 2.0, 0.0, 2.0)  # noqa: E731
    assert_allclose(fwdad.jacobian(f, X), np.sqrt(2) * np.eye(3))


@pytest.mark.parametrize("options", [{"otypes": [float]}, {}, {"otypes": "d", "excluded": {1}}])
def test_vectorized_functions_that_have_been_called(options):
    """``np.vectorize`` keeps a ufunc, in C, of the function that it was called with first."""
    cdf = np.vectorize(lambda z, k=2.0: math.erf(z / k), **options)

    def f(x):
        return x[0] * cdf(x) + cdf(x[1])

    plain = cdf(X)
    want = central_differences(f, X)
    for mode in ("forward", "reverse"):
        assert_allclose(fwdad.jacobian(f, X, mode=mode), want, rtol=1e-6, atol=1e-8)
    assert_array_equal(cdf(X), plain)
