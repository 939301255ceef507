"""Shadows: memory for the tangents of memory that active values are stored into."""

from __future__ import annotations

from typing import Any

from fwdad.errors import UntraceableError
from fwdad.ir.ops import Op, Value
from fwdad.tangents.zero import Zero
from fwdad.transforms.forward.slots import Slots, View
from fwdad.transforms.forward.state import State
from fwdad.transforms.forward.tangents import Tangents


class Shadows:
    """Creates shadows: dense lanes, or slots where the places of all tangents are known."""

    def __init__(self, state: State, tangents: Tangents) -> None:
        self.state = state
        self.tangents = tangents

    def begin(self, v: Value) -> None:
        """Create the shadow of memory that active values will be stored into, from its tangent."""
        view = self._placed(v)
        if view is None:
            self.state.shadow[v] = self.tangents.materialised(v)
        else:
            self.state.views[v] = view
        self.state.tangent.pop(v, None)

    def _placed(self, v: Value) -> View | None:
        """A shadow known by its places, if there can be one."""
        state = self.state
        shape, dtype = state.shape(v.type), state.lanes_type(v.type).dtype
        if not state.has_basis or state.roots(v) != {v} or v in state.dense:
            return None
        if state.is_nested() or not all(type(m) is int for m in shape):
            return None
        view = View(Slots(state.recorder, state.n, shape, dtype, state.placer))
        tangent = state.tangent.get(v)
        return view if tangent is None or view.store((Ellipsis,), tangent) else None

    def require(self, v: Value, t: Any) -> None:
        """Make the shadow of an array available, if a store of a tangent, or over one, needs it."""
        state = self.state
        if v in state.shadow or (isinstance(t, Zero) and not state.has_lanes(v)):
            return
        if not state.has_shadow(v):
            message = "derivatives are stored into an array that has no memory for them"
            raise UntraceableError(message, state.op.location if state.op is not None else None)

    def begin_outputs(self, op: Op) -> None:
        """Create shadows for outputs whose memory has them."""
        for v in op.outputs:
            if self.state.is_shadowed(v) and not self.state.has_shadow(v):
                self.begin(v)
