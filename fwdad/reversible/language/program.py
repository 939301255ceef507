"""A reversible program as data: statements that each have an inverse.

Expressions and places stay as nodes of Python's ``ast``; a *place* is a name, an element, a slice
or a field, something that can be updated.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fwdad.errors import InvertibilityError

Place = ast.expr
Block = list["Statement"]


@dataclass(eq=False)
class Variable:
    """A local variable from its beginning to its end: one object for both."""

    name: str


@dataclass(eq=False)
class Statement:
    """One statement of a program, with its node in the user's source.

    ``apart`` has what only a run can tell: lists of pairs of indices, with the length of their
    axis, that must not all be equal, because one place is updated and another read at once.
    """

    node: ast.AST
    apart: list[list[tuple[ast.expr, ast.expr, ast.expr]]] = field(default_factory=list, init=False)


@dataclass(eq=False)
class Update(Statement):
    """``place op= value``, with an operator that has an inverse: ``+ - * / ^``."""

    place: Place
    op: str
    value: ast.expr


@dataclass(eq=False)
class Swap(Statement):
    """``a, b = b, a``."""

    a: Place
    b: Place


@dataclass(eq=False)
class Flip(Statement):
    """``v = -v``, ``v = ~v`` or ``v = not v``: its own inverse."""

    place: Place
    op: str


@dataclass(eq=False)
class Instruct(Statement):
    """A registered instruction on places and, behind them, values that it only reads."""

    name: str
    instruction: Any
    args: list[ast.expr]
    inverse: bool


@dataclass(eq=False)
class Allocate(Statement):
    """``v = ancilla(value)``."""

    variable: Variable
    value: ast.expr


@dataclass(eq=False)
class Free(Statement):
    """``free(v, value)``: v must have that value, and ends."""

    variable: Variable
    value: ast.expr


@dataclass(eq=False)
class Define(Statement):
    """``j = value``, a name for what the statements of ``body`` do not change."""

    variable: Variable
    value: ast.expr
    body: Block


@dataclass(eq=False)
class If(Statement):
    """A branch, and the condition that tells afterwards which branch was taken."""

    pre: ast.expr
    post: ast.expr
    body: Block
    orelse: Block


@dataclass(eq=False)
class While(Statement):
    """A loop while ``pre``; ``post`` is false before it and true after each turn."""

    pre: ast.expr
    post: ast.expr
    body: Block


@dataclass(eq=False)
class For(Statement):
    """A loop over a range; ``step`` is a literal. With ``moving`` the body may move its ends."""

    variable: Variable
    start: ast.expr
    stop: ast.expr
    step: int
    body: Block
    backwards: bool = False
    moving: bool = False


Fields = tuple[type, dict[str, "str | Fields"]]
"""Of a name that stands for several variables: its class, and its fields with theirs."""


@dataclass(eq=False)
class Call(Statement):
    """A call of a reversible function, which updates all its arguments.

    ``owner`` is the object, if ``function`` may be a method. Once ``meant`` is known, the arguments
    are in its order, the owner first. ``fields`` has those that are several variables.
    """

    function: ast.expr
    args: list[Place]
    inverse: bool
    keywords: tuple[str, ...] = ()
    owner: Place | None = None
    meant: Any = None
    fields: dict[str, Fields] = field(default_factory=dict)

    def places(self, argument: ast.expr) -> list[Place]:
        """The places that an argument is."""
        fields = self.fields.get(argument.id) if isinstance(argument, ast.Name) else None
        return [argument] if fields is None else _variables(fields, argument)


def _variables(fields: Fields, node: ast.expr) -> list[Place]:
    variables: list[Place] = []
    for v in fields[1].values():
        if isinstance(v, str):
            variables.append(ast.copy_location(ast.Name(v, ast.Load()), node))
        else:
            variables += _variables(v, node)
    return variables


@dataclass(eq=False)
class Compute(Statement):
    """``body``, then ``inside``, then ``body`` undone."""

    body: Block
    inside: Block


@dataclass(eq=False)
class Require(Statement):
    """What must hold here, in both directions.

    The error says: "``what`` is ``actual``; it must be ``expected``".
    """

    test: ast.expr
    what: str
    variable: str
    actual: ast.expr
    expected: str
    error: type = InvertibilityError


@dataclass(eq=False)
class Unchecked(Statement):
    """A block whose run-time checks are off."""

    body: Block


@dataclass(eq=False)
class Program:
    """A reversible function as data; each of its parameters is both input and output.

    Generated names must differ from ``names``, all names in its source. ``grows`` says whether it
    begins stacks or dictionaries without a capacity.
    """

    name: str
    params: list[str]
    body: Block
    filename: str
    names: set[str] = field(default_factory=set)
    grows: bool = False


_BLOCKS = ("body", "orelse", "inside")
"""The fields of statements that are blocks, in the order of the source."""


def children(statement: Statement) -> list[Block]:
    """The blocks of a statement."""
    return [getattr(statement, name) for name in _BLOCKS if hasattr(statement, name)]


def with_blocks(statement: Statement, f: Callable[[Block], Block]) -> Statement:
    """A copy of a statement with other blocks; its variables are the same."""
    copied = copy.copy(statement)
    for name in _BLOCKS:
        if hasattr(statement, name):
            setattr(copied, name, f(getattr(statement, name)))
    return copied


def walk(block: Block) -> Iterator[Statement]:
    """Every statement of a block, and those inside."""
    for statement in block:
        yield statement
        for inner in children(statement):
            yield from walk(inner)


def expanded(block: Block, call: Callable[[Call], Block]) -> Block:
    """A block with other statements for its calls; its variables are the same."""
    statements: Block = []
    for s in block:
        if isinstance(s, Call):
            statements += call(s)
        else:
            statements.append(with_blocks(s, lambda inner: expanded(inner, call)))
    return statements


def root_of(place: ast.expr) -> str:
    """The variable that a place belongs to."""
    while isinstance(place, (ast.Subscript, ast.Attribute)):
        place = place.value
    return place.id if isinstance(place, ast.Name) else ""


def written_places(statement: Statement) -> list[Place]:
    """The places that a statement itself updates, those of its blocks apart."""
    if isinstance(statement, (Update, Flip)):
        return [statement.place]
    if isinstance(statement, Swap):
        return [statement.a, statement.b]
    if isinstance(statement, Call):
        owner = [statement.owner] if statement.owner is not None else []
        return [*owner, *(p for a in statement.args for p in statement.places(a))]
    if isinstance(statement, Instruct):
        return list(statement.args[: statement.instruction.updated])
    return []


def read_expressions(statement: Statement) -> list[ast.expr]:
    """The expressions that a statement itself evaluates, those of its blocks apart."""
    if isinstance(statement, (Update, Allocate, Free, Define)):
        return [statement.value]
    if isinstance(statement, (If, While)):
        return [statement.pre, statement.post]
    if isinstance(statement, For):
        return [statement.start, statement.stop]
    if isinstance(statement, Require):
        return [statement.test, statement.actual]
    if isinstance(statement, Instruct):
        return statement.args[statement.instruction.updated :]
    return []


def local_names(program: Program) -> set[str]:
    """The names of a program's own variables."""
    names = set(program.params)
    for s in walk(program.body):
        if isinstance(s, (Allocate, Define, For)):
            names.add(s.variable.name)
    return names


def written_roots(block: Block) -> set[str]:
    """The variables that a block updates."""
    return {root_of(p) for s in walk(block) for p in written_places(s)}
