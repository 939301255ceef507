"""Cotangents: where they are kept, and how contributions are accumulated.

Numbers, and arrays that the program never writes, have cotangents that are values: sums of
contributions. An array that the program writes is memory, and so is its cotangent: an array of its
shape, which has a view for every view in the program. Reversing the load of one element costs one
addition.
"""

from __future__ import annotations

import operator
from typing import Any, Protocol

import numpy as np

from fwdad.ir.ops import Apply, Branch, Load, Value, is_array
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number
from fwdad.ops import record_of
from fwdad.rules.core.registry import function_name
from fwdad.tangents.zero import Zero
from fwdad.transforms.reverse.normalize.lowering import is_index_array
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.region import Region, bar_dtype
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class ByRule(Protocol):
    """What reverses a call by its rule."""

    def add_through(self, op: Apply, v: Value, x_bar: Any) -> None:
        """Add the contribution of one result of a call to the cotangents of the arguments."""


class Cotangents:
    """The cotangents of a program's values, in the region that is open."""

    def __init__(
        self,
        sweep: Sweep,
        spaces: Spaces,
        view_cotangents: ViewCotangents,
        overwriting: Overwriting,
        by_rule: ByRule,
    ) -> None:
        self.sweep = sweep
        self.spaces = spaces
        self.view_cotangents = view_cotangents
        self.overwriting = overwriting
        self.by_rule = by_rule
        self.recorder = sweep.recorder
        self.structure = sweep.structure

    # -- adding up

    def add(self, v: Any, x_bar: Any, *, alike: bool = False) -> None:
        """Add a contribution to a value's cotangent; ``alike``: it has the value's shape."""
        if isinstance(x_bar, Zero) or not self.structure.activity.is_active(v):
            return
        if v not in self.structure.home:
            return
        x_bar = self.spaces.into(v, x_bar, alike=alike)
        if not is_array(v):
            self._add_number(v, x_bar)
        elif self.structure.is_memory(v):
            self._add_memory(v, x_bar)
        else:
            self._add_array(v, x_bar)

    def _add_number(self, v: Value, x_bar: Any) -> None:
        known = self.current(v)
        self.sweep.region.bars[v] = x_bar if known is None else known + x_bar

    def current(self, v: Value, region: Region | None = None) -> Any:
        """The cotangent of a number so far, in a region; None if nothing was added yet."""
        region = region or self.sweep.region
        if v in region.bars:
            return region.bars[v]
        if self.structure.home[v] is region.source or region.parent is None:
            return None
        if region.is_loop:
            if v not in region.imports:
                name = f"{v.name}_bar" if v.name else None
                param = Value(Number(bar_dtype(v), python=False), name)
                region.imports[v] = param
                region.bars[v] = Symbol(param, self.recorder)
            return region.bars[v]
        return self.current(v, region.parent)

    def _add_array(self, v: Value, x_bar: Any) -> None:
        home = self.sweep.home_of(v)
        if home is self.sweep.region and v not in home.owned:
            known = home.bars.get(v)
            home.bars[v] = self._lasting(x_bar) if known is None else known + x_bar
            return
        self.recorder.update(self._buffer(v), Ellipsis, operator.add, x_bar)

    def _lasting(self, x_bar: Any) -> Any:
        """A cotangent, copied if it is an array of the program that may be restored."""
        if type(x_bar) is Symbol and x_bar.is_array and x_bar.value in self.structure.home:
            if self.structure.is_memory(x_bar.value):
                return self.recorder.apply(np.ndarray.copy, (x_bar,), {})
        return x_bar

    def _buffer(self, v: Value) -> Symbol:
        """The cotangent of an array that is not memory, as memory that can be added into."""
        home = self.sweep.home_of(v)
        if v in home.owned:
            return home.bars[v]
        with self.sweep.writing(home):
            known = home.bars.get(v)
            if known is None:
                buffer = self.spaces.zeros(v)
            elif type(known) is Symbol and known.is_array:
                buffer = self.recorder.apply(np.ndarray.copy, (known,), {})
            else:
                buffer = self.spaces.whole(v, known)
        with self.sweep.writing(home):
            buffer = self._complex(v, buffer)
        home.bars[v] = buffer
        home.owned.add(v)
        return buffer

    def _complex(self, v: Value, x_bar: Symbol) -> Symbol:
        """Memory that what is not of the real part of a complex array can be added to, too."""
        if v.type.dtype.kind == "c" != x_bar.dtype.kind:
            return self.recorder.apply(np.ndarray.astype, (x_bar, v.type.dtype), {})
        return x_bar

    def take(self, v: Value) -> Any:
        """The cotangent of a value when its definition is reached; None if it has none."""
        if is_array(v) and self.structure.is_memory(v):
            views = self.view_cotangents
            return views.memory_of(v) if views.is_begun(v) else None
        self.sweep.region.owned.discard(v)
        return self.sweep.region.bars.pop(v, None)

    # -- memory

    def _add_memory(self, v: Value, x_bar: Any) -> None:
        views, op = self.view_cotangents, self.structure.definition.get(v)
        if not views.is_followed(v) and isinstance(op, Apply):
            record = record_of(op.function)
            is_view = record.read_only or record.several
            if not is_view and self.overwriting.is_overwritten_before_use(op):
                name = function_name(op.function)
                self.sweep.fail(
                    f"what {name} returns may be a view of an array that is written before it is "
                    "used: give it a copy"
                )
            self.by_rule.add_through(op, v, x_bar)
        elif not views.is_followed(v) and isinstance(op, Load):
            self.add_element(op.array, op.index, x_bar)
        elif v not in views.refs and isinstance(op, Load) and op.view:
            base, index = views.memory_of(op.array), self.sweep.symbols(op.index)
            self.recorder.update(base, index, operator.add, x_bar)
        elif self._is_first(v):
            self.sweep.region.buffers[v] = self._begun(v, x_bar)
        else:
            self.recorder.update(views.memory_of(v), Ellipsis, operator.add, x_bar)

    def _is_first(self, v: Value) -> bool:
        """Whether the open region is where the cotangent of an array begins, right now."""
        is_own = self.structure.roots(v) == {v} and v not in self.sweep.choices.meant
        known = self.view_cotangents.is_begun(v)
        made_here = not isinstance(self.structure.definition.get(v), Branch)
        return is_own and not known and made_here and self.sweep.home_of(v) is self.sweep.region

    def _begun(self, v: Value, x_bar: Any) -> Symbol:
        """Memory that is initialised with a contribution."""
        if type(x_bar) is not Symbol or not x_bar.is_array:
            memory = self.spaces.whole(v, x_bar)
        elif v.type.ndim and self.spaces.has_shape_of(v, x_bar):  # NumPy's sums are no memory
            memory = self._complex(v, x_bar)
            if memory is x_bar:
                memory = self.recorder.apply(np.ndarray.copy, (x_bar,), {})
        else:
            memory = self.spaces.zeros(v)
            self.recorder.update(memory, Ellipsis, operator.add, x_bar)
        memory.value.name = f"{v.name}_bar" if v.name else None
        return memory

    def add_element(self, array: Value, index: tuple[Any, ...], x_bar: Any) -> None:
        """Add to an array's cotangent at an index, by way of an array of zeros."""
        zeros = self.spaces.zeros(array)
        self.scatter(zeros, index, x_bar)
        self.add(array, zeros)

    def scatter(self, target: Symbol, index: tuple[Any, ...], x_bar: Any) -> None:
        """``target[index] += x_bar``, for an index that may repeat elements."""
        at = self.sweep.symbols(index)
        if any(map(is_index_array, index)):
            where = at[0] if len(at) == 1 else at
            self.recorder.mutate(np.add.at, (target, where, x_bar), {})
        else:
            self.recorder.update(target, at, operator.add, x_bar)

    def target(self, v: Value) -> Symbol:
        """The memory into which cotangents of an array's elements are added."""
        if self.structure.is_memory(v):
            return self.view_cotangents.memory_of(v)
        op = self.structure.definition.get(v)
        if isinstance(op, Load) and op.view:  # what is added up for the view itself is apart
            return self.recorder.load(self.target(op.array), self.sweep.symbols(op.index))
        return self._buffer(v)

    def in_memory(self, v: Value) -> Symbol:
        """The cotangent of an array, as memory that can be added into."""
        return self.view_cotangents.memory_of(v) if self.structure.is_memory(v) else self._buffer(v)

    # -- cotangents that are given

    def become(self, v: Value, bar: Symbol) -> None:
        """Make an array the cotangent of another one."""
        if self.structure.is_memory(v):
            self.view_cotangents.refs[v] = bar
        else:
            self.add(v, bar, alike=True)

    def share(self, cotangents: dict[Value, Symbol]) -> None:
        """Keep the cotangents of arguments in the given memory."""
        for v, bar in cotangents.items():
            if self.structure.is_memory(v):
                self.view_cotangents.refs[v] = bar
            else:
                self.sweep.region.bars[v] = bar
                self.sweep.region.owned.add(v)
