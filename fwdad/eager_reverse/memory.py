"""Memory whose loads and stores are recorded.

Where forward mode keeps copies of the owner's bytes for tangents, a recorded run keeps only the
order of loads and stores. Backward, the cotangent of an owner is one buffer of its bytes, and a
view of the array is the same view of that buffer: a load adds to it, a store takes the cotangent of
what it stored and leaves zeros. So each costs what it cost forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from fwdad.eager.run import STATE
from fwdad.eager_reverse.operations import Terms, is_unique, own_index
from fwdad.eager_reverse.tangent import Node, Recorded
from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.lanes import is_basic, lane_last_index


class Memory:
    """The tangents of one piece of memory, in one recorded run."""

    __slots__ = ("__weakref__", "dtype", "nbytes", "record")
    base = None  # it views nothing

    def __init__(self, record: Any, owner: Any, nbytes: int) -> None:
        self.record = record
        self.nbytes = nbytes
        self.dtype: Any = getattr(owner, "dtype", None)

    def view(self, offset: int, shape: Any, strides: Any, dtype: Any) -> View:
        """The tangents of an array that views this memory."""
        return View(self, offset, shape, strides, dtype)

    # -- an inner derivative restores what it wrote

    def copy(self) -> Saved | None:
        """A mark for the present tangents; None in the record's own run, which restores nothing."""
        if STATE.run is not None and STATE.run.tag is self.record.tag:
            return None
        saved = Saved(self)
        self.record.append(saved)
        return saved

    def __setitem__(self, _all: Any, saved: Saved | None) -> None:
        if saved is None or self.record.closed:
            return
        if self.dtype is None or self.dtype.kind not in "fc":
            message = (
                "an inner derivative writes into memory that is not a float array and carries "
                "tangents of reverse mode: pass it a copy"
            )
            raise UnsupportedTypeError(message)
        self.record.append(PutBack(self, saved))


class View:
    """The tangents of one view of a piece of memory."""

    __slots__ = ("dtype", "memory", "offset", "overlaps", "shape", "strides")

    def __init__(self, memory: Memory, offset: int, shape: Any, strides: Any, dtype: Any) -> None:
        self.memory = memory
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.overlaps = _overlaps(shape, strides, dtype.itemsize)

    def read(self) -> Recorded:
        """The tangent of the whole view."""
        node = Node(self.shape, self.dtype)
        record = self.memory.record
        record.append(Load(node, self, None))
        return Recorded.made(record, self.shape, {node: None})

    def load(self, index: tuple[int, ...]) -> Node:
        """The tangent of one element."""
        node = Node((), self.dtype)
        self.memory.record.append(Load(node, self, index))
        return node

    def assign(self, index: tuple[Any, ...], t: Any) -> None:
        """Record the store of a tangent under an index; ``ZERO`` stores zeros."""
        t = self.memory.record.adopt(t)
        terms = t.terms if type(t) is Recorded else None
        self._store(own_index(index), terms, t.shape if terms is not None else ())

    def assign_terms(self, index: tuple[int, ...], terms: Terms) -> None:
        """Record the store of a number's tangent at one element."""
        self._store(index, terms, ())

    def _store(self, index: tuple[Any, ...], terms: Terms | None, shape: Any) -> None:
        if self.overlaps and self._stores_twice(index):
            message = (
                "reverse mode does not support a store into a view whose elements share memory: "
                "store into the array itself"
            )
            raise UnsupportedTypeError(message)
        self.memory.record.append(Store(self, index, terms, shape))

    def _stores_twice(self, index: tuple[Any, ...]) -> bool:
        """Whether the part of an overlapping view at an index overlaps itself, by strides alone."""
        if not is_basic(index):
            return True
        part = as_strided(np.empty(1, self.dtype), self.shape, self.strides)
        target = part[(*index, Ellipsis) if Ellipsis not in index else index]
        return _overlaps(target.shape, target.strides, self.dtype.itemsize)

    def touched(self) -> bool:
        """Whether a tangent was stored in the bytes that this view covers, with whatever dtype."""
        record, memory = self.memory.record, self.memory
        return bool(np.any(self._bytes(stored_bytes(record, [memory])[memory])))

    def mark(self, marks: np.ndarray, index: tuple[Any, ...]) -> None:
        """Set the bytes of the elements at an index to 1."""
        self._bytes(marks)[lane_last_index(index)] = 1

    def _bytes(self, buffer: np.ndarray) -> np.ndarray:
        shape = (*self.shape, self.dtype.itemsize)
        return np.ndarray(shape, np.uint8, buffer, self.offset, (*self.strides, 1))

    def accumulate(self, t: Recorded) -> None:
        """Record the addition of a tangent of the view's shape to the whole view."""
        self.memory.record.append(Accumulation(self, t.terms))


def stored_bytes(record: Any, memories: list[Memory]) -> dict[Memory, np.ndarray]:
    """For each memory, a mask of the bytes in which a tangent was stored."""
    masks = {memory: np.zeros(memory.nbytes, np.uint8) for memory in memories}
    for op in record.all_operations():
        for memory in getattr(op, "stored", ()):  # by a call that is run again
            if memory in masks:
                masks[memory][:] = 1
        if type(op) is Accumulation or (type(op) is Store and op.terms is not None):
            marks = masks.get(op.view.memory)
            if marks is not None:
                op.view.mark(marks, op.index if type(op) is Store else (Ellipsis,))
    return masks


def _parts(terms: Terms | None) -> Iterable[Any]:
    return () if terms is None else [terms, *terms.values()]


def _overlaps(shape: Any, strides: Any, itemsize: int) -> bool:
    """Whether two elements of a view may share memory."""
    if 0 in shape:
        return False
    reach = itemsize
    for step, n in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if step < reach:
            return True
        reach = step * (n - 1) + reach
    return False


class Allocated:
    """The beginning of a memory in a call that is run again."""

    __slots__ = ("node",)

    def __init__(self, memory: Memory) -> None:
        self.node = memory

    def pull(self, sweep: Any) -> None:
        """Drop the cotangent: what was there before had no tangent."""
        sweep.drop_memory(self.node)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: none of size."""
        return ()


class Load:
    """``node = view[index]``; None reads the whole view."""

    __slots__ = ("index", "node", "view")

    def __init__(self, node: Node, view: View, index: tuple[int, ...] | None) -> None:
        self.node = node
        self.view = view
        self.index = index

    def pull(self, sweep: Any) -> None:
        """Add the cotangent to that of the memory."""
        bar = sweep.take(self.node)
        if bar is None:
            return
        view = self.view
        target = sweep.memory(view)
        if self.index is not None:
            sweep.add_at(target, self.index, bar, True)
        elif not view.overlaps:
            sweep.add_at(target, (Ellipsis,), bar, True)
        else:
            flat, positions = sweep.flat_memory(view)
            sweep.add_at(flat, (positions,), bar, False)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: none of size."""
        return ()


class Store:
    """``view[index] = v``; ``terms`` is None where v has no tangent."""

    __slots__ = ("index", "shape", "terms", "view")

    def __init__(self, view: View, index: Any, terms: Terms | None, shape: Any) -> None:
        self.view = view
        self.index = index
        self.terms = terms
        self.shape = shape

    def pull(self, sweep: Any) -> None:
        """Take the cotangent of what was stored, and leave zeros, since the old value was lost."""
        if not sweep.has_memory(self.view):
            return
        target = sweep.memory(self.view)
        unique = is_unique(self.index)
        if self.terms is not None:
            bar = sweep.read(target, self.index)
            if not unique:
                bar = sweep.only_last(bar, self.index, self.view.shape)
            sweep.spread(self.terms, sweep.fit(bar, self.shape))
        sweep.clear(target, self.index)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: the index, the sum and its scalings."""
        return [self.index, *self.index, *_parts(self.terms)]


class Accumulation:
    """``view += v``: the memory's cotangent is also that of v."""

    __slots__ = ("terms", "view")

    def __init__(self, view: View, terms: Terms) -> None:
        self.view = view
        self.terms = terms

    def pull(self, sweep: Any) -> None:
        """Pass the memory's cotangent on to v, and leave it as it is."""
        if sweep.has_memory(self.view):
            sweep.spread(self.terms, sweep.read(sweep.memory(self.view), (Ellipsis,)))

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: the sum and its scalings."""
        return _parts(self.terms)


class Saved:
    """The tangents that a piece of memory had before an inner derivative wrote into it."""

    __slots__ = ("memory",)

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def pull(self, sweep: Any) -> None:
        """Add the cotangent that was set aside for what was restored."""
        sweep.join_saved(self)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: none of size."""
        return ()


class PutBack:
    """The end of an inner derivative: the memory has its earlier tangents again."""

    __slots__ = ("memory", "saved")

    def __init__(self, memory: Memory, saved: Saved) -> None:
        self.memory = memory
        self.saved = saved

    def pull(self, sweep: Any) -> None:
        """Set the cotangent aside until the reverse pass comes to the saved tangents."""
        sweep.set_aside(self.memory, self.saved)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: none of size."""
        return ()


__all__ = ["Memory", "View"]
