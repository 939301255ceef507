"""The recorder: writes operations into the block that is open."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError
from fwdad.rules.by_position import by_position, told_dtypes
from fwdad.rules.registry import find_rule, function_name
from fwdad.tangents import sparse
from fwdad.tape.alias import windows
from fwdad.tape.call_form import tidy, with_named_out
from fwdad.tape.index_parts import is_basic, is_mask, is_plain, mask_rank, sample_index
from fwdad.tape.infer import infer
from fwdad.tape.journal import Journal, Region
from fwdad.tape.known_lengths import KnownLengths, length_if_any, length_of
from fwdad.tape.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Checkpoint,
    Leaves,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Store,
    Update,
    Value,
    is_array,
    map_values,
    values_in,
)
from fwdad.tape.samples import CannotInferError
from fwdad.tape.summing import sum_to
from fwdad.tape.symbol import UNBOUND, Length, Symbol, UnknownText
from fwdad.tape.types import INT, ArrayType, Number, Size, Type, number_type, sliced


def _dtype_of(x: Any) -> Any:
    return x.dtype if type(x) is Symbol else getattr(x, "dtype", None) or np.asarray(x).dtype


_FACTORS = {"SuperLU"}  # objects that are constants to whoever is given one
_LISTS = {list, tuple}
_MADE_ARRAYS: dict[str, set[Any]] = {"multilinear": {*_LISTS}, "frule": {list}}  # by kind of rule
_OF_UFUNCS = {"dtype", "casting", "order", "subok"}
_OF_PYTHON: dict[str, Any] = {"i": int, "f": float, "c": complex}

# Questions about types: answered when the tape is written.
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


class Recorder(Journal, KnownLengths):
    """Writes one tape.

    Attributes
    ----------
    block : Block
        The block that is open.
    place : callable
        Answers the location of the expression that is being evaluated.
    """

    def __init__(self) -> None:
        Journal.__init__(self)
        KnownLengths.__init__(self)
        self.block = Block()
        self.place: Callable[[], Location | None] = lambda: None
        self.assumes = False  # whether lengths of the example may be taken for granted
        self.value_guards: dict[int, Any] = {}  # input: value
        self.examples: dict[Value, tuple[int, Any]] = {}  # input's value: (input, example)
        self._definitions: dict[Value, Op] = {}
        self.prints = False  # whether the traced function prints: output is left out
        self.rows = True  # whether it is likely that the inputs lie row by row
        self.threads = 1  # the cores that chunks of a Jacobian's columns are spread over
        self.differentiates = False  # whether what is written now is differentiated
        self.derives = False  # whether derivatives are among what is written
        self.split = 0  # how many arrays in loops became numbers
        self.turns = False  # whether it is written down where a way back begins
        self.generators: dict[int, tuple[Any, Any]] = {}  # of random numbers, and where made
        self.carried: set[Value] = set()  # by loops: in another iteration, other arrays
        self.alone: set[Value] = set()  # inputs that must not share memory: a copy is written into
        self.cut: Any = None  # what is told of a program that is to be cut in two
        self.pulled_at = -1  # how deep the call is that is run backwards; -1 if none is
        self.checkpoint: Checkpoint | None = None  # of the loops that are written now
        self.capture: Callable[[Any], Symbol] | None = None
        self.is_written: Callable[[Value], bool] = lambda _: True

    # -- the heap

    @contextmanager
    def region(self, block: Block) -> Iterator[Region]:
        """Write into a block, and journal what changes; the caller undoes or keeps it."""
        outer, made = self.block, Region()
        mark = self.mark()
        self.block = block
        self.regions.append(made)
        try:
            yield made
        except BaseException:  # what is refused inside leaves nothing behind
            made.undo()
            raise
        finally:
            self.regions.pop()
            self.block = outer
            self.forget(mark)  # what is defined inside is not known outside
            if self.regions:
                self.regions[-1].fresh |= made.fresh

    # -- operations

    def emit(self, op: Op) -> None:
        """Append an operation."""
        op.location = op.location or self.place()
        self.block.ops.append(op)
        for value in op.outputs:
            self._definitions[value] = op
            self.measure(value)

    def is_merged(self, value: Value) -> bool:
        """Whether a value is what a branch or loop leaves behind."""
        return isinstance(self._definitions.get(value), (Branch, Loop))

    def owners(self, value: Value) -> set[Value]:
        """The arrays that another one may be memory of, itself among them, as far as is known."""
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
                waiting.extend(values_in(windows(op)))
            elif isinstance(op, (Branch, Loop)):
                given = [b.results for b in op.blocks()]
                waiting.extend(values_in([given, op.operands()]))
            elif isinstance(op, Call):
                waiting.extend(values_in(op.args))
        return found

    def may_share(self, a: Value, b: Value) -> bool:
        """Whether two arrays may be windows on the same memory."""
        one, other = self.owners(a), self.owners(b)
        if not one.isdisjoint(other):
            return True
        here = {v for op in self.block.ops for v in op.outputs}
        pairs = ((one, other), (other, one))
        return any(not p.isdisjoint(self.carried) and not q <= here for p, q in pairs)

    def adopt(self, ops: list[Op]) -> None:
        """Append operations that were written into another block."""
        self.block.ops.extend(ops)

    def forced(self, value: Value) -> Any:
        """What a value was in the example, kept as a guard; UNBOUND if it is not from inputs."""
        if value in self.examples:
            k, example = self.examples[value]
            self.value_guards[k] = example
            return example
        op = self._definitions.get(value)
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
            known[v] = UNBOUND if is_array(v) else self.forced(v)  # an array is written into
            if known[v] is UNBOUND:
                return UNBOUND
        return op.function(*map_values(known.__getitem__, op.args))

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
        if callable(x) or type(x).__name__ in _FACTORS:
            return x
        what = getattr(x, "in_words", f"a {type(x).__name__}")
        message = f"{what} is used as a value where numbers and arrays are known"
        if sparse.is_of_sparse_arrays(x):
            message = sparse.UNTRACED
        raise UntraceableError(message, self.place())

    def as_symbol(self, x: Any) -> Symbol:
        """A number or array as a symbol."""
        if type(x) is Symbol:
            return x
        if isinstance(x, np.ndarray):
            if self.capture is None:
                message = "an array is captured where no array can be"
                raise UntraceableError(message, self.place())
            return self.capture(x)
        t = number_type(x)
        if t is None:
            message = f"a {type(x).__name__} where a number or an array is wanted"
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
        """Write a call of a function without side effects.

        Raises
        ------
        UntraceableError
            If the type of its result cannot be told.
        """
        if kwargs:
            args, kwargs = by_position(function, args, kwargs)
        known = STATIC.get(function)
        if known is not None:
            return known(*args, **kwargs)
        args, kwargs = with_named_out(function, args, kwargs)
        if kwargs.get("out") is not None:
            return self._apply_out(function, args, dict(kwargs))
        args, kwargs = self._with_arrays(function, *tidy(function, args, kwargs))
        inputs = tuple(self.operand(a) for a in args)
        options = {key: self.operand(a) for key, a in kwargs.items()}
        found = self._infer(function, inputs, options)
        if isinstance(found, (str, bytes)):
            return UnknownText(self.place())
        if isinstance(function, np.ufunc) and not _OF_UFUNCS.isdisjoint(options):
            rule = find_rule(function)
            ruled = rule is not None and rule.kind not in ("elementwise", "constant")
            if ruled or "dtype" in options:
                return self._cast_before(function, args, kwargs)
        if found is None and isinstance(function, types.BuiltinFunctionType):
            message = (
                f"{function_name(function)} answers nothing: it writes into an array that it is "
                "given, which a tape cannot follow"
            )
            raise UntraceableError(message, self.place())
        made, values = self.symbols(found)
        if isinstance(found, (tuple, list)) and (len(found) < 2 or len(values) != len(found)):
            function = Leaves(function)
        self.emit(Apply(function, inputs, options, outputs=tuple(values)))
        return made

    def _cast_before(self, ufunc: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """A ufunc without the options that all ufuncs have: its rule does not know them."""
        rest = {key: a for key, a in kwargs.items() if key not in _OF_UFUNCS}
        if kwargs.get("dtype") is None:
            return self.apply(ufunc, args, rest)
        arrays = [self.as_symbol(np.asarray(a) if type(a) in _LISTS else a) for a in args]
        given = [
            _OF_PYTHON.get(a.type.dtype.kind, a.type.dtype)
            if getattr(a.type, "python", False)
            else a.type.dtype
            for a in arrays
        ]
        found = told_dtypes(ufunc, given, kwargs["dtype"], kwargs.get("casting", "same_kind"))

        def cast(a: Symbol, wanted: np.dtype) -> Symbol:
            if a.type.dtype == wanted:
                return a
            if a.is_array:
                return self.apply(np.ndarray.astype, (a, wanted), {})
            return self.apply(wanted.type, (a,), {})

        return self.apply(ufunc, tuple(map(cast, arrays, found)), rest)

    def _with_arrays(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call in which lists that hold symbols are arrays, where NumPy makes arrays of lists."""
        if _LISTS.isdisjoint(map(type, args)) and _LISTS.isdisjoint(map(type, kwargs.values())):
            return args, kwargs
        if function is np.full:
            args = (*args[:1], *map(self._as_array, args[1:2]), *args[2:])
            given = {"fill_value": self._as_array(kwargs["fill_value"])} if len(args) < 2 else {}
            return args, {**kwargs, **given}
        rule = find_rule(function)
        if rule is None or not (rule.takes_arrays or rule.takes_sequences):
            return args, kwargs
        names, primals = rule.binder.positional, rule.binder.primals
        numbers = _MADE_ARRAYS.get(rule.kind, set())

        def array_of(x: Any) -> Any:
            if type(x) in numbers and _holds_numbers(x):  # bodies ask for its shape
                return self.apply(np.array, (x,), {})
            return self._as_array(x)

        def made(a: Any, name: str | None) -> Any:
            if name not in primals and not (name is None and rule.binder.variadic_active):
                return a
            first = primals.index(name) if name in primals else len(primals)
            whole = self._as_array if name is None else array_of  # numbers of einsum name axes
            return rule.with_arrays((a,), whole, first)[0]

        args = tuple(made(a, name) for a, name in zip_longest(args, names[: len(args)]))
        return args, {key: made(a, key) for key, a in kwargs.items()}

    def _as_array(self, x: Any) -> Any:
        """A list that holds symbols as the array that NumPy makes of it."""
        if type(x) not in _LISTS or not values_in(self.operand(x)):
            return x
        return self.apply(np.array, (x,), {})

    def _apply_out(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that writes what it answers into arrays that are given."""
        out = kwargs.pop("out")
        # of a reduction it is the elements that count, of these those of `out` that are written
        of_out = isinstance(function, np.ufunc) or function is np.clip
        where = kwargs.pop("where", True) if of_out else True
        answers = self.apply(function, args, kwargs)
        if isinstance(out, tuple) and len(out) == 1:
            (out,) = out
        if out is None:
            return answers
        pairs = zip(out, answers, strict=True) if isinstance(out, tuple) else [(out, answers)]
        for target, y in pairs:
            if target is None:
                continue
            if not isinstance(target, np.ndarray) and not getattr(target, "is_array", False):
                message = "return arrays must be of ArrayType"
                raise TypeError(message)
            into = self.as_symbol(target)
            if not np.can_cast(y.type.dtype, into.type.dtype, "same_kind"):
                message = f"a {y.type} does not go into an array of dtype {into.type.dtype}"
                raise UntraceableError(message, self.place())
            self.store_where(into, y, where)
        if isinstance(out, tuple):
            return tuple(y if t is None else t for t, y in zip(out, answers, strict=True))
        return out

    def _infer(self, function: Any, inputs: Any, options: Any) -> Any:
        if self.same:
            inputs, options = map_values(self.alike, [inputs, options])
        try:
            return infer(function, inputs, options, self.known)
        except CannotInferError as error:
            reason: Exception = error
        try:
            if self._assume_lengths([inputs, options]):
                return infer(function, inputs, options, self.known)
        except CannotInferError as error:
            reason = error
        message = (
            f"the type of what {function_name(function)} answers cannot be told beforehand: "
            f"{reason}"
        )
        raise UntraceableError(message, self.place()) from reason

    def _assume_lengths(self, operands: Operand) -> bool:
        """Take the lengths of inputs, and of their slices, as those of the example."""
        if not self.assumes:
            return False
        found = False
        for v in values_in(operands):
            for axis, d in enumerate(v.type.shape):
                if isinstance(d, Size) and d not in self.known and self.is_of_inputs(d):
                    self.known_length(Symbol(v, self), axis)
                    found = True
        return found

    def apply_typed(self, function: Callable[..., Any], args: tuple[Any, ...], t: Type) -> Symbol:
        """Write a call of a function whose result's type is known."""
        value = Value(t)
        inputs = tuple(self.operand(a) for a in args)
        self.emit(Apply(function, inputs, outputs=(value,)))
        return Symbol(value, self)

    def mutate(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> None:
        """Write a call of a function that writes into its first argument."""
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
        """Write that an exception is raised unless a condition holds."""
        given = tuple(self.operand(a) for a in arguments)
        self.emit(Check(self.operand(condition), exception, given, location=location))

    # -- arrays

    def sum_to(self, x: Symbol, shape: tuple[Any, ...]) -> Symbol:
        """Write the sum over the axes that something of a shape was broadcast along.

        Parameters
        ----------
        x : Symbol
            Of as many axes.
        shape : tuple
            Lengths as :meth:`static_length` answers them.
        """
        sizes = tuple(n.size if type(n) is Length else n for n in shape)
        return self.apply_typed(sum_to, (x, *shape), ArrayType(x.dtype, sizes))

    def shape(self, a: Symbol) -> tuple[Any, ...]:
        """The lengths of an array: ints where they are known, else symbols."""
        return tuple(self.length(a, axis) for axis in range(a.type.ndim))

    def length(self, a: Symbol, axis: int, *, missing: bool = False) -> Any:
        """One length of an array; zero if there is none where it may be ``missing``."""
        d = a.type.shape[axis]
        if isinstance(d, Size):
            if d in self.known:
                return self.known[d]
            value = Value(Number(INT.dtype, python=True, size=self.same.get(d, d)))
            asked = length_if_any if missing else length_of
            self.emit(Apply(asked, (a.value, axis), outputs=(value,)))
            return Symbol(value, self)
        return d

    def static_length(self, d: Any) -> Any:
        """A length for rules to compare and to hand on: an int, or the length itself."""
        if not isinstance(d, Size):
            return d
        return self.known[d] if d in self.known else Length(self.same.get(d, d), self)

    def length_symbol(self, d: Size) -> Symbol:
        """A length that is not known, as a number."""
        t = Number(INT.dtype, python=True, size=d)
        place = self._given.get(d) or self._measured.get(d) or self._doubtful.get(d)
        if place is not None:
            value, axis = place
            return self.apply_typed(length_of, (Symbol(value, self), axis), t)
        coefficient, factors = d.factors
        if factors == (d,):
            message = "a length is needed of which no array is known that has it"
            raise UntraceableError(message, self.place())
        total: Any = coefficient
        for f in factors:
            factor = self.length_symbol(f)
            total = factor if type(total) is int and total == 1 else factor * total
        total.value.type = t
        return total

    def load(self, a: Symbol, index: Any) -> Any:
        """Write ``a[index]``."""
        a, at = self._beside(a, self._at(index))
        found, view = self.indexed(a, at)
        value = Value(found)
        self.emit(Load(a.value, self.operand(at), view, outputs=(value,)))
        return Symbol(value, self)

    def _at(self, index: Any) -> tuple[Any, ...]:
        """An index as a tuple; a list with numbers of the tape in it is an array of these."""
        at = index if type(index) is tuple else (index,)
        return tuple(
            self.apply(np.array, (i,), {})
            if isinstance(i, list) and any(True for _ in values_in(self.operand(i)))
            else i
            for i in at
        )

    def _beside(self, a: Symbol, at: tuple[Any, ...]) -> tuple[Symbol, tuple[Any, ...]]:
        """An index whose arrays stand beside each other, and the window that it is one of.

        ``a[i, :, j]`` is ``a.transpose(0, 2, 1)[i, j]``: what arrays apart from each other mean
        comes first, and so would lanes.
        """
        advanced = [
            k for k, i in enumerate(at) if not (i is None or i is ...) and not isinstance(i, slice)
        ]
        apart = advanced and advanced[-1] - advanced[0] >= len(advanced)
        if not apart or all(map(is_basic, at)) or not isinstance(a.value.type, ArrayType):
            return a, at
        taken = {k: mask_rank(at[k]) or 1 for k in advanced}
        rank = a.value.type.ndim
        free = rank - sum(taken.values()) - sum(isinstance(i, slice) for i in at)
        if free < 0:
            return a, at  # too many, which is said where they are counted
        axis, first, rest, others = 0, list[int](), list[int](), list[Any]()
        for k, i in enumerate(at):
            n = taken.get(k, free if i is ... else int(i is not None))
            (first if k in taken else rest).extend(range(axis, axis + n))
            axis += n
            if k not in taken:
                others += [slice(None)] * n if i is ... else [i]
        window = self.apply(np.transpose, (a, (*first, *rest, *range(axis, rank))), {})
        return window, (*(at[k] for k in advanced), *others)

    def indexed(self, a: Symbol, at: tuple[Any, ...]) -> tuple[Type, bool]:
        """The type of ``a[at]``, and whether it is a window.

        Parameters
        ----------
        a : Symbol
            An array.
        at : tuple
            The parts of the index.
        """
        t = a.value.type
        if not isinstance(t, ArrayType):
            message = f"a {t} cannot be indexed"
            raise UntraceableError(message, self.place())
        basic = all(is_basic(i) for i in at)
        used = sum(i is not None and i is not Ellipsis and not is_mask(i) for i in at)
        used += sum(mask_rank(i) for i in at)
        if used > t.ndim:
            message = (
                f"too many indices for array: array is {t.ndim}-dimensional, but {used} were "
                "indexed"
            )
            raise IndexError(message)
        if not basic:
            return self._fancy(a, at), False
        dims: list[Any] = []
        rest = list(self.resolved(t).shape)
        for position, i in enumerate(at):
            if i is None:
                dims.append(1)
            elif i is Ellipsis:
                later = sum(j is not None for j in at[position + 1 :])
                while len(rest) > later:
                    dims.append(rest.pop(0))
            elif isinstance(i, slice):
                whole = rest.pop(0)
                parts = (i.start, i.stop, i.step)
                keys = slice(*(x.value if type(x) is Symbol else x for x in parts))
                dims.append(sliced(whole, keys))
                if isinstance(dims[-1], Size) and dims[-1] is not whole and is_plain(i):
                    self._sliced[dims[-1]] = (whole, i)
            else:
                rest.pop(0)
        dims.extend(rest)
        if not dims and Ellipsis not in [i for i in at if i is Ellipsis]:
            return Number(t.dtype, python=False), False
        return ArrayType(t.dtype, tuple(dims)), True

    def _fancy(self, a: Symbol, at: tuple[Any, ...]) -> Type:
        found: list[Any] = []
        for i in at:
            array = np.asarray(i) if isinstance(i, list) else i
            if is_mask(array) and mask_rank(array):
                found += self._true_places(mask_rank(array))
            else:
                found.append(array)
        return self._infer(sample_index, (a.value, self.operand(tuple(found))), {})

    def _true_places(self, rank: int) -> list[Any]:
        """Symbols of the places that a mask means, for their types: one array for each axis."""
        t = ArrayType(INT.dtype, (Size(),))
        return [Symbol(Value(t), self) for _ in range(rank)]

    def store(self, a: Any, index: Any, value: Any) -> None:
        """Write ``a[index] = value``."""
        if type(a) is not Symbol:
            a = self.as_symbol(a)
        value = self._as_array(value)
        self._castable(a, value)
        a, at = self._beside(a, self._at(index))
        self.emit(Store(a.value, self.operand(at), self.operand(value)))

    def store_where(self, a: Symbol, value: Any, where: Any) -> None:
        """Write over an array where a condition holds; ``True`` is everywhere."""
        if where is not True:
            value = self.apply(np.where, (where, value, a), {})
        self.store(a, Ellipsis, value)

    def update(self, a: Symbol, index: Any, function: Callable[..., Any], value: Any) -> None:
        """Write ``a[index] op= value``, in place."""
        value = self._as_array(value)
        self._castable(a, value)
        a, at = self._beside(a, self._at(index))
        self.emit(Update(a.value, self.operand(at), function, self.operand(value)))

    def _castable(self, a: Symbol, value: Any) -> None:
        """A complex number does not go into a float array; NumPy says so only for numbers."""
        dtype = a.type.dtype
        given = value.type.dtype if type(value) is Symbol else getattr(value, "dtype", None)
        complex_ = isinstance(value, complex) or (given is not None and given.kind == "c")
        if complex_ and dtype.kind != "c":
            message = f"a complex value is stored into an array of dtype {dtype}"
            raise UntraceableError(message, self.place())


def _identity(x: Any) -> Any:
    return x


def _holds_numbers(x: Any) -> bool:
    """Whether a list, at any depth, holds numbers of Python's only."""
    return all(
        _holds_numbers(item) if type(item) in _LISTS else type(item) in (bool, int, float, complex)
        for item in x
    )
