"""``x.flat`` of dual arrays, and of plain arrays with tangents."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from fwdad.eager.duals.array import Array
from fwdad.eager.duals.dual import leak
from fwdad.eager.duals.methods import flatten, put, with_axes
from fwdad.eager.memory import store
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.memory.stale import ARRAYS, check_array
from fwdad.errors import DualLeakError
from fwdad.tangents.plain import plain


class Flat:
    """``x.flat`` of a dual array."""

    def __init__(self, base: Any) -> None:
        self.base = base
        self.index = 0

    @property
    def coords(self) -> tuple[int, ...]:
        """The multi-index of the next element."""
        shape, rest, found = plain(self.base).shape, self.index, []
        for length in shape[:0:-1]:
            rest, i = divmod(rest, length)
            found.append(i)
        return (rest, *found[::-1]) if shape else ()

    def __next__(self) -> Any:
        if self.index >= len(self):
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    def __getitem__(self, index: Any) -> Any:
        return _flat_read(self.base, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        flat_store(self, index, value)

    def __len__(self) -> int:
        return int(plain(self.base).size)

    def __iter__(self) -> Any:
        return self

    def copy(self) -> Any:
        """A flat copy."""
        return flatten(self.base)

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse C code that asks for plain numbers; the dispatcher takes another path."""
        raise DualLeakError(leak("a plain array", self.base))


def flat_load(flat: Any, index: Any) -> Any:
    """``a.flat[index]`` of a plain array."""
    base = flat.base
    if SHADOWED and find_shadow(base) is not None:
        return _flat_read(base, index)
    if ARRAYS:
        check_array(base, _flat_index(base, index) if base.ndim else Ellipsis)
    return flat[index]


def _flat_index(base: Any, index: Any) -> Any:
    shape = plain(base).shape
    if type(index) is tuple and len(index) == 1:
        (index,) = index
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        size = plain(base).size
        if not -size <= index < size:
            message = f"index {index} is out of bounds for size {size}"
            raise IndexError(message)
        return tuple(int(i) for i in np.unravel_index(int(index) % size, shape))
    flat = np.arange(plain(base).size)[index]
    return np.unravel_index(flat, shape)


def _flat_read(base: Any, index: Any) -> Any:
    base = with_axes(base)
    at = _flat_index(base, index)
    return store.load_dual(base, at) if type(base) is Array else store.load(base, at)


def flat_store(flat: Any, index: Any, value: Any) -> None:
    """``a.flat[index] = value``; values are repeated as NumPy does."""
    base = with_axes(flat.base)
    at = _flat_index(base, index)
    if reads_while_it_writes(base, value):
        store_in_order(base, at, value)
        return
    if isinstance(value, (list, tuple)) or np.ndim(plain(value)):
        put(base, np.ravel_multi_index(at, plain(base).shape), value)
        return
    store.store(base, at, value)


def reads_while_it_writes(a: Any, value: Any) -> bool:
    """Whether values share the memory they go to, and are not cast: NumPy casts before storing."""
    if not isinstance(value, np.ndarray) or plain(value).dtype != plain(a).dtype:
        return False
    return np.may_share_memory(plain(a), plain(value))


def store_in_order(base: Any, at: Any, value: Any) -> None:
    """Store element by element, as NumPy's flat assignment does: overlaps are read as changed."""
    shape = plain(value).shape
    indices = [tuple(int(i) for i in row) for row in zip(*(np.ravel(i) for i in at), strict=True)]
    for k, position in enumerate(indices):
        index = tuple(int(i) for i in np.unravel_index(k % plain(value).size, shape))
        item = store.load_dual(value, index) if type(value) is Array else store.load(value, index)
        store.store(base, position, item)


def set_flat(o: Any, value: Any) -> None:
    """``a.flat = v``; NumPy first copies v if a is in Fortran order and v is not."""
    o, places = with_axes(o), np.arange(plain(o).size)
    copied = plain(o).flags.f_contiguous and not getattr(value, "flags", o.flags).f_contiguous
    if not copied and reads_while_it_writes(o, value):
        store_in_order(o, np.unravel_index(places, plain(o).shape), value)
    else:
        put(o, places, value)
