"""Liveness: which updates need no undoing in the reverse pass, since nothing reads them there."""

from __future__ import annotations

import ast

from fwdad.reversible.language.places import index_reads, reads
from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Call,
    Define,
    Flip,
    For,
    If,
    Instruct,
    Require,
    Statement,
    Swap,
    Update,
    While,
    children,
    root_of,
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
    variables: set[str] = set()
    for s in block:
        variables |= _own_reads(s, names)
        for inner in children(s):
            variables |= all_reads(inner, names)
    return variables


def _own_reads(s: Statement, names: set[str]) -> set[str]:
    """The variables whose values a statement needs, its blocks apart."""
    expressions: list[ast.expr] = []
    places = written_places(s)
    if isinstance(s, (Update, Allocate, Define)):
        expressions = [s.value]
    elif isinstance(s, Require):
        expressions = [s.test]
    elif isinstance(s, (If, While)):
        expressions = [s.pre, s.post]
    elif isinstance(s, For):
        expressions = [s.start, s.stop]
    elif isinstance(s, (Call, Instruct, Swap, Flip)):
        expressions = list(s.args) if isinstance(s, Instruct) else places
    variables = {root_of(p) for e in expressions for p in reads(e, names)}
    if isinstance(s, Update) and s.op in "*/":
        variables.add(root_of(s.place))
    return variables | {root_of(i) for p in places for i in index_reads(p, names)}
