"""Reversal of recursion: a program that calls itself, and another one that reverses its calls.

In the forward pass each call pushes its residuals onto stacks, as its last action; the calls that
it made have already pushed theirs. In the reverse pass calls pop them, latest call first. So the
stacks are parameters of both programs, and their number does not grow with the depth. The reverse
pass of a call gets the call's arguments again, and memory to which the cotangents of its arrays are
added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from fwdad.ir.analysis.alias import memory, memory_of, written_parameters
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.clone import Cloner
from fwdad.ir.ops import Apply, Block, Call, Operand, Program, Value, is_array, walk
from fwdad.ir.primitives.stacks import pop, push, thin, top
from fwdad.ir.rewrite import defined_by
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Type, number_type
from fwdad.transforms.passes import called_from
from fwdad.transforms.reverse.bar_stacks import BarStacks
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.normalize.normal_form import normalize
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.region import Blocks, Region
from fwdad.transforms.reverse.residuals import Residuals
from fwdad.transforms.reverse.restores import Restores
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Setting, Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Interface:
    """What a program that is called takes and returns.

    Attributes
    ----------
    is_stack : list of bool
        Which parameters are stacks, in a forward or reverse pass that is reversed itself.
    returned : list of bool
        Which results may be active.
    """

    def __init__(self, program: Program) -> None:
        stacks = _stacks(program)
        self.is_stack = [p in stacks for p in program.block.params]
        self.returned = [_type_of(r).dtype.kind in "fc" for r in program.block.results]

    def arguments(self, args: Sequence[Any]) -> list[Any]:
        """The items for those arguments of a call that the reverse pass gets again: no stacks."""
        return [x for x, stacked in zip(args, self.is_stack, strict=True) if not stacked]


class Passes:
    """The forward and reverse pass of a called program.

    ``active`` says which parameters carry derivatives, ``restores`` whether ``reverse`` restores
    what the program overwrites in its arguments.

    Attributes
    ----------
    forward, reverse : Program
        Both take the stacks last. ``reverse`` takes the arguments other than stacks, a cotangent
        for each active result, and for each active array memory for its cotangent, or a stack for
        that of a stack; it returns the cotangents of active numbers.
    own, stacks : list of Value
        Its own stacks, and all stacks with those of the programs that it calls.
    """

    def __init__(self, program: Program, active: tuple[bool, ...], restores: bool) -> None:
        self.program = program  # keeps it, and its id, alive
        self.active = active
        self.restores = restores
        self.interface = Interface(program)
        self.forward = Program(f"{program.name}_forward", Block(), program.filename, quiet=True)
        self.reverse = Program(f"{program.name}_reverse", Block(), program.filename, quiet=True)
        self.own: list[Value] = []
        self.stacks: list[Value] = []
        params = program.block.params
        memory = [is_array(p) for p, is_on in zip(params, active, strict=True) if is_on]
        # and the stacks, as soon as they are known
        self.forward.written = list(program.written)
        again = self.interface.arguments(program.written)
        returned = sum(self.interface.returned)
        self.reverse.written = [*again, *[False] * returned, *[True] * sum(memory)]


class Group:
    """Programs that call one another, while their forward and reverse passes are recorded."""

    def __init__(self) -> None:
        self.passes: dict[Any, Passes] = {}

    def finish(self) -> None:
        """Give each program the stacks that it uses, and pass them on to those that it calls."""
        every = list(self.passes.values())
        by_program = {id(p): passes for passes in every for p in (passes.forward, passes.reverse)}
        for passes in every:
            reached = {id(p) for p in called_from(passes.forward)}
            passes.stacks = [s for w in every if id(w.forward) in reached for s in w.own]
        for passes in every:
            for program in (passes.forward, passes.reverse):
                own = {stack: Value(stack.type, stack.name) for stack in passes.stacks}
                for op in walk(program.block):
                    op.replace(lambda v, own=own: own.get(v, v))  # type: ignore[misc]
                    if isinstance(op, Call) and id(op.program) in by_program:
                        op.args.extend(own[s] for s in by_program[id(op.program)].stacks)
                program.block.params.extend(own.values())
                program.written = [False] * len(program.block.params)
        programs = [p for passes in every for p in (passes.forward, passes.reverse)]
        while any(_note_written(program) for program in programs):
            pass


def _note_written(program: Program) -> bool:
    """Note which parameters a program writes; return whether that is new."""
    before, program.written = program.written, written_parameters(program)
    return before != program.written


class ReversedCall(NamedTuple):
    """A call, and the one that reverses it; ``only_restores``: there are no cotangents."""

    op: Call
    back: Call
    active: tuple[bool, ...]
    only_restores: bool


class CalledPass(Protocol):
    """The reverse pass of a program that is called."""

    recursion: Recursion
    results: list[Operand]


class ReversePass(Blocks, Protocol):
    """What records a whole reverse pass."""

    def finish(self) -> None:
        """Restore what the recorded reverse pass reads, and resolve what it uses."""


class NewPass(Protocol):
    """What begins the reverse pass of a program that is called: :class:`Pullback`."""

    def __call__(
        self,
        recorder: Recorder,
        block: Block,
        given: list[Symbol],
        active: list[bool],
        *,
        setting: Setting,
        group: Group,
    ) -> CalledPass:
        """The reverse pass of a block, of which nothing is recorded yet."""


class Recursion:
    """Reverses calls of programs.

    ``group`` is that in which the reversed program is itself, if it is called.
    """

    def __init__(
        self,
        sweep: Sweep,
        spaces: Spaces,
        view_cotangents: ViewCotangents,
        overwriting: Overwriting,
        cotangents: Cotangents,
        bar_stacks: BarStacks,
        residuals: Residuals,
        restores: Restores,
        blocks: ReversePass,
        new_pass: NewPass,
        group: Group | None,
    ) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder
        self.structure = sweep.structure
        self.activity = sweep.structure.activity
        self.spaces = spaces
        self.view_cotangents = view_cotangents
        self.overwriting = overwriting
        self.cotangents = cotangents
        self.bar_stacks = bar_stacks
        self.residuals = residuals
        self.restores = restores
        self.blocks = blocks
        self.new_pass = new_pass
        self.group = group
        self._stacks: dict[Value, Value] = {}  # of called programs: what they are in this one
        self._groups: dict[Any, Group] = {}
        self._calls: list[ReversedCall] = []

    def reverse(self, op: Call) -> None:
        """Reverse a call of a program."""
        structure = self.structure
        if op.adjoint is not None and not structure.activity.any_active(op.outputs):
            return
        bars = [
            self.cotangents.take(v) if structure.activity.is_active(v) else None for v in op.outputs
        ]
        if op.adjoint is None:
            self._call_reverse(op, bars)
            return
        for k, v in enumerate(op.outputs):
            if bars[k] is not None or v.type.dtype.kind in "fc":
                bars[k] = self.spaces.of_own_dtype(v, self.spaces.whole(v, bars[k]))
        args = [self.sweep.symbols(a) for a in op.args]
        x_bars = op.adjoint(args, [self.sweep.symbols(v) for v in op.outputs], bars)
        for a, bar in zip(op.args, x_bars, strict=False):
            if isinstance(a, Value) and bar is not None:
                self.cotangents.add(a, bar)

    def _call_reverse(self, op: Call, bars: list[Any]) -> None:
        """Call the reverse pass of a program, and let the forward pass keep what it needs."""
        name = op.program.name
        written = [v for v in op.writes() if self.activity.is_active(v)]
        only_restores = all(bar is None for bar in bars) and not written
        if only_restores and not op.writes():
            return
        if not all(map(self.view_cotangents.is_followed, written)):
            self.sweep.fail(f"{name} calls itself and writes into what may be a copy")
        for v in op.outputs:
            if is_array(v) and self.structure.is_memory(v) and _may_be_argument(op, v):
                self.sweep.fail(f"{name} calls itself, and what it returns may be written: copy it")
        pattern = tuple(not only_restores and self.activity.is_active(a) for a in op.args)
        interface, args = Interface(op.program), list(op.args)
        given = [
            self.spaces.of_own_dtype(v, self.spaces.whole(v, bar))
            for v, bar, returned in zip(op.outputs, bars, interface.returned, strict=True)
            if returned
        ]
        marks = zip(args, pattern, interface.is_stack, strict=True)
        places = [(a, stacked) for a, is_on, stacked in marks if is_on and is_array(a)]
        bar_memory = [self.bar_stacks.of(a) if stacked else self._place(a) for a, stacked in places]
        again = interface.arguments(args)
        operands = [*again, *(self.recorder.operand(x) for x in (*given, *bar_memory))]
        numbers = [a for a, is_on in zip(args, pattern, strict=True) if is_on and not is_array(a)]
        outputs = tuple(Value(self.spaces.bar_type(a)) for a in numbers)
        back = Call(Program(name, Block()), operands, outputs=outputs, location=op.location)
        if only_restores:
            with self.restores.only_for([op]):
                self.recorder.emit(back)
        else:
            self.recorder.emit(back)
        self._calls.append(ReversedCall(op, back, pattern, only_restores))
        for a, v in zip(numbers, outputs, strict=True):
            self.cotangents.add(a, Symbol(v, self.recorder))
        for (a, _), x in zip(places, bar_memory, strict=True):
            if self.structure.is_memory(a) and not self.view_cotangents.is_followed(a):
                self.cotangents.add(a, x)

    def define_calls(self) -> None:
        """Let calls call the forward and reverse passes of their programs."""
        for op, back, pattern, only_restores in self._calls:
            restores = self.overwriting.is_restored(op)
            if restores or not only_restores:
                passes, group = self._passes_of(op.program, pattern, restores)
                stacks = self._stacks_of(passes, group)
                op.program, op.args = passes.forward, [*op.args, *stacks]
                back.program, back.args = passes.reverse, [*back.args, *stacks]

    def _place(self, v: Value) -> Symbol:
        """The memory to which the cotangent of an array is added."""
        if self.structure.is_memory(v) and not self.view_cotangents.is_followed(v):
            return self.spaces.zeros(v)
        return self.cotangents.target(v)

    def _stacks_of(self, passes: Passes, group: Group) -> list[Value]:
        """The stacks of a program, in the one that is recorded; none as yet in its own group."""
        if group is self.group:
            return []
        for stack in passes.stacks:
            if stack not in self._stacks:
                self._stacks[stack] = self.sweep.new_stack(stack.type, stack.name)
        return [self._stacks[stack] for stack in passes.stacks]

    def _passes_of(
        self, program: Program, active: tuple[bool, ...], restores: bool
    ) -> tuple[Passes, Group]:
        """A program's forward and reverse pass, recorded once."""
        key = (id(program), active, restores)
        if self.group is not None:
            if key not in self.group.passes:
                self._define(self.group, key, program)
            return self.group.passes[key], self.group
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group()
            self._define(group, key, program)
            group.finish()
        return group.passes[key], group

    def _define(self, group: Group, key: Any, program: Program) -> None:
        passes = group.passes[key] = Passes(program, *key[1:])
        setting = Setting(is_called=True, restores=passes.restores)
        block, recorder = Cloner({}).block(program.block), Recorder()
        normalize(recorder, block)
        given = [Symbol(Value(p.type, p.name), recorder) for p in block.params]
        for symbol in given:
            recorder.lengths.measure(symbol.value)
        active = list(passes.active)
        inner = self.new_pass(recorder, block, given, active, setting=setting, group=group)
        inner.recursion.record_passes(passes, given, inner.results)

    def record_passes(self, passes: Passes, given: list[Symbol], results: list[Operand]) -> None:
        """Record the forward and reverse pass of a called program into ``passes``.

        ``given`` are the parameters of the block, which must be the program's own.
        """
        recorder, region, source = self.recorder, self.sweep.region, self.sweep.region.source
        forward = recorder.block
        params = [symbol.value for symbol in given]
        again = [Value(p.type, p.name) for p in params]
        bars = [
            self.spaces.bar_value(r) if isinstance(r, Value) else Value(_type_of(r))
            for r, returned in zip(results, passes.interface.returned, strict=True)
            if returned
        ]
        on = [p for p, is_on in zip(params, passes.active, strict=True) if is_on]
        arrays = [p for p in on if is_array(p)]
        bar_memory = [self.spaces.bar_value(p) for p in arrays]
        region.parent = Region(Block(), Block())  # what it needs of the forward pass is kept
        region.resolved.update(zip(params, again, strict=True))
        region.block = recorder.block = Block()
        for op in source.ops:
            for v in defined_by(op):
                recorder.lengths.measure(v)
        for v in (*bars, *bar_memory):
            recorder.lengths.measure(v)
        stacks = {
            p for p, stacked in zip(params, passes.interface.is_stack, strict=True) if stacked
        }
        pairs = list(zip(arrays, bar_memory, strict=True))
        self.bar_stacks.give({p: v for p, v in pairs if p in stacks})
        self.cotangents.share({p: Symbol(v, recorder) for p, v in pairs if p not in stacks})
        bar = iter(bars)
        for r, returned in zip(results, passes.interface.returned, strict=True):
            if returned:
                x = Symbol(next(bar), recorder)
                if isinstance(r, Value):
                    self.cotangents.add(r, x)
        self.blocks.reverse(region)
        start = len(region.block.ops)
        numbers = [p for p in on if not is_array(p)]
        x_bars_of_numbers = [self.spaces.whole(p, self.cotangents.take(p)) for p in numbers]
        x_bars = [recorder.operand(x_bar) for x_bar in x_bars_of_numbers]
        self.residuals.end_segment(region, start, -1, tuple(x_bars))
        region.block.results = x_bars
        self.blocks.finish()
        passes.own = [op.outputs[0] for op in self.sweep.stacks]
        passes.forward.block = Block(params, list(source.ops), list(results))
        taken = [*passes.interface.arguments(again), *bars, *bar_memory]
        passes.reverse.block = Block(taken, region.block.ops, region.block.results)
        recorder.block = forward


def _type_of(x: Operand) -> Type:
    t: Any = x.type if isinstance(x, Value) else number_type(x)
    return t


def _stacks(program: Program) -> set[Value]:
    """The stacks that a program is given, or creates."""
    programs = called_from(program)
    stacks: set[Value] = set()
    size = -1
    while size < len(stacks):
        size = len(stacks)
        for op in (op for each in programs for op in each.walk()):
            if isinstance(op, Apply) and op.function in (push, pop, top, thin):
                stacks.add(op.args[0])
            elif isinstance(op, Call):
                pairs = zip(op.args, op.program.block.params, strict=True)
                stacks.update(a for a, p in pairs if p in stacks)
    return stacks


def _may_be_argument(op: Call, v: Value) -> bool:
    """Whether an array that a program returns may be memory of an argument."""
    program = op.program
    r = program.block.results[op.outputs.index(v)]
    return bool(memory([r], memory_of(program)) & set(program.block.params))
