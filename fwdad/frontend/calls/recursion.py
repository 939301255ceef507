"""Recursion whose end depends on values: the function becomes a program that calls itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fwdad.errors import UntraceableError
from fwdad.frontend.appended import check_items
from fwdad.frontend.calls.seen import same_seen, same_surroundings, seen_by
from fwdad.frontend.syntax.control import converted
from fwdad.frontend.syntax.frame import Frame
from fwdad.frontend.syntax.position import Position
from fwdad.frontend.syntax.raising import AlwaysRaises, TraceControl
from fwdad.frontend.trees import Tree, flatten, kind, made_in, signature
from fwdad.frontend.ways import WayNeededError
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.builder.shape_env import LengthNeededError
from fwdad.ir.ops import Block, Call, Loop, Operand, Program, Value, map_values, values_in, walk
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Size, Type, join, number_type

_ATTEMPTS = 8


class RecursionFound(TraceControl):
    """A function (``key``: its code object or definition) recurs without a known end.

    It must become a program of its own: the trace restarts.
    """

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key


class InlineFound(TraceControl):
    """A function calls another one whose program is being written around it.

    It must be traced in line there, where it reads what that program is given: the trace restarts.
    """

    def __init__(self, keys: tuple[Any, Any]) -> None:
        super().__init__(*keys)
        self.keys = keys  # of the function, and of the one around it


class Descent:
    """The calls of functions inside of their own calls, as they are traced in line.

    One whose arguments and heap are, but for values, those of the call around it is traced as that
    one was: there is no end.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._calls: dict[int, list[_Level]] = {}

    @contextlib.contextmanager
    def into(self, key: Any, frame: Frame, bound: dict[str, Any]) -> Iterator[None]:
        """Be in a call of a function; raises ``RecursionFound`` if it is seen to have no end."""
        calls = self._calls.setdefault(id(key), [])
        heap = None
        if calls and not self._follows() and calls[-1].is_like(frame, bound):
            if calls[-1].heap and not self._recorder.journal.have_changed(calls[-1].heap):
                raise RecursionFound(key)
            heap = self._recorder.journal.contents()
        calls.append(_Level(frame, dict(bound), heap))
        try:
            yield
        finally:
            calls.pop()

    def _follows(self) -> bool:
        """Whether values decide: their example has an end."""
        ways = self._recorder.ways
        return ways is not None and bool(ways.places)


class _Level(NamedTuple):
    """One call, and the heap as it was then if the call around it was alike."""

    frame: Frame
    bound: dict[str, Any]
    heap: list[tuple[Any, Any]] | None

    def is_like(self, frame: Frame, bound: dict[str, Any]) -> bool:
        """Whether a call has the same surroundings and, but for values, the same arguments."""
        return same_surroundings(frame, self.frame) and _same(bound, self.bound)


def _same(a: Any, b: Any) -> bool:
    """Whether two arguments are the same, but for the values of symbols."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is Symbol:
        return kind(a.type) == kind(b.type) and _shape(a.type) == _shape(b.type)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        keys = zip(a, b, strict=False)
        same = len(a) == len(b) and all(j is k for j, k in keys)
        return same and all(map(_same, a.values(), b.values()))
    return number_type(a) is not None and bool(a == b)


@dataclass(eq=False)
class _Definition:
    """A program that is complete, or still being written."""

    key: Any
    program: Program
    types: list[Type] | None = None
    tree: Tree | None = None
    extra: list[Value] = field(default_factory=list)  # values from outside that it uses
    frame: Frame | None = None  # it was made for functions of these surroundings
    seen: list[Any] = field(default_factory=list)  # and what it could see there
    written: bool = False  # whether it is complete

    def serves(self, frame: Frame | None, seen: list[Any]) -> bool:
        """Whether it is the program of a call; one that changes what it sees is refused later."""
        if not self.written:
            return same_surroundings(frame, self.frame)
        return same_seen(self.seen, seen)


class Programs:
    """The functions of one trace that are programs of their own."""

    def __init__(self, recorder: Recorder, position: Position) -> None:
        self.recorder = recorder
        self.position = position
        self._found: dict[Any, list[_Definition]] = {}
        self._open: list[_Definition] = []  # that are being written, each inside of the one before

    def are_open(self) -> list[Any]:
        """The functions whose programs are being written, the innermost last."""
        return [d.key for d in self._open]

    def call(
        self,
        name: str,
        bound: dict[str, Any],
        key: Any,
        run: Callable[[dict[str, Any]], Any],
        finish: Callable[[Program], None] | None = None,
        frame: Frame | None = None,
    ) -> Any:
        """Write a call of a function that is a program of its own.

        ``bound`` are parameters and arguments; ``key`` is the function's code object or definition,
        ``frame`` has its surroundings, if any; ``run`` traces the body with other arguments. Where
        what it can see has changed, another program is written. ``finish`` is for a function that
        does not call itself, and rewrites its program once: that is then for arrays of the lengths
        known here, and otherwise for any lengths.
        """
        recorder = self.recorder
        leaves, tree = flatten(bound)
        symbols = [recorder.as_symbol(leaf) for leaf in leaves]
        types = [recorder.lengths.resolved(s.type) for s in symbols]
        keep = _known_lengths if finish is not None else _any_length
        place = (id(key), signature(bound), *(_shape(keep(t)) for t in types))
        definitions = self._found.setdefault(place, [])
        seen = seen_by(recorder.journal, *tree.constants, frame)
        found = next((d for d in definitions if d.serves(frame, seen)), None)
        if found is None:
            program = Program(name, Block(), written=[False] * len(types))  # while it is traced
            found = _Definition(key, program, frame=frame, seen=seen)
            definitions.append(found)
            self._open.append(found)
            try:
                self._define(found, types, tree, run, keep)
            except UntraceableError as error:
                definitions.remove(found)
                if isinstance(error, (LengthNeededError, WayNeededError)):
                    raise
                # known lengths may tell how often it calls itself: then it is no program
                raise LengthNeededError(error.msg, error.location) from error
            except BaseException:  # half of a definition must not be found
                definitions.remove(found)
                raise
            finally:
                self._open.pop()
            found.written = True
            if finish is not None:
                finish(found.program)
        if not found.written and found is not self._open[-1]:
            raise InlineFound((self._open[-1].key, key))
        if found.types is None:  # the first attempt: another path through the function ends it
            raise AlwaysRaises(RecursionError, ("maximum recursion depth exceeded",))
        outputs = tuple(Value(keep(t)) for t in found.types)  # lengths differ from call to call
        args: list[Operand] = [*(s.value for s in symbols), *found.extra]
        recorder.emit(Call(found.program, args, outputs=outputs))
        assert found.tree is not None
        return made_in(recorder, found.tree([Symbol(v, recorder) for v in outputs]))

    def _define(
        self,
        definition: _Definition,
        types: list[Type],
        tree: Tree,
        run: Callable[[dict[str, Any]], Any],
        keep: Callable[[Type], Type],
    ) -> None:
        """Trace the body until the types of its results settle."""
        recorder = self.recorder
        for _ in range(_ATTEMPTS):
            block = Block(params=[Value(keep(t)) for t in types])
            mark = recorder.lengths.mark()
            try:
                with recorder.region(block) as region, recorder.alone_inside(seen=False):
                    region.repeats = True
                    for p in block.params:
                        recorder.lengths.measure(p)
                    y = run(tree([Symbol(p, recorder) for p in block.params]))
                    if region.changes():
                        message = (
                            f"{definition.program.name} calls itself and changes a list, dict or "
                            "object, which cannot be traced: return the new values"
                        )
                        raise UntraceableError(message, self.position.location())
                    lists = [*recorder.lists]
                    found, made = flatten(y)
                    if _holds_own(made, block):  # objects that the body makes
                        found, made = flatten(y, records=True, once=True)
                    symbols = [recorder.as_symbol(leaf) for leaf in found]
            finally:
                recorder.lengths.forget(mark)
            now = [keep(recorder.lengths.resolved(s.type)) for s in symbols]
            wide = self._joined(definition.types, now, definition.program.name)
            block.results = [
                converted(recorder, block, s, t) for s, t in zip(symbols, wide, strict=True)
            ]
            settled = definition.types is not None and _alike(definition.types, wide)
            definition.tree = made
            if not settled:
                definition.types = wide
                continue
            definition.program.block = block
            _close(definition)
            check_items(block, lists)  # now that it is known what calls of itself write
            return
        message = (
            f"the types that {definition.program.name} returns change from one recursive call to "
            "the next: let all calls return the same types"
        )
        raise UntraceableError(message, self.position.location())

    def _joined(self, old: list[Type] | None, new: list[Type], name: str) -> list[Type]:
        if old is None:
            return new
        if len(old) != len(new):
            message = (
                f"{name} returns values of different structure on different paths: let all return "
                "as many values, nested alike"
            )
            raise UntraceableError(message, self.position.location())
        joined = [join(a, b) for a, b in zip(old, new, strict=True)]
        if any(t is None for t in joined):
            message = (
                f"{name} returns values of different types on different paths: convert them to "
                "one type"
            )
            raise UntraceableError(message, self.position.location())
        return [t for t in joined if t is not None]


def calls_unfinished(block: Block, seen: frozenset[Program] = frozenset()) -> bool:
    """Whether a block calls a program that is still being traced, of which nothing is known."""
    for op in walk(block):
        if not isinstance(op, Call) or op.program in seen:
            continue
        called = op.program.block
        seen |= {op.program}
        if not (called.ops or called.params) or calls_unfinished(called, seen):
            return True
    return False


def _holds_own(made: Tree, block: Block) -> bool:
    """Whether the objects in a result hold values of the body itself."""
    held = [v.value for v in flatten(made.constants, records=True)[0] if type(v) is Symbol]
    return not {*block.params, *(v for op in walk(block) for v in op.outputs)}.isdisjoint(held)


def _any_length(t: Type) -> Type:
    """The type of an argument for all calls, whose lengths may differ."""
    if isinstance(t, ArrayType):
        return ArrayType(t.dtype, tuple(Size() for _ in t.shape))
    return Number(t.dtype, t.python)


def _known_lengths(t: Type) -> Type:
    """The type of an argument for calls with the same lengths, where these are known."""
    if isinstance(t, ArrayType):
        return ArrayType(t.dtype, tuple(d if isinstance(d, int) else Size() for d in t.shape))
    return Number(t.dtype, t.python)


def _shape(t: Type) -> tuple[int | None, ...]:
    shape = t.shape if isinstance(t, ArrayType) else ()
    return tuple(d if isinstance(d, int) else None for d in shape)


def _alike(a: list[Type], b: list[Type]) -> bool:
    return all(
        (s.dtype, s.ndim, isinstance(s, Number)) == (t.dtype, t.ndim, isinstance(t, Number))
        for s, t in zip(a, b, strict=True)
    )


def _close(definition: _Definition) -> None:
    """Make values from outside parameters, also of the recursive calls."""
    program = definition.program
    block = program.block
    defined = set(block.params)
    for op in walk(block):
        defined.update(op.outputs)
        if isinstance(op, Loop):
            defined.add(op.exec_count)
        for inner in op.blocks():
            defined.update(inner.params)
    free: list[Value] = []
    for operand in _operands(block):
        free.extend(v for v in values_in(operand) if v not in defined and v not in free)
    definition.extra = free
    names = {v: Value(v.type, v.name) for v in free}
    _replace(block, lambda v: names.get(v, v))
    block.params.extend(names.values())
    for op in walk(block):
        if isinstance(op, Call) and op.program is program:
            op.args.extend(names.values())
    program.written = [False] * len(block.params)
    while (written := written_parameters(program)) != program.written:
        program.written = written


def _operands(block: Block) -> list[Operand]:
    operands: list[Operand] = list(block.results)
    for op in walk(block):
        operands.extend(op.operands())
        operands.extend(r for inner in op.blocks() for r in inner.results)
    return operands


def _replace(block: Block, f: Callable[[Value], Operand]) -> None:
    for op in walk(block):
        op.replace(f)
        for inner in op.blocks():
            inner.results = [map_values(f, r) for r in inner.results]
    block.results = [map_values(f, r) for r in block.results]
