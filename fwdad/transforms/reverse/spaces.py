"""The space of each value's cotangents: its type, its zero, and how contributions get into it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ir.ops import Value, is_array
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Type, of_any_lengths
from fwdad.rules.core.adjoints import Space, into
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.passes.lengths import same_length
from fwdad.transforms.reverse.region import bar_dtype
from fwdad.transforms.reverse.structure import may_be_missing
from fwdad.transforms.reverse.sweep import Sweep


class Spaces:
    """Makes cotangents of a value's shape and dtype."""

    def __init__(self, sweep: Sweep) -> None:
        self.recorder = sweep.recorder
        self.structure = sweep.structure

    # -- what they are

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
        return self.recorder.lengths.resolved(
            of_any_lengths(t) if v in self.structure.missing else t
        )

    def bar_value(self, v: Value) -> Value:
        """A value for a cotangent."""
        return Value(self.bar_type(v), f"{v.name}_bar" if v.name else None)

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

    # -- their elements

    def zeros(self, v: Value) -> Symbol:
        """Zeros of an array's shape."""
        shape, dtype = self._lengths(v), bar_dtype(v)
        options = (dtype,) if dtype != np.float64 else ()
        zeros = self.recorder.apply_typed(np.zeros, (shape, *options), self.bar_type(v))
        zeros.value.name = f"{v.name}_bar" if v.name else None
        return zeros

    def whole(self, v: Value, x_bar: Any) -> Any:
        """A cotangent as an array, where it is one number for all elements, or None for zero."""
        if x_bar is None:
            return self.zeros(v) if is_array(v) else bar_dtype(v).type(0)
        if not is_array(v) or (type(x_bar) is Symbol and x_bar.is_array):
            return x_bar
        value = self._number(v, x_bar)
        filled = self.recorder.apply_typed(np.full, (self._lengths(v), value), self.bar_type(v))
        filled.value.name = f"{v.name}_bar" if v.name else None
        return filled

    def as_symbol(self, v: Value, x_bar: Any) -> Symbol:
        """A cotangent that rules can distinguish from a constant, with a dtype and a shape."""
        if type(x_bar) is Symbol:
            return x_bar
        return self.recorder.as_symbol(v.type.dtype.type(x_bar))

    def of_own_dtype(self, v: Value, bar: Any) -> Any:
        """The cotangent of an array in the array's dtype: that of a real part may still be real."""
        if not is_array(v) or bar.dtype == bar_dtype(v):
            return bar
        converted = self.zeros(v)
        self.recorder.store(converted, Ellipsis, bar)
        return converted

    # -- contributions

    def into(self, v: Value, x_bar: Any, *, alike: bool = False) -> Any:
        """A contribution summed over broadcast axes, and made real for a real value.

        ``alike``: it has the value's shape.
        """
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
            narrower = _kind(x_bar) == v.type.dtype.kind and _dtype(x_bar) != v.type.dtype
            return self._number(v, x_bar) if narrower else x_bar
        if alike or self.has_shape_of(v, x_bar):
            if v.type.dtype.kind != "c" and x_bar.dtype.kind == "c":
                x_bar = self.recorder.apply(np.real, (x_bar,), {})
        else:
            x_bar = self._summed(v, x_bar)
        if x_bar.dtype != v.type.dtype and v.type.dtype.kind == x_bar.dtype.kind:
            x_bar = x_bar.astype(v.type.dtype)
        return x_bar

    def scaled(self, d: Any, y_bar: Any) -> Any:
        """A cotangent times a partial; zeros stay zero, whatever the partial is."""
        if isinstance(d, (int, float)) and d == 1:
            return y_bar
        if isinstance(y_bar, (int, float)) and y_bar == 1 and _is_inexact(d):
            return np.conjugate(d) if getattr(d, "dtype", np.dtype(float)).kind == "c" else d
        if isinstance(d, (int, float)) and d == -1:
            return -y_bar
        kind = d.dtype.kind if hasattr(d, "dtype") else np.asarray(d).dtype.kind
        if kind == "c":
            d = np.conjugate(d)
        if isinstance(d, (int, float, np.number)) and np.isfinite(d):
            return y_bar * d
        return self.recorder.apply(scale_lanes, (d, y_bar), {})

    def has_shape_of(self, v: Value, x_bar: Symbol) -> bool:
        """Whether a contribution has a value's shape in every run."""
        return _certain(x_bar.shape, self.shape(v))

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

    def _number(self, v: Value, x_bar: Any) -> Any:
        """A contribution in the type that all contributions of a number have."""
        dtype = bar_dtype(v)
        t = Number(dtype, python=False)
        if type(x_bar) is not Symbol:
            return dtype.type(x_bar)
        return x_bar if x_bar.type == t else self.recorder.apply(dtype.type, (x_bar,), {})


def _is_inexact(d: Any) -> bool:
    """Whether a partial can be a cotangent; boolean ones would not add up as numbers."""
    return isinstance(d, (float, complex)) or getattr(d, "dtype", np.dtype(int)).kind in "fc"


def _dtype(x: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = x.dtype if type(x) is Symbol else np.asarray(x).dtype
    return dtype


def _kind(x: Any) -> str:
    return _dtype(x).kind


def _certain(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two shapes are equal in every run."""
    return len(a) == len(b) and all(m == n for m, n in zip(a, b, strict=True))
