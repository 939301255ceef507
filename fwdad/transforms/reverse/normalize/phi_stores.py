"""Stores for names that take over an array on some paths: into the previous array.

``if better: best = t`` and ``else: best[k] = …`` in a loop. Where neither the array that was
``best`` nor ``t`` has another name, and both have one shape, ``best[:] = t`` is as good. The name
then is one array, and what is overwritten is saved on the path that overwrites it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fwdad.ir.analysis.alias import Roots, memory
from fwdad.ir.ops import Block, Branch, Loop, Store, Value, values_in
from fwdad.ir.rewrite import all_inside, all_used, defined_by, substitute


class Choice(NamedTuple):
    """What a branch returns on one of its sides: the side, and the position in its results."""

    side: Block
    at: int
    owner: Branch
    home: Block


def store_over(op: Loop, k: int, chosen: Value, local: Roots) -> bool:
    """Let a loop carry one array, into which others are stored; return whether that is possible.

    ``chosen`` is the output of a branch in the body. After that branch nothing may use the k-th
    carried array, or what replaces it, by another name. ``local`` is the memory that the values of
    one iteration may be.
    """
    p = op.carried[k]
    choices = list(_choices(op.body, chosen))
    new = [c for c in choices if c.side.results[c.at] is not p and not _is_nested(c)]
    if len(new) == sum(not _is_nested(c) for c in choices):  # another array in each iteration
        return False
    source = memory([chosen], local)
    inside = all_inside(op.body) - set(op.body.params)
    for choice in new:
        t = choice.side.results[choice.at]
        if not isinstance(t, Value) or t.type != p.type or not memory([t], local) <= inside:
            return False
    for choice in choices:
        if choice.home is not op.body and _is_used_behind(choice, source, local):
            return False
    for choice in new:
        store = Store(p, (Ellipsis,), choice.side.results[choice.at], location=op.location)
        choice.side.ops.append(store)
    for owner, at, home in {id(c.owner): (c.owner, c.at, c.home) for c in choices}.values():
        substitute(home, {owner.outputs[at]: p})
        owner.outputs = (*owner.outputs[:at], *owner.outputs[at + 1 :])
        for side in owner.blocks():
            del side.results[at]
    return True


def _choices(home: Block, v: Value) -> Iterator[Choice]:
    """The sides of the branch that returns a value, and of nested branches that it comes from."""
    owner = next(b for b in home.ops if isinstance(b, Branch) and v in b.outputs)
    at = owner.outputs.index(v)
    for side in owner.blocks():
        choice = Choice(side, at, owner, home)
        yield choice
        if _is_nested(choice):
            yield from _choices(side, side.results[at])


def _is_nested(choice: Choice) -> bool:
    """Whether what a side returns is the output of a branch inside it."""
    r = choice.side.results[choice.at]
    return any(isinstance(b, Branch) and r in b.outputs for b in choice.side.ops)


def _is_used_behind(choice: Choice, source: set[Value], local: Roots) -> bool:
    """Whether a side uses memory after a branch in it, other than by that branch's output."""
    v = choice.owner.outputs[choice.at]
    later = choice.home.ops[choice.home.ops.index(choice.owner) + 1 :]
    used = {u for inner in later for u in all_used(inner)} | set(values_in(choice.home.results))
    used -= {v, *(u for inner in later for u in defined_by(inner))}
    return bool(memory(list(used), local) & source)


__all__ = ["store_over"]
