"""Indices as operations take them: advanced ones side by side, no scalar masks, no lists."""

from __future__ import annotations

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
from fwdad.ir.builder.shape_env import KnownLengths
from fwdad.ir.ops import Value, values_in
from fwdad.ir.symbol import Recording, Symbol
from fwdad.ir.types import INT, ArrayType, Number, Size, Type, sliced


class Indexing:
    """Brings indices into this form, and types what they select; what that takes is recorded."""

    def __init__(self, recorder: Recording, lengths: KnownLengths) -> None:
        self.recorder = recorder
        self.lengths = lengths

    def at(self, index: Any) -> tuple[Any, ...]:
        """An index as a tuple; a list that holds symbols becomes an array."""
        at = index if type(index) is tuple else (index,)
        return tuple(self._listed(i) if isinstance(i, list) else i for i in at)

    def _listed(self, items: list[Any]) -> Any:
        """A list that is a part of an index."""
        if any(True for _ in values_in(self.recorder.operand(items))):
            return self.recorder.apply(np.array, (items,), {})
        return items or np.zeros(0, np.intp)  # an array of no items would have NumPy's floats

    def beside(self, a: Symbol, at: tuple[Any, ...]) -> tuple[Symbol, tuple[Any, ...]]:
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
        view = self.recorder.apply(np.transpose, (a, (*first, *rest, *range(axis, rank))), {})
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
                parts.append(self.recorder.apply(np.reshape, (mask, (1,)), {}))
                continue
            parts.append(i)
            if i is ...:
                whole.append(...)
            elif i is not None:
                whole += [slice(None)] * (mask_rank(i) or 1)
        return self.recorder.load(a, tuple(whole)), tuple(parts)

    def type_of(self, a: Symbol, at: tuple[Any, ...]) -> tuple[Type, bool]:
        """The type of ``a[at]``, and whether it is a view."""
        t = a.value.type
        if not isinstance(t, ArrayType):
            raise UntraceableError(f"a {t} cannot be indexed", self.recorder.place())
        check_index(at, t.ndim)
        if not all(is_basic(i) for i in at):
            return self._fancy(a, at), False
        dims: list[Any] = []
        rest = list(self.lengths.resolved(t).shape)
        for i in spelled_out(at, t.ndim):
            if i is None:
                dims.append(1)
            elif isinstance(i, slice):
                whole = rest.pop(0)
                dims.append(sliced(whole, _keys(i)))
                if isinstance(dims[-1], Size) and dims[-1] is not whole and is_plain(i):
                    self.lengths.cut(dims[-1], whole, i)
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
        shape = list(self.lengths.resolved(a.value.type).shape)
        parts, axis = spelled_out(found, len(shape)), 0
        for k, i in enumerate(parts):
            if isinstance(i, slice):
                shape[axis], parts[k] = sliced(shape[axis], _keys(i)), slice(None)
            elif i is not None:
                shape[axis] = 1  # the result does not have this axis, which may be empty
            axis += i is not None
        cut = Value(ArrayType(a.value.type.dtype, tuple(shape)))
        return self.recorder.infer(sample_index, (cut, self.recorder.operand(tuple(parts))), {})

    def _true_places(self, rank: int) -> list[Any]:
        """Symbols for the types of the positions that a mask selects: one array for each axis."""
        t = ArrayType(INT.dtype, (Size(),))
        return [Symbol(Value(t), self.recorder) for _ in range(rank)]


def _keys(s: slice) -> slice:
    """A slice with values in place of their symbols."""
    return slice(*(x.value if type(x) is Symbol else x for x in (s.start, s.stop, s.step)))
