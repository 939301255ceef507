"""Copies for names that, on some paths, take over an array made in the iteration, or a view.

``if f(t) < f(best): best = t`` in a loop, where ``t`` is made and written: the name is one array or
another. So is a name whose array a loop inside makes, or a side of a branch. Where that is
unobservable (the previous array and ``t`` have no other name from there on, or are no longer
written), it gets a copy, which is an array like any other. So does what a branch returns that may
be a view of an array made in it, if neither is written from there on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory, memory_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Loop,
    Missing,
    Op,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.rewrite import all_inside, all_used, blocks_of, defined_by, substitute
from fwdad.transforms.reverse.normalize.array_phis import (
    has_no_other_name,
    is_sole,
    sides_of,
    threaded,
    written,
)
from fwdad.transforms.reverse.normalize.phi_stores import store_over
from fwdad.transforms.reverse.structure import Structure


def insert_copies(block: Block) -> None:
    """Let loops carry copies of what branches select, where that is unobservable.

    Rewrites the block, which must be the caller's own.
    """
    for home in list(blocks_of(block)):
        for op in [op for op in home.ops if isinstance(op, Loop)]:
            if any(_changes(op, k) for k in range(len(op.carried))):
                structure = Structure(block, [])
                if _begin_apart(structure, home, op):
                    structure = Structure(block, [])
                chosen = [k for k in _open(op, structure) if _is_chosen(op, k)]
                if chosen:
                    _try(block, home, op, chosen)
                    structure = Structure(block, [])
                _carry_copies(structure, op)
    branches = [(b, op) for b in blocks_of(block) for op in b.ops if isinstance(op, Branch)]
    if branches:
        structure = Structure(block, [])
        changed = [_copy_chosen(structure, home, branch) for home, branch in branches]
        if any(changed):
            structure = Structure(block, [])
        for home, branch in branches:
            _copy_views(structure, home, branch)


def _copy_chosen(structure: Structure, home: Block, op: Branch) -> bool:
    """Let a branch return a copy of an array where its other side makes one.

    In a loop, or where a branch around it returns that array; only if what is copied has no name
    from there on. Returns whether there is any copy.
    """
    in_loop = bool(structure.loops_around(home))
    is_inside = id(home) in structure.holder
    changed = False
    for k, v in enumerate(op.outputs):
        if not is_array(v) or not structure.is_memory(v):
            continue
        if not in_loop and not (is_inside and v in home.results):
            continue
        sides = [(side, side.results[k]) for side in op.blocks()]
        old = [(s, r) for s, r in sides if is_array(r) and structure.home.get(r) is not s]
        if len(old) != 1:
            continue
        ((side, r),) = old
        others = [x for x in values_in(side.results) if x is not r]
        if side.results.count(r) == 1 and _is_gone(structure, home, op, r, others):
            copy = _copied(r, op)
            side.ops.append(copy)
            side.results[k] = copy.outputs[0]
            changed = True
    return changed


def _is_gone(structure: Structure, home: Block, op: Op, r: Value, kept: Iterable[Value]) -> bool:
    """Whether an array of the iteration has no name left after an operation that takes it over.

    ``kept`` are other names that the operation uses, or returns.
    """
    loop = next(iter(structure.loops_around(home)[-1:]), None)
    local, block = structure.memory, structure.top
    own: set[Value] = set()
    if loop is not None:
        local, block = _local(loop, structure), loop.body
        own = {loop.carried[k] for k in _without_other_names(loop, structure)}
    source = memory([r], local)
    if not source <= own | all_inside(block) - set(block.params):
        return False
    names, at = set(kept), op
    for b, holder in structure.chain(home):
        later = b.ops[b.ops.index(at) + 1 :]
        used = {u for inner in later for u in _uses(inner)} | set(values_in(b.results))
        names |= used - {*at.outputs, *(u for inner in later for u in defined_by(inner))}
        if holder is None or holder is loop:
            break
        at = holder
    return not memory(list(names), local) & source


def _copy_views(structure: Structure, home: Block, op: Branch) -> None:
    """Let a branch return copies of what may be views, where that is unobservable."""
    for k, v in enumerate(op.outputs):
        returned = [(side, side.results[k]) for side in op.blocks()]
        views = [
            (side, r)
            for side, r in returned
            if is_array(r) and structure.home.get(r) is side and structure.roots(r) != {r}
        ]
        known = structure.roots(v)
        if views and known & structure.written and not _is_written_from(structure, home, op, known):
            for side, r in views:
                copy = Apply(np.ndarray.copy, (r, "K"), outputs=(Value(r.type, r.name),))
                copy.location = op.location
                side.ops.append(copy)
                side.results[k] = copy.outputs[0]


def _carry_copies(structure: Structure, op: Loop) -> None:
    """Let a loop carry copies of arrays of which an iteration leaves nothing else that is written.

    What it begins with must have no other name.
    """
    local = _local(op, structure)
    inside = all_inside(op.body) - set(op.body.params)
    for k in _open(op, structure):
        first, r = op.initial[k], op.body.results[k]
        if not isinstance(first, Missing) and not (
            isinstance(first, Value)
            and is_sole(first, structure)
            and has_no_other_name(op, first, structure)
        ):
            continue
        source, others = memory([r], local), [x for x in op.body.results if x is not r]
        is_last = source <= inside | {op.carried[k]} and op.body.results.count(r) == 1
        is_last = is_last and not source & memory(others, local)
        if is_last or not _is_written_from(structure, op.body, None, memory([r], structure.memory)):
            if not _copy_on_both_sides(structure, op.body, r):
                copy = _copied(r, op)
                op.body.ops.append(copy)
                op.body.results[k] = copy.outputs[0]


def _copy_on_both_sides(structure: Structure, home: Block, v: Value) -> bool:
    """Let a branch return copies of arrays that were there before; whether that is unobservable.

    So that none of them, one written and one not, is the other's companion.
    """
    branch = structure.definition.get(v)
    if not isinstance(branch, Branch) or branch not in home.ops:
        return False
    if sides_of(v, structure) is None:
        return False
    if _is_written_from(structure, home, branch, structure.roots(v)):
        return False
    k = branch.outputs.index(v)
    for side in branch.blocks():
        copy = _copied(side.results[k], branch)
        side.ops.append(copy)
        side.results[k] = copy.outputs[0]
    return True


def _changes(op: Loop, k: int) -> bool:
    """Whether a loop carries an array, and returns another one than its initial value."""
    return is_array(op.carried[k]) and op.body.results[k] is not op.carried[k]


def _open(op: Loop, structure: Structure) -> list[int]:
    """The positions of arrays that may be made in the loop, and are not distinguished."""
    inside = all_inside(op.body)
    positions = written(op, structure) - threaded(op, structure)
    return [k for k in sorted(positions) if structure.roots(op.carried[k]) & inside]


def _begin_apart(structure: Structure, home: Block, op: Loop) -> bool:
    """Start with copies of arrays that are never written but have other names; whether any are."""
    changed = False
    for k in _open(op, structure):
        first = op.initial[k]
        if not isinstance(first, Value):
            continue
        if _is_left(structure, home, op, first) or not _is_written_through(structure, home, op, k):
            copy = _copied(first, op)
            home.ops.insert(home.ops.index(op), copy)
            op.initial[k] = copy.outputs[0]
            changed = True
    return changed


def _is_left(structure: Structure, home: Block, op: Loop, first: Value) -> bool:
    """Whether what a loop begins with is not made in its block, and has no name after it."""
    made_here = structure.home.get(first) is home and first not in home.params
    if op.initial.count(first) > 1 or made_here:
        return False
    local, known = _local(op, structure), structure.roots(first)
    used = {u for block in op.blocks() for inner in walk(block) for u in _uses(inner)}
    used.update(x for x in values_in([op.initial, op.body.results]) if x is not first)
    kept = [x for x in used if memory([x], local) & known]
    return _is_gone(structure, home, op, first, kept)


def _is_written_through(structure: Structure, home: Block, op: Loop, k: int) -> bool:
    """Whether what a loop begins with is written in it, or from there on, by any name."""
    known = structure.roots(op.initial[k])
    if not known & structure.written:
        return False
    if _written(op.body.ops, _local(op, structure)) & (known | _names(structure, op, known)):
        return True
    return _is_written_from(structure, home, op, known)


def _is_chosen(op: Loop, k: int) -> bool:
    """Whether a carried value is an output of a branch in the loop's body."""
    returned = {v for inner in op.body.ops if isinstance(inner, Branch) for v in inner.outputs}
    return op.body.results[k] in returned


def _try(block: Block, home: Block, op: Loop, places: list[int]) -> None:
    """Insert the copies, and remove them again if they would be observable."""
    old = {k: op.body.results[k] for k in places}
    copies = {k: _copied(v, op) for k, v in old.items()}
    substitute(op.body, {old[k]: copies[k].outputs[0] for k in places})
    for k in places:
        branch = next(b for b in op.body.ops if old[k] in b.outputs)
        op.body.ops.insert(op.body.ops.index(branch) + 1, copies[k])
    firsts = {k: op.initial[k] for k in places}
    begun = {k: _copied(v, op) for k, v in firsts.items() if isinstance(v, Value)}
    structure = Structure(block, [])
    if _is_moved(structure, op, copies):
        _store(structure, home, op, {k: (old[k], copy) for k, copy in copies.items()}, begun)
        return
    for k, copy in begun.items():
        home.ops.insert(home.ops.index(op), copy)
        op.initial[k] = copy.outputs[0]
    if _is_only_read(Structure(block, []), op, copies, firsts):
        return
    for k, copy in begun.items():
        home.ops.remove(copy)
        op.initial[k] = firsts[k]
    op.body.ops = [inner for inner in op.body.ops if inner not in copies.values()]
    substitute(op.body, {copies[k].outputs[0]: old[k] for k in places})


def _store(
    structure: Structure,
    home: Block,
    op: Loop,
    copies: dict[int, tuple[Value, Apply]],
    begun: dict[int, Apply],
) -> None:
    """Remove copies again where the array can be stored into the previous one."""
    own, local = threaded(op, structure), _local(op, structure)
    sources = {k: memory([chosen], local) for k, (chosen, _) in copies.items()}
    for k, (chosen, copy) in copies.items():
        others = set().union(*(sources[j] for j in sources if j != k))
        if sources[k] & others:  # what another name takes over would be gone
            continue
        if k in begun and store_over(op, k, chosen, local):
            op.body.ops.remove(copy)
            substitute(op.body, {copy.outputs[0]: op.carried[k]})
            if k not in own:  # it is not written so far, and may have other names
                home.ops.insert(home.ops.index(op), begun[k])
                op.initial[k] = begun[k].outputs[0]


def _copied(v: Value, op: Op) -> Apply:
    copy = Value(v.type, v.name)
    return Apply(np.ndarray.copy, (v,), outputs=(copy,), location=op.location)


def _is_moved(structure: Structure, op: Loop, copies: dict[int, Apply]) -> bool:
    """Whether what is copied has no name from there on."""
    if not copies.keys() <= _without_other_names(op, structure):
        return False
    local = _local(op, structure)
    # what is not written any more, now that there are copies, may have other names
    own = threaded(op, structure) | copies.keys()
    owned = {op.carried[k] for k in own} | all_inside(op.body) - set(op.body.params)
    for copy in copies.values():
        source = memory(copy.args, local)
        if not source <= owned or not _are_apart(op, copy, copies, local):
            return False
        later = op.body.ops[op.body.ops.index(copy) + 1 :]
        used = {v for inner in later if inner not in copies.values() for v in _uses(inner)}
        if memory([*used, *op.body.results], local) & source:
            return False
    return True


def _without_other_names(op: Loop, structure: Structure) -> set[int]:
    """The positions of carried values that have no other name, or are never written."""
    return threaded(op, structure) | set(range(len(op.carried))) - written(op, structure)


def _are_apart(op: Loop, copy: Apply, copies: dict[int, Apply], local: Roots) -> bool:
    """Whether the names that one branch binds are different arrays, whichever side runs."""
    branch = next(b for b in op.body.ops if copy.args[0] in b.outputs)
    others = [c for c in copies.values() if c is not copy]
    for side in branch.blocks():
        returned = dict(zip(branch.outputs, side.results, strict=True))
        own = memory(returned[copy.args[0]], local)
        if any(memory(returned.get(c.args[0], c.args[0]), local) & own for c in others):
            return False
    return True


def _is_only_read(
    structure: Structure,
    op: Loop,
    copies: dict[int, Apply],
    firsts: dict[int, object],
) -> bool:
    """Whether neither the copied arrays nor their copies are written from there on."""
    if not copies.keys() <= _without_other_names(op, structure):
        return False
    begun = memory(list(firsts.values()), structure.memory)
    if _written(op.body.ops, _local(op, structure)) & (begun | _names(structure, op, begun)):
        return False
    for copy in copies.values():
        known = memory([*copy.args, *copy.outputs], structure.memory) | begun
        if _is_written_from(structure, op.body, copy, known):
            return False
    return True


def _is_written_from(structure: Structure, home: Block, at: Op | None, known: set[Value]) -> bool:
    """Whether memory is written after an operation, or in another iteration of a loop around it.

    ``at`` is None for the end of the block ``home``.
    """
    for b, holder in structure.chain(home):
        later = b.ops[b.ops.index(at) + 1 :] if at is not None else []
        if _written(later, structure.memory) & known:
            return True
        if isinstance(holder, Loop):
            inside = all_inside(holder.body)
            carried = memory([*holder.carried, *holder.body.results], structure.memory)
            again, known = known & inside & carried, known - inside
            ops = [*b.ops, *(holder.test.ops if holder.test is not None else [])]
            # what an iteration made is reached from the next by what is carried
            names = _names(structure, holder, again)
            if _written(ops, structure.memory) & known or (
                names and _written(ops, _local(holder, structure)) & names
            ):
                return True
            known |= again
        at = holder
    return False


def _local(op: Loop, structure: Structure) -> Roots:
    """The memory that values of one iteration may be; carried arrays have memory of their own."""
    inside = all_inside(op.body)
    return memory_of(
        Program("", op.body), {v: r for v, r in structure.memory.items() if v not in inside}
    )


def _names(structure: Structure, op: Loop, known: set[Value]) -> set[Value]:
    """The carried arrays that may be some memory."""
    return {p for p in op.carried if structure.roots(p) & known}


def _written(ops: Iterable[Op], roots: Roots) -> set[Value]:
    return {r for op in ops for inner in _and_inside(op) for r in memory(inner.writes(), roots)}


def _and_inside(op: Op) -> Iterator[Op]:
    yield op
    for block in op.blocks():
        yield from walk(block)


def _uses(op: Op) -> set[Value]:
    return all_used(op) | {v for block in op.blocks() for v in values_in(block.results)}
