"""The value of a function and its tangents, collected from chunk to chunk."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from fwdad.core.progress import Progress
from fwdad.errors import ChunkMismatchError, NondeterministicFunctionError, type_in_words
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import Structure, unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.vectors import zero_tangent
from fwdad.tangents.zero import NoTangent, Undefined


class Outcome:
    """A function's value, and the tangents of its leaves, each ``(K, *leaf.shape)``."""

    def __init__(
        self, y: Any, aux: Any, leaves: list[Any], structure: Structure, tangents: list[Any]
    ) -> None:
        self.y = y
        self.aux = aux
        self.leaves = leaves
        self.structure = structure
        self.tangents = tangents

    def pushed(self, *, single: bool) -> Any:
        """The tangents in the value's structure; for a single direction, without the lane axis."""
        if not single:
            return self.tangent_tree(self.tangents)
        pairs = zip(self.tangents, self.leaves, strict=True)
        return self.tangent_tree([_only_direction(t, leaf) for t, leaf in pairs])

    def tangent_tree(self, parts: list[Any]) -> Any:
        """One item for each leaf, in the value's structure."""
        return unflatten(self.structure, parts, lambda _: NoTangent)


def _only_direction(lanes: Any, leaf: Any) -> Any:
    """The tangent along a single direction, in the leaf's own type."""
    t = lanes[0]
    return t.item() if type(plain(leaf)) in (float, complex) and hasattr(t, "item") else t


class Sink(Protocol):
    """What takes the tangents of each chunk, so that none of them are kept."""

    def begin(self, values: list[Any], structure: Structure) -> None:
        """Look at the leaves of the value before the first chunk is put."""

    def put(self, k: int, start: int, stop: int, lanes: Any) -> None:
        """Take the tangents of leaf k along directions ``start`` to ``stop``."""

    def finish(self) -> None:
        """Write what could not be written while the function was running."""


class Collector:
    """A collector of the chunks' tangents, which also compares their values.

    It keeps all of them, or those of the ``latest`` chunk; or a ``sink`` takes them.
    """

    def __init__(
        self,
        count: int,
        *,
        latest: bool = False,
        sink: Sink | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.count = count
        self.progress = progress
        if progress is not None:
            progress.begin(count)
        self.sink = sink
        self.latest = latest or sink is not None
        self.values: list[Any] | None = None
        self.structure: Structure | None = None
        self.aux: Any = None
        self.rows: list[list[Any]] = []

    def add(
        self, start: int, stop: int, pairs: list[tuple[Any, Any]], structure: Structure, aux: Any
    ) -> None:
        """Add the result of one run, along directions ``start`` to ``stop``."""
        values = [p for p, _ in pairs]
        if self.values is None:
            self.values, self.structure, self.aux = values, structure, aux
            self.rows = [[] for _ in pairs]
            if self.sink is not None:
                self.sink.begin(values, structure)
        elif len(values) != len(self.values) or not all(
            _is_same(a, b) for a, b in zip(values, self.values, strict=True)
        ):
            message = (
                "the function's value differs between two chunks of tangents: it depends on "
                "something that fwdad cannot reset (a clock, the operating system's entropy, C "
                "code that keeps state). Use chunk=None, which runs it once"
            )
            raise NondeterministicFunctionError(message)
        for k, (row, (p, t)) in enumerate(zip(self.rows, pairs, strict=True)):
            if self.sink is not None:
                self.sink.put(k, start, stop, self._lanes(start, stop, p, t, row))
                continue
            if self.latest:
                row.clear()
            row.append(self._lanes(start, stop, p, t, row))
        if self.progress is not None:
            self.progress.update(stop - start)

    def _lanes(self, start: int, stop: int, p: Any, t: Any, row: list[Any]) -> Any:
        if type(t) is Chunk and stop - start == self.count and type(p) is np.ndarray:
            lanes = t.lanes
            if type(lanes) is np.ndarray and lanes.dtype is p.dtype:  # the commonest
                return lanes
        dtype = leaf_dtype(plain(p))
        if isinstance(t, Undefined):
            t.use()
        n = stop - start
        if isinstance(t, Chunk):
            lanes = t.lanes
        elif dtype.kind == "O":
            lanes = zero_tangent(plain(p), n).lanes
        else:
            lanes = np.zeros((n, *leaf_shape(p)), dtype)
        kind = plain(lanes).dtype
        if kind.kind == "O" != dtype.kind:
            message = (
                f"the tangent of {type_in_words(plain(p))} is a Chunk of objects; expected numbers"
            )
            raise ChunkMismatchError(message)
        if kind.kind == "c" and dtype.kind != "c":
            lanes = lanes.real
        if kind != dtype:
            lanes = lanes.astype(dtype)
        if n == self.count or self.latest or type(lanes) is not np.ndarray:
            return lanes
        # one array for all chunks: memory is that of the result and of one chunk
        whole = next((r.base for r in row if type(r) is np.ndarray), None)
        if whole is None:
            whole = np.empty((self.count, *lanes.shape[1:]), dtype)
        whole[start:stop] = lanes
        return whole[start:stop]

    def outcome(self) -> Outcome:
        """The outcome of all chunks together."""
        values = self.values
        if self.sink is not None:
            self.sink.finish()
        assert values is not None
        assert self.structure is not None
        tangents = [] if self.sink is not None else [self._joined(row) for row in self.rows]
        y = unflatten(self.structure, values)
        return Outcome(y, self.aux, values, self.structure, tangents)

    def _joined(self, row: list[Any]) -> Any:
        if len(row) == 1:
            return owned(row[0])
        if all(type(lanes) is np.ndarray for lanes in row):
            return row[0].base
        return np.concatenate(row)


def owned(lanes: Any) -> Any:
    """Lanes that nobody else holds: seeds, constants and parts of either are copied."""
    if type(lanes) is np.ndarray and (lanes.base is not None or not lanes.flags.writeable):
        return lanes.copy()
    return lanes


def _is_same(a: Any, b: Any) -> bool:
    if type(plain(a)) in OWN:  # only their class knows whether two of them are equal
        return type(plain(a)) is type(plain(b))
    a, b = np.asarray(plain(a)), np.asarray(plain(b))
    inexact = a.dtype.kind in "fc"
    if np.array_equal(a, b, equal_nan=inexact):
        return True
    if not inexact or a.shape != b.shape:
        return False
    # a derivative inside is summed in another order where another argument carries tangents
    largest = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
    within = _LAST_BITS * np.finfo(a.dtype).eps * largest
    return bool(np.allclose(a, b, rtol=0.0, atol=within, equal_nan=True))


_LAST_BITS = 64  # times the precision: less than a clock advances in a call
