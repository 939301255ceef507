"""``trace``: a function and example arguments make a tape."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from fwdad.backends.numpy_source import compiled, numpy_source
from fwdad.errors import UntraceableError, note_place
from fwdad.rules.registry import function_name
from fwdad.tape.alias import written_parameters
from fwdad.tape.draw import dot_source
from fwdad.tape.ops import Op, Program, Value
from fwdad.tape.passes.copies import told_orders
from fwdad.tape.passes.dead import drop_unread
from fwdad.tape.passes.rewrite import blocks_of, defined_by
from fwdad.tape.picture import draw_program
from fwdad.tape.recorder import Recorder
from fwdad.tape.show import show_program
from fwdad.tape.symbol import UNBOUND, Symbol
from fwdad.tape.types import ArrayType, Number, Size, number_type
from fwdad.tracing.arguments import (
    UNKNOWN,
    Flattened,
    Lengths,
    is_record,
    leaf_key,
    leaf_type,
    refuse_subclass,
)
from fwdad.tracing.calls import (  # noqa: F401  (install themselves)
    array_methods,
    builtins,
    containers,
    draws,
    iterables,
    itertools_calls,
    numbers,
    numpy_helpers,
    objects,
    writers,
)
from fwdad.tracing.calls.recursion import RecursionFound
from fwdad.tracing.derivatives import evaluators  # noqa: F401  (installs itself)
from fwdad.tracing.results import Results
from fwdad.tracing.syntax.control import AlwaysRaises
from fwdad.tracing.syntax.interpreter import Interpreter
from fwdad.tracing.syntax.merge import container_of

_CAPTURED_AT_MOST = 512


def fetch(path: Any) -> Any:
    """What stands in a place of the world outside."""
    kind, *where = path
    if kind == "cell":
        return where[0].cell_contents
    if kind == "item":
        return where[0].get(where[1], UNBOUND)
    if kind == "structure":
        return Flattened((where[0],), {}).key
    if kind == "inside":
        return _inside(where[0], where[1])
    if kind == "attribute":
        return getattr(where[0], where[1], UNBOUND)
    return where[0]


def _inside(x: Any, keys: tuple[Any, ...]) -> Any:
    """A leaf of a container, UNBOUND if it is not there any more."""
    for key in keys:
        try:
            x = vars(x)[key] if is_record(x) else x[key]
        except (LookupError, TypeError):
            return UNBOUND
    return x


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
    equal_lengths : list of tuple
        ``(input, axis, input, axis)``: lengths that it assumes to be equal.
    value_guards : dict
        Inputs whose values it assumes.
    rows : bool or None
        Whether it assumes that all arrays among its inputs lie row by row, or that not all do.
    object_guards : list of tuple
        ``(place, object)``: functions that it assumes not to be replaced.
    rebuild : callable
        The value that f returns, from the program's results and the arguments' containers, which
        it changes as f does.
    key : hashable
        The structure and types of the arguments.
    split : int
        How many small arrays in loops became numbers.
    prints : bool
        Whether the function prints: output is not part of the tape.
    alone : frozenset of int
        Inputs that the program writes into, or of which a function that it differentiates writes
        into a copy: an array that shares memory with one would be another one, too.
    cut : Cut or None
        Of a value and its way back: what is needed to run them one after the other.
    same_objects : list of tuple
        ``(place, place)``: places that it assumes to hold one array.
    """

    program: Program
    captures: list[Capture]
    length_guards: list[tuple[int, int, int]]
    equal_lengths: list[tuple[int, int, int, int]]
    value_guards: dict[int, Any]
    object_guards: list[tuple[Any, Any]]
    rebuild: Results
    key: Any
    split: int = 0
    prints: bool = False
    alone: frozenset[int] = frozenset()
    cut: Any = None
    rows: bool | None = None
    same_objects: list[tuple[Any, Any]] = field(default_factory=list)
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
        for k, axis, other, at in self.equal_lengths:
            if leaves[k].shape[axis] != leaves[other].shape[at]:
                return False
        for k, value in self.value_guards.items():
            if leaves[k] != value:
                return False
        if self.rows is not None and self.rows is not lie_by_rows(leaves):
            return False
        if not self.stands():
            return False
        first = len(leaves) - len(self.captures)
        return all(
            leaf is not UNBOUND and c.key == leaf_key(leaf)
            for c, leaf in zip(self.captures, leaves[first:], strict=True)
        )

    def stands(self) -> bool:
        """Whether the functions that it calls, and names of one array, are those of the trace."""
        for path, held in self.object_guards:
            now = fetch(path)
            if now is not held and not (path[0] == "structure" and now == held):
                return False
        return all(fetch(a) is fetch(b) for a, b in self.same_objects)

    def entangled(self, leaves: list[Any]) -> bool:
        """Whether the program writes into one of two inputs that share memory: it may not then.

        Or into the copy of an input that does not lie as its copy does, where that is seen.
        """
        if self.lies_otherwise(leaves):
            return True
        written = [leaves[k] for k in self.alone if isinstance(leaves[k], np.ndarray)]
        arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)] if written else []
        return any(sum(np.may_share_memory(a, b) for b in arrays) > 1 for a in written)

    def lies_otherwise(self, leaves: list[Any]) -> bool:
        """Whether an input that is copied, and written, lies as its copy does not."""
        if self.rows is not False or not self.program.quiet:
            return False
        return not lie_by_rows([leaves[k] for k in self.alone])

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
        if self.entangled(leaves):
            message = (
                "the tape was written for arrays that do not share memory, and writes into one"
            )
            raise TypeError(message)
        if self._run is None:
            self._run = compiled(numpy_source(self.program))
        return self.rebuild(self._run(*leaves), flat.containers)

    def draw(self, format: str = "dot", *, ax: Any = None) -> Any:  # noqa: A002
        """A picture of the tape: loops, branches and called programs as frames.

        Parameters
        ----------
        format : {"dot", "matplotlib"}
            Text in Graphviz's language, or a picture.
        ax : matplotlib.axes.Axes, optional
            Where to draw the picture (``"matplotlib"`` is then meant); else a figure is made.

        Returns
        -------
        str or matplotlib.axes.Axes
        """
        if format not in ("dot", "matplotlib"):
            raise ValueError(f'format is "dot" or "matplotlib", not {format!r}')
        if ax is None and format == "dot":
            return dot_source(self.program)
        return draw_program(self.program, ax)

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


def lie_by_rows(leaves: list[Any]) -> bool:
    """Whether all arrays lie row by row, without gaps."""
    return all(x.flags.c_contiguous for x in leaves if isinstance(x, np.ndarray))


def trace_flat(
    f: Callable[..., Any],
    flat: Flattened,
    lengths: Lengths = UNKNOWN,
    *,
    equal: bool = False,
    threads: int = 1,
    rows: bool = False,
) -> Tape:
    """:func:`trace` for arguments that are taken apart already.

    Some ``lengths`` are taken as those of the example; other lengths of arguments that are
    ``equal`` there are assumed to be so. Columns of Jacobians are
    written in chunks for several ``threads``. Where that is seen, arrays are assumed to lie by
    ``rows`` if those of the example do.
    """
    recursive: dict[int, Any] = {}
    by_rows, equal = rows and lie_by_rows(flat.leaves), equal and flat.examples
    while True:
        try:
            tape = _trace(f, flat, recursive, lengths, threads, equal=equal, rows=by_rows)
            if rows and told_orders(tape.program) is not None:
                tape.rows = tape.program.rows = lie_by_rows(tape.leaves(flat.leaves))
            if tape.rows is None or tape.rows is by_rows:
                return tape
            by_rows = False  # what is captured lies otherwise
        except RecursionFound as found:
            if id(found.key) in recursive:
                message = "calls are nested too deep to be traced"
                raise UntraceableError(message) from found
            recursive[id(found.key)] = found.key


def _inputs(recorder: Recorder, flat: Flattened, lengths: Lengths, *, equal: bool) -> list[Value]:
    """A value for each leaf of the arguments."""
    inputs = []
    shared: dict[int, Size] | None = {} if equal else None
    for k, leaf in enumerate(flat.leaves):
        value = Value(leaf_type(leaf, k, example=flat.examples, lengths=lengths, shared=shared))
        inputs.append(value)
        recorder.measure_input(value)
        if isinstance(value.type, Number) and flat.examples:
            recorder.examples[value] = (k, leaf)
    return inputs


def _program(f: Callable[..., Any], recorder: Recorder) -> Program:
    """What has been recorded, as a program with f's name."""
    program = Program(function_name(f).split(".")[-1], recorder.block)
    drop_unread(program)
    code = getattr(f, "__code__", None)
    program.filename = code.co_filename if code is not None else ""
    program.quiet = recorder.derives
    program.written = written_parameters(program)
    return program


def _trace(
    f: Callable[..., Any],
    flat: Flattened,
    recursive: dict[int, Any],
    lengths: Lengths,
    threads: int,
    *,
    equal: bool,
    rows: bool,
) -> Tape:
    recorder = Recorder()
    recorder.rows = rows
    recorder.threads = threads
    recorder.assumes = True
    tracer = Interpreter(recorder)
    tracer.recursive = recursive
    recorder.place = lambda: tracer.location() if tracer.frame is not None else None
    inputs = _inputs(recorder, flat, lengths, equal=equal)
    captures = _Captures(recorder, len(inputs), lengths)
    tracer.capture_value = captures.value
    recorder.capture = captures.array
    tracer.capture_container = captures.container
    call_args, call_kwargs, arguments = flat.rebuild([Symbol(v, recorder) for v in inputs])
    for x in arguments:
        recorder.own(container_of(x), namespace=not isinstance(x, (list, dict)))
    before = [copy.copy(container_of(x)) for x in arguments]
    try:
        y = tracer.call(f, call_args, call_kwargs)
    except AlwaysRaises as raised:
        _raise(raised)
    rebuild = Results(recorder, arguments, before)
    rebuild.place = tracer.returned
    rebuild.answer(y)
    recorder.block.params = [*inputs, *(c.value for c in captures.found)]
    recorder.block.results = rebuild.operands
    _settle_lengths(recorder)
    program = _program(f, recorder)
    return Tape(
        program,
        captures.found,
        [*recorder.length_guards, *captures.assumed(flat.leaves)],
        _equal_lengths(inputs),
        recorder.value_guards,
        [*_unique(tracer.guards), *captures.structures],
        rebuild,
        flat.key,
        recorder.split,
        recorder.prints,
        frozenset(
            k
            for k, (p, held) in enumerate(zip(program.block.params, program.written, strict=True))
            if held or p in recorder.alone
        ),
        recorder.cut,
        same_objects=captures.same,
    )


def _settle_lengths(recorder: Recorder) -> None:
    """Give values the lengths that are assumed by now."""
    if not recorder.known:
        return
    for block in blocks_of(recorder.block):
        for v in (*block.params, *(v for op in block.ops for v in defined_by(op))):
            v.type = recorder.resolved(v.type)


def _equal_lengths(inputs: list[Value]) -> list[tuple[int, int, int, int]]:
    """Which lengths of inputs are one ``Size`` with that of another axis."""
    return [
        (k, axis, *d.origin)
        for k, value in enumerate(inputs)
        for axis, d in enumerate(value.type.shape)
        if isinstance(d, Size) and d.origin is not None and d.origin != (k, axis)
    ]


def _unique(guards: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Each place once; what calls of our own and of libraries met is not the user's to replace."""
    found = {}
    for path, x in guards:
        place = tuple(p if isinstance(p, str) else id(p) for p in path)
        name = path[1].get("__name__", "") if path[0] == "item" else ""
        name = name if isinstance(name, str) else ""
        if not name.startswith(("fwdad.", "numpy", "scipy")):
            found[place] = (path, x)
    return list(found.values())


def _raise(raised: AlwaysRaises) -> NoReturn:
    """The program raises whatever its arguments are."""
    exception = raised.exception
    if isinstance(exception, type):
        known = [a if type(a) is not Symbol else "…" for a in raised.arguments]
        exception = exception(*known)
        exception.__cause__ = raised
    note_place(exception, raised.location)
    raise exception


class _Captures:
    """What is captured, each place and each array once."""

    def __init__(self, recorder: Recorder, arguments: int, lengths: Lengths) -> None:
        self.recorder = recorder
        self.arguments = arguments
        self.lengths = lengths
        self.found: list[Capture] = []
        self.structures: list[tuple[Any, Any]] = []
        self.same: list[tuple[Any, Any]] = []
        self._by_place: dict[Any, Symbol] = {}
        self._names: dict[int, list[Any]] = {}  # the places of each array
        self._containers: dict[int, Any] = {}

    def value(self, x: Any, path: Any, name: str) -> Symbol:
        refuse_subclass(x, self.recorder.place())
        place = _place_of(path)
        if isinstance(x, np.ndarray):
            place = ("array", id(x))
            self._note_name(x, path)
        if place not in self._by_place:
            k = self.arguments + len(self.found)
            value = Value(leaf_type(x, k, lengths=self.lengths), name)
            if isinstance(value.type, Number):
                self.recorder.examples[value] = (k, x)
            self.recorder.measure_input(value)
            self.found.append(Capture(path, value, leaf_key(x)))
            self._by_place[place] = Symbol(value, self.recorder)
        return self._by_place[place]

    def _note_name(self, x: np.ndarray, path: Any) -> None:
        """Note in how many places an array stands: the tape has one input for all of them."""
        first, *others = self._names.setdefault(id(x), [path])
        known = {_place_of(p) for p in (first, *others)}
        if _place_of(path) not in known:
            self._names[id(x)].append(path)
            self.same.append((first, path))

    def assumed(self, arguments: list[Any]) -> list[tuple[int, int, int]]:
        """The lengths for which the tape is written."""
        return [
            (k, axis, n)
            for k, x in enumerate([*arguments, *(c.fetch() for c in self.found)])
            if isinstance(x, np.ndarray)
            for axis, n in enumerate(x.shape)
            if n > 1 and self.lengths.assumes(x, k, axis)
        ]

    def container(self, x: Any, path: Any, name: str) -> Any:
        """A list or dict from outside: its numbers and arrays become inputs, it may not change."""
        if id(x) not in self._containers:
            flat = Flattened((x,), {})
            if len(flat.leaves) > _CAPTURED_AT_MOST:
                message = (
                    f"`{name}` is a {type(x).__name__} of more than {_CAPTURED_AT_MOST} numbers "
                    "from outside: make it an array"
                )
                raise UntraceableError(message, self.recorder.place())
            self.structures.append((("structure", x), flat.key))
            found: list[Any] = []
            _find_leaves(x, (), found, set())
            leaves = [self.value(leaf, ("inside", x, keys), name) for keys, leaf in found]
            (made,), _, _ = flat.rebuild(leaves)
            self._containers[id(x)] = made
        return self._containers[id(x)]

    def array(self, x: np.ndarray) -> Symbol:
        """An array that is a constant of the program: the object itself is kept."""
        refuse_subclass(x, self.recorder.place())
        place = ("array", id(x))
        self._note_name(x, ("object", x))
        if place not in self._by_place:
            value = Value(ArrayType(x.dtype, x.shape), "a")
            self.found.append(Capture(("object", x), value, leaf_key(x)))
            self.recorder.measure_input(value)
            self._by_place[place] = Symbol(value, self.recorder)
        return self._by_place[place]


def _place_of(path: Any) -> Any:
    return (path[0], id(path[1]), *path[2:])


def _find_leaves(x: Any, keys: tuple[Any, ...], found: list[Any], seen: set[int]) -> None:
    """The leaves of a container in the order of :class:`Flattened`, and where they are."""
    if number_type(x) is not None or isinstance(x, np.ndarray):
        found.append((keys, x))
        return
    if isinstance(x, (list, dict)) or is_record(x):
        if id(x) in seen:
            return
        seen.add(id(x))
    if isinstance(x, (list, tuple)):
        for k, item in enumerate(x):
            _find_leaves(item, (*keys, k), found, seen)
    elif isinstance(x, dict) or is_record(x):
        for key, item in (x if isinstance(x, dict) else vars(x)).items():
            _find_leaves(item, (*keys, key), found, seen)
