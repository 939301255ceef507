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
from fwdad.transforms.reverse.checkpointing.code import Code, Inner
from fwdad.transforms.reverse.checkpointing.loop_states import State, States
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Rerun:
    """Records one loop's forward and reverse pass."""

    def __init__(
        self,
        sweep: Sweep,
        spaces: Spaces,
        view_cotangents: ViewCotangents,
        cotangents: Cotangents,
        inner: Inner,
        op: Loop,
        state: State,
    ) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder
        self.code = Code(sweep)
        self.structure = sweep.structure
        self.spaces = spaces
        self.view_cotangents = view_cotangents
        self.cotangents = cotangents
        self.inner = inner
        self.op = op
        self.state = state
        self.states = States(sweep, op, state)

    def write(self) -> None:
        """Record both passes."""
        body = Block(list(self.op.body.params), list(self.op.body.ops), list(self.op.body.results))
        source = Loop(
            self.op.span, list(self.op.initial), body, self.op.test, self.op.leaves,
            outputs=self.op.outputs, location=self.op.location,
        )  # fmt: skip
        self.states.write_down()
        self._reverse(source)

    # -- the reverse pass

    def _reverse(self, source: Loop) -> None:
        recorder, state, states = self.recorder, self.state, self.states
        count = Symbol(self.op.exec_count, recorder)
        if not states.known:
            states.divide(states.default(count) if states.saved is None else states.saved)
        cotangents = {v: self.cotangents.in_memory(v) for v in state.free_arrays}
        initial = [count, Symbol(states.used, recorder), *self._bars(source), *self._running()]
        end, count_left = Value(INT, "end"), Value(INT, "snapshots")
        bars = [self.spaces.bar_value(source.outputs[k]) for k in self._active()]
        numbers = [self.spaces.bar_value(v) for v in state.free_numbers]
        params = [end, count_left, *bars, *numbers]

        def body() -> list[Any]:
            p, left, carried = self._advanced(source, end, count_left)
            x_bars = self._leaf(source, p, end, carried, bars, numbers, cotangents)
            return [p, self._dropped(p, left), *x_bars]

        def goes_on() -> Any:
            return self.code.number(operator.gt, Symbol(end, recorder), 0, t=BOOL)

        outputs = iter(self._while(params, initial, goes_on, body)[2:])
        self._restore()
        values = [next(outputs) for _ in (*state.numbers, *state.arrays)]
        for k in state.memory:
            self.cotangents.become(source.initial[k], next(outputs))
        for v in state.free_numbers:
            self.sweep.region.bars[v] = next(outputs)
        # what the loop begins with may be a number that it also reads from outside
        for k, bar in zip((*state.numbers, *state.arrays), values, strict=True):
            if isinstance(source.initial[k], Value):
                self.cotangents.add(source.initial[k], bar, alike=True)

    def _while(self, params: list[Value], initial: list[Any], test: Any, body: Any) -> list[Any]:
        """Record a loop under a condition; return its outputs."""
        recorder = self.recorder
        outer, mark, blocks = recorder.block, recorder.lengths.mark(), (Block(), Block(params))
        for v in params:
            recorder.lengths.measure(v)
        for block, run in zip(blocks, (lambda: [test()], body), strict=True):
            recorder.block = block
            block.results = [recorder.operand(x) for x in run()]
        recorder.block = outer
        recorder.lengths.forget(mark)
        outputs = tuple(Value(v.type, v.name) for v in params)
        given = [recorder.operand(x) for x in initial]
        loop = Loop(None, given, blocks[1], blocks[0], outputs=outputs, location=self.op.location)
        recorder.emit(loop)
        return [Symbol(v, recorder) for v in outputs]

    def _running(self) -> list[Any]:
        """The cotangents, so far, of numbers from outside."""
        free = self.state.free_numbers
        return [self.spaces.whole(v, self.cotangents.current(v)) for v in free]

    def _active(self) -> list[int]:
        return [*self.state.numbers, *self.state.arrays, *self.state.memory]

    def _bars(self, source: Loop) -> list[Any]:
        """The cotangents of the loop's outputs."""
        state, outputs = self.state, source.outputs
        values = [outputs[k] for k in (*state.numbers, *state.arrays)]
        bars = [self.spaces.whole(v, self.cotangents.take(v)) for v in values]
        return [*bars, *(self.view_cotangents.memory_of(outputs[k]) for k in state.memory)]

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
        counter: Any = Symbol(it, self.recorder)
        if not (type(step) is int and step == 1):
            counter = self.code.number(operator.mul, counter, step)
        if not (type(start) is int and start == 0):
            counter = self.code.number(operator.add, counter, start)
        return counter.value

    def _restored(self, source: Loop) -> list[Any]:
        """The carried values of the latest state; written arrays get their content back."""
        recorder, state = self.recorder, self.state
        for stack, v in zip(self.states.kept, state.kept, strict=True):
            recorder.store(Symbol(v, recorder), Ellipsis, self.code.latest(stack, v.type, top))
        carried = [
            self.code.latest(stack, p.type, top)
            for stack, p in zip(self.states.stacks, source.carried, strict=True)
        ]
        return [self.code.own(x.value) if k in state.written else x for k, x in enumerate(carried)]

    def _advanced(self, source: Loop, end: Value, snapshots: Value) -> tuple[Any, Any, list[Any]]:
        """Run from the latest state to the leaf before the end, saving further states."""
        recorder, states, last = self.recorder, self.states, Symbol(end, self.recorder)
        params = [Value(INT, "at"), Value(INT, "snapshots"),
                  *(Value(q.type, q.name) for q in source.carried)]  # fmt: skip
        p, now, *carried = (Symbol(v, recorder) for v in params)

        def is_far(place: Any) -> Any:
            left = self.code.number(operator.sub, last, place)
            return self.code.number(operator.gt, left, states.leaf, t=BOOL)

        def body() -> list[Any]:
            stop = self.code.number(next_stop, p, last, now, states.places, states.leaf)
            run = self._iterations(source, p, stop, carried)
            recorder.emit(run)
            reached = [Symbol(v, recorder) for v in run.outputs]
            room = self.code.number(operator.lt, now, states.places, t=BOOL)

            def kept() -> list[Any]:
                states.keep(stop, reached)
                return [self.code.number(operator.add, now, 1)]

            both = self.code.number(operator.and_, is_far(stop), room, t=BOOL)
            (count,) = self.code.branch(both, [INT], kept, lambda: [now])
            return [stop, count, *reached]

        first = self.code.latest(states.positions, INT, top)
        initial = [first, Symbol(snapshots, recorder), *self._restored(source)]
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

        def begin(inner: Cotangents, results: list[Operand]) -> None:
            for v, bar in zip(state.free_numbers, numbers, strict=True):
                inner.sweep.region.bars[v] = Symbol(bar, recorder)
            inner.share(cotangents)
            for k in state.memory:
                inner.become(results[k], Symbol(by_place[k], recorder))

        roots = {v: set(structure.roots(v)) for v in outside}
        x_bars = self.inner.pulled(block, active, roots, [p.value], results, begin)
        returned = [(given[k], x_bars[k]) for k in self._active()]
        returned += zip(state.free_numbers, x_bars[len(given) :], strict=False)
        return [self.spaces.whole(v, x_bar) for v, x_bar in returned]

    def _dropped(self, p: Any, snapshots: Any) -> Any:
        """Drop the latest state if everything after it is reversed; return how many are left."""
        latest = self.code.latest(self.states.positions, INT, top)
        is_latest = self.code.number(operator.eq, latest, p, t=BOOL)
        later = self.code.number(operator.gt, p, 0, t=BOOL)  # the first state is needed at the end
        both = self.code.number(operator.and_, is_latest, later, t=BOOL)

        def drop() -> list[Any]:
            for stack, t in self.states.all_stacks():
                self.code.latest(stack, t, pop)
            return [self.code.number(operator.sub, snapshots, 1)]

        (left,) = self.code.branch(both, [INT], drop, lambda: [snapshots])
        return left

    def _restore(self) -> None:
        """Restore memory from before the loop, if it is read, and drop the first state."""
        recorder, state, states = self.recorder, self.state, self.states

        def restore() -> list[Any]:
            self.code.latest(states.positions, INT, pop)
            for k, (stack, p) in enumerate(zip(states.stacks, states.carried, strict=True)):
                old, v = self.code.latest(stack, p.type, pop), states.initial[k]
                if k in state.written and self.structure.roots(v) & state.overwritten:
                    recorder.store(Symbol(v, recorder), Ellipsis, old)
            for stack, v in zip(states.kept, state.kept, strict=True):
                recorder.store(Symbol(v, recorder), Ellipsis, self.code.latest(stack, v.type, pop))
            return []

        ran = self.code.number(operator.gt, Symbol(self.op.exec_count, recorder), 0, t=BOOL)
        self.code.branch(ran, [], restore)
