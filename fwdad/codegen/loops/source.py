"""A program as Python source that Numba compiles: loops over elements, checked indices.

Array functions become loops whose types are written down, so that promotion, overlap and exceptions
are not left to the compiler. Elementwise operations are written where they are used, in one loop.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.codegen.llvm import vector_functions
from fwdad.codegen.llvm.simd import compiled_lanes
from fwdad.codegen.loops import nan_guards, parallel_elements, stack_reservation
from fwdad.codegen.loops.arrays import (  # noqa: F401  (their handlers are registered)
    choices,
    extremes,
    functions,
    linalg,
    matrices,
    order,
    placed_lanes,
    products,
    reductions,
    shapes,
    tables,
    undo_log,
)
from fwdad.codegen.loops.arrays import stacks as array_stacks
from fwdad.codegen.loops.arrays.functions import tuple_text
from fwdad.codegen.loops.base import Ready, name_of
from fwdad.codegen.loops.buffer_hoisting import OpenLoop
from fwdad.codegen.loops.fused_regions import write_region
from fwdad.codegen.loops.number_terms import cast
from fwdad.codegen.loops.parallel_loops import SpreadLoop, may_run_at_once
from fwdad.codegen.loops.stores import StoreWriter
from fwdad.codegen.loops.strip_mining import ahead_of, write_ahead
from fwdad.codegen.loops.vector_bodies import vector_body, write_body
from fwdad.codegen.loops.vector_loops import runs_in_vectors
from fwdad.codegen.numba_support import (
    LINALG_HELPERS,
    SPECIAL_HELPERS,
    TABLE_HELPERS,
    CannotCompileError,
)
from fwdad.codegen.numpy_backend.source import Callee, Source
from fwdad.codegen.passes import place_decompositions  # noqa: F401  (registered, too)
from fwdad.codegen.passes.decompositions import expanded
from fwdad.codegen.passes.fusion import Plan
from fwdad.codegen.passes.rank_one_products import with_single_rows
from fwdad.codegen.passes.recomputation import repeated
from fwdad.codegen.runtime import arithmetic, lapack, lookups, special_functions
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
)
from fwdad.ir.types import ArrayType, Dimension, Number, Type


class NumbaWriter(StoreWriter):
    """Writes a program for Numba: one operation after another."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.stack = ""  # the name of the stack address at the outermost call
        self.answers: dict[int, list[Type]] = {}  # result types of callees
        self.factors: dict[tuple[Value, Any], str] = {}  # LU factors of matrices, by dtype
        self._within: list[tuple[Block, int]] = []  # the current operation, and those around it
        self._first = 0  # the line at which this function begins

    def body(self, block: Block) -> None:
        """Write the operations of a block; those of a region in one place."""
        plan = Plan(block, lambda v: v not in self.lanes)
        factors, same = dict(self.factors), dict(self._same)
        self.groups |= nan_guards.groups(block, self.is_product)
        for k, op in enumerate(block.ops):
            self._regions(plan, k)
            if id(op) not in plan.members:
                self._op(op, block, k)
        self._regions(plan, len(block.ops))
        self.factors, self._same = factors, same  # facts found inside a block end with it

    def _regions(self, plan: Plan, k: int) -> None:
        """Write the regions that end before an operation."""
        outer = self._op_now
        for region in plan.before.get(k, ()):
            self._op_now = region.base[0]
            write_region(self, region)
        self._op_now = outer

    def _op(self, op: Op, block: Block, k: int) -> None:
        outer, self._op_now = self._op_now, op
        self._within.append((block, k))
        try:
            if isinstance(op, (Store, Update)):
                self.flush(op)
                self._store(op)
            elif isinstance(op, Check):
                self.flush(op)
                self._check(op)
            elif isinstance(op, Apply) and (op.mutated or not op.outputs):
                self.flush(op)
                handler = functions.find(op.function)
                if handler is None:
                    raise self.cannot(f"the function {name_of(op.function)}")
                self._lowered(op, handler)
            else:
                super()._op(op, block, k)
        except CannotCompileError as error:
            if error.location is None:
                raise CannotCompileError(error.what, op.location) from error
            raise
        finally:
            self._op_now = outer
            self._within.pop()

    # -- definitions

    def _definition(self, op: Apply | Load, block: Block, k: int) -> None:
        if len(op.outputs) == 1 and op.outputs[0] in self.lanes:
            self._define(op, *self._lane_definition(op), block, k)
            return
        if isinstance(op, Apply) and len(op.outputs) == 1:
            if self._elementwise(op, block, k):
                return
            handler = functions.find(op.function)
            if handler is not None and not self._is_scalar(op):
                self._lowered(op, handler)
                return
        if isinstance(op, Load):
            self._define_load(op, block, k)
            return
        if len(op.outputs) == 1 and isinstance(op.outputs[0].type, Number):
            if op.outputs[0] in self._inlined:
                return  # written with the first of its group
            term = self._scalar(op)
            self._bits[op.outputs[0]] = term.bits
            self._define(op, term.text, term.level, block, k)
            return
        handler = functions.find(op.function)
        if handler is not None:
            self._lowered(op, handler)
            return
        raise self.cannot(f"the function {name_of(op.function)}")

    def _define(self, op: Op, text: str, level: int, block: Block, k: int) -> None:
        (value,) = op.outputs
        if self._may_inline(op, value, block, k):
            self._inlined[value] = (text, level)
            # operations that may raise keep their order with checks and stores, too
            self._reading.add(value)
            self._pending.append(value)
            return
        if not self._uses[value] and isinstance(op, Load):
            self.line(text, op)
            return
        self.assign(self.name(value), text, op)

    def _lowered(self, op: Apply, handler: Callable[..., Any]) -> None:
        try:
            made = handler(self, op, *op.args, **op.kwargs)
        except TypeError as error:
            raise self.cannot(f"this call of {name_of(op.function)} ({error})") from error
        if made is None:
            return
        if len(op.outputs) != 1:
            names = ", ".join(self.name(v) for v in op.outputs)
            self.line(f"{names} = {made}", op)
        else:
            self.line(f"{self.name(op.outputs[0])} = {made}", op)

    # -- control

    def _check(self, op: Check) -> None:
        condition = cast(self.number(op.condition), np.dtype(bool))
        exception = op.exception
        known = [a for a in op.arguments if isinstance(a, (str, int, float))]
        if isinstance(exception, BaseException):
            known = [a for a in exception.args if isinstance(a, (str, int, float))]
            exception = type(exception)
        if not isinstance(exception, type):
            raise self.cannot("an exception that is no class")
        self._note_compared(op.condition)
        self.line(f"if not {condition.at(1)}:", op)
        self.line(f"    raise {self.function(exception)}({', '.join(map(repr, known))})", op)

    def _note_compared(self, condition: Operand) -> None:
        """Record two lengths that a condition compares as equal."""
        block, k = self._within[-1]
        for op in block.ops[:k]:
            if condition in op.outputs and isinstance(op, Apply) and op.function is operator.eq:
                types = [a.type for a in op.args if isinstance(a, Value)]
                sizes = [t.size for t in types if isinstance(t, Number) and t.size is not None]
                if len(sizes) == 2:
                    self.note_equal(*sizes)

    def _branch(self, op: Branch) -> None:
        condition = cast(self.number(op.condition), np.dtype(bool))
        self.line(f"if {condition.text}:", op)
        self._side(op.then, op)
        if op.other.ops or op.outputs:
            self.line("else:")
            self._side(op.other, op)

    def _assign(self, names: list[str], operands: list[Operand]) -> None:
        """Assign in parallel, in the types that the names have."""
        super()._assign(
            names, [Ready(self._fitted(n, x)) for n, x in zip(names, operands, strict=True)]
        )

    def _fitted(self, name: str, operand: Operand) -> str:
        if name in self._lane_names:
            return self.lane_text(operand, self._lane_names[name])
        wanted = self.types.get(name)
        if wanted is None or isinstance(operand, Missing):
            return self.text(operand)
        return self._typed(operand, wanted, name)

    def result(self, operand: Operand) -> str:
        """What the program returns: an array in C order, whatever its order in here."""
        text = self.text(operand)
        if isinstance(operand, Value) and operand in self.axes:
            return f"np.ascontiguousarray({text})"
        return text

    def _typed(self, operand: Operand, wanted: Type, name: str = "") -> str:
        """An operand as a type; an array's layout is left open, unless it is ``name`` itself."""
        if isinstance(operand, Missing):
            return self.missing(operand)
        if isinstance(wanted, ArrayType):
            text = self.result(operand)
            if not is_array(operand):
                raise self.cannot("a number where an array is carried")
            if operand not in self._loose and text != name:
                return f"{self.help('loose')}({text})"
            return text
        term = self.number(operand)
        return cast(term, wanted.dtype).text

    def _loop(self, op: Loop) -> None:
        if op.span is not None:
            start, _, step = op.span
            small = all(isinstance(x, int) and abs(x) < 2**31 for x in (start, step))
            self._bits[op.body.params[0]] = 48 if small else 64
        loop = OpenLoop(len(self.lines), self._indent, self._known_lengths(), self.help)
        if not self._open:
            stack_reservation.reserve(self, op, loop)
        array_stacks.make_room(self, op)
        loop.start = len(self.lines)
        outer, spread = self._open, None
        if may_run_at_once(self, op):
            spread = SpreadLoop(self, op, loop)
            self._open = []  # buffers are shared by the iterations of one thread
        self._open.append(loop)
        around, self.in_vectors = self.in_vectors, runs_in_vectors(op)
        body = None if spread is not None else vector_body(self, op)
        if body is not None:
            write_body(self, op, body)
        else:
            super()._loop(op)
        self.in_vectors = around
        self._open.pop()
        self._open = outer
        made = ["    " * loop.indent + text for text in loop.made]
        self.lines[loop.start : loop.start] = made
        self.places[loop.start : loop.start] = [op.location] * len(made)
        if spread is not None:
            spread.finish()

    def _for(self, op: Loop) -> None:
        """Begin a loop over a range, strip-mined if scalar functions can be computed ahead."""
        ahead = ahead_of(self, op)
        if ahead is None:
            super()._for(op)
            return
        start, stop = write_ahead(self, op, ahead)
        counter = self.name(op.body.params[0])
        self.line(f"for {counter} in range({start}, {stop}):", op)
        self._indent += 1
        place = self.temporary("k")
        self.line(f"{place} = {counter} - {start}")
        self.inside.append(place)
        for call in ahead.calls:
            self.ahead[call] += f"[{place}]"

    def _known_lengths(self) -> dict[Dimension, str]:
        """Source for lengths that are known from the arrays written so far."""
        written = {
            name
            for line in self.lines[self._first :]
            if " = " in line
            for name in line.partition(" = ")[0].strip().rstrip(",").split(", ")
        }
        seen = list(self.program.block.params)
        for block, k in self._within:
            seen += [*block.params, *(v for op in block.ops[:k] for v in op.outputs)]
        found: dict[Dimension, str] = {}
        for v in seen:
            if not is_array(v) or v in self._missing:
                continue
            if v not in self.lanes and v not in self._inlined and v in self._names:
                name = self._names[v]
                if name in written or v in self._params:
                    for axis, d in enumerate(v.type.shape):
                        if d not in self._moving:
                            found.setdefault(d, f"{name}.shape[{axis}]")
        return found

    # -- programs that are called

    def _called(self, op: Call) -> None:
        if id(op.program) not in self.called:
            self.called[id(op.program)] = (op.program, self._unique(op.program.name))
            self.answers[id(op.program)] = [v.type for v in op.outputs]
        name = self.called[id(op.program)][1]
        given, found = [], [self.name(v) for v in op.outputs]
        for a, p in zip(op.args, op.program.block.params, strict=True):
            if self.is_stack(a):
                given += array_stacks.parts(self, a)
                found += array_stacks.parts(self, a)
            else:
                text = self._typed(a, p.type)  # compiled once: for any int, not for a literal
                given.append(f"np.int64({text})" if text.lstrip("-").isdigit() else text)
        args = ", ".join([self.stack or f"{self.help('stack_place')}()", *given])
        outputs = ", ".join(found)
        comma = "," if len(found) == 1 else ""
        self.line(f"{outputs}{comma} = {name}({args})" if outputs else f"{name}({args})", op)

    def follow(self, program: Program) -> NumbaWriter:
        """A writer for a callee, which writes its lines after this one's."""
        made = super().follow(program)
        assert isinstance(made, NumbaWriter)
        made.helpers, made.lane_functions, made.vector_functions, made.answers = (
            self.helpers,
            self.lane_functions,
            self.vector_functions,
            self.answers,
        )
        made.outlined = self.outlined
        made._used.update(list(self.lane_functions))
        made._loose.update(p for p in program.block.params if is_array(p))
        made.stack = made._unique("stack")
        return made

    def callee(self, name: str) -> Callee:
        """Write the program as a function that others call, and that may call itself."""
        program = self.program
        params, stacks = [self.stack], [p for p in program.block.params if self.is_stack(p)]
        for p in program.block.params:
            params += array_stacks.begun(self, p) if p in stacks else [self.name(p)]
        parts = [part for stack in stacks for part in array_stacks.parts(self, stack)]
        kinds = [t for stack in stacks for t in array_stacks.part_types(self, stack)]
        self.line("")
        self.line("")
        self.line(f"def {name}({', '.join(params)}):")
        self._first = len(self.lines)
        results = self.answers[id(program)]
        with self.indented():
            self.line(f"{self.help('check_stack')}({self.stack})")
            self.body(program.block)
            pairs = zip(program.block.results, results, strict=True)
            found = [*(self._typed(r, t) for r, t in pairs), *parts]
            self.line(f"return {tuple_text(found)}")
        inner = [*self.inner, *self.inside]
        return Callee(name, [*results, *kinds], self.types, inner, len(parts))


def _home(helper: str) -> Any:
    """The module that a helper is in."""
    if helper in SPECIAL_HELPERS:
        return special_functions
    if helper in TABLE_HELPERS:
        return lookups
    return lapack if helper in LINALG_HELPERS else arithmetic


def _tell_lengths(w: NumbaWriter, program: Program) -> None:
    """Check the known lengths of arguments once, so that no loop has to."""
    if not any(isinstance(op, Loop) for op in program.block.ops):
        return
    for p in program.block.params:
        lengths = p.type.shape if is_array(p) and not w.is_stack(p) else ()
        if any(isinstance(d, int) and d > 1 for d in lengths):
            name = w.name(p)
            known = [
                str(d) if isinstance(d, int) else f"{name}.shape[{k}]"
                for k, d in enumerate(lengths)
            ]
            w.line(f"{w.help('check_shape')}({name}, {tuple_text(known)})")


def numba_source(program: Program) -> tuple[Source, dict[str, Type]]:
    """Write a program as a function that returns a tuple of its results, for Numba to compile.

    Also returns the types that its variables must have once it is compiled. Raises
    :class:`CannotCompileError`, with the line, if an operation has no compiled form.
    """
    program = repeated(expanded(with_single_rows(program)))
    writer = NumbaWriter(program)
    given = {p: writer.temporary("stack") for p in writer.stacks.given}
    params = [given[p] if p in given else writer.name(p) for p in program.block.params]
    name = program.name if program.name.isidentifier() else "traced"
    writer.reserve(name)
    writer.line(f"def {name}({', '.join(params)}):")
    with writer.indented():
        for stack, word in given.items():
            array_stacks.given(writer, stack, word)
        _tell_lengths(writer, program)
        writer.body(program.block)
        results = [
            array_stacks.answer(writer, r) if writer.is_stack(r) else writer.result(r)
            for r in program.block.results
        ]
        writer.line(f"return {tuple_text(results)}")
    called: list[Callee] = []
    while len(called) < len(writer.called):  # callees, which may call others
        inner, inner_name = list(writer.called.values())[len(called)]
        follower = writer.follow(inner)
        follower.reserve(name)
        called.append(follower.callee(inner_name))
    helpers = {h: getattr(_home(h), h) for h in sorted(writer.helpers)}
    for h, (what, n) in writer.lane_functions.items():
        helpers[h] = getattr(compiled_lanes(n), what)
    helpers.update((f, vector_functions.FUNCTIONS[f]) for f in sorted(writer.vector_functions))
    namespace = {"np": np, "math": math, **helpers, **writer.globals}
    inside = [*writer.inner, *writer.inside]
    if writer.outlined:
        namespace |= parallel_elements.namespace(inside)
    code = "\n".join([*writer.outlined, *writer.lines]) + "\n"
    places = [*[None] * len(writer.outlined), *writer.places]
    made = Source(
        name, code, namespace, places, called=called, inner=inside,
        outlined=writer.outlined_names,
    )  # fmt: skip
    return made, writer.types
