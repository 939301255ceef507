"""The recorder: writes operations into the block that is open, and journals the heap.

While a side of a branch or the body of a loop is traced, every change of a namespace or container
is journalled, so that it can be taken back and the changes of several ways be merged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError
from fwdad.rules.registry import find_rule, function_name
from fwdad.tape import infer
from fwdad.tape.alias import windows
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
from fwdad.tape.summing import sum_to
from fwdad.tape.symbol import UNBOUND, Length, Symbol, UnknownText
from fwdad.tape.types import INT, ArrayType, Dimension, Number, Size, Type, number_type, sliced


def _dtype_of(x: Any) -> Any:
    return x.dtype if type(x) is Symbol else getattr(x, "dtype", None) or np.asarray(x).dtype


def _is_operator(function: Any) -> bool:
    return getattr(function, "__module__", None) == "_operator"


@lru_cache(maxsize=4096)
def _parameters(function: Any) -> tuple[tuple[str, Any], ...] | None:
    """Names and defaults of a library function's parameters; None where they cannot be told."""
    if isinstance(function, np.ufunc) or not hasattr(function, "__name__"):
        return None
    if _is_operator(function):  # without options
        return None
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        return None
    return tuple((p.name, p.default) for p in found if p.kind is not p.KEYWORD_ONLY)


@lru_cache(maxsize=4096)
def _named_defaults(function: Any) -> dict[str, Any]:
    """The defaults of a library function's parameters that are given by name only."""
    if not hasattr(function, "__name__"):
        return {}
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}


def _tidy(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call without the arguments that only repeat defaults; what is left of options is named."""
    kwargs = {key: a for key, a in kwargs.items() if a is not _NO_VALUE and key != "out"}
    if kwargs and not isinstance(function, np.ufunc):
        named = {**dict(_parameters(function) or ()), **_named_defaults(function)}
        kwargs = {
            key: a for key, a in kwargs.items() if not (key in named and _is_default(a, named[key]))
        }
    last = args[-1] if args else None
    if type(last) in _NO_DEFAULT or isinstance(last, np.dtype):
        if not any(a is _NO_VALUE for a in args):
            return args, kwargs  # the signatures of C functions are texts, and take long to read
    parameters = _parameters(function)
    if parameters is None or len(args) > len(parameters):
        return args, kwargs
    keep = len(args)
    while keep and _is_default(args[keep - 1], parameters[keep - 1][1]):
        keep -= 1
    if any(a is _NO_VALUE for a in args[:keep]):
        first = next(k for k, a in enumerate(args) if _is_default(a, parameters[k][1]))
        named = {
            name: a
            for a, (name, default) in zip(args[first:], parameters[first:], strict=False)
            if not _is_default(a, default)
        }
        return args[:first], {**named, **kwargs}
    return args[:keep], kwargs


@lru_cache(maxsize=4096)
def positional(function: Any) -> list[str]:
    """The names of the parameters that can be given by position."""
    if _is_operator(function):
        return []
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _with_named_out(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call with what it writes into under the name ``out``."""
    if isinstance(function, np.ufunc):
        n = function.nin
        if len(args) <= n:
            return args, kwargs
        if len(args) > function.nargs:
            name, most = function.__name__, function.nargs
            message = f"{name}() takes from {n} to {most} positional arguments but {len(args)} came"
            raise TypeError(message)
        given = (*args[n:], *[None] * (function.nout - len(args) + n))
        return args[:n], {**kwargs, "out": given}
    text = getattr(function, "__text_signature__", None)  # of a C function, which is quicker read
    may_write = len(args) > 1 and (text is None or "out" in text)  # nobody's first argument
    names = positional(function) if may_write else []
    if "out" not in names[: len(args)]:
        return args, kwargs
    k = names.index("out")
    rest = dict(zip(names[k + 1 :], args[k + 1 :], strict=False))
    return args[:k], {"out": args[k], **rest, **kwargs}


def _is_default(a: Any, default: Any) -> bool:
    return a is default or (
        type(a) in (bool, int, str) and type(default) is type(a) and a == default
    )


_FACTORS = {"SuperLU"}  # objects that are constants to whoever is given one
_LISTS = {list, tuple}
_NO_DEFAULT = {Symbol, list, np.ndarray}  # types that no parameter's default has
_NO_VALUE = np._NoValue  # what NumPy's signatures have for "not given"

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


class Region:
    """What changed on the heap since a place in the program."""

    def __init__(self) -> None:
        self.saved: dict[int, tuple[Any, Any]] = {}
        self.fresh: set[int] = set()  # containers that were made since: nobody else's
        self.repeats = False  # whether it is traced, or runs, more than once

    def changes(self) -> list[tuple[Any, Any, Any]]:
        """The containers that changed: (container, before, now)."""
        found = []
        for o, before in self.saved.values():
            now = _content(o)
            if not _same_content(before, now):
                found.append((o, before, now))
        return found

    def undo(self) -> None:
        """Put every container back."""
        for o, before in self.saved.values():
            set_content(o, before)


def _content(o: Any) -> Any:
    return type(o)(o) if type(o) in (dict, list, set) else o.copy()


def set_content(o: Any, content: Any) -> None:
    """Give a container a content."""
    if isinstance(o, list):
        o[:] = content
    else:
        o.clear()
        (o.extend if hasattr(o, "extend") else o.update)(content)


def _same_content(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(a[key] is b[key] for key in a)
    if isinstance(a, set):
        return a == b
    return all(x is y for x, y in zip(a, b, strict=True))


class Recorder:
    """Writes one tape.

    Attributes
    ----------
    block : Block
        The block that is open.
    place : callable
        Answers the location of the expression that is being evaluated.
    """

    def __init__(self) -> None:
        self.block = Block()
        self.regions: list[Region] = []
        self.place: Callable[[], Location | None] = lambda: None
        self.known: dict[Size, int] = {}
        self.same: dict[Size, Size] = {}  # lengths that are known to be equal to others
        self.assumes = False  # whether lengths of the example may be taken for granted
        self.length_guards: list[tuple[int, int, int]] = []  # (input, axis, length)
        self.value_guards: dict[int, Any] = {}  # input: value
        self.examples: dict[Value, tuple[int, Any]] = {}  # input's value: (input, example)
        self._definitions: dict[Value, Op] = {}
        self._measured: dict[Size, tuple[Value, int]] = {}
        self._given: dict[Size, tuple[Value, int]] = {}  # of inputs: seen from everywhere
        self._doubtful: dict[Size, tuple[Value, int]] = {}  # of arrays that may be missing
        self._own: dict[int, Any] = {}
        self._sliced: dict[Size, tuple[Any, slice]] = {}  # (whole, slice) of a dimension
        self._namespaces: set[int] = set()
        self._buried: list[Any] = []  # kept, so that no other object gets its address
        self.rewinds = 0
        self.prints = False  # whether the traced function prints: output is left out
        self.rows = True  # whether it is likely that the inputs lie row by row
        self.threads = 1  # the cores that chunks of a Jacobian's columns are spread over
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

    @property
    def scope(self) -> tuple[int, int]:
        """Where what is written now can be used: the open block, as it stands since a rewind."""
        return id(self.block), self.rewinds

    def mark(self) -> int:
        """How many lengths are known by now, to be forgotten back to."""
        return len(self._measured)

    def forget(self, mark: int) -> dict[Size, tuple[Value, int]]:
        """Forget the lengths of arrays that were written since, which are not seen from here.

        Returns
        -------
        dict
            What was known, for :meth:`remember`.
        """
        self.rewinds += 1
        gone = [self._measured.popitem() for _ in range(len(self._measured) - mark)]  # the latest
        return dict(reversed(gone))

    @contextmanager
    def own_lengths(self) -> Iterator[None]:
        """Forget, at the end, what was found out about lengths, and know again what was known.

        What a loop carries may have another length in each iteration, under one ``Size``.
        """
        known = dict(self._measured)
        try:
            yield
        finally:
            self.rewinds += 1
            self._measured = known

    def remember(self, measured: dict[Size, tuple[Value, int]]) -> None:
        """Know lengths again, in the block in which they were forgotten."""
        for d, place in measured.items():
            self._measured.setdefault(d, place)

    # -- the heap

    def touch(self, o: Any) -> None:
        """Keep the content of a container that is about to change."""
        if self.regions:
            region = self.regions[-1]
            if id(o) not in region.saved and id(o) not in region.fresh:
                region.saved[id(o)] = (o, _content(o))

    def own(self, o: Any, *, namespace: bool = False) -> None:
        """Note a container that the traced program has made: it may be changed.

        A namespace is one whose names may be bound on some ways only.
        """
        self._own[id(o)] = o
        if namespace:
            self._namespaces.add(id(o))
        if self.regions:
            self.regions[-1].fresh.add(id(o))

    def disown(self, o: Any) -> None:
        """Forget a namespace that nobody can see any more."""
        self._own.pop(id(o), None)
        self._buried.append(o)

    def heap(self) -> list[Any]:
        """The containers that the traced program can see and change."""
        return list(self._own.values())

    def is_namespace(self, o: Any) -> bool:
        """Whether a dict is the attributes of an object, or the names of a function."""
        return id(o) in self._namespaces

    def fresh(self, o: Any) -> Any:
        """A container that the traced program has just made."""
        self.own(o)
        return o

    def is_own(self, o: Any) -> bool:
        """Whether the traced program has made a container."""
        return id(o) in self._own

    def bind(self, namespace: dict[str, Any], name: str, value: Any) -> None:
        """Give a name a content; UNBOUND takes it away."""
        self.touch(namespace)
        if value is UNBOUND:
            namespace.pop(name, None)
        else:
            namespace[name] = value

    @contextmanager
    def region(self, block: Block) -> Iterator[Region]:
        """Write into a block, and journal what changes; the caller undoes or keeps it."""
        outer, made = self.block, Region()
        mark = self.mark()
        self.block = block
        self.regions.append(made)
        try:
            yield made
        except BaseException:
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
        made = []
        for a in op.args:
            known = self.forced(a) if isinstance(a, Value) else a
            if known is UNBOUND:
                return UNBOUND
            made.append(known)
        return op.function(*made) if not op.kwargs else UNBOUND

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
            return x
        if isinstance(x, range):
            return [self.operand(i) for i in x]
        if callable(x) or type(x).__name__ in _FACTORS:
            return x
        message = f"a {type(x).__name__} is used as a value where numbers and arrays are known"
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
        known = STATIC.get(function)
        if known is not None:
            return known(*args, **kwargs)
        args, kwargs = _with_named_out(function, args, kwargs)
        if kwargs.get("out") is not None:
            return self._apply_out(function, args, dict(kwargs))
        args, kwargs = self._with_arrays(function, *_tidy(function, args, kwargs))
        inputs = tuple(self.operand(a) for a in args)
        options = {key: self.operand(a) for key, a in kwargs.items()}
        found = self._infer(function, inputs, options)
        if isinstance(found, (str, bytes)):
            return UnknownText(self.place())
        made, values = self.symbols(found)
        if isinstance(found, (tuple, list)) and (len(found) < 2 or len(values) != len(found)):
            function = Leaves(function)
        self.emit(Apply(function, inputs, options, outputs=tuple(values)))
        return made

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

        def made(a: Any, name: str | None) -> Any:
            if name not in primals and not (name is None and rule.binder.variadic_active):
                return a
            first = primals.index(name) if name in primals else len(primals)
            return rule.with_arrays((a,), self._as_array, first)[0]

        args = tuple(made(a, name) for a, name in zip_longest(args, names[: len(args)]))
        return args, {key: made(a, key) for key, a in kwargs.items()}

    def _as_array(self, x: Any) -> Any:
        """A list that holds symbols as the array that NumPy makes of it."""
        if type(x) not in _LISTS or not values_in(self.operand(x)):
            return x
        return self.apply(np.array, (x,), {})

    def _apply_out(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that writes what it answers into arrays that are given."""
        out, where = kwargs.pop("out"), kwargs.pop("where", True)
        answers = self.apply(function, args, kwargs)
        if isinstance(out, tuple) and len(out) == 1:
            (out,) = out
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
            inputs, options = map_values(self._alike, [inputs, options])
        try:
            return infer.infer(function, inputs, options, self.known)
        except infer.CannotInferError as error:
            reason: Exception = error
        try:
            if self._assume_lengths([inputs, options]):
                return infer.infer(function, inputs, options, self.known)
        except infer.CannotInferError as error:
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
                if isinstance(d, Size) and d not in self.known and self._is_of_inputs(d):
                    self.known_length(Symbol(v, self), axis)
                    found = True
        return found

    def _is_of_inputs(self, d: Dimension) -> bool:
        """Whether the example tells a length."""
        while isinstance(d, Size) and d not in self.known and d in self._sliced:
            d = self._sliced[d][0]
        if not isinstance(d, Size) or d in self.known:
            return True
        return d.origin is not None and d.hint is not None

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

    def measure_input(self, value: Value) -> None:
        """Note the lengths of an array that the program is given."""
        self.measure(value)
        for axis, d in enumerate(value.type.shape):
            if isinstance(d, Size):
                self._given.setdefault(d, (value, axis))

    def measure(self, value: Value, *, anew: bool = False, absent: bool = False) -> None:
        """Note the lengths of an array, so that they can be asked for; ``anew``: of no other.

        Of one that may be ``absent`` they are only asked for if no other array has them.
        """
        if absent:
            for axis, d in enumerate(value.type.shape):
                if isinstance(d, Size):
                    self._doubtful.setdefault(d, (value, axis))
            return
        for axis, d in enumerate(value.type.shape):
            if isinstance(d, Size):
                if anew:
                    self._measured[d] = (value, axis)
                self._measured.setdefault(d, (value, axis))

    def resolved(self, t: Type) -> Type:
        """A type with the lengths that are known by now."""
        if not isinstance(t, ArrayType):
            return t
        shape = tuple(self._resolved(d) if isinstance(d, Size) else d for d in t.shape)
        return ArrayType(t.dtype, shape)

    def _resolved(self, d: Size) -> int | Size:
        return self.known[d] if d in self.known else self.same.get(d, d)

    def _alike(self, value: Value) -> Value:
        """A value of the same type, with one length for all that are equal."""
        if not any(d in self.same for d in value.type.shape):
            return value
        return Value(self.resolved(value.type))

    def unmeasure(self, gone: set[Value]) -> None:
        """Forget that the lengths of values are known, which are taken out again."""
        for d in [d for d, (value, _) in self._measured.items() if value in gone]:
            del self._measured[d]

    def known_length(self, a: Symbol, axis: int) -> int:
        """One length of an array as an int: an assumption that the tape keeps as a guard."""
        d = a.type.shape[axis]
        if not isinstance(d, Size):
            return d
        if d in self.known:
            return self.known[d]
        if d in self._sliced:
            whole, cut = self._sliced[d]
            self.known[d] = len(range(*cut.indices(self._known_size(whole))))
            return self.known[d]
        return self._known_size(d)

    def _known_size(self, d: Any) -> int:
        if not isinstance(d, Size) or d in self.known:
            return self.known.get(d, d)
        if d.origin is None or d.hint is None:
            why = "it is computed" if d.origin is None else "a type does not tell it"
            message = f"the length of this array must be known beforehand, and {why}"
            raise UntraceableError(message, self.place())
        self.known[d] = d.hint
        self.length_guards.append((*d.origin, d.hint))
        return d.hint

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
        if not apart or all(map(_is_basic, at)) or not isinstance(a.value.type, ArrayType):
            return a, at
        taken = {k: _mask_rank(at[k]) or 1 for k in advanced}
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
        basic = all(_is_basic(i) for i in at)
        used = sum(i is not None and i is not Ellipsis and not _is_mask(i) for i in at)
        used += sum(_mask_rank(i) for i in at)
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
                if isinstance(dims[-1], Size) and dims[-1] is not whole and _is_plain(i):
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
            if _is_mask(array) and _mask_rank(array):
                found += self._true_places(_mask_rank(array))
            else:
                found.append(array)
        return self._infer(_sample_index, (a.value, self.operand(tuple(found))), {})

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
        """A complex number does not go into a float array; NumPy says so only for scalars."""
        dtype = a.type.dtype
        given = value.type.dtype if type(value) is Symbol else getattr(value, "dtype", None)
        if given is not None and given.kind == "c" and dtype.kind != "c":
            message = f"a complex value is stored into an array of dtype {dtype}"
            raise UntraceableError(message, self.place())


def _identity(x: Any) -> Any:
    return x


def length_of(a: Any, axis: int) -> int:
    """``a.shape[axis]``."""
    return a.shape[axis]


def length_if_any(a: Any, axis: int) -> int:
    """``a.shape[axis]``, zero if there is no array on the way that is taken."""
    return 0 if a is None else a.shape[axis]


def _is_basic(i: Any) -> bool:
    if i is None or i is Ellipsis or isinstance(i, slice):
        return True
    if type(i) is Symbol:
        return isinstance(i.type, Number) and i.type.dtype.kind in "iu"
    return isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_))


def _is_mask(i: Any) -> bool:
    dtype = i.type.dtype if type(i) is Symbol else getattr(np.asarray(i), "dtype", None)
    return (
        dtype is not None
        and dtype.kind == "b"
        and not isinstance(i, slice)
        and i is not None
        and i is not Ellipsis
    )


def _mask_rank(i: Any) -> int:
    if not _is_mask(i):
        return 0
    return i.type.ndim if type(i) is Symbol else np.ndim(i)


def _sample_index(a: Any, at: tuple[Any, ...]) -> Any:
    """``a[at]`` on samples, whose ones would lie outside arrays of length one."""
    zero = [
        i
        if i is None or i is Ellipsis or isinstance(i, slice) or np.asarray(i).dtype.kind == "b"
        else np.zeros_like(i)
        for i in at
    ]
    return a[tuple(zero)]


def _is_plain(s: slice) -> bool:
    return all(x is None or isinstance(x, (int, np.integer)) for x in (s.start, s.stop, s.step))
