"""Dictionaries of reversible programs: numbers under keys that are ints."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.reversible.containers import Container
from fwdad.reversible.function import reversible
from fwdad.reversible.parse_calls import AROUND
from fwdad.reversible.places import text
from fwdad.reversible.program import Block, Require
from fwdad.reversible.stack import contained, is_zero, parsed, room
from fwdad.reversible.words import ancilla, compute, copy_out, unchecked


class Dict(Container):
    """A dictionary of numbers under ints, for data that values decide about.

    In a reversible program ``fwdad.insert(d, key, v)`` moves the number v into the dictionary d
    and leaves zero, ``fwdad.delete(d, key, v)`` moves the number under the key to v, which must be
    zero, and ``fwdad.contains(d, key)`` asks. A dictionary is a parameter, or an ancilla:
    ``d = fwdad.ancilla(fwdad.Dict())``, which is freed empty by ``fwdad.free(d, fwdad.Dict())``.

    Parameters
    ----------
    capacity : int, optional
        How many numbers it can hold: one more raises ``CapacityError``. Without one it grows as a
        :class:`fwdad.Stack` does.
    dtype : dtype, default float
        That of its numbers.

    Attributes
    ----------
    keys : ndarray of int
        The keys in ascending order, and zeros behind them.
    values : ndarray
        The numbers in the order of the keys, and zeros behind them.
    count : int
        How many there are.

    Raises
    ------
    UnsupportedTypeError, ValueError
        If it holds no numbers, or the capacity is negative.
    KeyError
        By ``d[key]``, if the key is not there.

    Notes
    -----
    What a dictionary holds does not tell in which order it came, so undoing finds the same memory.
    Moving a number in or out costs as many steps as there are keys behind it.

    Examples
    --------
    >>> import fwdad
    >>> d, key, v = fwdad.insert(fwdad.Dict(4), 7, 0.5)
    >>> float(d[7]), float(v)
    (0.5, 0.0)
    """

    __fwdad_fields__ = ("keys", "values", "count")

    def __init__(self, capacity: int | None = None, dtype: Any = float) -> None:
        super().__init__(capacity, dtype)
        self.keys = np.zeros(len(self.values), np.int64)

    def __contains__(self, key: int) -> bool:
        return key in self.keys[: self.count].tolist()

    def __getitem__(self, key: int) -> Any:
        if key not in self:
            raise KeyError(key)
        return self.values[self.keys[: self.count].tolist().index(key)]

    def __repr__(self) -> str:
        pairs = zip(self.keys[: self.count].tolist(), self.values.tolist(), strict=False)
        held = ", ".join(f"{key}: {value!r}" for key, value in pairs)
        return f"<Dict of {self.count} among {len(self.values)}: {{{held}}}>"


@reversible
def insert(d, key, v):  # type: ignore[no-untyped-def]
    """Move a number into a :class:`Dict`: ``fwdad.insert(d, key, v)`` leaves zero in v.

    ``delete`` is its inverse: ``fwdad.delete(d, key, v)`` moves the number under the key to v.

    Parameters
    ----------
    d : Dict
        The dictionary.
    key : int
        The key; only read.
    v : number
        A place that can be updated.

    Raises
    ------
    InvertibilityError
        When the program runs: if the key is there already; of ``delete``, if it is not there, or v
        is not zero.
    CapacityError
        When the program runs, if there is no room.
    """
    with unchecked(), compute():
        at = ancilla(0)
        at += np.sum(d.keys[: d.count] < key)
        with copy_out():
            for k in range(d.count, at, -1):
                d.keys[k], d.keys[k - 1] = d.keys[k - 1], d.keys[k]
                d.values[k], d.values[k - 1] = d.values[k - 1], d.values[k]
            d.keys[at] += key
            d.values[at], v = v, d.values[at]
            d.count += 1


delete = ~insert
"""Move the number under a key of a :class:`Dict` to a place that is zero: ``delete(d, key, v)``."""


def _around(
    node: ast.AST, d: ast.expr, fields: Callable[[str], ast.expr], args: list[ast.expr]
) -> tuple[Block, Block]:
    """What must hold before an insertion and after it; a deletion checks them in reverse order.

    ``fields`` returns the expression of a field of the dictionary; ``args`` are key and number.
    """
    key, v = args
    found = text(contained(fields, key))
    what, name = f"the key '{text(key)}'", text(d)
    absent, present = parsed(f"not {found}", node), parsed(found, node)
    before: Block = [
        Require(node, absent, what, text(key), key, f"one that '{name}' does not have"),
        room(node, f"the dictionary '{name}'", name, fields("count"), fields("values")),
    ]
    after: Block = [
        Require(node, present, what, text(key), key, f"one that '{name}' has"),
        is_zero(node, v),
    ]
    return before, after


AROUND[insert] = _around, False
AROUND[delete] = _around, True
