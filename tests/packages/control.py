"""Control and filters."""

import numpy as np

from tests.packages.package_function import PackageFunction


def _filterpy():
    from filterpy.kalman import KalmanFilter

    z = np.array([0.9, 2.1, 2.8, 4.2, 5.0])

    def f(p):
        kf = KalmanFilter(dim_x=2, dim_z=1)
        kf.x = np.array([[0.0], [1.0]])
        kf.F = np.array([[1.0, 1.0], [0.0, 1.0]])
        kf.H = np.array([[1.0, 0.0]])
        kf.P *= p[0]
        kf.R *= p[1]
        kf.Q = np.eye(2) * p[2]
        total = 0.0
        for v in z:
            kf.predict()
            kf.update(v)
            total = total + kf.x[0, 0]
        return total

    return f, np.array([2.0, 0.5, 0.1])


def _control_freqresp():
    import control

    def f(p):
        system = control.tf([p[0]], [1.0, p[1], p[2]])
        return abs(system(1.5j))

    return f, np.array([2.0, 0.7, 3.0])


CASES = [
    PackageFunction("filterpy", "KalmanFilter, five steps", _filterpy),
    PackageFunction(
        "control",
        "tf, its gain at a frequency",
        _control_freqresp,
        refused={"jit": "UntraceableError"},
        why="np.nditer is not traced",
    ),
]
