"""SciPy's ``Rotation``: derivatives through the functions in Python that its compiled ones have."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation, Slerp

import fwdad
from tests.differences import central_differences

pytest.importorskip("scipy.spatial.transform._rotation_xp", reason="SciPy 1.17 has it")

X = np.array([0.3, 0.5, 0.8])
FIXED = Rotation.from_euler("zyx", [0.1, 0.2, 0.3])
POINTS = np.array([[0.1, 0.4, 1.2], [2.0, 0.3, 0.5], [0.7, 1.1, 0.2], [0.4, 0.9, 2.2]])


def from_columns(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    return Rotation.from_matrix(np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])).as_rotvec()


PROGRAMS = {
    "applied": lambda x: Rotation.from_rotvec(x).apply(POINTS),
    "a fixed one": lambda x: FIXED.apply(x),
    "of angles": lambda x: Rotation.from_euler("xyz", x).as_matrix(),
    "of an angle": lambda x: Rotation.from_euler("Z", x[0]).as_rotvec(),
    "in degrees": lambda x: Rotation.from_euler("ZYX", [x[0], x[1], 0.3], degrees=True).as_quat(),
    "of a quaternion": lambda x: Rotation.from_quat(np.append(x, 0.8)).as_euler("zyx"),
    "of a matrix": from_columns,
    "of another matrix": lambda x: Rotation.from_matrix(
        np.eye(3) + 0.3 * np.outer(x, x[::-1])
    ).as_quat(),
    "a product": lambda x: (Rotation.from_rotvec(x) * FIXED).inv().as_quat(),
    "several": lambda x: (Rotation.from_rotvec(np.outer([1, 0.5], x)) * FIXED).magnitude(),
    "a power": lambda x: (Rotation.from_rotvec(x) ** 0.5).as_mrp(),
    "a mean": lambda x: Rotation.from_rotvec(np.diag(x)).mean().as_rotvec(),
    "aligned": lambda x: Rotation.align_vectors(POINTS + x, POINTS[:, ::-1])[0].as_rotvec(),
    "between": lambda x: Slerp([0, 1, 2], Rotation.from_rotvec(np.outer([0, 1, 0.4], x)))(
        [0.3, 1.6]
    ).as_rotvec(),
    "at rest": lambda x: Rotation.from_rotvec(x - X).as_rotvec(),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_rotations(f):
    want, tolerance = central_differences(f, X), {"rtol": 1e-6, "atol": 1e-8}
    for chunk in (1, 2, 3):
        assert_allclose(fwdad.jacobian(f, X, chunk=chunk, mode="forward"), want, **tolerance)
    assert_allclose(fwdad.jacrev(f)(X), want, **tolerance)
    jitted = fwdad.jit(lambda x: fwdad.jacobian(f, x))
    for x in (X, 1.1 * X):
        assert_allclose(jitted(x), central_differences(f, x), **tolerance)


def test_second_derivatives():
    def height(x):
        return Rotation.from_rotvec(x).apply(POINTS[0])[2]

    want = central_differences(fwdad.grad(height), X)
    assert_allclose(fwdad.hessian(height)(X), want, rtol=1e-6, atol=1e-8)
