"""Recursion whose end depends on values: the function becomes a program that calls itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.appended import check_items
from fwdad.frontend.syntax.control import converted
from fwdad.frontend.syntax.position import Position
from fwdad.frontend.syntax.raising import AlwaysRaises, TraceControl
from fwdad.frontend.trees import Tree, flatten, made_in, signature
from fwdad.frontend.ways import WayNeededError
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.builder.shape_env import LengthNeededError
from fwdad.ir.ops import Block, Call, Loop, Operand, Program, Value, map_values, values_in, walk
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Size, Type, join

_ATTEMPTS = 8


class RecursionFound(TraceControl):
    """A function (``key``: its code object or definition) recurs without a known end.

    It must become a program of its own: the trace restarts.
    """

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key


@dataclass(eq=False)
class _Definition:
    """A program that is complete, or still being written."""

    program: Program
    types: list[Type] | None = None
    tree: Tree | None = None
    extra: list[Value] = field(default_factory=list)  # values from outside that it uses


class Programs:
    """The functions of one trace that are programs of their own."""

    def __init__(self, recorder: Recorder, position: Position) -> None:
        self.recorder = recorder
        self.position = position
        self._found: dict[Any, _Definition] = {}

    def call(
        self,
        name: str,
        bound: dict[str, Any],
        key: Any,
        run: Callable[[dict[str, Any]], Any],
        finish: Callable[[Program], None] | None = None,
    ) -> Any:
        """Write a call of a function that is a program of its own.

        ``bound`` are parameters and arguments; ``key`` is the function's code object or definition;
        ``run`` traces the body with other arguments. ``finish`` is for a function that does not
        call itself, and rewrites its program once: that is then for arrays of the lengths known
        here, and otherwise for any lengths.
        """
        recorder = self.recorder
        leaves, tree = flatten(bound)
        symbols = [recorder.as_symbol(leaf) for leaf in leaves]
        types = [recorder.lengths.resolved(s.type) for s in symbols]
        keep = _known_lengths if finish is not None else _any_length
        place = (id(key), signature(bound), *(_shape(keep(t)) for t in types))
        found = self._found.get(place)
        if found is None:
            program = Program(name, Block(), written=[False] * len(types))  # while it is traced
            found = self._found[place] = _Definition(program)
            try:
                self._define(found, types, tree, run, keep)
            except UntraceableError as error:
                del self._found[place]
                if isinstance(error, (LengthNeededError, WayNeededError)):
                    raise
                # known lengths may tell how often it calls itself: then it is no program
                raise LengthNeededError(error.msg, error.location) from error
            except BaseException:  # half of a definition must not be found
                del self._found[place]
                raise
            if finish is not None:
                finish(found.program)
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
