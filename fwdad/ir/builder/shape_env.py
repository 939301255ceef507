"""What is known about lengths while a tape is recorded: integers, or the arrays that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fwdad.errors import Location, UntraceableError
from fwdad.ir.ops import Value
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Dimension, Size, Type
from fwdad.ops.record import own_op

Places = dict[Size, tuple[Value, int]]  # an array that has a length, and the axis


class LengthNeededError(UntraceableError):
    """A length has to be known that depends on others; those of the arguments may tell it."""

    @property
    def refusal(self) -> UntraceableError:
        """The error of a class that users know."""
        return UntraceableError(self.msg, self.location)


class KnownLengths:
    """The known lengths, and for each unknown length an array that has it.

    ``known`` are lengths that the tape is specialised for, ``length_guards`` what it assumes about
    inputs: (input, axis, length). ``place`` returns the location that errors name.
    """

    def __init__(self, place: Callable[[], Location | None]) -> None:
        self._place = place
        self.known: dict[Size, int] = {}
        self.same: dict[Size, Size] = {}  # lengths that are known to be equal to others
        self.length_guards: list[tuple[int, int, int]] = []  # (input, axis, length)
        self.rewinds = 0
        self._measured: Places = {}
        self.inputs: set[Value] = set()  # arguments, and what is read from outside
        self._given: Places = {}  # of inputs: seen from everywhere
        self._doubtful: Places = {}  # of arrays that may be missing
        self._sliced: dict[Size, tuple[Any, slice]] = {}  # (whole, slice) of a dimension
        # what tells, and assumes, a length that is computed when the program runs; None if unknown
        self.observe: Callable[[Size], int | None] | None = None

    def mark(self) -> tuple[int, int]:
        """The numbers of lengths measured so far, for :meth:`forget`."""
        return len(self._measured), len(self._doubtful)

    def forget(self, mark: tuple[int, int]) -> tuple[Places, Places]:
        """Forget the lengths measured since ``mark``, whose arrays are not visible from here.

        Returns them, for :meth:`remember`.
        """
        self.rewinds += 1
        measured, doubtful = mark
        return _latest(self._measured, measured), _latest(self._doubtful, doubtful)

    @contextmanager
    def own_lengths(self) -> Iterator[None]:
        """Restore, at the end, the lengths that were measured before.

        What a loop carries may have another length in each iteration, under one ``Size``.
        """
        known = dict(self._measured), dict(self._doubtful)
        try:
            yield
        finally:
            self.rewinds += 1
            self._measured, self._doubtful = known

    def remember(self, forgotten: tuple[Places, Places]) -> None:
        """Measure lengths again, in the block in which they were forgotten."""
        for places, gone in zip((self._measured, self._doubtful), forgotten, strict=True):
            for d, place in gone.items():
                places.setdefault(d, place)

    def measure_input(self, value: Value) -> None:
        """Note an input of the program and its lengths."""
        self.inputs.add(value)
        self.measure(value)
        for axis, d in enumerate(value.type.shape):
            if isinstance(d, Size):
                self._given.setdefault(d, (value, axis))

    def measure(self, value: Value, *, anew: bool = False, absent: bool = False) -> None:
        """Note the lengths of an array, so that they can be read from it.

        With ``anew``, from this array rather than from earlier ones. An array that may be
        ``absent`` is used only if no other array has the length.
        """
        if absent:
            for axis, d in enumerate(value.type.shape):
                if isinstance(d, Size):
                    self._doubtful.setdefault(d, (value, axis))
            return
        for axis, d in enumerate(value.type.shape):
            if isinstance(d, Size):
                if anew:
                    self._measured[d] = (value, axis)
                self._measured.setdefault(d, (value, axis))

    def unmeasure(self, gone: set[Value]) -> None:
        """Forget the measurements of values that are removed again."""
        for places in (self._measured, self._doubtful):
            for d in [d for d, (value, _) in places.items() if value in gone]:
                del places[d]

    def resolved(self, t: Type) -> Type:
        """A type with the lengths known so far."""
        if not isinstance(t, ArrayType):
            return t
        shape = tuple(self._resolved(d) if isinstance(d, Size) else d for d in t.shape)
        return ArrayType(t.dtype, shape)

    def _resolved(self, d: Size) -> int | Size:
        return self.known[d] if d in self.known else self.same.get(d, d)

    def alike(self, value: Value) -> Value:
        """A value of the same type, with the lengths known so far, and equal ones unified."""
        if not any(d in self.same or d in self.known for d in value.type.shape):
            return value
        return Value(self.resolved(value.type))

    def known_length(self, a: Symbol | Value, axis: int) -> int:
        """One length of an array as an int, which becomes an assumption that the tape guards."""
        d = a.type.shape[axis]
        if not isinstance(d, Size):
            return d
        if d in self.known:
            return self.known[d]
        if d in self._sliced:
            whole, cut = self._sliced[d]
            self.known[d] = len(range(*cut.indices(self._known_size(whole))))
            return self.known[d]
        return self._known_size(d)

    def _known_size(self, d: Any) -> int:
        if not isinstance(d, Size) or d in self.known:
            return self.known.get(d, d)
        if d.origin is None and self.observe is not None:
            observed = self.observe(d)
            if observed is not None:
                self.known[d] = observed
                return observed
        if d.origin is None or d.hint is None:
            why = "it is computed at run time" if d.origin is None else "only its type is given"
            message = f"the length of this array is needed at trace time, but {why}"
            raise LengthNeededError(message, self._place())
        self.known[d] = d.hint
        self.length_guards.append((*d.origin, d.hint))
        return d.hint

    def know(self, t: Type, shape: tuple[int, ...]) -> None:
        """Note the lengths of a type, which what the tape assumes already implies."""
        for d, n in zip(t.shape, shape, strict=True):
            if isinstance(d, Size):
                self.known.setdefault(d, n)

    def assumed(self) -> tuple[dict[Size, int], int]:
        """The lengths that are known so far, for :meth:`withdraw`."""
        return dict(self.known), len(self.length_guards)

    def withdraw(self, before: tuple[dict[Size, int], int]) -> None:
        """Assume no more than before."""
        self.known, count = before
        del self.length_guards[count:]

    def place_of(self, d: Size) -> tuple[Value, int] | None:
        """An array that has an unknown length, and the axis; None if none is known."""
        return self._given.get(d) or self._measured.get(d) or self._doubtful.get(d)

    def cut(self, d: Size, whole: Any, at: slice) -> None:
        """Note that a length is that of a slice of another one."""
        self._sliced[d] = (whole, at)

    def assume(self, v: Value) -> bool:
        """Assume the example's lengths of an array, if it determines them; whether any is new."""
        found = False
        for axis, d in enumerate(v.type.shape):
            if not isinstance(d, Size) or d in self.known:
                continue
            if self._is_of_inputs(d):
                self.known_length(v, axis)
            elif self.observe is not None:
                observed = self.observe(d)
                if observed is None:
                    continue
                self.known[d] = observed
            else:
                continue
            found = True
        return found

    def _is_of_inputs(self, d: Dimension) -> bool:
        """Whether the example determines a length."""
        while isinstance(d, Size) and d not in self.known and d in self._sliced:
            d = self._sliced[d][0]
        if not isinstance(d, Size) or d in self.known:
            return True
        return d.origin is not None and d.hint is not None


def _latest(places: Places, kept: int) -> Places:
    """Remove all but the first places; returns the others in their order."""
    gone = [places.popitem() for _ in range(len(places) - kept)]
    return dict(reversed(gone))


@own_op(shape_only=(0,), constant=True)
def length_of(a: Any, axis: int) -> int:
    """``a.shape[axis]``."""
    return a.shape[axis]


@own_op(shape_only=(0,), constant=True)
def length_if_any(a: Any, axis: int) -> int:
    """``a.shape[axis]``, or zero if there is no array on the path taken."""
    return 0 if a is None else a.shape[axis]
