"""Correlations, convolutions and running means of SciPy, and the filters made of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

import fwdad
from fwdad.errors import DualLeakError, MissingRuleError
from fwdad.rules.core.adjoints import TRANSPOSES, Space
from fwdad.tangents.chunk import Chunk
from fwdad.testing import check_frule, check_transpose
from tests.differences import central_differences
from tests.rules.case import Case, Draw, transposes

draw = Draw(31)
BOTH, FIRST = (0, 1), (0,)
MODES = ("reflect", "constant", "nearest", "mirror", "wrap")
SAME = {"grid-mirror": "reflect", "grid-wrap": "wrap", "grid-constant": "constant"}
HAS_AXES = "axes" in ndimage.correlate.__kwdefaults__ if ndimage.correlate.__kwdefaults__ else False

CASES = [
    *(
        Case(f, draw.real(4), draw.real(3), mode=mode, cval=0.7, linear=BOTH)
        for f in (ndimage.correlate1d, ndimage.convolve1d)
        for mode in MODES
    ),
    *(
        Case(f, x, w, linear=BOTH, **options)
        for f in (ndimage.correlate1d, ndimage.convolve1d)
        for x, w, options in (
            (draw.real(5, 3), draw.real(4), {"axis": 0, "origin": -2}),
            (draw.real(2, 3), draw.real(6), {"mode": "mirror", "origin": 2}),
            (draw.complex(3, 2), draw.complex(2), {"axis": 0, "mode": "wrap"}),
            (draw.complex(4), draw.real(3), {"mode": "constant", "cval": 1.0 - 2.0j}),
            (draw.real(4), draw.complex(3), {}),
            (draw.real(3, 2).astype(np.float32), draw.real(2), {"output": np.float64}),
        )
    ),
    *(
        Case(f, x, w, linear=BOTH, **options)
        for f in (ndimage.correlate, ndimage.convolve)
        for x, w, options in (
            (draw.real(3, 4), draw.real(2, 3), {}),
            (draw.real(3, 2), draw.real(4, 3), {"mode": "constant", "cval": 0.7, "origin": 1}),
            (draw.real(2, 3), draw.real(3, 2), {"mode": "mirror", "origin": (1, -1)}),
            (draw.complex(2, 2), draw.complex(1, 3), {"mode": "wrap"}),
            (draw.real(2, 2, 3), draw.real(2, 1, 2), {"mode": "nearest"}),
        )
    ),
    *(
        Case(ndimage.uniform_filter1d, draw.real(4, 2), 3, axis=0, mode=mode, linear=FIRST)
        for mode in MODES
    ),
    Case(ndimage.uniform_filter1d, draw.complex(3), 4, origin=-2, linear=FIRST),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


# -- the adjoint at the borders, against the filter's own matrix


def matrix(f, x):
    """The matrix of a linear function, column by column."""
    columns = [f(e.reshape(x.shape)).ravel() for e in np.eye(x.size)]
    return np.stack(columns, axis=-1)


def agrees_with_its_matrix(f, args, k, **options):
    """The transpose of argument k at every cotangent, in chunks of 1, 2, 3 and all lanes."""

    def of(x):
        return f(*args[:k], x, *args[k + 1 :], **options)

    space = Space(args[k].shape, args[k].dtype)
    m = matrix(of, args[k])
    body = TRANSPOSES[f][k]
    y_bars = np.eye(len(m)).reshape(len(m), *np.shape(of(args[k])))
    given = [space if j == k else a for j, a in enumerate(args)]
    for n in (1, 2, 3, len(m)):
        x_bar = body(Chunk(y_bars[:n]), *given, **options)
        assert_allclose(x_bar.lanes.reshape(len(x_bar.lanes), -1), m[:n], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("mode", [*MODES, *SAME])
@pytest.mark.parametrize("f", [ndimage.correlate1d, ndimage.convolve1d])
def test_every_border_along_one_axis(f, mode):
    for n, m in ((1, 1), (1, 4), (2, 5), (3, 7), (5, 3), (4, 4), (3, 8)):
        for origin in {-(m // 2), 0, (m - 1) // 2}:
            args = (draw.real(n, 2), draw.real(m))
            for k in BOTH:
                agrees_with_its_matrix(f, args, k, axis=0, mode=mode, origin=origin)


@pytest.mark.parametrize("mode", [*MODES, *SAME])
@pytest.mark.parametrize("f", [ndimage.correlate, ndimage.convolve])
def test_every_border_along_two_axes(f, mode):
    for shape, lengths, origin in (
        ((3, 2), (2, 3), 0),
        ((2, 3), (5, 4), (1, -2)),
        ((1, 2), (3, 6), (-1, 2)),
        ((2, 4), (1, 3), (0, 1)),
        ((2, 2), (1, 1), 0),
    ):
        for k in BOTH:
            args = (draw.real(*shape), draw.real(*lengths))
            agrees_with_its_matrix(f, args, k, mode=mode, origin=origin)


@pytest.mark.parametrize("mode", [*MODES, *SAME])
def test_every_border_of_a_running_mean(mode):
    for n, size in ((1, 3), (2, 5), (5, 3), (4, 4), (3, 1)):
        for origin in {-(size // 2), 0, (size - 1) // 2}:
            args = (draw.real(n, 2), size)
            agrees_with_its_matrix(
                ndimage.uniform_filter1d, args, 0, axis=0, mode=mode, origin=origin
            )


@pytest.mark.skipif(not HAS_AXES, reason="SciPy's correlate has no axes yet")
def test_axes_that_are_named(rng):
    for f in (ndimage.correlate, ndimage.convolve):
        for x, w, options in (
            (draw.real(2, 3, 2), draw.real(2, 3), {"axes": (0, 2), "origin": (0, -1)}),
            (draw.real(3, 2), draw.real(2, 3), {"axes": (1, 0), "origin": (-1, 1)}),
            (draw.real(3, 4), draw.real(3), {"axes": (-1,), "mode": "constant", "cval": 2.0}),
        ):
            check_frule(f, x, w, rng=rng, **options)
            for k in BOTH:
                check_transpose(f, x, w, argnum=k, rng=rng, **options)


# -- what SciPy composes, and arrays that are written


def written(x):
    y = np.ones_like(x)
    ndimage.correlate1d(x, [1.0, 2.0, 3.0], 0, y)
    return y * x


def written_in_place(x):
    y = x**2
    answer = ndimage.convolve(y, [[1.0, -2.0], [0.5, 3.0]], output=y)
    return answer * y


def written_over(x):
    y = x * 3.0
    ndimage.uniform_filter1d(np.arange(20.0).reshape(5, 4), 3, output=y)
    return y + x


COMPOSED = {
    "gaussian_filter": lambda x: ndimage.gaussian_filter(x, 1.0),
    "its derivatives": lambda x: ndimage.gaussian_filter(
        x, (1.0, 0.5), order=(1, 2), mode=("wrap", "mirror")
    ),
    "gaussian_filter1d": lambda x: ndimage.gaussian_filter1d(x, 1.0, axis=0, mode="nearest"),
    "along one axis": lambda x: ndimage.gaussian_filter(x, 2.0, axes=(0,), output=np.zeros((5, 4))),
    "uniform_filter": lambda x: ndimage.uniform_filter(x, (3, 2)),
    "sobel": lambda x: ndimage.sobel(x, 0),
    "prewitt": lambda x: ndimage.prewitt(x, mode="constant", cval=2.0),
    "laplace": lambda x: ndimage.laplace(x, mode="constant", cval=2.0),
    "gaussian_laplace": lambda x: ndimage.gaussian_laplace(x, 0.7),
    "gaussian_gradient_magnitude": lambda x: ndimage.gaussian_gradient_magnitude(x, 0.7) ** 2,
    "of itself": lambda x: ndimage.correlate1d(x, x[:3, 0]),
    "of its square": lambda x: ndimage.convolve(x, x[:3, :2] ** 2),
    "written": written,
    "written in place": written_in_place,
    "written over": written_over,
}


@pytest.mark.parametrize("f", COMPOSED.values(), ids=COMPOSED)
def test_filters_in_python(f):
    x, weights = draw.real(5, 4), draw.real(5, 4)
    want = central_differences(f, x)
    for chunk in (1, 2, 3, "auto"):
        assert_allclose(fwdad.jacobian(f, x, chunk=chunk), want, rtol=1e-8, atol=1e-9)
    assert_allclose(fwdad.jacobian(f, x, mode="reverse"), want, rtol=1e-8, atol=1e-9)
    gradient = fwdad.grad(lambda x: np.sum(weights * f(x)))
    assert_allclose(gradient(x), np.tensordot(weights, want), rtol=1e-8, atol=1e-9)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x), want, rtol=1e-8, atol=1e-9)
    assert_allclose(fwdad.jit(gradient, backend="numpy")(x), gradient(x), rtol=1e-12, atol=1e-13)
    assert_array_equal(fwdad.jit(f, backend="numpy")(x), f(x))


@pytest.mark.parametrize("f", [COMPOSED["of itself"], COMPOSED["gaussian_filter"]])
def test_second_derivatives(f):
    x, weights = draw.real(5, 4), draw.real(5, 4)

    def energy(x):
        return np.sum(weights * f(x) ** 2)

    want = central_differences(fwdad.grad(energy), x)
    assert_allclose(fwdad.hessian(energy, x), want, rtol=1e-7, atol=1e-8)
    twice = fwdad.jacobian(fwdad.grad(energy), x, mode="reverse")
    assert_allclose(twice, want, rtol=1e-7, atol=1e-8)
    inside = fwdad.jacobian(lambda x: fwdad.jacobian(f, x), x)
    assert_allclose(
        inside, central_differences(lambda x: fwdad.jacobian(f, x), x), rtol=1e-7, atol=1e-8
    )


def test_single_precision_stays_single():
    x, v = draw.real(3, 4).astype(np.float32), draw.real(3, 4).astype(np.float32)
    y, y_dot = fwdad.jvp(lambda x: ndimage.gaussian_filter(x, 1.0), x, v)
    assert y.dtype == y_dot.dtype == np.float32
    assert_array_equal(y, ndimage.gaussian_filter(x, 1.0))
    assert_allclose(y_dot, ndimage.gaussian_filter(v, 1.0), rtol=1e-6)
    gradient = fwdad.grad(lambda x: np.sum(ndimage.correlate1d(x, [0.1, 0.2, 0.7])))(x)
    assert gradient.dtype == np.float32


def test_integers_do_not_take_a_derivative():
    image, w = np.arange(12).reshape(3, 4), np.array([0.5, 0.5, 0.25])
    for run in (fwdad.jacobian, lambda f, w: fwdad.jacobian(f, w, mode="reverse")):
        with pytest.raises(DualLeakError, match=r"int64.*output=float"):
            run(lambda w: ndimage.correlate1d(image, w) * w[0], w)
        with pytest.raises(DualLeakError, match="int"):
            run(lambda w: ndimage.correlate1d(w, [1.0, 2.0], output=np.zeros(3, int)) * w[0], w)
        found = run(lambda w: ndimage.correlate1d(image, w, output=float), w)
        read = [ndimage.correlate1d(image, e, output=float) for e in np.eye(3)]
        assert_allclose(found, np.stack(read, axis=-1), rtol=1e-14)


def test_an_output_of_another_shape_raises_as_in_scipy():
    def f(x):
        return ndimage.correlate1d(x, [1.0, 2.0], output=np.zeros((2, 3)))

    for run in (f, lambda x: fwdad.jacobian(f, x), lambda x: fwdad.jit(f, backend="numpy")(x)):
        with pytest.raises(RuntimeError, match="output shape not correct"):
            run(np.ones(3))


def test_options_that_carry_derivatives_raise():
    x = draw.real(4)
    with pytest.raises(MissingRuleError, match="takes `cval` as an option"):
        fwdad.jacobian(lambda x: ndimage.correlate1d(x, [1.0, 2.0], mode="constant", cval=x[0]), x)
    with pytest.raises(DualLeakError, match="would become an int"):
        fwdad.jacobian(lambda x: ndimage.gaussian_filter1d(x, 1.0 + x[0] ** 2), x)


def test_arrays_outside_are_written_as_by_a_plain_call():
    held = np.full((3,), 7.0)
    found = fwdad.jacobian(lambda x: ndimage.correlate1d(x, [1.0, 2.0], output=held), np.ones(3))
    assert_array_equal(held, ndimage.correlate1d(np.ones(3), [1.0, 2.0]))
    assert_allclose(found, matrix(lambda x: ndimage.correlate1d(x, [1.0, 2.0]), np.ones(3)))


def test_one_of_several_whole_numbers_that_a_library_returns_is_an_axis():
    from scipy.ndimage import _ni_support  # noqa: PLC0415  (a function of a library, not traced)

    def f(x):
        return np.sum(x, axis=_ni_support._check_axes(None, x.ndim)[1]) * x[:, 0]

    x = draw.real(3, 4)
    want = fwdad.jacobian(f, x)
    assert_allclose(want, central_differences(f, x), rtol=1e-8, atol=1e-9)
    assert_array_equal(fwdad.jit(f, backend="numpy")(x), f(x))
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x), want, rtol=1e-13)
    assert_allclose(fwdad.jacobian(f, x, mode="reverse"), want, rtol=1e-13)
