"""A program as data: values in SSA form, arrays as memory, structured control flow.

Every operation states what it reads, what it writes and what its results may alias; passes rely on
nothing else. A ``Loop`` has one body whatever its trip count, a ``Branch`` both its sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fwdad.errors import DualLeakError, Location
from fwdad.ir.types import INT, ArrayType, Type, covers, number_type
from fwdad.ops import record_of


class Value:
    """A result of an operation, or a parameter of a block: assigned once."""

    __slots__ = ("name", "type")

    def __init__(self, type: Type, name: str | None = None) -> None:  # noqa: A002
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name or 'value'}: {self.type}>"


@dataclass(frozen=True)
class Missing:
    """Stands for a value that is never used: one side of a branch leaves a name unbound."""

    type: Type


Operand = Any
"""A ``Value``, a constant, or a tuple, list or slice of operands."""


_CONSTANTS = {float, int, str, bool, complex, type(None), type(Ellipsis)}
"""Types of operands that hold nothing else: passes ask for what is inside operands all the time."""


def values_in(operand: Operand) -> list[Value]:
    """Every value in a structure of operands."""
    if type(operand) is Value:
        return [operand]
    values: list[Value] = []
    _collect(operand, values)
    return values


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
    """A sequence of operations, in the order of their effects, with parameters and results."""

    params: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    results: list[Operand] = field(default_factory=list)


@dataclass(eq=False)
class Op:
    """One operation, compared by identity; ``location`` is the user's line.

    ``nests``: operations of this kind have blocks inside them.
    """

    nests: ClassVar[bool] = False

    outputs: tuple[Value, ...] = field(default=(), kw_only=True)
    location: Location | None = field(default=None, kw_only=True)

    def operands(self) -> list[Operand]:
        """The operands, without those of its blocks."""
        raise NotImplementedError

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Replace values in the operands, without those of its blocks."""
        raise NotImplementedError

    def blocks(self) -> list[Block]:
        """The blocks inside it."""
        return []

    def writes(self) -> list[Value]:
        """The arrays that it writes directly, not in its blocks."""
        return []

    @property
    def pure(self) -> bool:
        """Whether removing it changes nothing if its outputs are unused."""
        return not self.nests and not self.writes()


@dataclass(eq=False)
class Apply(Op):
    """A call of a function on values; ``mutated`` are the positions of arguments that it writes.

    With ``any_order`` it is part of a sum of cotangents whose order is free: an addition to a
    carried value, or a matrix product.
    """

    function: Callable[..., Any]
    args: tuple[Operand, ...]
    kwargs: dict[str, Operand] = field(default_factory=dict)
    mutated: tuple[int, ...] = ()
    any_order: bool = False

    def operands(self) -> list[Operand]:
        """The arguments."""
        return [*self.args, *self.kwargs.values()]

    def operands_read(self) -> list[Operand]:
        """The arguments but those of which only shape and dtype count."""
        unread = record_of(self.function).shape_only
        return [*(a for k, a in enumerate(self.args) if k not in unread), *self.kwargs.values()]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Replace values in the arguments."""
        self.args = map_values(f, self.args)
        self.kwargs = map_values(f, self.kwargs)

    def writes(self) -> list[Value]:
        """The arguments that the function writes."""
        if not self.mutated:
            return []
        return [v for k in self.mutated for v in values_in(self.args[k])]


@dataclass(eq=False)
class Effect(Apply):
    """A call with output, made each time execution gets there, and in order."""

    @property
    def pure(self) -> bool:
        """False: its effect is visible outside."""
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
        """Replace values in array and index."""
        self.array = f(self.array)
        self.index = map_values(f, self.index)


class ElementWrite(Op):
    """A write of a value into elements of an array: a store, or an update."""

    array: Value
    index: tuple[Operand, ...]
    value: Operand

    def operands(self) -> list[Operand]:
        """Array, index and value."""
        return [self.array, self.index, self.value]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Replace values in array, index and value."""
        self.array = f(self.array)
        self.index = map_values(f, self.index)
        self.value = map_values(f, self.value)

    def writes(self) -> list[Value]:
        """The array."""
        return [self.array]

    def check_derivatives_fit(self) -> None:
        """Raise if the array's dtype has no derivatives; for a value that carries one."""
        if self.array.type.dtype.kind not in "fc":
            message = (
                "a value that carries a derivative is stored into an array of dtype "
                f"{self.array.type.dtype}, which cannot hold one: make the array float, or use "
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
        """The condition, and the arguments of the exception."""
        return [self.condition, self.arguments]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Replace values in the condition and the arguments."""
        self.condition = map_values(f, self.condition)
        self.arguments = map_values(f, self.arguments)

    @property
    def pure(self) -> bool:
        """False: it may raise."""
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
        """Replace values in the condition."""
        self.condition = map_values(f, self.condition)

    def blocks(self) -> list[Block]:
        """Both sides."""
        return [self.then, self.other]


@dataclass(frozen=True)
class Checkpoint:
    """How a loop is reversed by running it again from some of its states.

    ``snapshots`` and ``memory`` limit how many states are kept, and how many bytes they take. If
    both are None, the number grows with the cube root of the trip count.
    """

    snapshots: int | None = None
    memory: int | None = None


@dataclass(eq=False)
class Loop(Op):
    """A body that runs repeatedly, with carried values.

    Over a range, ``test`` is None and the body's first parameter is the counter; under a condition,
    ``span`` is None and ``test`` is a block of the carried values that returns it. The body returns
    their next values and, with ``leaves``, whether to leave the loop.

    Attributes
    ----------
    span : tuple of operands or None
        start, stop and step.
    initial : list of operands
        The carried values at entry; the outputs are those at exit.
    exec_count : Value
        The trip count, which other operations may use.
    checkpoint : Checkpoint or None
        How reverse mode runs it again; None if the residuals of each iteration are kept.
    sealed : bool
        Whether it stands for a call that reverse mode runs again: a single iteration, out of which
        nothing may be moved.
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
        """The range and the initial values."""
        return [self.span, self.initial]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Replace values in the range and the initial values."""
        self.span = map_values(f, self.span)
        self.initial = map_values(f, self.initial)

    def blocks(self) -> list[Block]:
        """Test and body."""
        return [self.body] if self.test is None else [self.test, self.body]

    @property
    def carried(self) -> list[Value]:
        """The body's parameters for the carried values."""
        return self.body.params[1:] if self.span is not None else self.body.params


@dataclass(eq=False)
class Call(Op):
    """A call of another program: recursion, or a function that is not worth repeating.

    ``adjoint(args, outputs, bars)`` is for functions with a reverse pass of their own: it records
    that, given the cotangents of the outputs, and returns those of the arguments;
    ``adjoint.inside(tracer)`` does so for a copy of the call in another trace.
    """

    program: Program
    args: list[Operand]
    adjoint: Any = None

    def operands(self) -> list[Operand]:
        """The arguments."""
        return [self.args]

    def replace(self, f: Callable[[Value], Operand]) -> None:
        """Replace values in the arguments."""
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
        """False: it may raise, or not return."""
        return False


@dataclass(eq=False)
class Program:
    """A traced function: what a tape holds, and what a ``Call`` runs.

    The block's parameters are the leaves of the arguments, then the captured values.

    Attributes
    ----------
    written : list of bool
        For each parameter, whether the program writes into it.
    quiet : bool
        Whether it is derivative arithmetic, which gives no floating-point warnings.
    parallel : bool
        Whether long elementwise loops may run on several cores.
    rows : bool
        Whether its array parameters are known to be C-contiguous.
    together : list of int
        In a part of a larger program: for each parameter, the position of the one that it may
        alias, or its own position. Empty if none aliases another.
    absent : set of Value
        In a part of a larger program: the parameters that may be missing, and are then unused.
    own : bool
        Whether the memory of each parameter that it writes belongs to it alone, with distinct
        elements for distinct indices.
    interpreted : tuple
        If NumPy runs it wherever compiled code calls it: the reasons.
    """

    name: str
    block: Block
    filename: str = ""
    written: list[bool] = field(default_factory=list)
    quiet: bool = False
    parallel: bool = False
    rows: bool = False
    together: list[int] = field(default_factory=list)
    absent: set[Value] = field(default_factory=set)
    own: bool = False
    interpreted: tuple[Any, ...] = ()

    def walk(self) -> Iterator[Op]:
        """Every operation in order, nested ones after the operation that contains them."""
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


def type_of_operand(operand: Operand) -> Any:
    """The type of a value, of a placeholder for one, or of a number; None for anything else."""
    if isinstance(operand, (Value, Missing)):
        return operand.type
    return number_type(operand)


def may_be(value: Value, operand: Operand) -> bool:
    """Whether an operand is of a type that a value may have."""
    t = type_of_operand(operand)
    return t is not None and covers(value.type, t)
