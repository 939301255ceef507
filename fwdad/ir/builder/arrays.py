"""Lengths of arrays, loads and stores, as operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.builder.index_parts import (
    check_index,
    is_basic,
    is_mask,
    is_plain,
    mask_rank,
    sample_index,
    spelled_out,
)
from fwdad.ir.builder.shape_env import length_if_any, length_of
from fwdad.ir.builder.writer import Writer
from fwdad.ir.ops import Apply, Block, Branch, Check, Load, Op, Store, Update, Value, values_in
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.symbol import Length, Symbol
from fwdad.ir.types import INT, ArrayType, Number, Size, Type, sliced

_LISTS = {list, tuple}


class Arrays(Writer):
    """Records lengths of arrays, loads and stores."""

    def sum_to(self, x: Symbol, shape: tuple[Any, ...]) -> Symbol:
        """Record the sum of ``x`` over the axes along which a value of this shape was broadcast.

        ``x`` has the rank of ``shape``, whose entries are lengths from :meth:`static_length`.
        """
        sizes = tuple(n.size if type(n) is Length else n for n in shape)
        return self.apply_typed(sum_to, (x, *shape), ArrayType(x.dtype, sizes))

    def shape(self, a: Symbol) -> tuple[Any, ...]:
        """The lengths of an array: ints where they are known, else symbols."""
        return tuple(self.length(a, axis) for axis in range(a.type.ndim))

    def length(self, a: Symbol, axis: int, *, missing: bool = False) -> Any:
        """One length of an array; zero if the array, which may be ``missing``, is absent."""
        d = a.type.shape[axis]
        if isinstance(d, Size):
            if d in self.known:
                return self.known[d]
            value = Value(Number(INT.dtype, python=True, size=self.same.get(d, d)))
            asked = length_if_any if missing else length_of
            self.emit(Apply(asked, (a.value, axis), outputs=(value,)))
            return Symbol(value, self)
        return d

    def static_length(self, d: Any) -> Any:
        """A length that rules can compare and pass on: an int, or a :class:`Length`."""
        if not isinstance(d, Size):
            return d
        return self.known[d] if d in self.known else Length(self.same.get(d, d), self)

    def length_symbol(self, d: Size) -> Symbol:
        """An unknown length as a number."""
        t = Number(INT.dtype, python=True, size=d)
        place = self._given.get(d) or self._measured.get(d) or self._doubtful.get(d)
        if place is not None:
            value, axis = place
            return self.apply_typed(length_of, (Symbol(value, self), axis), t)
        coefficient, factors = d.factors
        if factors == (d,):
            message = "a length is needed that is computed at run time, and that no known array has"
            raise UntraceableError(message, self.place())
        total: Any = coefficient
        for f in factors:
            factor = self.length_symbol(f)
            total = factor if type(total) is int and total == 1 else factor * total
        total.value.type = t
        return total

    def load(self, a: Symbol, index: Any) -> Any:
        """Record ``a[index]``."""
        a, at = self._beside(a, self._at(index))
        found, view = self.indexed(a, at)
        value = Value(found)
        self.emit(Load(a.value, self.operand(at), view, outputs=(value,)))
        return Symbol(value, self)

    def _at(self, index: Any) -> tuple[Any, ...]:
        """An index as a tuple; a list that holds symbols becomes an array."""
        at = index if type(index) is tuple else (index,)
        return tuple(self._listed(i) if isinstance(i, list) else i for i in at)

    def _listed(self, items: list[Any]) -> Any:
        """A list that is a part of an index."""
        if any(True for _ in values_in(self.operand(items))):
            return self.apply(np.array, (items,), {})
        return items or np.zeros(0, np.intp)  # an array of no items would have NumPy's floats

    def _beside(self, a: Symbol, at: tuple[Any, ...]) -> tuple[Symbol, tuple[Any, ...]]:
        """An equivalent index with adjacent advanced indices, and the view that it applies to.

        ``a[i, :, j]`` is ``a.transpose(0, 2, 1)[i, j]``: separated advanced indices move their axes
        to the front, where lanes are.
        """
        a, at = self._masks_have_axes(a, at)
        advanced = [
            k for k, i in enumerate(at) if not (i is None or i is ...) and not isinstance(i, slice)
        ]
        apart = advanced and advanced[-1] - advanced[0] >= len(advanced)
        if not apart or all(map(is_basic, at)) or not isinstance(a.value.type, ArrayType):
            return a, at
        taken = {k: mask_rank(at[k]) or 1 for k in advanced}
        rank = a.value.type.ndim
        free = rank - sum(taken.values()) - sum(isinstance(i, slice) for i in at)
        if free < 0:
            return a, at  # too many, which is reported where they are counted
        axis, first, rest, others = 0, list[int](), list[int](), list[Any]()
        for k, i in enumerate(at):
            n = taken.get(k, free if i is ... else int(i is not None))
            (first if k in taken else rest).extend(range(axis, axis + n))
            axis += n
            if k not in taken:
                others += [slice(None)] * n if i is ... else [i]
        view = self.apply(np.transpose, (a, (*first, *rest, *range(axis, rank))), {})
        return view, (*(at[k] for k in advanced), *others)

    def _masks_have_axes(self, a: Symbol, at: tuple[Any, ...]) -> tuple[Symbol, tuple[Any, ...]]:
        """An equivalent index without scalar masks, and the view that it applies to.

        ``a[1:, m]`` is ``a[:, None][1:, np.array([m])]``: a boolean scalar consumes no axis and
        adds one, which everything that counts axes would have to handle.
        """
        alone = [is_mask(i) and not mask_rank(i) for i in at]
        if not any(alone):
            return a, at
        whole: list[Any] = []
        parts: list[Any] = []
        for i, single in zip(at, alone, strict=True):
            if single:
                whole.append(None)
                mask = i if type(i) is Symbol else np.asarray(i)
                parts.append(self.apply(np.reshape, (mask, (1,)), {}))
                continue
            parts.append(i)
            if i is ...:
                whole.append(...)
            elif i is not None:
                whole += [slice(None)] * (mask_rank(i) or 1)
        return self.load(a, tuple(whole)), tuple(parts)

    def indexed(self, a: Symbol, at: tuple[Any, ...]) -> tuple[Type, bool]:
        """The type of ``a[at]``, and whether it is a view."""
        t = a.value.type
        if not isinstance(t, ArrayType):
            message = f"a {t} cannot be indexed"
            raise UntraceableError(message, self.place())
        check_index(at, t.ndim)
        if not all(is_basic(i) for i in at):
            return self._fancy(a, at), False
        dims: list[Any] = []
        rest = list(self.resolved(t).shape)
        for i in spelled_out(at, t.ndim):
            if i is None:
                dims.append(1)
            elif isinstance(i, slice):
                whole = rest.pop(0)
                dims.append(sliced(whole, self._keys(i)))
                if isinstance(dims[-1], Size) and dims[-1] is not whole and is_plain(i):
                    self._sliced[dims[-1]] = (whole, i)
            else:
                rest.pop(0)
        if not dims and Ellipsis not in [i for i in at if i is Ellipsis]:
            return Number(t.dtype, python=False), False
        return ArrayType(t.dtype, tuple(dims)), True

    def _fancy(self, a: Symbol, at: tuple[Any, ...]) -> Type:
        found: list[Any] = []
        for i in at:
            array = np.asarray(i) if isinstance(i, list) else i
            if is_mask(array) and mask_rank(array):
                found += self._true_places(mask_rank(array))
            else:
                found.append(array)
        # samples do not show what slices leave: of a sample, `i:j` is empty, `1:5` is cut short
        shape = list(self.resolved(a.value.type).shape)
        parts, axis = spelled_out(found, len(shape)), 0
        for k, i in enumerate(parts):
            if isinstance(i, slice):
                shape[axis], parts[k] = sliced(shape[axis], self._keys(i)), slice(None)
            axis += i is not None
        cut = Value(ArrayType(a.value.type.dtype, tuple(shape)))
        return self.infer(sample_index, (cut, self.operand(tuple(parts))), {})

    @staticmethod
    def _keys(s: slice) -> slice:
        """A slice with values in place of their symbols."""
        return slice(*(x.value if type(x) is Symbol else x for x in (s.start, s.stop, s.step)))

    def _true_places(self, rank: int) -> list[Any]:
        """Symbols for the types of the positions that a mask selects: one array for each axis."""
        t = ArrayType(INT.dtype, (Size(),))
        return [Symbol(Value(t), self) for _ in range(rank)]

    def store(self, a: Any, index: Any, value: Any) -> None:
        """Record ``a[index] = value``."""
        if type(a) is not Symbol:
            a = self.as_symbol(a)
        value = self.as_array(value)
        self._castable(a, value)
        at = self._at(index)
        if isinstance(a.value.type, ArrayType):
            check_index(at, a.value.type.ndim)
        a, at = self._beside(a, at)
        self.emit(Store(a.value, self.operand(at), self.operand(value)))

    def store_where(self, a: Symbol, value: Any, where: Any) -> None:
        """Record a write into an array where a condition holds; ``True`` is everywhere."""
        if where is not True:
            value = self.apply(np.where, (where, value, a), {})
        self.store(a, Ellipsis, value)

    def leave_outside(
        self, copies: dict[Value, Value], stays: Callable[[Value], bool], first: int
    ) -> None:
        """Copy the contents of ``copies`` back to the arrays outside for which ``stays`` is true.

        The operations of the open block from ``first`` on have run on the copies. If one of them
        raises, the contents are copied back before.
        """
        left = {v: copy for v, copy in copies.items() if stays(v)}
        if left:
            ops = self.block.ops[first:]
            self._leave_before_exceptions(ops, left)
            self.block.ops[first:] = [*ops, *self._stores(left)]

    def _stores(self, left: dict[Value, Value]) -> list[Op]:
        outer, self.block = self.block, Block()
        try:
            for v, copy in left.items():
                self.store(Symbol(v, self), Ellipsis, Symbol(copy, self))
            return self.block.ops
        finally:
            self.block = outer

    def _leave_before_exceptions(self, ops: list[Op], left: dict[Value, Value]) -> None:
        found: list[Op] = []
        for op in ops:
            for block in op.blocks():
                self._leave_before_exceptions(block.ops, left)
            if isinstance(op, Check) and isinstance(op.condition, Value):
                raised = Check(False, op.exception, op.arguments, location=op.location)
                other = Block([], [*self._stores(left), raised])
                found.append(Branch(op.condition, Block(), other, location=op.location))
            else:
                found += self._stores(left) if isinstance(op, Check) else []
                found.append(op)
        ops[:] = found

    def update(self, a: Symbol, index: Any, function: Callable[..., Any], value: Any) -> None:
        """Record ``a[index] op= value``, in place."""
        value = self.as_array(value)
        self._castable(a, value)
        at = self._at(index)
        if isinstance(a.value.type, ArrayType):
            check_index(at, a.value.type.ndim)
        a, at = self._beside(a, at)
        self.emit(Update(a.value, self.operand(at), function, self.operand(value)))

    def _castable(self, a: Symbol, value: Any) -> None:
        """Raise if a complex value goes into a real array, which NumPy forbids for scalars only."""
        dtype = a.type.dtype
        given = value.type.dtype if type(value) is Symbol else getattr(value, "dtype", None)
        complex_ = isinstance(value, complex) or (given is not None and given.kind == "c")
        if complex_ and dtype.kind != "c":
            message = f"a complex value is stored into an array of dtype {dtype}"
            raise UntraceableError(message, self.place())

    def as_array(self, x: Any) -> Any:
        """A list that holds symbols as the array that NumPy makes of it; else ``x`` itself."""
        if type(x) not in _LISTS or not values_in(self.operand(x)):
            return x
        return self.apply(np.array, (x,), {})
