"""One backward run over a record: the cotangents of nodes and of memory, and operations on them.

A single cotangent consists of plain numbers and arrays, N of them are arrays ``(N, *shape)``.
Inside an enclosing derivative they may be duals, and all writes go through the builder's stores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.eager.calls.creation import as_array
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import wrap
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.hooks.subscripts import getitem, setitem
from fwdad.eager.lifting.rule_bodies import lifted
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager_reverse.memory import Memory, Saved, View
from fwdad.eager_reverse.operations import Terms
from fwdad.eager_reverse.tangent import Node
from fwdad.errors import ChunkMismatchError
from fwdad.rules.core.adjoints import TAKE_ARRAYS
from fwdad.rules.core.recording import Operation
from fwdad.rules.core.registry import function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import lane_last_index
from fwdad.tangents.laws.listing import or_default
from fwdad.tangents.plain import plain
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.straight import with_derivative_of


def _carefully(d: Any, bar: Any) -> Any:
    """A product in which zero cotangents do not meet infinite partials; their tangents do."""
    if not isinstance_dual(bar):
        return scale_lanes(d, bar)
    product = d * bar
    value = np.where(plain(bar) == 0, 0, plain(product))
    return call(with_derivative_of, value, product)


class Sweep:
    """The state of one backward run, with n cotangents; None is a single one, without a lane axis.

    If ``careful``, zero cotangents do not meet infinite partials. That costs a check of each
    product, so it is used only where the result without it is not finite. If ``nested``, cotangents
    or partials may be duals. The arrays of nodes in ``owned`` belong to nobody else, and are added
    to in place.
    """

    def __init__(self, n: int | None, *, careful: bool, nested: bool) -> None:
        self.n = n
        self.lead = () if n is None else (n,)
        self.careful = careful
        self.nested = nested
        self.lift = _lifted if nested else None
        self.bars: dict[Node, Any] = {}
        self.owned: set[Node] = set()  # whose cotangents are arrays that nobody else has
        self.buffers: dict[Memory, np.ndarray] = {}
        self.views: dict[View, np.ndarray] = {}
        self.aside: dict[Saved, np.ndarray] = {}

    # -- nodes

    def take(self, node: Node) -> Any:
        """Remove and return the cotangent of a node; None if there is none."""
        bar = self.bars.pop(node, None)
        if node in self.owned:
            self.owned.discard(node)
            if self.nested:
                return self._explicit(bar)
        return bar

    def spread(self, terms: Terms, bar: Any) -> None:
        """Pass the cotangent of a sum of scaled nodes on to the nodes."""
        if type(bar) is float:
            if bar == 0.0:
                return
            bars = self.bars
            for node, d in terms.items():
                if type(d) is float and not node.shape and node not in self.owned:
                    before = bars.get(node)
                    bars[node] = d * bar if before is None else before + d * bar
                else:
                    self.add(node, self._scaled(node, d, bar))
            return
        for node, d in terms.items():
            self.add(node, self._scaled(node, d, bar))

    def _scaled(self, node: Node, d: Any, bar: Any) -> Any:
        """The share of a node in the cotangent of ``d * node``, with broadcasting undone."""
        if d is not None and not (type(d) is float and d == 1.0):
            if _is_complex(d):
                d = np.conjugate(d)
            bar = _carefully(d, bar) if self.careful else d * bar
        if node.dtype.kind != "c" and _is_complex(bar):
            bar = bar.real
        return self.fit(bar, node.shape)

    def fit(self, bar: Any, shape: tuple[int, ...]) -> Any:
        """Sum a cotangent over the axes along which a value of this shape was broadcast."""
        bar_shape = np.shape(plain(bar))
        target = (*self.lead, *shape)
        if bar_shape == target:
            return bar
        first = len(self.lead)
        extra = len(bar_shape) - len(target)
        if extra < 0:  # a store drops leading axes of length one
            bar_shape = (*bar_shape[:first], *(1,) * -extra, *bar_shape[first:])
            bar, extra = np.reshape(bar, bar_shape), 0
        wide = bar_shape[first + extra :]
        axes = [
            *range(first, first + extra),
            *(first + extra + k for k, n in enumerate(shape) if n == 1 and wide[k] != 1),
        ]
        return self._plain_number(np.sum(bar, axis=tuple(axes)).reshape(target))

    def add(self, node: Node, x_bar: Any) -> None:
        """Add to the cotangent of a node."""
        bars = self.bars
        before = bars.get(node)
        if before is None:
            bars[node] = x_bar
        elif node in self.owned:
            if self.nested:
                bars[node] = self._explicit(before) + x_bar
                self.owned.discard(node)
            else:
                before += x_bar
        else:
            total = bars[node] = before + x_bar
            if type(total) is np.ndarray and total.shape and not self.nested:
                self.owned.add(node)

    def own(self, node: Node) -> np.ndarray:
        """The cotangent of a node as an array that may be written."""
        bar = self.bars.get(node)
        if bar is not None and node in self.owned:
            return bar
        array = np.zeros((*self.lead, *node.shape), node.dtype)
        if bar is not None:
            self._put(array, (Ellipsis,), bar)
        self.bars[node] = array
        self.owned.add(node)
        return array

    # -- what transposes see

    def as_argument(self, bar: Any, operation: Operation) -> Any:
        """A cotangent as a transpose takes it: a chunk, or an array where that suffices."""
        if self.n is not None:
            return Chunk(bar)
        if isinstance_dual(bar):
            return Chunk(as_array(bar)[None])
        bar = np.asarray(bar)
        # a mask selects beside a ZERO, which is no array
        whole = or_default(operation.options.get("where", True), True) is True
        if whole and operation.function in TAKE_ARRAYS and not self.nested:
            return bar
        return Chunk(bar[None])

    def from_argument(self, x_bar: Any, node: Node, function: Any) -> Any:
        """A cotangent as a transpose returned it."""
        if isinstance(x_bar, Chunk):
            x_bar = x_bar.lanes if self.n is not None else x_bar.lanes[0]
        if np.shape(plain(x_bar)) != (*self.lead, *node.shape):
            message = (
                f"the transpose of {function_name(function)} returns a cotangent of shape "
                f"{np.shape(plain(x_bar))}; expected {(*self.lead, *node.shape)}"
            )
            raise ChunkMismatchError(message)
        return self._plain_number(x_bar)

    def _plain_number(self, bar: Any) -> Any:
        """A single number as Python's, which is faster than NumPy's."""
        if self.n is not None or np.shape(plain(bar)) or isinstance_dual(bar):
            return bar
        return bar.item() if hasattr(bar, "item") else bar

    def elements(self, bar: Any) -> Any:
        """The elements of a vector's cotangent."""
        if self.n is None:
            return bar.tolist() if type(bar) is np.ndarray else [bar[k] for k in range(len(bar))]
        return [bar[:, k] for k in range(plain(bar).shape[1])]

    # -- places of arrays

    def add_at(self, target: np.ndarray, index: tuple[Any, ...], bar: Any, unique: bool) -> None:
        """``target[index] += bar``, also where elements are selected twice."""
        target, index, bar = self._lanes_last(target, index, bar)
        if self.nested:
            if unique:
                self._put_raw(target, index, self._get(target, index) + bar)
            else:
                call(np.add.at, target, index, bar)
        elif unique:
            target[index] += bar
        else:
            np.add.at(target, index, bar)

    def read(self, target: np.ndarray, index: tuple[Any, ...]) -> Any:
        """A copy of ``target[index]``."""
        last, index, _ = self._lanes_last(target, index, None)
        value = self._get(last, index)
        if self.n is not None:
            return np.moveaxis(value, -1, 0)
        return self._plain_number(value)

    def clear(self, target: np.ndarray, index: tuple[Any, ...]) -> None:
        """``target[index] = 0``."""
        last, index, _ = self._lanes_last(target, index, None)
        self._put_raw(last, index, 0.0)

    def only_last(self, bar: Any, index: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
        """A store's cotangent, zero where a later element of the same store overwrote the place."""
        positions = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)[index]
        order = np.zeros(int(np.prod(shape, dtype=int)), int)
        order[positions.reshape(-1)] = np.arange(positions.size)
        last = order[positions] == np.arange(positions.size).reshape(positions.shape)
        return np.where(last, bar, 0.0)

    def _put(self, target: np.ndarray, index: tuple[Any, ...], value: Any) -> None:
        self._put_raw(*self._lanes_last(target, index, value))

    def _put_raw(self, target: np.ndarray, index: tuple[Any, ...], value: Any) -> None:
        if self.nested:
            setitem(value, target, index)
        else:
            target[index] = value

    def _get(self, target: np.ndarray, index: tuple[Any, ...]) -> Any:
        if not self.nested:
            value = target[index]
            return value.copy() if isinstance(value, np.ndarray) else value
        return self._explicit(getitem(target, index))

    def _lanes_last(self, target: Any, index: tuple[Any, ...], bar: Any) -> Any:
        """Target, index and bar with the lane axis moved last, so that the index fits."""
        if self.n is None:
            return target, index, bar
        target = np.moveaxis(target, 0, -1)
        if bar is not None:
            bar = np.moveaxis(bar, 0, -1)
        return target, lane_last_index(index), bar

    def _explicit(self, a: Any) -> Any:
        if type(a) is np.ndarray:
            return wrap(a, copy=True) if SHADOWED else a.copy()
        return a

    # -- memory

    def has_memory(self, view: View) -> bool:
        """Whether this memory was read later in the program."""
        return view.memory in self.buffers

    def memory(self, view: View) -> np.ndarray:
        """The cotangent of a view of some memory."""
        cotangent = self.views.get(view)
        if cotangent is None:
            buffer = self._buffer(view.memory)
            cotangent = self.views[view] = np.ndarray(
                (*self.lead, *view.shape),
                view.dtype,
                buffer,
                view.offset,
                (*buffer.strides[:-1], *view.strides),
            )
        return cotangent

    def _buffer(self, memory: Memory) -> np.ndarray:
        buffer = self.buffers.get(memory)
        if buffer is None:
            size = -(-memory.nbytes // 16) * 16
            buffer = self.buffers[memory] = np.zeros((*self.lead, size), np.uint8)
        return buffer

    def flat_memory(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """All elements of some memory as a vector, and the positions of a view's elements in it."""
        item = view.dtype.itemsize
        if any(s % item for s in view.strides) or view.offset % item:
            message = (
                "reverse mode does not support reading a view whose elements overlap in part: "
                "index the array instead"
            )
            raise ChunkMismatchError(message)
        count = view.memory.nbytes // item
        flat = View(view.memory, 0, (count,), (item,), view.dtype)
        positions = np.ndarray(
            view.shape,
            np.intp,
            np.arange(count, dtype=np.intp),
            view.offset // item * 8,
            tuple(s // item * 8 for s in view.strides),
        )
        return self.memory(flat), positions

    def set_aside(self, memory: Memory, saved: Saved) -> None:
        """Start from zeros, and keep the cotangent for later."""
        buffer = self.drop_memory(memory)
        if buffer is not None:
            self.aside[saved] = buffer

    def drop_memory(self, memory: Memory) -> Any:
        """Remove and return the cotangent of some memory; None if there is none."""
        buffer = self.buffers.pop(memory, None)
        if buffer is not None:
            self.views = {v: a for v, a in self.views.items() if v.memory is not memory}
        return buffer

    def rename(self, old: Any, new: Any) -> None:
        """Move the cotangent of a node or memory to the one that replaces it from here on."""
        if isinstance(old, Memory):
            buffer = self.drop_memory(old)
            if buffer is not None:
                self.buffers[new] = buffer
            return
        bar = self.bars.pop(old, None)
        if bar is not None:
            self.bars[new] = bar
        if old in self.owned:
            self.owned.discard(old)
            self.owned.add(new)

    def join_saved(self, saved: Saved) -> None:
        """Add the cotangent that was set aside."""
        buffer = self.aside.pop(saved, None)
        if buffer is None:
            return
        memory = saved.memory
        part = self._elements_of(memory, buffer)
        flat = View(memory, 0, part.shape[-1:], part.strides[-1:], memory.dtype)
        self.add_at(self.memory(flat), (Ellipsis,), self._explicit(part), True)

    def _elements_of(self, memory: Memory, buffer: np.ndarray) -> np.ndarray:
        item = memory.dtype.itemsize
        shape, strides = (*self.lead, memory.nbytes // item), (*buffer.strides[:-1], item)
        return np.ndarray(shape, memory.dtype, buffer, 0, strides)

    def remaining(self) -> dict[Any, Any]:
        """The cotangents of nodes and memory that no operation has taken yet."""
        memories = {m: self._elements_of(m, buffer) for m, buffer in self.buffers.items()}
        return {**self.bars, **memories}


def _is_complex(value: Any) -> bool:
    t = type(value)
    if t is float:
        return False
    value = plain(value)
    dtype = getattr(value, "dtype", None)
    return isinstance(value, complex) if dtype is None else dtype.kind == "c"


def _lifted(_function: Any, transpose: Any) -> Any:
    """The transpose of a function, lifted."""
    return lifted(transpose)
