"""Merges loops that several nests share into one function, which all of them call.

The nests of a gradient differ by the views that they work on, ``a[1:, :-1]`` or ``a[:-1, 1:]``,
while the loops over these are often the same: add one array to another.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fwdad.codegen.llvm.nests.extraction import Live, Nest, known_int, stored_in


@dataclass(frozen=True, eq=False)
class SharedLoop:
    """A loop that can be a function of what it reads.

    ``text`` is equal for equal loops. ``given`` are the arrays, numbers and lengths of arrays that
    it reads from outside, in the order in which the text names them.
    """

    text: str
    given: tuple[ast.expr, ...]


def shared_loops(nests: Iterable[Nest]) -> dict[ast.For, SharedLoop]:
    """The loops of some distinct nests that occur more than once."""
    loops: dict[str, dict[ast.For, SharedLoop]] = {}
    for nest in nests:
        live = Live()
        live.block(nest.tree.body, set(nest.results))
        for loop in _loops(nest.tree.body):
            merged = _shared(nest, loop, live)
            if merged is not None:
                loops.setdefault(merged.text, {})[loop] = merged
    return {s: merged for same in loops.values() if len(same) > 1 for s, merged in same.items()}


def _loops(body: Sequence[ast.stmt]) -> Iterator[ast.For]:
    """The outermost loops that contain nothing but loops and stores of elements."""
    for s in body:
        if isinstance(s, ast.For) and all(map(_fits, ast.walk(s))):
            yield s
        else:
            for field in ("body", "orelse"):
                yield from _loops(getattr(s, field, ()))


def _fits(node: ast.AST) -> bool:
    return not isinstance(node, (ast.Slice, ast.Expr))


MOST_ARRAYS = 3
"""Of views of one array LLVM knows more than of arrays that are given: before a loop it compares
the addresses of these with all that are written. A stencil of five views ran a sixth longer."""

_NAMES = re.compile(r"\bv\d+\b(?:\.shape\[-?\d+\])?")  # the names in nests


def _shared(nest: Nest, loop: ast.For, live: Live) -> SharedLoop | None:
    stored = stored_in(loop)
    if not live.is_known or stored & (live.after[loop] | Live().block([loop], set())):
        return None  # it carries or returns something
    read: dict[str, ast.expr] = {}
    arrays: set[str] = set()
    asked: set[ast.AST] = set()  # parts of `array.shape[k]`
    for node in ast.walk(loop):
        if isinstance(node, ast.Name):
            if node not in asked and isinstance(node.ctx, ast.Load):
                read.setdefault(node.id, node)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            array, k = node.value.value, known_int(node.slice)
            if not (isinstance(array, ast.Name) and node.value.attr == "shape") or k is None:
                return None
            read.setdefault(f"{array.id}.shape[{k}]", node)
            asked |= {node.value, array}
        elif isinstance(node, ast.Subscript):
            if not (isinstance(node.value, ast.Name) and _is_inside(node, nest)):
                return None
            arrays.add(node.value.id)
        elif isinstance(node, ast.Attribute) and node not in asked:
            if not (isinstance(node.value, ast.Name) and node.value.id in nest.functions):
                return None
    if len(arrays) > MOST_ARRAYS:
        return None
    names: dict[str, str] = {}
    text = _NAMES.sub(lambda m: names.setdefault(m[0], f"w{len(names)}"), ast.unparse(loop))
    inner = sorted(names[name] for name in nest.inner if name in names)
    return SharedLoop(f"{text} {inner}", tuple(read[n] for n in names if n not in stored))


def _is_inside(e: ast.Subscript, nest: Nest) -> bool:
    """Whether an index needs no check, for which lengths would have to be known."""
    parts = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
    return all(isinstance(p, ast.Name) and p.id in nest.inner for p in parts)
