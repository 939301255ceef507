"""A plan: the colouring that a sparse Jacobian is computed with, and where its entries are read."""

from __future__ import annotations

import functools
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.codegen.numba_support import have_numba
from fwdad.colouring import Colouring, colour
from fwdad.colouring.assembly import Assembly, check_format
from fwdad.colouring.colouring import SYMMETRIC, Kind
from fwdad.colouring.graphs import canonical_pattern, row_indices
from fwdad.colouring.kernels import FEW_STEPS, kernel
from fwdad.errors import ColouringError, PatternError

_KINDS: dict[str, tuple[Kind, ...]] = {
    "forward": ("columns",),
    "reverse": ("rows",),
    "auto": ("columns", "rows", "both"),
    "symmetric": ("star",),
}
_ROW_COST = 2
"""Of a product with the transpose, where one with the matrix costs 1: it keeps what it reads."""

_FEW = 8
"""Columns' colours that nothing else is worth looking for."""


class Plan:
    """A colouring with the places of a matrix's entries in its products.

    The products are flat, those with the columns' seeds before those with the rows'; each is one
    row of the array that ``jvp`` or a pullback returns.
    """

    def __init__(self, colouring: Colouring, form: str) -> None:
        self.colouring = colouring
        self.format = form
        self.dense: tuple[str, ...] = ()
        self.assembly = Assembly(colouring.pattern, form)
        # by a function's name, what tapes assume of its indices
        self.assumed: defaultdict[str, set[int]] = defaultdict(set)
        self.checked: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()

    def __reduce__(self) -> Any:
        return Plan, (self.colouring, self.format)

    @property
    def shape(self) -> tuple[int, int]:
        """The matrix's shape."""
        m, n = self.colouring.pattern.shape
        return int(m), int(n)

    @property
    def in_words(self) -> str:
        """What is computed, and what made the pattern dense."""
        counts = {"direction": self.colouring.column_count, "cotangent": self.colouring.row_count}
        parts = [f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
        entries = (
            f"{' and '.join(parts) or 'no direction'} for {self.colouring.pattern.nnz} entries"
        )
        return "\n".join([entries, *(f"dense: {why}" for why in self.dense)])

    @property
    def by_rows(self) -> bool:
        """Whether products with the transpose are needed."""
        return self.colouring.row_count > 0

    @property
    def by_columns(self) -> bool:
        """Whether products with the matrix are needed; there is one even if there is no entry."""
        return self.colouring.column_count > 0 or not self.by_rows

    def column_seeds(self, dtype: Any) -> Any:
        """The directions, one in each row."""
        if not self.colouring.column_count:
            return np.zeros((1, self.shape[1]), dtype)
        return np.ascontiguousarray(self.colouring.column_seeds(dtype).T)

    def row_seeds(self, dtype: Any) -> Any:
        """The cotangents, one in each row."""
        return self.colouring.row_seeds(dtype)

    @functools.cached_property
    def coordinates(self) -> tuple[Any, Any]:
        """The rows and columns of the entries."""
        pattern, order = self.colouring.pattern, self.assembly.order
        i, j = row_indices(pattern), pattern.indices
        return (i, j) if order is None else (i[order], j[order])

    def positions(self, rows: Any, columns: Any) -> Any:
        """Where entries are among those of the matrix; None if the pattern lacks one."""
        found = _found(self.colouring.pattern, rows, columns)
        return found if found is None or self._in_matrix is None else self._in_matrix[found]

    @functools.cached_property
    def _in_matrix(self) -> Any:
        """The place in the matrix of each entry of the pattern; None if that is the same."""
        order = self.assembly.order
        if order is None:
            return None
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return places

    @functools.cached_property
    def places(self) -> Any:
        """Where the values are in the flat products; after substitution, or at once, entries."""
        recovery, (m, n) = self.colouring.recovery, self.shape
        places = np.empty(recovery.values, np.intp)
        columns, rows = recovery.columns, recovery.rows
        if columns is not None:
            places[columns.which] = columns.second.astype(np.intp) * m + columns.first
        if rows is not None:
            before = self.colouring.column_count * m if self.by_columns else 0
            places[rows.which] = before + rows.first.astype(np.intp) * n + rows.second
        order = self.assembly.order
        return places if order is None or recovery.value_of is not None else places[order]

    @functools.cached_property
    def narrow_places(self) -> Any:
        """The same in half the memory, if they fit; NumPy would widen them at each call."""
        places = self.places
        small = places.size == 0 or places.max() <= np.iinfo(np.int32).max
        return places.astype(np.int32) if small else places

    @functools.cached_property
    def substitution(self) -> Any:
        """The order of subtractions, the values above, the value of each entry; None if none."""
        recovery, order = self.colouring.recovery, self.assembly.order
        if recovery.value_of is None:
            return None
        of_entries = recovery.value_of if order is None else recovery.value_of[order]
        return recovery.order, recovery.above, of_entries


def _found(pattern: Any, rows: Any, columns: Any) -> Any:
    """The places of entries in a canonical pattern; None if it lacks one."""
    steps = 4 * rows.size
    if have_numba() or steps < FEW_STEPS:
        found = np.empty(rows.size, np.intp)
        at = rows, columns, pattern.indptr, pattern.indices
        return found if find_entries(*at, found, steps=steps) else None
    n = pattern.shape[1]
    keys = row_indices(pattern).astype(np.intp) * n + pattern.indices
    wanted = rows * n + columns
    found = np.searchsorted(keys, wanted)
    lacks = (found == keys.size).any() or not np.array_equal(keys[found], wanted)
    return None if lacks else found


@kernel("found")
def find_entries(rows: Any, columns: Any, starts: Any, indices: Any, found: Any) -> Any:
    """Find entries in rows of sorted columns; whether all are there."""
    for k in range(len(rows)):
        low = starts[rows[k]]
        end = starts[rows[k] + 1]
        high = end
        while low < high:
            middle = (low + high) // 2
            if indices[middle] < columns[k]:
                low = middle + 1
            else:
                high = middle
        if low == end or indices[low] != columns[k]:
            return False
        found[k] = low
    return True


_KNOWN: dict[int, tuple[weakref.ref[Any], dict[Any, Plan]]] = {}
"""The plans for a pattern or colouring, by its address, as long as it lives.

One that is changed in place keeps the plan of what it was, which has been checked.
"""


def plan_for(given: Any, way: str, form: str) -> Plan:
    """The plan for a pattern, or with a colouring; ``way`` is a mode, or "symmetric"."""
    check_format(form)
    if isinstance(given, Plan):
        if given.format == form:
            return given
        given = given.colouring
    key, address = (way, form), id(given)
    held = _KNOWN.get(address)
    if held is not None and held[0]() is given and key in held[1]:
        return held[1][key]
    made = Plan(_colouring(given, way), form)
    made.dense = getattr(given, "dense", ())
    try:
        reference = weakref.ref(given, _forgotten(address))
    except TypeError:  # a list
        return made
    if held is None or held[0]() is not given:
        held = _KNOWN[address] = reference, {}
    return held[1].setdefault(key, made)


def _forgotten(address: int) -> Callable[[Any], None]:
    known = _KNOWN  # at the interpreter's exit the module has none

    def forget(reference: Any) -> None:
        held = known.get(address)
        if held is not None and held[0] is reference:
            del known[address]

    return forget


def _colouring(given: Any, way: str) -> Colouring:
    """A colouring that a mode can use."""
    if isinstance(given, Colouring):
        given.verify()
        if (way == "forward" and given.row_count) or (way == "reverse" and given.column_count):
            needed = "columns" if way == "forward" else "rows"
            raise ColouringError(
                f'mode="{way}" needs a colouring of kind="{needed}", and this is {given!r}: make '
                f'colour(pattern, kind="{needed}"), or leave the mode out'
            )
        if given.kind in SYMMETRIC and way != "symmetric":
            raise ColouringError(
                f"{given!r} is of a symmetric matrix, as a Hessian is, and a Jacobian need not be "
                'one: make colour(pattern, kind="columns"), "rows" or "both"'
            )
        return given
    try:
        pattern = canonical_pattern(given)
    except ColouringError as error:
        raise PatternError(f"sparse=: {error}") from error
    if pattern.nnz == pattern.shape[0] * pattern.shape[1]:
        return _of_all_lines(pattern, way)
    best = colour(pattern, _KINDS[way][0])
    for kind in _KINDS[way][1:]:
        if _cost(best) > _FEW:
            best = min(best, colour(pattern, kind), key=_cost)
    return best


def _of_all_lines(pattern: Any, way: str) -> Colouring:
    """A colour for each column, or for each row: nothing else does where all entries may be there.

    A search would only take long to find that out.
    """
    m, n = pattern.shape
    if way == "reverse" or (way == "auto" and _ROW_COST * m < n):
        return Colouring(pattern, "rows", None, np.arange(m, dtype=np.int32), "full")
    kind: Kind = "star" if way == "symmetric" else "columns"
    return Colouring(pattern, kind, np.arange(n, dtype=np.int32), None, "full")


def _cost(colouring: Colouring) -> int:
    return colouring.column_count + _ROW_COST * colouring.row_count
