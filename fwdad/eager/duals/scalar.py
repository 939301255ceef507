"""``Scalar``: a number whose tangent is a sum of scaled lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.eager.duals.dual import Dual
from fwdad.eager.run import Tag
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import SEVERAL, UNKNOWN, Lanes, hot_lanes, support_lanes
from fwdad.tangents.quiet import quietly
from fwdad.tangents.scaling import MAX_SCALAR_TERMS, scale_lanes


class Scalar(Dual):
    """A dual number: ``terms`` is a sum of scaled lanes, ``{lanes: scaling}``."""

    __slots__ = ("p", "tag", "terms")

    def __init__(self, p: Any, terms: dict[Any, Any], tag: Tag) -> None:
        self.p = p
        self.terms = terms
        self.tag = tag

    @property
    def t(self) -> Chunk:
        """The tangent."""
        if self.tag.record is not None:
            return self.tag.record.tangent((), self.terms)
        chunk = Chunk.of(self.tag.n, (), self.terms)
        if self.tag.eager or self.tag.most == 1:
            for lanes in self.terms:
                if self.tag.eager or lanes.lane == SEVERAL:
                    return Chunk(chunk.lanes)
        return chunk

    def __hash__(self) -> int:
        return hash(self.p)

    def __copy__(self) -> Scalar:
        return self

    def __deepcopy__(self, _memo: Any) -> Scalar:
        return self


Scalar.__name__ = "float"  # how Python's own messages call it: 'float' object is not iterable


def number(p: Any, parts: list[tuple[Any, Any]], tag: Tag) -> Scalar:
    """The dual of a number with its tangent multiplied out: one coefficient for each lane.

    ``parts`` are lanes ``(N,)``, a number if N is 1, each with its scaling (None: one). A lane in
    which all are zero stays zero whatever partial multiplies it. ``tag`` is an eager one; the
    arithmetic on a lane is the same for every N.
    """
    if tag.n > 1:
        return quietly(_number_of_lanes, p, parts, tag)
    total, moves = 0.0, False
    for v, d in parts:
        if v:
            total += float(v) if d is None else float(v) * float(d)
            moves = True
    return Scalar(p, {_ONE if moves else _STILL: total}, tag)


def _number_of_lanes(p: Any, parts: list[tuple[np.ndarray, Any]], tag: Tag) -> Scalar:
    total: Any = None
    moves: Any = None
    for v, d in parts:
        term, moving = v if d is None else scale_lanes(d, v), v != 0
        total = term if total is None else total + term
        moves = moving if moves is None else moves | moving
    return Scalar(p, {support_lanes(moves): total}, tag)


_ONE = hot_lanes(1, 0, np.dtype(np.float64))
_STILL = support_lanes(np.zeros(1, np.bool_))


def fewer(terms: dict[Any, Any], tag: Tag) -> dict[Any, Any]:
    """Shorten a long sum of scaled lanes, or one of both numbers and arrays of numbers.

    Unit directions become one term with an array of coefficients. The arithmetic on each lane is
    unchanged, so the result does not depend on the width of the chunk, as the length does.
    """
    if tag.record is not None:
        return tag.record.fewer(terms) if len(terms) > tag.most else terms
    directions = {lanes: d for lanes, d in terms.items() if lanes.lane != UNKNOWN}
    if len(terms) <= MAX_SCALAR_TERMS and all(lanes.lane != SEVERAL for lanes in directions):
        return terms
    if len(directions) < len(terms) and len(terms) > MAX_SCALAR_TERMS:
        return {Lanes(Chunk.of(tag.n, (), terms).lanes): 1.0}
    if len(directions) < 2:
        return terms
    total = Chunk.of(tag.n, (), directions).lanes
    if type(total) is not np.ndarray:
        return {Lanes(Chunk.of(tag.n, (), terms).lanes): 1.0}
    moves = np.zeros(tag.n, np.bool_)
    for lanes in directions:
        if lanes.lane == SEVERAL:
            moves |= lanes.array != 0
        else:
            moves[lanes.lane] = True
    tag.most = 1
    rest = {lanes: d for lanes, d in terms.items() if lanes.lane == UNKNOWN}
    return {support_lanes(moves): total, **rest}


def same_terms(a: Scalar, b: Scalar) -> bool:
    """Whether the tangents of two numbers are the same sums; coefficients may be arrays."""
    if a.terms.keys() != b.terms.keys():
        return False
    return all(np.array_equal(d, b.terms[lanes]) for lanes, d in a.terms.items())


def parts_of(chunk: Chunk, index: tuple[int, ...]) -> list[tuple[Any, Any]] | None:
    """The ``parts`` of one element for :func:`number`; None if it is not in double precision."""
    at = across_lanes(chunk.n, index)
    parts = []
    for lanes, d in chunk.terms.items():
        v = lanes.array
        if type(v) is not np.ndarray or v.dtype is not DOUBLE or lanes.shape != chunk.shape:
            return None
        if d is not None and type(d) is not float:
            if type(d) is np.ndarray and d.dtype is DOUBLE:
                d = d.item(index) if d.shape else d.item()
            elif not isinstance(d, float):
                return None
        parts.append((v[at], d))
    return parts


def across_lanes(n: int, index: tuple[int, ...]) -> tuple[Any, ...]:
    """The index of one element in all of n lanes; for a single lane that is a number."""
    return (0, *index) if n == 1 else (_ALL, *index)


_ALL = slice(None)


DOUBLE = np.dtype(np.float64)
