"""Fusion: which operations become one loop over vectors of elements.

A region is a set of elementwise operations of a block, on arrays of one shape, which LLVM does not
vectorise: with a function that the C library has for vectors, or with quotients and guarded
products. It is computed in one loop, where a result is first needed elsewhere, or memory is about
to be written. Only what is needed outside becomes an array.

Where lanes are scaled by what a region of vectors computes, the loops over lanes are part of it:
the partials of some elements stay in the cache while each lane is processed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fwdad.codegen.loops.terms.numpy_terms import as_ufunc
from fwdad.codegen.loops.vectors.vector_terms import float_dtype, has_vector_form, is_transcendental
from fwdad.ir.ops import Apply, Block, Call, Check, Op, Operand, Value, is_array, values_in
from fwdad.ir.types import ArrayType, Dimension, number_type
from fwdad.ops import Algebra, record_of
from fwdad.tangents.scaling import scale_lanes

_FEWEST = 4  # elements of a last axis whose length is known, for which a vector is worth while


@dataclass
class Region:
    """Operations that are fused into one loop.

    ``shape`` is that of the results of ``base``, and ``dtype`` the one in which it computes, masks
    apart. ``lanes`` are operations on the lanes of elements, which have one more axis in front.
    """

    shape: tuple[Dimension, ...]
    dtype: np.dtype
    base: list[Apply] = field(default_factory=list)
    lanes: list[Apply] = field(default_factory=list)
    made: set[Value] = field(default_factory=set)

    def takes(self, op: Apply) -> bool:
        """Whether an operation can be added to ``base``."""
        dtype = float_dtype(op)
        shape = _shape(op)
        if not _runs_along(shape, self.shape):
            return False
        if dtype is not None and dtype != self.dtype:  # a dtype of doubles is equal to None
            return False
        return shape == self.shape or any(a in self.made for a in op.args if isinstance(a, Value))

    def takes_lanes(self, op: Apply) -> bool:
        """Whether an operation can be added to ``lanes``."""
        shape = _shape(op)
        if not _runs_along(shape[1:], self.shape) or float_dtype(op) != self.dtype:
            return False
        if is_transcendental(op) or (self.lanes and _shape(self.lanes[0])[0] != shape[0]):
            return False
        inside = {o.outputs[0] for o in self.lanes}
        return (op.function is scale_lanes and op.args[0] in self.made) or any(
            a in inside for a in op.args if isinstance(a, Value)
        )

    def add(self, op: Apply, *, lanes: bool) -> None:
        """Add an operation."""
        (self.lanes if lanes else self.base).append(op)
        self.made.add(op.outputs[0])


def _shape(op: Apply) -> tuple[Dimension, ...]:
    t = op.outputs[0].type
    assert isinstance(t, ArrayType)
    return t.shape


def _runs_along(shape: tuple[Dimension, ...], own: tuple[Dimension, ...]) -> bool:
    """Whether a loop over one shape can run over another: no axis is broadcast between them."""
    return len(shape) == len(own) and all(
        d == n or (d != 1 and n != 1) for d, n in zip(shape, own, strict=True)
    )


class Plan:
    """The regions of a block.

    ``is_free`` tells whether an array may be made in such a loop: others have a form of their own.
    """

    def __init__(self, block: Block, is_free: Callable[[Value], bool]) -> None:
        self.before: dict[int, list[Region]] = {}  # what is written before the k-th operation
        self._is_free = is_free
        self._open: list[Region] = []
        for k, op in enumerate(block.ops):
            if isinstance(op, Apply) and self._fits(op):
                self._take(op, k)
            else:
                self._pass(op, k)
        self._close(self._open, len(block.ops))
        self.members = {id(op) for regions in self.before.values() for r in regions
                        for op in (*r.base, *r.lanes)}  # fmt: skip

    def _fits(self, op: Apply) -> bool:
        if len(op.outputs) != 1 or not op.pure or not is_array(op.outputs[0]):
            return False
        shape = _shape(op)
        if not shape or not self._is_free(op.outputs[0]):
            return False
        if isinstance(shape[-1], int) and shape[-1] < _FEWEST:
            return False
        return all(_is_element(a, shape) for a in op.args) and has_vector_form(op)

    def _take(self, op: Apply, k: int) -> None:
        used = set(values_in(op.args))
        feeding = [r for r in self._open if r.made & used]
        for region in [*reversed(feeding), *(r for r in self._open if not r.made & used)]:
            lanes = region.takes_lanes(op)
            if lanes or region.takes(op):
                self._close([r for r in feeding if r is not region], k)
                region.add(op, lanes=lanes)
                return
        self._close(feeding, k)
        dtype = float_dtype(op)
        if dtype is None:  # masks alone
            self._pass(op, k)
            return
        region = Region(_shape(op), dtype)
        region.add(op, lanes=False)
        self._open.append(region)

    def _pass(self, op: Op, k: int) -> None:
        """Let an operation happen, after what it reads and before what it writes."""
        if not self._open:
            return
        acts = op.writes() or op.nests or isinstance(op, (Check, Call)) or not op.outputs
        if acts:
            self._close(self._open, k)
            return
        used = set(values_in(op.operands()))
        self._close([r for r in self._open if r.made & used], k)

    def _close(self, regions: list[Region], k: int) -> None:
        for region in list(regions):
            self._open.remove(region)
            if _gains(region.base):
                self.before.setdefault(k, []).append(region)


def _gains(base: list[Apply]) -> bool:
    """Whether LLVM would not vectorise the operations, or compute some of them more than once.

    It branches around a product with a cotangent that may be zero if a quotient is in it.
    """
    if any(map(is_transcendental, base)):
        return True
    scales = any(op.function is scale_lanes for op in base)
    algebras = {record_of(as_ufunc(op.function)).algebra for op in base}
    return scales and Algebra.QUOTIENT in algebras


def _is_element(a: Operand, shape: tuple[Dimension, ...]) -> bool:
    """Whether an operand is a number, or an array whose broadcast axes are known."""
    if not is_array(a):
        return isinstance(a, Value) or number_type(a) is not None
    shape_of_a = a.type.shape
    return all(
        d in (1, n) or not (_may_be_one(d) or _may_be_one(n))
        for d, n in zip(reversed(shape_of_a), reversed(shape), strict=False)
    )


def _may_be_one(d: Dimension) -> bool:
    return not isinstance(d, int) and d.may_be_one
