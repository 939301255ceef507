"""The interpreter, which evaluates a function's ``ast`` on symbols, put together of its parts."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from fwdad.errors import UntraceableError, type_in_words
from fwdad.frontend.calls.calls import Calls
from fwdad.frontend.calls.classes import ClassCalls
from fwdad.frontend.calls.inline import InlineCalls
from fwdad.frontend.calls.operations import OperationCalls
from fwdad.frontend.calls.outside import Outside
from fwdad.frontend.calls.recursion import Programs
from fwdad.frontend.captures import Captures
from fwdad.frontend.syntax.assignments import Assignments
from fwdad.frontend.syntax.attributes import Attributes
from fwdad.frontend.syntax.blocks import Blocks
from fwdad.frontend.syntax.comprehensions import Comprehensions
from fwdad.frontend.syntax.conditions import Conditions
from fwdad.frontend.syntax.context_managers import ContextManagers
from fwdad.frontend.syntax.definitions import Definitions
from fwdad.frontend.syntax.exceptions import Exceptions
from fwdad.frontend.syntax.expressions import Expressions
from fwdad.frontend.syntax.generators import Generators
from fwdad.frontend.syntax.growing_lists.making import one_in_memory
from fwdad.frontend.syntax.loops import Loops
from fwdad.frontend.syntax.matching import Matching
from fwdad.frontend.syntax.operators import Operators
from fwdad.frontend.syntax.position import Position
from fwdad.frontend.syntax.scopes import Scopes
from fwdad.frontend.syntax.subscripts import Subscripts
from fwdad.frontend.syntax.symbols import Poison
from fwdad.frontend.syntax.values import Values
from fwdad.ir.builder.recorder import Recorder


class Interpreter:
    """The tracer of one program.

    ``recursive`` are the functions that are known to become programs of their own, ``growing`` the
    places where lists are made that grow, and the types of their items.
    """

    def __init__(
        self,
        recorder: Recorder,
        captures: Captures,
        recursive: dict[Any, Any],
        growing: dict[Any, Any],
    ) -> None:
        self.recorder = recorder
        self.position = Position()
        recorder.place = self.position.location
        if recorder.ways is not None:
            recorder.ways.exact = self.position.exact
        self.outside = Outside(recorder, self.position, captures)
        self.values = Values(recorder, self.position, self.outside)
        self.growing = growing
        self.values.one_in_memory = functools.partial(one_in_memory, self)

        self.scopes = Scopes(self)
        self.subscripts = Subscripts(self)
        self.attributes = Attributes(self, self.subscripts)
        self.conditions = Conditions(self)
        self.operators = Operators(self, self.conditions)
        self.assignments = Assignments(self, self.subscripts, self.scopes, self.attributes)
        self.definitions = Definitions(self)
        self.blocks = Blocks(self)
        self.loops = Loops(self, self.assignments, self.blocks)
        self.managers = ContextManagers(self, self.assignments, self.blocks)
        self.generators = Generators(self, self.assignments, self.blocks, self.loops, self.managers)
        self.programs = Programs(recorder, self.position)
        self.operations = OperationCalls(self)
        self.inline = InlineCalls(
            self, self.blocks, self.generators, self.operations, self.programs, recursive
        )
        self.classes = ClassCalls(self, self.attributes, self.operations)
        self.calls = Calls(self, self.operations, self.inline, self.classes)

        self.call = self.calls.call
        self.truth, self.test = self.conditions.truth, self.conditions.test
        self.binary = self.operators.binary
        self.attribute = self.attributes.attribute
        self.subscript = self.subscripts.subscript
        self._expressions = self._handlers_of_expressions()
        self._statements = self._handlers_of_statements()

    def _handlers_of_expressions(self) -> dict[type[ast.expr], Callable[[Any], Any]]:
        comprehensions = Comprehensions(self, self.scopes, self.assignments)
        expressions = Expressions(self, self.attributes, comprehensions, self.calls)
        return {
            ast.Constant: expressions.eval_Constant,
            ast.Tuple: expressions.eval_Tuple,
            ast.List: expressions.eval_List,
            ast.Set: expressions.eval_Set,
            ast.Dict: expressions.eval_Dict,
            ast.JoinedStr: expressions.eval_JoinedStr,
            ast.Call: expressions.eval_Call,
            ast.Name: self.scopes.eval_Name,
            ast.Subscript: self.subscripts.eval_Subscript,
            ast.Attribute: self.attributes.eval_Attribute,
            ast.BinOp: self.operators.eval_BinOp,
            ast.UnaryOp: self.conditions.eval_UnaryOp,
            ast.BoolOp: self.conditions.eval_BoolOp,
            ast.Compare: self.conditions.eval_Compare,
            ast.IfExp: self.conditions.eval_IfExp,
            ast.NamedExpr: self.assignments.eval_NamedExpr,
            ast.Lambda: self.definitions.eval_Lambda,
            ast.ListComp: comprehensions.eval_ListComp,
            ast.SetComp: comprehensions.eval_SetComp,
            ast.DictComp: comprehensions.eval_DictComp,
            ast.GeneratorExp: comprehensions.eval_GeneratorExp,
        }

    def _handlers_of_statements(self) -> dict[type[ast.stmt], Callable[[Any], None]]:
        exceptions = Exceptions(self, self.blocks)
        return {
            ast.Expr: self.blocks.run_Expr,
            ast.Pass: self.blocks.run_Pass,
            ast.Global: self.blocks.run_Global,
            ast.Nonlocal: self.blocks.run_Nonlocal,
            ast.If: self.blocks.run_If,
            ast.Return: self.blocks.run_Return,
            ast.Break: self.blocks.run_Break,
            ast.Continue: self.blocks.run_Continue,
            ast.Assign: self.assignments.run_Assign,
            ast.AnnAssign: self.assignments.run_AnnAssign,
            ast.AugAssign: self.assignments.run_AugAssign,
            ast.Delete: self.assignments.run_Delete,
            ast.Import: self.scopes.run_Import,
            ast.ImportFrom: self.scopes.run_ImportFrom,
            ast.FunctionDef: self.definitions.run_FunctionDef,
            ast.For: self.loops.run_For,
            ast.While: self.loops.run_While,
            ast.With: self.managers.run_With,
            ast.Match: Matching(self, self.scopes, self.conditions, self.blocks).run_Match,
            ast.Assert: exceptions.run_Assert,
            ast.Raise: exceptions.run_Raise,
            ast.Try: exceptions.run_Try,
        }

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression, which is used: refused if paths left two kinds of it."""
        value = self.unread(node)
        if type(value) is Poison:
            self.values.refuse_poison(value, "this value")
        return value

    def unread(self, node: ast.expr) -> Any:
        """The value of an expression that is bound to a name, or returned."""
        self.position.at(node)
        handle = self._expressions.get(type(node))
        if handle is None:
            message = f"{type_in_words(node)} expression cannot be traced"
            raise UntraceableError(message, self.position.location())
        value = handle(node)
        self.position.at(node)
        return value

    def run(self, node: ast.stmt) -> None:
        """Execute one statement."""
        self.position.at(node)
        handle = self._statements.get(type(node))
        if handle is None:
            outside = ": define it outside" if isinstance(node, ast.ClassDef) else ""
            message = f"a `{_keyword(node)}` statement cannot be traced{outside}"
            raise UntraceableError(message, self.position.location())
        handle(node)


def _keyword(node: ast.stmt) -> str:
    return {
        "AsyncFunctionDef": "async def",
        "ClassDef": "class",
        "AsyncFor": "async for",
        "TryStar": "except*",
    }.get(type(node).__name__, type(node).__name__.lower())
