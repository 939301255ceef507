"""The parts of a data set: items of a list, partitions of Dask's collections, chunks of Zarr's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.drivers.parallel.destinations import is_zarr
from fwdad.errors import UnsupportedTypeError, type_in_words


class ZarrChunk:
    """Some rows of Zarr arrays: who works on them reads them."""

    def __init__(self, arrays: tuple[Any, ...], start: int, stop: int, *, alone: bool) -> None:
        self.arrays = arrays
        self.start = start
        self.stop = stop
        self.alone = alone

    def read(self) -> Any:
        """The rows: an array, or a tuple of them."""
        found = tuple(np.asarray(a[self.start : self.stop]) for a in self.arrays)
        return found[0] if self.alone else found


def is_delayed(x: Any) -> bool:
    """Whether a value is still to be computed by Dask."""
    return hasattr(x, "__dask_graph__") and hasattr(x, "compute")


def resolved(part: Any) -> Any:
    """A part itself."""
    if isinstance(part, ZarrChunk):
        return part.read()
    if is_delayed(part):  # here and now: who works on it is a worker already
        return part.compute(scheduler="synchronous")
    return part


def parts_of(over: Any) -> list[Any]:
    """The parts of a data set, in order."""
    if is_zarr(over):
        return list(_chunks((over,), alone=True))
    if isinstance(over, tuple) and over and all(map(is_zarr, over)):
        return list(_chunks(over, alone=False))
    if hasattr(over, "to_delayed"):
        found = over.to_delayed()
        if isinstance(found, np.ndarray):  # of an array, one for each block
            if found.size != len(found):
                raise UnsupportedTypeError(
                    f"over= is a Dask array of {' × '.join(map(str, found.shape))} blocks: its "
                    "parts are blocks of rows. Write over=x.rechunk({1: -1}), and so for each axis "
                    "but the first"
                )
            found = found.ravel()
        parts = list(found)
    elif isinstance(over, (list, tuple)):
        parts = list(over)
    else:
        raise UnsupportedTypeError(
            f"over= is {type_in_words(over)}: pass a list of parts, a Dask bag or array, or a Zarr "
            "array, or a tuple of Zarr arrays. Of one NumPy array X the parts are "
            "np.array_split(X, 64); of an iterator, which can be read once, list(parts)"
        )
    if not parts:
        raise UnsupportedTypeError("over= is empty: the sum of no parts has no gradient")
    return parts


def _chunks(arrays: tuple[Any, ...], *, alone: bool) -> Iterator[ZarrChunk]:
    first = arrays[0]
    rows, step = first.shape[0], first.chunks[0]
    for a in arrays:
        if a.shape[0] != rows or a.chunks[0] != step:
            raise UnsupportedTypeError(
                f"over=: the Zarr arrays have {rows} rows in chunks of {step} and {a.shape[0]} in "
                f"chunks of {a.chunks[0]}: parts are chunks of rows that belong together"
            )
    if rows == 0:
        raise UnsupportedTypeError("over= is empty: the sum of no parts has no gradient")
    for start in range(0, rows, step):
        yield ZarrChunk(arrays, start, min(start + step, rows), alone=alone)
