"""A tangent that records what a rule does to it, so that the rule can be transposed.

A rule body is promised to be linear, and made of operations of the closed list. Here it runs on
tangents that record those operations; the record is then read backwards with the registered
transposes, as in reverse mode.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import ChunkOperationError, MissingTransposeError, NonlinearTangentError
from fwdad.rules.core.adjoints import TRANSPOSES, Space
from fwdad.rules.core.binding import binder_for
from fwdad.rules.core.containers import Path, pick, rebuild, walk
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.tangents.chunk import LAWS, Chunk, counts_lanes
from fwdad.tangents.shapes import same_shape
from fwdad.tangents.zero import Undefined, Zero


class OpaqueTangentError(MissingTransposeError):
    """A rule looked into its tangent: ``x_dot.lanes`` or ``map_lanes``."""

    noted = False  # a transpose of the rule's own may stand in


@dataclass(eq=False)
class Operation:
    """One recorded linear operation.

    ``function`` is the key of its transposes; ``primals`` are its arguments, recorded tangents
    among them.
    """

    function: Callable[..., Any]
    primals: tuple[Any, ...]
    options: dict[str, Any]

    @functools.cached_property
    def sources(self) -> list[tuple[Path, RecordingTangent]]:
        """The recorded tangents among the primals, with their paths."""
        return recorded_in(self.primals)


_SIGNATURES = {  # NumPy 2.0 does not tell them
    np.asarray: "(a, dtype=None, order=None)",
    np.ascontiguousarray: "(a, dtype=None)",
}
_IDENTITIES = {np.copy, np.asarray, np.ascontiguousarray, np.positive}


class RecordingTangent(Chunk):
    """Stands for a ``Chunk`` in a rule body, and records what is done to it.

    It carries the chunk's value, so that shapes, dtypes and errors are the chunk's own; only the
    explicit escapes (``lanes``, ``terms``) are closed. ``operation`` is None for an input. A
    subclass may keep a cheaper stand-in for the value, and record in its own way (``_made``).
    """

    __slots__ = ("operation", "value")

    def __init__(self, value: Chunk, operation: Operation | None = None) -> None:
        self.value = value
        self.operation = operation
        self.n = value.n
        self.shape = value.shape

    @property
    def lanes(self) -> Any:
        """Raise: code that reads the lanes leaves the closed list."""
        message = "the rule reads x_dot.lanes (or maps over lanes): it cannot be recorded"
        raise OpaqueTangentError(message)

    terms = lanes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the value."""
        return self.value.dtype

    @property
    def space(self) -> Space:
        """Shape and dtype."""
        return Space(self.shape, self.value.dtype)

    # -- recording

    def _made(self, value: Chunk, operation: Operation) -> Any:
        """The stand-in for the result of an operation."""
        return RecordingTangent(value, operation)

    def __fwdad_linear__(
        self,
        function: Any,
        arguments: tuple[Any, ...],
        options: Any,
        apply: Any,
        x_dot: Any,
        y: Any = None,
    ) -> Any:
        """Record one application of a linear primitive (see ``fwdad.rules.core.define``).

        ``y``, where it is known, is what the function returned: it has the result's shape.
        """
        value = self._applied(apply, x_dot, y)
        if not isinstance(value, Chunk):
            return value
        return self._made(value, Operation(function, arguments, options))

    @staticmethod
    def _values(value: Any) -> Any:
        """The chunks that recorded tangents stand for, also inside containers."""
        return rebuild(value, lambda _, v: v.value if isinstance(v, RecordingTangent) else v)

    def _applied(self, apply: Callable[[Any], Any], x_dot: Any, _y: Any) -> Any:
        return apply(self._values(x_dot))

    def _record(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        value = LAWS[function](*self._values(args), **kwargs)
        return self._recorded(value, function, args, kwargs)

    def _recorded(self, value: Any, function: Any, args: Any, kwargs: Any) -> Any:
        if not isinstance(value, Chunk):
            return value
        rule = find_rule(function)
        if rule is not None and rule.kind != "constant":
            args, kwargs = rule.binder.bind(tuple(args), kwargs)
        elif not isinstance(function, np.ufunc):
            binder = binder_for(function, function_name(function), _SIGNATURES.get(function), None)
            args, kwargs = binder.bind(tuple(args), kwargs)
        return self._made(value, Operation(function, tuple(args), kwargs))

    # -- operators

    def __neg__(self) -> Any:
        return self._recorded(-self.value, np.negative, (self,), {})

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (Zero, Undefined)):
            return Chunk.__add__(self, other)
        value = self.value + self._values(other)
        return self._recorded(value, np.add, (self, other), {})

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, (Zero, Undefined)):
            return Chunk.__sub__(self, other)
        value = self.value - self._values(other)
        return self._recorded(value, np.subtract, (self, other), {})

    def __rsub__(self, other: Any) -> Any:
        return -self if isinstance(other, Zero) else -(self - other)

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, (Zero, Undefined)):
            return NotImplemented
        value = self.value * self._values(factor)
        return self._recorded(value, np.multiply, (self, factor), {})

    __rmul__ = __mul__

    def scale(self, d: Any, shape: tuple[int, ...] | None = None) -> Any:
        """Record a product with a partial."""
        return self._recorded(self.value.scale(d, shape), np.multiply, (self, d), {})

    def __truediv__(self, divisor: Any) -> Any:
        value = self.value / self._values(divisor)
        return self._recorded(value, np.divide, (self, divisor), {})

    def __matmul__(self, other: Any) -> Any:
        return other if isinstance(other, Zero) else self._record(np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return other if isinstance(other, Zero) else self._record(np.matmul, other, self)

    def __len__(self) -> int:
        return len(self.value) if self.shape else len(self.lanes)

    def __getitem__(self, index: Any) -> Any:
        if not self.shape and counts_lanes(index):
            return self.lanes[index]
        return self._recorded(self.value[index], operator.getitem, (self, index), {})

    def element(self, index: tuple[int, ...]) -> Any:
        """Record the choice of one element."""
        return self[index]

    def broadcast_to(self, shape: tuple[int, ...]) -> Any:
        """Record a broadcast."""
        return self._record(np.broadcast_to, self, shape)

    # -- methods

    T = property(lambda self: self._record(np.transpose, self))
    mT = property(lambda self: self._record(np.swapaxes, self, -1, -2))
    real = property(lambda self: self._record(np.real, self))
    imag = property(lambda self: self._record(np.imag, self))

    def conj(self) -> Any:
        """Record a conjugate."""
        return self._record(np.conjugate, self)

    conjugate = conj

    def reshape(self, *shape: Any, order: Any = "C") -> Any:
        """Record a reshape."""
        return self._record(np.reshape, self, shape[0] if len(shape) == 1 else shape, order)

    def ravel(self, order: Any = "C") -> Any:
        """Record a reshape."""
        return self._record(np.reshape, self, -1, order)

    flatten = ravel

    def transpose(self, *axes: Any) -> Any:
        """Record a transpose."""
        return self._record(np.transpose, self, axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Record an exchange of axes."""
        return self._record(np.swapaxes, self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Any:
        """Record a squeeze."""
        return self._record(np.squeeze, self, axis)

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """Record a sum."""
        return self._record(np.sum, self, axis=axis, keepdims=keepdims)

    def astype(self, dtype: Any) -> Any:
        """Record a cast."""
        value = self.value.astype(dtype)
        return self._made(value, Operation(Chunk.astype, (self, dtype), {}))

    # -- NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        value = getattr(ufunc, method)(*self._values(inputs), **options)  # a chunk's own errors
        if method == "reduce":
            options = {name: v for name, v in options.items() if v is not None}
            return self._recorded(value, np.sum, inputs, options)
        if ufunc in _IDENTITIES:
            return self
        if ufunc is np.multiply and not isinstance(inputs[0], Chunk):
            inputs = inputs[::-1]
        return self._recorded(value, ufunc, inputs, {})

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in LAWS:
            return Chunk.__array_function__(self, func, types, args, kwargs)
        if func in _IDENTITIES:
            return self
        value = LAWS[func](*self._values(args), **kwargs)
        return self._recorded(value, func, args, kwargs)


def pull_back(
    outputs: list[tuple[RecordingTangent, Chunk]],
    lift: Callable[[Any, Any], Any] | None = None,
) -> dict[int, Chunk]:
    """Run a record backwards; returns each input's cotangent by the ``id`` of the input.

    ``lift`` is that of :func:`transpose_one`.
    """
    order: list[RecordingTangent] = []
    seen: set[int] = set()

    def visit(tangent: RecordingTangent) -> None:
        if id(tangent) in seen:
            return
        seen.add(id(tangent))
        if tangent.operation is not None:
            for _, source in tangent.operation.sources:
                visit(source)
        order.append(tangent)

    cotangents: dict[int, Any] = {}
    for tangent, y_bar in outputs:
        visit(tangent)
        _accumulate(cotangents, tangent, y_bar)
    for tangent in reversed(order):
        if tangent.operation is None or id(tangent) not in cotangents:
            continue
        y_bar = cotangents.pop(id(tangent))
        for source, x_bar in transpose_one(tangent.operation, y_bar, lift):
            _accumulate(cotangents, source, x_bar)
    return cotangents


def recorded_in(primals: Any) -> list[tuple[Path, RecordingTangent]]:
    """The recorded tangents among arguments, with their paths."""
    return [(path, v) for path, v in walk(primals) if isinstance(v, RecordingTangent)]


def transpose_one(
    operation: Operation, y_bar: Any, lift: Callable[[Any, Any], Any] | None = None
) -> list[tuple[RecordingTangent, Any]]:
    """The cotangent of each recorded argument of one operation.

    ``lift``, given a function and its transpose, makes this run on the duals of an enclosing
    derivative, or on symbols; None leaves it as it is.
    """
    spaces = rebuild(operation.primals, lambda _, v: _space(v))
    x_bars: dict[int, Any] = {}
    for k, body in transposes_for(operation).items():
        body = body if lift is None else lift(operation.function, body)
        x_bars[k] = body(y_bar, *spaces, **operation.options)
    return [(source, pick(x_bars[path[0]], path[1:])) for path, source in operation.sources]


def transposes_for(operation: Operation) -> dict[int, Any]:
    """The transposes that an operation needs, by the position of the argument."""
    transposes = TRANSPOSES.get(operation.function, {})
    needed = {}
    for k in sorted({path[0] for path, _ in operation.sources}):
        if k not in transposes:
            name = function_name(operation.function)
            raise MissingTransposeError(
                f"{name} has no transpose for its argument {k}: write one under its rule, "
                f"@transpose({name}, argnum={k})"
            )
        needed[k] = transposes[k]
    return needed


def _space(value: Any) -> Any:
    if isinstance(value, RecordingTangent):
        return value.space
    if isinstance(value, Chunk):  # zeros that a rule wrote out, beside a recorded tangent
        if np.any(np.asarray(value.lanes) != 0):
            message = "the rule uses a tangent that is not one of its inputs, so it is not linear"
            raise NonlinearTangentError(message)
        return Space(value.shape, value.dtype)
    return value


def _accumulate(cotangents: dict[int, Any], tangent: RecordingTangent, x_bar: Any) -> None:
    if isinstance(x_bar, Zero):
        return
    if not same_shape(tuple(getattr(x_bar, "shape", (None,))), tuple(tangent.shape)):
        raise ChunkOperationError(f"a transpose returned {x_bar!r} as the cotangent of {tangent!r}")
    before = cotangents.get(id(tangent))
    cotangents[id(tangent)] = x_bar if before is None else before + x_bar


__all__ = [
    "OpaqueTangentError",
    "Operation",
    "RecordingTangent",
    "pull_back",
    "recorded_in",
    "transpose_one",
    "transposes_for",
]
