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

from fwdad.codegen.callbacks.callback import Callback
from fwdad.codegen.llvm import vector_functions
from fwdad.codegen.llvm.python_calls import python_call
from fwdad.codegen.llvm.simd import compiled_lanes
from fwdad.codegen.loops import nan_guards, parallel_elements, stack_reservation
from fwdad.codegen.loops.arrays import (  # noqa: F401  (their handlers are registered)
    choices,
    extremes,
    fourier,
    functions,
    indices,
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
from fwdad.codegen.loops.buffer_hoisting import OpenLoop, moving_lengths
from fwdad.codegen.loops.draft import Module
from fwdad.codegen.loops.fused_regions import write_region
from fwdad.codegen.loops.notation import name_of
from fwdad.codegen.loops.parallel_loops import SpreadLoop, may_run_at_once
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.strip_mining import ahead_of, write_ahead
from fwdad.codegen.loops.terms.number_terms import cast, check_dtype
from fwdad.codegen.loops.vectors.vector_bodies import vector_body, write_body
from fwdad.codegen.loops.vectors.vector_loops import runs_in_vectors
from fwdad.codegen.numba_support import CannotCompileError, runtime_module
from fwdad.codegen.numpy_backend.source import Callee, Source
from fwdad.codegen.passes import (  # noqa: F401  (registered, too)
    place_decompositions,
    scipy_decompositions,
)
from fwdad.codegen.passes.decompositions import expanded
from fwdad.codegen.passes.first_sums import with_first_sums_stored
from fwdad.codegen.passes.fusion import Plan
from fwdad.codegen.passes.rank_one_products import with_single_rows
from fwdad.codegen.passes.recomputation import repeated
from fwdad.codegen.passes.single_lanes import with_single_lanes_as_numbers
from fwdad.ir.control import Control
from fwdad.ir.notation import tuple_text
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
from fwdad.transforms.passes.destinations import computed_in_rows


class NumbaWriter:
    """Writes a program for Numba: one operation after another.

    ``stack`` is the name of the stack address at the outermost call, in a callee.
    """

    def __init__(self, program: Program, module: Module | None = None) -> None:
        self.program = program
        self.module = module or Module()
        self.parts = parts = Parts(program, self.module)
        self.control = Control(parts.code, parts.names.plain, parts.inlined, parts.usage, self)
        self.stack = ""
        self._within: list[tuple[Block, int]] = []  # the current operation, and those around it
        self._first = 0  # the line at which this function begins
        self._moving = moving_lengths(program)

    # -- for control flow

    def text(self, operand: Operand) -> str:
        """An operand as source."""
        return self.parts.operands.text(operand)

    def flush(self, upto: Op | None = None) -> None:
        """Write out deferred operations that read memory about to be written."""
        self.parts.elements.flush(upto)

    def assigned(self, name: str, operand: Operand) -> str:
        """An operand as source, in the type that a name has."""
        names = self.parts.names
        if name in names.widths:
            return self.parts.lanes.text(operand, names.widths[name])
        wanted = names.types.get(name)
        if wanted is None or isinstance(operand, Missing):
            return self.text(operand)
        return self._typed(operand, wanted, name)

    def body(self, block: Block) -> None:
        """Write the operations of a block; those of a region in one place."""
        w = self.parts
        plan = Plan(block, lambda v: v not in w.registers.lanes)
        with w.facts.of_block():
            w.numbers.groups |= nan_guards.groups(block, w.numbers.is_product)
            for k, op in enumerate(block.ops):
                self._regions(plan, k)
                if id(op) not in plan.members:
                    self.operation(op, block, k)
            self._regions(plan, len(block.ops))

    def _regions(self, plan: Plan, k: int) -> None:
        """Write the regions that end before an operation."""
        code = self.parts.code
        outer = code.op
        for region in plan.before.get(k, ()):
            code.op = region.base[0]
            write_region(self.parts, region)
        code.op = outer

    def operation(self, op: Op, block: Block, k: int) -> None:
        """Write one operation."""
        code = self.parts.code
        outer, code.op = code.op, op
        self._within.append((block, k))
        try:
            self._operation(op)
        except CannotCompileError as error:
            if error.location is None:
                raise CannotCompileError(error.what, op.location) from error
            raise
        finally:
            code.op = outer
            self._within.pop()

    def _operation(self, op: Op) -> None:
        for v in op.outputs:
            if isinstance(v.type, (ArrayType, Number)):
                check_dtype(v.type.dtype)
        if isinstance(op, Load):
            self._load(op)
            return
        if isinstance(op, Apply) and op.outputs and not op.mutated:
            self._apply(op)
            return
        self.flush(op)
        if isinstance(op, Apply):
            self._lowered(op, functions.find(op.function))
        elif isinstance(op, (Store, Update)):
            self._store(op)
        elif isinstance(op, Check):
            self._check(op)
        elif isinstance(op, Branch):
            self._branch(op)
        elif isinstance(op, Loop):
            self._loop(op)
        elif isinstance(op, Call):
            self._call(op)
        else:
            raise TypeError(type(op))

    # -- operations

    def _load(self, op: Load) -> None:
        w = self.parts
        if op.outputs[0] in w.registers.lanes:
            w.assignments.define(op, *w.lanes.definition(op))
        elif any(map(indices.is_index_array, op.index)):
            indices.fancy_load(w, op)
        else:
            w.stores.load(op)

    def _store(self, op: Store | Update) -> None:
        w = self.parts
        if isinstance(op.value, Value) and op.value in w.registers.lanes and w.lanes.store(op):
            return
        if any(map(indices.is_index_array, op.index)):
            indices.fancy_store(w, op)
        else:
            w.stores.store(op)

    def _apply(self, op: Apply) -> None:
        w, handler = self.parts, functions.find(op.function)
        if len(op.outputs) != 1:
            self._lowered(op, handler)
            return
        (value,) = op.outputs
        if value in w.registers.lanes:
            w.assignments.define(op, *w.lanes.definition(op))
        elif w.elements.take(op):
            return
        elif not isinstance(value.type, Number) or (handler and not w.numbers.is_scalar(op)):
            self._lowered(op, handler)
        elif value not in w.inlined.held:  # else written with the first of its group
            term = w.numbers.scalar(op)
            w.operands.bits[value] = term.bits
            w.assignments.define(op, term.text, term.level)

    def _lowered(self, op: Apply, handler: Callable[..., Any] | None) -> None:
        """Write a function of whole arrays."""
        w = self.parts
        if handler is None:
            raise w.operands.cannot(f"the function {name_of(op.function)}")
        try:
            term = handler(w, op, *op.args, **op.kwargs)
        except TypeError as error:
            raise w.operands.cannot(f"this call of {name_of(op.function)} ({error})") from error
        if term is not None:
            names = ", ".join(w.names.name(v) for v in op.outputs)
            w.code.line(f"{names} = {term}", op)

    # -- control

    def _check(self, op: Check) -> None:
        w = self.parts
        condition = cast(w.operands.number(op.condition), np.dtype(bool))
        exception = op.exception
        known = [a for a in op.arguments if isinstance(a, (str, int, float))]
        if isinstance(exception, BaseException):
            known = [a for a in exception.args if isinstance(a, (str, int, float))]
            exception = type(exception)
        if not isinstance(exception, type):
            raise w.operands.cannot("an exception that is no class")
        self._note_compared(op.condition)
        w.code.line(f"if not {condition.at(1)}:", op)
        name = w.literals.function(exception)
        w.code.line(f"    raise {name}({', '.join(map(repr, known))})", op)

    def _note_compared(self, condition: Operand) -> None:
        """Record two lengths that a condition compares as equal."""
        w = self.parts
        block, k = self._within[-1]
        for op in block.ops[:k]:
            if condition in op.outputs and isinstance(op, Apply) and op.function is operator.eq:
                types = [a.type for a in op.args if isinstance(a, Value)]
                sizes = [t.size for t in types if isinstance(t, Number) and t.size is not None]
                if len(sizes) == 2:
                    w.facts.note_equal(*sizes)

    def _branch(self, op: Branch) -> None:
        w = self.parts
        condition = cast(w.operands.number(op.condition), np.dtype(bool))
        w.code.line(f"if {condition.text}:", op)
        self.control.side(op.then, op)
        if op.other.ops or op.outputs:
            w.code.line("else:")
            self.control.side(op.other, op)

    def result(self, operand: Operand) -> str:
        """What the program returns: an array in C order, whatever its order in here."""
        w = self.parts
        text = self.text(operand)
        if isinstance(operand, Value) and operand in w.arrays.axes:
            return f"np.ascontiguousarray({text})"
        return text

    def _typed(self, operand: Operand, wanted: Type, name: str = "") -> str:
        """An operand as a type; an array's layout is left open, unless it is ``name`` itself."""
        w = self.parts
        if isinstance(operand, Missing):
            return w.operands.missing(operand)
        if isinstance(wanted, ArrayType):
            text = self.result(operand)
            if not is_array(operand):
                raise w.operands.cannot("a number where an array is carried")
            if operand not in w.arrays.loose and text != name:
                return f"{w.helpers.use('loose')}({text})"
            return text
        term = w.operands.number(operand)
        return cast(term, wanted.dtype).text

    def _loop(self, op: Loop) -> None:
        w = self.parts
        if op.span is not None:
            start, _, step = op.span
            bits = (
                w.operands.bits.get(start, 64) if isinstance(start, Value) else _of_constant(start)
            )
            few = bits <= _BITS and _of_constant(step) <= _BITS
            w.operands.bits[op.body.params[0]] = max(48, bits + 1) if few else 64
        lengths = self._known_lengths()
        loop = OpenLoop(len(w.code.lines), w.code.indent, op.body, lengths, w.helpers.use)
        array_stacks.settle(w, op, loop)
        if not w.arrays.open:
            stack_reservation.reserve(w, op, loop)
        array_stacks.make_room(w, op)
        loop.start = len(w.code.lines)
        outer, spread = w.arrays.open, None
        if not self.stack and may_run_at_once(w, op):
            spread = SpreadLoop(w, op, loop)
            w.arrays.open = []  # buffers are shared by the iterations of one thread
        w.arrays.open.append(loop)
        around, w.numbers.in_vectors = w.numbers.in_vectors, runs_in_vectors(op)
        body = None if spread is not None else vector_body(w, op)
        if body is not None:
            self.control.enter(op)
            write_body(w, op, body)
        else:
            self.control.loop(op)
        w.numbers.in_vectors = around
        w.arrays.open.pop()
        w.arrays.open = outer
        body_lines = ["    " * loop.indent + text for text in loop.made]
        w.code.insert(loop.start, body_lines, op.location)
        if spread is not None:
            spread.finish()

    def begin_range(self, op: Loop) -> None:
        """Begin a loop over a range, strip-mined if scalar functions can be computed ahead."""
        w = self.parts
        ahead = ahead_of(w, op)
        if ahead is None:
            self.control.head(op)
            return
        start, stop = write_ahead(w, op, ahead)
        counter = w.names.name(op.body.params[0])
        w.code.line(f"for {counter} in range({start}, {stop}):", op)
        w.code.indent += 1
        place = w.names.temporary("k")
        w.code.line(f"{place} = {counter} - {start}")
        w.loops.inside.append(place)
        for call in ahead.calls:
            w.numbers.ahead[call] += f"[{place}]"

    def _known_lengths(self) -> dict[Dimension, str]:
        """Source for lengths that are known from the arrays written so far."""
        w = self.parts
        written = {
            name
            for line in w.code.lines[self._first :]
            if " = " in line
            for name in line.partition(" = ")[0].strip().rstrip(",").split(", ")
        }
        params = list(self.program.block.params)
        for block, k in self._within:
            params += [*block.params, *(v for op in block.ops[:k] for v in op.outputs)]
        lengths: dict[Dimension, str] = {}
        for v in params:
            if not is_array(v) or v in w.missing:
                continue
            if v not in w.registers.lanes and v not in w.inlined.held and v in w.names.plain.of:
                name = w.names.plain.of[v]
                if name in written or v in w.memory.params:
                    for axis, d in enumerate(v.type.shape):
                        if d not in self._moving:
                            lengths.setdefault(d, f"{name}.shape[{axis}]")
        return lengths

    # -- programs that are called

    def _call_python(self, op: Call) -> None:
        """Call what NumPy runs."""
        w, module, key = self.parts, self.module, id(op.program)
        if key not in module.callbacks:
            made, name = Callback(op.program), w.names.temporary(op.program.name)
            module.callbacks[key] = made, name
            results = [v.type for v in op.program.block.results]
            module.globals.objects[name] = python_call(made.symbol, results)
        name = module.callbacks[key][1]
        pairs = zip(op.args, op.program.block.params, strict=True)
        given = tuple_text([self._typed(a, p.type) for a, p in pairs])
        found = "".join(f"{w.names.name(v)}, " for v in op.outputs)
        w.code.line(f"{found.rstrip()} = {name}({given})" if found else f"{name}({given})", op)

    def _call(self, op: Call) -> None:
        if op.program.interpreted:
            self._call_python(op)
            return
        w, called, key = self.parts, self.module.globals.called, id(op.program)
        if key not in called:
            called[key] = (op.program, w.names.temporary(op.program.name))
            self.module.result_types[key] = [v.type for v in op.outputs]
        name = called[key][1]
        given, found = [], [w.names.name(v) for v in op.outputs]
        for a, p in zip(op.args, op.program.block.params, strict=True):
            if w.stacks.is_stack(a):
                given += array_stacks.parts(w, a)
                found += array_stacks.parts(w, a)
            else:
                text = self._typed(a, p.type)  # compiled once: for any int, not for a literal
                given.append(f"np.int64({text})" if text.lstrip("-").isdigit() else text)
        args = ", ".join([self.stack or f"{w.helpers.use('stack_place')}()", *given])
        outputs = ", ".join(found)
        comma = "," if len(found) == 1 else ""
        w.code.line(f"{outputs}{comma} = {name}({args})" if outputs else f"{name}({args})", op)

    def follow(self, program: Program) -> NumbaWriter:
        """A writer for a callee, which writes its lines after this one's."""
        writer = NumbaWriter(program, self.module)
        writer.parts.arrays.loose.update(p for p in program.block.params if is_array(p))
        writer.stack = writer.parts.names.temporary("stack")
        return writer

    def callee(self, name: str) -> Callee:
        """Write the program as a function that others call, and that may call itself."""
        w = self.parts
        program = self.program
        params, stacks = [self.stack], [p for p in program.block.params if w.stacks.is_stack(p)]
        for p in program.block.params:
            params += array_stacks.begun(w, p) if p in stacks else [w.names.name(p)]
        parts = [part for stack in stacks for part in array_stacks.parts(w, stack)]
        kinds = [t for stack in stacks for t in array_stacks.part_types(w, stack)]
        w.code.line("")
        w.code.line("")
        w.code.line(f"def {name}({', '.join(params)}):")
        self._first = len(w.code.lines)
        results = self.module.result_types[id(program)]
        with w.code.indented():
            w.code.line(f"{w.helpers.use('check_stack')}({self.stack})")
            self.body(program.block)
            pairs = zip(program.block.results, results, strict=True)
            outputs = [*(self._typed(r, t) for r, t in pairs), *parts]
            w.code.line(f"return {tuple_text(outputs)}")
        inner = [*w.loops.inner, *w.loops.inside]
        return Callee(name, [*results, *kinds], w.names.types, inner, len(parts))


_BITS = 56  # a loop that begins below, in small steps, takes years to get beyond


def _of_constant(x: Any) -> int:
    """An upper bound of the bits of a loop's constant start or step; 64 of anything else."""
    return 32 if isinstance(x, int) and abs(x) < 2**31 else 64


def _tell_lengths(w: Parts, program: Program) -> None:
    """Check the known lengths of arguments once, so that no loop has to."""
    if not any(isinstance(op, Loop) for op in program.block.ops):
        return
    for p in program.block.params:
        lengths = p.type.shape if is_array(p) and not w.stacks.is_stack(p) else ()
        if any(isinstance(d, int) and d > 1 for d in lengths):
            name = w.names.name(p)
            known = [
                str(d) if isinstance(d, int) else f"{name}.shape[{k}]"
                for k, d in enumerate(lengths)
            ]
            w.code.line(f"{w.helpers.use('check_shape')}({name}, {tuple_text(known)})")


def numba_source(program: Program) -> tuple[Source, dict[str, Type]]:
    """Write a program as a function that returns a tuple of its results, for Numba to compile.

    Also returns the types that its variables must have once it is compiled. Raises
    :class:`CannotCompileError`, with the line, if an operation has no compiled form.
    """
    for p in program.block.params:
        if p.type.dtype == np.float16:  # which Numba has on devices only
            check_dtype(p.type.dtype)
    program = repeated(expanded(with_single_rows(with_single_lanes_as_numbers(program))))
    program = with_first_sums_stored(computed_in_rows(program))
    writer = NumbaWriter(program)
    w, module = writer.parts, writer.module
    given = {p: w.names.temporary("stack") for p in w.stacks.given}
    params = [given[p] if p in given else w.names.name(p) for p in program.block.params]
    name = w.names.plain.unique(program.name if program.name.isidentifier() else "traced")
    w.code.line(f"def {name}({', '.join(params)}):")
    with w.code.indented():
        for stack, word in given.items():
            array_stacks.unpack(w, stack, word)
        _tell_lengths(w, program)
        writer.body(program.block)
        results = [
            array_stacks.as_tuple(w, r) if w.stacks.is_stack(r) else writer.result(r)
            for r in program.block.results
        ]
        w.code.line(f"return {tuple_text(results)}")
    called: list[Callee] = []
    while len(called) < len(module.globals.called):  # callees, which may call others
        inner, inner_name = list(module.globals.called.values())[len(called)]
        follower = writer.follow(inner)
        follower.parts.names.plain.reserve([name])
        called.append(follower.callee(inner_name))
    helpers = {h: getattr(runtime_module(h), h) for h in sorted(module.helpers.used)}
    for h, (what, n) in module.helpers.lane_functions.items():
        helpers[h] = getattr(compiled_lanes(n), what)
    called_vectors = sorted(module.helpers.vector_functions)
    helpers.update((f, vector_functions.FUNCTIONS[f]) for f in called_vectors)
    namespace = {"np": np, "math": math, **helpers, **module.globals.objects}
    inside = [*w.loops.inner, *w.loops.inside]
    if module.outlined:
        namespace |= parallel_elements.namespace(inside, module.typed)
    code = "\n".join([*module.outlined, *module.code.lines]) + "\n"
    places = [*[None] * len(module.outlined), *module.code.places]
    made = Source(
        name, code, namespace, places, called=called, inner=inside, outlined=module.typed,
        callbacks=[callback for callback, _ in module.callbacks.values()],
    )  # fmt: skip
    return made, w.names.types
