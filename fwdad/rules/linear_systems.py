"""Linear systems of NumPy: ``solve``, ``inv``, ``det``, ``lstsq``, ``pinv``, ``matrix_power``, ….

Every rule takes stacks of matrices, real or complex. The dot over a matrix is its tangent, Aᴴ the
conjugate transpose, A⁺ the pseudo-inverse.

References
----------
Giles, M. B. (2008). Collected matrix derivative results for forward and reverse mode algorithmic
differentiation. In: Advances in Automatic Differentiation, 35–44.
https://doi.org/10.1007/978-3-540-68942-3_4

Golub, G. H. and Pereyra, V. (1973). The differentiation of pseudo-inverses and nonlinear least
squares problems whose variables separate. SIAM J. Numer. Anal. 10(2), 413–432.
https://doi.org/10.1137/0710036
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import Space, into, transpose
from fwdad.rules.core.define import call_rule, frule, locally_constant
from fwdad.rules.core.lapack import solve_and_factorize
from fwdad.rules.decompositions import singular_tangents
from fwdad.rules.reductions import NO_VALUE
from fwdad.rules.triangles import adjoint, from_lower
from fwdad.tangents.adjugate import cofactors
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import apply, array_of, as_traced, defined, is_known, recorder_of
from fwdad.tangents.zero import ZERO, Zero, undefined

locally_constant(np.linalg.matrix_rank)


@frule(np.linalg.solve)
def solve_frule(primals, tangents):
    r"""Push tangents through ``x = numpy.linalg.solve(a, b)``.

    .. math:: A X = B \;\Rightarrow\; \dot X = A^{-1}(\dot B - \dot A X)

    Shapes: a (..., n, n), b (n,) or (..., n, m). Raises LinAlgError as the primal does.
    Cost: one factorisation of one matrix, shared by the primal and every lane; for a stack of
    matrices two, at every number of lanes.
    Source: Giles (2008), section 2.3.1.
    """
    a, b = primals
    a_dot, b_dot = tangents
    x, factors = solve_and_factorize(a, b)
    if np.ndim(b) == 1:
        # x is (..., n): a stack of columns, not a matrix
        columns_dot = b_dot if np.ndim(a) == 2 else b_dot[:, None]
        if np.ndim(a) == 2:
            return x, factors.solve(columns_dot - a_dot @ x)
        return x, factors.solve(columns_dot - a_dot @ x[..., None])[..., 0]
    return x, factors.solve(b_dot - a_dot @ x)


@transpose(np.linalg.solve, argnum=1)
def solve_transpose_b(y_bar: Any, a: Any, b: Space) -> Any:
    """The adjoint of A⁻¹ is A⁻ᴴ."""
    if b.ndim == 1 and np.ndim(a) > 2:
        return into(b, np.linalg.solve(adjoint(a), y_bar[..., None])[..., 0])
    return into(b, np.linalg.solve(adjoint(a), y_bar))


@frule(np.linalg.inv)
def inv_frule(primals, tangents):
    r"""Push tangents through ``numpy.linalg.inv``.

    .. math:: X = A^{-1} \;\Rightarrow\; \dot X = -X \dot A X

    Source: Giles (2008), section 2.2.3.
    """
    (a,), (a_dot,) = primals, tangents
    x = np.linalg.inv(a)
    return x, -(x @ a_dot @ x)


@frule(np.linalg.det)
def det_frule(primals, tangents):
    r"""Push tangents through ``numpy.linalg.det``, of singular matrices too.

    .. math:: \frac{d}{dt} \det A = \operatorname{tr}(\operatorname{adj}(A) \dot A)

    The adjugate of a well-conditioned matrix is det(A) A⁻¹; that of any other comes from its
    singular values (see ``adjugate.py``).
    Source: Jacobi's formula; Giles (2008), section 2.2.4, has it for the regular case.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.det(a)
    return y, det_tangent(a, a_dot, y)


def det_tangent(a: Any, a_dot: Any, y: Any) -> Any:
    """The tangent of the determinant y of a."""
    slopes = cofactors(a, y) if recorder_of(a) is None else apply(cofactors, a, y)
    return np.sum(slopes * a_dot, axis=(-2, -1))


@frule(np.linalg.slogdet)
def slogdet_frule(primals, tangents):
    r"""Push tangents through ``numpy.linalg.slogdet``.

    .. math:: \frac{d}{dt} \log|\det A| = \operatorname{Re} \operatorname{tr}(A^{-1} \dot A)

    The sign of a real determinant is locally constant; that of a complex one turns at the rate
    Im tr(A⁻¹ Ȧ). At a singular matrix log|det A| is −inf and has no derivative.
    Source: Giles (2008), section 2.2.4.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.slogdet(a)
    reason = "log|det A| of a singular matrix is -inf; np.linalg.det is differentiable there"
    singular = array_of(y[0]) == 0
    singular = np.any(singular) if np.ndim(singular) else singular
    if is_known(singular) and singular:
        return y, (undefined(reason), undefined(reason))
    inverse = np.linalg.inv(defined(a, singular, reason))
    rate = np.sum(np.swapaxes(inverse, -1, -2) * a_dot, axis=(-2, -1))
    if array_of(y[0]).dtype.kind != "c":
        return y, (ZERO, rate)
    return y, (y[0] * (1j * np.imag(rate)), np.real(rate))


@frule(np.linalg.matrix_power)
def matrix_power_frule(primals, tangents):
    r"""Push tangents through ``numpy.linalg.matrix_power``, by the product rule.

    The power is built by repeated squaring, as NumPy builds it, so the cost is that of log₂|n|
    products of active matrices.
    """
    a, n = primals
    a_dot, _ = tangents
    n = operator.index(n)
    y = np.linalg.matrix_power(a, n)
    if n == 0:
        return y, ZERO
    if n < 0:
        a, a_dot = call_rule(np.linalg.inv, (a,), (a_dot,))
        n = -n
    power, power_dot = a, a_dot  # a^(2^k)
    total: Any = None
    total_dot: Any = ZERO
    while True:
        if n & 1:
            total, total_dot = (
                (power, power_dot)
                if total is None
                else (total @ power, total_dot @ power + total @ power_dot)
            )
        n >>= 1
        if not n:
            return y, total_dot
        power, power_dot = power @ power, power_dot @ power + power @ power_dot


# -- least squares


@frule(np.linalg.pinv, argnums=0)
def pinv_frule(primals, tangents, **options):
    r"""Push tangents through ``numpy.linalg.pinv``.

    .. math::
        \dot X = -X \dot A X + X X^H \dot A^H (I - A X) + (I - X A) \dot A^H X^H X

    It holds where the rank is locally constant; a pseudo-inverse jumps where the rank changes, and
    a tangent that changes the rank to first order goes unnoticed. Where ``rcond`` takes singular
    values for zero that are not it does not hold, and raises. With ``hermitian=True`` the lower
    triangle is what NumPy reads, and what is differentiated.
    Source: Golub and Pereyra (1973), equation 4.12.
    """
    (a,), (a_dot,) = primals, tangents
    x = np.linalg.pinv(a, **options)
    if options["hermitian"]:
        a, a_dot = from_lower(a), from_lower(a_dot)
    cut = not {"rcond", "rtol"}.isdisjoint(options_given(options))
    return x, pinv_tangent(a, a_dot, x, cut=cut)


_CUT = "nonzero singular values are treated as zero: cut them off yourself, with numpy.linalg.svd"

_DEFICIENT = (
    "scipy.linalg.lstsq returns no residuals here, and the program was traced for a number: the "
    "rank depends on values"
)


def options_given(options: dict[str, Any]) -> set[str]:
    """The options that are not left out."""
    return {k for k, x in options.items() if x is not None and x is not NO_VALUE}


def _is_large(rest: Any, of: Any) -> Any:
    """Whether what was treated as zero is more than rounding, relative to ``of``."""
    raw = array_of(of)
    unit = float(np.sqrt(np.finfo(raw.dtype).eps))
    return np.max(np.abs(rest), initial=0.0) > unit * np.max(np.abs(raw), initial=0.0)


def pinv_tangent(a: Any, a_dot: Any, x: Any, *, cut: bool = False) -> Any:
    """The tangent of X = A⁺ where the rank is locally constant; ``cut`` if the caller chose it."""
    if cut:
        whole, inverse = array_of(a), array_of(x)
        bad = _is_large(whole - whole @ (inverse @ whole), whole)
        if is_known(bad) and bad:
            return undefined(_CUT)
        x = defined(x, bad, _CUT)
    # No m × m matrix is formed for a tall A, nor an n × n one for a wide A.
    xh, a_doth = adjoint(x), adjoint(a_dot)
    left = x @ (xh @ (a_doth - (a_doth @ a) @ x))
    right = ((a_doth - x @ (a @ a_doth)) @ xh) @ x
    return left + right - (x @ a_dot) @ x


@frule(np.linalg.lstsq)
def lstsq_frule(primals, tangents, rcond=None):
    r"""Push tangents through ``numpy.linalg.lstsq``.

    .. math::
        \dot x = A^+(\dot b - \dot A x) + A^+ A^{+H} \dot A^H (b - A x)
               + (I - A^+ A) \dot A^H A^{+H} x

    The sums of squared residuals change at 2 Re⟨b − Ax, ḃ − Ȧx⟩, the singular values at
    Re uᴴ Ȧ v. As for ``pinv``, the rank is taken as locally constant.
    Cost: one singular value decomposition besides the primal, at every number of lanes.
    Source: Golub and Pereyra (1973), equation 4.12, times b.
    """
    a, b = primals
    b = np.asarray(b) if type(b) is list else b
    y = np.linalg.lstsq(a, b, rcond)
    x_dot, residuals_dot, s_dot = lstsq_tangents(a, b, *tangents, *y)
    return y, (x_dot, residuals_dot, ZERO, s_dot)


def lstsq_tangents(
    a: Any, b: Any, a_dot: Any, b_dot: Any, x: Any, residuals: Any, rank: Any, s: Any
) -> tuple[Any, Any, Any]:
    """The tangents of the solution, of the sums of squares and of the singular values."""
    rank = rank if hasattr(rank, "__fwdad_symbolic__") else operator.index(rank)
    inverse, s_dot = _inverse_and_singular_tangents(a, a_dot, s, rank)
    single = np.ndim(b) == 1
    columns, solution, columns_dot = (
        (b[:, None], x[:, None], b_dot[:, None]) if single else (b, x, b_dot)
    )
    raw = array_of(s)
    bad = _is_large(raw[rank:], raw)
    if is_known(bad) and bad:
        return undefined(_CUT), undefined(_CUT), s_dot
    inverse = defined(inverse, bad, _CUT)
    residual = columns - a @ solution
    change = columns_dot - a_dot @ solution
    a_doth = adjoint(a_dot)
    spread = a_doth @ (adjoint(inverse) @ solution)
    x_dot = (
        inverse @ change
        + inverse @ (adjoint(inverse) @ (a_doth @ residual))
        + spread
        - inverse @ (a @ spread)
    )
    # there are none where the rank is deficient; SciPy's of one right-hand side are a number
    count = np.shape(plain(residuals))
    if not count:  # a tape takes the rank for full
        residual = as_traced(residual, rank < a.shape[-1], _DEFICIENT)
    residuals_dot: Any = 2.0 * np.sum(np.real(np.conjugate(residual) * change), axis=0)
    residuals_dot = residuals_dot[: count[0]] if count else residuals_dot[0]
    return x_dot[:, 0] if single else x_dot, residuals_dot, s_dot


def _inverse_and_singular_tangents(a: Any, a_dot: Any, s: Any, rank: Any) -> tuple[Any, Any]:
    """A⁺ without the singular values that the primal took for zero, and ṡ."""
    if plain(a) is a and not (is_known(s.size) and s.size == 0):
        u, values, vh = np.linalg.svd(a, full_matrices=False)
        inverse = (adjoint(vh)[:, :rank] / values[:rank]) @ adjoint(u)[:rank]
        return inverse, singular_tangents(a_dot, u, values, vh)
    # the primals of an enclosing derivative: pinv is differentiable where singular vectors are not
    s_dot = call_rule(np.linalg.svd, (a,), (a_dot,), compute_uv=False)[1] if s.size else ZERO
    raw = np.asarray(plain(s))
    cut = 0.0
    if rank < len(raw):
        cut = float((raw[rank - 1] + raw[rank]) / (2 * raw[0])) if rank else 1.0
    return np.linalg.pinv(a, cut), s_dot


# -- compositions: what NumPy makes of the above


@frule(np.linalg.cond)
def cond_frule(primals, tangents, p=None):
    r"""Push tangents through ``numpy.linalg.cond``.

    The 2-norm condition number is a quotient of singular values; the others are
    ‖A‖ ‖A⁻¹‖.
    """
    (x,), (x_dot,) = primals, tangents
    y = np.linalg.cond(x, p)
    if p is None or p in (2, -2):
        s, s_dot = call_rule(np.linalg.svd, (x,), (x_dot,), compute_uv=False)
        top, bottom = (-1, 0) if p == -2 else (0, -1)
        ratio = s[..., top] / s[..., bottom]
        return y, (s_dot[..., top] - ratio * s_dot[..., bottom]) / s[..., bottom]
    inverse, inverse_dot = call_rule(np.linalg.inv, (x,), (x_dot,))
    axis = (-2, -1)
    size, size_dot = call_rule(np.linalg.norm, (x,), (x_dot,), ord=p, axis=axis)
    other, other_dot = call_rule(np.linalg.norm, (inverse,), (inverse_dot,), ord=p, axis=axis)
    return y, size_dot * other + size * other_dot


@frule(np.linalg.tensorinv, argnums=0)
def tensorinv_frule(primals, tangents, ind=2):
    """Push tangents through ``numpy.linalg.tensorinv``: ``inv`` of the tensor as a matrix."""
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.tensorinv(a, ind)
    n = math.isqrt(np.size(plain(a)))
    x = y.reshape((n, n))
    return y, -(x @ a_dot.reshape((n, n)) @ x).reshape(y.shape)


@frule(np.linalg.tensorsolve)
def tensorsolve_frule(primals, tangents, axes=None):
    """Push tangents through ``numpy.linalg.tensorsolve``: ``solve`` of the tensor as a matrix."""
    a, b = primals
    a_dot, b_dot = tangents
    if axes is not None:
        rest = [k for k in range(np.ndim(a)) if k not in {axis % np.ndim(a) for axis in axes}]
        order = (*rest, *axes)
        a = np.transpose(a, order)
        a_dot = a_dot if isinstance(a_dot, Zero) else np.transpose(a_dot, order)
    shape = np.shape(a)[np.ndim(b) :]
    n = math.prod(shape)
    sizes = (np.size(plain(a)), np.size(plain(b)))
    if is_known(*sizes, n) and sizes != (n * n, n):  # on a tape, `reshape` looks when it runs
        return np.linalg.tensorsolve(primals[0], b, axes), ZERO  # raises as the primal does
    x, x_dot = call_rule(
        np.linalg.solve,
        (np.reshape(a, (n, n)), np.reshape(b, (n,))),
        (a_dot.reshape((n, n)), b_dot.reshape((n,))),
    )
    return x.reshape(shape), x_dot.reshape(shape)
