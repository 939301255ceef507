"""The tangents of values: read as chunks or as lanes, and given to values as lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fwdad.ir.ops import Missing, Operand, Value, is_array, values_in
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Type
from fwdad.rules.core.partials import SINGLE, floating
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.placed import NOWHERE, Placed
from fwdad.tangents.zero import ZERO, Undefined
from fwdad.transforms.forward.lanes import Basis, zero_lanes
from fwdad.transforms.forward.state import State

_LISTED = 64  # lanes of a number that are written as a list


class Tangents:
    """The tangents of a program's values."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.recorder = state.recorder
        self.n = state.n

    def of(self, x: Operand) -> Any:
        """The tangent of an operand: a chunk, ZERO, or a list of these."""
        if isinstance(x, Value):
            if x in self.state.shadow:
                copy = self.recorder.apply(np.ndarray.copy, (self.state.shadow[x],), {})
                return Chunk.of(self.n, self.state.shape(x.type), {Lanes(copy): None})
            if x in self.state.views:
                return self.state.views[x].chunk()
            tangent = self.state.tangent.get(x, ZERO)
            if isinstance(tangent, Undefined):
                tangent.use()
            return tangent
        if isinstance(x, (list, tuple)) and any(self.state.is_active(v) for v in values_in(x)):
            return type(x)(self.of(item) for item in x)
        if isinstance(x, dict) and any(self.state.is_active(v) for v in values_in(x)):
            return {key: self.of(item) for key, item in x.items()}
        return ZERO

    def lanes(self, x: Operand, t: Type) -> Any:
        """The lanes of an operand, multiplied out, for a type."""
        if isinstance(x, Value):
            if x in self.state.shadow:
                return self.state.shadow[x]
            if x in self.state.views:
                self.state.must_be_dense(x)
            if x in self.state.tangent:
                return self._cast(self.multiplied(self.state.tangent[x]), t)
        if isinstance(x, Missing):
            return Missing(self.state.lanes_type(t))
        if isinstance(t, Number):
            return self.recorder.apply(np.zeros, (self.n, self.state.lanes_type(t).dtype), {})
        like, made = self.state.symbols(x), self.state.lanes_type(t)
        if isinstance(x, Value):  # what a loop carries may have other lengths than it begins with
            made = ArrayType(made.dtype, (self.n, *like.type.shape))
        return self.recorder.apply_typed(zero_lanes, (self.n, like), made)

    def materialised(self, v: Value) -> Symbol:
        """A value's lanes in memory of their own."""
        tangent = self.state.tangent.get(v)
        if tangent is None:
            return self.recorder.apply_typed(
                zero_lanes, (self.n, self.state.here(v)), self.state.lanes_type(v.type)
            )
        # of the array's own dtype: the tangent of `x + 0j` is real, until something is stored
        lanes = self._cast(self.multiplied(tangent), v.type)
        return self.recorder.apply(np.ndarray.copy, (lanes,), {})

    def multiplied(self, chunk: Chunk) -> Any:
        """A chunk's lanes, multiplied out, without making arrays of a number's unit directions."""
        hot = {held: d for held, d in chunk.terms.items() if held.lane >= 0}
        if chunk.shape or not hot or self.n > _LISTED:
            return chunk.lanes
        units: list[Any] = [0.0] * self.n
        for lane, d in self.by_lane(hot).items():
            units[lane] = d
        dtype = Chunk.of(chunk.n, (), hot).dtype
        single = {"dtype": dtype} if dtype in SINGLE else {}
        total = self.recorder.apply(np.array, (units,), single)
        rest = {held: d for held, d in chunk.terms.items() if held not in hot}
        return total + Chunk.of(chunk.n, (), rest).lanes if rest else total

    def by_lane(self, hot: Mapping[Lanes, Any]) -> dict[int, Any]:
        """The coefficients of unit directions; those of a lane, in two precisions, are added."""
        total: dict[int, Any] = {}
        for held, d in hot.items():
            given = self.coefficient(d)
            total[held.lane] = total[held.lane] + given if held.lane in total else given
        return total

    def coefficient(self, d: Any) -> Any:
        """A scaling of a number's lanes, as a number."""
        if d is None:
            return 1.0
        return self.recorder.load(d, ()) if type(d) is Symbol and d.is_array else d

    def _cast(self, lanes: Any, t: Type) -> Any:
        """Lanes converted to the dtype of their value's type."""
        dtype = self.state.lanes_type(t).dtype
        if lanes.dtype.kind == "c" and dtype.kind != "c":
            lanes = self.recorder.apply(np.real, (lanes,), {})
        if lanes.dtype != dtype:
            lanes = self.recorder.apply(np.ndarray.astype, (lanes, dtype), {})
        return lanes

    def scaled(self, t: Chunk, d: Any, out: Type) -> Chunk:
        """A tangent times a partial, in the shape of a type."""
        shape = self.state.shape(out)
        if type(d) is Symbol and d.is_array and self.recorder.is_written(d.value):
            d = self.recorder.apply(np.ndarray.copy, (d,), {})
        if type(d) is Symbol and out.dtype in SINGLE:
            dtype = floating(d.dtype, out)
            d = d.astype(dtype) if d.dtype != dtype else d
        if isinstance(d, (int, float)) and d == 1:
            term = t
        else:
            # a scaling of one is no product
            terms = {lanes: None if _is_one(held) else held for lanes, held in t.terms.items()}
            unscaled = Chunk.of(t.n, t.shape, terms)
            array = type(d) is Symbol and d.is_array
            if array and broadcasts(d.shape, shape):  # parts are taken of it as of the value
                d = np.broadcast_to(d, shape)
            term = unscaled.scale_quietly(d, shape if array else t.shape)
        return term.broadcast_to(shape) if term.shape != shape else term

    def basis(self, t: Type, seed: Basis) -> Any:
        """The tangent of an argument that is seeded with unit directions."""
        self.state.has_basis = True
        size = int(np.prod(seed.shape, dtype=int))
        places = np.arange(size).reshape(seed.shape) - seed.start
        places = np.where((places >= 0) & (places < self.n), places, NOWHERE)
        if isinstance(t, Number):
            dtype = np.dtype(np.result_type(t.dtype, np.float16))
            placed = Placed(self.n, places, dtype, self.state.placer)
            return Chunk.of(self.n, (), {placed: 1.0}) if places >= 0 else ZERO
        lanes = Placed(self.n, places, t.dtype, self.state.placer)
        return Chunk.of(self.n, self.state.shape(t), {lanes: None})

    def placed(self, r: Operand) -> Any:
        """The tangent of what the block returns: memory with slots, or as :meth:`of` has it."""
        view = self.state.views.get(r) if isinstance(r, Value) else None
        return self.of(r) if view is None else view

    def result_lanes(self, r: Operand) -> Any:
        """The lanes of what the block returns."""
        t = r.type if isinstance(r, Value) else None
        if t is None:
            return self.recorder.apply(np.zeros, (self.n,), {})
        if r in self.state.views:
            return self._cast(self.state.views[r].chunk(copy=False).lanes, t)
        return self.lanes(r, t)

    # -- what becomes a tangent

    def give_lanes(self, v: Value, lanes: Symbol, held: Lanes | None = None) -> None:
        """Make these lanes a value's tangent, or its shadow if the value is memory with shadows."""
        if self.state.is_shadowed(v):
            self.state.shadow[v] = lanes
        else:
            terms: dict[Any, Any] = {held or Lanes(lanes): None if is_array(v) else 1.0}
            self.state.tangent[v] = Chunk.of(self.n, self.state.shape(v.type), terms)


def broadcasts(lengths: tuple[Any, ...], shape: tuple[Any, ...]) -> bool:
    """Whether an array of these lengths is broadcast against a shape.

    Unknown lengths of arguments are at least two; those of their slices may be one.
    """
    if len(lengths) != len(shape):
        return True
    return any(
        m != n and (m == 1 if type(m) is int else m.may_be_one)
        for m, n in zip(lengths, shape, strict=True)
    )


def _is_one(d: Any) -> bool:
    return type(d) is float and d == 1.0
