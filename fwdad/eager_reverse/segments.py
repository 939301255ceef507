"""Calls that are run again in the reverse pass instead of being recorded.

In the forward pass, such a call is recorded by itself. Its record is then dropped except for a
fingerprint; kept are what the call could reach when it began (:class:`Surroundings`), and which of
its nodes and memories are still in use. In the reverse pass the call is made again under the tag of
its run, with all that restored. It records the same operations on the same nodes from outside, and
these are run backward in the place of the call. If it records anything else, that is an error: its
derivative would be another one.
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
from fwdad.eager.memory.shadow import keep, owner_of, release
from fwdad.eager.run import STATE
from fwdad.eager_reverse.fingerprints import Fingerprint, created
from fwdad.eager_reverse.surroundings import Changed, NotRepeatableError, Surroundings
from fwdad.errors import NondeterministicFunctionError
from fwdad.rules.core.registry import function_name


class Segment:
    """A context manager for what is recorded while one call runs.

    ``operations`` are the call's and ``before`` the list that they would have gone to. ``parts``
    are the nodes of elements by the node of the array, which are not shared with the outside.
    ``settled`` are sums that have become one node, each with its former terms; ``outer`` is the
    enclosing call.
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
        """Make what the call has recorded a part of the enclosing record."""
        self.before.extend(self.operations)
        if self.outer is not None:
            self.outer.settled.extend(self.settled)
        for key, (owner, calls) in self.kept.items():
            self.record.kept.setdefault(key, (owner, []))[1].extend(calls)

    def unsettle(self) -> None:
        """Give sums that have become one node their former terms."""
        for tangent, terms in reversed(self.settled):
            tangent.terms = terms
        self.settled.clear()

    def forget(self) -> None:
        """Stop copying the arrays of the call's operations before they are written."""
        arrays, self.kept = self.kept, {}
        for owner, calls in arrays.values():
            release(owner, calls)


def run_segment(record: Any, f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function that is run again in the reverse pass.

    ``NotRepeatableError``, raised before anything is done, if the call cannot be repeated.
    """
    if threading.get_ident() != record.thread:
        message = "it is called in a different thread from the function that is differentiated"
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
        # the caller may continue, with what the call has done until then
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
    """A call that is repeated in the reverse pass.

    ``nodes`` are the nodes and memories that the call made and that were still in use at its end,
    by the key of :func:`created`. ``fingerprint`` is that of the recorded operations, ``stored``
    the memories from before into which they store.
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

    # -- forward

    def close(self, segment: Segment, noted: dict[int, tuple[Any, Any]]) -> None:
        """End the call: keep the fingerprint of its record, and drop the record."""
        self.generators = list(noted.values())
        self.fingerprint = Fingerprint(segment.operations)
        segment.unsettle()
        self.stored = self.fingerprint.stored
        self._made = {key: weakref.ref(node) for key, node in created(segment.operations)}
        segment.forget()
        segment.operations.clear()

    def find_outputs(self) -> None:
        """Find the nodes and memories of the call to which there are still references."""
        outputs = ((key, ref()) for key, ref in self._made.items())
        self.nodes = {key: node for key, node in outputs if node is not None}
        self._made.clear()

    def release(self) -> None:
        """Give up repeating the call."""
        mine = self.surroundings
        for a in mine.arrays():
            release(owner_of(a), [mine])

    # -- backward

    def pull(self, sweep: Any) -> None:
        """Repeat the call, and run what it records backward."""
        bars, buffers = sweep.bars, sweep.buffers
        if not any(node in bars or node in buffers for node in self.nodes.values()):
            if not any(memory in buffers for memory in self.stored):
                return
        with self.record.lock:
            segment = self._run()
            try:
                operations = segment.operations
                outputs = dict(created(operations))
                for key, node in self.nodes.items():
                    if node not in bars and node not in buffers:
                        continue
                    if key not in outputs:
                        raise self._other()
                    sweep.rename(node, outputs[key])
                del outputs
                while operations:
                    operations.pop().pull(sweep)
            finally:
                segment.unsettle()

    def _run(self) -> Segment:
        """Repeat the call and leave everything else unchanged."""
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
            f"{function_name(self.f)} is run again in the reverse pass, because of checkpoint, "
            "but does not compute the same as in the forward pass: it depends on something that "
            "fwdad cannot reset (a clock, the operating system's entropy, a file, C code that "
            "keeps state), or that has changed since then. Pass what it reads as arguments, or "
            "leave out checkpoint"
        )
        return NondeterministicFunctionError(message)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps."""
        return [self, self.args, self.nodes, self.fingerprint.outside, *self.surroundings.held()]


def _unwarned(floating: Any) -> dict[str, Any]:
    """NumPy's floating-point settings without warnings, which the first run has given."""
    return {k: "ignore" if v in ("warn", "print", "log") else v for k, v in floating.items()}
