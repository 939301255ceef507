"""Given directions of more than a few numbers: tangents of numbers have a coefficient per lane.

Whether lanes travel alone or together must not show, nor where a direction is exactly zero.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.cases.check import check_jacobian, check_lanes, programs, with_widths

DIRECTED, directed = programs()

X = np.linspace(0.3, 1.9, 12)
OBLONG = X.reshape(3, 4)


@directed(X)
def numbers(x):
    a = 0.3 * x[0] + x[11] / 2.0 - (-x[3])
    b = (a * x[1] - x[2] * 1.5) ** 2 + abs(x[4] - 3.0)
    c = b / a + math.sin(x[5]) * np.exp(-x[6]) + max(x[7], x[8])
    d = 2.0 / c - x[9] % 0.7
    return [a, b, c, d, a * 1.1 * 0.9 / 1.3 * d]


@directed(X)
def views_of_views(x):
    u, w = x[:6], x[6:]
    f = np.empty_like(x)
    f_u, f_w = f[:6], f[::-1][:6]
    f_u[:] = 2.0 - u * u * w
    f_w[...] = w / 3.0 - 0.5 * u - 1
    f_u[1:-1] += 0.4 * (u[2:] - 2 * u[1:-1] + u[:-2])
    f_u[0] += 0.4 * (u[1] - 2 * u[0] + 1.0)
    f_w[::2][-1] -= f_u[1:][0] * u[-1]
    f[3:9] *= f[2:8]
    return f


@directed(X)
def zero_dimensions(x):
    y, z = np.zeros(()), np.zeros(12)
    y[()] = x[0] * x[1]
    y += x[2]
    y[...] = y * 2
    z[4:5][0] = y[()]
    corner = z[4, ...]
    corner += x[3] * corner
    return z + y


@directed(X)
def single_precision_between(x):
    y = x.astype(np.float32)
    z = np.zeros(12, np.float32)
    z[0] = y[0] * y[1]
    z[1:4] = y[1:4] * z[0]
    z[1] += y[2]
    return z.astype(float) * 0 + x * x[0]


@directed(X)
def complex_between(x):
    z = x * 1j + x[::-1]
    w = np.zeros(12, complex)
    w[0] = z[0] * z[1] + x[2]
    w[1:] = z[1:] * w[0] * x[3]
    return [w[1].real * x[4], w.imag, (z[5] * x[5]).imag, abs(z[6])]


@directed(X)
def complex_numbers(x):
    z = x[0] * 1j + x[1]
    w = (z * z * x[2] + 2.0) / (z - x[3] * 1j)
    w = w * (x[4] - 1j) + x[5]
    return [w.real, w.imag * x[6], abs(w), np.exp(z * x[7]).imag]


@directed(OBLONG)
def numbers_of_a_matrix(x):
    y = np.ones((3, 4))
    for i in range(3):
        y[i, 0] = x[i, 1] * x[-1, i]
        y[i, 1:] = x[i, :3] - y[i, 0]
        y[i, -1] -= x.T[i, i]
    return y[:, ::-1] * x[0][2]


@directed(X)
def arrays_of_numbers(x):
    pair = np.array([x[0] * x[1], 2.0, x[2]])
    scaled = x[3] * pair + np.array([[x[4], x[5], 1.0]])
    return [scaled, np.where(pair > 1, x[6], pair), x[7] * x]


@directed(X, products=True)
def numbers_of_sums(x):
    s, m = np.sum(x), x @ x
    y = np.zeros(3)
    y[0] = s * m - x[0]
    y[1] = m / s + x[1] * s
    y[2] += np.prod(x[:3]) * x[4]
    return y * s


@directed(np.linspace(-1.0, 2.0, 45))
def more_numbers_than_terms(x):
    s = x[0] * 1.1
    for i in range(1, 45):
        s = s + x[i] * x[i - 1]
    s = s * 0.3 * 1.7 / 1.3
    y = np.zeros(2)
    y[0] = s * x[3] - math.cos(s)
    y[1] = (s - x[3]) * 0.7 * x[4]
    return [y[0] * 0.9, y[1], s * x[44]]


def flat(f):
    """The values of a list, one after the other."""

    def joined(x):
        y = f(x)
        if not isinstance(y, list):
            return y
        return np.concatenate([np.ravel(part) for part in y])

    return joined


@pytest.mark.parametrize("chunk", [2, 3, None])
@pytest.mark.parametrize("program", DIRECTED, ids=str)
def test_lanes(program, rng, chunk):
    check_lanes(
        type(program)(flat(program.function), program.x, products=program.products), rng, chunk
    )


@pytest.mark.parametrize(("program", "chunk"), with_widths(DIRECTED))
def test_jacobian(program, chunk):
    check_jacobian(type(program)(flat(program.function), program.x), chunk)


@pytest.mark.parametrize("chunk", [1, 4, None])
@pytest.mark.parametrize("program", DIRECTED, ids=str)
def test_directions_with_zeros(program, rng, chunk):
    f, x = flat(program.function), program.x
    directions = rng.normal(size=(9, *x.shape)) * (rng.random((9, *x.shape)) < 0.4)
    directions[3] = 0.0
    y_dot = fwdad.jvp(f, x, directions, chunk=chunk)[1]
    jacobian = type(program)(f, x).reference()
    expected = np.tensordot(directions, jacobian, (range(1, 1 + x.ndim), range(-x.ndim, 0)))
    assert_allclose(y_dot, expected, rtol=1e-7, atol=1e-7)
    assert_array_equal(y_dot[3], 0.0)


@pytest.mark.parametrize("program", DIRECTED[:7], ids=str)
def test_basis_at_every_width_has_the_same_bits(program):
    f, x = flat(program.function), program.x
    alone = fwdad.jacobian(f, x, chunk=1)
    for chunk in (5, None):
        assert_array_equal(fwdad.jacobian(f, x, chunk=chunk), alone)


def test_long_sums_at_every_width_have_the_same_bits():
    alone = fwdad.jacobian(flat(more_numbers_than_terms), np.linspace(-1.0, 2.0, 45), chunk=1)
    for chunk in (8, 31, 40, None):
        together = fwdad.jacobian(
            flat(more_numbers_than_terms), np.linspace(-1.0, 2.0, 45), chunk=chunk
        )
        assert_array_equal(together, alone)


@pytest.mark.parametrize("chunk", [1, 2, None])
@pytest.mark.parametrize("stored", [False, True])
def test_a_zero_stays_zero_beside_an_infinite_slope(chunk, stored):
    """At x[0] = 0 the square root's slope is infinite; lanes 1 and 2 do not move x[0]."""
    x = np.linspace(0.0, 1.1, 12)

    def f(x):
        y = np.zeros(2)
        y[0] = x[0]
        r = np.sqrt(y[0]) if stored else math.sqrt(x[0])
        y[1] = r + 3.0 * x[1]
        return y

    directions = np.zeros((3, 12))
    directions[0, 0] = directions[1, 1] = 1.0
    y_dot = fwdad.jvp(f, x, directions, chunk=chunk)[1]
    assert_array_equal(y_dot, [[1.0, np.inf], [0.0, 3.0], [0.0, 0.0]])


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("count", [2, 12])  # few directions stay apart, more are added up
@pytest.mark.parametrize("infinite", [np.inf, np.nan])
def test_an_array_of_numbers_keeps_zeros_beside_infinite_tangents(chunk, count, infinite):
    """np.array((x0 x0, x1 x1, …)): what moves x[0] alone moves its own item alone."""
    x = np.linspace(1.0, 2.1, count)
    directions = np.zeros((3, count))
    directions[0, 0], directions[1, 1], directions[2] = infinite, 1.0, 1.0

    def f(x):
        return np.array([v * v for v in x])

    y_dot = fwdad.jvp(f, x, directions, chunk=chunk)[1]
    assert_array_equal(y_dot, np.where(directions == 0, 0.0, 2 * x * directions))


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_an_array_of_numbers_beside_an_infinite_slope(chunk):
    """The slope of sqrt at 0 is in the lanes already when the numbers are read."""

    def f(x):
        u = np.concatenate([np.sqrt(x[:1]), x[1:]])
        return np.array([u[0], u[1] * u[2], u[2]])

    J = fwdad.jacobian(f, np.array([0.0, 1.0, 2.0]), chunk=chunk)
    assert_array_equal(J, [[np.inf, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("chunk", [1, 2, None])
@pytest.mark.parametrize("whole", [False, True])
def test_a_vanishing_slope_is_no_direction_that_vanishes(chunk, whole):
    """sqrt(d²) at d = 0 has no derivative along what moves d, and is constant along the rest."""
    x = np.linspace(0.5, 1.6, 12)

    def f(x):
        d = x - 0.5
        squared = (d * d)[0] if whole else d[0] * d[0]
        return np.sqrt(squared) + x[1]

    directions = np.zeros((3, 12))
    directions[0, 0] = directions[1, 1] = directions[2, 0] = 1.0
    with np.errstate(all="raise"):
        y_dot = fwdad.jvp(f, x, directions, chunk=chunk)[1]
    assert_array_equal(y_dot, [np.nan, 1.0, np.nan])


def test_coefficients_do_not_warn(recwarn):
    x = np.linspace(0.0, 1.1, 12)

    def f(x):
        y = x[1] * 1e300
        return [math.sqrt(x[0]) - x[1], y * 1e200 * 0.0 if y < 0 else y * 1.0]

    fwdad.jvp(f, x, np.full((3, 12), 1e100))
    assert [str(w.message) for w in recwarn] == []


def test_one_direction_of_given_numbers_beside_an_array():
    def f(x, scale, shift):
        y = x * scale
        y[0] += shift * scale
        return y

    x, v = np.linspace(1.0, 2.0, 9), np.linspace(0.1, 0.9, 9)
    y, y_dot = fwdad.jvp(f, x, (v, 2.0, 0.0), argnums=(0, 1, 2), args=(3.0, 0.5))
    expected = v * 3.0 + x * 2.0
    expected[0] += 0.5 * 2.0
    assert_allclose(y_dot, expected, rtol=1e-14)
    assert_allclose(y[0], 3.0 + 1.5, rtol=1e-14)


def test_single_precision():
    x = X.astype(np.float32)
    y, y_dot = fwdad.jvp(lambda x: x[0] * x[1] * x, x, np.ones(12, np.float32))
    assert y.dtype == y_dot.dtype == np.float32
    assert_allclose(y_dot, x[0] * x[1] + (x[0] + x[1]) * x, rtol=1e-6)


def test_complex():
    z = X * (1 + 0.5j)
    v = np.linspace(1.0, -1.0, 12) + 0.3j
    y_dot = fwdad.jvp(lambda z: z[0] * z[1] * z, z, v, holomorphic=True)[1]
    expected = z[0] * z[1] * v + (v[0] * z[1] + z[0] * v[1]) * z
    assert_allclose(y_dot, expected, rtol=1e-13)


@pytest.mark.parametrize("directions", [1, 3])
def test_nested(rng, directions):
    """d/dx of J(x) v, against v·∇ of the same quadratic form's gradient."""
    v = rng.normal(size=(directions, 12))

    def cubic(x):
        y = np.zeros(12)
        for i in range(12):
            y[i] = x[i] * x[i] * x[i - 1]
        return y

    def along(x):
        return fwdad.jvp(cubic, x, v)[1]

    h = fwdad.jacobian(along, X)
    expected = np.zeros((directions, 12, 12))
    for i in range(12):
        expected[:, i, i] += 2 * X[i - 1] * v[:, i] + 2 * X[i] * v[:, i - 1]
        expected[:, i, i - 1] += 2 * X[i] * v[:, i]
    assert_allclose(h, expected, rtol=1e-13, atol=1e-13)
    outer = fwdad.jvp(lambda x: fwdad.jacobian(cubic, x), X, v)[1]
    assert_allclose(outer, np.einsum("kij->kij", h), rtol=1e-13, atol=1e-13)


def test_dict_keyed_by_a_number_with_coefficients(rng):
    def f(x):
        table = {x[0]: x[1] * 2.0}
        return table[x[0]] * x[0]

    v = rng.normal(size=(3, 12))
    y_dot = fwdad.jvp(f, X, v)[1]
    assert_allclose(y_dot, 2 * (X[1] * v[:, 0] + X[0] * v[:, 1]), rtol=1e-14)


@pytest.mark.parametrize("v", [X, np.eye(12)[0], np.eye(12)[1], np.eye(12)[:3]])
def test_a_number_that_stands_still_is_no_constant(v):
    """An equal key with another derivative is refused, whichever of the two the direction moves."""
    x = X.copy()
    x[1] = x[0]

    def f(x):
        table = {x[0]: x[2] * x[0]}
        return table[x[1]]

    with pytest.raises(fwdad.errors.DualLeakError, match="equal key"):
        fwdad.jvp(f, x, v)
