"""Differential equations, and the weather."""

import numpy as np

from tests.packages.package_function import PackageFunction


def _odeintw():
    from odeintw import odeintw

    def f(p):
        return odeintw(lambda y, t: -p[0] * y, np.array([p[1]]), np.array([0.0, 1.0]))[-1, 0]

    return f, np.array([0.7, 1.3])


def _desolver():
    import desolver

    @desolver.rhs_prettifier("-k y")
    def rhs(t, state, k, **kwargs):
        return -k * state

    def f(p):
        system = desolver.OdeSystem(
            rhs,
            y0=np.array([p[1]]),
            dense_output=False,
            t=(0.0, 1.0),
            dt=0.1,
            rtol=1e-9,
            atol=1e-9,
            constants={"k": p[0]},
        )
        system.method = "RK45CK"
        system.integrate()
        return system.y[-1][0]

    return f, np.array([0.7, 1.3])


def _potential_temperature():
    import metpy.calc
    from metpy.units import units

    def f(p):
        return (
            metpy.calc.potential_temperature(p[0] * units.hPa, p[1] * units.kelvin)
            .to("kelvin")
            .magnitude
        )

    return f, np.array([800.0, 273.0])


def _dewpoint():
    import metpy.calc
    from metpy.units import units

    def f(p):
        return metpy.calc.dewpoint_from_relative_humidity(
            units.Quantity(p[0], "degC"), units.Quantity(p[1], "dimensionless")
        ).magnitude

    return f, np.array([21.0, 0.6])


def _saturation():
    from metpy.calc import saturation_vapor_pressure
    from metpy.units import units

    return (
        lambda t: saturation_vapor_pressure(units.Quantity(t, "kelvin")).to("hPa").magnitude,
        np.array([280.0, 290.0]),
    )


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction(
        "odeintw",
        "odeintw, by rate and state",
        _odeintw,
    ),
    PackageFunction(
        "desolver",
        "OdeSystem, by rate and state",
        _desolver,
        refused=UNTRACED,
        why="asks for the thread that it runs in",
    ),
    PackageFunction(
        "MetPy",
        "potential_temperature",
        _potential_temperature,
        refused=UNTRACED,
        why="Pint's registries of units are not traced",
    ),
    PackageFunction(
        "MetPy",
        "dewpoint_from_relative_humidity",
        _dewpoint,
        refused=UNTRACED,
        why="Pint's registries of units are not traced",
    ),
    PackageFunction(
        "MetPy",
        "saturation_vapor_pressure of an array",
        _saturation,
        refused=UNTRACED,
        why="Pint's registries of units are not traced",
    ),
]
