"""Filters of states and of attitudes."""

import numpy as np

from tests.packages.package_function import PackageFunction

_Z = np.array([0.9, 2.1, 2.8, 4.2, 5.0])


def _filterpy_ukf():
    from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter

    def f(p):
        points = MerweScaledSigmaPoints(2, alpha=0.1, beta=2.0, kappa=1.0)
        ukf = UnscentedKalmanFilter(
            dim_x=2,
            dim_z=1,
            dt=0.5,
            hx=lambda x: np.array([x[0]]),
            fx=lambda x, dt: np.array([x[0] + dt * x[1], x[1] - dt * np.sin(x[0])]),
            points=points,
        )
        ukf.x = np.array([0.1, p[0]])
        ukf.P = ukf.P * p[1]
        ukf.R = ukf.R * p[2]
        for z in _Z[:2]:
            ukf.predict()
            ukf.update(z)
        return ukf.x

    return f, np.array([0.5, 0.8, 0.3])


def _filterpy_ekf():
    from filterpy.kalman import ExtendedKalmanFilter

    def f(p):
        ekf = ExtendedKalmanFilter(dim_x=2, dim_z=1)
        ekf.x = np.array([[p[0]], [1.0]])
        ekf.F = np.array([[1.0, 0.1], [0.0, 1.0]])
        ekf.R = np.array([[p[1]]])
        for z in _Z[:3]:
            ekf.predict()
            ekf.update(
                np.array([[z]]),
                HJacobian=lambda x: np.array([[2.0 * x[0, 0], 0.0]]),
                Hx=lambda x: np.array([[x[0, 0] ** 2]]),
            )
        return ekf.x[:, 0]

    return f, np.array([1.1, 0.5])


def _filterpy_white_noise():
    from filterpy.common import Q_discrete_white_noise

    def f(p):
        return Q_discrete_white_noise(dim=2, dt=p[0], var=p[1])

    return f, np.array([0.4, 1.5])


def _pykalman_filter():
    from pykalman import KalmanFilter

    def f(p):
        kf = KalmanFilter(
            transition_matrices=np.array([[1.0, p[0]], [0.0, 1.0]]),
            observation_matrices=np.array([[1.0, 0.0]]),
            transition_covariance=p[1] * np.eye(2),
            observation_covariance=np.array([[0.5]]),
            initial_state_mean=np.zeros(2),
            initial_state_covariance=np.eye(2),
        )
        return kf.filter(_Z)[0][-1]

    return f, np.array([0.9, 0.3])


def _pykalman_loglikelihood():
    from pykalman import KalmanFilter

    def f(p):
        kf = KalmanFilter(
            transition_matrices=np.array([[p[0]]]),
            observation_matrices=np.array([[1.0]]),
            transition_covariance=np.array([[p[1]]]),
            observation_covariance=np.array([[p[2]]]),
            initial_state_mean=np.zeros(1),
            initial_state_covariance=np.eye(1),
        )
        return kf.loglikelihood(_Z)

    return f, np.array([0.9, 0.3, 0.5])


def _ahrs_quaternion():
    from ahrs import Quaternion

    def f(p):
        return Quaternion(p).to_DCM()

    return f, np.array([0.9, 0.2, -0.3, 0.1])


def _ahrs_madgwick():
    from ahrs.filters import Madgwick

    gyr = np.array([0.1, -0.2, 0.05])
    acc = np.array([0.3, 0.2, 9.7])
    filter_ = Madgwick()

    def f(p):
        q = p
        for _ in range(3):
            q = filter_.updateIMU(q, gyr, acc)
        return q

    return f, np.array([0.9, 0.2, -0.3, 0.24])


def _ahrs_gravity():
    from ahrs.utils import WGS

    return lambda p: WGS().normal_gravity(p[0], p[1]), np.array([45.0, 300.0])


def _ahrs_orientation():
    from ahrs.common.orientation import q2R, q_prod

    b = np.array([0.5, 0.5, 0.1, 0.2])
    return lambda p: q2R(q_prod(p, b)), np.array([0.9, 0.2, -0.3, 0.1])


CASES = [
    PackageFunction("filterpy", "UnscentedKalmanFilter, two steps", _filterpy_ukf),
    PackageFunction("filterpy", "ExtendedKalmanFilter, three steps", _filterpy_ekf),
    PackageFunction("filterpy", "Q_discrete_white_noise", _filterpy_white_noise),
    PackageFunction(
        "pykalman",
        "KalmanFilter.filter",
        _pykalman_filter,
        {"*": "UnsupportedTypeError"},
        why="observations are masked arrays",
    ),
    PackageFunction(
        "pykalman",
        "KalmanFilter.loglikelihood",
        _pykalman_loglikelihood,
        {"*": "UnsupportedTypeError"},
        why="observations are masked arrays",
    ),
    PackageFunction(
        "ahrs",
        "Quaternion.to_DCM",
        _ahrs_quaternion,
        {"*": "UnsupportedTypeError", "jit": "UntraceableError"},
        why="Quaternion is a subclass of ndarray",
    ),
    PackageFunction(
        "ahrs",
        "Madgwick.updateIMU, three steps",
        _ahrs_madgwick,
        {"*": "UnsupportedTypeError", "jit": "UntraceableError"},
        why="Quaternion is a subclass of ndarray",
    ),
    PackageFunction("ahrs", "WGS.normal_gravity", _ahrs_gravity),
    PackageFunction("ahrs", "q2R of q_prod", _ahrs_orientation),
]
