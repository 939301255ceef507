"""Loops over all elements of arrays that lie one after another run as one loop.

Where the last axis is short, as with points in space, most of the time of a loop nest goes into
beginning its innermost loop, and LLVM finds nothing to vectorise there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fwdad.codegen.llvm.elements import Held, all_steps
from fwdad.codegen.llvm.nests.extraction import known_int, read_in, stored_in
from fwdad.codegen.llvm.nests.types import index_parts

_VECTORS = {"vector_read", "vector_write"}


@dataclass
class Chain:
    """Loops, each of which contains nothing but the next, over the last axes of ``arrays``.

    ``stops`` are the ends of the loops, ``repeated`` the places where the last one is named again.
    """

    loops: list[ast.For]
    stops: list[ast.expr]
    arrays: dict[str, ast.Name] = field(default_factory=dict)
    repeated: list[ast.expr] = field(default_factory=list)

    @property
    def indices(self) -> list[str]:
        """The names of the loops' indices."""
        return [s.target.id for s in self.loops if isinstance(s.target, ast.Name)]


def chain_of(loop: ast.For, inner: frozenset[str]) -> Chain | None:
    """The loops that may run as one, from an outermost one; or None."""
    loops = [loop]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], ast.For):
        loops.append(loops[-1].body[0])
    stops = [_stop(s, last=s is loops[-1]) for s in loops]
    chain = Chain(loops, [stop for stop in stops if stop is not None])
    if len(loops) < 2 or len(chain.stops) < len(loops):
        return None
    changing = stored_in(loop)  # the indices among them
    if any(read_in(stop) & changing or _calls(stop) for stop in chain.stops):
        return None
    found = _Uses(chain, inner)
    return chain if all(map(found.fits, loops[-1].body)) and chain.arrays else None


def _calls(e: ast.expr) -> bool:
    """Whether an expression calls something, which might raise where no loop would ask for it."""
    return any(isinstance(node, ast.Call) for node in ast.walk(e))


def _stop(s: ast.For, *, last: bool) -> ast.expr | None:
    """Where a loop ends that begins at 0; only the last one may have a step, the vectors' width."""
    assert isinstance(s.iter, ast.Call)
    args = s.iter.args
    if len(args) == 1:
        return args[0]
    if last and len(args) == 3 and known_int(args[0]) == 0 and (known_int(args[2]) or 0) > 0:
        return args[1]
    return None


class _Uses:
    """Finds what the body of a chain does with its indices: nothing but read and write elements."""

    def __init__(self, chain: Chain, inner: frozenset[str]) -> None:
        self.chain = chain
        self.indices = chain.indices
        self.is_inner = inner.issuperset(self.indices)
        self.last = ast.unparse(chain.stops[-1])

    def fits(self, node: ast.AST) -> bool:
        """Whether a node uses the indices in no other way; notes the arrays."""
        if isinstance(node, ast.Name):
            return node.id not in self.indices
        if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Attribute):
            parts = index_parts(node)
            if self._are_last(parts):
                return self.is_inner and self._note(node.value)
            return all(map(self.fits, parts))
        if isinstance(node, ast.Call) and self._is_vector(node):
            first, stop, array, *parts = node.args
            if not self._are_last(parts) or ast.unparse(stop) != self.last:
                return not read_in(node) & {*self.indices}
            if isinstance(stop, ast.Constant):  # Numba knows such a one by its type
                return False
            self.chain.repeated.append(stop)
            return self.fits(first) and self._note(array)
        return all(map(self.fits, ast.iter_child_nodes(node)))

    def _is_vector(self, node: ast.Call) -> bool:
        return isinstance(node.func, ast.Name) and node.func.id in _VECTORS

    def _are_last(self, parts: list[ast.expr]) -> bool:
        """Whether the last parts of an index are the chain's, and the others have none of them."""
        n = len(self.indices)
        names = [part.id if isinstance(part, ast.Name) else None for part in parts[-n:]]
        return names == self.indices and not any(read_in(p) & {*names} for p in parts[:-n])

    def _note(self, array: ast.expr) -> bool:
        if not isinstance(array, ast.Name):
            return False
        self.chain.arrays.setdefault(array.id, array)
        return True


def ends(
    context: Any, builder: Any, chain: Chain, value: Callable[[ast.expr], Any]
) -> Iterator[tuple[ast.expr, Any]]:
    """What the ends of a chain's loops are instead.

    If the elements of the last axes of each array follow one another, they are 1 but for the
    innermost loop's, which is the number of all elements.
    """
    stops = [value(stop) for stop in chain.stops]
    together = None
    for array in map(value, chain.arrays.values()):
        for same in _in_order(context, builder, array, stops):
            together = same if together is None else builder.and_(together, same)
    assert together is not None
    total = stops[0]
    for n in stops[1:]:
        total = builder.mul(total, n)
    last = builder.select(together, total, stops[-1])
    for stop, n in zip(chain.stops[:-1], stops, strict=False):
        yield stop, builder.select(together, n.type(1), n)
    for stop in (chain.stops[-1], *chain.repeated):
        yield stop, last


def _in_order(context: Any, builder: Any, array: Held, stops: list[Any]) -> Iterator[Any]:
    """Bits that are all true if elements follow one another over the last axes of an array."""
    if array.type.layout == "C" and not array.steps:
        for n, stop in zip(array.lengths[-len(stops) + 1 :], stops[1:], strict=True):
            yield builder.icmp_signed("==", n, stop)
        return
    steps = all_steps(context, builder, array)[-len(stops) :]
    for k, stop in enumerate(stops[1:]):
        yield builder.icmp_signed("==", steps[k], builder.mul(stop, steps[k + 1]))
