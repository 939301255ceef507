"""A loop that runs again from its states, and is reversed a leaf at a time."""

from __future__ import annotations

import operator
from typing import Any

from fwdad.ir.clone import Cloner
from fwdad.ir.ops import Block, Loop, Operand, Value
from fwdad.ir.primitives.checkpoint_schedule import next_stop
from fwdad.ir.primitives.stacks import pop, top
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import BOOL, INT
from fwdad.transforms.reverse.checkpointing.loop_states import States
from fwdad.transforms.reverse.region import zero_number


class Rerun(States):
    """Records one loop's forward and reverse pass."""

    def write(self) -> None:
        """Record both passes."""
        body = Block(list(self.op.body.params), list(self.op.body.ops), list(self.op.body.results))
        source = Loop(
            self.op.span, list(self.op.initial), body, self.op.test, self.op.leaves,
            outputs=self.op.outputs, location=self.op.location,
        )  # fmt: skip
        self.write_down()
        self._back(source)

    # -- the reverse pass

    def _back(self, source: Loop) -> None:
        recorder, writer, state = self.recorder, self.writer, self.state
        count = Symbol(self.op.exec_count, recorder)
        if not self.known:
            self._share(self.default(count) if self.saved is None else self.saved)
        cotangents = {v: self._kept_cotangent(v) for v in state.free_arrays}
        initial = [count, Symbol(self.used, recorder), *self._bars(source), *self._running()]
        end, held = Value(INT, "end"), Value(INT, "snapshots")
        bars = [writer.bar_value(source.outputs[k]) for k in self._active()]
        numbers = [writer.bar_value(v) for v in state.free_numbers]
        params = [end, held, *bars, *numbers]

        def body() -> list[Any]:
            p, left, carried = self._advanced(source, end, held)
            found = self._leaf(source, p, end, carried, bars, numbers, cotangents)
            return [p, self._dropped(p, left), *found]

        def goes_on() -> Any:
            return self._number(operator.gt, Symbol(end, recorder), 0, t=BOOL)

        made = iter(self._while(params, initial, goes_on, body)[2:])
        self._put_back()
        values = [next(made) for _ in (*state.numbers, *state.arrays)]
        for k in state.memory:
            writer.become(source.initial[k], next(made))
        for v in state.free_numbers:
            writer.region.bars[v] = next(made)
        # what the loop begins with may be a number that it also reads from outside
        for k, bar in zip((*state.numbers, *state.arrays), values, strict=True):
            if isinstance(source.initial[k], Value):
                writer.add(source.initial[k], bar, alike=True)

    def _while(self, params: list[Value], initial: list[Any], test: Any, body: Any) -> list[Any]:
        """Record a loop under a condition; return its outputs."""
        recorder = self.recorder
        outer, mark, blocks = recorder.block, recorder.mark(), (Block(), Block(params))
        for v in params:
            recorder.measure(v)
        for block, run in zip(blocks, (lambda: [test()], body), strict=True):
            recorder.block = block
            block.results = [recorder.operand(x) for x in run()]
        recorder.block = outer
        recorder.forget(mark)
        outputs = tuple(Value(v.type, v.name) for v in params)
        given = [recorder.operand(x) for x in initial]
        made = Loop(None, given, blocks[1], blocks[0], outputs=outputs, location=self.op.location)
        recorder.emit(made)
        return [Symbol(v, recorder) for v in outputs]

    def _running(self) -> list[Any]:
        """The cotangents, so far, of numbers from outside."""
        free = self.state.free_numbers
        known = [self.writer.current(v) for v in free]
        return [zero_number(v) if b is None else b for v, b in zip(free, known, strict=True)]

    def _active(self) -> list[int]:
        return [*self.state.numbers, *self.state.arrays, *self.state.memory]

    def _bars(self, source: Loop) -> list[Any]:
        """The cotangents of the loop's outputs."""
        writer, made = self.writer, []
        for k in self._active():
            v = source.outputs[k]
            if k in self.state.memory:
                made.append(writer.memory_of(v))
                continue
            bar = writer.take(v)
            if k in self.state.arrays:
                made.append(writer.zeros(v) if bar is None else writer.whole(v, bar))
            else:
                made.append(zero_number(v) if bar is None else bar)
        return made

    def _kept_cotangent(self, v: Value) -> Symbol:
        """The memory of the cotangent of an array from outside."""
        writer = self.writer
        return writer.memory_of(v) if self.structure.is_memory(v) else writer.buffer(v)

    def _iterations(self, source: Loop, low: Any, high: Any, initial: list[Any]) -> Loop:
        """Some iterations of the loop, from a state."""
        recorder, cloner = self.recorder, Cloner({}, again=True)
        it, body = Value(INT, "at"), Block()
        params = [cloner.fresh(p) for p in source.carried]
        outer, recorder.block = recorder.block, body
        if source.span is not None:
            start, _, step = source.span
            it.name = source.body.params[0].name
            cloner.mapping[source.body.params[0]] = self._counter(it, start, step)
        recorder.block = outer
        tested = [] if source.test is None else source.test.ops
        body.ops.extend(cloner.ops([*tested, *source.body.ops]))
        body.params = [it, *params]
        body.results = [cloner.operand(r) for r in source.body.results[: len(params)]]
        outputs = tuple(Value(p.type, p.name) for p in params)
        given = [recorder.operand(x) for x in initial]
        span = (recorder.operand(low), recorder.operand(high), 1)
        return Loop(span, given, body, outputs=outputs, location=source.location)

    def _counter(self, it: Value, start: Operand, step: Operand) -> Operand:
        """The value of the loop's counter in an iteration."""
        start, step = (Symbol(x, self.recorder) if isinstance(x, Value) else x
                       for x in (start, step))  # fmt: skip
        found: Any = Symbol(it, self.recorder)
        if not (type(step) is int and step == 1):
            found = self._number(operator.mul, found, step)
        if not (type(start) is int and start == 0):
            found = self._number(operator.add, found, start)
        return found.value

    def _restored(self, source: Loop) -> list[Any]:
        """The carried values of the latest state; written arrays get their content back."""
        recorder, state = self.recorder, self.state
        for stack, v in zip(self.kept, state.kept, strict=True):
            recorder.store(Symbol(v, recorder), Ellipsis, self._latest(stack, v.type, top))
        found = [
            self._latest(stack, p.type, top)
            for stack, p in zip(self.stacks, source.carried, strict=True)
        ]
        return [self._own(x.value) if k in state.written else x for k, x in enumerate(found)]

    def _advanced(self, source: Loop, end: Value, held: Value) -> tuple[Any, Any, list[Any]]:
        """Run from the latest state to the leaf before the end, saving further states."""
        recorder = self.recorder
        params = [Value(INT, "at"), Value(INT, "snapshots"),
                  *(Value(q.type, q.name) for q in source.carried)]  # fmt: skip
        p, now, *carried = (Symbol(v, recorder) for v in params)

        def is_far(place: Any) -> Any:
            left = self._number(operator.sub, Symbol(end, recorder), place)
            return self._number(operator.gt, left, self.leaf, t=BOOL)

        def body() -> list[Any]:
            stop = self._number(next_stop, p, Symbol(end, recorder), now, self.places, self.leaf)
            run = self._iterations(source, p, stop, carried)
            recorder.emit(run)
            reached = [Symbol(v, recorder) for v in run.outputs]
            room = self._number(operator.lt, now, self.places, t=BOOL)

            def kept() -> list[Any]:
                self._keep(stop, reached)
                return [self._number(operator.add, now, 1)]

            both = self._number(operator.and_, is_far(stop), room, t=BOOL)
            (count,) = self._branch(both, [INT], kept, lambda: [now])
            return [stop, count, *reached]

        first = self._latest(self.positions, INT, top)
        initial = [first, Symbol(held, recorder), *self._restored(source)]
        at, count, *reached = self._while(params, initial, lambda: is_far(p), body)
        return at, count, reached

    def _leaf(
        self, source: Loop, p: Any, end: Value, carried: list[Any], bars: list[Value],
        numbers: list[Value], cotangents: dict[Value, Symbol],
    ) -> list[Any]:  # fmt: skip
        """Run the last iterations once more and reverse them; return the cotangents before them."""
        recorder, state, structure = self.recorder, self.state, self.structure
        run = self._iterations(source, p, Symbol(end, recorder), carried)
        given = [x.value for x in carried]
        outside = list(dict.fromkeys((*state.free_arrays, *state.free_written)))
        params = [*given, *state.free_numbers, *outside]
        block = Block(params, [run], list(run.outputs))
        is_on = set(self._active())
        active = [
            *(k in is_on for k in range(len(given))),
            *(True for _ in state.free_numbers),
            *(v in cotangents for v in outside),
        ]
        by_place = dict(zip(self._active(), bars, strict=True))
        results = [
            None if k not in is_on or k in state.memory else Symbol(by_place[k], recorder)
            for k in range(len(given))
        ]

        def begin(inner: Any) -> None:
            for v, bar in zip(state.free_numbers, numbers, strict=True):
                inner.region.bars[v] = Symbol(bar, recorder)
            inner.share(cotangents)
            for k in state.memory:
                inner.become(inner.results[k], Symbol(by_place[k], recorder))

        roots = {v: set(structure.roots(v)) for v in outside}
        found = self.writer.pulled(block, active, roots, [p.value], results, begin)
        answers = []
        for k in self._active():
            x_bar, v = found[k], given[k]
            if k in state.numbers:
                answers.append(zero_number(v) if x_bar is None else x_bar)
            elif x_bar is None:
                answers.append(self.writer.zeros(v))
            else:
                answers.append(self.writer.whole(v, x_bar))
        for w, x_bar in zip(state.free_numbers, found[len(given) :], strict=False):
            answers.append(zero_number(w) if x_bar is None else x_bar)
        return answers

    def _dropped(self, p: Any, held: Any) -> Any:
        """Drop the latest state if everything after it is reversed; return how many are left."""
        latest = self._latest(self.positions, INT, top)
        is_latest = self._number(operator.eq, latest, p, t=BOOL)
        later = self._number(operator.gt, p, 0, t=BOOL)  # the first state is needed at the end
        both = self._number(operator.and_, is_latest, later, t=BOOL)

        def drop() -> list[Any]:
            for stack, t in self._all_stacks():
                self._latest(stack, t, pop)
            return [self._number(operator.sub, held, 1)]

        (left,) = self._branch(both, [INT], drop, lambda: [held])
        return left

    def _put_back(self) -> None:
        """Restore memory from before the loop, if it is read, and drop the first state."""
        recorder, state = self.recorder, self.state

        def restore() -> list[Any]:
            self._latest(self.positions, INT, pop)
            for k, (stack, p) in enumerate(zip(self.stacks, self.carried, strict=True)):
                old, v = self._latest(stack, p.type, pop), self.initial[k]
                if k in state.written and self.structure.roots(v) & state.overwritten:
                    recorder.store(Symbol(v, recorder), Ellipsis, old)
            for stack, v in zip(self.kept, state.kept, strict=True):
                recorder.store(Symbol(v, recorder), Ellipsis, self._latest(stack, v.type, pop))
            return []

        ran = self._number(operator.gt, Symbol(self.op.exec_count, recorder), 0, t=BOOL)
        self._branch(ran, [], restore)
