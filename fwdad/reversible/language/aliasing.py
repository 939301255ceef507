"""Aliasing: whether two places share memory, or the indices that would have to be equal for it."""

from __future__ import annotations

import ast

from fwdad.reversible.language import nodes
from fwdad.reversible.language.places import PARTS, load, steps, text


def overlap(a: ast.expr, b: ast.expr) -> bool | list[tuple[ast.expr, ast.expr, ast.expr]]:
    """Whether two places share memory.

    True or False if it is known; otherwise the pairs of indices that must all be equal for it, each
    with the length of its axis, an expression. The second index may be a slice with one end.
    """
    root_a, path_a = steps(a)
    root_b, path_b = steps(b)
    if root_a != root_b:
        return False
    conditions: list[tuple[ast.expr, ast.expr, ast.expr]] = []
    for p, q in zip(path_a, path_b, strict=False):
        if isinstance(p, ast.Attribute) and isinstance(q, ast.Attribute):
            if p.attr != q.attr:  # fields, or parts of numbers, one of which may be no part
                return (p.attr in PARTS) != (q.attr in PARTS)
            continue
        if not (isinstance(p, ast.Subscript) and isinstance(q, ast.Subscript)):
            return True
        for axis, (i, j) in enumerate(zip(_indices(p), _indices(q), strict=False)):
            if _apart(i, j):
                return False
            unsure = _unsure(i, j)
            if unsure is not None:
                shape = nodes.attribute(load(p.value), "shape")
                length = nodes.element(shape, ast.Constant(axis))
                conditions.append((load(unsure[0]), load(unsure[1]), length))
    return conditions or True


def _indices(step: ast.Subscript) -> list[ast.expr]:
    return step.slice.elts if isinstance(step.slice, ast.Tuple) else [step.slice]


def _apart(i: ast.expr, j: ast.expr) -> bool:
    """Whether two indices, or slices, cannot meet."""
    if isinstance(i, ast.Slice) and isinstance(j, ast.Slice):
        return _is_unit(i) and _is_unit(j) and (_ends_before(i, j) or _ends_before(j, i))
    if isinstance(i, ast.Slice):
        i, j = j, i
    a, m = _offset(i)
    if isinstance(j, ast.Slice):
        if not _is_unit(j):
            return False
        b, n = ("", None) if j.lower is None else _offset(j.lower)
        before = a == b == "" and n is not None and m < n and (m < 0) == (n < 0)
        b, n = ("", None) if j.upper is None else _offset(j.upper)
        if n is None or a != b:
            return before
        return before or m == n or (a == "" and n < m and (m < 0) == (n < 0))
    b, n = _offset(j)
    return a == b == "" and m != n and (m < 0) == (n < 0)


def _unsure(i: ast.expr, j: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Two indices that may be one; an index, and the end of a slice that it stands beside."""
    if isinstance(i, ast.Slice):
        i, j = j, i
    if not isinstance(j, ast.Slice):
        return None if text(i) == text(j) else (i, j)
    if isinstance(i, ast.Slice) or not _is_unit(j):
        return None
    if j.lower is not None and (distance(j.lower, i) or 0) > 0:
        return i, ast.Slice(j.lower)
    if j.upper is not None and (distance(i, j.upper) or 0) > 0:
        return i, ast.Slice(None, j.upper)
    return None


def meet(i: ast.expr, j: ast.expr, length: ast.expr) -> ast.expr:
    """The test whether an index is another one, or inside a slice that it stands beside."""
    zero = ast.Constant(0)
    if isinstance(j, ast.Slice):
        if j.upper is not None:
            return nodes.compare(zero, "<=", i, "<", nodes.constant(distance(i, j.upper)))
        least = nodes.prefix("-", nodes.constant(distance(j.lower or i, i)))
        return nodes.compare(least, "<=", i, "<", zero)
    gap = distance(i, j)
    if gap is not None:  # they meet where one of them counts from the end
        return nodes.compare(length, "==", ast.Constant(abs(gap)))
    ends = nodes.tuple_of([zero, length, nodes.prefix("-", length)])
    return nodes.compare(nodes.binary(i, "-", j), "in", ends)


def distance(i: ast.expr, j: ast.expr) -> int | None:
    """How far two indices are from one another, if that is known."""
    a, m = _offset(i)
    b, n = _offset(j)
    return m - n if a == b else None


def _is_unit(s: ast.Slice) -> bool:
    return s.step is None or text(s.step) == "1"


def _ends_before(i: ast.Slice, j: ast.Slice) -> bool:
    if i.upper is None or j.lower is None:
        return False
    a, m = _offset(i.upper)
    b, n = _offset(j.lower)
    # with another offset one of two names may be negative, and count from the other end
    return a == b and (m == n or (a == "" and m <= n and (m < 0) == (n < 0)))


def _offset(i: ast.expr) -> tuple[str, int]:
    """An index as something plus a number."""
    if isinstance(i, ast.BinOp) and isinstance(i.op, (ast.Add, ast.Sub)):
        base, number = _offset(i.right)
        if base == "":
            start, before = _offset(i.left)
            return start, before + (number if isinstance(i.op, ast.Add) else -number)
    try:
        value = ast.literal_eval(i)
    except ValueError:
        return text(i), 0
    return ("", value) if type(value) is int else (text(i), 0)
