"""Shared NaN tests for products with cotangents, for the Numba source.

A cotangent of zero stays zero, whatever it is multiplied by: ``scaled(d, y_bar)`` tests whether its
product is NaN, which costs more than the product. Products of one partial need one test, of the
partial: unless that is infinite or NaN, no cotangent of zero becomes NaN. The same is true of the
summands of one sum, which is NaN if any of them is. Where a test fails, everything is computed once
more, each product with a test of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from fwdad.ir.ops import Apply, Block, Load, Op, Store, Update, Value

_FEWEST = 3  # products of a group: all but the first are computed early, and kept until used
_STRAIGHT = (Apply, Load, Store, Update)


def groups(block: Block, is_product: Callable[[Op], bool]) -> dict[Op, list[Apply]]:
    """Products of the same partial that can be computed where the first is, by the first."""
    guards: dict[Op, list[Apply]] = {}
    for run in _straight(block):
        by_partial: dict[Value, list[Apply]] = {}
        for op in run:
            if is_product(op) and isinstance(op, Apply) and isinstance(op.args[0], Value):
                by_partial.setdefault(op.args[0], []).append(op)
        if all(len(members) < _FEWEST for members in by_partial.values()):
            continue
        at = {op: k for k, op in enumerate(run)}
        definitions = {v: k for k, op in enumerate(run) for v in op.outputs}
        for members in by_partial.values():
            guards.update(_together(members, definitions, at))
    return guards


def _straight(block: Block) -> Iterator[list[Op]]:
    """Maximal runs of operations without loops, branches and calls."""
    run: list[Op] = []
    for op in block.ops:
        if isinstance(op, _STRAIGHT):
            run.append(op)
        else:
            yield run
            run = []
    yield run


def _together(
    members: list[Apply], made: dict[Value, int], at: dict[Op, int]
) -> Iterator[tuple[Op, list[Apply]]]:
    """Groups of products whose cotangents are available when the first is computed."""
    while len(members) >= _FEWEST:
        first = members[0]
        here = [op for op in members if made.get(op.args[1], -1) < at[first]]
        if len(here) >= _FEWEST:
            yield first, here
        members = [op for op in members if op not in here]


def without_tests(value: str) -> str | None:
    """A sum of several tested products as a sum of plain ones; None for other expressions."""
    if value.count("scaled(") < 2:
        return None
    e = ast.parse(value, mode="eval").body
    if sum(map(_is_tested, _summands(e))) < 2:
        return None
    return ast.unparse(_untested(e))


def _summands(e: ast.expr) -> Iterator[ast.expr]:
    if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)):
        yield from _summands(e.left)
        yield from _summands(e.right)
    elif isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        yield from _summands(e.operand)
    else:
        yield e


def _is_tested(e: ast.expr) -> bool:
    return isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "scaled"


def _untested(e: ast.expr) -> ast.expr:
    """A sum whose summands are plain products."""
    if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)):
        return ast.BinOp(_untested(e.left), e.op, _untested(e.right))
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        return ast.UnaryOp(e.op, _untested(e.operand))
    if isinstance(e, ast.Call) and _is_tested(e):
        return ast.BinOp(e.args[0], ast.Mult(), e.args[1])
    return e
