"""Tangents known by their places: Jacobians of shifts, scalings, joins and stores."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Apply
from fwdad.transforms.forward import place_lanes
from fwdad.transforms.forward.placing import places_of, runs_of
from tests.differences import complex_step

SIZES = [1, 2, 3, 5, 8]


def ghost_cells(u):
    wide = np.empty(u.size + 2, u.dtype)
    wide[1:-1] = u
    wide[0] = -wide[1]
    wide[-1] = 3 * u[-1] - wide[-2]
    return u * (wide[2:] - wide[:-2]) + wide[1:-1] ** 2


def periodic(u):
    return u * (np.roll(u, -1) - np.roll(u, 1)) + np.roll(np.exp(u), 3)


def joined(u):
    wide = np.concatenate((u[-1:], u, 2 * u[:1]))
    return wide[2:] * wide[:-2] - wide[1:-1]


def joined_along_another_axis(u):
    return np.concatenate((np.stack((u, u * u)), u[None, ::-1]), axis=0) * u[0]


def overlapping(u):
    y = np.empty_like(u)
    y[:] = u**2
    y[1:] = y[:-1] * u[1:]
    y[: u.size // 2] = u[u.size - u.size // 2 :]
    y[-1] = 5.0
    return y


def updates(u):
    y = u * 1.0
    y[1:] += u[:-1] ** 2
    y[::2] *= y[::2]
    y[:-1] -= 1.5
    y[-1] /= u[0]
    return y


def views(u):
    y = np.zeros_like(u)
    tail, back = y[1:], y[::-1]
    y[:] = u
    tail *= u[:-1]
    back[: u.size // 2] = u[: u.size // 2] ** 3
    return y + back


def shifted_upon_itself(u):
    y = u.copy()
    y[1:] = y[:-1]
    y[:-1] = y[1:] * u[:-1]
    return y


def nothing_stored(u):
    y = u * 2.0
    y[3:3] = u[1:1]
    y[u.size :] = u[:0] * 2
    return y + y[:0].sum()


def overwritten_by_constants(u):
    y = u**2
    y[:] = 4.0
    y[-1:] = u[:1]
    return y


def one_for_all(u):
    return u[0] * u + u[-1] * np.ones(u.size)


def grid(u):
    a = u[: u.size // 2 * 2].reshape(2, -1)
    b = np.zeros((4, a.shape[1] + 2), u.dtype)
    b[1:-1, 1:-1] = a
    b[:, 0] = b[:, -2]
    inner = b[1:-1, 1:-1]
    five = b[2:, 1:-1] + b[:-2, 1:-1] + b[1:-1, 2:] + b[1:-1, :-2] - 4 * inner
    return (five * a).T


def stacked(u):
    return np.stack((u, np.flip(u), np.sin(u)), axis=1).ravel()[::2]


def padded(u):
    wide = np.pad(u * u, (1, 2))
    return wide[1:] - wide[:-1]


def repeated(u):
    return np.repeat(u, 2) * np.tile(np.arange(2.0), u.size)


SMOOTH = [
    ghost_cells, periodic, joined, joined_along_another_axis, overlapping, updates, views,
    shifted_upon_itself, nothing_stored, overwritten_by_constants, one_for_all, grid, stacked,
    padded, repeated,
]  # fmt: skip


def upwind(u):
    wide = np.concatenate((u[-1:], u, u[:1]))
    left, right = u - wide[:-2], wide[2:] - u
    return np.where(u > 0.8, u * left, u * right) + np.maximum(u, wide[2:]) + abs(left)


def picked(u):
    return u[np.array([0, -1, 0])] * np.take(u, [0]) + u[0]


def lost_in_products(u):
    y = np.empty_like(u)
    y[:] = np.ones((u.size, u.size)) @ (u * u)
    y[0] = np.cumsum(u)[-1]
    return y


def lost_in_a_loop(u):
    y = u * 1.0
    for i in range(1, u.size):
        y[i] = y[i - 1] * u[i] + y[-i]
    y[0] = u[-1]
    return y


def lost_in_a_branch(u):
    y = np.zeros_like(u)
    y[:] = u**2
    if u[0] > 0.5:
        y[:1] = y[-1:] * u[:1]
    z = y * u
    y[0] = 2.0
    return z - y


def lost_where_it_depends_on_numbers(u):
    y = u * 2.0
    k = int(u[0] > 10.0)
    y[k] = u[k] ** 2
    y[k:] *= u[k:]
    return y


def read_in_a_loop(u):
    y = np.empty_like(u)
    y[:] = u**2
    total = 0.0
    for i in range(u.size):
        total = total + y[i] * u[-1 - i]
    y[0] = total
    return y


def carried(u):
    y = u**2
    old = y
    for _ in range(2):
        y, old = old * u, y
    y[0] = u[-1]
    return y + old


def too_many_terms(u):
    y = np.zeros_like(u)
    for k in range(7):
        y[: u.size - k] += u[k:] * (k + 1.0)
        y[k:] += u[: u.size - k] ** 2 * u[k:]
    return y


KINKED = [
    upwind, picked, lost_in_products, lost_in_a_loop, lost_in_a_branch,
    lost_where_it_depends_on_numbers, read_in_a_loop, carried, too_many_terms,
]  # fmt: skip


def point(n):
    return 0.7 + 0.3 * np.cos(1.0 + np.arange(n) ** 2)


def compiled(f, n):
    """The Jacobian by places, and the same columns as directions that are given."""
    x = point(n)
    J = fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x)
    columns = fwdad.jit(lambda u, v: fwdad.jvp(f, u, v)[1], backend="numpy")(x, np.eye(n))
    return J, np.moveaxis(columns, 0, -1)


def elements(shape):
    return math.prod(m if isinstance(m, int) else 32 for m in shape)


LEAST = {grid: 2, lost_where_it_depends_on_numbers: 2, too_many_terms: 8}  # unknowns


def at_sizes(programs):
    return [(f, n) for f in programs for n in SIZES if n >= LEAST.get(f, 1)]


@pytest.mark.parametrize(("f", "n"), at_sizes(SMOOTH))
def test_smooth_programs(f, n):
    by_places, given = compiled(f, n)
    assert_allclose(by_places, given, rtol=1e-14, atol=1e-14)
    assert_allclose(by_places, complex_step(f, point(n)), rtol=1e-13, atol=1e-14)


@pytest.mark.every(2)
@pytest.mark.parametrize(("f", "n"), at_sizes(KINKED))
def test_programs_with_kinks_and_where_places_are_lost(f, n):
    by_places, given = compiled(f, n)
    assert_allclose(by_places, given, rtol=1e-14, atol=1e-14)
    assert_allclose(by_places, fwdad.jacobian(f, point(n)), rtol=1e-13, atol=1e-14)


KEPT = [f for f in (*SMOOTH, upwind) if f not in (nothing_stored, padded)]


@pytest.mark.parametrize("f", KEPT)
def test_lanes_are_written_once_and_by_places(f):
    program = trace(fwdad.jacfwd(f), point(32)).program
    wide = [
        op.function
        for op in program.walk()
        for v in op.outputs
        if isinstance(op, Apply) and elements(v.type.shape) > 500
    ]
    assert [g for g in wide if g not in (np.transpose, np.reshape)] == [place_lanes]


def test_several_arguments_have_places_of_their_own():
    def f(pair):
        a, b = pair
        y = np.concatenate((a, b))
        y[1:] *= y[:-1]
        return y, a[0] * b

    a, b = point(3), point(4) + 1
    J = fwdad.jit(lambda a, b: fwdad.jacobian(f, (a, b)), backend="numpy")
    for found, expected in zip(J(a, b), fwdad.jacobian(f, (a, b)), strict=True):
        for p, q in zip(found, expected, strict=True):
            assert_allclose(p, q, rtol=1e-14)


def test_a_matrix_is_differentiated_with_respect_to_a_matrix():
    def f(a):
        b = np.zeros_like(a)
        b[:, 1:] = a[:, :-1] * a[:, 1:]
        b[0] = b[1] + a[-1] * a[0, 0]
        return b.T[::-1]

    a = np.arange(1.0, 13).reshape(3, 4)
    J = fwdad.jit(fwdad.jacfwd(f), backend="numpy")(a)
    assert_allclose(J, fwdad.jacobian(f, a), rtol=1e-14)


@pytest.mark.every(3)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("f", [ghost_cells, periodic, updates, upwind])
def test_second_derivatives(f, n):
    x = point(n)
    eager = fwdad.jacobian(fwdad.jacfwd(f), x)
    assert_allclose(fwdad.jit(fwdad.jacfwd(fwdad.jacfwd(f)), backend="numpy")(x), eager, atol=1e-13)
    # given directions through places: dense lanes of the outer derivative
    outer = fwdad.jit(lambda u, v: fwdad.jvp(fwdad.jacfwd(f), u, v)[1], backend="numpy")
    found = outer(x, np.eye(n))
    assert_allclose(np.moveaxis(found, 0, -1), eager, atol=1e-13)


def test_partials_that_are_not_finite_stay_where_they_are():
    def f(u):
        y = np.zeros_like(u)
        y[1:] = np.sqrt(u[:-1]) * u[1:]
        return y

    J = fwdad.jit(fwdad.jacfwd(f), backend="numpy")(np.array([0.0, 2.0, 3.0]))
    assert_allclose(J, [[0, 0, 0], [np.inf, 0, 0], [0, 1.5 / np.sqrt(2), np.sqrt(2)]])


def test_complex_values_and_short_floats():
    def f(u):
        z = np.zeros(u.size, complex)
        z[1:] = 1j * u[:-1] ** 2
        z[0] = u[0]
        return z

    x = point(4)
    assert_allclose(
        fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x), fwdad.jacobian(f, x), rtol=1e-14
    )
    small = point(4).astype(np.float32)
    J = fwdad.jit(fwdad.jacfwd(ghost_cells), backend="numpy")(small)
    assert J.dtype == np.float32
    assert_allclose(J, fwdad.jacobian(ghost_cells, small), rtol=1e-5)


@pytest.mark.parametrize(
    "places",
    [
        [], [-1], [3], [0, 1, 2], [2, 1, 0], [0, 0, 0], [5, -1, -1, 1, 2, 3], [0, 2, 4, 9, 1],
        [[0, 1, 2], [3, 4, 5]], [[0, 3], [1, 4], [2, 5]], [[-1, 0, 1, -1], [-1, 4, 5, -1]],
        7, np.arange(24).reshape(2, 3, 4)[:, 1:, ::-2].tolist(),
    ],
)  # fmt: skip
def test_runs_stand_for_places(places):
    places = np.array(places, int)
    runs = runs_of(places)
    np.testing.assert_array_equal(places_of(places.shape, runs), places)
    lanes = place_lanes(24, places.shape, np.dtype(float), (runs,), 2.0)
    assert_allclose(lanes, 2.0 * (np.arange(24).reshape(-1, *[1] * places.ndim) == places))


def test_a_band_and_a_stencil_are_few_runs():
    assert len(runs_of(np.arange(512) - 1)) == 1
    inner = np.full((20, 30), -1)
    inner[1:-1, 1:-1] = np.arange(600).reshape(20, 30)[:-2, 1:-1]
    assert len(runs_of(inner)) == 1


NESTED = [np.sin, np.diff, lambda u: np.outer(u, u[1:]) * u[0], lambda u: u[1:] ** 2, updates]


@pytest.mark.every(2)
@pytest.mark.parametrize("f", NESTED)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_lanes_by_places_run_backwards(f, n):
    """A gradient of a Jacobian, and Jacobians by rows of Jacobians by columns; given numbers."""

    def loss(u):
        return np.sum(np.sin(fwdad.jacfwd(f)(u) + 0.3))

    def lossless(u):
        """The same, by directions that are written out: no places."""
        return np.sum(np.sin(fwdad.jvp(f, u, np.eye(n))[1] + 0.3))

    x = point(n)
    expected = fwdad.jvp(lossless, x, np.eye(n))[1]
    assert_allclose(fwdad.grad(loss)(x), expected, rtol=1e-12, atol=1e-13)
    compiled = fwdad.jit(fwdad.grad(loss), backend="numpy")
    assert_allclose(compiled(x), expected, rtol=1e-12, atol=1e-13)
    assert_allclose(fwdad.hessian(loss, x), fwdad.jacfwd(fwdad.jacfwd(loss))(x), atol=1e-12)
    g = fwdad.jacfwd(f)
    assert_allclose(fwdad.jacrev(g)(x), fwdad.jacfwd(g)(x), rtol=1e-12, atol=1e-13)
    assert_allclose(
        fwdad.jacrev(fwdad.jacfwd(g))(x), fwdad.jacfwd(fwdad.jacfwd(g))(x), rtol=1e-12, atol=1e-13
    )


# -- indices out of range have no lane, also where nobody needs the element itself


def element(a, k):
    return a[k]


def sums(a, k):
    s = 0.0
    for j in range(k):
        s += a[j]
    return s


def through_views(a, k):
    return a[1:][k] + a.reshape(2, 2).T[0, 1] + a[::-1][k]


def of_rows(a, k):
    return a.reshape(2, 2)[k, 1]


@pytest.mark.every(2, of="numba")
@pytest.mark.parametrize("f", [element, sums, through_views, of_rows])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_an_index_out_of_range_raises(f, backend):
    x = np.array([0.5, -1.0, 2.0, 3.5])
    columns, rows = (fwdad.jit(of(f), backend=backend) for of in (fwdad.jacfwd, fwdad.jacrev))
    for k in (1, 0, -1, -2, 2, 3, 4, -4, 5, -5, 10**12):
        try:
            expected = fwdad.jacfwd(f)(x, k)
        except IndexError:
            for derivative in (columns, rows):
                with pytest.raises(IndexError):
                    derivative(x, k)
        else:
            for derivative in (columns, rows):
                assert_array_equal(derivative(x, k), expected)


def on_one_side(a, t):
    return a[1] if t > 0 else a[17] * a[-5]


def rows_on_one_side(a, t):
    return a[1:3] if t > 0 else a[[0, 17]]


@pytest.mark.parametrize("f", [on_one_side, rows_on_one_side])
def test_an_index_out_of_range_on_a_way_that_is_not_taken(f):
    x = np.array([0.5, -1.0, 2.0, 3.5])
    for of in (fwdad.jacfwd, fwdad.jacrev):
        derivative = fwdad.jit(of(f), backend="numpy")
        assert_array_equal(derivative(x, 1.0), fwdad.jacfwd(f)(x, 1.0))
        with pytest.raises(IndexError):
            derivative(x, -1.0)


def test_rolled_by_a_number_that_is_not_known():
    x = np.array([0.5, -1.0, 2.0, 3.5])
    derivative = fwdad.jit(fwdad.jacrev(lambda x, k: np.roll(x, k) * x), backend="numpy")
    for k in (1, -2, 5):
        assert_allclose(derivative(x, k), fwdad.jacfwd(lambda x, k: np.roll(x, k) * x)(x, k))


def test_a_view_in_a_list_of_one_is_refused():
    def f(x):
        y = x * 1.0
        (z,) = np.meshgrid(y, copy=False)
        z[0] = 7.0
        return y

    with pytest.raises(fwdad.errors.UntraceableError, match="meshgrid may return a view"):
        fwdad.jit(fwdad.jacfwd(f), backend="numpy")(np.array([1.0, 2.0]))
