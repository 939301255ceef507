"""Splines through SciPy's images, against differences, their own matrices, and polynomials."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

import fwdad
from fwdad.errors import DualLeakError
from fwdad.rules.scipy_image_splines import spline_values
from fwdad.testing import check_frule, check_transpose
from tests.differences import central_differences
from tests.rules.case import Case, Draw, transposes

draw = Draw(61)
MODES = (
    "reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap",
)  # fmt: skip
AT = np.array([[0.3, 2.6, -0.4, 3.3], [1.2, 0.7, 2.2, 5.6]])  # within, and beyond the borders

CASES = [
    *(
        Case(ndimage.spline_filter1d, x, order, axis, output=x.dtype, mode=mode, linear=(0,))
        for mode in MODES
        for x, order, axis in (
            (draw.real(5, 2), 3, 0), (draw.real(2), 5, 0), (draw.real(1), 2, 0),
            (draw.real(50), 5, 0), (draw.real(50, 2), 3, 0),
            (draw.complex(2, 4), 4, -1), (draw.real(3), 1, 0),
        )
    ),
    *(
        Case(ndimage.spline_filter, x, 3, output=x.dtype, mode=mode, linear=(0,))
        for mode in MODES
        for x in (draw.real(4, 3), draw.complex(2, 3))
    ),
    *(
        Case(spline_values, c, AT[: c.ndim], nu, order, mode, linear=(0,))
        for mode in ("reflect", "constant", "nearest", "mirror", "grid-wrap", "wrap")
        for c, nu, order in (
            (draw.real(4, 3), (0, 0), 3), (draw.real(5), (1,), 4), (draw.complex(3, 2), (0, 2), 5),
            (draw.real(2, 2), (0, 1), 2), (draw.real(3, 2), (0, 0), 1),
        )
    ),
    *(
        Case(ndimage.map_coordinates, draw.real(4, 5), AT, order=order, mode=mode, cval=0.7)
        for mode in MODES
        for order in (1, 2, 3)
    ),
    *(
        Case(ndimage.affine_transform, draw.real(3, 4), matrix, 0.3, mode=mode, cval=0.7)
        for mode in MODES
        for matrix in (draw.real(2, 2), draw.real(2) + 1.3)
    ),
    *(Case(ndimage.shift, draw.real(3, 4), draw.real(2), mode=mode, cval=0.7) for mode in MODES),
    *(
        Case(ndimage.zoom, draw.real(3, 4), (1.7, 0.6), mode=mode, cval=0.7, order=order)
        for mode in MODES
        for order in (0, 1, 3)
    ),
]  # fmt: skip


@pytest.mark.every(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


# -- all modes and orders: of a function that is linear in the image, its own matrix is exact


def matrix_of(f, x):
    """The matrix of an affine function, column by column."""
    nothing = f(np.zeros_like(x)).ravel()
    return np.stack([f(e.reshape(x.shape)).ravel() - nothing for e in np.eye(x.size)], -1)


@pytest.mark.every(7)
@pytest.mark.parametrize("prefilter", [True, False])
@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_and_order(mode, order, prefilter):
    options = {"mode": mode, "order": order, "prefilter": prefilter, "cval": 0.7}
    for shape in ((4, 3), (1, 2)):
        wide = draw.rng.uniform(-9, 12, (2, 9))
        at = np.concatenate([wide, np.round(wide), np.round(wide) + 0.5], axis=1)
        functions = (
            lambda x, at=at: ndimage.map_coordinates(x, at, **options),
            lambda x: ndimage.zoom(x, (2, 1.7), **options),
            lambda x: ndimage.shift(x, (0.5, -1.0), **options),
            lambda x: ndimage.affine_transform(x, [[0.0, 1.0], [-1.0, 0.0]], (0, 2), **options),
            lambda x: ndimage.affine_transform(x, [0.5, 2.0], -0.5, **options),
        )
        for f in functions:
            x = draw.real(*shape)
            want = matrix_of(f, x)
            for derivative in (fwdad.jacfwd(f), fwdad.jacrev(f)):
                found = derivative(x).reshape(want.shape)
                assert_allclose(found, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", MODES)
def test_by_coordinates_in_every_mode(mode):
    x, at = draw.real(5), draw.rng.uniform(-7, 12, 30)
    for order in range(6):
        for cval in (0.7, np.nan) if mode == "constant" else (0.7,):
            options = {"mode": mode, "order": order, "cval": cval}

            def f(at, x=x, options=options):
                return ndimage.map_coordinates(x, at[None], **options)

            y, h = f(at), 1e-7
            want = (f(at + h) - f(at - h)) / (2 * h)
            inside = np.abs(want) < 1e3  # or NaN: no jump of the value within h
            found = fwdad.jvp(f, at, np.ones_like(at))[1]
            assert_allclose(found[inside], want[inside], rtol=1e-6, atol=1e-6)
            assert_array_equal(found[np.isnan(y)], 0.0)


# -- what is known


def test_a_cubic_is_its_own_spline():
    """Far from the mirrored ends, whose influence decays by 0.27 with each element."""
    k = np.arange(61.0) - 30.0

    def at(t):
        return ndimage.map_coordinates(k**3 - k, [[30.0 + t]], mode="mirror")[0]

    for t in (0.0, 0.3, -1.7):
        assert_allclose(fwdad.derivative(at, t), 3 * t**2 - 1, rtol=1e-9, atol=1e-9)
        assert_allclose(fwdad.derivative(fwdad.derivative(at))(t), 6 * t, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["constant", "wrap", "mirror", "nearest", "grid-wrap"])
def test_at_elements_the_slope_is_that_of_the_piece_behind(mode):
    x = np.array([0.0, 1.0, 3.0, 7.0])
    last = {"constant": 4.0, "wrap": 4.0, "mirror": -4.0, "nearest": 0.0, "grid-wrap": -7.0}

    def f(t):
        return ndimage.map_coordinates(x, t[None], order=1, mode=mode)

    found = fwdad.jvp(f, np.arange(4.0), np.ones(4))[1]
    assert_allclose(found, [1.0, 2.0, 4.0, last[mode]], atol=1e-15)


# -- as users call them


IMAGE, STACK, X = draw.real(5, 6), draw.real(3, 4, 5), draw.real(30)
TURN = np.array([[0.9, 0.12], [-0.2, 0.83]])


def written(x):
    y = np.ones((5, 6))
    ndimage.shift(x.reshape(5, 6), 0.3, y)
    return y * x[0]


PROGRAMS = {
    "coordinates": lambda x: ndimage.map_coordinates(IMAGE, 2.0 + x.reshape(2, 15)),
    "both": lambda x: ndimage.map_coordinates(x.reshape(5, 6), 2.0 + x.reshape(2, 15), order=2),
    "filtered before": lambda x: ndimage.map_coordinates(
        ndimage.spline_filter(x.reshape(5, 6), mode="grid-wrap"), AT, mode="grid-wrap",
        prefilter=False,
    ),
    "of three axes": lambda x: ndimage.map_coordinates(
        x.reshape(5, 3, 2), [[1.5, 2.2], [1.1, 3.3], [0, 0.4]], order=5, mode="wrap"
    ),
    "to four axes": lambda x: ndimage.map_coordinates(IMAGE, np.cos(x).reshape(2, 1, 3, 1, 5)),
    "affine": lambda x: ndimage.affine_transform(x.reshape(5, 6), TURN, x[:2]),
    "homogeneous": lambda x: ndimage.affine_transform(
        IMAGE, np.concatenate([TURN + 0.01 * x[:4].reshape(2, 2), x[:2, None]], 1), mode="mirror"
    ),
    "larger": lambda x: ndimage.affine_transform(
        x.reshape(5, 6), np.vstack([np.hstack([TURN, [[1.1], [0.3]]]), [0, 0, 1]]),
        output_shape=(7, 3), mode="nearest",
    ),
    "shift": lambda x: ndimage.shift(IMAGE, x[0], mode="grid-constant", cval=2.0),
    "complex": lambda x: np.abs(
        ndimage.shift((1 + 2j * x).reshape(5, 6), x[:2], mode="grid-constant", cval=1j)
    ),
    "zoom": lambda x: ndimage.zoom(x.reshape(5, 6), 1.7, mode="grid-wrap", grid_mode=True),
    "zoom by one": lambda x: ndimage.zoom(x.reshape(5, 6), 1),
    "rotate": lambda x: ndimage.rotate(x.reshape(5, 6), 30.0 + x[0], reshape=False),
    "rotate by 90": lambda x: ndimage.rotate(x.reshape(5, 6), 90.0),
    "rotate planes": lambda x: ndimage.rotate(STACK * x[0], 30.0 * x[1], reshape=False, order=1),
    "nearest": lambda x: ndimage.rotate(x.reshape(5, 6), 30.0, order=0),
    "written": written,
}  # fmt: skip


@pytest.mark.every(4)
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_programs(f):
    x = X.copy()
    y, want = f(x), central_differences(f, x)
    tolerance = {"rtol": 1e-6, "atol": 1e-7}
    for chunk in (1, 2, 3, 5, "auto"):
        assert_allclose(fwdad.jacobian(f, x, chunk=chunk, mode="forward"), want, **tolerance)
    assert_allclose(fwdad.jacobian(f, x, mode="reverse"), want, **tolerance)
    weights = draw.real(*y.shape)
    gradient = fwdad.grad(lambda x: np.sum(weights * f(x)))
    assert_allclose(gradient(x), np.tensordot(weights, want, y.ndim), **tolerance)
    for backend in ("numpy", "auto"):
        compiled = fwdad.jit(gradient, backend=backend)
        assert_allclose(compiled(x), gradient(x), rtol=1e-10, atol=1e-11)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x), want, **tolerance)
    assert_array_equal(fwdad.jit(f, backend="numpy")(x), y)
    assert_array_equal(fwdad.jvp(f, x, np.ones_like(x))[0], y)
    assert_array_equal(x, X)


@pytest.mark.slow_cases("affine", "rotate")
@pytest.mark.parametrize("name", ["both", "affine", "homogeneous", "complex", "rotate"])
def test_second_derivatives(name):
    def loss(x):
        return np.sum(PROGRAMS[name](x) ** 2)

    want = central_differences(fwdad.grad(loss), X)
    assert_allclose(fwdad.hessian(loss, X), want, rtol=1e-5, atol=1e-5)
    v = draw.real(30)
    assert_allclose(fwdad.hvp(loss)(X, v), want @ v, rtol=1e-5, atol=1e-5)
    forward = fwdad.jacobian(lambda x: fwdad.jacobian(loss, x, mode="forward"), X, mode="forward")
    assert_allclose(forward, want, rtol=1e-5, atol=1e-5)


def test_dtypes():
    x, v = draw.real(3, 4).astype(np.float32), draw.real(3, 4).astype(np.float32)
    for f in (lambda x: ndimage.zoom(x, 2), lambda x: ndimage.shift(x, 0.3, order=1)):
        y, y_dot = fwdad.jvp(f, x, v)
        assert y.dtype == y_dot.dtype == np.float32
        assert_array_equal(y, f(x))
        assert_allclose(y_dot, f(v), rtol=1e-5, atol=1e-6)
        assert fwdad.grad(lambda x, f=f: np.sum(f(x)))(x).dtype == np.float32
    whole = np.arange(12).reshape(3, 4)
    with pytest.raises(DualLeakError, match="output=float"):
        fwdad.jvp(lambda s: ndimage.shift(whole, s), 0.3, 1.0)
    slope = fwdad.jvp(lambda s: ndimage.shift(whole, s, output=float, order=1), 0.3, 1.0)[1]
    assert_allclose(slope[1:, 1:], -5.0, rtol=1e-13)
    assert_array_equal(slope[0], 0.0)


def test_the_factor_of_zoom_counts_by_the_lengths_alone():
    with pytest.raises(Exception, match="zoom"):
        fwdad.jacobian(lambda a: ndimage.zoom(IMAGE, a[0]), np.array([1.7]))
