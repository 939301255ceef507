r"""Discrete cosine and sine transforms of SciPy.

Each is linear. In its orthonormal form it is an orthogonal matrix Q; any other form is

.. math:: M = \kappa\, L\, Q\, R

with a factor κ for ``norm``, and diagonal matrices L and R which differ from the identity, by √2 at
the ends, only where ``orthogonalize`` is off. So Mᵀ = κ R Qᵀ L, and Qᵀ is the inverse transform.
Source: Makhoul (1980), "A fast cosine transform in one and two dimensions", for the orthonormal
forms; the factors are those in SciPy's documentation. https://doi.org/10.1109/TASSP.1980.1163351
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import Space, into
from fwdad.rules.core.by_name import refuse_symbols, transpose_by_name
from fwdad.rules.core.define import linear
from fwdad.rules.core.registry import when_imported
from fwdad.rules.fft import resized
from fwdad.tangents.chunk import LAWS, Chunk
from fwdad.tangents.laws.listing import law

_SIGNATURE = (
    "(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None)"
)


def _lanes_law(
    transform: Any,
    x_dot: Chunk,
    type: int = 2,  # noqa: A002  (SciPy's own name)
    n: int | None = None,
    axis: int = -1,
    norm: Any = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Chunk:
    """Transform all lanes at once; they are never overwritten."""
    axis = axis % x_dot.ndim + 1
    return Chunk(transform(x_dot.lanes, type, n, axis, norm, False, workers, orthogonalize))


def _end_weights(kind: str, form: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The diagonals of L and R for the transform that is not orthogonalized."""
    left, right = np.ones(n), np.ones(n)
    root = np.sqrt(2.0)
    if kind == "dct":
        if form == 1:
            left[[0, -1]], right[[0, -1]] = root, 1 / root
        elif form == 2:
            left[0] = root
        elif form == 3:
            right[0] = 1 / root
    elif form == 2:
        left[-1] = root
    elif form == 3:
        right[-1] = 1 / root
    return left, right


@functools.cache
def _complex_is_orthogonalized() -> bool:
    """Whether SciPy passes ``orthogonalize`` on for complex input (1.17 forgets it)."""
    from scipy import fft  # noqa: PLC0415  (imported already: the rule was found by its function)

    x = np.array([1.0, 2.0, 3.0])
    real, other = (fft.dct(v, 2, orthogonalize=True)[0] for v in (x, x.astype(complex)))
    return bool(np.isclose(real, other))


def _logical_length(kind: str, form: int, n: int) -> int:
    """The length of the underlying Fourier transform: κ is its root for no norm."""
    if form == 1:
        return 2 * (n - 1) if kind == "dct" else 2 * (n + 1)
    return 2 * n


def _transpose(
    y_bar: Any,
    x: Space,
    type: int = 2,  # noqa: A002  (SciPy's own name)
    n: int | None = None,
    axis: int = -1,
    norm: Any = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    kind: str,
    inverse: bool,
) -> Any:
    """Weigh, transform back, weigh; the inverse of M is Qᵀ between the reciprocal weights."""
    from scipy import fft  # noqa: PLC0415  (imported already: the rule was found by its function)

    refuse_symbols(y_bar)
    axis %= x.ndim
    length = y_bar.shape[axis]
    size = _logical_length(kind, type, length)
    power = {None: 0.5, "backward": 0.5, "ortho": 0.0, "forward": -0.5}[norm]
    left, right = np.ones(length), np.ones(length)
    if orthogonalize is None or (x.dtype.kind == "c" and not _complex_is_orthogonalized()):
        orthogonalize = norm == "ortho"
    if not orthogonalize:
        left, right = _end_weights(kind, type, length)
    if inverse:
        left, right, power = 1 / right, 1 / left, -power
    shape = [length if k == axis else 1 for k in range(x.ndim)]
    real = np.zeros(0, y_bar.dtype).real.dtype
    # M = κ L Q R and M⁻¹ = R⁻¹ Qᵀ L⁻¹ / κ, so either adjoint is κ R (Qᵀ or Q) L of its own weights
    back = getattr(fft, kind if inverse else f"i{kind}")
    weighed = y_bar * left.reshape(shape).astype(real)
    x_bar = LAWS[back](weighed, type, None, axis, "ortho", False, workers, True)
    return into(
        x,
        resized(
            x_bar * (float(size) ** power * right).reshape(shape).astype(real), x.shape[axis], axis
        ),
    )


# -- along several axes: the transforms along one, one after the other, whatever their order

_OF_MANY = (
    "(x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, "
    "orthogonalize=None)"
)


def _many_axes(ndim: int, s: Any, axes: Any) -> list[int]:
    """The axes of a transform, as SciPy reads ``s`` and ``axes``."""
    if axes is None:
        axes = range(ndim if s is None else np.size(s))
        return [ndim - len(axes) + k for k in axes]
    return [int(a) % ndim for a in np.ravel(axes)]


def _many_axes_law(
    transform: Any,
    x_dot: Chunk,
    type: int = 2,  # noqa: A002  (SciPy's own name)
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Chunk:
    """Transform all lanes at once, but never along the lane axis; they are never overwritten."""
    along = [a + 1 for a in _many_axes(x_dot.ndim, s, axes)]
    return Chunk(
        transform(x_dot.lanes, type, s, along, norm, workers=workers, orthogonalize=orthogonalize)
    )


def _many_axes_transpose(
    y_bar: Any,
    x: Space,
    type: int = 2,  # noqa: A002  (SciPy's own name)
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
    kind: str,
    inverse: bool,
) -> Any:
    """The adjoint along each axis."""
    refuse_symbols(y_bar)
    for axis in _many_axes(x.ndim, s, axes):
        shape = (*y_bar.shape[:axis], x.shape[axis], *y_bar.shape[axis + 1 :])
        y_bar = _transpose(
            y_bar,
            Space(shape, x.dtype),
            type,
            None,
            axis,
            norm,
            orthogonalize=orthogonalize,
            kind=kind,
            inverse=inverse,
        )
    return into(x, y_bar)


for _kind in ("dct", "dst"):
    for _name, _inverse in ((_kind, False), (f"i{_kind}", True)):
        _dotted = f"scipy.fft.{_name}"
        linear(_dotted, argnums=0, signature=_SIGNATURE)
        when_imported(_dotted, lambda f: law(f)(functools.partial(_lanes_law, f)))
        transpose_by_name(_dotted, argnum=0)(
            functools.partial(_transpose, kind=_kind, inverse=_inverse)
        )
        linear(f"{_dotted}n", argnums=0, signature=_OF_MANY)
        when_imported(f"{_dotted}n", lambda f: law(f)(functools.partial(_many_axes_law, f)))
        transpose_by_name(f"{_dotted}n", argnum=0)(
            functools.partial(_many_axes_transpose, kind=_kind, inverse=_inverse)
        )
