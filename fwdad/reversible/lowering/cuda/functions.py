"""NumPy's and ``math``'s functions of one number, as functions that a GPU can run.

Numba's device has most of ``math``. What else expressions and derivatives call is written here
in Python that Numba compiles for the device, with NumPy's results for NaN, infinities and zeros.
"""

# ruff: noqa: PLR0124  (NaN is what is not equal to itself)
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.scaling import scale_lanes, scaled


def _scaled(d: Any, lanes: Any) -> Any:
    return lanes * d if lanes != 0 else lanes


def _where(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def _sign(x: Any) -> Any:
    return math.copysign(1.0, x) if x > 0 or x < 0 else x


def _maximum(a: Any, b: Any) -> Any:
    return a if a >= b or a != a else b


def _minimum(a: Any, b: Any) -> Any:
    return a if a <= b or a != a else b


def _fmax(a: Any, b: Any) -> Any:
    return a if a >= b or b != b else b


def _fmin(a: Any, b: Any) -> Any:
    return a if a <= b or b != b else b


def _clip(x: Any, low: Any, high: Any) -> Any:
    raised = x if x >= low or x != x else low
    return raised if raised <= high or raised != raised else high


def _heaviside(x: Any, at_zero: Any) -> Any:
    if x != x:
        return x
    return at_zero if x == 0 else (1.0 if x > 0 else 0.0)


# floats of 2**52 and more have no fraction, and not all of them fit into an integer
def _floor(x: Any) -> Any:
    return float(math.floor(x)) if abs(x) < 4503599627370496.0 else x


def _ceil(x: Any) -> Any:
    return float(math.ceil(x)) if abs(x) < 4503599627370496.0 else x


def _trunc(x: Any) -> Any:
    whole = float(math.floor(abs(x))) if abs(x) < 4503599627370496.0 else abs(x)
    return math.copysign(whole, x)


def _rint(x: Any) -> Any:
    if not abs(x) < 4503599627370496.0:
        return x
    below = float(math.floor(x))
    rest = x - below
    up = rest > 0.5 or (rest == 0.5 and below % 2 != 0)
    return math.copysign(below + 1.0 if up else below, x)


def _cbrt(x: Any) -> Any:
    if x == 0 or x - x != 0:
        return x
    y = math.copysign(abs(x) ** (1.0 / 3.0), x)
    return y - (y * y * y - x) / (3.0 * y * y)


def _logaddexp(a: Any, b: Any) -> Any:
    if a == b:
        return a + math.log(2.0)
    far = a - b if a >= b else b - a
    return max(a, b) + math.log1p(math.exp(-far)) if far == far else far


def _sinc(x: Any) -> Any:
    y = math.pi * x
    return math.sin(y) / y if y != 0 else 1.0


def _exp2(x: Any) -> Any:
    return 2.0**x


def _signbit(x: Any) -> Any:
    return math.copysign(1.0, x) < 0


def _invert(x: Any) -> Any:
    return (not x) if isinstance(x, (bool, np.bool_)) else ~x


def _sum(x: Any) -> Any:
    return x  # of one number


def _real(x: Any) -> Any:
    return x.real


def _imag(x: Any) -> Any:
    return x.imag


_OF_NUMPY: dict[str, Callable[..., Any]] = {
    "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b, "equal": lambda a, b: a == b,
    "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "invert": _invert, "sum": _sum,
    "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b,
    "logical_and": lambda a, b: bool(a) and bool(b), "logical_not": lambda a: not a,
    "logical_or": lambda a, b: bool(a) or bool(b), "not_equal": lambda a, b: a != b,
    "absolute": lambda x: abs(x), "add": lambda a, b: a + b, "arccos": lambda x: math.acos(x),
    "arccosh": lambda x: math.acosh(x), "arcsin": lambda x: math.asin(x),
    "arcsinh": lambda x: math.asinh(x), "arctan": lambda x: math.atan(x),
    "arctan2": lambda y, x: math.atan2(y, x), "arctanh": lambda x: math.atanh(x),
    "cbrt": _cbrt, "ceil": _ceil, "clip": _clip, "deg2rad": lambda x: x * (math.pi / 180.0),
    "degrees": lambda x: x * (180.0 / math.pi), "divide": lambda a, b: a / b, "exp2": _exp2,
    "fabs": lambda x: abs(x), "float_power": lambda a, b: float(a) ** b, "floor": _floor,
    "floor_divide": lambda a, b: a // b, "fmax": _fmax, "fmin": _fmin, "heaviside": _heaviside,
    "imag": _imag, "isfinite": lambda x: x - x == 0, "isinf": lambda x: x == x and x - x != 0,
    "isnan": lambda x: x != x, "logaddexp": _logaddexp, "maximum": _maximum, "minimum": _minimum,
    "multiply": lambda a, b: a * b, "negative": lambda x: -x, "positive": lambda x: x,
    "power": lambda a, b: a**b, "rad2deg": lambda x: x * (180.0 / math.pi),
    "radians": lambda x: x * (math.pi / 180.0), "real": _real, "reciprocal": lambda x: 1.0 / x,
    "remainder": lambda a, b: a % b, "rint": _rint, "sign": _sign, "signbit": _signbit,
    "sinc": _sinc, "square": lambda x: x * x, "subtract": lambda a, b: a - b, "trunc": _trunc,
    "where": _where,
}  # fmt: skip
_OF_MATH = {
    math.acos, math.acosh, math.asin, math.asinh, math.atan, math.atan2, math.atanh, math.ceil,
    math.copysign, math.cos, math.cosh, math.erf, math.erfc, math.exp, math.expm1, math.fabs,
    math.floor, math.fmod, math.gamma, math.hypot, math.isfinite, math.isinf, math.isnan,
    math.ldexp, math.lgamma, math.log, math.log10, math.log1p, math.log2, math.pow, math.sin,
    math.sinh, math.sqrt, math.tan, math.tanh, math.trunc,
}  # fmt: skip
_MATHS_OWN = {"exp2": _exp2, "cbrt": _cbrt, "degrees": _OF_NUMPY["degrees"],
              "radians": _OF_NUMPY["radians"]}  # fmt: skip


def of_device(f: Any) -> Any:
    """The form for the device of a function, type or number that generated code names.

    A Python function is to be compiled for the device; functions of ``math``, types and numbers
    come back unchanged. None means that the table does not cover it; functions of NumPy, SciPy and
    ``math`` without a form raise.
    """
    if f is scale_lanes or f is scaled:
        return _scaled
    if isinstance(f, (bool, int, float, complex, type)):
        return f
    name = getattr(f, "__name__", "")
    module = getattr(f, "__module__", None) or ""
    if module == "math":
        if f in _OF_MATH:
            return f
        form = _MATHS_OWN.get(name)
    elif isinstance(f, np.ufunc) or module.startswith(("numpy", "scipy")):
        numpys = f is getattr(np, name, None)
        form = _OF_NUMPY.get(name) if numpys else None
        if form is None and numpys and getattr(math, name, None) in _OF_MATH:
            return getattr(math, name)
    else:
        return None
    if form is None:
        message = (
            f"{module or 'numpy'}.{name} has no form for a GPU: the expressions of a kernel use "
            "operators, math's functions and NumPy's elementwise ones, on numbers"
        )
        raise UnsupportedTypeError(message)
    return form


__all__ = ["of_device"]
