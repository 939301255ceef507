"""``Chunk``: N tangents of one primal, with the lane axis hidden.

A chunk is kept as a sum of diagonally scaled lanes, ``sum_k d_k * V_k``: the scalings d_k have
the primal's shape, the lanes V_k are shared and immutable, and they are multiplied only when the
product is needed. A chain of elementwise operations thus touches the N lanes once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.display.html import framed, mono, tag
from fwdad.errors import (
    ChunkMismatchError,
    ChunkOperationError,
    NonlinearTangentError,
)
from fwdad.ops import record_of
from fwdad.tangents.lanes import Lanes, add_term, index_lanes, is_basic
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import quietly
from fwdad.tangents.scaling import (
    MAX_ARRAY_TERMS,
    MAX_SCALAR_TERMS,
    merge,
    multiplied_out,
    owned,
    too_many,
)
from fwdad.tangents.shapes import broadcast_shapes
from fwdad.tangents.zero import ZERO, Undefined, Zero

LAWS: dict[Any, Callable[..., Any]] = {}
"""The closed list: NumPy function -> what it does to a chunk (see ``laws``)."""

_OPERATORS = {
    record_of(f).stands_for: f.__name__
    for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul)
}
_LINEAR_UFUNCS = {ufunc: f"__{name}__" for ufunc, name in _OPERATORS.items()}
_REFLECTED = {ufunc: f"__r{name}__" for ufunc, name in _OPERATORS.items()}

_new = object.__new__


class Chunk:
    """N tangents that travel together; ``Chunk(lanes)`` makes one from an ``(N, *shape)`` array.

    It takes part in exactly the linear operations: ``+``, ``-``, product and quotient with a
    primal, ``@`` with a primal, indexing, and the NumPy functions of a closed list (sums, shapes,
    ``einsum``, ``fft``, …), each seen as if there were one tangent of the primal's shape.

    To read it, take ``lanes``, the ``(N, *shape)`` array. Length, index and iteration are those of
    one tangent, so that a rule is the textbook formula; ``np.asarray(x_dot)`` raises, since the
    extra axis would broadcast to the right shape with wrong numbers. Only the chunk of a number,
    which has no axes, reads like a tuple of N numbers: length, index, slice, iteration, unpacking.

    Parameters
    ----------
    lanes : array_like
        Shape ``(N, *shape)``, float or complex. It is not copied and must not be written later.

    Raises
    ------
    NonlinearTangentError
        For a product of two chunks, or a nonlinear function of one.
    ChunkMismatchError
        When chunks of different widths meet.
    ChunkOperationError
        For any function outside the closed list.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad import Chunk
    >>> x_dot = Chunk(np.eye(2))
    >>> (np.array([3.0, 4.0]) * x_dot).lanes
    array([[3., 0.],
           [0., 4.]])
    >>> x_dot[0].lanes  # of x[0]
    array([1., 0.])
    >>> first, second = Chunk([0.5, 2.0])  # of a number
    >>> float(first), float(second)
    (0.5, 2.0)
    """

    __slots__ = ("n", "shape", "terms")
    __array_priority__ = 1e6

    n: int
    shape: tuple[int, ...]
    terms: dict[Lanes, Any]

    def __init__(self, lanes: Any) -> None:
        if not hasattr(lanes, "shape"):
            lanes = _as_lanes(lanes)
        if len(lanes.shape) == 0:
            message = "a Chunk needs an array of lanes, shape (N, *shape); got a 0-d array"
            raise ChunkMismatchError(message)
        if lanes.dtype.kind in "USmMV":
            message = f"a Chunk needs lanes of floats; got an array of dtype {lanes.dtype}"
            raise ChunkMismatchError(message)
        self.n = lanes.shape[0]
        self.shape = tuple(lanes.shape[1:])
        self.terms = {Lanes(lanes): None}

    @staticmethod
    def of(n: int, shape: tuple[int, ...], terms: dict[Lanes, Any]) -> Chunk:
        """Make a chunk from scaled lanes; the scalings must belong to nobody else."""
        chunk = _new(Chunk)
        chunk.n = n
        chunk.shape = shape
        chunk.terms = terms
        return chunk

    # -- what it looks like

    @property
    def lanes(self) -> Any:
        """The ``(N, *shape)`` array, multiplied out. Read only."""
        terms = self.terms
        if len(terms) == 1:
            ((lanes, d),) = terms.items()
            if d is None and lanes.array.shape[1:] == self.shape:
                return lanes.array
        array = multiplied_out(terms, self.n, self.shape)
        if hasattr(array, "__fwdad_symbolic__"):
            return array  # another part of the tape may not see it
        self.terms = {Lanes(array): None}
        return array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the lanes."""
        if len(self.terms) == 1:
            ((lanes, d),) = self.terms.items()
            if (d is None or type(d) is float) and lanes.dtype.isnative:
                return lanes.dtype
        return np.result_type(*(_dtype_of(part) for term in self.terms.items() for part in term))

    @property
    def ndim(self) -> int:
        """The rank of the primal."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the primal."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else self.n

    def __repr__(self) -> str:
        return f"Chunk({self.n} lanes of shape {self.shape})"

    def _repr_html_(self) -> str:
        array = multiplied_out(self.terms, self.n, self.shape)
        shown = np.array2string(np.asarray(array), threshold=100, precision=4)
        return framed(mono(repr(self)), tag("pre", shown), note=f"{self.dtype}, lane by lane")

    def __bool__(self) -> bool:
        message = "a Chunk has no truth value: a rule may branch on primals, not on tangents"
        raise NonlinearTangentError(message)

    def _compared(self, _other: object) -> Any:
        message = "a Chunk cannot be compared: a rule may branch on primals, not on tangents"
        raise NonlinearTangentError(message)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared
    __hash__ = object.__hash__

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    # -- the linear operations

    def __neg__(self) -> Chunk:
        terms = {lanes: -1.0 if d is None else -d for lanes, d in self.terms.items()}
        return Chunk.of(self.n, self.shape, terms)

    def __pos__(self) -> Chunk:
        return self

    def __add__(self, other: Any) -> Any:
        if type(other) is not Chunk:
            return self._add_other(other, "+")
        if other.n != self.n:
            raise ChunkMismatchError(_widths(self, other))
        if other.shape != self.shape:
            shape = broadcast_shapes(self.shape, other.shape)
            return self.broadcast_to(shape) + other.broadcast_to(shape)
        terms = merge(self.terms, other.terms)
        if len(terms) > (MAX_ARRAY_TERMS if self.shape else MAX_SCALAR_TERMS) and (
            not self.shape or too_many(terms, self.n)
        ):
            terms = {Lanes(multiplied_out(terms, self.n, self.shape)): None}
        return Chunk.of(self.n, self.shape, terms)

    def _add_other(self, other: Any, sign: str) -> Any:
        if isinstance(other, Zero):
            return self
        if isinstance(other, Undefined):
            return other.use()
        raise ChunkOperationError(
            f"{self!r} {sign} {type(other).__name__}: a tangent can be added to a tangent of the "
            "same primal only (a constant would make the rule affine)"
        )

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other) if type(other) is Chunk else self._add_other(other, "-")

    def __rsub__(self, other: Any) -> Any:
        return -self if isinstance(other, Zero) else self._add_other(other, "-")

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, (float, int, complex, np.generic)):
            return self.scale(factor)
        if type(factor) is Chunk:
            message = f"{self!r} * {factor!r}: a product of two tangents is not linear"
            raise NonlinearTangentError(message)
        if isinstance(factor, (Zero, Undefined)):
            return NotImplemented
        shape = getattr(factor, "shape", None)
        if shape is None:
            factor = np.asarray(factor)
            shape = factor.shape
        if shape == ():
            return self.scale(factor if hasattr(factor, "__fwdad_tag__") else factor[()])
        target = shape if shape == self.shape else broadcast_shapes(shape, self.shape)
        return self.scale(owned(factor, target), target)

    __rmul__ = __mul__

    def scale(self, d: Any, shape: tuple[int, ...] | None = None) -> Chunk:
        """Multiply by a scaling that nobody else holds: a scalar, or an array of ``shape``."""
        if type(d) is float and all(h is None or type(h) is float for h in self.terms.values()):
            return self.scale_quietly(d, self.shape if shape is None else shape)
        return quietly(self.scale_quietly, d, self.shape if shape is None else shape)

    def scale_quietly(self, d: Any, shape: tuple[int, ...]) -> Chunk:
        """:meth:`scale` where floating-point warnings are silenced already."""
        terms = self.terms
        if shape == self.shape:
            scaled = {
                lanes: d if scaling is None else scaling * d for lanes, scaling in terms.items()
            }
        else:
            ndim = len(shape)
            scaled = {}
            for lanes, scaling in terms.items():
                add_term(scaled, lanes.expanded(ndim), d if scaling is None else scaling * d)
        return Chunk.of(self.n, shape, scaled)

    def __truediv__(self, divisor: Any) -> Any:
        if type(divisor) is Chunk:
            message = f"{self!r} / {divisor!r}: a quotient of two tangents is not linear"
            raise NonlinearTangentError(message)
        if type(divisor) in (float, int, complex):  # Python's numbers: 1 / 0.0 raises there
            return self * (1 / divisor if divisor else math.copysign(math.inf, divisor.real))
        return self * quietly(np.true_divide, 1, divisor)

    def __rtruediv__(self, other: Any) -> Any:
        message = f"{type(other).__name__} / {self!r}: division by a tangent is not linear"
        raise NonlinearTangentError(message)

    def __pow__(self, other: Any) -> Any:
        raise NonlinearTangentError(f"{self!r} ** {other!r}: a power of a tangent is not linear")

    def __matmul__(self, other: Any) -> Any:
        return LAWS[np.matmul](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return LAWS[np.matmul](other, self)

    def __getitem__(self, index: Any) -> Any:
        if type(index) is not tuple:
            if not self.shape and counts_lanes(index):  # a number has no axes
                return self.lanes[index] if type(index) is not slice else tuple(self.lanes[index])
            index = (index,)
        if len(index) == len(self.shape) and all(type(i) is int for i in index):
            return self.element(index)
        if is_basic(index) and not (
            len(self.terms) > MAX_ARRAY_TERMS and too_many(self.terms, self.n)
        ):
            terms: dict[Lanes, Any] = {}
            shape: tuple[int, ...] = ()
            for lanes, d in self.terms.items():
                part = lanes.indexed(index, self.shape)
                shape = part.shape
                add_term(terms, part, d[index] if getattr(d, "shape", ()) else d)
            return Chunk.of(self.n, shape, terms)
        return Chunk(index_lanes(self.lanes, index))

    def cut(self, part: slice, shape: tuple[int, ...]) -> Any:
        """The tangent of a slice along the first axis, which has the given shape."""
        terms: dict[Lanes, Any] = {}
        for lanes, d in self.terms.items():
            if lanes.shape != self.shape:
                return self[(part,)]
            add_term(terms, lanes.cut(part), d[part] if getattr(d, "shape", ()) else d)
        return Chunk.of(self.n, shape, terms)

    def element(self, index: tuple[int, ...]) -> Any:
        """The tangent of one element: a scalar chunk, or ``ZERO`` where it is structurally zero."""
        terms: dict[Lanes, Any] = {}
        for lanes, d in self.terms.items():
            if lanes.shape != self.shape:
                if not lanes.placed:
                    return Chunk(self.lanes)[index]
                lanes = lanes.broadcast(self.shape)
            part = lanes.element(index)
            if part is not None:
                if type(d) is np.ndarray:
                    d = d.item(index)
                elif getattr(d, "shape", ()) or getattr(d, "is_array", False):
                    d = d[index]  # of no axes, too: the array may be written later
                if part in terms:
                    add_term(terms, part, d)
                else:
                    terms[part] = d
        return Chunk.of(self.n, (), terms) if terms else ZERO

    def broadcast_to(self, shape: tuple[int, ...]) -> Chunk:
        """The tangent of ``numpy.broadcast_to(x, shape)``."""
        if shape == self.shape:
            return self
        terms: dict[Lanes, Any] = {}
        for lanes, d in self.terms.items():
            wide = lanes.expanded(len(shape))
            if getattr(d, "shape", None):
                d = np.broadcast_to(d, shape)
            else:
                wide = wide.broadcast(shape)
            add_term(terms, wide, d)
        return Chunk.of(self.n, shape, terms)

    # -- methods that an array has

    T = property(lambda self: LAWS[np.transpose](self))
    mT = property(lambda self: LAWS[np.swapaxes](self, -1, -2))
    real = property(lambda self: LAWS[np.real](self))
    imag = property(lambda self: LAWS[np.imag](self))

    def conj(self) -> Chunk:
        """The complex conjugate of every lane (R-linear)."""
        return LAWS[np.conjugate](self)

    conjugate = conj

    def reshape(self, *shape: Any, order: str = "C") -> Chunk:
        """As ``ndarray.reshape``."""
        new = shape[0] if len(shape) == 1 else shape
        return LAWS[np.reshape](self, new, order=order)

    def ravel(self, order: str = "C") -> Chunk:
        """As ``ndarray.ravel``."""
        return LAWS[np.reshape](self, -1, order=order)

    flatten = ravel

    def transpose(self, *axes: Any) -> Chunk:
        """As ``ndarray.transpose``."""
        order = axes[0] if len(axes) == 1 else axes or None
        return LAWS[np.transpose](self, order)

    def swapaxes(self, axis1: int, axis2: int) -> Chunk:
        """As ``ndarray.swapaxes``."""
        return LAWS[np.swapaxes](self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Chunk:
        """As ``ndarray.squeeze``."""
        return LAWS[np.squeeze](self, axis)

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Chunk:
        """As ``ndarray.sum``."""
        return LAWS[np.sum](self, axis=axis, keepdims=keepdims)

    def astype(self, dtype: Any) -> Chunk:
        """Cast every lane; a real dtype keeps the real part."""
        lanes = self.lanes
        if np.dtype(dtype).kind != "c" and plain(lanes).dtype.kind == "c":
            lanes = lanes.real
        return Chunk(lanes.astype(dtype))

    def copy(self) -> Chunk:
        """A chunk is immutable: itself."""
        return self

    # -- NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        options = {k: v for k, v in options.items() if v is not None}
        if method == "reduce" and ufunc is np.add:
            return LAWS[np.sum](*inputs, **options)
        if method != "__call__" or options:
            raise ChunkOperationError(_not_listed(f"{ufunc.__name__}.{method}", options))
        if ufunc is np.negative:
            return -self
        if ufunc is np.positive:
            return self
        if ufunc in LAWS:
            return LAWS[ufunc](*inputs)
        if ufunc in _LINEAR_UFUNCS:
            first, second = inputs
            if isinstance(first, Chunk):
                return getattr(first, _LINEAR_UFUNCS[ufunc])(second)
            return getattr(second, _REFLECTED[ufunc])(first)
        message = f"numpy.{ufunc.__name__} of a tangent is not linear: a rule must be linear in it"
        raise NonlinearTangentError(message)

    def __array_function__(self, func: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        law = LAWS.get(func)
        if law is None:
            raise ChunkOperationError(_not_listed(f"numpy.{getattr(func, '__name__', func)}", {}))
        return law(*args, **kwargs)

    def __array__(self, *_args: Any, **_kwargs: Any) -> Any:
        message = "a Chunk is not an array: use x_dot.lanes for the (N, *shape) array"
        raise ChunkOperationError(message)


def counts_lanes(index: Any) -> bool:
    """Whether an index of a number's chunk means lanes."""
    return isinstance(index, (int, np.integer, slice)) and type(index) is not bool


def _as_lanes(lanes: Any) -> np.ndarray:
    """Nested lists as an array."""
    try:
        return np.asarray(lanes)
    except ValueError as error:
        message = f"a Chunk needs an array of lanes, shape (N, *shape): {error}"
        raise ChunkMismatchError(message) from error


def _dtype_of(part: Any) -> Any:
    if part is None:
        return np.float16
    if isinstance(part, Lanes):
        return part.dtype
    if isinstance(part, np.generic):
        return part.dtype
    if isinstance(part, (float, int)):
        return np.float16
    if isinstance(part, complex):
        return np.complex64
    return part.dtype


def _widths(first: Chunk, second: Chunk) -> str:
    return (
        f"chunks of different widths meet: {first.n} and {second.n} lanes "
        f"(shapes {first.shape} and {second.shape})"
    )


def _not_listed(name: str, options: Any) -> str:
    extra = f" with {', '.join(options)}" if options else ""
    return (
        f"{name}{extra} is not in the closed list of linear operations on a Chunk. Use "
        "x_dot.lanes, the (N, *shape) array, or fwdad.map_lanes(f, x_dot) for a linear f"
    )
