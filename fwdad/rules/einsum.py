"""``numpy.einsum``, in both of its forms: linear in each operand."""

from __future__ import annotations

import functools
import string
from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import Space, conjugate, into, transpose
from fwdad.rules.core.define import frule
from fwdad.tangents.symbolic import apply
from fwdad.tangents.zero import ZERO, Undefined, Zero

LETTERS = string.ascii_uppercase + string.ascii_lowercase
"""The letter of each integer label, in NumPy's order."""


def _spelt(operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...], list[int]]:
    """Read both forms of an einsum call: the subscripts as text, the operands, their places."""
    if isinstance(operands[0], str):
        return operands[0], operands[1:], list(range(1, len(operands)))
    last = operands[-1] if len(operands) % 2 else None
    count = len(operands) // 2
    subscripts = ",".join(_letters(operands[2 * k + 1]) for k in range(count))
    if last is not None:
        subscripts += "->" + _letters(last)
    return subscripts, operands[0 : 2 * count : 2], list(range(0, 2 * count, 2))


def _letters(sublist: Any) -> str:
    return "".join("..." if label is Ellipsis else LETTERS[label] for label in sublist)


@frule(
    np.einsum,
    argnums=("operands",),
    signature="(*operands, out=None, dtype=None, order='K', casting='safe', optimize=False)",
)
def einsum_frule(primals: Any, tangents: Any, **options: Any) -> Any:
    """Push tangents through ``numpy.einsum``, which is linear in each operand.

    Both forms are known: ``einsum("ij,jk", a, b)`` and ``einsum(a, [0, 1], b, [1, 2])``. An
    operand that appears twice gives two terms, one for each place.
    """
    subscripts, operands, places = _spelt(primals)
    y = np.einsum(*primals, **options)
    y_dot: Any = ZERO
    for k, place in enumerate(places):
        x_dot = tangents[place]
        if isinstance(x_dot, Undefined):
            x_dot.use()
        if not isinstance(x_dot, Zero):
            others = (*operands[:k], x_dot, *operands[k + 1 :])
            y_dot = y_dot + np.einsum(subscripts, *others, dtype=options["dtype"])
    return y, y_dot


def _explicit(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Write every axis of an einsum with a letter of its own, and the output out."""
    subscripts = subscripts.replace(" ", "")
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    free = [c for c in LETTERS if c not in subscripts]
    dots = max(
        (n - len(t.replace("...", "")) for t, n in zip(terms, ndims, strict=True) if "..." in t),
        default=0,
    )
    if not arrow:
        seen = inputs.replace(",", "").replace(".", "")
        output = "..." if "..." in inputs else ""
        output += "".join(sorted(c for c in set(seen) if seen.count(c) == 1))
    wide = "".join(free[:dots])
    terms = [
        t.replace("...", wide[dots - (n - len(t.replace("...", ""))) :])
        for t, n in zip(terms, ndims, strict=True)
    ]
    return terms, output.replace("...", wide)


def _together(n: Any, m: Any) -> Any:
    """The length of axes of one letter, which are equal, or 1 and stretched."""
    if n == m or not _may_be_one(n):
        return n
    if isinstance(n, int):
        return m
    if isinstance(m, int) and m == 1:
        return n
    return n.joined(m) if _may_be_one(m) else m


def _may_be_one(n: Any) -> bool:
    return bool(n == 1 if isinstance(n, int) else n.may_be_one)


def _einsum_transpose(y_bar: Any, *primals: Any, place: int, **_options: Any) -> Any:
    """Contract y_bar with the conjugates of the other operands.

    A letter that only this operand has was summed: its cotangent is repeated along it. A letter
    that it has twice took a diagonal: its cotangent is put on one. An axis of length one that was
    stretched is summed.
    """
    subscripts, operands, places = _spelt(primals)
    ndims = [x.ndim if isinstance(x, Space) else np.ndim(x) for x in operands]
    terms, output = _explicit(subscripts, ndims)
    k = places.index(place)
    space = operands[k]
    rest: dict[str, Any] = dict(zip(output, y_bar.shape, strict=True))  # without this operand's
    for j, x in enumerate(operands):
        if j != k:
            for letter, n in zip(terms[j], np.shape(x), strict=True):
                rest[letter] = _together(rest.get(letter, 1), n)
    lengths = dict(rest)
    for letter, n in zip(terms[k], space.shape, strict=True):
        lengths[letter] = _together(lengths.get(letter, 1), n)
    others = [(terms[j], conjugate(x)) for j, x in enumerate(operands) if j != k]
    used = "".join(terms) + output
    free = iter(c for c in LETTERS if c not in used)
    wanted = ""
    for letter in terms[k]:
        if letter in wanted:
            twin = next(free)
            others.append((letter + twin, apply(np.eye, lengths[letter])))
            wanted += twin
        else:
            wanted += letter
            if letter not in rest or rest[letter] != lengths[letter]:
                others.append((letter, apply(np.ones, lengths[letter])))
    spec = ",".join([output, *(term for term, _ in others)]) + "->" + wanted
    return into(space, np.einsum(spec, y_bar, *(x for _, x in others)))


for _place in range(64):  # NumPy takes up to 32 operands, each with its labels
    transpose(np.einsum, argnum=_place)(functools.partial(_einsum_transpose, place=_place))
