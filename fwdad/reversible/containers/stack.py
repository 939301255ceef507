"""Stacks of reversible programs: memory that numbers are moved to, and a count."""

from __future__ import annotations

from fwdad.reversible.containers.container import Container


class Stack(Container):
    """A stack of numbers for traces whose length depends on values.

    In a reversible program ``push(s, v)`` moves the number v onto the stack s and leaves zero, and
    ``pop(s, v)`` moves the latest one to v, which must be zero. A stack is a parameter, or an
    ancilla: ``s = ancilla(Stack())``, which is freed empty, by ``free(s, Stack())``.

    Parameters
    ----------
    capacity : int, optional
        How many numbers it can hold: one more raises ``CapacityError``. Without one it grows where
        Python runs the program; under ``jit`` and other transformations, which fix the lengths of
        arrays, it has room for 64 numbers, or for as many as the program has needed in Python.
    dtype : dtype, default float
        That of its numbers.

    Attributes
    ----------
    values : ndarray
        The numbers, and zeros behind them.
    count : int
        How many there are.

    Raises
    ------
    UnsupportedTypeError, ValueError
        If it holds no numbers, or the capacity is negative.

    Notes
    -----
    Moving a number costs one step.
    """

    __fwdad_fields__ = ("values", "count")

    def __repr__(self) -> str:
        contents = ", ".join(map(repr, self.values[: self.count].tolist()))
        return f"<Stack of {self.count} among {len(self.values)}: [{contents}]>"
