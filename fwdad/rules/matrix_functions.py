r"""Functions of matrices in SciPy: ``expm``, ``sqrtm``, ``logm``.

The tangent of a function of matrices is its Fréchet derivative in the direction of Ȧ.

References
----------
Al-Mohy, A. H. and Higham, N. J. (2009). Computing the Fréchet derivative of the matrix exponential,
with an application to condition number estimation. SIAM J. Matrix Anal. Appl. 30(4), 1639–1657.
https://doi.org/10.1137/080716426

Higham, N. J. (2008). Functions of Matrices. SIAM. https://doi.org/10.1137/1.9780898717778
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError
from fwdad.ops.record import also
from fwdad.rules.core.adjoints import into, transpose
from fwdad.rules.core.by_name import Lazy, apply_linear, refuse_symbols
from fwdad.rules.core.define import frule
from fwdad.rules.scipy_solvers import sylvester
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import apply, array_of, recorder_of
from fwdad.tangents.zero import Zero

linalg = Lazy("scipy.linalg")

# Coefficients of the numerator of the [13/13] Padé approximant of exp, lowest power first.
_PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
_LARGEST = 4.74
"""The 1-norm up to which the approximant's derivative is good to 2⁻⁵³: ℓ₁₃ of the source."""


@frule("scipy.linalg.expm")
def expm_frule(primals, tangents):
    r"""Push tangents through ``scipy.linalg.expm``.

    .. math:: L(A, E) = \int_0^1 e^{(1-s)A}\, E\, e^{sA}\, ds

    by differentiating scaling and squaring: the [13/13] Padé approximant and the squarings are
    polynomials and one linear system, whose matrix and powers of A do not depend on the lane.
    Cost: besides the primal, 7 products and one factorisation; per lane about 16 products.
    Source: Al-Mohy and Higham (2009), algorithm 6.4.
    """
    (a,), (a_dot,) = primals, tangents
    y = linalg.expm(a)
    if isinstance(a_dot, Zero):
        return y, a_dot
    a = a if hasattr(a, "dtype") else np.asarray(a)
    if recorder_of(a) is not None:
        return y, _expm_along(a, a_dot)
    return y, expm_derivative(a, a_dot)


def expm_derivative(a: Any, e: Any) -> Any:
    """The Fréchet derivative of the exponential at A along E: an array, or a tangent."""
    raw = np.asarray(plain(a))
    if raw.size == 0:
        return e
    size = float(np.max(np.sum(np.abs(raw), axis=-2), initial=0.0))
    squarings = 0
    if _LARGEST < size < np.inf:
        squarings = int(np.ceil(np.log2(size / _LARGEST)))
    return _pade_tangent(a / 2.0**squarings, e / 2.0**squarings, squarings)


def _expm_along(a: Any, e_dot: Any) -> Any:
    def along(e: Any) -> Any:
        return apply(expm_derivative, a, e)

    return apply_linear(expm_derivative, (a, e_dot), 1, along, by_lane=True)


@transpose(expm_derivative, argnum=1)
def expm_derivative_transpose(y_bar, a, e):
    """The adjoint of L(A, .) is L(Aᴴ, .)."""
    return into(e, _expm_along(np.conj(np.swapaxes(a, -1, -2)), y_bar))


def _pade_tangent(a: Any, e: Any, squarings: int) -> Any:
    """Algorithm 6.4 of Al-Mohy and Higham, in their letters, after the scaling."""
    b = _PADE
    eye = np.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    m2 = a @ e + e @ a
    a4, m4 = a2 @ a2, a2 @ m2 + m2 @ a2
    a6, m6 = a2 @ a4, a4 @ m2 + m4 @ a2
    w1, w2 = b[13] * a6 + b[11] * a4 + b[9] * a2, b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye
    z1, z2 = b[12] * a6 + b[10] * a4 + b[8] * a2, b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    w = a6 @ w1 + w2
    u, v = a @ w, a6 @ z1 + z2
    lw1, lw2 = b[13] * m6 + b[11] * m4 + b[9] * m2, b[7] * m6 + b[5] * m4 + b[3] * m2
    lz1, lz2 = b[12] * m6 + b[10] * m4 + b[8] * m2, b[6] * m6 + b[4] * m4 + b[2] * m2
    lw = a6 @ lw1 + m6 @ w1 + lw2
    lu = a @ lw + e @ w
    lv = a6 @ lz1 + m6 @ z1 + lz2
    r = np.linalg.solve(v - u, u + v)
    derivative = np.linalg.solve(v - u, lu + lv + (lu - lv) @ r)
    for _ in range(squarings):
        derivative = r @ derivative + derivative @ r
        r = r @ r
    return derivative


@frule("scipy.linalg.sqrtm", argnums="A")
def sqrtm_frule(primals, tangents, **options):
    r"""Push tangents through ``scipy.linalg.sqrtm``.

    .. math:: X^2 = A \;\Rightarrow\; X \dot X + \dot X X = \dot A

    A matrix with an eigenvalue zero has no derivative there: the Sylvester equation is singular.
    Cost: a Sylvester equation per lane.
    Source: Higham (2008), section 6.1.
    """
    (a,), (a_dot,) = primals, tangents
    _is_of_one_kind(a)
    x = linalg.sqrtm(a, **options)
    if isinstance(x, tuple):
        raise MissingRuleError("scipy.linalg.sqrtm(disp=False) has no frule: leave out disp")
    return x, sylvester(x, x, a_dot)


def _is_of_one_kind(a: Any) -> None:
    """Raise for a real matrix on a tape: values decide whether its root or logarithm is complex."""
    if array_of(a).dtype.kind != "c":
        refuse_symbols(a)


def logm_derivative(a, e):
    r"""The Fréchet derivative of the logarithm at A along E, by the block-triangular identity.

    .. math:: f\begin{pmatrix} A & E \\ 0 & A \end{pmatrix}
        = \begin{pmatrix} f(A) & L(A, E) \\ 0 & f(A) \end{pmatrix}
    """
    n = len(a)
    top = np.concatenate([a, e], axis=1)
    bottom = np.concatenate([0 * a, a], axis=1)
    return linalg.logm(np.concatenate([top, bottom]))[:n, n:]


@frule("scipy.linalg.logm", argnums="A")
def logm_frule(primals, tangents, **options):
    r"""Push tangents through ``scipy.linalg.logm``: :func:`logm_derivative` of each lane.

    Cost: a logarithm of twice the size per lane.
    Source: Higham (2008), theorem 3.6.
    """
    (a,), (a_dot,) = primals, tangents
    _is_of_one_kind(a)
    y = linalg.logm(a, **options)
    if isinstance(y, tuple):
        raise MissingRuleError("scipy.linalg.logm(disp=False) has no frule: leave out disp")
    y_dot = _logm_along(a, a_dot)
    real = array_of(y).dtype.kind != "c"
    return y, np.real(y_dot) if real and isinstance(y_dot, Chunk) else y_dot


def _logm_along(a: Any, e_dot: Any) -> Any:
    def along(e: Any) -> Any:
        return logm_derivative(a, e) if recorder_of(e) is None else apply(logm_derivative, a, e)

    return apply_linear(logm_derivative, (a, e_dot), 1, along, by_lane=True)


also(expm_derivative, logm_derivative, pure=True)


@transpose(logm_derivative, argnum=1)
def logm_derivative_transpose(y_bar, a, e):
    """The adjoint of L(A, .) is L(Aᴴ, .)."""
    return into(e, _logm_along(np.conj(np.swapaxes(a, -1, -2)), y_bar))
