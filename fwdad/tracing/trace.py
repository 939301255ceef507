"""``trace``: a function and example arguments make a tape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.backends.numpy_source import compiled, numpy_source
from fwdad.errors import UntraceableError
from fwdad.rules.define import function_name
from fwdad.tape.alias import written_parameters
from fwdad.tape.ops import Op, Operand, Program, Value
from fwdad.tape.recorder import Recorder
from fwdad.tape.show import show_program
from fwdad.tape.symbol import Symbol
from fwdad.tape.types import ArrayType, Number
from fwdad.tracing import builtin_calls, derivatives  # noqa: F401  (install themselves)
from fwdad.tracing.arguments import Flattened, leaf_key, leaf_type
from fwdad.tracing.control import AlwaysRaises
from fwdad.tracing.interpreter import Interpreter
from fwdad.tracing.recursion import RecursionFound
from fwdad.tracing.symbols import Maybe, Optional, Poison


def fetch(path: Any) -> Any:
    """What stands in a place of the world outside."""
    kind, *where = path
    if kind == "cell":
        return where[0].cell_contents
    if kind == "item":
        return where[0][where[1]]
    if kind == "attribute":
        return getattr(where[0], where[1])
    return where[0]


@dataclass
class Capture:
    """Something of the world outside that a program reads: where it stands, and its input."""

    path: Any
    value: Value
    key: Any

    def fetch(self) -> Any:
        """What is there now."""
        return fetch(self.path)


@dataclass(eq=False)
class Tape:
    """A traced function: prints as readable lines, and can be called.

    Attributes
    ----------
    program : Program
        The operations.
    captures : list of Capture
        What it reads beside its arguments.
    length_guards : list of tuple
        ``(input, axis, length)``: lengths that it assumes.
    value_guards : dict
        Inputs whose values it assumes.
    object_guards : list of tuple
        ``(place, object)``: functions that it assumes not to be replaced.
    rebuild : callable
        The value that f returns, from the program's results.
    key : hashable
        The structure and types of the arguments.
    """

    program: Program
    captures: list[Capture]
    length_guards: list[tuple[int, int, int]]
    value_guards: dict[int, Any]
    object_guards: list[tuple[Any, Any]]
    rebuild: Callable[[list[Any]], Any]
    key: Any
    _run: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return show_program(self.program)

    def leaves(self, arguments: list[Any]) -> list[Any]:
        """The program's inputs: leaves of the arguments, and what is captured now."""
        return [*arguments, *(c.fetch() for c in self.captures)] if self.captures else arguments

    def holds(self, leaves: list[Any]) -> bool:
        """Whether the tape's assumptions hold for its inputs now."""
        for k, axis, n in self.length_guards:
            if leaves[k].shape[axis] != n:
                return False
        for k, value in self.value_guards.items():
            if leaves[k] != value:
                return False
        first = len(leaves) - len(self.captures)
        for c, leaf in zip(self.captures, leaves[first:], strict=True):
            if c.key != leaf_key(leaf):
                return False
        return all(fetch(path) is held for path, held in self.object_guards)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tape, without tracing again.

        Raises
        ------
        TypeError
            If the arguments have another structure or other types than the example, or do not
            fulfil what the tape assumes.
        """
        flat = Flattened(args, kwargs)
        leaves = self.leaves(flat.leaves)
        if flat.key != self.key or not self.holds(leaves):
            message = "the tape was written for arguments of other types, lengths or static values"
            raise TypeError(message)
        if self._run is None:
            self._run = compiled(numpy_source(self.program))
        return self.rebuild(self._run(*leaves))

    def count(self, kind: Any = Op) -> int:
        """How many operations of a kind there are, those inside loops and branches once."""
        return self.program.count(kind)


def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Tape:
    """Write a function down as a tape.

    Parameters
    ----------
    f : callable
        A Python function whose source can be read.
    *args, **kwargs
        Example arguments: types, ranks and structure count, numbers do not.

    Returns
    -------
    Tape

    Raises
    ------
    UntraceableError
        If a value would have to be known beforehand; with the user's line and the reason.
    """
    return trace_flat(f, Flattened(args, kwargs))


def trace_flat(f: Callable[..., Any], flat: Flattened) -> Tape:
    """:func:`trace` for arguments that are taken apart already."""
    recursive: dict[int, Any] = {}
    while True:
        try:
            return _trace(f, flat, recursive)
        except RecursionFound as found:
            if id(found.key) in recursive:
                message = "calls are nested too deep to be traced"
                raise UntraceableError(message) from found
            recursive[id(found.key)] = found.key


def _trace(f: Callable[..., Any], flat: Flattened, recursive: dict[int, Any]) -> Tape:
    recorder = Recorder()
    recorder.assumes = True
    tracer = Interpreter(recorder)
    tracer.recursive = recursive
    recorder.place = lambda: tracer.location() if tracer.frame is not None else None
    inputs = []
    for k, leaf in enumerate(flat.leaves):
        value = Value(leaf_type(leaf, k))
        inputs.append(value)
        recorder.measure(value)
        if isinstance(value.type, Number):
            recorder.examples[value] = (k, leaf)
    captures = _Captures(recorder, len(inputs))
    tracer.capture_value = captures.value
    recorder.capture = captures.array
    leaves: list[Any] = [Symbol(v, recorder) for v in inputs]
    for leaf in leaves:
        recorder.own(leaf)
    call_args, call_kwargs = flat.rebuild(leaves)
    try:
        y = tracer.call(f, call_args, call_kwargs)
    except AlwaysRaises as raised:
        _raise(raised)
    results, rebuild = _results(y, recorder)
    recorder.block.params = [*inputs, *(c.value for c in captures.found)]
    recorder.block.results = results
    program = Program(function_name(f).split(".")[-1], recorder.block)
    code = getattr(f, "__code__", None)
    program.filename = code.co_filename if code is not None else ""
    program.quiet = recorder.derives
    program.written = written_parameters(program)
    return Tape(
        program,
        captures.found,
        recorder.length_guards,
        recorder.value_guards,
        _unique(tracer.guards),
        rebuild,
        flat.key,
    )


def _unique(guards: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Each place once; what calls of our own and of libraries met is not the user's to replace."""
    found = {}
    for path, x in guards:
        place = tuple(p if isinstance(p, str) else id(p) for p in path)
        name = path[1].get("__name__", "") if path[0] == "item" else ""
        if not name.startswith(("fwdad.", "numpy", "scipy")):
            found[place] = (path, x)
    return list(found.values())


def _raise(raised: AlwaysRaises) -> None:
    """The program raises whatever its arguments are."""
    exception = raised.exception
    if isinstance(exception, type):
        known = [a if type(a) is not Symbol else "…" for a in raised.arguments]
        raise exception(*known) from raised
    raise exception


class _Captures:
    """What is captured, each place and each array once."""

    def __init__(self, recorder: Recorder, arguments: int) -> None:
        self.recorder = recorder
        self.arguments = arguments
        self.found: list[Capture] = []
        self._by_place: dict[Any, Symbol] = {}

    def value(self, x: Any, path: Any, name: str) -> Symbol:
        place = (path[0], *(id(p) if not isinstance(p, str) else p for p in path[1:]))
        if isinstance(x, np.ndarray):
            place = ("array", id(x))
        if place not in self._by_place:
            k = self.arguments + len(self.found)
            value = Value(leaf_type(x, k), name)
            if isinstance(value.type, Number):
                self.recorder.examples[value] = (k, x)
            self.recorder.measure(value)
            self.found.append(Capture(path, value, leaf_key(x)))
            self._by_place[place] = Symbol(value, self.recorder)
        return self._by_place[place]

    def array(self, x: np.ndarray) -> Symbol:
        """An array that is a constant of the program: the object itself is kept."""
        place = ("array", id(x))
        if place not in self._by_place:
            value = Value(ArrayType(x.dtype, x.shape), "a")
            self.found.append(Capture(("object", x), value, leaf_key(x)))
            self.recorder.measure(value)
            self._by_place[place] = Symbol(value, self.recorder)
        return self._by_place[place]


def _results(y: Any, recorder: Recorder) -> tuple[list[Operand], Callable[[list[Any]], Any]]:
    """The leaves of what f returns, and how to put them together again."""
    results: list[Operand] = []

    def take(x: Any) -> Callable[[list[Any]], Any]:
        if isinstance(x, Poison):
            message = f"the value that is returned cannot be traced: {x.reason}"
            raise UntraceableError(message)
        if type(x) is Symbol or isinstance(x, np.ndarray):
            k = len(results)
            results.append(recorder.as_symbol(x).value)
            return lambda values: values[k]
        if isinstance(x, (Maybe, Optional)):
            flag, value = take(x.flag), take(x.value)
            return lambda values: value(values) if flag(values) else None
        if isinstance(x, (tuple, list)):
            parts = [take(item) for item in x]
            cls = type(x)
            if hasattr(x, "_fields"):
                return lambda values: cls(*(p(values) for p in parts))
            return lambda values: cls(p(values) for p in parts)
        if isinstance(x, dict):
            items = {key: take(item) for key, item in x.items()}
            return lambda values: {key: p(values) for key, p in items.items()}
        held = getattr(x, "__dict__", None)
        if isinstance(held, dict) and recorder.is_own(held):
            attributes = take(dict(held))

            def build(values: list[Any]) -> Any:
                made = type(x).__new__(type(x))
                made.__dict__.update(attributes(values))
                return made

            return build
        return lambda _: x

    return results, take(y)


__all__ = ["Capture", "Tape", "trace", "trace_flat"]
