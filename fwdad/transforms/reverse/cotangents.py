"""Cotangents: where they are kept, and how contributions are accumulated.

Numbers, and arrays that the program never writes, have cotangents that are values: sums of
contributions. An array that the program writes is memory, and so is its cotangent: an array of its
shape, which has a view for every view in the program. Reversing the load of one element costs one
addition.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Branch, Load, Op, Operand, Value, is_array, map_values
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Type, of_any_lengths
from fwdad.ops import record_of
from fwdad.rules.core.adjoints import Space, into
from fwdad.rules.core.registry import function_name
from fwdad.tangents.zero import Zero
from fwdad.transforms.passes.lengths import same_length
from fwdad.transforms.reverse.normalize.array_phis import Choices
from fwdad.transforms.reverse.region import Region, bar_dtype
from fwdad.transforms.reverse.structure import Structure, may_be_missing


class NotReversibleError(UntraceableError):
    """A program on a tape that reverse mode cannot follow, so that its run is recorded instead."""


class Cotangents:
    """The cotangents of a program's values, in the region that is open."""

    choices: Choices

    def __init__(self, recorder: Recorder, structure: Structure, region: Region) -> None:
        self.recorder = recorder
        self.structure = structure
        self.region = region
        self.refs: dict[Value, Symbol] = {}  # cotangent memory that is known beforehand
        self.op: Op | None = None

    def fail(self, what: str) -> Any:
        """Refuse the operation that is being reversed."""
        location = self.op.location if self.op is not None else None
        raise NotReversibleError(what, location)

    # -- values

    def symbols(self, operand: Operand) -> Any:
        """A structure of operands as symbols."""
        return map_values(lambda v: Symbol(v, self.recorder), operand)

    @contextmanager
    def writing(self, region: Region) -> Iterator[None]:
        """Write into a region."""
        outer, block = self.region, self.recorder.block
        self.region, self.recorder.block = region, region.block
        try:
            yield
        finally:
            self.region, self.recorder.block = outer, block

    def shape(self, v: Value) -> tuple[Any, ...]:
        """The shape of a value, with unknown lengths as :class:`Length`."""
        return tuple(self.recorder.static_length(d) for d in v.type.shape)

    def space(self, v: Value) -> Space:
        """The space of a value's cotangents."""
        return Space(self.shape(v), bar_dtype(v))

    def bar_type(self, v: Value) -> Type:
        """The type of a value's cotangent."""
        if not is_array(v):
            return Number(bar_dtype(v), python=False)
        t = ArrayType(bar_dtype(v), v.type.shape)
        return self.recorder.resolved(of_any_lengths(t) if v in self.structure.missing else t)

    def zeros(self, v: Value) -> Symbol:
        """Zeros of an array's shape."""
        shape, dtype = self._lengths(v), bar_dtype(v)
        options = (dtype,) if dtype != np.float64 else ()
        made = self.recorder.apply_typed(np.zeros, (shape, *options), self.bar_type(v))
        made.value.name = f"{v.name}_bar" if v.name else None
        return made

    def _length(self, v: Value, axis: int) -> Any:
        """A length of an array, read from what it was computed from, which may outlive it."""
        definition = self.structure.definition
        array, at = same_length(v, axis, definition)
        missing = array in self.structure.missing or may_be_missing(array, definition)
        return self.recorder.length(Symbol(array, self.recorder), at, missing=missing)

    def _lengths(self, v: Value) -> Any:
        """The lengths of an array, in the form that functions such as ``np.zeros`` take."""
        lengths = tuple(self._length(v, axis) for axis in range(v.type.ndim))
        return lengths if len(lengths) != 1 else lengths[0]

    # -- adding up

    def add(self, v: Any, x_bar: Any, *, alike: bool = False) -> None:
        """Add a contribution to a value's cotangent; ``alike``: it has the value's shape."""
        if isinstance(x_bar, Zero) or not self.structure.is_active(v):
            return
        if v not in self.structure.home:
            return
        x_bar = self._into(v, x_bar, alike=alike)
        if not is_array(v):
            self._add_number(v, x_bar)
        elif self.structure.is_memory(v):
            self._add_memory(v, x_bar)
        else:
            self._add_array(v, x_bar)

    def _add_memory(self, v: Value, x_bar: Any) -> None:
        op = self.structure.definition.get(v)
        if not self.is_followed(v) and isinstance(op, Apply):
            record = record_of(op.function)
            is_view = record.read_only or record.several
            if not is_view and self.is_overwritten_before_use(op):
                name = function_name(op.function)
                self.fail(
                    f"what {name} returns may be a view of an array that is written before it is "
                    "used: give it a copy"
                )
            self.add_through(op, v, x_bar)
        elif not self.is_followed(v) and isinstance(op, Load):
            self.add_element(op.array, op.index, x_bar)
        elif v not in self.refs and isinstance(op, Load) and op.view:
            base, index = self.memory_of(op.array), self.symbols(op.index)
            self.recorder.update(base, index, operator.add, x_bar)
        elif self._is_first(v):
            self.region.buffers[v] = self._begun(v, x_bar)
        else:
            self.recorder.update(self.memory_of(v), Ellipsis, operator.add, x_bar)

    def is_overwritten_before_use(self, call: Apply) -> bool:
        """Whether memory that a call reads may be written before the operation being reversed."""
        raise NotImplementedError

    def add_through(self, op: Apply, v: Value, x_bar: Any) -> None:
        """Add the contribution of one result of a call to the cotangents of the arguments."""
        raise NotImplementedError

    def add_element(self, array: Value, index: tuple[Any, ...], x_bar: Any) -> None:
        """Add to an array's cotangent at an index, by way of an array of zeros."""
        raise NotImplementedError

    def _begun(self, v: Value, x_bar: Any) -> Symbol:
        """Memory that is initialised with a contribution."""
        if type(x_bar) is not Symbol or not x_bar.is_array:
            made = self.whole(v, x_bar)
        elif v.type.ndim and _certain(x_bar.shape, self.shape(v)):  # NumPy's sums are no memory
            made = self.recorder.apply(np.ndarray.copy, (x_bar,), {})
        else:
            made = self.zeros(v)
            self.recorder.update(made, Ellipsis, operator.add, x_bar)
        made.value.name = f"{v.name}_bar" if v.name else None
        return made

    def _is_first(self, v: Value) -> bool:
        """Whether the open region is where the cotangent of an array begins, right now."""
        is_own = self.structure.roots(v) == {v} and v not in self.choices.meant
        known = v in self.refs or v in self.region.buffers
        made_here = not isinstance(self.structure.definition.get(v), Branch)
        return is_own and not known and made_here and self.home_of(v) is self.region

    def _into(self, v: Value, x_bar: Any, *, alike: bool = False) -> Any:
        """A contribution summed over broadcast axes, and made real for a real value."""
        if not is_array(v):
            if type(x_bar) is Symbol and x_bar.is_array:
                x_bar = self.recorder.apply(np.sum, (x_bar,), {})
            if v.type.dtype.kind != "c" and _kind(x_bar) == "c":
                x_bar = self.recorder.apply(np.real, (x_bar,), {})
            return self._number(v, x_bar)
        if type(x_bar) is Symbol and x_bar.is_array and not x_bar.ndim and v.type.ndim:
            x_bar = x_bar[()]
        if type(x_bar) is not Symbol or not x_bar.is_array:  # the same for every element
            if v.type.dtype.kind != "c" and _kind(x_bar) == "c":
                x_bar = self.recorder.apply(np.real, (x_bar,), {})
            return x_bar
        if alike or _certain(x_bar.shape, self.shape(v)):
            if v.type.dtype.kind != "c" and x_bar.dtype.kind == "c":
                x_bar = self.recorder.apply(np.real, (x_bar,), {})
        else:
            x_bar = self._summed(v, x_bar)
        if x_bar.dtype != v.type.dtype and v.type.dtype.kind == x_bar.dtype.kind:
            x_bar = x_bar.astype(v.type.dtype)
        return x_bar

    def _summed(self, v: Value, x_bar: Symbol) -> Any:
        """A contribution summed over the axes along which a value was broadcast."""
        own = self.shape(v)
        lead = x_bar.ndim - len(own)
        if not own or lead < 0:
            return into(self.space(v), x_bar)
        if v.type.dtype.kind != "c" and x_bar.dtype.kind == "c":
            x_bar = self.recorder.apply(np.real, (x_bar,), {})
        if lead:
            x_bar = self.recorder.apply(np.sum, (x_bar,), {"axis": tuple(range(lead))})
        pairs = zip(own, x_bar.shape, strict=True)
        known = tuple(k for k, (m, n) in enumerate(pairs) if type(m) is int and m == 1 and n != 1)
        if known:
            x_bar = self.recorder.apply(np.sum, (x_bar,), {"axis": known, "keepdims": True})
        if _certain(x_bar.shape, own):
            return x_bar
        lengths = [self._length(v, axis) for axis in range(v.type.ndim)]
        t = ArrayType(x_bar.dtype, self.bar_type(v).shape)
        return self.recorder.apply_typed(sum_to, (x_bar, *lengths), t)

    def whole(self, v: Value, x_bar: Any) -> Any:
        """A cotangent as an array, where it is one number for all elements."""
        if not is_array(v) or (type(x_bar) is Symbol and x_bar.is_array):
            return x_bar
        value = self._number(v, x_bar)
        made = self.recorder.apply_typed(np.full, (self._lengths(v), value), self.bar_type(v))
        made.value.name = f"{v.name}_bar" if v.name else None
        return made

    def _number(self, v: Value, x_bar: Any) -> Any:
        """A contribution in the type that all contributions of a number have."""
        dtype = bar_dtype(v)
        t = Number(dtype, python=False)
        if type(x_bar) is not Symbol:
            return dtype.type(x_bar)
        return x_bar if x_bar.type == t else self.recorder.apply(dtype.type, (x_bar,), {})

    def _add_number(self, v: Value, x_bar: Any) -> None:
        known = self.current(v)
        self.region.bars[v] = x_bar if known is None else known + x_bar

    def current(self, v: Value, region: Region | None = None) -> Any:
        """The cotangent of a number so far, in a region; None if nothing was added yet."""
        region = region or self.region
        if v in region.bars:
            return region.bars[v]
        if self.structure.home[v] is region.source or region.parent is None:
            return None
        if region.is_loop:
            if v not in region.imports:
                name = f"{v.name}_bar" if v.name else None
                made = Value(Number(bar_dtype(v), python=False), name)
                region.imports[v] = made
                region.bars[v] = Symbol(made, self.recorder)
            return region.bars[v]
        return self.current(v, region.parent)

    def _add_array(self, v: Value, x_bar: Any) -> None:
        home = self.home_of(v)
        if home is self.region and v not in home.owned:
            known = home.bars.get(v)
            home.bars[v] = self._lasting(x_bar) if known is None else known + x_bar
            return
        self.recorder.update(self.buffer(v), Ellipsis, operator.add, x_bar)

    def _lasting(self, x_bar: Any) -> Any:
        """A cotangent, copied if it is an array of the program that may be restored."""
        if type(x_bar) is Symbol and x_bar.is_array and x_bar.value in self.structure.home:
            if self.structure.is_memory(x_bar.value):
                return self.recorder.apply(np.ndarray.copy, (x_bar,), {})
        return x_bar

    def buffer(self, v: Value) -> Symbol:
        """The cotangent of an array that is not memory, as memory that can be added into."""
        home = self.home_of(v)
        if v in home.owned:
            return home.bars[v]
        with self.writing(home):
            known = home.bars.get(v)
            if known is None:
                made = self.zeros(v)
            elif type(known) is Symbol and known.is_array:
                made = self.recorder.apply(np.ndarray.copy, (known,), {})
            else:
                made = self.whole(v, known)
        if v.type.dtype.kind == "c" != made.dtype.kind:  # of its real part, until now
            with self.writing(home):
                made = self.recorder.apply(np.ndarray.astype, (made, v.type.dtype), {})
        home.bars[v] = made
        home.owned.add(v)
        return made

    def home_of(self, v: Value) -> Region:
        """The region of the block that defines a value."""
        region: Region | None = self.region
        source = self.structure.home[v]
        while region is not None:
            if region.source is source:
                return region
            region = region.parent
        return self.fail("a value is used outside of the block that defines it")

    def take(self, v: Value) -> Any:
        """The cotangent of a value when its definition is reached; None if it has none."""
        if is_array(v) and self.structure.is_memory(v):
            return self.memory_of(v) if self._has_memory(v) else None
        self.region.owned.discard(v)
        return self.region.bars.pop(v, None)

    # -- memory: see ``view_cotangents``

    def is_followed(self, v: Value) -> bool:
        """Whether the cotangent of an array that is memory can be a view where the array is."""
        raise NotImplementedError

    def memory_of(self, v: Value) -> Symbol:
        """The cotangent of an array that is memory: a view where the array is one."""
        raise NotImplementedError

    def _has_memory(self, v: Value) -> bool:
        return v in self.refs or v in self.region.buffers


def _kind(x: Any) -> str:
    return x.dtype.kind if type(x) is Symbol else np.asarray(x).dtype.kind


def _certain(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two shapes are equal in every run."""
    return len(a) == len(b) and all(m == n for m, n in zip(a, b, strict=True))
