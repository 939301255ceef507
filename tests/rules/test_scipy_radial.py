"""Radial basis functions of SciPy, against differences, and what an interpolant has to be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import RBFInterpolator
from scipy.linalg.lapack import dgesv

import fwdad
from fwdad.errors import UndefinedDerivativeError
from fwdad.testing import check_frule
from tests.differences import central_differences
from tests.rules.case import Draw

draw = Draw(71)
PLACES, VALUES = draw.rng.uniform(size=(9, 2)), draw.real(9)
AT = np.array([[0.31, 0.42], [0.7, 0.65], [1.3, -0.2]])
KERNELS = (
    "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric",
    "inverse_quadratic", "gaussian",
)  # fmt: skip


def everything(kernel):
    """Of data points, their values, smoothing, and points, in one array."""

    def f(z):
        places, values, at = z[:18].reshape(9, 2), z[18:27], z[27:].reshape(3, 2)
        smoothing = 0.1 * values**2
        return RBFInterpolator(places, values, smoothing=smoothing, kernel=kernel, epsilon=1.3)(at)

    return f


Z = np.concatenate([PLACES.ravel(), VALUES, AT.ravel()])


@pytest.mark.every(6, first=3)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel(kernel):
    f, z = everything(kernel), Z.copy()
    want, tolerance = central_differences(f, z), {"rtol": 1e-5, "atol": 1e-6}
    for chunk in (1, 2, 3, 5, "auto"):
        assert_allclose(fwdad.jacobian(f, z, chunk=chunk, mode="forward"), want, **tolerance)
    assert_allclose(fwdad.jacobian(f, z, mode="reverse"), want, **tolerance)
    weights = draw.real(3)
    gradient = fwdad.grad(lambda z: weights @ f(z))
    assert_allclose(gradient(z), weights @ want, **tolerance)
    for backend in ("numpy", "auto"):
        assert_allclose(fwdad.jit(gradient, backend=backend)(z), gradient(z), rtol=1e-9, atol=1e-9)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(z), want, **tolerance)
    assert_array_equal(fwdad.jvp(f, z, np.ones_like(z))[0], f(z))
    assert_array_equal(z, Z)
    v = draw.real(len(z))
    change = central_differences(lambda t: gradient(z + t[0] * v), np.zeros(1))[:, 0]
    assert_allclose(fwdad.hvp(lambda z: weights @ f(z))(z, v), change, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", ["thin_plate_spline", "multiquadric"])
def test_as_users_call_it(kernel):
    several = np.stack([VALUES, VALUES**2], axis=1)
    f = RBFInterpolator(PLACES, several, kernel=kernel, epsilon=2.0)
    assert_allclose(fwdad.jacobian(f, AT), central_differences(f, AT), rtol=1e-6, atol=1e-6)

    def at_data(v):
        return RBFInterpolator(PLACES, v, kernel=kernel, epsilon=2.0)(PLACES)

    for mode in ("forward", "reverse"):  # it goes through its data
        assert_allclose(fwdad.jacobian(at_data, VALUES, mode=mode), np.eye(9), atol=1e-10)


def test_a_polynomial_is_itself():
    """Of the kernel's least degree; so are its derivatives, wherever the data points are."""

    def f(places, at):
        return RBFInterpolator(places, 1.0 + places @ [2.0, -3.0], degree=1)(at)[0]

    for derivative in (fwdad.jacfwd, fwdad.jacrev):
        by_places, by_at = derivative(f, (0, 1))(PLACES, AT[:1])
        assert_allclose(by_places, 0.0, atol=1e-11)
        assert_allclose(by_at, [[2.0, -3.0]], rtol=1e-11)


def test_at_data_points():
    """The kernel's slope is 0 where it is centred; of some there is no second derivative."""
    for kernel in ("cubic", "thin_plate_spline", "gaussian"):
        f = RBFInterpolator(PLACES, VALUES, kernel=kernel, epsilon=1.3)
        want = central_differences(f, PLACES[:2])
        assert_allclose(fwdad.jacobian(f, PLACES[:2]), want, rtol=1e-5, atol=1e-5)
    rough = RBFInterpolator(PLACES, VALUES)
    with pytest.raises(UndefinedDerivativeError, match="no second derivative at its data points"):
        fwdad.hessian(lambda x: np.sum(rough(x)), PLACES[:1])
    smooth = RBFInterpolator(PLACES, VALUES, kernel="gaussian", epsilon=1.3)
    gradient = fwdad.grad(lambda x: np.sum(smooth(x)))
    found = fwdad.hessian(lambda x: np.sum(smooth(x)), PLACES[:1])
    assert_allclose(found, central_differences(gradient, PLACES[:1]), rtol=1e-5, atol=1e-5)


def test_lapack_solves(rng):
    a, b = draw.regular(4), draw.real(4, 2)
    check_frule(lambda a, b: dgesv(a, b)[2], a, b, rng=rng)
    with pytest.raises(UndefinedDerivativeError, match="factors that dgesv returns"):
        fwdad.jacobian(lambda a: dgesv(a, b)[0], a)

    def f(v):  # both are arrays that LAPACK may write into
        a, b = np.asfortranarray(np.diag(v) + 0.1), np.asfortranarray(v[:, None] ** 2)
        x = dgesv(a, b, overwrite_a=True, overwrite_b=True)[2]
        if x[0, 0] > 1e9:
            raise ValueError
        return np.sum(x**3)

    v = np.array([1.0, 2.0, 3.0])
    want = central_differences(f, v)
    for g in (fwdad.grad(f), fwdad.jit(fwdad.grad(f)), fwdad.jacfwd(f)):
        assert_allclose(g(v), want, rtol=1e-8)
