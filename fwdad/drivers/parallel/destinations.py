"""Where a Jacobian goes that need not fit into memory: a memory map, or Zarr's chunks."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from fwdad.errors import OutError
from fwdad.evaluation.out_arrays import check_fits, check_memory

_ONE = "out= is one matrix: let f take and return one array (fwdad.ravel makes one)"


def is_zarr(x: Any) -> bool:
    """Whether a value is an array of Zarr's."""
    return type(x).__module__.partition(".")[0] == "zarr" and hasattr(x, "chunks")


class Matrix:
    """A matrix ``(y.size, x.size)`` that is written block by block: columns, or rows.

    Chunks of Zarr arrays are written by the workers, and no two of them may write one chunk: it is
    read, changed and written back. An array in memory, or in a file, is written in this process.
    """

    def __init__(self, out: Any, *, by_rows: bool) -> None:
        self.out = out
        self.by_rows = by_rows
        self.by_workers = is_zarr(out)

    def check(self, chunk: Any, inputs: list[Any]) -> None:
        """Refuse what cannot be written block by block, or f reads; nothing is written."""
        if not self.by_workers:
            check_memory(self.out, inputs, of="the Jacobian")
            return
        if self.out.ndim != 2:
            raise OutError(
                f"out= is a Zarr array of shape {self.out.shape}: pass one of shape (y.size, "
                "x.size)"
            )
        axis = 0 if self.by_rows else 1
        width = (getattr(self.out, "shards", None) or self.out.chunks)[axis]
        one = width >= self.out.shape[axis] and (chunk is None or chunk == self.out.shape[axis])
        if not one and (not isinstance(chunk, (int, np.integer)) or chunk % width):
            what = "rows" if self.by_rows else "columns"
            raise OutError(
                f"out= is a Zarr array whose chunks, or shards, have {width} {what}, and chunk="
                f"{chunk!r}: two workers would write one of them at once, and lose what the other "
                f"has written. Pass chunk={width}, or a multiple"
            )

    def check_shape(self, y: Any, x: Any) -> None:
        """Refuse an array in memory of another shape, such as that of the transposed Jacobian."""
        if not isinstance(y, (np.ndarray, float, complex, np.generic)):
            raise OutError(_ONE)
        shape = (*np.shape(y), *np.shape(x))
        if self.out.shape not in (shape, (np.size(y), np.size(x))):
            check_fits(self.out, shape, self.out.dtype, of="the Jacobian")

    def view(self, size: int) -> Any:
        """An array in memory as the matrix; ``size`` is that of a block's lane."""
        if self.by_workers:
            shape = self.out.shape
        else:
            total = self.out.size // max(size, 1)
            shape = (total, size) if self.by_rows else (size, total)
        if size != shape[1 if self.by_rows else 0] or math.prod(shape) != self.out.size:
            raise OutError(
                f"out= has the shape {self.out.shape}, and a block has "
                f"{'rows' if self.by_rows else 'columns'} of {size} numbers"
            )
        if self.by_workers:
            return self.out
        found = self.out.reshape(shape)
        if not np.shares_memory(found, self.out):
            raise OutError(
                "out= is a view that is no matrix in its memory: pass one that is C-contiguous"
            )
        return found

    def write(self, start: int, stop: int, lanes: list[Any], total: int) -> None:
        """Write a block of a Jacobian that has ``total`` directions."""
        if len(lanes) != 1:
            raise OutError(_ONE)
        block = lanes[0].reshape(stop - start, -1)
        J = self.view(block.shape[1])
        if J.shape[0 if self.by_rows else 1] != total:
            raise OutError(
                f"out= has the shape {self.out.shape}, and the Jacobian {total} "
                f"{'rows' if self.by_rows else 'columns'}"
            )
        if not np.can_cast(block.dtype, J.dtype, "safe"):
            raise OutError(
                f"out= has dtype {J.dtype}, which cannot hold derivatives of dtype {block.dtype}"
            )
        J[self._at(start, stop)] = block if self.by_rows else block.T

    def digest(self, start: int, stop: int) -> bytes:
        """Of what a block has there now."""
        found = np.asarray(self.out[self._at(start, stop)])
        return hashlib.blake2b(np.ascontiguousarray(found).tobytes(), digest_size=16).digest()

    def _at(self, start: int, stop: int) -> Any:
        return slice(start, stop) if self.by_rows else (slice(None), slice(start, stop))
