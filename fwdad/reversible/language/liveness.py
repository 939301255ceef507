"""Liveness: which updates need no undoing in the reverse pass, since nothing reads them there."""

from __future__ import annotations

from fwdad.reversible.language.places import index_reads, reads
from fwdad.reversible.language.program import (
    Block,
    For,
    Free,
    Statement,
    Update,
    While,
    children,
    read_expressions,
    root_of,
    walk,
    written_places,
)


def unread_updates(block: Block, own: set[str], names: set[str]) -> set[Statement]:
    """The updates of a block's own variables that precede every read of the variable.

    The block runs forwards, then backwards, and its variables are dead afterwards: in the reverse
    pass, nothing reads the updated values after one of these updates.
    """
    unread: set[Statement] = set()
    _mark(block, set(), own, names, unread)
    return unread


def _mark(
    block: Block, before: set[str], own: set[str], names: set[str], unread: set[Statement]
) -> set[str]:
    for s in block:
        if isinstance(s, Update) and s.op not in "*/" and root_of(s.place) in own - before:
            unread.add(s)  # the reverse pass of a product needs its factors
        inside = before | all_reads([s], names) if isinstance(s, (For, While)) else before
        after = _own_reads(s, names)
        for inner in children(s):
            inside = _mark(inner, inside | after, own, names, unread)
        before = before | all_reads([s], names)
    return before


def all_reads(block: Block, names: set[str]) -> set[str]:
    """The variables whose values a block needs, its own among them."""
    return {v for s in walk(block) for v in _own_reads(s, names)}


def _own_reads(s: Statement, names: set[str]) -> set[str]:
    """The variables whose values a statement needs, its blocks apart."""
    places = written_places(s)
    expressions = [] if isinstance(s, Free) else read_expressions(s)
    if not isinstance(s, Update):  # which adds to what is there
        expressions = [*expressions, *places]
    variables = {root_of(p) for e in expressions for p in reads(e, names)}
    if isinstance(s, Update) and s.op in "*/":
        variables.add(root_of(s.place))
    return variables | {root_of(i) for p in places for i in index_reads(p, names)}
