"""Ties, kinks, zeros, infinities and branches: the documented choice at each."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad import derivative, grad, jacobian
from tests.differences import central_differences

CHUNKS = [1, 2, 3, None]
INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def quiet():
    """The programs divide by zero and take the logarithm of it on purpose."""
    with np.errstate(all="ignore"):
        yield


# -- branches and selections


@pytest.mark.parametrize("x", [1.0, np.float64(1.0)])
def test_branch_at_equality_is_the_one_taken(x):
    f = lambda x: 1 if x == 1 else x**2  # noqa: E731
    assert derivative(f, x) == 0.0
    assert derivative(f, x * 3) == 6.0


@pytest.mark.parametrize("chunk", CHUNKS)
def test_unique_takes_the_first_of_equals(chunk):
    x = np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    assert_array_equal(grad(lambda x: np.sum(np.unique(x) ** 2), chunk=chunk)(x), [2, 4, 0, 0, 6])


@pytest.mark.parametrize("chunk", CHUNKS)
def test_sort_of_ties_keeps_order(chunk):
    x = np.array([2.0, 1.0, 2.0, 1.0])
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    assert_array_equal(
        grad(lambda x: np.sort(x, kind="stable") @ weights, chunk=chunk)(x), [3, 1, 4, 2]
    )


@pytest.mark.parametrize("chunk", CHUNKS)
def test_determinant(chunk):
    x = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, np.pi, 3.0]])
    expected = np.array([[6.0, 0.0, 0.0], [0.0, 3.0, -np.pi], [0.0, 0.0, 2.0]])
    assert_allclose(grad(np.linalg.det, chunk=chunk)(x), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_determinant_of_a_singular_matrix(chunk):
    """Cofactors exist where the inverse does not."""
    x = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 5.0]])
    expected = np.array([[20.0, -10.0, 0.0], [-10.0, 5.0, 0.0], [0.0, 0.0, 0.0]])
    assert_allclose(grad(np.linalg.det, chunk=chunk)(x), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("function", [np.maximum, np.fmax, np.minimum, np.fmin, max, min])
def test_tie_goes_to_the_first_argument(function, chunk):
    if function in (max, min):
        assert_array_equal(
            grad(lambda x: function(x[0], x[1]), chunk=chunk)(np.ones(2)), [1.0, 0.0]
        )
        assert_array_equal(
            grad(lambda x: function([x[1], x[0]]), chunk=chunk)(np.ones(2)), [0.0, 1.0]
        )
        return
    a, b = jacobian(function, np.ones(3), args=(np.ones(3),), argnums=(0, 1), chunk=chunk)
    assert_array_equal(a, np.eye(3))
    assert_array_equal(b, np.zeros((3, 3)))


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("function", [np.max, np.min, np.maximum.reduce, np.ndarray.max, np.nanmax])
def test_tie_of_a_reduction_goes_to_the_first(function, chunk):
    assert_array_equal(grad(function, chunk=chunk)(np.full(4, 2.0)), [1.0, 0.0, 0.0, 0.0])
    rows = jacobian(lambda x: np.max(x, axis=1), np.array([[1.0, 3, 3], [2, 2, 1]]), chunk=chunk)
    expected = np.zeros((2, 2, 3))
    expected[0, 0, 1] = expected[1, 1, 0] = 1.0
    assert_array_equal(rows, expected)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_nan_as_the_primal(chunk):
    """The derivative of the argument that was selected, as the primal selects it."""
    x, y = np.array([NAN, 1.0]), np.array([1.0, NAN])

    def partials(function):
        a, b = jacobian(function, x, args=(y,), argnums=(0, 1), chunk=chunk)
        return a.diagonal(), b.diagonal()

    for function in (np.maximum, np.minimum):  # NaN is selected
        assert_array_equal(function(x, y), [NAN, NAN])
        assert_array_equal(partials(function), ([1.0, 0.0], [0.0, 1.0]))
    for function in (np.fmax, np.fmin):  # NaN is avoided
        assert_array_equal(function(x, y), [1.0, 1.0])
        assert_array_equal(partials(function), ([0.0, 1.0], [1.0, 0.0]))
    v = np.array([2.0, NAN, 5.0])
    assert_array_equal(grad(np.max, chunk=chunk)(v), [0.0, 1.0, 0.0])
    assert_array_equal(grad(np.nanmax, chunk=chunk)(v), [0.0, 0.0, 1.0])
    assert_array_equal(grad(np.nansum, chunk=chunk)(v), [1.0, 0.0, 1.0])
    assert_array_equal(grad(np.sum, chunk=chunk)(v * v), [1.0, 1.0, 1.0])


@pytest.mark.parametrize("chunk", CHUNKS)
def test_clip_at_its_ends(chunk):
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    inside = np.diag([0.0, 1.0, 1.0, 1.0, 0.0])
    assert_array_equal(jacobian(lambda x: np.clip(x, 0.0, 1.0), x, chunk=chunk), inside)
    assert_array_equal(jacobian(lambda x: x.clip(0.0, 1.0), x, chunk=chunk), inside)
    assert_array_equal(
        jacobian(lambda x: x.clip(max=1.0), x, chunk=chunk), np.diag([1.0, 1, 1, 1, 0])
    )


@pytest.mark.parametrize("chunk", CHUNKS)
def test_absolute_value_at_zero(chunk):
    x = np.array([-2.0, 0.0, -0.0, 3.0])
    for f in (np.abs, np.fabs, abs):
        assert_array_equal(jacobian(f, x, chunk=chunk), np.diag([-1.0, 0.0, 0.0, 1.0]))
    assert derivative(abs, 0.0) == 0.0
    assert derivative(math.fabs, -2.0) == -1.0
    assert derivative(lambda x: np.abs(x * (1 + 1j)), 0.0) == 0.0


@pytest.mark.parametrize("chunk", CHUNKS)
def test_copysign_is_the_agreement_of_signs(chunk):
    x, y = np.array([2.0, -2.0, 2.0, -2.0, 0.0, -0.0]), np.array([3.0, 3.0, -3.0, -0.0, -1.0, -1.0])
    a, b = jacobian(np.copysign, x, args=(y,), argnums=(0, 1), chunk=chunk)
    assert_array_equal(a, np.diag([1.0, -1.0, -1.0, 1.0, -1.0, 1.0]))
    assert_array_equal(b, np.zeros((6, 6)))
    assert derivative(lambda x: math.copysign(x, -1.0), 2.0) == -1.0


# -- an exactly zero tangent stays zero


@pytest.mark.parametrize("chunk", CHUNKS)
def test_norm_of_a_zero_vector(chunk):
    assert_array_equal(grad(np.linalg.norm, chunk=chunk)(np.zeros(3)), np.zeros(3))
    assert_array_equal(grad(np.linalg.norm, chunk=chunk)(np.zeros((2, 2))), np.zeros((2, 2)))
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    jac = jacobian(lambda x: np.linalg.norm(x, axis=1), rows, chunk=chunk)
    assert_allclose(jac[1, 1], [0.6, 0.8], rtol=1e-15)
    assert_array_equal(jac[0], np.zeros((2, 2)))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_logarithm_of_zero(chunk):
    for f in (
        lambda x: np.log(0 + x[1]),
        lambda x: np.log(x)[1] + 0 * x[0],
        lambda x: np.sum(np.log(x * np.array([0.0, 1.0]))[1:]),
        lambda x: np.log(x[1:]).sum(),
    ):
        assert f(np.array([1.0, 0.0])) == -INF
        assert_array_equal(grad(f, chunk=chunk)(np.array([1.0, 0.0])), [0.0, INF])


@pytest.mark.parametrize("chunk", CHUNKS)
def test_where_selects_and_never_multiplies(chunk):
    x = np.array([0.0, 1.0, 4.0, -1.0])
    for f in (
        lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0)),
        lambda x: (
            np.sum(np.where(x > 0, np.log(x), x * 0))
            + np.sum(np.where(x > 0, np.sqrt(x) - np.log(x), 0))
        ),
        lambda x: np.sum(np.sqrt(x)[x > 0]),
        lambda x: np.sum(np.sqrt(x, where=x > 0, out=np.zeros(4))),
        lambda x: np.sum(np.select([x > 0], [np.sqrt(x)], 0.0)),
        lambda x: sum(np.sqrt(v) if v > 0 else 0.0 for v in x),
        lambda x: np.sum(np.sqrt(x), where=x > 0),
    ):
        assert_allclose(grad(f, chunk=chunk)(x), [0.0, 0.5, 0.25, 0.0], rtol=1e-14)
    assert derivative(lambda x: np.where(x > 0, np.sqrt(x), 0), np.float64(0.0)) == 0.0
    with pytest.raises(ValueError, match="math domain|positive input"):
        derivative(lambda x: math.log(x), 0.0)  # noqa: PLW0108 - as the primal
    with pytest.raises(ZeroDivisionError):
        derivative(lambda x: 1 / x, 0.0)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    ("function", "edge"),
    [
        (np.sqrt, 0.0), (np.arcsin, 1.0), (np.arccos, -1.0), (np.log, 0.0), (np.arctanh, 1.0),
        (np.cbrt, 0.0), (np.log1p, -1.0), (np.log2, 0.0), (np.log10, 0.0), (np.reciprocal, 0.0),
        (lambda v: 1 / v, 0.0), (lambda v: v**0.5, 0.0), (lambda v: v**-1.0, 0.0),
        (np.tan, np.pi / 2),
    ],
)  # fmt: skip
def test_infinite_partials_meet_zero_tangents(function, edge, chunk):
    """An array with one active element, and the others at the end of the function's range."""

    def f(x):
        y = np.full(3, edge)
        y[0] = x[0] * x[1] * 0.1
        return function(y)

    def first(x):
        return function(x[0] * x[1] * 0.1)

    x = np.array([2.0, 3.0])
    jac = jacobian(f, x, chunk=chunk)
    assert_allclose(jac[0], central_differences(first, x), rtol=1e-9)
    assert_array_equal(jac[1:], np.zeros((2, 2)))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_product_of_a_zero_and_an_infinite_partial_stays_nan(chunk):
    """Not a zero tangent but a zero partial: 0 * inf is NaN, by policy."""
    jac = jacobian(lambda x: np.sqrt(x**2), np.array([0.0, 2.0]), chunk=chunk)
    assert_array_equal(jac, [[NAN, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("chunk", CHUNKS)
def test_nextafter_moves_with_its_first_argument(chunk):
    x, y = np.array([1.0, -2.0]), np.array([3.0, -5.0])
    a, b = jacobian(np.nextafter, x, args=(y,), argnums=(0, 1), chunk=chunk)
    assert_array_equal(a, np.eye(2))
    assert_array_equal(b, np.zeros((2, 2)))


# -- powers


POWERS = [
    ([0.0, 0.5], [INF, 0.0]),
    ([0.0, 1.5], [0.0, 0.0]),
    ([0.0, 0.0], [0.0, -INF]),
    ([-2.0, 3.0], [12.0, NAN]),
    ([0.0, 1.0], [1.0, 0.0]),
    ([0.0, 2.0], [0.0, 0.0]),
    ([2.0, 0.0], [0.0, math.log(2.0)]),
]


@pytest.mark.parametrize("chunk", [1, 2, None])
@pytest.mark.parametrize(("x", "expected"), POWERS)
def test_power(x, expected, chunk):
    for f in (
        lambda z: z[0] ** z[1],
        lambda z: np.power(z[0], z[1]),
        lambda z: (z[:1] ** z[1:])[0],
    ):
        assert_allclose(grad(f, chunk=chunk)(np.array(x)), expected, rtol=1e-15)


@pytest.mark.parametrize(("x", "expected"), POWERS)
def test_power_of_python_floats(x, expected):
    assert_allclose(grad(lambda a, b: a**b, argnums=(0, 1))(*x), expected, rtol=1e-15)
    assert_allclose(grad(pow, argnums=(0, 1))(*x), expected, rtol=1e-15)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_integer_powers(chunk):
    x = np.array([-2.0, 0.0, 3.0])
    for n in (0, 1, 2, 3, 4):
        expected = np.diag(n * x ** max(n - 1, 0))
        for exponent in (n, float(n), np.float64(n), np.array([n, n, n])):
            assert_array_equal(jacobian(lambda x, e=exponent: x**e, x, chunk=chunk), expected)
    for exponent in (-1, -2.0):
        expected = np.diag(exponent * x[[0, 2]] ** (exponent - 1.0))
        actual = jacobian(lambda x, e=exponent: x ** float(e), x[[0, 2]], chunk=chunk)
        assert_allclose(actual, expected, rtol=1e-15)


def test_exponent_alone():
    assert derivative(lambda x: 2**x, 3.0) == pytest.approx(8 * math.log(2), rel=1e-15)
    assert derivative(lambda x: 0**x, 3.0) == 0.0
    assert derivative(lambda x: np.float64(0.0) ** x, 0.0) == -INF


@pytest.mark.parametrize("one", [np.float64(0.0), np.array(0.0)])
def test_minimum_of_an_infinite_quotient(one):
    assert derivative(lambda x: np.minimum(1, 1 / x), one) == 0.0
    assert derivative(lambda x: min(1, 1 / x), one) == 0.0
    assert derivative(lambda x: np.where(x > 0, 1 / x, 1.0), one) == 0.0
    assert derivative(lambda x: np.clip(1 / x, 0.0, 1.0), one) == 0.0


# -- locally constant


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    "f",
    [
        np.floor, np.ceil, np.rint, np.trunc, np.sign, np.round, np.fix, np.argmax, np.argsort,
        np.isnan, np.isfinite, np.signbit, np.nonzero, np.count_nonzero, np.any, np.all,
        np.spacing, lambda x: x > 1, lambda x: x == x[0], lambda x: np.searchsorted(x, 1.0),
        lambda x: np.shape(x), lambda x: np.floor(x).astype(int), lambda x: x // 1,
        lambda x: np.floor_divide(x, 0.3), lambda x: np.heaviside(x, 1.0),
        lambda x: np.digitize(x, [0.0, 1.0]), lambda x: np.allclose(x, x), lambda x: len(x),
        lambda x: x.argmin(), lambda x: round(x[0]), lambda x: math.floor(x[0]),
        lambda x: np.lexsort((x, x)), lambda x: x.dtype == float, lambda x: [v > 0 for v in x],
        lambda x: math.trunc(x[1]), lambda x: np.array_equal(x, x * 2),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
def test_carries_no_tangent(f, chunk):
    """The value is the primal's own, and nothing that comes from it depends on x."""
    x = np.array([0.3, 1.7, 2.5])
    value = f(x)

    def weighed(x):
        out = f(x)
        assert type(out) is type(value)
        if isinstance(out, np.ndarray):
            assert out.dtype == value.dtype
        return np.sum(np.asarray(out, dtype=float)) + np.sum(x)

    y, gradient = fwdad.value_and_grad(weighed, chunk=chunk)(x)
    assert y == np.sum(np.asarray(value, dtype=float)) + np.sum(x)
    assert_array_equal(gradient, np.ones(3))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_remainders(chunk):
    x = np.array([0.7, -1.3, 5.9])
    for f in (np.mod, np.fmod, np.remainder):
        a, b = jacobian(f, x, args=(np.array([0.4, 0.5, -2.0]),), argnums=(0, 1), chunk=chunk)
        quotient = np.floor if f is not np.fmod else np.trunc
        assert_array_equal(a, np.eye(3))
        assert_array_equal(b, np.diag(-quotient(x / np.array([0.4, 0.5, -2.0]))))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_eigenvalues_of_a_repeated_eigenvalue(chunk):
    """The sum over a repeated eigenvalue exists; its eigenvectors' derivative raises when used."""
    x = np.eye(3)
    trace = grad(lambda a: np.sum(np.linalg.eigh(a)[0]), chunk=chunk)(x)
    assert_allclose(trace, np.eye(3), atol=1e-15)
    with pytest.raises(fwdad.errors.UndefinedDerivativeError):
        jacobian(lambda a: np.linalg.eigh(a)[1] * 2.0, x, chunk=chunk)
