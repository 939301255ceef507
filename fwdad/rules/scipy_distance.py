r"""Distances between the rows of matrices: ``cdist``, ``pdist``, ``squareform`` of SciPy.

With the difference u = a - b of two rows, the slope of their distance d along a is g(u), and along
b it is -g(u):

.. math::
    \text{sqeuclidean: } 2 w u, \quad \text{cityblock: } w \operatorname{sign} u, \quad
    \text{minkowski: } w \operatorname{sign} u \, (|u| / d)^{p - 1},

and euclidean is minkowski with p = 2. Of chebyshev it is the sign of the largest difference.

Equal rows are a kink of every distance but the squared one; there g is 0, as the slope of a norm at
0 is. So is the slope of \|u\| where one coordinate is equal. Of equal largest differences the first
counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError, UnsupportedTypeError, type_in_words
from fwdad.rules.core.by_name import Lazy
from fwdad.rules.core.define import frule
from fwdad.rules.core.registry import function_name
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero

distance = Lazy("scipy.spatial.distance")

_NAMES = {
    "euclidean": "euclidean euclid eu e",
    "sqeuclidean": "sqeuclidean sqe sqeuclid",
    "cityblock": "cityblock cblock cb c",
    "chebyshev": "chebyshev chebychev cheby cheb ch",
    "minkowski": "minkowski mi m pnorm",
}
_METRICS = {alias: name for name, text in _NAMES.items() for alias in text.split()}


@frule("scipy.spatial.distance.cdist", argnums=("XA", "XB"))
def cdist_frule(primals, tangents, metric="euclidean", out=None, **options):
    r"""Push tangents through ``scipy.spatial.distance.cdist``.

    .. math:: \dot d_{ij} = g_{ij} \cdot (\dot a_i - \dot b_j)

    Shapes: a (m, k), b (n, k). Memory: the m n k slopes, once for all lanes.
    """
    a, b = primals
    a_dot, b_dot = tangents
    _refuse_functions(distance.cdist, metric)
    y = distance.cdist(a, b, metric, **options)
    slopes = _slopes(_rows(a)[:, None, :] - _rows(b)[None, :, :], y, metric, options)
    y_dot: Any = ZERO
    if not isinstance(a_dot, Zero):
        y_dot = (slopes @ a_dot[:, :, None])[:, :, 0]
    if not isinstance(b_dot, Zero):
        by_b = (np.swapaxes(slopes, 0, 1) @ b_dot[:, :, None])[:, :, 0]
        y_dot = y_dot - np.swapaxes(by_b, 0, 1)
    return y, y_dot


@frule("scipy.spatial.distance.pdist", argnums="X")
def pdist_frule(primals, tangents, metric="euclidean", out=None, **options):
    r"""Push tangents through ``scipy.spatial.distance.pdist``.

    .. math:: \dot d_{ij} = g_{ij} \cdot (\dot x_i - \dot x_j), \quad i < j
    """
    (x,), (x_dot,) = primals, tangents
    _refuse_functions(distance.pdist, metric)
    y = distance.pdist(x, metric, **options)
    rows = _rows(x)
    first, second = np.triu_indices(rows.shape[0], 1)
    slopes = _slopes(rows[first] - rows[second], y, metric, options)
    change = x_dot[first] - x_dot[second]
    return y, np.sum(slopes * change, axis=-1)


@frule("scipy.spatial.distance.squareform", argnums="X")
def squareform_frule(primals, tangents, force="no", checks=True):
    """Push tangents through ``scipy.spatial.distance.squareform``, in both directions.

    A symmetric matrix with a zero diagonal is made of its upper triangle, or that is taken out.
    """
    (x,), (x_dot,) = primals, tangents
    y = distance.squareform(x, force, checks)
    if y.ndim == 1:
        return y, x_dot[np.triu_indices(x.shape[0], 1)]
    n = y.shape[0]
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    first, second = np.minimum(i, j), np.maximum(i, j)
    place = first * (2 * n - first - 1) // 2 + second - first - 1
    padded = np.pad(x_dot, (0, 1))  # of which the last place is what the diagonal has: 0
    return y, padded[np.where(i != j, place, x.shape[0])]


def _rows(x: Any) -> Any:
    """The rows in double precision, as SciPy reads them."""
    x = x if hasattr(x, "dtype") else np.asarray(x)
    if x.dtype.kind == "c":
        raise UnsupportedTypeError(
            "distances of complex rows are not supported, as SciPy takes real ones only: stack "
            "z.real and z.imag"
        )
    return x if x.dtype == np.float64 else x.astype(np.float64)


def _refuse_functions(of: Any, metric: Any) -> None:
    """Raise where the distance is a function, which SciPy calls pair by pair."""
    if not isinstance(metric, str):
        raise MissingRuleError(
            f"the frule of {function_name(of)} takes the name of a metric, but got "
            f"{type_in_words(metric)}: pass metric='euclidean', or call the function yourself "
            "for each pair of rows"
        )


def _slopes(u: Any, y: Any, metric: str, options: dict[str, Any]) -> Any:
    """The slopes of the distances y along the first of two rows, whose difference is u."""
    name = _METRICS.get(metric.lower())
    w, p = options.get("w"), options.get("p", 2) if name == "minkowski" else 2
    if name == "minkowski" and np.isinf(p):
        name = "chebyshev"
    if name is None or p < 1 or (name == "chebyshev" and w is not None):
        shown = "".join(
            f", {key}=…" if key == "w" else f", {key}={options[key]}" for key in options
        )
        raise MissingRuleError(
            f"the distance {metric!r}{shown} has no derivative here. Use one of "
            f"{', '.join(_NAMES)} (minkowski with p >= 1, chebyshev without w)"
        )
    w = 1.0 if w is None else np.asarray(w, np.float64)
    if name == "sqeuclidean":
        return 2.0 * w * u
    sign = np.sign(u)
    if name == "cityblock":
        return w * sign
    if name == "chebyshev":
        return _largest(u, sign)
    d = y[..., None]
    still = np.equal(plain(d), 0)
    if name == "euclidean":
        return w * np.where(still, 0.0, u / np.where(still, 1.0, d))
    still = still | np.equal(plain(u), 0)
    ratio = np.where(still, 1.0, np.abs(u)) / np.where(still, 1.0, d)
    return w * sign * np.where(still, 0.0, ratio ** (p - 1))


def _largest(u: Any, sign: Any) -> Any:
    """The sign of the largest difference, the first of equal ones, among zeros."""
    if u.shape[-1] == 0:
        return sign
    largest = np.argmax(np.abs(plain(u)), axis=-1)
    return np.where(np.arange(u.shape[-1]) == largest[..., None], sign, 0.0)
