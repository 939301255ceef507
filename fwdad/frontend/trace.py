"""``trace``: from a function and example arguments to a tape."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from fwdad.core.fallbacks import for_programs
from fwdad.core.tracebacks import public
from fwdad.eager.duals.dual import was_left
from fwdad.eager.memory import stale
from fwdad.errors import (
    UnsupportedTypeError,
    UntraceableError,
    note_place,
    type_in_words,
)
from fwdad.frontend import result_types  # noqa: F401  (installs itself)
from fwdad.frontend.appended import check_items
from fwdad.frontend.arguments import EVERY, UNKNOWN, Flattened, Lengths, leaf_type
from fwdad.frontend.calls import (  # noqa: F401  (install themselves)
    array_methods,
    builtins,
    caches,
    containers,
    draws,
    grids,
    iterables,
    itertools_calls,
    numbers,
    numpy_helpers,
    objects,
    ordered_lists,
    outputs,
    scipy_helpers,
    tapes,
    vectorize,
    whole_trees,
    writers,
)
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.captures import Capture, Captures
from fwdad.frontend.derivatives import evaluators  # noqa: F401  (installs itself)
from fwdad.frontend.nesting import refuse_deep
from fwdad.frontend.results import Results
from fwdad.frontend.retrace import until_traced
from fwdad.frontend.syntax import left_generators
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.merge import container_of
from fwdad.frontend.syntax.raising import AlwaysRaises, may_raise
from fwdad.frontend.syntax.texts import known_part
from fwdad.frontend.tape import Tape, lie_by_rows
from fwdad.frontend.ways import LoopFollowedError, Places, Ways
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.builder.array_contents import holds_ints
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.builder.shape_env import LengthNeededError
from fwdad.ir.ops import Effect, Program, Value, walk
from fwdad.ir.rewrite import give_types
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number, Size
from fwdad.rules.core.registry import function_name
from fwdad.tangents.alike import alike
from fwdad.transforms.passes.copies import observable_orders
from fwdad.transforms.passes.dead import drop_unread


@public
def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Tape:
    """Write a function down as a tape.

    Parameters
    ----------
    f : callable
        A Python function whose source can be read.
    *args, **kwargs
        Example arguments: types, ranks and structure count, numbers do not.

    Returns
    -------
    Tape

    Raises
    ------
    UntraceableError
        If a value would have to be known beforehand; with the user's line and the reason.
    UnsupportedTypeError
        If f is no function.

    Examples
    --------
    >>> import numpy as np
    >>> def f(x):
    ...     return np.sum(x**2)
    >>> print(trace(f, np.ones(3)))
    tape f(x: float64[?]):
        return np.sum(x**2)
    """
    if not callable(f):
        raise UnsupportedTypeError(f"trace takes a function; got {type_in_words(f)}")
    return trace_flat(f, Flattened(args, kwargs))


def trace_flat(
    f: Callable[..., Any],
    flat: Flattened,
    lengths: Lengths = UNKNOWN,
    *,
    equal: bool = False,
    threads: int = 1,
    rows: bool = False,
    follows: bool = False,
) -> Tape:
    """:func:`trace` for flattened arguments.

    The tape takes some ``lengths`` from the example; other lengths of arguments that are equal
    there are assumed to be so if ``equal``. Columns of Jacobians are written in chunks for several
    ``threads``. Where memory order matters, arrays are assumed to be C-contiguous if those of the
    example are and ``rows`` is set. If a length must be known that others determine, the tape takes
    all lengths from the example. Where the ways of a branch cannot be merged, it takes the
    example's if it ``follows``, and checks that.
    """
    by_rows, equal = rows and lie_by_rows(flat.leaves), equal and flat.examples

    follows = follows and flat.examples

    def attempt(recursive: dict[Any, Any], lists: dict[Any, Any], ways: Places) -> Tape:
        nonlocal by_rows, lengths
        while True:
            known = (recursive, lists, ways if follows else None)
            all_known = lengths is EVERY or not flat.examples
            try:
                tape = _trace(f, flat, known, lengths, threads, equal=equal, rows=by_rows)
            except RecursionError:
                if all_known:
                    raise
            except LengthNeededError as error:
                if isinstance(error, LoopFollowedError) and lengths is EVERY:
                    raise
                if all_known:
                    raise error.refusal from error.__cause__
            else:
                if rows and observable_orders(tape.program) is not None:
                    tape.rows = tape.program.rows = lie_by_rows(tape.leaves(flat.leaves))
                if tape.rows is None or tape.rows is by_rows:
                    return tape
                by_rows = False  # captured arrays have another memory order
                continue
            lengths = EVERY
            recursive.clear()  # calls of themselves may have a known end now

    return until_traced(attempt)


def _inputs(recorder: Recorder, flat: Flattened, lengths: Lengths, *, equal: bool) -> list[Value]:
    """A value for each leaf of the arguments."""
    inputs = []
    shared: dict[int, Size] | None = {} if equal else None
    for k, leaf in enumerate(flat.leaves):
        value = Value(leaf_type(leaf, k, example=flat.examples, lengths=lengths, shared=shared))
        inputs.append(value)
        recorder.lengths.measure_input(value)
        if flat.examples and (isinstance(value.type, Number) or holds_ints(leaf)):
            recorder.examples.of[value] = (k, leaf)
    return inputs


def _program(f: Callable[..., Any], recorder: Recorder) -> Program:
    """The recorded operations as a program with f's name."""
    program = Program(function_name(f).split(".")[-1], recorder.block)
    drop_unread(program)
    code = getattr(f, "__code__", None)
    program.filename = code.co_filename if code is not None else ""
    program.quiet = recorder.derives
    program.written = written_parameters(program)
    return program


def _called(tracer: Interpreter, f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The result of the traced function; None of one that always raises."""
    recorder, y = tracer.recorder, None
    try:
        y = tracer.call(f, args, kwargs)
    except AlwaysRaises as raised:
        if not any(may_raise(op) or op.writes() for op in walk(recorder.block)):
            _raise(raised)
        recorder.check(False, raised.exception, raised.arguments, raised.location)
    left_generators.refuse(recorder)
    return y


def _trace(
    f: Callable[..., Any],
    flat: Flattened,
    found: tuple[dict[int, Any], dict[Any, Any], Places | None],
    lengths: Lengths,
    threads: int,
    *,
    equal: bool,
    rows: bool,
) -> Tape:
    recorder = Recorder()
    recorder.rows = rows
    recorder.threads = threads
    recorder.refers_back = flat.refers_back
    recorder.assumes = True
    inputs = _inputs(recorder, flat, lengths, equal=equal)
    same_lengths = _equal_lengths(inputs)  # now: a length that becomes known is no `Size` any more
    recorder.block.params = inputs
    captures = Captures(recorder, len(inputs), lengths)
    recorder.capture = captures.array
    if found[2] is not None:
        examples = [alike(x) if isinstance(x, np.ndarray) else x for x in flat.leaves]

        def known() -> list[tuple[Value, Any]]:
            captured = [(c.value, c.fetch()) for c in captures.found]
            return [*zip(inputs, examples, strict=True), *captured]

        recorder.ways = Ways(recorder, known, found[2])
        recorder.lengths.observe = recorder.ways.length if lengths is EVERY else None
    tracer = Interpreter(recorder, captures, *found[:2])
    call_args, call_kwargs, arguments = flat.rebuild([Symbol(v, recorder) for v in inputs])
    for x in arguments:
        recorder.journal.own(container_of(x), namespace=not isinstance(x, (list, dict)))
    before = [copy.copy(container_of(x)) for x in arguments]
    y = _called(tracer, f, call_args, call_kwargs)
    recorder.examples.check_unwritten(recorder.block)
    rebuild = Results(recorder, arguments, before)
    rebuild.place = tracer.position.returned
    rebuild.returns(y)
    check_items(recorder.block, recorder.lists)
    caches.check_results(recorder)
    recorder.block.params = [*inputs, *(c.value for c in captures.found)]
    recorder.block.results = rebuild.operands
    _settle_lengths(recorder)
    program = _program(f, recorder)
    refuse_deep(program.block)
    if program.quiet:
        _refuse_left(captures.found, program)
    ways = recorder.ways
    output = next((op for op in program.walk() if isinstance(op, Effect)), None)
    if ways is not None and ways.taken and (output is not None or any(program.written)):
        reason = ways.reason or "one tape cannot hold both ways of a branch here"
        at = output.location if output is not None else None
        where = "" if at is None else f" (as {Path(at.filename).name} does in line {at.line})"
        message = (
            f"{reason}. The program could follow its arguments there if it did not write into "
            f"arrays from outside, or put anything out{where}: where another way is taken, it "
            "could not be run again"
        )
        raise UntraceableError(message, ways.place)
    alone = frozenset(
        k
        for k, (p, held) in enumerate(zip(program.block.params, program.written, strict=True))
        if held or p in recorder.alone
    )
    _check_read_whole(tracer, captures, alone, len(inputs))
    return Tape(
        program,
        captures.found,
        [*recorder.lengths.length_guards, *captures.assumed(flat.leaves)],
        same_lengths,
        recorder.examples.value_guards,
        [*_unique(tracer.outside.guards), *captures.structures],
        rebuild,
        flat.key,
        recorder.split,
        recorder.prints,
        alone,
        frozenset(k for k, p in enumerate(program.block.params) if p in recorder.copied),
        recorder.cut,
        follows=ways is not None and ways.taken,
        followed_at=None if ways is None else ways.place,
        catches=ways is not None and ways.catches,
        same_objects=captures.same,
    )


def _check_read_whole(tracer: Interpreter, captures: Captures, alone: Any, first: int) -> None:
    """Refuse to write into an array that code without a source has read through an object."""
    tracer.outside.check_known_calls(writes=any(k >= first for k in alone))
    for k in alone:
        written = captures.found[k - first].fetch() if k >= first else None
        if not isinstance(written, np.ndarray):
            continue
        kind, *_ = captures.found[k - first].path
        read_whole = kind == "object" and not any(written is a for a in tracer.outside.bound_arrays)
        if read_whole or any(np.may_share_memory(a, written) for a in tracer.outside.made_arrays):
            message = (
                "an array is written that is held by a library object made at trace time, so the "
                "next call would find what this one has left: make the object before the call, or "
                "write into a copy"
            )
            ops = walk(captures.recorder.block)
            places = (op.location for op in ops if captures.found[k - first].value in op.writes())
            raise UntraceableError(message, next(places, tracer.position.returned))
        for a in tracer.outside.read_arrays:
            if np.may_share_memory(a, written):
                message = (
                    "an array is written that an object from outside the function holds, too, and "
                    "code without Python source has read that object. This cannot be traced: pass "
                    "the array itself, or make the object from it inside the function"
                )
                raise UntraceableError(message, tracer.position.returned)


def _refuse_left(found: list[Capture], program: Program) -> None:
    """Refuse a derivative that reads stale values from outside and does not write them."""
    first = len(program.block.params) - len(found)
    for c, written in zip(found, program.written[first:], strict=True):
        if not written and stale.is_left(c.fetch()):
            raise UntraceableError(was_left(f"`{c.value.name}`"))


def _settle_lengths(recorder: Recorder) -> None:
    """Give values the lengths that are assumed by now."""
    if not recorder.lengths.known:
        return
    give_types(recorder.block, recorder.lengths.resolved)


def _equal_lengths(inputs: list[Value]) -> list[tuple[int, int, int, int]]:
    """The lengths of inputs that share a ``Size`` with another axis."""
    return [
        (k, axis, *d.origin)
        for k, value in enumerate(inputs)
        for axis, d in enumerate(value.type.shape)
        if isinstance(d, Size) and d.origin is not None and d.origin != (k, axis)
    ]


def _unique(guards: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Each guard once, without those in modules of ours and of libraries, which nobody replaces."""
    unique = {}
    for path, x in guards:
        place = tuple(p if isinstance(p, str) else id(p) for p in path)
        name = path[1].get("__name__", "") if path[0] == "item" else ""
        name = name if isinstance(name, str) else ""
        if not name.startswith(("fwdad.", "numpy", "scipy")):
            unique[place] = (path, x)
    return list(unique.values())


@for_programs
def _raise(raised: AlwaysRaises) -> NoReturn:
    """Raise the exception of a program that raises whatever its arguments are."""
    exception = raised.exception
    if isinstance(exception, type):
        known = [known_part(a) if mentions_symbols(a) else a for a in raised.arguments]
        exception = exception(*known)
    note_place(exception, raised.location)
    raise exception
