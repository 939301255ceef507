"""A rewriter of functions' syntax trees: everything that could meet a dual becomes a hook.

Calls, operators, comparisons, attributes, subscripts, stores, iteration, ``with`` and ``match``
turn into calls of free variables, at the positions of the user's own expressions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from fwdad.eager.lifting.definitions import Definitions
from fwdad.eager.lifting.expressions import Expressions
from fwdad.eager.lifting.patterns import Patterns
from fwdad.eager.lifting.scopes import Scopes
from fwdad.eager.lifting.statements import Statements


class _Lifter(ast.NodeTransformer):
    """The lifter of one function definition, put together of its parts."""

    def __init__(self, classes: tuple[str, ...]) -> None:
        self.scopes = Scopes(classes)
        self.definitions = Definitions(self)
        expressions = Expressions(self)
        statements = Statements(self)
        self._handlers: dict[type[ast.AST], Callable[[Any], Any]] = {
            ast.Name: expressions.visit_Name,
            ast.Call: expressions.visit_Call,
            ast.Dict: expressions.visit_Dict,
            ast.Starred: expressions.visit_Starred,
            ast.Attribute: expressions.visit_Attribute,
            ast.Subscript: expressions.visit_Subscript,
            ast.BinOp: expressions.visit_BinOp,
            ast.UnaryOp: expressions.visit_UnaryOp,
            ast.Compare: expressions.visit_Compare,
            ast.ListComp: expressions.visit_any_comprehension,
            ast.SetComp: expressions.visit_any_comprehension,
            ast.DictComp: expressions.visit_any_comprehension,
            ast.GeneratorExp: expressions.visit_any_comprehension,
            ast.comprehension: expressions.visit_comprehension,
            ast.YieldFrom: expressions.visit_YieldFrom,
            ast.FunctionDef: self.definitions.visit_FunctionDef,
            ast.AsyncFunctionDef: self.definitions.visit_FunctionDef,
            ast.Lambda: self.definitions.visit_Lambda,
            ast.ClassDef: self.definitions.visit_ClassDef,
            ast.Nonlocal: statements.visit_Nonlocal,
            ast.Global: statements.visit_Global,
            ast.Assign: statements.visit_Assign,
            ast.AnnAssign: statements.visit_AnnAssign,
            ast.AugAssign: statements.visit_AugAssign,
            ast.Delete: statements.visit_Delete,
            ast.For: statements.visit_For,
            ast.With: statements.visit_With,
            ast.Match: Patterns(self).visit_Match,
        }

    def visit(self, node: ast.AST) -> Any:
        """A node with hooks; a statement may become several."""
        return self._handlers.get(type(node), self.generic_visit)(node)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block, with hooks."""
        statements: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            statements.extend(result if isinstance(result, list) else [result])
        return statements


def rewrite(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, classes: tuple[str, ...]
) -> None:
    """Put hooks into the body of a definition, in place.

    ``classes`` are those around it, outermost first, by which private names are mangled.
    """
    lifter = _Lifter(classes)
    if isinstance(node, ast.Lambda):
        node.body = lifter.visit(node.body)
    else:
        lifter.definitions.function(node)
