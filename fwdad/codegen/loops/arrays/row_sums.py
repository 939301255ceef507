"""Sums of an einsum along rows of one operand, in registers, for the Numba source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fwdad.codegen.loops.notation import dtype_text, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.vectors.vector_terms import lanes_of
from fwdad.codegen.runtime import libmvec
from fwdad.ir.notation import tuple_text
from fwdad.ir.ops import Value

_TILES = (8, 2, 1)  # neighbours at once, and what is left of them
_FEWEST = 4  # elements of a row whose length is known, for which vectors are worth while
_BLOCK = 32  # items of a sum whose rows are copied together: they stay in the cache


class Factor(NamedTuple):
    """An operand of an einsum: the letters of its axes, its name, its type.

    ``steps`` are 0 or 1 for letters along which it may have one element, which is repeated.
    """

    letters: str
    name: str
    type: Any
    steps: dict[str, str]

    def element(self, index: dict[str, str]) -> str:
        """An element as source."""
        return f"{self.name}[{subscript([self._at(index, c, d) for c, d in self._axes()])}]"

    def _axes(self) -> Iterator[tuple[str, Any]]:
        return zip(self.letters, self.type.shape, strict=True)

    def _at(self, index: dict[str, str], letter: str, length: Any) -> str:
        if length == 1:
            return "0"
        at, step = index[letter], self.steps.get(letter)
        if step is None:
            return at
        return f"{at if at.isidentifier() else f'({at})'} * {step}"


def sum_rows(
    w: Parts, out: Value, result: str, operands: Sequence[Factor], lengths: dict[str, str]
) -> bool:
    """Add up rows of one operand, times numbers of the others; false if they have no rows.

    The result's last axis must be one of this operand alone, which others use again: it is copied,
    that axis last and with whole vectors, and the sums stay in registers: of some neighbours at
    once, which use the same rows.
    """
    having = [k for k, x in enumerate(operands) if result and result[-1] in x.letters]
    if len(having) != 1 or w.loops.spreads or not libmvec.register_bits():
        return False
    term, _, of, _ = operands[having[0]]
    length, dtype = of.shape[term.index(result[-1])], out.type.dtype
    few = isinstance(length, int) and length < _FEWEST
    if few or not set(result) - set(term) or len(set(term)) < len(term):
        return False
    if dtype not in (np.float64, np.float32) or any(x.type.dtype != dtype for x in operands):
        return False
    others = [x for k, x in enumerate(operands) if k != having[0]]
    _RowSums(w, out, result, operands[having[0]], others, lengths).write()
    return True


class _RowSums:
    """The loops of such an einsum: copied rows, then tiles of results.

    ``letters`` are those of the result and then those that are summed, ``index`` and ``sizes`` what
    their loops run over. ``kept`` are the letters of the copied rows, in the copy's order.
    """

    def __init__(
        self, w: Parts, out: Value, result: str, operand: Factor,
        others: Sequence[Factor], lengths: dict[str, str],
    ) -> None:  # fmt: skip
        self.w, self.out, self.result, self.others, self.lengths = w, out, result, others, lengths
        self.operand = operand
        self.term, _, self.of, _ = operand
        self.along = result[-1]
        self.letters = [*result, *(c for c in lengths if c not in result)]
        self.sizes = [lengths[c] for c in self.letters]
        self.names = w.loops.index_names(len(self.letters), inner=True)
        self.index = dict(zip(self.letters, self.names, strict=True))
        self.width = lanes_of(out.type.dtype)
        self.panel, self.totals = map(w.names.temporary, ("panel", "totals"))
        shown = {c for c, d in zip(self.term, self.of.shape, strict=True) if d != 1}
        self.kept = [*(c for c in self.letters if c in shown and c != self.along), self.along]
        # where each item of the sum has rows all over the copy, a block of items at a time
        first, count = self.term[0], self.of.shape[0]
        spread = first in self.kept[1:-1] and first not in result
        self.blocked = first if spread and not (isinstance(count, int) and count <= _BLOCK) else ""

    def write(self) -> None:
        """Write everything."""
        w = self.w
        sizes = self.lengths | ({self.blocked: str(_BLOCK)} if self.blocked else {})
        whole = f"({self.lengths[self.along]} + {self.width - 1}) // {self.width} * {self.width}"
        shape = tuple_text([*(sizes[c] for c in self.kept[:-1]), whole])
        w.code.line(f"{self.panel} = np.zeros({shape}, {dtype_text(self.out.type.dtype)})")
        w.arrays.new(self.out, self.sizes[: len(self.result)], zeros=bool(self.blocked))
        if not self.blocked:
            with self._over(self.kept):
                self._copy(self.index)
            self._tiles(self.index)
            return
        first, last, place = map(w.names.temporary, ("first", "last", "place"))
        size, more = self.lengths[self.blocked], f"{first} + {_BLOCK}"
        i = self.index[self.blocked]
        w.loops.inside.append(place)
        w.code.line(f"for {first} in range(0, {size}, {_BLOCK}):")
        with w.code.indented():
            w.code.line(f"{last} = {more} if {more} < {size} else {size}")
            self.sizes[self.letters.index(self.blocked)] = f"{first}, {last}"
            with self._over([c for c in self.term if c in self.kept]):  # in the order of memory
                w.code.line(f"{place} = {i} - {first}")
                self._copy(self.index | {self.blocked: place})
            self._tiles(self.index | {self.blocked: f"{i} - {first}"})

    def _over(self, letters: Sequence[str]) -> Any:
        return self.w.loops.over(self.names, self.sizes, [self.letters.index(c) for c in letters])

    def _copy(self, index: dict[str, str]) -> None:
        item = self.operand.element(self.index)
        self.w.code.line(f"{self.panel}[{subscript([index[c] for c in self.kept])}] = {item}")

    def _tiles(self, index: dict[str, str]) -> None:
        """Write the sums; ``index`` is that of the copied rows."""
        w, result = self.w, self.result
        row = f"{self.width}, None, {self.panel}, {subscript([index[c] for c in self.kept])}"
        tiled = max(set(result) - set(self.term), key=result.index)
        k, at, size = result.index(tiled), self.index[tiled], self.lengths[tiled]
        w.loops.inside += [f"{at} + {n}" for n in range(1, _TILES[0])]
        with self._over(result[:k]):
            start, left = "0", self.out.type.shape[k]
            for count in _TILES:
                if isinstance(left, int) and left < count > 1:
                    continue
                left = left % count if isinstance(left, int) else left
                stop = f"{size} - {size} % {count}" if count > 1 else size
                w.code.line(f"for {at} in range({start}, {stop}, {count}):")
                with w.code.indented(), self._over(result[k + 1 : -1]):
                    i, n = self.index[self.along], self.lengths[self.along]
                    w.code.line(f"for {i} in range(0, {n}, {self.width}):")
                    with w.code.indented():
                        self._sums(tiled, count, f"vector_read({row})")
                start = stop

    def _sums(self, tiled: str, count: int, row: str) -> None:
        """Write vectors of sums of some neighbours along the axis that is ``tiled``."""
        w, at = self.w, self.index[tiled]
        rows = [self.index | {tiled: f"{at} + {k}" if k else at} for k in range(count)]
        totals = [f"{self.totals}_{k}" for k in range(count)]
        name, stop = w.names.name(self.out), self.lengths[self.along]
        places = [f"{stop}, {name}, {subscript([i[c] for c in self.result])}" for i in rows]
        for place, total in zip(places, totals, strict=True):
            begun = f"vector_read({self.width}, {place})"
            zeros = f"vector_filled({self.width}, 0.0)"
            w.draft.vector_line(f"{total} = {begun if self.blocked else zeros}")
        with self._over(self.letters[len(self.result) :]):
            for of_row, total in zip(rows, totals, strict=True):
                items = [x.element(of_row) for x in self.others]
                w.draft.vector_line(f"{total} = {total} + {' * '.join([*items, row])}")
        for place, total in zip(places, totals, strict=True):
            w.draft.vector_line(f"vector_write({total}, {place})")
