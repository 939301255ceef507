"""Names that take over an array on some ways only: it is stored into the one from before.

``if better: best = t`` and ``else: best[k] = …`` in a loop. Where nobody else has a name for the
array that ``best`` meant, or for ``t``, and both have one shape, ``best[:] = t`` is as good. The
name then means one array, and what is overwritten is saved on the way that overwrites it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fwdad.ir.analysis.alias import Roots, memory
from fwdad.ir.ops import Block, Branch, Loop, Store, Value, values_in
from fwdad.ir.rewrite import all_inside, all_used, defined_by, substitute


class Choice(NamedTuple):
    """What one branch returns on one of its sides: the side, and where among its results."""

    side: Block
    at: int
    owner: Branch
    home: Block


def store_over(op: Loop, k: int, chosen: Value, local: Roots) -> bool:
    """Let a loop carry one array, into which others are stored.

    Parameters
    ----------
    op : Loop
        Rewritten, if it can be.
    k : int
        The place among what it carries. Nobody uses what it carries there, nor what replaces it,
        behind the branch that chooses, but by the name that the branch gives.
    chosen : Value
        What the branch in the loop's body returns.
    local : dict
        Which memory the values of one iteration may be.

    Returns
    -------
    bool
        Whether it was rewritten.
    """
    p = op.carried[k]
    found = list(_choices(op.body, chosen))
    new = [c for c in found if c.side.results[c.at] is not p and not _is_nested(c)]
    if len(new) == sum(not _is_nested(c) for c in found):  # another array in each iteration
        return False
    source = memory([chosen], local)
    inside = all_inside(op.body) - set(op.body.params)
    for choice in new:
        t = choice.side.results[choice.at]
        if not isinstance(t, Value) or t.type != p.type or not memory([t], local) <= inside:
            return False
    for choice in found:
        if choice.home is not op.body and _is_used_behind(choice, source, local):
            return False
    for choice in new:
        store = Store(p, (Ellipsis,), choice.side.results[choice.at], location=op.location)
        choice.side.ops.append(store)
    for owner, at, home in {id(c.owner): (c.owner, c.at, c.home) for c in found}.values():
        substitute(home, {owner.outputs[at]: p})
        owner.outputs = (*owner.outputs[:at], *owner.outputs[at + 1 :])
        for side in owner.blocks():
            del side.results[at]
    return True


def _choices(home: Block, v: Value) -> Iterator[Choice]:
    """The sides of the branch in a block that returns a value, and of those that it is from."""
    owner = next(b for b in home.ops if isinstance(b, Branch) and v in b.outputs)
    at = owner.outputs.index(v)
    for side in owner.blocks():
        choice = Choice(side, at, owner, home)
        yield choice
        if _is_nested(choice):
            yield from _choices(side, side.results[at])


def _is_nested(choice: Choice) -> bool:
    """Whether what a side returns is chosen by a branch inside of it."""
    r = choice.side.results[choice.at]
    return any(isinstance(b, Branch) and r in b.outputs for b in choice.side.ops)


def _is_used_behind(choice: Choice, source: set[Value], local: Roots) -> bool:
    """Whether memory is met in a side, behind a branch in it, but by the name that this gives."""
    v = choice.owner.outputs[choice.at]
    later = choice.home.ops[choice.home.ops.index(choice.owner) + 1 :]
    used = {u for inner in later for u in all_used(inner)} | set(values_in(choice.home.results))
    used -= {v, *(u for inner in later for u in defined_by(inner))}
    return bool(memory(list(used), local) & source)


__all__ = ["store_over"]
