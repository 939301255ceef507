"""Tables on grids, as users read them, against differences and functions that they hold exactly."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import RegularGridInterpolator, interpn

import fwdad
from tests.differences import central_differences
from tests.rules.case import Draw

draw = Draw(67)
U, V, W = np.array([0.0, 0.3, 1.1, 1.6]), np.array([-1.0, 0.2, 0.9]), np.array([0.0, 2.0])
PLANE, VOLUME = draw.real(4, 3), draw.real(4, 3, 2)
AT = np.array([[0.2, 0.7], [1.2, -0.4], [0.65, 0.15]])
X = np.array([0.21, 0.47, 1.23, -0.36, 0.62, 0.13])
BEYOND = {"bounds_error": False, "fill_value": None}


def table(values, grid=(U, V), **options):
    return RegularGridInterpolator(grid, values, **options)


PROGRAMS = {
    "values": lambda x: table(PLANE * x[0] + x[1])(AT),
    "points": lambda x: table(PLANE)(x.reshape(3, 2)),
    "lists": lambda x: table(PLANE)([x[0], x[1]]),
    "lists of lists": lambda x: table(PLANE)([[x[0], 0.4], [1.1, x[3]]]),
    "coordinates": lambda x: table(PLANE)((x[:3, None], x[None, 1:4] - 0.4)),
    "one of them": lambda x: table(PLANE)((x[:3], 0.65)),
    "of one axis": lambda x: table(np.outer(U**2, x), (U,))((x[[0, 1, 2]],)),
    "of three axes": lambda x: table(VOLUME * x[5], (U, V, W))(x.reshape(2, 3) * 0.6 + 0.3),
    "with axes behind": lambda x: table(VOLUME * x[0])(x.reshape(3, 2)),
    "grid": lambda x: table(PLANE, (U * (1 + x[1]), V + 0.1 * x[2]))(AT),
    "grid of three": lambda x: table(VOLUME, (U, V, W + 0.1 * x[:2]))([[0.2, 0.7, 0.9]]),
    "descending": lambda x: table(PLANE * x[0], (U[::-1], V))(x.reshape(3, 2)),
    "complex": lambda x: np.abs(table(PLANE * (1 + 1j * x[0]))(x.reshape(3, 2))),
    "single": lambda x: table(PLANE.astype(np.float32))(x.reshape(3, 2)),
    "further": lambda x: table(PLANE, **BEYOND)(3.0 * x.reshape(3, 2)),
    "filled": lambda x: table(PLANE * x[0], bounds_error=False, fill_value=-2.0)(
        2.0 * x.reshape(3, 2)
    ),
    "one line": lambda x: table(PLANE[:, :1] * x[0], (U, V[:1]), **BEYOND)(x.reshape(3, 2)),
    "other line": lambda x: table(PLANE[:1], (U[:1], V), **BEYOND)(x.reshape(3, 2)),
    "nearest": lambda x: table(PLANE * x[0], method="nearest")(x.reshape(3, 2)),
    "pchip": lambda x: table(np.outer(U, U) * x[0], (U, U), method="pchip")(
        np.abs(x.reshape(3, 2))
    ),
    "interpn": lambda x: interpn((U, V), PLANE * x[0], x.reshape(3, 2)),
    "interpn filled": lambda x: interpn(
        (U, V, W), VOLUME, x.reshape(2, 3) * 2.0, bounds_error=False, fill_value=0.0
    ),
}
FORWARD_ONLY = {"pchip"}  # under jit: SciPy copies coefficients unless they are C-contiguous


@pytest.mark.every(12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f, x = PROGRAMS[name], X.copy()
    y, want = f(x), central_differences(f, x)
    tolerance = {"rtol": 1e-6, "atol": 1e-7}
    for chunk in (1, 2, 3, 5, "auto"):
        assert_allclose(fwdad.jacobian(f, x, chunk=chunk, mode="forward"), want, **tolerance)
    assert_allclose(fwdad.jacobian(f, x, mode="reverse"), want, **tolerance)
    weights = draw.real(*y.shape)
    gradient = fwdad.grad(lambda x: np.sum(weights * f(x)))
    assert_allclose(gradient(x), np.tensordot(weights, want, y.ndim), **tolerance)
    for backend in ("numpy", "auto") if name not in FORWARD_ONLY else ():
        compiled = fwdad.jit(gradient, backend=backend)
        assert_allclose(compiled(x), gradient(x), rtol=1e-10, atol=1e-11)
        assert_allclose(compiled(x + 0.01), gradient(x + 0.01), rtol=1e-10, atol=1e-11)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x), want, **tolerance)
    assert_array_equal(fwdad.jvp(f, x, np.ones_like(x))[0], y)
    assert_array_equal(x, X)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["values", "points", "of three axes", "grid", "descending"])
def test_second_derivatives(name):
    def loss(x):
        return np.sum(PROGRAMS[name](x) ** 2)

    want = central_differences(fwdad.grad(loss), X)
    assert_allclose(fwdad.hessian(loss, X), want, rtol=1e-5, atol=1e-5)
    v = draw.real(6)
    assert_allclose(fwdad.hvp(loss)(X, v), want @ v, rtol=1e-5, atol=1e-5)
    forward = fwdad.jacobian(lambda x: fwdad.jacobian(loss, x, mode="forward"), X, mode="forward")
    assert_allclose(forward, want, rtol=1e-5, atol=1e-5)


def test_a_bilinear_function_is_held_exactly():
    u, v = np.meshgrid(U, V, indexing="ij")
    for at in ((0.3, 0.2), (0.0, -1.0), (1.6, 0.9), (0.5, 0.5)):  # on lines and corners, too
        found = fwdad.grad(lambda x: table(2.0 + u - 3.0 * v + u * v)(x)[0])(np.array(at))
        assert_allclose(found, [1.0 + at[1], -3.0 + at[0]], rtol=1e-13, atol=1e-13)


def test_on_a_line_the_cell_above_counts_and_at_the_last_the_one_below():
    values = np.outer(U**2, np.ones(3))
    slopes = np.diff(U**2) / np.diff(U)
    found = fwdad.jvp(lambda t: table(values)((t, 0.5)), U, np.ones(4))[1]
    assert_allclose(found, [*slopes, slopes[-1]], rtol=1e-13)


def test_points_that_are_nan_and_beyond_count_for_nothing():
    at = np.array([[0.2, np.nan], [0.5, 0.3], [9.0, 0.1], [np.nan, 7.0]])

    def f(values, at):
        return table(values, bounds_error=False)(at)

    y = f(PLANE, at)
    assert_array_equal(np.isnan(y), [True, False, True, True])
    want = fwdad.jacfwd(f, (0, 1))(PLANE, at[1:2])
    for derivative in (fwdad.jacfwd, fwdad.jacrev):
        by_values, by_points = derivative(f, (0, 1))(PLANE, at)
        assert_allclose(by_values[1], want[0][0], rtol=1e-14)
        assert_allclose(by_points[1, 1], want[1][0, 0], rtol=1e-14)
        for k in (0, 2, 3):
            assert_array_equal(by_values[k], 0.0)
            assert_array_equal(by_points[k], 0.0)
    gradient = fwdad.grad(lambda v: np.nansum(f(v, at)))(PLANE)
    assert_allclose(gradient, want[0][0], rtol=1e-14)


def test_no_points():
    J = fwdad.jacobian(lambda v: table(v)(np.empty((0, 2))), PLANE)
    assert J.shape == (0, 4, 3)
