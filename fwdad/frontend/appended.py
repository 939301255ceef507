"""A check of arrays on lists that grow while the program runs: they must not be written later.

A list holds the arrays themselves, but a stack holds their content at the time of the push. It acts
as a list as long as nobody can tell the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.ir.analysis.alias import Roots, memory_here, memory_of
from fwdad.ir.ops import Apply, Block, Loop, Op, Operand, Program, Store, Value, is_array
from fwdad.ir.primitives.stacks import push
from fwdad.ir.symbol import Symbol

_WRITTEN = (
    "an array is appended to a list that grows at run time, and written afterwards: append a "
    "copy of it (`.copy()`)"
)
_READ = (
    "an array that is an item of a list that grows at run time is written to: make an array of "
    "the list, and write into that"
)


@dataclass(frozen=True)
class _Place:
    """The position of an operation: its number, and the loops around it."""

    number: int
    loops: frozenset[Loop]


def check_items(block: Block, lists: list[Any]) -> None:
    """Raise if an array is written that is an item of one of ``lists`` (those kept in arrays)."""
    into = {held.into for held in lists}
    rows = {v: ops for held in lists for v, ops in held.read()}
    if not into:
        return
    places = dict(_places(block, frozenset()))
    pushed = [(op, x) for op in places for x in _put(op, into) if is_array(x)]
    begun = [held for held in lists if held.made in places]
    pushed += [(held.made, x.value) for held in begun for x in held.head if _is_memory(x)]
    if not pushed and not rows:
        return
    roots, here = memory_of(Program("", block)), memory_here(block)
    once = [(op, place) for op, place in places.items() if not isinstance(op, Loop)]
    made = {v: place for op, place in once for v in op.outputs}
    writes = [(op, v) for op in places for v in op.writes() if v not in into or v in rows]
    for op, v in writes:
        roots_of_value = roots.get(v, {v})
        for array, own in rows.items():
            if array in roots_of_value and op not in own:
                raise UntraceableError(_READ, op.location)
        for put, item in pushed:
            shared = roots_of_value & (roots.get(item, set()) | {item})
            if shared and not _comes_before(op, v, put, shared, places, made, roots, here):
                raise UntraceableError(_WRITTEN, put.location)


def _put(op: Op, into: set[Value]) -> list[Operand]:
    """What an operation puts into the memory of a list."""
    if isinstance(op, Apply) and op.function is push and op.args[0] in into:
        return [op.args[1]]
    return [op.value] if isinstance(op, Store) and op.array in into else []


def _is_memory(x: Any) -> bool:
    return type(x) is Symbol and x.is_array


def _places(block: Block, loops: frozenset[Loop], count: Any = None) -> Iterator[tuple[Op, _Place]]:
    """Every operation with its position, in program order."""
    count = [0] if count is None else count
    for op in block.ops:
        count[0] += 1
        yield op, _Place(count[0], loops)
        inside = loops | {op} if isinstance(op, Loop) else loops
        for inner in op.blocks():
            yield from _places(inner, inside, count)


def _comes_before(
    op: Op,
    v: Value,
    pushed: Op,
    shared: set[Value],
    places: dict[Op, _Place],
    made: dict[Value, _Place],
    roots: Roots,
    here: Roots,
) -> bool:
    """Whether each array that a write may mean is put on the list only later.

    It is if nothing is put on the list between the array's allocation and the write. What a loop
    carries may be an array of an earlier iteration.
    """
    direct = here.get(v, {v})
    carried = [r for r in direct if r not in made]
    if any(roots.get(r, {r}) & shared for r in carried):
        return False
    write, at = places[op], places[pushed]
    for r in direct & shared:
        allocated = made[r]
        if allocated.number < at.number < write.number:
            return False
        if not write.loops & at.loops <= allocated.loops:
            return False
    return True
