"""The way that the example takes, where a tape cannot hold both ways of a branch.

Two ways may leave different objects: a list and a tuple, one function or another, a text. A tape
then follows the example, and checks when it runs that the same way is taken; ``OtherWayError`` says
that it is not, and another tape is made. What decides is computed from the example's arguments, by
running what was recorded so far.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.errors import FwdadError, Location, UntraceableError
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Block, Effect, Op, Program, Value, is_array, walk
from fwdad.ir.primitives.identity import identity
from fwdad.ir.rewrite import all_used
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import Size
from fwdad.tangents.alike import alike

_MOST = 16  # elements of an array whose values are assumed


class OtherWayError(FwdadError):
    """The program takes another way than in the example that its tape was made of."""


class WayNeededError(UntraceableError):
    """A branch whose ways cannot be merged: the tape must follow the example there."""

    def __init__(self, refusal: UntraceableError, place: Location) -> None:
        super().__init__(refusal.msg)
        self.refusal = refusal
        self.place = place


class Ways:
    """The branches at which a tape follows the example, and what it checks there.

    Attributes
    ----------
    places : set of Location
        Where branches are that cannot be merged.
    taken : bool
        Whether anything is checked.
    catches : bool
        Whether something may raise what the program catches: the program itself must run then.
    """

    def __init__(
        self, recorder: Recorder, inputs: Callable[[], list[tuple[Value, Any]]], places: set[Any]
    ) -> None:
        self._recorder = recorder
        self._inputs = inputs
        self.places = places
        self.taken = False
        self.reason = ""  # of the first refusal
        self.place: Location | None = None  # of the first that was taken
        self.catches = False

    def needed(self, place: Location | None, error: UntraceableError) -> UntraceableError:
        """The error to raise where ways cannot be merged: one that makes the trace begin anew."""
        self.reason = self.reason or error.msg
        if place is None or place in self.places or type(error) is not UntraceableError:
            return error
        return WayNeededError(error, place)

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

    def length(self, d: Size) -> int | None:
        """A length that is computed, in the example, checked from now on.

        It is known from then on everywhere, so it is checked where the program always comes by.
        """
        inner = self._recorder.blocks[1:]
        if not all(b.params and all(p in self._recorder.given for p in b.params) for b in inner):
            return None
        place = self._recorder.lengths.place_of(d)
        if place is None:
            return None
        value, axis = place
        found = self.assumed(self._recorder.length(Symbol(value, self._recorder), axis))
        return None if found is UNBOUND else int(found)

    def catch(self, place: Location | None) -> None:
        """Assume that nothing is raised in a ``try``."""
        self.taken = self.catches = True
        self.place = self.place or place

    def _observed(self, v: Value) -> Any:
        """The value in the example, by running the operations so far."""
        inputs = self._inputs()
        known = {value for value, _ in inputs}
        ops: list[Op] = []
        for block in self._recorder.blocks:
            for p in block.params:
                outer = self._recorder.given.get(p)
                if p not in known and outer in known:
                    copied = np.ndarray.copy if is_array(p) else identity
                    ops.append(Apply(copied, (outer,), outputs=(p,)))
                    known.add(p)
            for op in block.ops:
                puts_out = any(isinstance(each, Effect) for each in walk(Block(ops=[op])))
                if all_used(op) <= known and not puts_out:
                    ops.append(op)
                    known.update(op.outputs)
        if v not in known:
            return UNBOUND
        program = Program("example", Block([value for value, _ in inputs], ops, [v]))
        try:
            run = compiled(numpy_source(program))
            return run(*(alike(x) if isinstance(x, np.ndarray) else x for _, x in inputs))[0]
        except Exception:  # noqa: BLE001  (what the program itself raises for the example)
            return UNBOUND


def _is_exact(x: Any) -> bool:
    """Whether a value is a truth value, an integer, or a few of these."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "biu" and x.size <= _MOST
    return isinstance(x, (bool, int, np.bool_, np.integer))
