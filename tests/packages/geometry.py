"""Rotations, poses and meshes."""

import numpy as np

from tests.packages.package_function import PackageFunction


def _euler():
    from transforms3d.euler import euler2mat

    return lambda p: euler2mat(p[0], p[1], p[2], "sxyz").ravel(), np.array([0.3, -0.2, 0.9])


def _quaternion():
    from transforms3d.quaternions import quat2mat, rotate_vector

    def f(q):
        return quat2mat(q) @ np.array([1.0, 2.0, 3.0]) + rotate_vector([1.0, 0, 0], q)

    return f, np.array([0.9, 0.1, -0.3, 0.2])


def _decomposed():
    from transforms3d.affines import decompose44

    def f(p):
        matrix = np.eye(4)
        matrix[:3, :3] = p.reshape(3, 3)
        _, _, zooms, shears = decompose44(matrix)
        return np.concatenate([zooms, shears])

    return f, np.array([1.1, 0.2, 0.0, -0.1, 0.9, 0.3, 0.2, 0.1, 1.3])


def _rotate():
    from pyquaternion import Quaternion

    def f(p):
        return Quaternion(axis=[0.0, 0.6, 0.8], angle=p[0]).rotate(np.array([1.0, p[1], 0.3]))

    return f, np.array([0.7, 0.4])


def _slerp():
    from pyquaternion import Quaternion

    def f(p):
        a = Quaternion(axis=[1.0, 0.0, 0.0], angle=0.3)
        b = Quaternion(axis=[0.0, 1.0, 0.0], angle=p[0])
        return Quaternion.slerp(a, b, amount=p[1]).elements

    return f, np.array([1.2, 0.4])


def _pose():
    from spatialmath import SE3

    def f(p):
        return (SE3(p[0], 0.2, 0.3) * SE3.Rx(p[1])) * np.array([1.0, 2.0, 3.0])

    return f, np.array([0.4, 0.7])


def _twist():
    from spatialmath.base import trexp, trlog

    def f(p):
        t = trexp(p)
        return np.append(t[:3].ravel(), trlog(t, twist=True))

    return f, np.array([0.4, 0.1, -0.2, 0.3, -0.5, 0.2])


CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def _volume():
    import trimesh

    def f(p):
        return trimesh.Trimesh(vertices=p.reshape(4, 3), faces=FACES, process=False).volume

    return f, CORNERS.ravel() + 0.1 * np.sin(np.arange(12.0))


def _area():
    import trimesh

    def f(p):
        return trimesh.triangles.area(p.reshape(4, 3)[FACES]).sum()

    return f, CORNERS.ravel() + 0.1 * np.sin(np.arange(12.0))


def _transform():
    from trimesh.transformations import rotation_matrix, transform_points

    def f(p):
        matrix = rotation_matrix(p[0], [p[1], 1.0, 0.5])
        return transform_points(CORNERS, matrix).ravel()

    return f, np.array([0.4, 0.3])


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction("transforms3d", "euler2mat", _euler),
    PackageFunction("transforms3d", "quat2mat, rotate_vector", _quaternion),
    PackageFunction("transforms3d", "decompose44", _decomposed),
    PackageFunction(
        "pyquaternion",
        "rotate, by an angle",
        _rotate,
    ),
    PackageFunction(
        "pyquaternion",
        "slerp",
        _slerp,
    ),
    PackageFunction("spatialmath-python", "SE3, a pose", _pose),
    PackageFunction("spatialmath-python", "trexp and trlog", _twist),
    PackageFunction(
        "trimesh",
        "Trimesh.volume, by vertices",
        _volume,
        refused={"*": "UnsupportedTypeError", "jit": "UntraceableError"},
        why="a subclass of ndarray",
    ),
    PackageFunction("trimesh", "triangles.area, by vertices", _area),
    PackageFunction("trimesh", "rotation_matrix, transform_points", _transform),
]
