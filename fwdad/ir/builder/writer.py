"""The writer: appends operations to the block that is open, and knows about their values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError, type_in_words
from fwdad.ir.abstract_eval.infer import infer
from fwdad.ir.abstract_eval.purity import FACTORS
from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.builder.array_contents import Contents
from fwdad.ir.builder.heap_journal import Journal, Region
from fwdad.ir.builder.shape_env import KnownLengths, length_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Checkpoint,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Value,
    is_array,
    map_values,
    values_in,
    walk,
)
from fwdad.ir.symbol import UNBOUND, Length, Symbol, UnknownText, kind_in_words
from fwdad.ir.types import ArrayType, CannotInferError, Number, Size, Type, number_type
from fwdad.ops.record import Memory, own_op
from fwdad.rules.core.registry import function_name
from fwdad.tangents import sparse


class Writer(Journal, KnownLengths):
    """Writes one tape, operation by operation.

    ``block`` is the block that is open; ``place`` returns the location of the expression that is
    being evaluated.
    """

    def __init__(self) -> None:
        Journal.__init__(self)
        KnownLengths.__init__(self)
        self.block = Block()
        self.place: Callable[[], Location | None] = lambda: None
        self.assumes = False  # whether lengths of the example may be taken for granted
        self.value_guards: dict[int, Any] = {}  # input: value
        # input's value: (input, example); no input for an array that is a constant
        self.examples: dict[Value, tuple[int | None, Any]] = {}
        self.assumed: set[Value] = set()  # arrays whose contents are taken for granted
        self._definitions: dict[Value, Op] = {}
        self.prints = False  # whether the traced function prints: output is left out
        self.rows = True  # whether it is likely that the inputs are C-contiguous
        self.threads = 1  # the cores that chunks of a Jacobian's columns are spread over
        self.differentiates = False  # whether what is written now is differentiated
        self.derives = False  # whether derivatives are among what is written
        self.split = 0  # how many arrays in loops became numbers
        self.turns = False  # whether it is written down where a reverse pass begins
        self.generators: dict[int, tuple[Any, Any]] = {}  # of random numbers, and where made
        self.carried: set[Value] = set()  # by loops: in another iteration, other arrays
        self.alone: set[Value] = set()  # inputs that must not share memory: a copy is written into
        self.copied: set[Value] = set()  # of those: inputs whose copy's layout is observable
        self.given: dict[Value, Value] = {}  # what stands for an argument that is differentiated
        self.cut: Any = None  # what is known of a program that will be cut in two
        self.pulled_at = -1  # the depth of the call that is reversed; -1 if none is
        self.checkpoint: Checkpoint | None = None  # of the loops that are written now
        self.in_checkpoint = False  # whether what is written now is run again, perhaps
        self.widened = 0  # how often a value was converted since another path has a wider type
        self.blocks = [self.block]  # those that are open, the innermost last
        self.first_block = 0  # of the function that is traced into a program of its own
        self.lists: list[Any] = []  # those that grow when the program runs
        self.unwritten: set[Value] = set()  # arrays that must stay as they are: a cache keeps them
        self.unchanged: list[tuple[Any, Any]] = []  # the same of containers
        self.places: dict[int, tuple[list[Any], Any]] = {}  # of lists: where they are made
        self.catchers: list[Any] = []  # each `try` whose body is traced, the innermost last
        self.capture: Callable[[Any], Symbol] | None = None
        self.is_written: Callable[[Value], bool] = lambda _: True

    # -- the heap

    @contextmanager
    def region(self, block: Block) -> Iterator[Region]:
        """Write into a block and journal heap changes, which the caller undoes or keeps."""
        made = self.enter(block)
        try:
            yield made
        except BaseException:  # what is refused inside leaves nothing behind
            for region in reversed(self.regions[self.regions.index(made) :]):
                region.undo()
            raise
        finally:
            self.leave(made)

    def enter(self, block: Block) -> Region:
        """Open a region, until it is left."""
        made = Region()
        made.outer = self.block, self.mark()
        self.block = block
        self.regions.append(made)
        self.blocks.append(block)
        return made

    def leave(self, region: Region) -> None:
        """Leave a region, and those that are open inside."""
        first = self.regions.index(region)
        left = self.regions[first:]
        del self.regions[first:]
        del self.blocks[-len(left) :]
        self.block, mark = region.outer
        self.forget(mark)  # what is defined inside is not known outside
        if self.regions:
            self.regions[-1].fresh.update(*(made.fresh for made in left))

    @contextmanager
    def alone_inside(self, *, seen: bool = True) -> Iterator[None]:
        """Write a separate program into the block that was opened last.

        Lists that grow outside cannot grow inside; they can be read if they are ``seen``.
        """
        outer = self.blocks, self.first_block
        if not seen:
            self.blocks = self.blocks[-1:]
        self.first_block = len(self.blocks) - 1
        try:
            yield
        finally:
            self.blocks, self.first_block = outer

    # -- operations

    def emit(self, op: Op) -> None:
        """Append an operation."""
        op.location = op.location or self.place()
        if self.unwritten and op.writes():
            self._stays(op)
        self.block.ops.append(op)
        for value in op.outputs:
            self._definitions[value] = op
            self.measure(value)

    def _stays(self, op: Op) -> None:
        """Raise if an operation may write into an array that must not change."""
        for v in {owner for written in op.writes() for owner in self.owners(written)}:
            if v in self.unwritten or v in self.carried:
                message = (
                    "an array is written that a function under `functools.lru_cache` reads, or "
                    "has returned, and Python would return its first result. This cannot be "
                    "traced: pass what changes as an argument"
                )
                raise UntraceableError(message, op.location)

    def made_by(self, value: Value) -> Op | None:
        """The operation that defines a value; None for an input."""
        return self._definitions.get(value)

    def in_order(self, ops: Container[Op]) -> list[Op]:
        """These operations, in the order in which they were written."""
        return [op for op in dict.fromkeys(self._definitions.values()) if op in ops]

    def is_merged(self, value: Value) -> bool:
        """Whether a value is the result of a branch or a loop."""
        return isinstance(self._definitions.get(value), (Branch, Loop))

    def is_view(self, value: Value, arrays: set[Value]) -> bool:
        """Whether an array is certainly one of ``arrays``, or a view of one."""
        while value not in arrays:
            op = self._definitions.get(value)
            if not isinstance(op, Load) or not op.view or type(op.array) is not Value:
                return False
            value = op.array
        return True

    def owners(self, value: Value) -> set[Value]:
        """The arrays that a value may alias, including itself, as far as is known."""
        found: set[Value] = set()
        waiting = [value]
        while waiting:
            v = waiting.pop()
            if v in found or not is_array(v):
                continue
            found.add(v)
            op = self._definitions.get(v)
            if isinstance(op, Load) and op.view:
                waiting.append(op.array)
            elif isinstance(op, Apply):
                waiting.extend(values_in(aliased_arguments(op)))
            elif isinstance(op, (Branch, Loop)):
                given = [b.results for b in op.blocks()]
                waiting.extend(values_in([given, op.operands()]))
            elif isinstance(op, Call):
                waiting.extend(values_in(op.args))
        return found

    def may_share(self, a: Value, b: Value) -> bool:
        """Whether two arrays may share memory."""
        one, other = self.owners(a), self.owners(b)
        if not one.isdisjoint(other):
            return True
        here = {v for op in self.block.ops for v in op.outputs}
        pairs = ((one, other), (other, one))
        return any(not p.isdisjoint(self.carried) and not q <= here for p, q in pairs)

    @property
    def latest(self) -> Op | None:
        """The last operation of the open block."""
        return self.block.ops[-1] if self.block.ops else None

    def cut_behind(self, op: Op | None) -> None:
        """Remove what was written into the open block after an operation; None removes all."""
        ops = self.block.ops
        while ops and ops[-1] is not op:
            ops.pop()

    def adopt(self, ops: list[Op]) -> None:
        """Append operations that were written into another block."""
        self.block.ops.extend(ops)

    def forced(self, value: Value) -> Any:
        """The value in the example, kept as a guard; UNBOUND unless it is known from inputs.

        An array qualifies if it is a few integers that nothing has written; nothing may write it
        from then on.
        """
        if is_array(value):
            if self._is_written(value):
                return UNBOUND
            self.assumed.add(value)
        if value in self.examples:
            k, example = self.examples[value]
            if k is not None:
                self.value_guards[k] = Contents(example) if is_array(value) else example
            return example
        op = self._definitions.get(value)
        if isinstance(op, Load):
            return self._forced_part(op)
        if not isinstance(op, Apply) or op.mutated:
            return UNBOUND
        if op.function is length_of:
            try:
                return self.known_length(Symbol(op.args[0], self), op.args[1])
            except UntraceableError:
                return UNBOUND
        if op.kwargs:
            return UNBOUND
        known = {}
        for v in values_in(op.args):  # of lists and tuples, too
            known[v] = self.forced(v)
            if known[v] is UNBOUND:
                return UNBOUND
        answer = op.function(*map_values(known.__getitem__, op.args))
        return answer if len(op.outputs) == 1 else answer[op.outputs.index(value)]

    def _forced_part(self, op: Load) -> Any:
        """The elements that a load with a known index reads, in the example."""
        array = self.forced(op.array)
        if array is UNBOUND:
            return UNBOUND
        known = {v: self.forced(v) for v in values_in(op.index)}
        if any(x is UNBOUND for x in known.values()):
            return UNBOUND
        return array[map_values(known.__getitem__, op.index)]

    def _is_written(self, value: Value) -> bool:
        """Whether an operation written so far may write into an array."""
        ops = (op for block in self.blocks for op in walk(block))
        return value in self.carried or any(
            value in self.owners(v) or v in self.carried for op in ops for v in op.writes()
        )

    def check_assumed(self) -> None:
        """Raise if an array is written whose contents were assumed."""
        for op in walk(self.block) if self.assumed else ():
            if any(not self.assumed.isdisjoint(self.owners(v)) for v in op.writes()):
                message = (
                    "an array is written whose contents serve as a shape or as axes elsewhere: "
                    "use a separate array for those"
                )
                raise UntraceableError(message, op.location)

    def operand(self, x: Any) -> Operand:
        """A traced value as an operand: symbols become values, arrays are captured."""
        if type(x) is Symbol:
            return x.value
        if type(x) is Length:
            return x.symbol.value
        if isinstance(x, Missing):
            return x
        if isinstance(x, (tuple, list)):
            made = [self.operand(item) for item in x]
            return tuple(made) if isinstance(x, tuple) else made
        if isinstance(x, slice):
            return slice(self.operand(x.start), self.operand(x.stop), self.operand(x.step))
        if isinstance(x, dict):
            return {key: self.operand(item) for key, item in x.items()}
        if isinstance(x, np.ndarray):
            return self.as_symbol(x).value
        if x is None or isinstance(
            x, (int, float, complex, str, bytes, np.generic, np.dtype, type, type(Ellipsis))
        ):
            if not isinstance(x, (np.datetime64, np.timedelta64)):
                return x
        if isinstance(x, range):
            return [self.operand(i) for i in x]
        if callable(x) or type(x).__name__ in FACTORS:
            return x
        message = (
            f"{kind_in_words(x)} is used as a value, but a traced function computes only with "
            "numbers, arrays and strings"
        )
        if sparse.is_of_sparse_arrays(x):
            message = sparse.UNTRACED
        raise UntraceableError(message, self.place())

    def as_symbol(self, x: Any) -> Symbol:
        """A number or array as a symbol."""
        if type(x) is Symbol:
            return x
        if isinstance(x, np.ndarray):
            if self.capture is None:
                message = "an array from outside the function is used where none can be"
                raise UntraceableError(message, self.place())
            return self.capture(x)
        t = number_type(x)
        if t is None:
            message = f"expected a number or an array; got {type_in_words(x)}"
            raise UntraceableError(message, self.place())
        value = Value(t)
        self.emit(Apply(_identity, (x,), outputs=(value,)))
        return Symbol(value, self)

    def symbols(self, found: Any) -> tuple[Any, list[Value]]:
        """Symbols for the types of a result, in its structure, and their values."""
        if isinstance(found, (tuple, list)):
            parts = [self.symbols(item) for item in found]
            made = [p for p, _ in parts]
            whole = type(found)(*made) if hasattr(found, "_fields") else type(found)(made)
            if isinstance(whole, list):
                self.own(whole)
            return whole, [v for _, values in parts for v in values]
        if isinstance(found, (Number, ArrayType)):
            value = Value(found)
            return Symbol(value, self), [value]
        return found, []

    def apply(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record a call of a function without side effects."""
        raise NotImplementedError

    def apply_typed(self, function: Callable[..., Any], args: tuple[Any, ...], t: Type) -> Symbol:
        """Record a call of a function whose result type is known."""
        value = Value(t)
        inputs = tuple(self.operand(a) for a in args)
        self.emit(Apply(function, inputs, outputs=(value,)))
        return Symbol(value, self)

    def mutate(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> None:
        """Record a call of a function that writes into its first argument."""
        inputs = tuple(self.operand(a) for a in args)
        options = {key: self.operand(a) for key, a in kwargs.items()}
        self.emit(Apply(function, inputs, options, mutated=(0,)))

    def check(
        self,
        condition: Any,
        exception: Any,
        arguments: tuple[Any, ...] = (),
        location: Location | None = None,
    ) -> None:
        """Record that an exception is raised unless a condition holds."""
        given = self.exception_arguments(arguments)
        self.emit(Check(self.operand(condition), exception, given, location=location))

    def exception_arguments(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an exception as operands; of a text, the part that is known."""
        plain = (a.known() if isinstance(a, UnknownText) else a for a in arguments)
        return tuple(self.operand(a) for a in plain)

    # -- types

    def infer(self, function: Any, inputs: Any, options: Any) -> Any:
        """The type of a call's result, in its structure; ``UntraceableError`` if unknown."""
        if self.same:
            inputs, options = map_values(self.alike, [inputs, options])
        try:
            return infer(function, inputs, options, self.known, self.place)
        except CannotInferError as error:
            reason: Exception = error
        try:
            if self._assume_lengths([inputs, options]):
                return infer(function, inputs, options, self.known, self.place)
        except CannotInferError as error:
            reason = error
        message = (
            f"the type that {function_name(function)} returns cannot be determined at trace time: "
            f"{reason}"
        )
        raise UntraceableError(message, self.place()) from reason

    def _assume_lengths(self, operands: Operand) -> bool:
        """Assume the example's lengths for inputs and their slices; whether any was new."""
        if not self.assumes:
            return False
        found = False
        for v in values_in(operands):
            for axis, d in enumerate(v.type.shape):
                if isinstance(d, Size) and d not in self.known and self.is_of_inputs(d):
                    self.known_length(Symbol(v, self), axis)
                    found = True
        return found


@own_op(memory=Memory.MAYBE)
def _identity(x: Any) -> Any:
    return x
