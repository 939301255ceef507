"""How operators are written, and how tightly they bind."""

from __future__ import annotations

import operator
from collections.abc import Sequence

INFIX = {
    operator.or_: ("|", 1), operator.xor: ("^", 2), operator.and_: ("&", 3),
    operator.lshift: ("<<", 4), operator.rshift: (">>", 4),
    operator.add: ("+", 5), operator.sub: ("-", 5),
    operator.mul: ("*", 6), operator.truediv: ("/", 6), operator.floordiv: ("//", 6),
    operator.mod: ("%", 6), operator.matmul: ("@", 6), operator.pow: ("**", 8),
    operator.lt: ("<", 0), operator.le: ("<=", 0), operator.gt: (">", 0), operator.ge: (">=", 0),
    operator.eq: ("==", 0), operator.ne: ("!=", 0),
}  # fmt: skip
PREFIX = {operator.neg: ("-", 7), operator.pos: ("+", 7), operator.invert: ("~", 7),
           operator.not_: ("not ", -1)}  # fmt: skip
ATOM, LOWEST = 20, -2  # a name or a call; where anything may stand


def words(text: str) -> set[str]:
    """The words of a line of source."""
    found, word = set(), ""
    for c in text + " ":
        if c.isalnum() or c == "_":
            word += c
        elif word:
            found.add(word)
            word = ""
    return found


def tuple_text(items: Sequence[str]) -> str:
    """Sources as a tuple."""
    return f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"
