"""The subscripts of an einsum: in letters, and with an ellipsis written out."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

_LETTERS = string.ascii_uppercase + string.ascii_lowercase  # by number, in NumPy's order


def in_letters(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts and the operands of a call with lists of numbers in place of subscripts."""
    pairs, result = len(args) // 2, args[-1] if len(args) % 2 else None
    subscripts = ",".join(_spelt(args[2 * k + 1]) for k in range(pairs))
    if result is not None:
        subscripts += "->" + _spelt(result)
    return subscripts, [args[2 * k] for k in range(pairs)]


def _spelt(numbers: Sequence[Any]) -> str:
    return "".join("..." if n is Ellipsis else _LETTERS[n] for n in numbers)


def written_out(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand, and those of the result; an ellipsis becomes free letters."""
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    free = [c for c in string.ascii_letters if c not in subscripts]
    counts = [rank - len(term) + 3 if "..." in term else 0
              for rank, term in zip(ranks, terms, strict=True)]  # fmt: skip
    every = "".join(free[: max(counts)])
    if min(counts) < 0 or len(every) < max(counts):
        raise TypeError("whose subscripts do not match the axes")
    if not arrow:
        letters = inputs.replace(",", "").replace(".", "")
        result = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    terms = [term.replace("...", every[len(every) - n :])
             for term, n in zip(terms, counts, strict=True)]  # fmt: skip
    return terms, result.replace("...", every)
