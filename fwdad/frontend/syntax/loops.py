"""Loops, with one body where that is possible, and otherwise unrolled."""

from __future__ import annotations

import ast
import contextlib
import functools
import operator
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from fwdad.core.reentrant_context import EnteredTwice
from fwdad.errors import UntraceableError, is_library_file
from fwdad.frontend.syntax import catching, iteration, iterators, left_generators
from fwdad.frontend.syntax.assignments import Assignments
from fwdad.frontend.syntax.blocks import Blocks
from fwdad.frontend.syntax.control import NotOneBodyError, branch, join_sides, negation
from fwdad.frontend.syntax.frame import FLOW
from fwdad.frontend.syntax.growing_lists.filled import would_grow
from fwdad.frontend.syntax.growing_lists.making import can_grow
from fwdad.frontend.syntax.one_body import TestChangesError, loop
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import KindsDifferError
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.builder.shape_env import LengthNeededError
from fwdad.ir.ops import Block
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import Size

UNROLLED_AT_MOST = 64
_FEW = 4  # iterations that are unrolled at once


class TraceWarning(UserWarning):
    """A loop was unrolled, because its iterations are not one body."""


class _Silent(threading.local):
    on = False


_SILENT = _Silent()


class WithoutWarnings(EnteredTwice):
    """Trace without a :class:`TraceWarning`, which is only for users who asked for a tape."""

    def __init__(self) -> None:
        self._before = _SILENT.on

    def begin(self) -> None:
        """Silence the warning."""
        _SILENT.on = True

    def end(self) -> None:
        """Restore the former setting."""
        _SILENT.on = self._before


class Loops:
    """Execution of loops."""

    def __init__(self, tracer: Tracer, assignments: Assignments, blocks: Blocks) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.values = tracer.values
        self.assignments = assignments
        self.blocks = blocks
        self._told: set[Any] = set()

    def run_While(self, node: ast.While) -> None:
        self.position.at(node)
        self.start_loop()

        def body(_: Any) -> Any:
            self._start_iteration()
            self.blocks.run_block(node.body)
            return self.left()

        def tested(counter: Any) -> Any:
            self._start_iteration()
            stops = negation(self.recorder, self._goes_on(node))
            branch(self.recorder, stops, self._stop, lambda: self.blocks.run_block(node.body))
            return self.left()

        def run() -> None:
            before = self.recorder.latest
            try:
                loop(self.recorder, None, lambda: self._goes_on(node), body)
            except TestChangesError:
                self.recorder.cut_behind(before)
                self.recorder.journal.bind(self.position.frame.locals, "$stop", False)
                loop(self.recorder, None, lambda: True, tested)
                self.recorder.journal.bind(self.position.frame.locals, "$stop", False)

        before = self.recorder.latest
        try:
            self._as_one_body(run, node)
        except UntraceableError as error:
            self.recorder.cut_behind(before)
            self.start_loop()
            self._tell(node, self._run_through(node, error), error)
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if endless and self.position.frame.locals["$return"] is not False:
            self.blocks.has_returned()  # what is left without a `break` is left by `return`
        self._end_loop(node.orelse)

    def _goes_on(self, node: ast.While) -> Any:
        """The condition of a ``while``."""
        return self.tracer.test(node.test)

    def _run_through(self, node: ast.While, error: UntraceableError) -> int:
        """Trace a ``while`` whose condition is known in each iteration; returns their number."""
        count = 0

        def step() -> None:
            nonlocal count
            while True:
                goes_on = self._goes_on(node)
                if type(goes_on) is Symbol and can_grow(self.tracer, error):
                    raise error
                if type(goes_on) is Symbol and self.recorder.ways is not None:
                    taken = self.recorder.ways.assumed(goes_on)
                    goes_on = goes_on if taken is UNBOUND else bool(taken)
                if type(goes_on) is Symbol or count > UNROLLED_AT_MOST:
                    raise error
                if not goes_on:
                    return
                count += 1
                self.blocks.run_block(node.body)
                leaving = self.leaving()
                if leaving is True:
                    return
                if leaving is not False:
                    branch(self.recorder, leaving, lambda: None, step)
                    return

        step()
        return count

    def _stop(self) -> None:
        """Note that the condition of a ``while`` fails: the loop ends as without a ``break``."""
        self.recorder.journal.bind(self.position.frame.locals, "$stop", True)

    def run_For(self, node: ast.For) -> None:
        iterable = self.iterable(node)
        self.start_loop()
        with self.closing(node, iterable):
            self._run_over(node, iterable)
        self._end_loop(node.orelse)

    def iterable(self, node: ast.For) -> Any:
        """What a loop goes over."""
        iterable = self.tracer.evaluate(node.iter)
        self.position.at(node)
        return iteration.iterable(self.tracer, iterable)

    @contextlib.contextmanager
    def closing(self, node: ast.For, iterable: Any) -> Iterator[None]:
        """Close a generator that nobody has but a loop, where this is left."""
        called = self.position.location_of(node.iter), self.position.location_of(node)
        only_here = isinstance(iterable, iterators.Iterator) and iterable.called_at in called

        def leave() -> None:
            if only_here and iterable.pending:
                self.position.at(node)
                left_generators.close(self.tracer, iterable)

        inner = self.position.frame.items if only_here else None
        try:
            with left_generators.running(inner, iterable):
                yield
        except AlwaysRaises:
            leave()
            raise
        leave()

    def _run_over(self, node: ast.For, iterable: Any) -> None:
        steps = iteration.steps(self.tracer, iterable)
        once = isinstance(steps.length, int) and steps.length == 1
        if once or not steps.one_body:
            self._unrolled(node, steps)
        else:

            def body(counter: Any) -> Any:
                self._start_iteration()
                self.assignments.assign(node.target, steps.item(counter))
                self.blocks.run_block(node.body)
                return self.left()

            length = steps.length
            if isinstance(length, int) and length <= UNROLLED_AT_MOST:
                other = functools.partial(self._run_unrolled, node, steps, body)
            else:
                other = functools.partial(self._behind_the_first, node, steps, body)
            self._as_one_body(lambda: loop(self.recorder, steps.span, None, body), node, other)
        steps.unchanged()
        if self.position.frame.locals["$break"] is False:
            iteration.end(self.tracer, iterable)

    def _run_unrolled(
        self, node: ast.For, steps: iteration.Steps, body: Any, error: UntraceableError
    ) -> None:
        """Trace a short loop iteration by iteration; or only the first one, where that is enough.

        The first one may add a key to a dict, or make a name another kind of value.
        """
        if would_grow(self.tracer, error, steps.length):
            raise error
        is_long = steps.length > _FEW and steps.more is None
        if is_long and isinstance(error, NotOneBodyError) and error.grows is dict:
            first = functools.partial(self._first_apart, node, steps, body)
            if self._can_be_traced(first):
                first()
                return
        self._unrolled(node, steps)
        self._tell(node, steps.length, error)

    def _can_be_traced(self, run: Callable[[], None]) -> bool:
        """Whether something can be traced here; nothing is left of the attempt."""
        try:
            with self.recorder.region(Block()) as region:
                region.always = True
                run()
                region.undo()
        except (UntraceableError, AlwaysRaises):
            return False
        return True

    def _first_apart(self, node: ast.For, steps: iteration.Steps, body: Any) -> None:
        """Trace the first iteration of a loop, and one body for all others."""
        start, stop, step = steps.span
        second = self.tracer.binary(operator.add, start, step)

        def rest() -> None:
            loop(self.recorder, (second, stop, step), None, body)

        self.assignments.assign(node.target, steps.item(0))
        self.blocks.run_block(node.body)
        leaving = self.leaving()
        if leaving is False:
            rest()
        elif leaving is not True:
            branch(self.recorder, leaving, lambda: None, rest)

    def _behind_the_first(
        self, node: ast.For, steps: iteration.Steps, body: Any, error: UntraceableError
    ) -> None:
        """Trace a loop behind its first iteration, which makes a name another kind of value.

        ``s = 0.0`` becomes an array in ``s = s + x**k``.
        """
        start, stop, step = steps.span
        of_kinds = isinstance(getattr(error, "refusal", error), KindsDifferError)
        if not of_kinds or type(step) is not int or step != 1:
            self._as_in_the_example(node, steps, body, error)
            return
        run = functools.partial(self._first_apart, node, steps, body)
        runs = self.tracer.truth(self.tracer.binary(operator.lt, start, stop))
        size = getattr(stop.type, "size", None) if type(stop) is Symbol else None
        if isinstance(size, Size) and isinstance(start, int) and size.least > start:
            runs = True
        if type(runs) is Symbol:
            branch(self.recorder, runs, run, lambda: None)
        elif runs:
            run()

    def _as_in_the_example(
        self, node: ast.For, steps: iteration.Steps, body: Any, error: UntraceableError
    ) -> None:
        """Trace a short loop over a range whose ends the tape can take from the example."""
        restarts = isinstance(error, LengthNeededError)
        restarts |= isinstance(error, NotOneBodyError) and error.place is not None
        ends = [UNBOUND] if restarts else [self._known_end(x) for x in steps.span]
        if any(x is UNBOUND for x in ends) or len(range(*ends)) > UNROLLED_AT_MOST:
            raise error
        steps.length = len(range(*ends))
        self._run_unrolled(node, steps, body, error)

    def _known_end(self, x: Any) -> Any:
        return x if type(x) is not Symbol else self.recorder.examples.forced(x.value)

    def start_loop(self) -> None:
        """Note that no jump has been made."""
        for name in ("$break", "$continue"):
            self.recorder.journal.bind(self.position.frame.locals, name, False)

    def _start_iteration(self) -> None:
        """Note that no jump has been made: if it had, the loop would have been left."""
        for name in (*FLOW, "$stop"):
            self.recorder.journal.bind(self.position.frame.locals, name, False)

    def leaving(self) -> Any:
        """Whether to leave the loop after the body; ``continue`` is reset."""
        local_names = self.position.frame.locals
        flags = [local_names["$break"], local_names["$return"], local_names["$stop"]]
        self.recorder.journal.bind(local_names, "$continue", False)
        return self.blocks.any_of(flags)

    def _known_leaving(self, node: ast.For, leaving: Symbol) -> bool:
        """Whether the loop is left, as far as the example decides that."""
        message = (
            "whether a generator is left inside a `try` or `with`, whose end is run there, depends "
            "on a value, which cannot be traced: make a list of its items first"
        )
        local_names = self.position.frame.locals
        self.position.at(node.iter)
        if not self.values.decided(leaving, message):
            self._start_iteration()
            return False
        if self.values.decided(local_names["$return"], message):
            self.recorder.journal.bind(local_names, "$break", False)
            self.blocks.has_returned()
        else:
            self.recorder.journal.bind(local_names, "$return", False)
            self.recorder.journal.bind(local_names, "$break", True)
        return True

    def left(self) -> Any:
        """Whether an iteration of a loop with one body was the last one."""
        recorder = self.recorder
        depth = len(recorder.journal.regions)
        while recorder.journal.regions[depth - 1].point is not None:
            depth -= 1
        _, failed, _ = catching.close(recorder, depth, join_sides)
        if failed is not None:
            raise failed
        return self.blocks.any_of([self.leaving(), *catching.flags(recorder)])

    def _end_loop(self, orelse: list[ast.stmt]) -> None:
        local_names = self.position.frame.locals
        left = local_names["$break"]
        self.recorder.journal.bind(local_names, "$break", False)
        if not orelse:
            return
        jumped = self.blocks.any_of([left, local_names["$return"]])
        if jumped is False:
            self.blocks.run_block(orelse)
        elif jumped is not True:
            returned = self.blocks.has_returned if left is False else lambda: None
            branch(self.recorder, jumped, returned, lambda: self.blocks.run_block(orelse))

    def _as_one_body(
        self,
        run: Callable[[], Any],
        node: ast.stmt,
        other: Callable[[UntraceableError], None] | None = None,
    ) -> None:
        """Trace a loop with one body, or in another way, which is given the reason."""
        location = self.position.location_of(node)
        before = self.recorder.latest
        try:
            run()
        except UntraceableError as error:
            if other is None:
                if error.lineno is None:
                    raise UntraceableError(error.msg, location) from error
                raise
            self.recorder.cut_behind(before)
            self.start_loop()
            other(error)

    def _tell(self, node: ast.stmt, count: int, error: UntraceableError) -> None:
        """Warn that a loop is unrolled, if the user can change it."""
        location = self.position.location_of(node)
        key = location, error.msg
        if key in self._told or _SILENT.on or is_library_file(location.filename):
            return
        self._told.add(key)  # of a loop in another one that is unrolled, too
        warnings.warn(
            f"{location.filename}:{location.line}: this loop is unrolled {count} times, because "
            f"its iterations cannot share one body: {error.msg}",
            TraceWarning,
            stacklevel=2,
        )

    def _unrolled(self, node: ast.For, steps: iteration.Steps) -> None:
        def run(k: int, nested: int) -> None:
            if k > 20 * UNROLLED_AT_MOST or nested > UNROLLED_AT_MOST:
                message = (
                    "a loop that has no end, or a very long one, cannot be traced"
                    if nested <= UNROLLED_AT_MOST
                    else "this loop cannot be traced: its iterations cannot share one body, and "
                    f"values decide at each of more than {UNROLLED_AT_MOST} whether it ends"
                )
                raise UntraceableError(message, self.position.place_of(node))
            self.position.at(node.iter)
            if k == steps.length if steps.more is None else not steps.more(k):
                return
            self.assignments.assign(node.target, steps.item(k))
            self.blocks.run_block(node.body)
            leaving = self.leaving()
            if type(leaving) is Symbol and steps.pending():
                leaving = self._known_leaving(node, leaving)
            if leaving is False:
                run(k + 1, nested)
            elif leaving is not True:
                branch(self.recorder, leaving, lambda: None, lambda: run(k + 1, nested + 1))

        if steps.more is None:
            steps.length = self.values.force(steps.length)  # beside an array, say, in a `zip`
        known = steps.more is not None or isinstance(steps.length, int)
        if not known or (steps.length or 0) > 20 * UNROLLED_AT_MOST:
            message = (
                "this loop cannot be traced: its length is unknown at trace time, or too large"
            )
            raise UntraceableError(message, self.position.place_of(node))
        run(0, 0)
