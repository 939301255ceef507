"""The recorder: appends operations to the block that is open, and types their results."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.core.containers import of_class
from fwdad.errors import Location, UntraceableError, type_in_words
from fwdad.ir.abstract_eval.infer import infer
from fwdad.ir.abstract_eval.purity import FACTORS
from fwdad.ir.abstract_eval.rule_trials import check_on_samples
from fwdad.ir.builder.call_form import tidy, with_named_out
from fwdad.ir.builder.canonical import (
    OF_UFUNCS,
    apply_out,
    apply_writer,
    cast_before,
    check_castable,
    under_one_name,
    with_arrays,
)
from fwdad.ir.builder.definitions import Definitions
from fwdad.ir.builder.examples import Examples
from fwdad.ir.builder.heap_journal import Journal, Region
from fwdad.ir.builder.index_parts import check_index, check_rank, check_value, selected_rank
from fwdad.ir.builder.indexing import Indexing
from fwdad.ir.builder.path_types import check_paths
from fwdad.ir.builder.shape_env import KnownLengths, LengthNeededError, length_if_any, length_of
from fwdad.ir.leaves import Leaves
from fwdad.ir.ops import (
    Apply,
    Block,
    Check,
    Checkpoint,
    Load,
    Missing,
    Op,
    Operand,
    Store,
    Update,
    Value,
    map_values,
    values_in,
)
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.primitives.identity import identity
from fwdad.ir.rewrite import repeats
from fwdad.ir.symbol import Length, Symbol, UnknownText, kind_in_words
from fwdad.ir.types import INT, ArrayType, CannotInferError, Number, Size, Type, number_type
from fwdad.rules.core.by_position import LOOP_DTYPES, by_position
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.tangents import sparse


def _dtype_of(x: Any) -> Any:
    return x.dtype if type(x) is Symbol else getattr(x, "dtype", None) or np.asarray(x).dtype


# Questions about types: returned when the tape is written.
STATIC: dict[Any, Callable[..., Any]] = {
    np.iscomplexobj: lambda x: _dtype_of(x).kind == "c",
    np.isrealobj: lambda x: _dtype_of(x).kind != "c",
    np.ndim: lambda a: a.ndim if type(a) is Symbol else np.ndim(a),
    np.shape: lambda a: a.shape if type(a) is Symbol else np.shape(a),
    np.size: lambda a: a.size if type(a) is Symbol else np.size(a),
    np.isscalar: lambda element: type(element) is Symbol and not element.is_array,
    np.result_type: lambda *parts: np.result_type(
        *(p.dtype if type(p) is Symbol else p for p in parts)
    ),
}


class Recorder:
    """Writes one tape, operation by operation.

    ``block`` is the block that is open; ``place`` returns the location of the expression that is
    being evaluated. Calls, indices and stores are recorded in canonical form, which may take
    further calls: this is one class, because these need one another.

    Attributes
    ----------
    journal : Journal
        The containers of the traced program.
    lengths : KnownLengths
        What is known about lengths of arrays.
    definitions : Definitions
        Which operation defines each value, and which arrays may share memory.
    examples : Examples
        What is taken for granted of the example.
    """

    def __init__(self) -> None:
        self.block = Block()
        self.place: Callable[[], Location | None] = lambda: None
        self.journal = Journal()
        self.lengths = KnownLengths(lambda: self.place())
        self.definitions = Definitions()
        self.examples = Examples(self, self.definitions, self.lengths)
        self.indexing = Indexing(self, self.lengths)
        self.assumes = False  # whether lengths of the example may be taken for granted
        self.prints = False  # whether the traced function prints: output is left out
        self.rows = True  # whether it is likely that the inputs are C-contiguous
        self.threads = 1  # the cores that chunks of a Jacobian's columns are spread over
        self.differentiates = False  # whether what is written now is differentiated
        self.derives = False  # whether derivatives are among what is written
        self.split = 0  # how many arrays in loops became numbers
        self.turns = False  # whether it is written down where a reverse pass begins
        self.generators: dict[int, tuple[Any, Any]] = {}  # of random numbers, and where made
        self.pending: dict[str, Any] = {}  # places of statements that generators are inside of
        self.journal.own(self.pending, namespace=True)
        self.answered: Apply | None = None  # a call whose result is known: it is not written again
        self.alone: set[Value] = set()  # inputs that must not share memory: a copy is written into
        self.copied: set[Value] = set()  # of those: inputs whose copy's layout is observable
        self.given: dict[Value, Value] = {}  # what stands for an argument that is differentiated
        # whether a constant among the arguments refers to one that carries derivatives
        self.refers_back: Callable[[Any], bool] = lambda _: False
        self.cut: Any = None  # what is known of a program that will be cut in two
        self.pulled_at = -1  # the depth of the call that is reversed; -1 if none is
        self.checkpoint: Checkpoint | None = None  # of the loops that are written now
        self.in_checkpoint = False  # whether what is written now is run again, perhaps
        self.widened = 0  # how often a value was converted since another path has a wider type
        self.blocks = [self.block]  # those that are open, the innermost last
        self.first_block = 0  # of the function that is traced into a program of its own
        self.lists: list[Any] = []  # those that grow when the program runs
        self.unwritten: dict[Value, str] = {}  # arrays that must stay as they are, and why
        self.unchanged: list[tuple[Any, Any]] = []  # the same of containers
        self.places: dict[int, tuple[list[Any], Any]] = {}  # of lists: where they are made
        self.catchers: list[Any] = []  # each `try` whose body is traced, the innermost last
        self.capture: Callable[[Any], Symbol] | None = None
        self.ways: Any = None  # what follows the example where ways of a branch cannot be merged
        self.is_written: Callable[[Value], bool] = lambda _: True

    # -- blocks, with what changes on the heap inside

    @contextmanager
    def region(self, block: Block) -> Iterator[Region]:
        """Write into a block and journal heap changes, which the caller undoes or keeps."""
        made = self.enter(block)
        try:
            yield made
        except BaseException:  # what is refused inside leaves nothing behind
            for region in reversed(self.journal.regions[self.journal.regions.index(made) :]):
                region.undo()
            raise
        finally:
            self.leave(made)

    def enter(self, block: Block) -> Region:
        """Open a region, until it is left."""
        made = Region()
        made.outer = self.block, self.lengths.mark()
        self.block = block
        self.journal.regions.append(made)
        self.blocks.append(block)
        return made

    def leave(self, region: Region) -> None:
        """Leave a region, and those that are open inside."""
        first = self.journal.regions.index(region)
        left = self.journal.regions[first:]
        del self.journal.regions[first:]
        del self.blocks[-len(left) :]
        self.block, mark = region.outer
        self.lengths.forget(mark)  # what is defined inside is not known outside
        if self.journal.regions:
            self.journal.regions[-1].fresh.update(*(made.fresh for made in left))

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

    @property
    def scope(self) -> tuple[int, int]:
        """Where operations recorded now are visible: the open block since the last rewind."""
        return id(self.block), self.lengths.rewinds

    # -- operations

    def emit(self, op: Op) -> None:
        """Append an operation."""
        op.location = op.location or self.place()
        if self.unwritten and op.writes():
            self._stays(op)
        self.block.ops.append(op)
        self.definitions.note(op)
        for value in op.outputs:
            self.lengths.measure(value)

    def _stays(self, op: Op) -> None:
        """Raise if an operation may write into an array that must not change."""
        for v in {owner for written in op.writes() for owner in self.definitions.owners(written)}:
            carried = next(iter(self.unwritten.values())) if v in self.definitions.carried else None
            why = self.unwritten.get(v, carried)  # what a loop carries may be any of them
            if why is not None:
                raise UntraceableError(f"an array is written {why}", op.location)

    def may_share(self, a: Value, b: Value) -> bool:
        """Whether two arrays may share memory."""
        return self.definitions.may_share(a, b, self.block)

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

    # -- operands

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
            "numbers, arrays and strings: take what is needed of it as an array"
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
        self.emit(Apply(identity, (x,), outputs=(value,)))
        return Symbol(value, self)

    def as_array(self, x: Any) -> Any:
        """A list that holds symbols as the array that NumPy makes of it; else ``x`` itself."""
        if type(x) not in (list, tuple) or not values_in(self.operand(x)):
            return x
        return self.apply(np.array, (x,), {})

    def symbols(self, found: Any) -> tuple[Any, list[Value]]:
        """Symbols for the types of a result, in its structure, and their values."""
        if isinstance(found, (tuple, list)):
            parts = [self.symbols(item) for item in found]
            made = [p for p, _ in parts]
            whole = of_class(type(found), made)
            if isinstance(whole, list):
                self.journal.own(whole)
            return whole, [v for _, values in parts for v in values]
        if isinstance(found, (Number, ArrayType)):
            value = Value(found)
            return Symbol(value, self), [value]
        return found, []

    # -- calls

    def apply(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record a call of a function without side effects, and return its result.

        ``UntraceableError`` if the type of the result is unknown.
        """
        if kwargs:
            args, kwargs = by_position(function, args, kwargs)
        known = STATIC.get(function)
        if known is not None:
            return known(*args, **kwargs)
        rule = find_rule(function)
        if rule is not None and rule.mutates:
            return apply_writer(self, rule, args, kwargs)
        args, kwargs = with_named_out(function, args, kwargs)
        if kwargs.get("out") is not None:
            return apply_out(self, function, args, dict(kwargs))
        args, kwargs = with_arrays(self, function, *tidy(function, args, kwargs))
        function, args = under_one_name(function, args, kwargs)
        inputs = tuple(self.operand(a) for a in args)
        options = {key: self.operand(a) for key, a in kwargs.items()}
        if rule is not None and rule.of_user:
            check_on_samples(rule, inputs, options, self.place())
        if self.answered is not None and repeats(self.answered, function, inputs, options):
            return Symbol(self.answered.outputs[0], self)
        found = self.infer(function, inputs, options)
        check_paths(function, [inputs, options], found, self._inferred, self.place)
        if isinstance(found, (str, bytes)):
            return UnknownText(self.place())
        if isinstance(function, np.ufunc) and not OF_UFUNCS.isdisjoint(options):
            ruled = rule is not None and rule.kind not in ("elementwise", "constant")
            if ruled or not LOOP_DTYPES.isdisjoint(options):
                return cast_before(self, function, args, kwargs)
        if found is None and isinstance(function, types.BuiltinFunctionType):
            message = (
                f"{function_name(function)} returns None: it writes into an array that it is "
                "given, which cannot be traced"
            )
            raise UntraceableError(message, self.place())
        made, values = self.symbols(found)
        if isinstance(found, (tuple, list)) and (len(found) < 2 or len(values) != len(found)):
            function = Leaves(function)
        self.emit(Apply(function, inputs, options, outputs=tuple(values)))
        return made

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

    def _inferred(self, function: Any, inputs: Any, options: Any) -> Any:
        known = dict(self.lengths.known)
        found = infer(function, inputs, options, known, self.place)
        for v in values_in([inputs, options]):
            for axis, d in enumerate(v.type.shape):
                if d in known:
                    self.lengths.known_length(v, axis)
        return found

    def infer(self, function: Any, inputs: Any, options: Any) -> Any:
        """The type of a call's result, in its structure; ``UntraceableError`` if unknown."""
        if self.lengths.same or self.lengths.known:
            inputs, options = map_values(self.lengths.alike, [inputs, options])
        try:
            return self._inferred(function, inputs, options)
        except CannotInferError as error:
            reason: Exception = error
        try:
            if self._assume_lengths([inputs, options]):
                return self._inferred(function, inputs, options)
        except CannotInferError as error:
            reason = error
        what = f"the type that {function_name(function)} returns"
        message = f"{what} cannot be determined at trace time: {reason}"
        lengths = {type(d) for v in values_in([inputs, options]) for d in v.type.shape}
        refusal = LengthNeededError if Size in lengths else UntraceableError
        raise refusal(message, self.place()) from reason

    def _assume_lengths(self, operands: Operand) -> bool:
        """Assume the example's lengths for inputs and their slices; whether any was new."""
        if not self.assumes:
            return False
        found = [self.lengths.assume(v) for v in values_in(operands)]
        return any(found)

    # -- lengths

    def shape(self, a: Symbol) -> tuple[Any, ...]:
        """The lengths of an array: ints where they are known, else symbols."""
        return tuple(self.length(a, axis) for axis in range(a.type.ndim))

    def length(self, a: Symbol, axis: int, *, missing: bool = False) -> Any:
        """One length of an array; zero if the array, which may be ``missing``, is absent."""
        d = a.type.shape[axis]
        if isinstance(d, Size):
            if d in self.lengths.known:
                return self.lengths.known[d]
            value = Value(Number(INT.dtype, python=True, size=self.lengths.same.get(d, d)))
            asked = length_if_any if missing else length_of
            self.emit(Apply(asked, (a.value, axis), outputs=(value,)))
            return Symbol(value, self)
        return d

    def static_length(self, d: Any) -> Any:
        """A length that rules can compare and pass on: an int, or a :class:`Length`."""
        if not isinstance(d, Size):
            return d
        return (
            self.lengths.known[d]
            if d in self.lengths.known
            else Length(self.lengths.same.get(d, d), self)
        )

    def length_symbol(self, d: Size) -> Symbol:
        """An unknown length as a number."""
        t = Number(INT.dtype, python=True, size=d)
        place = self.lengths.place_of(d)
        if place is not None:
            value, axis = place
            return self.apply_typed(length_of, (Symbol(value, self), axis), t)
        of, by = d.shortened
        if of is not d and by <= of.least:
            change, k = (operator.sub, by) if by > 0 else (operator.add, -by)
            return self.apply(change, (self.length_symbol(of), k), {})
        coefficient, factors = d.factors
        if factors == (d,):
            message = "a length is needed that is computed at run time, and that no known array has"
            raise UntraceableError(message, self.place())
        total: Any = coefficient
        for f in factors:
            factor = self.length_symbol(f)
            total = factor if type(total) is int and total == 1 else factor * total
        total.value.type = t
        return total

    def sum_to(self, x: Symbol, shape: tuple[Any, ...]) -> Symbol:
        """Record the sum of ``x`` over the axes along which a value of this shape was broadcast.

        ``x`` has the rank of ``shape``, whose entries are lengths from :meth:`static_length`.
        """
        sizes = tuple(n.size if type(n) is Length else n for n in shape)
        return self.apply_typed(sum_to, (x, *shape), ArrayType(x.dtype, sizes))

    # -- loads and stores

    def load(self, a: Symbol, index: Any) -> Any:
        """Record ``a[index]``."""
        a, at = self.indexing.beside(a, self.indexing.at(index))
        found, view = self.indexing.type_of(a, at)
        value = Value(found)
        self.emit(Load(a.value, self.operand(at), view, outputs=(value,)))
        return Symbol(value, self)

    def store(self, a: Any, index: Any, value: Any) -> None:
        """Record ``a[index] = value``."""
        if type(a) is not Symbol:
            a = self.as_symbol(a)
        a, at, value = self._written(a, index, value)
        self.emit(Store(a.value, self.operand(at), self.operand(value)))

    def update(self, a: Symbol, index: Any, function: Callable[..., Any], value: Any) -> None:
        """Record ``a[index] op= value``, in place."""
        a, at, value = self._written(a, index, value)
        if a.is_array and type(value) is Symbol:
            check_rank(selected_rank(at, a.value.type.ndim), value.type)
        self.emit(Update(a.value, self.operand(at), function, self.operand(value)))

    def _written(self, a: Symbol, index: Any, value: Any) -> tuple[Symbol, tuple[Any, ...], Any]:
        """The array, the index and the value of a write, in canonical form."""
        if isinstance(a.type, Number):
            name = type(a.dtype.type().item()).__name__ if a.type.python else f"numpy.{a.dtype}"
            raise TypeError(f"{name!r} object does not support item assignment")
        value = self.as_array(value)
        check_castable(self, a, value)
        at = self.indexing.at(index)
        if isinstance(a.value.type, ArrayType):
            check_index(at, a.value.type.ndim)
            check_value(at, a.value.type.ndim, value)
            if self.definitions.is_read_only(a.value):
                if self.definitions.owners(a.value).isdisjoint(self.unwritten):
                    message = "assignment destination is read-only"
                    raise ValueError(message)
        return *self.indexing.beside(a, at), value

    def store_where(self, a: Symbol, value: Any, where: Any) -> None:
        """Record a write into an array where a condition holds; ``True`` is everywhere."""
        if where is not True:
            value = self.apply(np.where, (where, value, a), {})
        self.store(a, Ellipsis, value)
