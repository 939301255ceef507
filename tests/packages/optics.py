"""Optics, and the sun on a panel."""

import numpy as np

from tests.packages.package_function import PackageFunction


def _tmm_coherent():
    import tmm

    def f(d):
        answer = tmm.coh_tmm("s", [1, 2.2, 3.3 + 0.3j, 1], [np.inf, d[0], d[1], np.inf], 0.3, 500.0)
        return answer["R"]

    return f, np.array([100.0, 300.0])


def _tmm_ellipsometry():
    import tmm

    def f(p):
        answer = tmm.ellips([1, p[0], 3.9 + 0.02j], [np.inf, p[1], np.inf], 1.1, 600.0)
        return np.array([answer["psi"], answer["Delta"]])

    return f, np.array([1.46, 80.0])


def _miepython():
    import miepython

    def f(p):
        return miepython.efficiencies_mx(p[0] - 0.1j, p[1])[0]

    return f, np.array([1.5, 2.3])


def _prysm_zernike():
    from prysm.coordinates import cart_to_polar, make_xy_grid
    from prysm.polynomials import hopkins, zernike_nm_sequence

    x, y = make_xy_grid(16, diameter=2)
    r, t = cart_to_polar(x, y)
    modes = np.array(list(zernike_nm_sequence([(2, 0), (3, 1), (4, 0)], r, t)))

    def f(c):
        phase = np.tensordot(c, modes, axes=1) + hopkins(1, 2, 1, r, t, c[0])
        field = np.where(r < 1, np.exp(2j * np.pi * phase), 0)
        return abs(field.mean()) ** 2

    return f, np.array([0.05, 0.08, -0.04])


def _prysm_focus():
    from prysm.coordinates import cart_to_polar, make_xy_grid
    from prysm.propagation import focus

    x, y = make_xy_grid(16, diameter=2)
    r, t = cart_to_polar(x, y)

    def f(c):
        pupil = (r < 1) * np.exp(1j * (c[0] * r**2 + c[1] * r * np.cos(t)))
        image = abs(focus(pupil, 2)) ** 2
        return (image**2).sum()

    return f, np.array([0.7, 0.4])


def _colour_lab():
    import colour

    def f(rgb):
        return colour.XYZ_to_Lab(colour.sRGB_to_XYZ(rgb))

    return f, np.array([0.45, 0.3, 0.7])


def _colour_difference():
    import colour

    reference = np.array([48.0, 12.0, -25.0])

    def f(lab):
        return colour.delta_E(lab, reference, method="CIE 2000")

    return f, np.array([50.0, 10.0, -20.0])


def _pvlib_tilt():
    from pvlib import irradiance

    def f(p):
        return irradiance.get_total_irradiance(
            p[0], p[1], 40.0, 170.0, 800.0, 600.0, 120.0, dni_extra=1360.0, model="haydavies"
        )["poa_global"]

    return f, np.array([30.0, 160.0])


def _pvlib_diode():
    from pvlib import pvsystem

    def f(p):
        return pvsystem.i_from_v(20.0, p[0], p[1] * 1e-9, p[2], 300.0, 1.5, method="lambertw")

    return f, np.array([7.0, 6.0, 0.3])


def _pvlib_maximum():
    from pvlib import pvsystem

    def f(p):
        return pvsystem.max_power_point(p[0], p[1] * 1e-9, p[2], 300.0, 1.5, method="newton")[
            "p_mp"
        ]

    return f, np.array([7.0, 6.0, 0.3])


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction(
        "tmm",
        "coh_tmm, reflection by two thicknesses",
        _tmm_coherent,
    ),
    PackageFunction(
        "tmm",
        "ellips, by index and thickness of a film",
        _tmm_ellipsometry,
    ),
    PackageFunction(
        "miepython",
        "efficiencies_mx, by index and size",
        _miepython,
        refused={"*": "DualLeakError", "jit": "UntraceableError"},
        why="the number of terms is int() of the size",
    ),
    PackageFunction("prysm", "Zernike modes, Strehl ratio", _prysm_zernike),
    PackageFunction("prysm", "focus, sharpness", _prysm_focus),
    PackageFunction(
        "colour-science",
        "sRGB to CIE Lab",
        _colour_lab,
    ),
    PackageFunction(
        "colour-science",
        "delta_E of CIE 2000",
        _colour_difference,
    ),
    PackageFunction(
        "pvlib",
        "irradiance by tilt and azimuth",
        _pvlib_tilt,
    ),
    PackageFunction("pvlib", "i_from_v of a diode", _pvlib_diode),
    PackageFunction("pvlib", "max_power_point of a diode", _pvlib_maximum),
]
