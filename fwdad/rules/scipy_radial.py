r"""Radial basis functions of SciPy: ``RBFInterpolator``.

The interpolant is a sum of kernels at the data points y and of monomials, whose coefficients solve
a system. Of a kernel φ, written as a function of s = r², and a monomial of the coordinates z that
are shifted and scaled into [-1, 1],

.. math::
    s = \epsilon^2 \|x - y\|^2, \quad \dot\varphi = 2 \epsilon^2 \varphi'(s) (x - y) \cdot
    (\dot x - \dot y), \quad \dot m = \sum_a k_a z_a^{k_a - 1} \dot z_a \prod_{b \ne a} z_b^{k_b}

All polynomials of a degree remain so when they are shifted and scaled: the interpolant does not
depend on either, and both are taken as constants, in the system and in what is evaluated.

The kernel -r has a kink at its data point, where its slope is 0 here. Neither that kernel nor
r² log r has a second derivative there.

The compiled functions that build the system are SciPy's, and LAPACK solves it; all else is
differentiated through SciPy's source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError, UndefinedDerivativeError
from fwdad.rules.core.by_name import Lazy, refuse_symbols
from fwdad.rules.core.define import call_rule, frule
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Undefined, Zero

radial = Lazy("scipy.interpolate._rbfinterp_pythran")
lapack = Lazy("scipy.linalg.lapack")

_SLOPES: dict[str, Callable[[Any], Any]] = {  # of each kernel, by the square of the distance
    "linear": lambda s: -0.5 / np.sqrt(s),
    "thin_plate_spline": lambda s: 0.5 * (np.log(s) + 1.0),
    "cubic": lambda s: 1.5 * np.sqrt(s),
    "quintic": lambda s: -2.5 * s * np.sqrt(s),
    "multiquadric": lambda s: -0.5 / np.sqrt(s + 1.0),
    "inverse_multiquadric": lambda s: -0.5 / ((s + 1.0) * np.sqrt(s + 1.0)),
    "inverse_quadratic": lambda s: -1.0 / ((s + 1.0) * (s + 1.0)),
    "gaussian": lambda s: -np.exp(-s),
}
_ROUGH = {"linear", "thin_plate_spline"}  # their slopes by s are infinite at the data point
_OF_ROOTS = {*_ROUGH, "cubic", "quintic"}  # and the slopes of these, once more


def _kernel_slopes(x: Any, y: Any, kernel: str, epsilon: float, own: bool) -> list[Any]:
    """The slopes of kernels along each coordinate of x; ``own`` says that x is y."""
    if kernel not in _SLOPES:
        raise MissingRuleError(
            f"the kernel {kernel!r} has no derivative here. Use one of {', '.join(_SLOPES)}"
        )
    u = [epsilon * (x[:, None, a] - y[None, :, a]) for a in range(x.shape[1])]
    s = sum((v * v for v in u[1:]), u[0] * u[0])
    at = np.equal(plain(s), 0)
    if kernel in _ROUGH and not own and plain(s) is not s and np.any(at):
        raise UndefinedDerivativeError(
            f"the kernel {kernel!r} has no second derivative at its data points, of which one is "
            "evaluated. Use another kernel, or other points"
        )
    slope = _SLOPES[kernel](np.where(at, 1.0, s) if kernel in _OF_ROOTS else s)
    slope = np.where(at, 0.0, slope) if kernel in _OF_ROOTS else slope
    return [2.0 * epsilon * slope * v for v in u]


def _kernels_tangent(
    x: Any, x_dot: Any, y: Any, y_dot: Any, kernel: str, epsilon: float, own: bool = False
) -> Any:
    """The tangent of the kernels at y, evaluated at x."""
    if isinstance(x_dot, Zero) and isinstance(y_dot, Zero):
        return ZERO
    total = ZERO
    for a, slope in enumerate(_kernel_slopes(x, y, kernel, epsilon, own)):
        total = total + slope * (x_dot[:, None, a] - y_dot[None, :, a])
    return total


def _monomials_tangent(x: Any, x_dot: Any, powers: Any, shift: Any, scale: Any) -> Any:
    """The tangent of the monomials at x."""
    if isinstance(x_dot, Zero) or not len(powers):
        return ZERO
    z, total = (x - shift) / scale, ZERO
    for a in range(x.shape[1]):
        others = [z[:, None, b] ** powers[:, b] for b in range(x.shape[1]) if b != a]
        slope = powers[:, a] / scale[a] * z[:, None, a] ** np.maximum(powers[:, a] - 1, 0)
        for other in others:
            slope = slope * other
        total = total + slope * x_dot[:, None, a]
    return total


def _beside(kernels: Any, monomials: Any, p: int, r: int) -> Any:
    """The tangents of p kernels, and beside them those of r monomials."""
    return np.pad(kernels, ((0, 0), (0, r))) + np.pad(monomials, ((0, 0), (p, 0)))


@frule(
    "scipy.interpolate._rbfinterp_pythran._build_evaluation_coefficients",
    argnums=("x", "y", "shift", "scale"),
    signature="(x, y, kernel, epsilon, powers, shift, scale)",
)
def evaluation_frule(primals, tangents, *, kernel, epsilon, powers):
    """Push tangents through the kernels and monomials at some points; see the module."""
    x, y, shift, scale = primals
    x_dot, y_dot, *_ = tangents
    for primal in primals:
        refuse_symbols(primal)
    build = radial._build_evaluation_coefficients  # noqa: SLF001  (what SciPy calls)
    values = build(x, y, kernel, epsilon, powers, shift, scale)
    kernels = _kernels_tangent(x, x_dot, y, y_dot, kernel, epsilon)
    monomials = _monomials_tangent(x, x_dot, powers, shift, scale)
    return values, _beside(kernels, monomials, len(y), len(powers))


@frule(
    "scipy.interpolate._rbfinterp_pythran._build_system",
    argnums=("y", "d", "smoothing"),
    signature="(y, d, smoothing, kernel, epsilon, powers)",
)
def system_frule(primals, tangents, *, kernel, epsilon, powers):
    """Push tangents through the system that the coefficients solve; see the module."""
    (y, d, smoothing), (y_dot, d_dot, smoothing_dot) = primals, tangents
    for primal in primals:
        refuse_symbols(primal)
    build = radial._build_system  # noqa: SLF001  (what SciPy calls)
    lhs, rhs, shift, scale = build(y, d, smoothing, kernel, epsilon, powers)
    p, r = len(y), len(powers)
    kernels = _kernels_tangent(y, y_dot, y, y_dot, kernel, epsilon, own=True)
    kernels = kernels + smoothing_dot[:, None] * np.eye(p)
    monomials = _monomials_tangent(y, y_dot, powers, plain(shift), plain(scale))
    below = np.pad(np.swapaxes(monomials, 0, 1), ((p, 0), (0, r)))
    lhs_dot = np.pad(_beside(kernels, monomials, p, r), ((0, r), (0, 0))) + below
    rhs_dot = np.pad(d_dot, ((0, r), (0, 0)))
    return (lhs, rhs, shift, scale), (lhs_dot, rhs_dot, ZERO, ZERO)


@frule(
    "scipy.linalg.lapack.dgesv",
    argnums=("a", "b"),
    signature="(a, b, overwrite_a=0, overwrite_b=0)",
)
def dgesv_frule(primals, tangents, **_options):
    """Push tangents through LAPACK's solution of a system; those of its factors are not known."""
    a, b = primals
    for primal in primals:
        refuse_symbols(primal)
    lu, pivots, x, info = lapack.dgesv(a, b)
    x_dot = call_rule(np.linalg.solve, (a, b), tangents)[1] if info == 0 else ZERO
    by_factors = ZERO
    if not isinstance(tangents[0], Zero):
        by_factors = Undefined("the factors that dgesv returns have no rule; scipy.linalg.lu has")
    return (lu, pivots, x, info), (by_factors, ZERO, x_dot, ZERO)
