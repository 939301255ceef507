"""A rewriter of functions' syntax trees: everything that could meet a dual becomes a hook.

Calls, operators, comparisons, attributes, subscripts, stores, iteration, ``with`` and ``match``
turn into calls of free variables, at the positions of the user's own expressions.
"""

from __future__ import annotations

import ast
from typing import Any

from fwdad.core.operators import OPERATORS
from fwdad.eager.lifting.expressions import subscript_index
from fwdad.eager.lifting.patterns import PatternLifter


class _Lifter(PatternLifter):
    """A transformer of one function definition."""

    # -- definitions inside the function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [
            self._hook("decorate", d, self.visit(d)) for d in node.decorator_list
        ]
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        node.decorator_list = [
            self._hook("decorate", d, self.visit(d)) for d in node.decorator_list
        ]
        return self._function(node)

    def _function(self, node: Any) -> Any:
        node.args = self.visit(node.args)
        self._scopes.append(None)
        self._declared.append(_declared_in(node))
        node.body = self._block(node.body)
        self._declared.pop()
        self._scopes.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args = self.visit(node.args)
        self._scopes.append(None)
        node.body = self.visit(node.body)
        self._scopes.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        names: list[str] = []
        self._classes.append(node.name)
        self._scopes.append(names)
        self.generic_visit(node)
        self._scopes.pop()
        self._classes.pop()
        if names:  # which a branch may have left unbound
            start = 0 if ast.get_docstring(node, clean=False) is None else 1
            bind: list[ast.expr] = [self._name(n, ast.Store(), node) for n in names]
            unbound: ast.stmt = ast.Assign(bind, self._constant(None, node))
            node.body.insert(start, ast.copy_location(unbound, node))
            node.body += [self._forget(n, node) for n in names]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return node
        if isinstance(node.target, ast.Name):
            node.value = self.visit(node.value)
            return node
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(plain)

    # -- statements

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            statements.extend(result if isinstance(result, list) else [result])
        return statements

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        body = [self._name(n, ast.Load(), node) for n in node.names]
        arguments = ast.arguments([], [], None, [], [], None, [])
        reader = ast.copy_location(
            ast.Lambda(arguments, ast.copy_location(ast.Tuple(list(body), ast.Load()), node)), node
        )
        call = self._hook("write_cells", node, reader)
        return [node, ast.copy_location(ast.Expr(call), node)]

    def visit_Global(self, node: ast.Global) -> Any:
        namespace = ast.copy_location(
            ast.Call(self._name("globals", ast.Load(), node), [], []), node
        )
        names = [self._constant(n, node) for n in node.names]
        call = self._hook("write_global", node, namespace, *names)
        return [node, ast.copy_location(ast.Expr(call), node)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
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
        temporary = self._temporary()
        first = ast.Assign([self._name(temporary, ast.Store(), node)], value)
        statements: list[ast.stmt] = [ast.copy_location(first, node)]
        for target in node.targets:
            statements.extend(self._assign(target, self._name(temporary, ast.Load(), node), node))
        statements.append(self._forget(temporary, node))
        return statements

    def _forget(self, name: str, at: ast.AST) -> ast.stmt:
        return ast.copy_location(ast.Delete([self._name(name, ast.Del(), at)]), at)

    def _assign(self, target: ast.expr, value: ast.expr, at: ast.AST) -> list[ast.stmt]:
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            return [self._store(target, value, at)]
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = [self._pattern(e) for e in target.elts]
            unpacked = type(target)([part for part, _ in parts], ast.Store())
            spread = self._hook("iterate", at, value)
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
        held = self._temporary()
        after = self._assign(target, self._name(held, ast.Load(), target), target)
        return self._name(held, ast.Store(), target), [*after, self._forget(held, target)]

    def _subscript_index(self, target: ast.Subscript) -> ast.expr:
        return subscript_index(self.visit(target.slice))

    def _store(self, target: ast.expr, value: ast.expr, at: ast.AST) -> ast.stmt:
        if isinstance(target, ast.Subscript):
            o, index = self.visit(target.value), self._subscript_index(target)
            call = self._hook("setitem", target, value, o, index)
        else:
            assert isinstance(target, ast.Attribute)
            o = self.visit(target.value)
            name = self._constant(self._mangled(target.attr), target)
            call = self._hook("set_attr", target, value, o, name)
        # the value comes first among the arguments, because Python evaluates it first
        return ast.copy_location(ast.Expr(call), at)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        hook = OPERATORS[type(node.op)].in_place_name
        if isinstance(node.target, ast.Name):
            read = self.visit(self._name(node.target.id, ast.Load(), node.target))
            value = self._hook(hook, node, read, self.visit(node.value))
            return ast.copy_location(ast.Assign([node.target], value), node)
        o, old = self._temporary(), self._temporary()
        made: list[ast.stmt] = []

        def bind(name: str, value: ast.expr) -> None:
            made.append(
                ast.copy_location(ast.Assign([self._name(name, ast.Store(), node)], value), node)
            )

        def load(name: str) -> ast.Name:
            return self._name(name, ast.Load(), node.target)

        target = node.target
        bind(o, self.visit(target.value))
        names = [o, old]
        if isinstance(target, ast.Subscript):
            index = self._temporary()
            names.append(index)
            bind(index, self._subscript_index(target))
            bind(old, self._hook("getitem", target, load(o), load(index)))
            new = self._hook(hook, node, load(old), self.visit(node.value))
            stored = self._hook("aug_setitem", node, load(o), load(index), load(old), new)
            made.append(ast.copy_location(ast.Expr(stored), node))
        else:
            attribute = self._constant(self._mangled(target.attr), target)
            bind(old, self._hook("attr", target, load(o), attribute))
            new = self._hook(hook, node, load(old), self.visit(node.value))
            call = self._hook("set_attr", node, new, load(o), attribute)
            made.append(ast.copy_location(ast.Expr(call), node))
        made.extend(self._forget(name, node) for name in names)
        return made

    def visit_Delete(self, node: ast.Delete) -> Any:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                index = self._subscript_index(target)
                call = self._hook("delitem", target, self.visit(target.value), index)
                made.append(ast.copy_location(ast.Expr(call), node))
            elif isinstance(target, ast.Attribute):
                name = self._constant(self._mangled(target.attr), target)
                call = self._hook("del_attr", target, self.visit(target.value), name)
                made.append(ast.copy_location(ast.Expr(call), node))
            else:
                made.append(ast.copy_location(ast.Delete([target]), node))
        return made

    def visit_For(self, node: ast.For) -> Any:
        node.target, after = self._pattern(node.target)
        node.iter = self._hook("iterate", node.iter, self.visit(node.iter))
        node.body = [*after, *self._block(node.body)]
        node.orelse = self._block(node.orelse)
        return node

    def visit_With(self, node: ast.With) -> Any:
        after: list[ast.stmt] = []
        for item in node.items:
            manager = self.visit(item.context_expr)
            item.context_expr = self._hook("enter", item.context_expr, manager)
            if item.optional_vars is not None:
                item.optional_vars, more = self._pattern(item.optional_vars)
                after.extend(more)
        node.body = [*after, *self._block(node.body)]
        return node


def _declared_in(node: ast.AST) -> set[str]:
    """The names that a function, or one inside it, declares global or nonlocal."""
    statements = (s for s in ast.walk(node) if isinstance(s, (ast.Global, ast.Nonlocal)))
    return {name for s in statements for name in s.names}


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
        lifter._function(node)
