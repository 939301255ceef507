"""Dictionaries of reversible programs: numbers under keys that are ints."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.reversible.containers.container import Container


class Dict(Container):
    """A dictionary of numbers under ints, for data that values decide about.

    In a reversible program ``insert(d, key, v)`` moves the number v into the dictionary d and
    leaves zero, ``delete(d, key, v)`` moves the number under the key to v, which must be zero, and
    ``contains(d, key)`` asks. A dictionary is a parameter, or an ancilla: ``d = ancilla(Dict())``,
    which is freed empty by ``free(d, Dict())``.

    Parameters
    ----------
    capacity : int, optional
        How many numbers it can hold: one more raises ``CapacityError``. Without one it grows as a
        :class:`Stack` does.
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
    >>> from fwdad.reversible import Dict, insert
    >>> d, key, v = insert(Dict(4), 7, 0.5)
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
        contents = ", ".join(f"{key}: {value!r}" for key, value in pairs)
        return f"<Dict of {self.count} among {len(self.values)}: {{{contents}}}>"
