"""Products: ``matmul``, ``dot``, ``tensordot``, ``outer``, ``kron``, ``cross``, ….

Each is linear in each operand (``vdot``, ``vecdot`` and ``vecmat`` conjugate their first one, so
there only over the reals). The closed list defines what they do to a chunk; here are their
rules and, below each, its transposes: for y = L x, <y_bar, L x_dot> = <x_bar, x_dot>
under Re<., .>.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import TRANSPOSES, Space, conjugate, into, take_arrays, transpose
from fwdad.rules.core.define import linear, multilinear
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.chunk import Chunk

# -- products of the last axes: generalised ufuncs


def _aligned_transposes(
    core: Callable[[Any, Any, Any], Any], k: int, cores: tuple[int, int, int]
) -> Callable[..., Any]:
    """Give the adjoint of a product of trailing axes the ``axes`` of a generalised ufunc."""

    def adjoint(
        y_bar: Any,
        x1: Any,
        x2: Any,
        *,
        axes: Any = None,
        axis: int | None = None,
        keepdims: bool = False,
        out: None = None,
    ) -> Any:
        operands = [x1, x2]
        space = operands[k]
        if axis is not None or keepdims:
            e = -1 if axis is None else axis
            axes = [e, e, e if keepdims else ()]
        if axes is None:
            return into(space, core(y_bar, x1, x2))
        entries = [(e,) if isinstance(e, (int, np.integer)) else tuple(e) for e in axes]
        ends = [tuple(range(-len(e), 0)) for e in entries]
        if keepdims:
            y_bar = np.moveaxis(y_bar, entries[2], ends[2])[..., 0]
        elif cores[2]:
            y_bar = np.moveaxis(y_bar, entries[2], ends[2])
        operands[k] = Space(_moved(space.shape, entries[k], ends[k]), space.dtype)
        operands[1 - k] = np.moveaxis(operands[1 - k], entries[1 - k], ends[1 - k])
        return np.moveaxis(into(operands[k], core(y_bar, *operands)), ends[k], entries[k])

    return adjoint


def _moved(
    shape: tuple[Any, ...], sources: tuple[int, ...], ends: tuple[int, ...]
) -> tuple[Any, ...]:
    """The shape of what ``np.moveaxis`` makes of an array; lengths may be unknown."""
    rank = len(shape)
    taken = [s % rank for s in sources]
    order = [k for k in range(rank) if k not in taken]
    for end, k in sorted((e % rank, k) for e, k in zip(ends, taken, strict=True)):
        order.insert(end, k)
    return tuple(shape[k] for k in order)


def _matmul_adjoint_1(y_bar: Any, a: Space, b: Any) -> Any:
    b_ndim = np.ndim(b)
    if b_ndim == 1:  # a product with a vector is transposed without a product
        if a.ndim == 1:
            return y_bar * conjugate(b)
        return y_bar[..., None] * conjugate(b)
    if a.ndim == 1 and b_ndim == 2:
        return conjugate(b) @ y_bar
    y_bar = y_bar[..., None, :] if a.ndim == 1 else y_bar
    a_bar = y_bar @ np.swapaxes(conjugate(b), -1, -2)
    return a_bar[..., 0, :] if a.ndim == 1 else a_bar


def _matmul_adjoint_2(y_bar: Any, a: Any, b: Space) -> Any:
    a_ndim, a = np.ndim(a), conjugate(a)
    if a_ndim == 1:
        return y_bar * a if b.ndim == 1 else a[:, None] * y_bar[..., None, :]
    if b.ndim == 1 and a_ndim == 2:
        return np.swapaxes(a, -1, -2) @ y_bar
    y_bar = y_bar[..., None] if b.ndim == 1 else y_bar
    b_bar = np.swapaxes(a, -1, -2) @ y_bar
    return b_bar[..., 0] if b.ndim == 1 else b_bar


def _matvec_adjoint_1(y_bar: Any, a: Space, v: Any) -> Any:
    return y_bar[..., :, None] * conjugate(v)[..., None, :]


def _matvec_adjoint_2(y_bar: Any, a: Any, v: Space) -> Any:
    return (conjugate(np.swapaxes(a, -1, -2)) @ y_bar[..., None])[..., 0]


def _vecmat_adjoint_1(y_bar: Any, v: Space, a: Any) -> Any:
    return (a @ conjugate(y_bar)[..., None])[..., 0]


def _vecmat_adjoint_2(y_bar: Any, v: Any, a: Space) -> Any:
    return np.asarray(v)[..., :, None] * y_bar[..., None, :]


def _vecdot_adjoint_1(y_bar: Any, x1: Space, x2: Any) -> Any:
    return _column(conjugate(y_bar)) * x2


def _vecdot_adjoint_2(y_bar: Any, x1: Any, x2: Space) -> Any:
    return _column(y_bar) * x1


def _column(y_bar: Any) -> Any:
    """A cotangent beside vectors; that of one product is a number, which a tape cannot index."""
    return y_bar[..., None] if y_bar.ndim else y_bar


def _gufunc(
    function: Any,
    cores: tuple[int, int, int],
    adjoint_1: Callable[..., Any],
    adjoint_2: Callable[..., Any],
    signature: str = "(x1, x2, /, **options)",
) -> None:
    multilinear(function, argnums=(0, 1), signature=signature)
    transpose(function, argnum=0)(_aligned_transposes(adjoint_1, 0, cores))
    transpose(function, argnum=1)(_aligned_transposes(adjoint_2, 1, cores))


_gufunc(np.matmul, (2, 2, 2), _matmul_adjoint_1, _matmul_adjoint_2)
_gufunc(np.linalg.matmul, (2, 2, 2), _matmul_adjoint_1, _matmul_adjoint_2, "(x1, x2, /)")
_gufunc(np.vecdot, (1, 1, 0), _vecdot_adjoint_1, _vecdot_adjoint_2)
_gufunc(
    np.linalg.vecdot, (1, 1, 0), _vecdot_adjoint_1, _vecdot_adjoint_2, "(x1, x2, /, *, axis=-1)"
)
if hasattr(np, "matvec"):  # NumPy >= 2.2
    _gufunc(np.matvec, (2, 1, 1), _matvec_adjoint_1, _matvec_adjoint_2)
    _gufunc(np.vecmat, (1, 2, 1), _vecmat_adjoint_1, _vecmat_adjoint_2)


# -- the product of a matrix with its own transpose

LARGE = 4096
"""From this many elements on it pays to look whether two operands are one matrix."""


def _mirrored(x: Any, y: Any) -> bool:
    """Whether y is the transpose of x: the same memory with the last two axes exchanged."""
    return (
        type(x) is np.ndarray
        and type(y) is np.ndarray
        and x.shape == (*y.shape[:-2], *y.shape[:-3:-1])
        and x.strides == (*y.strides[:-2], *y.strides[:-3:-1])
        and x.__array_interface__["data"] == y.__array_interface__["data"]
    )


def _mirrored_tangents(a_dot: Any, b_dot: Any) -> bool:
    if type(a_dot) is not Chunk or type(b_dot) is not Chunk:
        return False
    if len(a_dot.terms) != 1 or len(b_dot.terms) != 1:
        return False
    ((of_a, d_a),), ((of_b, d_b),) = a_dot.terms.items(), b_dot.terms.items()
    return (d_a is d_b or _mirrored(d_a, d_b)) and _mirrored(of_a.array, of_b.array)


def _matmul_body(primals: Any, tangents: Any, **options: Any) -> Any:
    r"""Push tangents through ``numpy.matmul``, sharing the work of ``a @ a.T``.

    .. math:: \frac{d}{dt} A A^T = Z + Z^T, \quad Z = \dot A A^T

    NumPy computes A Aᵀ at half the price of a product; without this its tangent costs two.
    """
    a, b = primals
    if options or type(a) is not np.ndarray or type(b) is not np.ndarray:
        return _bilinear_matmul(primals, tangents, **options)
    if a.ndim == 2 and a.size >= LARGE and _mirrored(a, b) and _mirrored_tangents(*tangents):
        y = np.matmul(a, b)
        half = (tangents[0] @ b).lanes
        both = np.array(np.swapaxes(half, -1, -2), order="C", copy=True)
        both += half  # a third faster than the sum of two orders in memory
        return y, Chunk(both)
    return _bilinear_matmul(primals, tangents)


_matmul_rule: Any = find_rule(np.matmul)
_bilinear_matmul = _matmul_rule.body
_matmul_rule.body = _matmul_body


# -- products that sum chosen axes of one operand with chosen axes of the other

multilinear(np.tensordot, argnums=(0, 1), signature="(a, b, axes=2)")
multilinear(np.linalg.tensordot, argnums=(0, 1), signature="(x1, x2, /, *, axes=2)")


def _summed(axes: Any, a_ndim: int, b_ndim: int) -> tuple[list[int], list[int]]:
    """The axes of either operand that ``tensordot`` sums over, as non-negative lists."""
    if isinstance(axes, (int, np.integer)):
        return list(range(a_ndim - axes, a_ndim)), list(range(axes))
    of_a, of_b = ([int(s)] if isinstance(s, (int, np.integer)) else list(s) for s in axes)
    return [i % a_ndim for i in of_a], [j % b_ndim for j in of_b]


@transpose(np.tensordot, argnum=0)
def tensordot_transpose_a(y_bar: Any, a: Space, b: Any, axes: Any = 2) -> Any:
    """Contract y_bar with the free axes of b; the axes that were summed come last."""
    of_a, of_b = _summed(axes, a.ndim, np.ndim(b))
    free_a = [i for i in range(a.ndim) if i not in of_a]
    free_b = [j for j in range(np.ndim(b)) if j not in of_b]
    axes_of_b = list(range(len(free_a), len(free_a) + len(free_b)))
    # what is left of b stands in the order of its axes
    order = free_a + [of_a[of_b.index(j)] for j in sorted(of_b)]
    a_bar = np.tensordot(y_bar, conjugate(b), (axes_of_b, free_b))
    return into(a, np.transpose(a_bar, tuple(order.index(i) for i in range(a.ndim))))


@transpose(np.tensordot, argnum=1)
def tensordot_transpose_b(y_bar: Any, a: Any, b: Space, axes: Any = 2) -> Any:
    """Contract the free axes of a with y_bar; the axes that were summed come first."""
    of_a, of_b = _summed(axes, np.ndim(a), b.ndim)
    free_a = [i for i in range(np.ndim(a)) if i not in of_a]
    free_b = [j for j in range(b.ndim) if j not in of_b]
    order = [of_b[of_a.index(i)] for i in sorted(of_a)] + free_b
    b_bar = np.tensordot(conjugate(a), y_bar, (free_a, list(range(len(free_a)))))
    return into(b, np.transpose(b_bar, tuple(order.index(j) for j in range(b.ndim))))


@transpose(np.linalg.tensordot, argnum=0)
def linalg_tensordot_transpose_1(y_bar: Any, x1: Space, x2: Any, *, axes: Any = 2) -> Any:
    """As for ``numpy.tensordot``."""
    return tensordot_transpose_a(y_bar, x1, x2, axes)


@transpose(np.linalg.tensordot, argnum=1)
def linalg_tensordot_transpose_2(y_bar: Any, x1: Any, x2: Space, *, axes: Any = 2) -> Any:
    """As for ``numpy.tensordot``."""
    return tensordot_transpose_b(y_bar, x1, x2, axes)


multilinear(np.inner, argnums=(0, 1), signature="(a, b, /)")


@transpose(np.inner, argnum=0)
def inner_transpose_a(y_bar: Any, a: Space, b: Any) -> Any:
    """``inner`` sums the last axes; with a scalar it is a product."""
    b_ndim = np.ndim(b)
    if a.ndim == 0 or b_ndim == 0:
        return into(a, y_bar * conjugate(b))
    if a.ndim <= 2 and b_ndim <= 2:
        return into(a, _matmul_adjoint_1(y_bar, a, np.swapaxes(b, 0, 1) if b_ndim == 2 else b))
    return tensordot_transpose_a(y_bar, a, b, ([a.ndim - 1], [b_ndim - 1]))


@transpose(np.inner, argnum=1)
def inner_transpose_b(y_bar: Any, a: Any, b: Space) -> Any:
    """``inner`` sums the last axes; with a scalar it is a product."""
    a_ndim = np.ndim(a)
    if b.ndim == 0 or a_ndim == 0:
        return into(b, y_bar * conjugate(a))
    if a_ndim <= 2 and b.ndim <= 2:
        b_bar = _matmul_adjoint_2(y_bar, a, Space(b.shape[::-1], b.dtype))
        return into(b, np.swapaxes(b_bar, 0, 1) if b.ndim == 2 else b_bar)
    return tensordot_transpose_b(y_bar, a, b, ([a_ndim - 1], [b.ndim - 1]))


multilinear(np.dot, argnums=(0, 1), signature="(a, b, out=None)")


@transpose(np.dot, argnum=0)
def dot_transpose_a(y_bar: Any, a: Space, b: Any, out: None = None) -> Any:
    """``dot`` sums a's last axis with b's last but one (b's only one); a scalar multiplies."""
    b_ndim = np.ndim(b)
    if a.ndim == 0 or b_ndim == 0:
        return into(a, y_bar * conjugate(b))
    if a.ndim <= 2 and b_ndim <= 2:
        return into(a, _matmul_adjoint_1(y_bar, a, b))
    return tensordot_transpose_a(y_bar, a, b, ([a.ndim - 1], [max(b_ndim - 2, 0)]))


@transpose(np.dot, argnum=1)
def dot_transpose_b(y_bar: Any, a: Any, b: Space, out: None = None) -> Any:
    """``dot`` sums a's last axis with b's last but one (b's only one); a scalar multiplies."""
    a_ndim = np.ndim(a)
    if b.ndim == 0 or a_ndim == 0:
        return into(b, y_bar * conjugate(a))
    if a_ndim <= 2 and b.ndim <= 2:
        return into(b, _matmul_adjoint_2(y_bar, a, b))
    return tensordot_transpose_b(y_bar, a, b, ([a_ndim - 1], [max(b.ndim - 2, 0)]))


multilinear(np.vdot, argnums=(0, 1), signature="(a, b, /)")


@transpose(np.vdot, argnum=0)
def vdot_transpose_a(y_bar: Any, a: Space, b: Any) -> Any:
    """``vdot`` conjugates a: Re(conj(y_bar) conj(a_dot) b) = Re<conj(y_bar) b, a_dot>."""
    return into(a, conjugate(y_bar) * np.reshape(b, a.shape))


@transpose(np.vdot, argnum=1)
def vdot_transpose_b(y_bar: Any, a: Any, b: Space) -> Any:
    """``vdot`` is an inner product: its adjoint in b is the product with a."""
    return into(b, y_bar * np.reshape(a, b.shape))


# -- outer products

multilinear(np.outer, argnums=(0, 1), signature="(a, b, out=None)")
multilinear(np.linalg.outer, argnums=(0, 1), signature="(x1, x2, /)")


@transpose(np.linalg.outer, argnum=0)
@transpose(np.outer, argnum=0)
def outer_transpose_a(y_bar: Any, a: Space, b: Any, out: None = None) -> Any:
    """The product of y_bar with the vector b."""
    return into(a, (y_bar @ np.ravel(conjugate(b))).reshape(a.shape))


@transpose(np.linalg.outer, argnum=1)
@transpose(np.outer, argnum=1)
def outer_transpose_b(y_bar: Any, a: Any, b: Space, out: None = None) -> Any:
    """The product of the vector a with y_bar."""
    return into(b, (np.ravel(conjugate(a)) @ y_bar).reshape(b.shape))


multilinear(np.kron, argnums=(0, 1), signature="(a, b)")


def _kron_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[Any, Any, Any, Any]:
    """Pad both shapes to one rank, and interleave them as ``kron`` does."""
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    woven = tuple(n for pair in zip(a, b, strict=True) for n in pair)
    wide_a = tuple(n for length in a for n in (length, 1))
    wide_b = tuple(n for length in b for n in (1, length))
    return woven, wide_a, wide_b, ndim


@transpose(np.kron, argnum=0)
def kron_transpose_a(y_bar: Any, a: Space, b: Any) -> Any:
    """Weigh every block of y_bar with b."""
    woven, wide_a, wide_b, _ = _kron_shapes(a.shape, np.shape(b))
    product = y_bar.reshape(woven) * np.reshape(conjugate(b), wide_b)
    return into(Space(wide_a, a.dtype), product).reshape(a.shape)


@transpose(np.kron, argnum=1)
def kron_transpose_b(y_bar: Any, a: Any, b: Space) -> Any:
    """Sum the blocks of y_bar, weighed with a."""
    woven, wide_a, wide_b, _ = _kron_shapes(np.shape(a), b.shape)
    product = y_bar.reshape(woven) * np.reshape(conjugate(a), wide_a)
    return into(Space(wide_b, b.dtype), product).reshape(b.shape)


multilinear(np.cross, argnums=(0, 1), signature="(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None)")
multilinear(np.linalg.cross, argnums=(0, 1), signature="(x1, x2, /, *, axis=-1)")


def _solid(x: Any, axis: int) -> Any:
    """A plane vector as one of space, its vector axis last."""
    x = np.moveaxis(x, axis, -1)
    if x.shape[-1] == 3:
        return x
    return np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)


def _cross_adjoint(
    y_bar: Any, other: Any, space: Space, axes: tuple[int, int, int], sign: float
) -> Any:
    """Return the adjoint of x -> sign x × other, which is y_bar -> sign conj(other) × y_bar."""
    of_x, of_other, of_y = axes
    planar = space.shape[of_x] == other.shape[of_other] == 2
    other = sign * conjugate(_solid(other, of_other))
    # of two plane vectors only the third component is kept
    up = np.array([0.0, 0.0, 1.0])
    y_bar = y_bar[..., None] * up if planar else np.moveaxis(y_bar, of_y, -1)
    x_bar = np.cross(other, y_bar)[..., : space.shape[of_x]]
    last = Space(_moved(space.shape, (of_x,), (-1,)), space.dtype)
    return np.moveaxis(into(last, x_bar), -1, of_x)


@transpose(np.cross, argnum=0)
def cross_transpose_a(
    y_bar: Any,
    a: Space,
    b: Any,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Any:
    """<y, a × b> = <b × y, a>."""
    axes = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    return _cross_adjoint(y_bar, b, a, axes, 1.0)


@transpose(np.cross, argnum=1)
def cross_transpose_b(
    y_bar: Any,
    a: Any,
    b: Space,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Any:
    """<y, a × b> = <y × a, b> = <−a × y, b>."""
    axes = (axisb, axisa, axisc) if axis is None else (axis, axis, axis)
    return _cross_adjoint(y_bar, a, b, axes, -1.0)


@transpose(np.linalg.cross, argnum=0)
def linalg_cross_transpose_1(y_bar: Any, x1: Space, x2: Any, *, axis: int = -1) -> Any:
    """As for ``numpy.cross``."""
    return cross_transpose_a(y_bar, x1, x2, axis=axis)


@transpose(np.linalg.cross, argnum=1)
def linalg_cross_transpose_2(y_bar: Any, x1: Any, x2: Space, *, axis: int = -1) -> Any:
    """As for ``numpy.cross``."""
    return cross_transpose_b(y_bar, x1, x2, axis=axis)


# -- array-API names of linear functions of one matrix

linear(np.linalg.matrix_transpose, argnums=0, signature="(x, /)")
linear(np.linalg.diagonal, argnums=0, signature="(x, /, *, offset=0)")
linear(np.linalg.trace, argnums=0, signature="(x, /, *, offset=0, dtype=None)")


@transpose(np.linalg.matrix_transpose, argnum=0)
def matrix_transpose_transpose(y_bar: Any, x: Space) -> Any:
    """It is its own inverse, and orthogonal."""
    return np.swapaxes(y_bar, -1, -2)


@transpose(np.linalg.diagonal, argnum=0)
def linalg_diagonal_transpose(y_bar: Any, x: Space, *, offset: int = 0) -> Any:
    """As for ``numpy.diagonal``, of the last two axes."""
    return TRANSPOSES[np.diagonal][0](y_bar, x, offset, -2, -1)


@transpose(np.linalg.trace, argnum=0)
def linalg_trace_transpose(y_bar: Any, x: Space, *, offset: int = 0, dtype: Any = None) -> Any:
    """As for ``numpy.trace``, of the last two axes."""
    return TRANSPOSES[np.trace][0](y_bar, x, offset, -2, -1)


take_arrays(np.matmul)
