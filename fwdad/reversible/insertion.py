"""``insert`` and ``delete``: reversible programs that move numbers into and out of dictionaries."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from fwdad.reversible.function import reversible
from fwdad.reversible.language import nodes
from fwdad.reversible.language.call_parser import register_contract
from fwdad.reversible.language.container_statements import (
    contains_key,
    require_room,
    require_zero,
)
from fwdad.reversible.language.keywords import ancilla, compute, copy_out, unchecked
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import Block, Require
from fwdad.reversible.language.syntax import placed_at


@reversible
def insert(d, key, v):  # type: ignore[no-untyped-def]
    """Move a number into a :class:`Dict`: ``insert(d, key, v)`` leaves zero in v.

    ``delete`` is its inverse: ``delete(d, key, v)`` moves the number under the key to v.

    Parameters
    ----------
    d : Dict
        The dictionary.
    key : int
        The key; only read.
    v : number
        A place that can be updated.

    Raises
    ------
    InvertibilityError
        When the program runs: if the key is there already; of ``delete``, if it is not there, or v
        is not zero.
    CapacityError
        When the program runs, if there is no room.
    """
    with unchecked(), compute():
        at = ancilla(0)
        at += np.sum(d.keys[: d.count] < key)
        with copy_out():
            for k in range(d.count, at, -1):
                d.keys[k], d.keys[k - 1] = d.keys[k - 1], d.keys[k]
                d.values[k], d.values[k - 1] = d.values[k - 1], d.values[k]
            d.keys[at] += key
            d.values[at], v = v, d.values[at]
            d.count += 1


delete = ~insert
"""Move the number under a key of a :class:`Dict` to a place that is zero: ``delete(d, key, v)``."""


def _contract(
    node: ast.AST, d: ast.expr, fields: Callable[[str], ast.expr], args: list[ast.expr]
) -> tuple[Block, Block]:
    """What must hold before an insertion and after it; a deletion checks them in reverse order.

    ``fields`` returns the expression of a field of the dictionary; ``args`` are key and number.
    """
    key, v = args
    test = placed_at(contains_key(fields, key), node)
    what, name = f"the key '{text(key)}'", text(d)
    absent = placed_at(nodes.negated(test), node)
    before: Block = [
        Require(node, absent, what, text(key), key, f"one that '{name}' does not have"),
        require_room(node, f"the dictionary '{name}'", name, fields("count"), fields("values")),
    ]
    after: Block = [
        Require(node, test, what, text(key), key, f"one that '{name}' has"),
        require_zero(node, v),
    ]
    return before, after


register_contract(insert, _contract)
register_contract(delete, _contract, backwards=True)
