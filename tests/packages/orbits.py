"""Orbits, places on the Earth, the expanding universe."""

import numpy as np

from tests.packages.package_function import PackageFunction

_LINES = (
    "1 25544U 98067A   19343.69339541  .00001764  00000-0  38792-4 0  9991",
    "2 25544  51.6439 211.2001 0007417  17.6667  85.6398 15.50103472202482",
)


def _sgp4_position():
    from sgp4.model import Satrec

    satellite = Satrec.twoline2rv(*_LINES)
    return lambda p: np.array(satellite.sgp4_tsince(p[0])[1]), np.array([60.0])


def _sgp4_compiled():
    from sgp4.api import Satrec

    satellite = Satrec.twoline2rv(*_LINES)
    return lambda p: np.array(satellite.sgp4_tsince(p[0])[1]), np.array([60.0])


def _sgp4_elements():
    from sgp4.model import WGS72, Satrec

    def f(p):
        satellite = Satrec()
        drag = p[0] * 1e-5
        satellite.sgp4init(
            WGS72, "i", 5, 18441.785, drag, 6.969196665e-13, 0.0, p[1], 5.785, p[2], 0.3, 0.05, 2.9
        )
        return np.array(satellite.sgp4_tsince(100.0)[1])

    return f, np.array([2.8098, 0.1859667, 0.5980929])


def _skyfield_elements():
    from skyfield.elementslib import eccentricity_vector, node_vector

    def f(p):
        position, velocity = p[:3, None], p[3:, None]
        across = np.cross(p[:3], p[3:])[:, None]
        return eccentricity_vector(position, velocity, 2.959e-4) + node_vector(across)

    return f, np.array([1.0, 0.1, 0.2, 0.003, 0.017, 0.002])


def _skyfield_wgs84():
    from skyfield.api import wgs84

    return (
        lambda p: wgs84.latlon(p[0], p[1], elevation_m=p[2]).itrs_xyz.km,
        np.array([40.0, 20.0, 100.0]),
    )


def _skyfield_time():
    from skyfield.earthlib import earth_rotation_angle, refraction

    return (
        lambda p: refraction(p[0], 10.0, 1010.0) + earth_rotation_angle(2451545.0, p[1]),
        np.array([20.0, 0.3]),
    )


def _astropy_distance():
    from astropy.cosmology import FlatLambdaCDM

    def f(p):
        return FlatLambdaCDM(H0=p[0], Om0=p[1]).luminosity_distance(0.8).value

    return f, np.array([70.0, 0.3])


def _astropy_efunc():
    from astropy.cosmology import FlatLambdaCDM

    cosmology = FlatLambdaCDM(H0=70.0, Om0=0.3)
    return lambda p: cosmology.efunc(p), np.array([0.2, 0.8])


def _astropy_model():
    from astropy.modeling.functional_models import Gaussian1D, Sersic1D

    x = np.linspace(0.1, 2.0, 5)

    def f(p):
        return Gaussian1D.evaluate(x, p[0], p[1], p[2]) + Sersic1D.evaluate(x, p[0], 1.0, 4.0)

    return f, np.array([2.0, 0.7, 0.5])


def _astropy_statistics():
    from astropy.stats import circmean, circvar

    return lambda p: circmean(p) + circvar(p), np.array([0.3, 1.2, 0.8, 2.0])


def _pymap3d_ecef():
    import pymap3d

    def f(p):
        return np.array(pymap3d.geodetic2ecef(p[0], p[1], p[2]))

    return f, np.array([42.0, -82.0, 200.0])


def _pymap3d_geodetic():
    import pymap3d

    def f(p):
        return np.array(pymap3d.ecef2geodetic(p[0], p[1], p[2]))

    return f, np.array([660.0e3, -4700.0e3, 4247.0e3])


def _pymap3d_vincenty():
    from pymap3d.vincenty import vdist

    return lambda p: vdist(p[0], p[1], 10.5, 21.0)[0] / 1e3, np.array([10.0, 20.0])


def _geographiclib_inverse():
    from geographiclib.geodesic import Geodesic

    def f(p):
        return Geodesic.WGS84.Inverse(p[0], p[1], 40.6, -73.8)["s12"] / 1e3

    return f, np.array([-41.32, 174.81])


def _geographiclib_direct():
    from geographiclib.geodesic import Geodesic

    def f(p):
        answer = Geodesic.WGS84.Direct(p[0], p[1], p[2], 20e6)
        return np.array([answer["lat2"], answer["lon2"]])

    return f, np.array([-32.06, 115.74, 225.0])


CASES = [
    PackageFunction(
        "sgp4",
        "Satrec in Python, position by time",
        _sgp4_position,
        {"jit": "UntraceableError"},
        why="writes into the satellite from outside",
    ),
    PackageFunction(
        "sgp4",
        "Satrec in C++, position by time",
        _sgp4_compiled,
        {"*": "MissingRuleError", "jit": "UntraceableError"},
        why="compiled code",
    ),
    PackageFunction("sgp4", "Satrec in Python, position by elements", _sgp4_elements),
    PackageFunction("skyfield", "eccentricity_vector and node_vector", _skyfield_elements),
    PackageFunction("skyfield", "wgs84.latlon", _skyfield_wgs84),
    PackageFunction("skyfield", "refraction and earth_rotation_angle", _skyfield_time),
    PackageFunction(
        "astropy",
        "FlatLambdaCDM.luminosity_distance",
        _astropy_distance,
        {"*": "DualLeakError", "jit": "UntraceableError"},
        why="parameters become quantities, a subclass of ndarray",
    ),
    PackageFunction("astropy", "FlatLambdaCDM.efunc", _astropy_efunc),
    PackageFunction("astropy", "Gaussian1D and Sersic1D", _astropy_model),
    PackageFunction(
        "astropy",
        "circmean and circvar",
        _astropy_statistics,
    ),
    PackageFunction("pymap3d", "geodetic2ecef", _pymap3d_ecef),
    PackageFunction(
        "pymap3d",
        "ecef2geodetic",
        _pymap3d_geodetic,
    ),
    PackageFunction(
        "pymap3d",
        "vdist",
        _pymap3d_vincenty,
    ),
    PackageFunction(
        "geographiclib",
        "Geodesic.Inverse",
        _geographiclib_inverse,
    ),
    PackageFunction(
        "geographiclib",
        "Geodesic.Direct",
        _geographiclib_direct,
    ),
]
