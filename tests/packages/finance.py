"""Finance."""

import numpy as np

from tests.packages.package_function import PackageFunction

RETURNS = np.array([0.012, -0.004, 0.007, 0.015, -0.011, 0.006, 0.002, -0.003])


def _payments():
    import numpy_financial as npf

    def f(p):
        return npf.pmt(p[0] / 12, 360, p[1])

    return f, np.array([0.05, 2.0e5])


def _present_value():
    import numpy_financial as npf

    def f(p):
        return npf.npv(p[0], p[1:])

    return f, np.array([0.08, -100.0, 39.0, 59.0, 55.0, 20.0])


def _internal_rate():
    import numpy_financial as npf

    return lambda v: npf.irr(v), np.array([-100.0, 39.0, 59.0, 55.0, 20.0])


def _interest():
    import numpy_financial as npf

    def f(p):
        return npf.ipmt(p[0], np.arange(1, 5), 4, p[1])

    return f, np.array([0.02, 1000.0])


def _black_scholes():
    from vollib.ref_python.black_scholes import black_scholes

    def f(p):
        return black_scholes("c", p[0], 95.0, 0.5, p[1], p[2])

    return f, np.array([100.0, 0.03, 0.25])


def _implied_volatility():
    from vollib.ref_python.black_scholes.implied_volatility import implied_volatility

    def f(p):
        return implied_volatility(p[0], p[1], 95.0, 0.5, 0.03, "c")

    return f, np.array([10.5, 100.0])


def _greek():
    from vollib.ref_python.black_scholes.greeks.analytical import delta

    def f(p):
        return delta("c", p[0], 95.0, 0.5, 0.03, p[1])

    return f, np.array([100.0, 0.25])


def _sharpe():
    import empyrical

    return lambda r: empyrical.sharpe_ratio(r), RETURNS.copy()


def _drawdown():
    import empyrical

    return lambda r: empyrical.max_drawdown(r), RETURNS.copy()


def _sortino():
    import empyrical

    return lambda r: empyrical.sortino_ratio(r), RETURNS.copy()


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction("numpy-financial", "pmt, a loan's payment", _payments),
    PackageFunction("numpy-financial", "npv", _present_value),
    PackageFunction(
        "numpy-financial",
        "irr",
        _internal_rate,
    ),
    PackageFunction(
        "numpy-financial",
        "ipmt",
        _interest,
    ),
    PackageFunction("vollib", "ref_python.black_scholes", _black_scholes),
    PackageFunction(
        "vollib",
        "ref_python implied_volatility",
        _implied_volatility,
    ),
    PackageFunction("vollib", "ref_python delta, differentiated", _greek),
    PackageFunction(
        "empyrical-reloaded",
        "sharpe_ratio",
        _sharpe,
        refused={"*": "MissingRuleError"},
        why="Bottleneck's reductions are compiled code",
    ),
    PackageFunction(
        "empyrical-reloaded",
        "sortino_ratio",
        _sortino,
        refused={"*": "MissingRuleError"},
        why="Bottleneck's reductions are compiled code",
    ),
    PackageFunction(
        "empyrical-reloaded",
        "max_drawdown",
        _drawdown,
        refused={"*": "MissingRuleError"},
        why="Bottleneck's reductions are compiled code",
    ),
]
