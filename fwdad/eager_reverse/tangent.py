"""The tangent of a recorded run: a sum of scaled nodes, each of which is a recorded tangent."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fwdad.errors import NonlinearTangentError
from fwdad.ops import record_of
from fwdad.rules.core.adjoints import Space
from fwdad.rules.core.containers import rebuild
from fwdad.rules.core.recording import OpaqueTangentError, Operation, RecordingTangent
from fwdad.tangents.chunk import Chunk, counts_lanes
from fwdad.tangents.lanes import UNKNOWN
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import quietly
from fwdad.tangents.scaling import MAX_ARRAY_TERMS, merge
from fwdad.tangents.shapes import broadcast_shapes
from fwdad.tangents.zero import ZERO, Undefined, Zero


class Node:
    """A recorded tangent, which takes the place of lanes in a sum of scaled lanes.

    ``shape`` and ``dtype`` are those of the value; ``parts`` are the nodes of its elements by
    index, so that each is recorded once.
    """

    __slots__ = ("__weakref__", "dtype", "parts", "shape")
    lane = UNKNOWN
    basis = hot = None
    placed = False

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.parts: dict[Any, Node] | None = None

    @property
    def array(self) -> NoReturn:
        """Refuse: a recorded run has no lanes."""
        raise OpaqueTangentError(_NO_LANES)


_NO_LANES = "reverse mode has no lanes here: what reads them cannot be run backwards"


class Recorded(RecordingTangent):
    """``sum_k d_k * node_k``, with the scalings deferred as in a chunk.

    It acts as one lane that nobody may read. Shapes and dtypes of results come from the laws
    themselves, applied to chunks of no lanes, which costs no arithmetic.
    """

    __slots__ = ("record", "terms")
    record: Any
    terms: dict[Any, Any]

    @classmethod
    def made(cls, record: Any, shape: tuple[int, ...], terms: dict[Any, Any]) -> Recorded:
        """Make a tangent from scaled nodes; the scalings must belong to nobody else."""
        tangent = cls.__new__(cls)
        tangent.record = record
        tangent.n = 1
        tangent.shape = shape
        tangent.terms = terms
        return tangent

    @classmethod
    def short(cls, record: Any, shape: tuple[int, ...], terms: dict[Any, Any]) -> Recorded:
        """Make a tangent as :meth:`made` does, with a long sum as one node."""
        tangent = Recorded.made(record, shape, terms)
        if len(terms) > (MAX_ARRAY_TERMS if shape else record.most):
            tangent.settle()
        return tangent

    def factors(self) -> dict[Any, Any]:
        """The terms that a product with an array scales: a single one, to need one product only."""
        if len(self.terms) > 1:
            self.settle()
        return self.terms

    @property
    def value(self) -> Any:  # type: ignore[override]
        """A chunk of no lanes, for shapes and dtypes."""
        return _no_lanes(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the sum."""
        return Chunk.dtype.__get__(self)

    @property
    def space(self) -> Space:
        """Shape and dtype."""
        return Space(self.shape, self.dtype)

    def settle(self) -> Node:
        """The sum as one node, which is recorded if there is none yet."""
        terms = self.terms
        if len(terms) == 1:
            ((node, d),) = terms.items()
            if node.shape == self.shape and (d is None or (type(d) is float and d == 1.0)):
                if d is not None:
                    self._set_node(node)
                return node
        node = self.record.combination(terms, self.shape, self.dtype)
        self._set_node(node)
        return node

    def _set_node(self, node: Node) -> None:
        segment = self.record.segment
        if segment is not None:  # a second run has to find the same sum as the first one
            segment.settled.append((self, self.terms))
        self.terms = {node: None}

    def _made(self, value: Chunk, operation: Operation) -> Any:
        return self.record.operation(value, operation)

    @staticmethod
    def _values(value: Any) -> Any:
        return rebuild(value, lambda _, v: _no_lanes(v) if isinstance(v, Chunk) else v)

    def _applied(self, apply: Callable[[Any], Any], x_dot: Any, y: Any) -> Any:
        if isinstance(plain(y), (np.ndarray, np.generic)):
            raw = plain(y)
            if raw.dtype.kind in "fc":
                return Chunk(np.empty((0, *raw.shape), raw.dtype))
        # a function applied lane by lane needs a lane to show its result's shape
        return apply(rebuild(x_dot, lambda _, v: _one_lane(v) if isinstance(v, Chunk) else v))

    # -- what stays deferred

    def __neg__(self) -> Recorded:
        terms = {node: -1.0 if d is None else -d for node, d in self.terms.items()}
        return Recorded.made(self.record, self.shape, terms)

    def __add__(self, other: Any) -> Any:
        if type(other) is Chunk:
            shape = broadcast_shapes(self.shape, other.shape)
            other = self.record.adopt(other)
            if other is ZERO:
                return self.broadcast_to(shape)
        if type(other) is not Recorded:
            return Chunk.__add__(self, other)
        shape = self.shape
        if other.shape != shape:
            shape = broadcast_shapes(shape, other.shape)
        return Recorded.short(self.record, shape, quietly(merge, self.terms, other.terms))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, (Zero, Undefined)):
            return Chunk.__sub__(self, other)
        return self + (-other if isinstance(other, Chunk) else other)

    def __rsub__(self, other: Any) -> Any:
        return -self if isinstance(other, (Zero, Chunk)) else Chunk.__rsub__(self, other)

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, Chunk):
            message = f"{self!r} * {factor!r}: a product of two tangents is not linear"
            raise NonlinearTangentError(message)
        return Chunk.__mul__(self, factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        if isinstance(divisor, Chunk):
            message = f"{self!r} / {divisor!r}: a quotient of two tangents is not linear"
            raise NonlinearTangentError(message)
        return Chunk.__truediv__(self, divisor)

    def scale(self, d: Any, shape: tuple[int, ...] | None = None) -> Recorded:
        """The product of :meth:`Chunk.scale`."""
        return quietly(self.scale_quietly, d, self.shape if shape is None else shape)

    def scale_quietly(self, d: Any, shape: tuple[int, ...]) -> Recorded:
        """The product of :meth:`Chunk.scale_quietly`; by an array, a sum becomes one node first."""
        held_terms = self.factors() if getattr(d, "shape", ()) else self.terms
        terms = {
            node: d if scaling is None else scaling * d for node, scaling in held_terms.items()
        }
        return Recorded.made(self.record, shape, terms)

    def broadcast_to(self, shape: tuple[int, ...]) -> Recorded:
        """The tangent in another shape; nodes and scalings broadcast by themselves."""
        return self if shape == self.shape else Recorded.made(self.record, shape, self.terms)

    def __getitem__(self, index: Any) -> Recorded:
        if not self.shape and counts_lanes(index):
            return self.lanes[index]
        index = index if type(index) is tuple else (index,)
        node = self.settle()
        ints = all(type(i) is int for i in index)
        if ints and len(index) == len(self.shape):
            part = self.record.element(node, index)
        else:
            shape = self.value[index].shape
            part = self.record.indexed(node, index, shape)
        return Recorded.made(self.record, part.shape, {part: None})

    def cut(self, part: slice, shape: tuple[int, ...]) -> Recorded:
        """The part of a vector, as :meth:`Chunk.cut`."""
        node = self.record.indexed(self.settle(), (part,), shape)
        return Recorded.made(self.record, shape, {node: None})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        # what stays deferred as an operator stays so as a ufunc
        if method == "__call__" and ufunc in _OPERATORS and not options:
            first, second = inputs
            plain, reflected = _OPERATORS[ufunc]
            if isinstance(first, Chunk):
                return getattr(first, plain)(second)
            return getattr(second, reflected)(first)
        if method == "__call__" and ufunc is np.negative and not options:
            return -self
        return RecordingTangent.__array_ufunc__(self, ufunc, method, *inputs, **options)


def _no_lanes(t: Chunk) -> Chunk:
    return Chunk(np.empty((0, *t.shape), t.dtype))


def _one_lane(t: Chunk) -> Chunk:
    return Chunk(np.zeros((1, *t.shape), t.dtype))


_OPERATORS = {
    record_of(f).stands_for: (f"__{f.__name__}__", f"__r{f.__name__}__")
    for f in (operator.add, operator.sub, operator.mul, operator.truediv)
}
