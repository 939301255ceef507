"""The log that undoes a reverse pass: old contents of the elements that it restores.

A reverse pass that will run again leaves memory as it found it. Before it restores an element, the
present content and the address go into a log; when it has ended, or was aborted, the log is
replayed backwards. Backends have their own form of :func:`note`.
"""

from __future__ import annotations

import bisect
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.tangents.alike import alike

_ADDRESS = np.dtype(np.int64)


def note(
    addresses: np.ndarray, contents: np.ndarray, height: np.ndarray, a: np.ndarray, *index: Any
) -> None:
    """Append the elements of ``a[index]`` and their addresses to a log.

    The log has room for them; ``height``, of one element, is its present length. The index consists
    of ints, slices, None and Ellipsis.
    """
    spread = index if Ellipsis in index else (*index, Ellipsis)
    view = a[spread]
    if not view.size:
        return
    at: Any = view.__array_interface__["data"][0]
    for n, step in zip(view.shape, view.strides, strict=True):
        at = np.add.outer(at, np.arange(n) * step)
    start = int(height[0])
    end = start + view.size
    addresses[start:end] = np.reshape(at, -1)
    contents[start:end] = view.reshape(-1)
    height[0] = end  # last: what is interrupted before has written nothing yet


class RedoLog:
    """The contents that a reverse pass has overwritten in some arrays.

    The arrays share ``dtype`` and occupy one block of memory each; ``room`` limits how many
    elements are restored.
    """

    def __init__(self, arrays: list[np.ndarray], dtype: np.dtype[Any], room: int) -> None:
        self._flat = [a.reshape(-1, order="A") for a in arrays]
        self._addresses = np.empty(room, _ADDRESS)
        self._contents = np.empty(room, dtype)
        self._height = np.zeros(1, _ADDRESS)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The first arguments of :func:`note`."""
        return self._addresses, self._contents, self._height

    @property
    def noted(self) -> int:
        """How many elements have been restored."""
        return int(self._height[0])

    @property
    def nbytes(self) -> int:
        """The size of the log in bytes."""
        return self._addresses.nbytes + self._contents.nbytes

    def undo(self) -> None:
        """Restore the arrays' contents, latest first, and clear the log."""
        self._write_back()
        self._height[0] = 0

    @contextmanager
    def undone(self) -> Iterator[None]:
        """The arrays as they were before, inside the context; afterwards as they are now."""
        present = [flat.copy() for flat in self._flat]
        try:
            self._write_back()
            yield
        finally:
            for flat, held in zip(self._flat, present, strict=True):
                flat[...] = held

    def _write_back(self) -> None:
        addresses = self._addresses[: self.noted][::-1]
        contents = self._contents[: self.noted][::-1]
        for flat in self._flat:  # of an element that is there twice, the last one stays
            at = addresses - flat.__array_interface__["data"][0]
            inside = (at >= 0) & (at < flat.nbytes)
            flat[at[inside] // flat.itemsize] = contents[inside]


def copied_together(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Copies of arrays that share memory with each other as the originals do."""
    if len(arrays) == 1:
        return [alike(arrays[0])]
    bounds = [_bounds(a) for a in arrays]
    copies: list[Any] = [None] * len(arrays)
    waiting = sorted(range(len(arrays)), key=bounds.__getitem__)
    while waiting:
        first, end = bounds[waiting[0]]
        together: list[int] = []
        while waiting and (not together or bounds[waiting[0]][0] < end):
            together.append(waiting.pop(0))
            end = max(end, bounds[together[-1]][1])
        if len(together) == 1:
            copies[together[0]] = alike(arrays[together[0]])
            continue
        # they are parts of one allocation, like everything between them
        allocation = memoryview((ctypes.c_uint8 * (end - first)).from_address(first))
        memory = np.frombuffer(allocation, np.uint8).copy()
        for k in together:
            start = arrays[k].__array_interface__["data"][0] - first
            a = arrays[k]
            copies[k] = np.ndarray(a.shape, a.dtype, memory, start, a.strides)
    return copies


def sharing(arrays: list[np.ndarray], others: list[np.ndarray]) -> list[bool]:
    """Which of some arrays lie, at least partly, where others do, or between their elements."""
    spans: list[tuple[int, int]] = []
    for first, end in sorted(map(_bounds, others)):
        if spans and first < spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        elif first < end:
            spans.append((first, end))
    ends = [end for _, end in spans]
    found = []
    for first, end in map(_bounds, arrays):
        at = bisect.bisect_right(ends, first)  # the first one that ends behind
        found.append(first < end and at < len(spans) and spans[at][0] < end)
    return found


def _bounds(a: np.ndarray) -> tuple[int, int]:
    """The addresses at which the memory of an array begins and ends."""
    first = end = a.__array_interface__["data"][0]
    if not a.size:
        return first, first
    for n, step in zip(a.shape, a.strides, strict=True):
        if step < 0:
            first += (n - 1) * step
        else:
            end += (n - 1) * step
    return first, end + a.itemsize
