"""A program as data: values in single-assignment form, arrays as memory, structured control flow.

Every operation says what it reads, what it writes and what its results may alias; passes ask
nothing else. A ``Loop`` has one body whatever its trip count, a ``Branch`` both its sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fwdad.errors import DualLeakError, Location
from fwdad.ir.types import INT, ArrayType, Type


class Value:
    """A result of an operation, or a parameter of a block: assigned once.

    Attributes
    ----------
    type : Number or ArrayType
        What is known of it.
    name : str or None
        The user's name for it, if it has one.
    """

    __slots__ = ("name", "type")

    def __init__(self, type: Type, name: str | None = None) -> None:  # noqa: A002
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name or 'value'}: {self.type}>"


@dataclass(frozen=True)
class Missing:
    """Stands where a value would not be used: a name that one side of a branch leaves unbound."""

    type: Type


Operand = Any
"""A ``Value``, a constant, or a tuple, list or slice of operands."""


_CONSTANTS = {float, int, str, bool, complex, type(None), type(Ellipsis)}
"""Types of operands that hold nothing else: passes ask for what is inside operands all the time."""


def values_in(operand: Operand) -> list[Value]:
    """Every value in a structure of operands."""
    if type(operand) is Value:
        return [operand]
    found: list[Value] = []
    _collect(operand, found)
    return found


def _collect(operand: Operand, found: list[Value]) -> None:
    kind = type(operand)
    if kind is tuple or kind is list or isinstance(operand, (tuple, list)):
        for item in operand:
            inner = type(item)
            if inner is Value:
                found.append(item)
            elif inner not in _CONSTANTS:
                _collect(item, found)
    elif kind is Value:
        found.append(operand)
    elif kind is slice:
        _collect((operand.start, operand.stop, operand.step), found)
    elif kind is dict:
        _collect(list(operand.values()), found)


def map_values(f: Callable[[Value], Operand], operand: Operand) -> Operand:
    """A structure of operands with every value replaced."""
    kind = type(operand)
    if kind is Value:
        return f(operand)
    if kind in _CONSTANTS:
        return operand
    if kind is tuple or kind is list or isinstance(operand, (tuple, list)):
        items = [f(x) if type(x) is Value else map_values(f, x) for x in operand]
        return items if kind is list else kind(items)
    if kind is slice:
        return slice(*map_values(f, (operand.start, operand.stop, operand.step)))
    if kind is dict:
        return {key: map_values(f, item) for key, item in operand.items()} if operand else operand
    return operand


@dataclass
class Block:
    """A sequence of operations with parameters and results.

    Attributes
    ----------
    params : list of Value
        Bound when the block is entered.
    ops : list of Op
        In the order of their effects.
    results : list of operands
        What the block returns.
    """

    params: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    results: list[Operand] = field(default_factory=list)


@dataclass(eq=False)
class Op:
    """One operation. Compared by identity.

    Attributes
    ----------
    outputs : tuple of Value
        What it defines.
    location : Location or None
        The user's line.
    nests : bool
        Whether operations of its kind have blocks inside them.
    """

    nests: ClassVar[bool] = False

    outputs: tuple[Value, ...] = field(default=(), kw_only=True)
    location: Location | None = field(default=None, kw_only=True)

    def operands(self) -> list[Operand]:
        """What it uses, blocks apart."""
        raise NotImplementedError

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Rewrite what it uses, blocks apart."""
        raise NotImplementedError

    def blocks(self) -> list[Block]:
        """The blocks inside it."""
        return []

    def writes(self) -> list[Value]:
        """The arrays that it writes by itself (not those that its blocks write)."""
        return []

    @property
    def pure(self) -> bool:
        """Whether leaving it out, if nobody uses its outputs, changes nothing."""
        return not self.nests and not self.writes()


@dataclass(eq=False)
class Apply(Op):
    """A call of a function on values; ``mutated`` are the positions of arguments that it writes.

    With ``any_order`` it is a sum of cotangents, whose order is free: an addition to what a loop
    carries, or a product of matrices.
    """

    function: Callable[..., Any]
    args: tuple[Operand, ...]
    kwargs: dict[str, Operand] = field(default_factory=dict)
    mutated: tuple[int, ...] = ()
    any_order: bool = False

    def operands(self) -> list[Operand]:
        """Arguments."""
        return [*self.args, *self.kwargs.values()]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Rewrite the arguments."""
        self.args = map_values(f, self.args)
        self.kwargs = map_values(f, self.kwargs)

    def writes(self) -> list[Value]:
        """The arguments that the function writes."""
        if not self.mutated:
            return []
        return [v for k in self.mutated for v in values_in(self.args[k])]


@dataclass(eq=False)
class Effect(Apply):
    """A call that puts something out: made each time the program comes there, and in order."""

    @property
    def pure(self) -> bool:
        """It is seen outside: kept."""
        return False


@dataclass(eq=False)
class Load(Op):
    """``a[index]``: an element, a view (basic index), or a copy (fancy index)."""

    array: Value
    index: tuple[Operand, ...]
    view: bool

    def operands(self) -> list[Operand]:
        """Array and index."""
        return [self.array, self.index]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Rewrite array and index."""
        self.array = f(self.array)
        self.index = map_values(f, self.index)


class ElementWrite(Op):
    """What writes a value into elements of an array: a store, or an update."""

    array: Value
    index: tuple[Operand, ...]
    value: Operand

    def operands(self) -> list[Operand]:
        """Array, index and value."""
        return [self.array, self.index, self.value]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Rewrite array, index and value."""
        self.array = f(self.array)
        self.index = map_values(f, self.index)
        self.value = map_values(f, self.value)

    def writes(self) -> list[Value]:
        """The array."""
        return [self.array]

    def check_derivatives_fit(self) -> None:
        """Raise if the array's dtype has no derivatives; the value carries one."""
        if self.array.type.dtype.kind not in "fc":
            message = (
                "a value that carries a derivative is stored into an array of "
                f"{self.array.type.dtype} and would lose it; make the array one of floats, or say "
                "fwdad.stop_gradient(x)"
            )
            raise DualLeakError(message, self.location)


@dataclass(eq=False)
class Store(ElementWrite):
    """``a[index] = value``."""

    array: Value
    index: tuple[Operand, ...]
    value: Operand


@dataclass(eq=False)
class Update(ElementWrite):
    """``a[index] op= value`` in place; with ``operator.add`` or ``sub`` it accumulates."""

    array: Value
    index: tuple[Operand, ...]
    function: Callable[[Any, Any], Any]
    value: Operand


@dataclass(eq=False)
class Check(Op):
    """Raise an exception unless a condition holds: ``assert``, and ``raise`` under an ``if``."""

    condition: Operand
    exception: Operand  # a class, or an instance, of the user's
    arguments: tuple[Operand, ...] = ()

    def operands(self) -> list[Operand]:
        """Condition and arguments of the exception."""
        return [self.condition, self.arguments]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Rewrite condition and arguments."""
        self.condition = map_values(f, self.condition)
        self.arguments = map_values(f, self.arguments)

    @property
    def pure(self) -> bool:
        """It may raise: kept."""
        return False


@dataclass(eq=False)
class Branch(Op):
    """Both sides of an ``if`` on a value; their results are the outputs."""

    nests: ClassVar[bool] = True

    condition: Operand
    then: Block
    other: Block

    def operands(self) -> list[Operand]:
        """The condition."""
        return [self.condition]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Rewrite the condition."""
        self.condition = map_values(f, self.condition)

    def blocks(self) -> list[Block]:
        """Both sides."""
        return [self.then, self.other]


@dataclass(frozen=True)
class Checkpoint:
    """How a loop is to be run backwards: from some of its states, by running it again.

    Attributes
    ----------
    snapshots : int or None
        How many states may be kept.
    memory : int or None
        How many bytes they may take; with neither, their number grows with the cube root of the
        number of iterations.
    """

    snapshots: int | None = None
    memory: int | None = None


@dataclass(eq=False)
class Loop(Op):
    """A body that is run again and again, carrying values.

    Over a range, ``test`` is None and the body's first parameter is the counter. Under a condition,
    ``span`` is None and ``test`` is a block of the carried values that returns it. The other
    parameters are the carried values, whose next values are the body's results. With ``leaves``,
    the body's last result says whether to leave the loop.

    Attributes
    ----------
    span : tuple of operands or None
        start, stop and step.
    initial : list of operands
        The carried values at the entry; the outputs are those at the exit.
    exec_count : Value
        How many times the body ran (also one of the things that a tape may use).
    checkpoint : Checkpoint or None
        Whether reverse mode runs it again, instead of keeping what each iteration needs.
    sealed : bool
        Whether it is a call that is to be run again, once: nothing is moved out of it.
    """

    nests: ClassVar[bool] = True

    span: tuple[Operand, Operand, Operand] | None
    initial: list[Operand]
    body: Block
    test: Block | None = None
    leaves: bool = False
    exec_count: Value = field(default_factory=lambda: Value(INT))
    checkpoint: Checkpoint | None = None
    sealed: bool = False

    def operands(self) -> list[Operand]:
        """Range and initial values."""
        return [self.span, self.initial]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Rewrite range and initial values."""
        self.span = map_values(f, self.span)
        self.initial = map_values(f, self.initial)

    def blocks(self) -> list[Block]:
        """Condition and body."""
        return [self.body] if self.test is None else [self.test, self.body]

    @property
    def carried(self) -> list[Value]:
        """The body's parameters for the carried values."""
        return self.body.params[1:] if self.span is not None else self.body.params


@dataclass(eq=False)
class Call(Op):
    """A call of another program: recursion, and functions that are not worth repeating.

    Attributes
    ----------
    program : Program
        What is called.
    args : list
        The values of its parameters.
    adjoint : callable or None
        For a function that has a reverse pass of its own: ``adjoint(args, outputs, bars)`` writes
        it, from the arguments, what the call returned and the cotangents of that; it returns those
        of the arguments.
    """

    program: Program
    args: list[Operand]
    adjoint: Callable[..., list[Any]] | None = None

    def operands(self) -> list[Operand]:
        """Arguments."""
        return [self.args]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Rewrite the arguments."""
        self.args = map_values(f, self.args)

    def writes(self) -> list[Value]:
        """The arrays among the arguments that the callee writes."""
        return [
            a
            for a, written in zip(self.args, self.program.written, strict=True)
            if written and isinstance(a, Value)
        ]

    @property
    def pure(self) -> bool:
        """It may not come back, or raise: kept."""
        return False


@dataclass(eq=False)
class Program:
    """A traced function: what a tape holds, and what a ``Call`` runs.

    Attributes
    ----------
    name : str
        The function's.
    block : Block
        Its parameters are the leaves of the arguments, then the captured values.
    filename : str
        The user's file.
    written : list of bool
        For each parameter, whether the program writes into it.
    quiet : bool
        Whether it holds derivative arithmetic, which gives no floating-point warnings.
    parallel : bool
        Whether long loops over elements may run on several cores.
    shared : set of Value
        In a program that is a part of another one: the arrays whose memory the rest writes into.
    rows : bool
        Whether the arrays among its parameters are known to be C-contiguous, without gaps.
    together : list of int
        In such a program: for each parameter the position of the one whose memory it may be, its
        own if it is apart. Empty: all are.
    absent : set of Value
        In such a program: the parameters that may be missing, and are not used then.
    own : bool
        Whether each parameter that it writes into is memory of its own, where another index means
        another element.
    """

    name: str
    block: Block
    filename: str = ""
    written: list[bool] = field(default_factory=list)
    quiet: bool = False
    parallel: bool = False
    shared: set[Value] = field(default_factory=set)
    rows: bool = False
    together: list[int] = field(default_factory=list)
    absent: set[Value] = field(default_factory=set)
    own: bool = False

    def walk(self) -> Iterator[Op]:
        """Every operation, in order, those inside blocks after the one that holds them."""
        return walk(self.block)

    def count(self, kind: type[Op] | tuple[type[Op], ...] = Op) -> int:
        """How many operations of a kind there are."""
        return sum(isinstance(op, kind) for op in self.walk())


def walk(block: Block) -> Iterator[Op]:
    """Every operation of a block and of the blocks inside it."""
    for op in block.ops:
        yield op
        if op.nests:
            for inner in op.blocks():
                yield from walk(inner)


def is_array(operand: Operand) -> bool:
    """Whether an operand is an array value."""
    return type(operand) is Value and type(operand.type) is ArrayType
