"""The way that the example takes, where a tape cannot hold both ways of a branch.

Two ways may leave different objects: a list and a tuple, one function or another, a text. A tape
then follows the example, and checks when it runs that the same way is taken; ``OtherWayError`` says
that it is not, and another tape is made. What decides is computed from the example's arguments, by
running what was recorded so far.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError
from fwdad.frontend.example_run import ExampleRun
from fwdad.frontend.syntax.raising import may_raise
from fwdad.frontend.syntax.symbols import KindsDifferError
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.builder.shape_env import LengthNeededError
from fwdad.ir.ops import (
    Apply,
    Block,
    Call,
    Check,
    Op,
    Operand,
    Program,
    Value,
)
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.primitives.computed import computed
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import BOOL, Size
from fwdad.transforms.passes.dead import must_run

_MOST = 16  # elements of an array whose values are assumed
_DECISIONS = 256  # of what comprehensions take, and how far generators run: each is a check


class WayNeededError(UntraceableError):
    """A branch whose ways cannot be merged: the tape must follow the example there."""

    def __init__(self, refusal: UntraceableError, place: Any) -> None:
        super().__init__(refusal.msg)
        self.refusal = refusal
        self.place = place


@dataclass(frozen=True)
class OfLoop:
    """The place of a loop whose iterations leave different objects."""

    place: Location | None


@dataclass(frozen=True)
class OfCall:
    """The place of a call that no tape holds."""

    place: Location | None


class LoopFollowedError(LengthNeededError):
    """A loop that follows the example, iteration by iteration: it cannot be one body."""

    def __init__(self, refusal: UntraceableError) -> None:
        super().__init__(refusal.msg)
        self._refusal = refusal

    @property
    def refusal(self) -> UntraceableError:
        """Why it is followed."""
        return self._refusal


class Places(set[Any]):
    """Where branches are that cannot be merged, perhaps ``all``, and loops and calls like that."""

    all = False

    def __init__(self) -> None:
        super().__init__()
        self.refusals: dict[Any, UntraceableError] = {}
        self.inside: set[Any] = set()  # calls that are no values: what they call may be

    @property
    def of_branches(self) -> set[Any]:
        """The branches among them."""
        return {p for p in self if not isinstance(p, (OfLoop, OfCall))}

    def __contains__(self, place: object) -> bool:
        everywhere = self.all and not isinstance(place, (OfLoop, OfCall))
        return everywhere or super().__contains__(place)


class Ways:
    """The branches at which a tape follows the example, and what it checks there.

    Attributes
    ----------
    places : Places
        Where branches are that cannot be merged.
    taken : bool
        Whether anything is checked.
    catches : bool
        Whether something may raise what the program catches: the program itself must run then.
    """

    def __init__(
        self, recorder: Recorder, inputs: Callable[[], list[tuple[Value, Any]]], places: Places
    ) -> None:
        self._recorder = recorder
        self._inputs = inputs
        self.places = places
        self.exact: Callable[[], Location | None] = lambda: None  # in a library's code, too
        self._loops: list[OfLoop] = []  # that are open, the innermost last
        self.taken = False
        self._decisions = 0
        self._example = ExampleRun(recorder)
        self.reason = ""  # of the first refusal
        self.place: Location | None = None  # of the first that was taken
        self.catches = False

    def here(self) -> Location | None:
        """The place of a branch: all of a library's are at the user's call of it."""
        return self._recorder.place() or self.exact()

    def begin_loop(self) -> OfLoop:
        """The place of a loop, in a library's code, too; raises if it is not to be one body."""
        place = OfLoop(self.exact())
        if place in self.places:
            raise LoopFollowedError(self.places.refusals[place])
        self._loops.append(place)
        return place

    @property
    def in_loop(self) -> bool:
        """Whether the body of a loop is being traced, for all iterations."""
        return bool(self._loops)

    def end_loop(self) -> None:
        """Leave the loop that was begun last."""
        self._loops.pop()

    def needed(self, place: Any, error: UntraceableError) -> UntraceableError:
        """The error to raise where ways cannot be merged: one that makes the trace begin anew.

        Where the example cannot tell, since a loop carries what decides, the loop is followed.
        """
        if self._recorder.lengths.observe is not None and isinstance(error, LengthNeededError):
            error = error.refusal  # no other attempt knows more lengths
        self.reason = self.reason or error.msg
        if type(error) not in (UntraceableError, KindsDifferError):
            return error
        for p in (place, *self._loops[-1:]):
            if p is not None and p not in self.places:
                return WayNeededError(error, p)
        return error

    def assumed(self, x: Symbol) -> Any:
        """The value of a symbol in the example, checked from now on; UNBOUND if it is unknown.

        Floats are not assumed: they would be others at the next call.
        """
        found = self._observed(x.value)
        if not _is_exact(found):
            return UNBOUND
        recorder = self._recorder
        if isinstance(found, (bool, np.bool_)):
            holds: Any = x if found else recorder.apply(operator.not_, (x,), {})
        else:
            same = np.array_equal if isinstance(found, np.ndarray) else operator.eq
            holds = recorder.apply(same, (x, found), {})
        recorder.check(holds, OtherWayError, ("it takes another way than its tape",))
        self.taken, self.place = True, self.place or recorder.place()
        return found

    def decided(self, x: Symbol) -> Any:
        """The truth of a symbol as :meth:`assumed`; UNBOUND if too many are."""
        self._decisions += 1
        return UNBOUND if self._decisions > _DECISIONS else self.assumed(x)

    def length(self, d: Size) -> int | None:
        """A length that is computed, in the example, checked from now on.

        It is known from then on everywhere, so it is checked where the program always comes by.
        """
        if not always_comes_by(self._recorder):
            return None
        place = self._recorder.lengths.place_of(d)
        if place is None:
            return None
        value, axis = place
        found = self.assumed(self._recorder.length(Symbol(value, self._recorder), axis))
        return None if found is UNBOUND else int(found)

    def catch(self, body: list[tuple[list[Op], int]], wanted: Any, place: Location | None) -> None:
        """Assume that nothing is raised in a ``try``; all that may raise is run.

        ``body`` are the ends of blocks that belong to it, with the index of the first operation.
        """
        for ops, first in body:
            _keep(ops, first, wanted, set())
        self.calls(place)

    def calls(self, place: Location | None) -> None:
        """Note a call that Python makes: the program itself must run if it raises."""
        self.taken = self.catches = True
        self.place = self.place or place

    def observed(self, operands: list[Operand]) -> tuple[Any, ...]:
        """Operands in the example; raises if one of them is unknown there."""
        found = [self._observed(x) if isinstance(x, Value) else x for x in operands]
        if any(x is UNBOUND for x in found):
            raise UntraceableError("what it is given is not known before the program runs")
        return tuple(found)

    def _observed(self, v: Value) -> Any:
        """The value in the example, by running the operations so far."""
        return self._example.value(v, self._inputs())


def always_comes_by(recorder: Recorder) -> bool:
    """Whether what is written now runs once, whatever the values are.

    The block of a function that is differentiated where it stands does.
    """
    inner = zip(recorder.blocks[1:], recorder.journal.regions, strict=True)
    return all(
        region.always or (bool(block.params) and all(p in recorder.given for p in block.params))
        for block, region in inner
    )


def _keep(ops: list[Op], first: int, wanted: Any, seen: set[Program]) -> None:
    """Keep operations alive that may raise, though their results are unused."""
    values: list[Value] = []
    for op in ops[first:]:
        blocks = op.blocks()
        if isinstance(op, Call) and op.program not in seen:
            seen.add(op.program)
            blocks = [_callee(op)]
        for block in blocks:
            _keep(block.ops, 0, wanted, seen)
        if not op.nests and may_raise(op, wanted) and not must_run(op):
            values += op.outputs or op.writes()
    if values:
        done = Value(BOOL)
        ops.append(Apply(computed, tuple(dict.fromkeys(values)), outputs=(done,)))
        ops.append(Check(done, OtherWayError))


def _callee(op: Call) -> Block:
    """The block of a program that is called, if it is complete."""
    block = op.program.block
    if len(block.params) != len(op.args):
        message = (
            f"a `try` around a call of {op.program.name}, inside of that function, cannot be "
            "traced: test the condition first"
        )
        raise UntraceableError(message, op.location)
    return block


def _is_exact(x: Any) -> bool:
    """Whether a value is a truth value, an integer, or a few of these."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "biu" and x.size <= _MOST
    return isinstance(x, (bool, int, np.bool_, np.integer))
