"""NumPy's functions of one number, as functions that ``numba.cuda`` compiles.

Numba's device has operators, most of ``math`` and ``cmath``, and a few ufuncs. What else programs
call is written here in Python that Numba compiles, with NumPy's results for NaN, infinities and
zeros.
"""

# ruff: noqa: FURB136, PLR0124  (Numba's own max; NaN is what is not equal to itself)
from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from fwdad.codegen.numba_support import CannotCompileError
from fwdad.ir.notation import INFIX, PREFIX
from fwdad.ops import record_of
from fwdad.tangents.scaling import scale_lanes, scaled


def _scaled(d: Any, lanes: Any) -> Any:
    return lanes * d if lanes != 0 else lanes


def _where(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def _larger(a: Any, b: Any) -> Any:
    return b if b > a else a


def _smaller(a: Any, b: Any) -> Any:
    return b if b < a else a


def _sign(x: Any) -> Any:
    return math.copysign(1.0, x) if x > 0 or x < 0 else x


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
    low, high = (b, a) if a >= b else (a, b)
    far = high - low
    return high + math.log1p(math.exp(-far)) if far == far else far


def _exp2(x: Any) -> Any:
    return 2.0**x


def _square(x: Any) -> Any:
    return x * x


def _reciprocal(x: Any) -> Any:
    return 1.0 / x


def _float_power(a: Any, b: Any) -> Any:
    return float(a) ** b


def _signbit(x: Any) -> Any:
    return math.copysign(1.0, x) < 0


def _real(x: Any) -> Any:
    return x.real


def _imag(x: Any) -> Any:
    return x.imag


def _conjugate(x: Any) -> Any:
    return x.conjugate()


_FORMS: dict[Any, Callable[..., Any]] = {
    scale_lanes: _scaled, scaled: _scaled, max: _larger, min: _smaller, np.where: _where,
    np.sign: _sign, np.floor: _floor, np.ceil: _ceil, np.trunc: _trunc, np.rint: _rint,
    np.cbrt: _cbrt, np.exp2: _exp2, np.logaddexp: _logaddexp, np.square: _square,
    np.reciprocal: _reciprocal, np.float_power: _float_power, np.signbit: _signbit,
    np.real: _real, np.imag: _imag, np.conjugate: _conjugate,
}  # fmt: skip
if hasattr(math, "cbrt"):  # which Python has from 3.11 on, and Numba has not
    _FORMS |= {math.cbrt: _cbrt, math.exp2: _exp2}
_OPERATORS = {record_of(f).stands_for: f for f in (*INFIX, *PREFIX, abs)}


def device_function(f: Callable[..., Any], dtypes: Sequence[np.dtype[Any]]) -> Callable[..., Any]:
    """The form for the device of a function of numbers of these dtypes; raises if it has none."""
    kinds = {t.kind for t in dtypes}
    f = cast("Callable[..., Any]", _OPERATORS.get(f, f))
    if f is operator.invert and kinds == {"b"}:
        return operator.not_  # of True the device would make -2, as Python does
    if f in _FORMS:
        return _FORMS[f]
    record = record_of(f)
    if f in _OPERATORS.values() or isinstance(f, type) or record.device or record.own:
        return f
    name, module = getattr(f, "__name__", ""), getattr(f, "__module__", None) or "numpy"
    if f is getattr(math, name, None):
        return f
    if f is getattr(np, name, None):
        library = cmath if "c" in kinds else math
        form: Callable[..., Any] | None = getattr(library, record.libm or name, None)
        if form is not None:
            return form
    message = (
        f"{module}.{name} has no form for a GPU: a kernel uses operators, math's functions and "
        "NumPy's elementwise ones"
    )
    raise CannotCompileError(message)
