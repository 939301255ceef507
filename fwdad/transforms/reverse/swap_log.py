"""Reverse passes that can be undone: a log keeps the contents that they overwrite.

With the log, the arrays of the forward pass need not be copied for each cotangent. It is no larger
than what was saved; where more was saved than the arrays hold, a copy of the arrays is smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fwdad.ir.analysis.alias import memory_of
from fwdad.ir.clone import Cloner
from fwdad.ir.ops import Apply, Block, Loop, Op, Program, Store, Value, is_array
from fwdad.ir.primitives.stacks import pop
from fwdad.ir.primitives.undo_log import note
from fwdad.ir.rewrite import blocks_of, defined_by
from fwdad.ir.types import ArrayType, Size

_PARTS = ("addresses", "contents", "height")


class Log(NamedTuple):
    """The log of the arrays of one dtype.

    ``arrays`` are the positions of the parameters that it covers; ``room`` has, for each restoring
    store, the position of the parameter with the saved elements, or None for a single number.
    """

    dtype: np.dtype[Any]
    arrays: list[int]
    room: list[Any]


class Swapping(NamedTuple):
    """A reverse pass that logs what it overwrites, with a log for each dtype.

    The last parameters of the program are the parts of each log.
    """

    program: Program
    logs: list[Log]


def swapping(program: Program, written: list[int]) -> Swapping | None:
    """A reverse pass with logs; None where it may write more elements than were saved.

    ``written`` are the positions of the parameters that it writes, and that must be left unchanged.
    """
    block = Cloner({}).block(program.block)
    logged = Program(program.name, block, program.filename, list(program.written))
    logged.quiet, logged.parallel = program.quiet, program.parallel
    logged.together = list(program.together)
    stores = _stores(logged, {block.params[k] for k in written})
    if stores is None:
        return None
    positions = {p: k for k, p in enumerate(block.params)}
    logs: dict[Any, Log] = {}
    for k in written:
        dtype = block.params[k].type.dtype
        logs.setdefault(dtype, Log(dtype, [], [])).arrays.append(k)
    for op, source in stores.items():
        logs[op.array.type.dtype].room.append(positions.get(source) if source else None)
    parts = {dtype: _parts(dtype) for dtype in logs}
    noting: dict[Op, Apply] = {op: _noting(op, parts) for op in stores}
    for inner in blocks_of(block):
        inner.ops = [x for op in inner.ops for x in (noting.get(op), op) if x is not None]
    for own in parts.values():
        block.params += own
        logged.written += [True] * len(own)
    return Swapping(logged, list(logs.values()))


_UNKNOWN = object()


def _stores(program: Program, kept: set[Value]) -> dict[Store, Any] | None:
    """The stores into some parameters, each with the source of the elements that it restores.

    None where anything else writes into them, or more may be restored than was saved.
    """
    block, roots = program.block, memory_of(program)
    dtypes: dict[Value, set[Any]] = {}
    for p in kept:
        for root in roots[p]:
            dtypes.setdefault(root, set()).add(p.type.dtype)
    homes = {v: (op, around) for op, around in _walk(block) for v in defined_by(op)}
    origins: dict[Store, Any] = {}
    for op, around in _walk(block):
        owners = {root for v in op.writes() for root in roots.get(v, {v})} & dtypes.keys()
        if not owners:
            continue
        if not isinstance(op, Store) or not _is_plain(op):
            return None
        if any(dtypes[root] != {op.array.type.dtype} for root in owners):
            return None  # two logs would have to be read together
        origins[op] = _origin(op, around, homes, block.params)
    return None if _UNKNOWN in origins.values() else origins


def _origin(
    op: Store,
    around: Loop | None,
    homes: dict[Value, tuple[Op, Loop | None]],
    params: list[Value],
) -> Any:
    """The stack or array parameter that has what a store restores; None for a single number.

    ``_UNKNOWN`` unless each element is restored at most once.
    """
    value = op.value
    if not is_array(value) and not _is_element(op):
        return _UNKNOWN
    source, home = homes.get(value, (None, None)) if isinstance(value, Value) else (None, None)
    if isinstance(source, Apply) and source.function is pop and home is around:
        return source.args[0] if source.args[0] in params else _UNKNOWN
    if around is not None or (is_array(value) and value not in params):
        return _UNKNOWN
    return value if is_array(value) else None


def _walk(block: Block, around: Loop | None = None) -> Iterator[tuple[Op, Loop | None]]:
    """Every operation, and the innermost loop that it is in."""
    for op in block.ops:
        yield op, around
        for inner in op.blocks():
            yield from _walk(inner, op if isinstance(op, Loop) else around)


def _is_plain(op: Store) -> bool:
    """Whether an index consists of ints, slices, None and Ellipsis."""
    return not any(
        is_array(i) or isinstance(i, (list, np.ndarray, bool, np.bool_))
        or (isinstance(i, Value) and i.type.dtype.kind == "b")
        for i in op.index
    )  # fmt: skip


def _is_element(op: Store) -> bool:
    ints = [i for i in op.index if i is not None and i is not Ellipsis and type(i) is not slice]
    return len(ints) == op.array.type.ndim


def _parts(dtype: Any) -> list[Value]:
    """The parameters that are the parts of a log."""
    ints = np.dtype(np.int64)
    types = [ArrayType(d, (Size(),)) for d in (ints, dtype, ints)]
    return [Value(t, name) for t, name in zip(types, _PARTS, strict=True)]


def _noting(op: Store, parts: dict[Any, list[Value]]) -> Apply:
    given = (*parts[op.array.type.dtype], op.array, *op.index)
    return Apply(note, given, mutated=(0, 1, 2), location=op.location)
