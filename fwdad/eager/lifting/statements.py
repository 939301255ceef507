"""Statements of a function's syntax tree: stores, loops and ``with`` go through hooks."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.core.operators import OPERATORS
from fwdad.eager.lifting.lifter import Lifter
from fwdad.eager.lifting.nodes import constant, forget, function_of, hook, name_of, subscript_index


class Statements:
    """Lifts statements."""

    def __init__(self, lifter: Lifter) -> None:
        self.lifter = lifter
        self.scopes = lifter.scopes

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        body: list[ast.expr] = [name_of(n, ast.Load(), node) for n in node.names]
        cells = ast.copy_location(ast.Tuple(body, ast.Load()), node)
        reader = function_of([], cells, node)
        call = hook("write_cells", node, reader)
        return [node, ast.copy_location(ast.Expr(call), node)]

    def visit_Global(self, node: ast.Global) -> Any:
        namespace = ast.copy_location(ast.Call(name_of("globals", ast.Load(), node), [], []), node)
        names = [constant(n, node) for n in node.names]
        call = hook("write_global", node, namespace, *names)
        return [node, ast.copy_location(ast.Expr(call), node)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.lifter.visit(node.value)
        if len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                node.value = value
                return node
            if isinstance(target, (ast.Subscript, ast.Attribute)):
                return self._store(target, value, node)
        elif all(isinstance(t, ast.Name) for t in node.targets):
            node.value = value
            return node
        temporary = self.scopes.temporary()
        first = ast.Assign([name_of(temporary, ast.Store(), node)], value)
        statements: list[ast.stmt] = [ast.copy_location(first, node)]
        for target in node.targets:
            statements.extend(self._assign(target, name_of(temporary, ast.Load(), node), node))
        statements.append(forget(temporary, node))
        return statements

    def _assign(self, target: ast.expr, value: ast.expr, at: ast.AST) -> list[ast.stmt]:
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            return [self._store(target, value, at)]
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = [self._pattern(e) for e in target.elts]
            unpacked = type(target)([part for part, _ in parts], ast.Store())
            spread = hook("iterate", at, value)
            first = ast.Assign([ast.copy_location(unpacked, target)], spread)
            rest = [statement for _, after in parts for statement in after]
            return [ast.copy_location(first, at), *rest]
        return [ast.copy_location(ast.Assign([target], value), at)]

    def _pattern(self, target: ast.expr) -> tuple[ast.expr, list[ast.stmt]]:
        """A target that only binds a name, and the statements that store from that name."""
        if isinstance(target, ast.Name):
            return target, []
        if isinstance(target, ast.Starred):
            inner, after = self._pattern(target.value)
            return ast.copy_location(ast.Starred(inner, ast.Store()), target), after
        held = self.scopes.temporary()
        after = self._assign(target, name_of(held, ast.Load(), target), target)
        return name_of(held, ast.Store(), target), [*after, forget(held, target)]

    def _subscript_index(self, target: ast.Subscript) -> ast.expr:
        return subscript_index(self.lifter.visit(target.slice))

    def _store(self, target: ast.expr, value: ast.expr, at: ast.AST) -> ast.stmt:
        if isinstance(target, ast.Subscript):
            o, index = self.lifter.visit(target.value), self._subscript_index(target)
            call = hook("setitem", target, value, o, index)
        else:
            assert isinstance(target, ast.Attribute)
            o = self.lifter.visit(target.value)
            name = constant(self.scopes.mangled(target.attr), target)
            call = hook("set_attr", target, value, o, name)
        # the value comes first among the arguments, because Python evaluates it first
        return ast.copy_location(ast.Expr(call), at)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        name = OPERATORS[type(node.op)].in_place_name
        if isinstance(node.target, ast.Name):
            read = self.lifter.visit(name_of(node.target.id, ast.Load(), node.target))
            value = hook(name, node, read, self.lifter.visit(node.value))
            return ast.copy_location(ast.Assign([node.target], value), node)
        o, old = self.scopes.temporary(), self.scopes.temporary()
        made: list[ast.stmt] = []

        def bind(name: str, value: ast.expr) -> None:
            made.append(
                ast.copy_location(ast.Assign([name_of(name, ast.Store(), node)], value), node)
            )

        def load(name: str) -> ast.Name:
            return name_of(name, ast.Load(), node.target)

        target = node.target
        bind(o, self.lifter.visit(target.value))
        names = [o, old]
        if isinstance(target, ast.Subscript):
            index = self.scopes.temporary()
            names.append(index)
            bind(index, self._subscript_index(target))
            bind(old, hook("getitem", target, load(o), load(index)))
            new = hook(name, node, load(old), self.lifter.visit(node.value))
            stored = hook("aug_setitem", node, load(o), load(index), load(old), new)
            made.append(ast.copy_location(ast.Expr(stored), node))
        else:
            attribute = constant(self.scopes.mangled(target.attr), target)
            bind(old, hook("attr", target, load(o), attribute))
            new = hook(name, node, load(old), self.lifter.visit(node.value))
            call = hook("set_attr", node, new, load(o), attribute)
            made.append(ast.copy_location(ast.Expr(call), node))
        made.extend(forget(name, node) for name in names)
        return made

    def visit_Delete(self, node: ast.Delete) -> Any:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                index = self._subscript_index(target)
                call = hook("delitem", target, self.lifter.visit(target.value), index)
                made.append(ast.copy_location(ast.Expr(call), node))
            elif isinstance(target, ast.Attribute):
                name = constant(self.scopes.mangled(target.attr), target)
                call = hook("del_attr", target, self.lifter.visit(target.value), name)
                made.append(ast.copy_location(ast.Expr(call), node))
            else:
                made.append(ast.copy_location(ast.Delete([target]), node))
        return made

    def visit_For(self, node: ast.For) -> Any:
        node.target, after = self._pattern(node.target)
        node.iter = hook("iterate", node.iter, self.lifter.visit(node.iter))
        node.body = [*after, *self.lifter.block(node.body)]
        node.orelse = self.lifter.block(node.orelse)
        return node

    def visit_With(self, node: ast.With) -> Any:
        after: list[ast.stmt] = []
        for item in node.items:
            manager = self.lifter.visit(item.context_expr)
            item.context_expr = hook("enter", item.context_expr, manager)
            if item.optional_vars is not None:
                item.optional_vars, more = self._pattern(item.optional_vars)
                after.extend(more)
        node.body = [*after, *self.lifter.block(node.body)]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return node
        if isinstance(node.target, ast.Name):
            node.value = self.lifter.visit(node.value)
            return node
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(plain)
