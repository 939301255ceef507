"""Calls that are run again in the reverse pass, instead of being kept.

Forwards, such a call is recorded by itself. What it has recorded is then dropped, but for a
fingerprint; kept is what the call could reach when it began (:class:`Surroundings`), and which of
the nodes and memories that it has made are still in use. Backwards, the call is made once more
under the tag of its run, with all that set back. It records the same operations on the same nodes
from outside, and these are run backwards where the call stood. A run that records anything else
is an error: its derivative would be another one.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Self

import numpy as np

from fwdad.eager.build import Run
from fwdad.eager.calls.dispatch import call
from fwdad.eager.effects import Journal
from fwdad.eager.memory.shadow import keep, let_go, owner_of
from fwdad.eager.run import STATE
from fwdad.eager_reverse.fingerprints import Fingerprint, created
from fwdad.eager_reverse.surroundings import Changed, NotRepeatableError, Surroundings
from fwdad.errors import NondeterministicFunctionError
from fwdad.rules.core.registry import function_name


class Segment:
    """What is recorded while one call runs: a context manager.

    Attributes
    ----------
    operations, before : list
        What the call has recorded, and the list that it would have gone to.
    parts : dict
        The nodes of elements, by the node of the array: outside of the call they are others.
    settled : list
        Sums that have become one node, each with its terms from before.
    outer : Segment or None
        The call around this one.
    """

    def __init__(self, record: Any) -> None:
        self.record = record
        self.operations: list[Any] = []
        self.parts: dict[Any, Any] = {}
        self.settled: list[tuple[Any, Any]] = []
        self.before: list[Any] = []
        self.outer: Any = None
        self.kept: Any = {}

    def __enter__(self) -> Self:
        record = self.record
        self.before, record.operations = record.operations, self.operations
        record.append = self.operations.append
        self.kept, record.kept = record.kept, {}
        self.outer, record.segment = record.segment, self
        return self

    def __exit__(self, *_details: object) -> None:
        record = self.record
        record.operations = self.before
        record.append = self.before.append
        self.kept, record.kept = record.kept, self.kept  # now those of the call
        record.segment = self.outer
        self.parts.clear()

    def keep(self) -> None:
        """Record what the call has recorded as if it were part of what is around it."""
        self.before.extend(self.operations)
        if self.outer is not None:
            self.outer.settled.extend(self.settled)
        for key, (owner, calls) in self.kept.items():
            self.record.kept.setdefault(key, (owner, []))[1].extend(calls)

    def unsettle(self) -> None:
        """Give sums that have become one node their terms again."""
        for tangent, terms in reversed(self.settled):
            tangent.terms = terms
        self.settled.clear()

    def forget(self) -> None:
        """Nobody has to be told before the arrays of the call's operations are written."""
        kept, self.kept = self.kept, {}
        for owner, calls in kept.values():
            let_go(owner, calls)


def run_segment(record: Any, f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function that is run again in the reverse pass.

    Raises
    ------
    NotRepeatableError
        Before anything is done, if it cannot be made again.
    """
    if threading.get_ident() != record.thread:
        message = "it is called in another thread than what is differentiated"
        raise NotRepeatableError(message)
    run = STATE.run
    noted: dict[int, tuple[Any, Any]] = {}
    again = Again(record, f, args, kwargs, run.memo)
    for a in again.surroundings.arrays():
        owner = owner_of(a)
        record.kept.setdefault(id(owner), (owner, []))[1].append(again.surroundings)
        keep(owner, again.surroundings)
    place = run.log.place()
    run.noting.append(noted)
    run.effects.journals.append(again.journal)
    segment = Segment(record)
    try:
        with segment:
            y = call(f, *args, **kwargs)
    except BaseException:
        # the caller may go on, with what the call has done until then
        segment.keep()
        again.release()
        raise
    finally:
        run.noting.pop()
        run.effects.journals.pop()
    if segment.operations:
        again.close(segment, noted)
        run.log.purge(place)
        again.find_outputs()
        record.append(again)
    else:
        again.release()
    return y


class Again:
    """A call that is made once more in the reverse pass.

    Attributes
    ----------
    nodes : dict
        The nodes and memories that the call has made and that were in use when it had ended, each
        with the key that :func:`created` gives it.
    fingerprint : Fingerprint
        What the call has recorded.
    stored : dict
        The memories from before into which it stores.
    """

    def __init__(self, record: Any, f: Any, args: Any, kwargs: Any, memo: dict[Any, Any]) -> None:
        self.record = record
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.surroundings = Surroundings(record, (f, args, kwargs))
        self.memo = (memo, len(memo))
        self.floating = np.geterr()
        self.generators: list[tuple[Any, Any]] = []
        self.journal: Journal = []
        self.fingerprint: Any = None
        self.stored: dict[Any, None] = {}
        self.nodes: dict[Any, Any] = {}
        self._made: dict[Any, weakref.ref[Any]] = {}

    # -- forwards

    def close(self, segment: Segment, noted: dict[int, tuple[Any, Any]]) -> None:
        """The call has ended: keep what tells its record from another one, and drop the record."""
        self.generators = list(noted.values())
        self.fingerprint = Fingerprint(segment.operations)
        segment.unsettle()
        self.stored = self.fingerprint.stored
        self._made = {key: weakref.ref(made) for key, made in created(segment.operations)}
        segment.forget()
        segment.operations.clear()

    def find_outputs(self) -> None:
        """Which nodes and memories of the call somebody still refers to."""
        found = ((key, ref()) for key, ref in self._made.items())
        self.nodes = {key: made for key, made in found if made is not None}
        self._made.clear()

    def release(self) -> None:
        """The call is not made again."""
        mine = self.surroundings
        for a in mine.arrays():
            let_go(owner_of(a), [mine])

    # -- backwards

    def pull(self, sweep: Any) -> None:
        """Make the call once more, and run what it records backwards."""
        bars, buffers = sweep.bars, sweep.buffers
        if not any(made in bars or made in buffers for made in self.nodes.values()):
            if not any(memory in buffers for memory in self.stored):
                return
        with self.record.lock:
            segment = self._run()
            try:
                operations = segment.operations
                known = dict(created(operations))
                for key, made in self.nodes.items():
                    if made not in bars and made not in buffers:
                        continue
                    if key not in known:
                        raise self._other()
                    sweep.rename(made, known[key])
                del known
                while operations:
                    operations.pop().pull(sweep)
            finally:
                segment.unsettle()

    def _run(self) -> Segment:
        """Make the call once more; all else stays as it is."""
        record = self.record
        segment = Segment(record)
        try:
            with (
                Changed(record) as changed,
                changed,
                np.errstate(**_unwarned(self.floating)),
                Run(1, tag=record.tag, stays=False, repeats=True, journal=self.journal) as run,
                run,
            ):
                record.tag.alive, record.closed = True, False
                try:
                    memo, known = self.memo
                    run.memo = dict(islice(memo.items(), known))
                    for o, state in self.generators:
                        changed.draw_again(run, o, state)
                    self.surroundings.set_back(run, changed)
                    with segment:
                        y = call(self.f, *self.args, **self.kwargs)
                    run.raise_swallowed()
                finally:
                    record.closed = True
        finally:
            segment.forget()
        del y
        if Fingerprint(segment.operations) != self.fingerprint:
            segment.unsettle()
            raise self._other()
        return segment

    def _other(self) -> NondeterministicFunctionError:
        message = (
            f"{function_name(self.f)} is run again in the reverse pass, because of checkpoint, and "
            "does not compute what it has computed in the forward pass: it depends on something "
            "that fwdad cannot set back (a clock, the operating system's entropy, a file, code in "
            "C that keeps a state), or that was changed since then. Give it what it reads as "
            "arguments, or leave checkpoint away"
        )
        return NondeterministicFunctionError(message)

    def held(self) -> Iterable[Any]:
        """What it keeps in memory."""
        return [self, self.args, self.nodes, self.fingerprint.outside, *self.surroundings.held()]


def _unwarned(floating: Any) -> dict[str, Any]:
    """What NumPy does about floating-point errors; it has warned already."""
    return {k: "ignore" if v in ("warn", "print", "log") else v for k, v in floating.items()}
