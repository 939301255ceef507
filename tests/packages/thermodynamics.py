"""Properties of matter: equations of state, steam, air, flow in pipes, solar cells."""

import numpy as np

from tests.packages.package_function import PackageFunction


def _thermo_pr():
    from thermo.eos import PR

    def f(p):
        eos = PR(Tc=507.6, Pc=3025000.0, omega=0.2975, T=p[0], P=p[1])
        return eos.V_l

    return f, np.array([299.0, 1e6])


def _thermo_nrtl():
    from thermo.nrtl import NRTL

    def f(p):
        model = NRTL(
            T=300.0,
            xs=[p[0], 1.0 - p[0]],
            tau_as=[[0.0, p[1]], [0.7, 0.0]],
            alpha_cs=[[0.0, 0.3], [0.3, 0.0]],
        )
        return model.GE()

    return f, np.array([0.4, 0.9])


def _thermo_wilson():
    from thermo.wilson import Wilson_gammas

    def f(p):
        return np.array(Wilson_gammas([p[0], 1 - p[0]], [[1.0, p[1]], [p[2], 1.0]]))

    return f, np.array([0.252, 0.154, 0.888])


def _chemicals_rachford_rice():
    from chemicals.rachford_rice import flash_inner_loop

    def f(p):
        return flash_inner_loop([0.5, 0.3, 0.2], [p[0], p[1], p[2]])[0]

    return f, np.array([1.685, 0.742, 0.532])


def _chemicals_antoine():
    from chemicals.vapor_pressure import Antoine, Lee_Kesler

    def f(p):
        return Antoine(p[0], 8.7687, 395.744, -6.469) + Lee_Kesler(p[0], p[1], 4.98e6, 0.22)

    return f, np.array([347.0, 425.6])


def _chemicals_iapws95():
    from chemicals.iapws import iapws95_A0, iapws97_rho

    def f(p):
        return np.array([iapws95_A0(647.096 / p[0], 0.9), iapws97_rho(p[0], p[1])])

    return f, np.array([330.0, 8e5])


def _fluids_friction():
    from fluids.friction import friction_factor

    return lambda p: friction_factor(Re=p[0], eD=p[1]), np.array([1e5, 1e-4])


def _fluids_pressure_drop():
    from fluids import Reynolds, dP_from_K
    from fluids.compressible import isothermal_gas

    def f(p):
        K = Reynolds(V=p[0], D=0.1, rho=1000.0, mu=1e-3) * 1e-5
        flow = isothermal_gas(rho=11.3, fd=p[1], P1=1e6, P2=9e5, L=1000.0, D=0.5)
        return np.array([dP_from_K(K, rho=1000.0, V=p[0]), flow])

    return f, np.array([2.0, 0.00185])


def _fluids_atmosphere():
    from fluids.atmosphere import ATMOSPHERE_1976

    return lambda p: ATMOSPHERE_1976(p[0]).rho, np.array([5000.0])


def _iapws_region1():
    from iapws.iapws97 import _Region1

    return lambda p: _Region1(p[0], p[1])["h"], np.array([300.0, 3.0])


def _iapws_steam():
    from iapws import IAPWS97

    return lambda p: IAPWS97(T=p[0], P=p[1]).h, np.array([700.0, 3.0])


def _iapws_viscosity():
    from iapws._iapws import _ThCond, _Viscosity

    return lambda p: _Viscosity(p[0], p[1]) + _ThCond(p[0], p[1]), np.array([998.0, 298.15])


def _psychrolib_wet_bulb():
    import psychrolib

    psychrolib.SetUnitSystem(psychrolib.SI)
    return (
        lambda p: psychrolib.GetHumRatioFromTWetBulb(p[0], p[1], 101325.0),
        np.array([30.0, 22.0]),
    )


def _psychrolib_dew_point():
    import psychrolib

    psychrolib.SetUnitSystem(psychrolib.SI)
    return lambda p: psychrolib.GetTDewPointFromRelHum(p[0], p[1]), np.array([30.0, 0.4])


def _coolprop_density():
    from CoolProp.CoolProp import PropsSI

    return lambda p: PropsSI("D", "T", p[0], "P", p[1], "Water"), np.array([300.0, 1e5])


def _pvlib_singlediode():
    from pvlib.singlediode import bishop88

    def f(p):
        return np.array(bishop88(p[0], p[1], 1e-9, p[2], 300.0, 1.5)[:2])

    return f, np.array([0.5, 8.0, 0.2])


def _pvlib_clearsky():
    from pvlib import atmosphere, clearsky

    def f(p):
        airmass = atmosphere.get_relative_airmass(p[0])
        return clearsky.bird(p[0], airmass, 0.1, 0.1, p[1])["ghi"]

    return f, np.array([40.0, 1.4])


def _pvlib_cell_temperature():
    from pvlib.temperature import sapm_cell

    return (
        lambda p: sapm_cell(p[0], p[1], p[2], a=-3.56, b=-0.075, deltaT=3.0),
        np.array([800.0, 20.0, 3.0]),
    )


CASES = [
    PackageFunction("thermo", "PR, the liquid's volume", _thermo_pr),
    PackageFunction("thermo", "NRTL.GE", _thermo_nrtl),
    PackageFunction("thermo", "Wilson_gammas", _thermo_wilson),
    PackageFunction(
        "chemicals",
        "flash_inner_loop",
        _chemicals_rachford_rice,
    ),
    PackageFunction("chemicals", "Antoine and Lee_Kesler", _chemicals_antoine),
    PackageFunction("chemicals", "IAPWS-95 and IAPWS-97", _chemicals_iapws95),
    PackageFunction("fluids", "friction_factor", _fluids_friction),
    PackageFunction("fluids", "dP_from_K and isothermal_gas", _fluids_pressure_drop),
    PackageFunction("fluids", "ATMOSPHERE_1976", _fluids_atmosphere),
    PackageFunction("iapws", "region 1, enthalpy", _iapws_region1),
    PackageFunction("iapws", "IAPWS97, enthalpy of steam", _iapws_steam),
    PackageFunction("iapws", "viscosity and conductivity", _iapws_viscosity),
    PackageFunction(
        "psychrolib",
        "GetHumRatioFromTWetBulb",
        _psychrolib_wet_bulb,
        {"*": "MissingRuleError"},
        why="compiled by numba.vectorize",
    ),
    PackageFunction(
        "psychrolib",
        "GetTDewPointFromRelHum",
        _psychrolib_dew_point,
        {"*": "MissingRuleError"},
        why="compiled by numba.vectorize",
    ),
    PackageFunction(
        "CoolProp",
        "PropsSI",
        _coolprop_density,
        {"*": "MissingRuleError", "jit": "UntraceableError"},
        why="compiled code",
    ),
    PackageFunction("pvlib", "bishop88", _pvlib_singlediode),
    PackageFunction("pvlib", "clear sky by Bird", _pvlib_clearsky),
    PackageFunction("pvlib", "sapm_cell", _pvlib_cell_temperature),
]
