"""``checkpoint``: functions whose loops and calls are run again in the reverse pass."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from fwdad.core.tracebacks import public
from fwdad.eager.calls.dispatch import call, on_call
from fwdad.eager.lifting.reached import Carrier
from fwdad.eager.run import STATE
from fwdad.eager_reverse.segments import run_segment
from fwdad.eager_reverse.surroundings import NotRepeatableError
from fwdad.errors import type_in_words
from fwdad.evaluation.signatures import P, R, Same
from fwdad.frontend.calls.checkpointed_call import sealed
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax.loops import TraceWarning
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Checkpoint
from fwdad.rules.core.registry import function_name


class Checkpointed(Carrier):
    """A function that is run again in the reverse pass; made by :func:`checkpoint`."""

    def __init__(
        self, f: Callable[..., Any], snapshots: int | None = None, memory: int | None = None
    ) -> None:
        functools.update_wrapper(self, f)
        self.__wrapped__ = f
        self.snapshots = snapshots
        self.memory = memory

    @public  # of which a tape takes the inside, and not the `try`
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return _called(self.__wrapped__, self.snapshots, self.memory, args, kwargs)

    def __get__(self, owner: Any, _cls: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def _made_by(self) -> Any:
        return (Checkpointed, (self.__wrapped__, self.snapshots, self.memory))


def _called(
    f: Callable[..., Any], _snapshots: Any, _memory: Any, args: Any, kwargs: dict[str, Any]
) -> Any:
    return f(*args, **kwargs)


@builtin(_called)
def _traced(tracer: Tracer, f: Any, snapshots: Any, memory: Any, args: Any, kwargs: Any) -> Any:
    recorder, known = tracer.recorder, tracer.values.known
    how = Checkpoint(known(snapshots), known(memory))  # literals of f's are inputs
    outer, recorder.checkpoint = recorder.checkpoint, how
    try:
        # what is differentiated itself is not called by anything that is run backwards
        if recorder.pulled_at < 0 or tracer.position.depth <= recorder.pulled_at + 1:
            return tracer.call(f, args, kwargs)
        return sealed(recorder, recorder.checkpoint, lambda: tracer.call(f, args, kwargs))
    finally:
        recorder.checkpoint = outer


@on_call(Checkpointed)
def _on_duals(f: Checkpointed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call while Python runs: recorded now, and made again in the reverse pass."""
    run = STATE.run
    record = None if run is None else run.tag.record
    reason = None
    if record is not None:
        if record.whole is f:  # nobody who is run backwards has called it
            record.whole = None
            reason = (
                "the run is recorded, where checkpoint works on calls inside the differentiated "
                "function, not on that function itself"
            )
        else:
            try:
                return run_segment(record, f.__wrapped__, args, kwargs)
            except NotRepeatableError as error:
                reason = str(error)
    elif _is_recorded_outside(run):
        reason = "it is called inside another derivative, in a recorded run"
    if reason is not None:
        message = (
            f"checkpoint has no effect on {function_name(f.__wrapped__)}: {reason}, so "
            "everything is kept. fwdad.explain says why there is no tape"
        )
        warnings.warn(message, TraceWarning, stacklevel=2)
    return call(f.__wrapped__, *args, **kwargs)


def _is_recorded_outside(run: Any) -> bool:
    """Whether a call around this one writes its tangents down."""
    while run is not None:
        if run.tag.record is not None:
            return True
        run = run.outer
    return False


@overload
def checkpoint(
    f: Callable[P, R], *, snapshots: int | None = None, memory: int | None = None
) -> Callable[P, R]: ...
@overload
def checkpoint(
    f: None = None, *, snapshots: int | None = None, memory: int | None = None
) -> Same: ...
@public
def checkpoint(
    f: Callable[..., Any] | None = None, *, snapshots: int | None = None, memory: int | None = None
) -> Any:
    """Run the loops of a function again in the reverse pass, instead of keeping what they need.

    Reverse mode keeps, for each iteration of a loop, the numbers and arrays that its reverse pass
    needs. Under ``checkpoint`` a loop keeps its state at the beginning of *some* iterations: what
    it carries from one to the next, and those arrays that it writes of which an iteration reads
    what a later one overwrites. From there it is run again when its turn comes. Where such a
    function is called by one that is differentiated, the call as a whole is run again: nothing that
    it computes is kept until then. Values and derivatives have the bits that they have without.

    Parameters
    ----------
    f : callable, optional
        Any NumPy program. Without it, a decorator is returned.
    snapshots : int, optional
        How many states may be kept, one at least. Where a state is numbers only, a third of them
        are those of iterations in a row.
    memory : int, optional
        How many bytes these states may take; one is kept in any case. With neither, ``3 *
        n**(1/3)`` states are kept of a loop of n iterations: 300 of a million.

    Returns
    -------
    callable
        With f's signature; it returns what f does. Without derivatives, and in forward mode, it is
        f.

    Raises
    ------
    TypeError, ValueError
        If f is no function, a number is no positive int, or both numbers are given.
    NondeterministicFunctionError
        In the reverse pass of what is recorded, if a call does not compute once more what it has
        computed.

    Notes
    -----
    It holds for the outermost loops that f runs, those of functions that it calls among them; what
    one iteration needs is kept while that iteration is run backwards, loops inside it included.
    Write ``checkpoint`` around a function that is called in there to run it again as well.

    *How often an iteration runs.* Of a loop over a range without ``break``, s states and n
    iterations: ``t + 2`` times at most, the forward pass included, where t is the smallest number
    with ``C(s + t, t) >= n``: the binomial schedule [1]_, which is the best there is. With the
    default t is 3 or less. Of a loop whose length is not known (``while``, ``break``) every second
    state is given up, and the distance between them doubled, when half of the places are taken
    [2]_; in the reverse pass each of these distances is a loop of known length, with the other
    half: t is the smallest number with ``C(s / 2 + t, t) >= 8 * n / s``. Give such loops four
    states or more; with fewer, an iteration may run n times.

    A call is run once more, and keeps copies of those arrays from outside that it overwrites, if
    somebody reads them in the reverse pass; the loops in it are then run again as said above. Not
    run again are calls that change or return lists, dicts or objects, or return an array of the
    caller's that they write into, those of a recursive function by itself, and loops in which
    arrays that are written change places in other ways than being exchanged.

    What cannot be traced (``fwdad.explain`` says why) is recorded as it runs. There a call of f is
    run again as a whole, whatever the two numbers are, and keeps what it is given: references to
    its arguments, and to what its code can reach (closures, globals, objects), with a copy of each
    such array once somebody writes into it; beside that what its result keeps, a few kilobytes, and
    while it runs what one call records. It runs once more for each pull of cotangents (twice, where
    a partial is infinite), inside d other such calls d times more. What it writes, random
    generators among it, is set back first. The second run is compared with the first, all numbers
    that the reverse pass uses: where they differ (a clock, a file, the operating system's entropy)
    the pull raises. Single iterations are not run again; if f itself is differentiated, or calls in
    a run around another derivative, or can reach an iterator, an array of objects, or is called in
    another thread, it keeps everything, with a ``TraceWarning``. Derivatives equal those without
    ``checkpoint`` to rounding: where elements of an array are read both inside and outside, their
    cotangents are added up in another order. ``fwdad.memory_report`` tells what is kept.

    References
    ----------
    .. [1] Griewank and Walther (2000), "Algorithm 799: revolve", doi:10.1145/347837.347846.
    .. [2] Wang, Moin and Iaccarino (2009), "Minimal repetition dynamic checkpointing algorithm for
       unsteady adjoint calculation", doi:10.1137/080727890.

    Examples
    --------
    >>> import fwdad
    >>> @checkpoint(snapshots=20)
    ... def power(x, n):
    ...     r = 1.0
    ...     for _ in range(n):
    ...         r *= x
    ...     return r
    >>> fwdad.grad(power)(3.0, 9)
    59049.0
    """
    if snapshots is not None and memory is not None:
        raise ValueError("snapshots and memory are both given: pass only one")
    for name, value in (("snapshots", snapshots), ("memory", memory)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be an int, not {type_in_words(value)}")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    if f is None:
        return lambda g: checkpoint(g, snapshots=snapshots, memory=memory)
    if not callable(f):
        raise TypeError(f"checkpoint takes a function, not {type_in_words(f)}")
    return Checkpointed(
        f, None if snapshots is None else int(snapshots), None if memory is None else int(memory)
    )
