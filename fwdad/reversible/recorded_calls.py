"""Reversible functions in a recorded run: one operation, whose reverse pass is the inverse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import with_explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import isinstance_dual, split, top_tag
from fwdad.eager.memory.shadow import owner_of
from fwdad.eager_reverse.tangent import Node, Recorded
from fwdad.reversible.arguments.kinds import Kind
from fwdad.reversible.arguments.records import flat_kinds
from fwdad.reversible.function import Reversible
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_shape
from fwdad.tangents.zero import Zero


def run_recorded_call(f: Reversible, kinds: tuple[Kind, ...], values: list[Any]) -> Any:
    """Run a reversible function whose arguments are active in a recorded run.

    Returns the values that it updates, flat; None if nothing is active in a recorded run, or if the
    function uses active values from outside, so that it has to be unrolled.
    """
    duals = with_explicit(values)
    tag = top_tag(duals)
    if tag is None or tag.record is None:
        return None
    pairs = [split(v, tag) for v in duals]
    inner = [p for p, _ in pairs]
    results = with_explicit(call(f.definition.pure(kinds, f.inverse, False).function, *inner))
    if any(isinstance_dual(v) and v.tag is tag for v in results):
        return None
    flat = flat_kinds(kinds)
    updated = sorted(f.definition.updated(kinds))
    new = dict(zip(updated, results, strict=True))
    sources = [None if isinstance(t, Zero) else tag.record.adopt(t).settle() for _, t in pairs]
    nodes = {
        k: Node(leaf_shape(v), np.dtype(flat[k].dtype)) for k, v in new.items() if flat[k].active
    }
    after = [new.get(k, p) for k, p in enumerate(inner)]
    tag.record.write_down(Undone(f, kinds, after, sources, nodes))
    return tuple(_dual(v, nodes.get(k), tag) for k, v in new.items())


def _dual(v: Any, node: Node | None, tag: Any) -> Any:
    if node is None:
        return v
    t = Recorded.made(tag.record, node.shape, {node: None})
    if isinstance(plain(v), np.ndarray):
        return Array(v, t, tag)
    return Scalar(v, tag.record.scalar_terms(t), tag)


class Undone:
    """A recorded call of a reversible function; the reverse pass undoes it, with cotangents.

    ``values`` are the flat arguments after the call, ``sources`` the tangents of those before it,
    ``nodes`` the tangents of what it updated, by position.
    """

    def __init__(
        self,
        f: Reversible,
        kinds: tuple[Kind, ...],
        values: list[Any],
        sources: list[Node | None],
        nodes: dict[int, Node],
    ) -> None:
        self.f = f
        self.kinds = kinds
        self.values = values
        self.sources = sources
        self.nodes = nodes

    def pull(self, sweep: Any) -> None:
        """Run the inverse with cotangents, once for each of them."""
        bars = {k: sweep.take(node) for k, node in self.nodes.items()}
        if all(bar is None for bar in bars.values()):
            return
        if sweep.n is None:
            cotangents = self._undone(sweep, bars)
        else:
            rows = [
                self._undone(sweep, {k: b if b is None else b[i] for k, b in bars.items()})
                for i in range(sweep.n)
            ]
            cotangents = [call(np.stack, list(parts)) for parts in zip(*rows, strict=True)]
        active = [s for s, k in zip(self.sources, flat_kinds(self.kinds), strict=True) if k.active]
        for source, bar in zip(active, cotangents, strict=True):
            if source is not None:
                sweep.add(source, bar)

    def _undone(self, sweep: Any, bars: dict[int, Any]) -> list[Any]:
        """The cotangents of all arguments that have one."""
        adjoint = self.f.definition.pure(self.kinds, self.f.inverse, True).function
        cotangents = [self._fitted(k, bar) for k, bar in bars.items()]
        if sweep.nested:
            return list(with_explicit(call(adjoint, *self.values, *cotangents)))
        return list(adjoint(*self.values, *cotangents))

    def _fitted(self, k: int, bar: Any) -> Any:
        """A cotangent as generated code takes it."""
        node = self.nodes[k]
        if bar is None:
            bar = np.zeros(node.shape, node.dtype)
        if isinstance_dual(bar):
            return bar
        cotangent = np.asarray(bar, node.dtype)
        return cotangent if flat_kinds(self.kinds)[k].is_array else cotangent.item()

    def arrays(self) -> list[Any]:
        """The arrays that the reverse pass reads."""
        return [v for v in self.values if type(v) is Array or isinstance(v, np.ndarray)]

    def copy_from(self, owner: Any, copies: dict[int, Any]) -> None:
        """Keep copies of what views some memory, which is about to be written."""
        for k, v in enumerate(self.values):
            if isinstance(plain(v), np.ndarray) and owner_of(plain(v)) is owner:
                self.values[k] = copies.setdefault(id(v), (v, v.copy()))[1]

    def held(self) -> Iterable[Any]:
        """What it keeps in memory."""
        return [self.values, *self.arrays()]
