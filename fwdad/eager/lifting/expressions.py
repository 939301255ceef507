"""Expressions of a function's syntax tree, with hooks in place of what could meet a dual."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.core.debuggers import name_of_stop
from fwdad.core.operators import OPERATORS

PREFIX = "_fwdad_"

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

# these read the caller's frame: called in place
_FRAME_BOUND = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "__import__"}


class ExpressionLifter(ast.NodeTransformer):
    """A transformer of expressions."""

    def __init__(self, classes: tuple[str, ...]) -> None:
        self._temporaries = 0
        self._classes = list(classes)
        self._scopes: list[list[str] | None] = []
        """Of each enclosing scope: the temporaries of a class body, None for a function."""
        self._without_walrus = 0
        self._declared: list[set[str]] = [set()]
        """Of each enclosing function: the names that it declares global or nonlocal."""

    def _mangled(self, name: str) -> str:
        """A private name as Python mangles it inside a class."""
        if not _is_private(name) or not self._classes:
            return name
        stem = self._classes[-1].lstrip("_")
        return f"_{stem}{name}" if stem else name

    # -- building blocks

    def _hook(self, name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
        function = ast.copy_location(ast.Name(PREFIX + name, ast.Load()), at)
        return ast.copy_location(ast.Call(function, list(args), []), at)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"{PREFIX}t{self._temporaries}"

    def _kept_temporary(self) -> str:
        """A temporary bound by an expression; a class body deletes its temporaries at its end."""
        name = self._temporary()
        if self._scopes and self._scopes[-1] is not None:
            self._scopes[-1].append(name)
        return name

    def _name(self, name: str, context: ast.expr_context, at: ast.AST) -> ast.Name:
        return ast.copy_location(ast.Name(name, context), at)

    def _constant(self, value: Any, at: ast.AST) -> ast.Constant:
        return ast.copy_location(ast.Constant(value), at)

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _COMPREHENSIONS):
            return self._comprehension(node)
        return super().visit(node)

    # -- expressions

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._declared[-1]:
            return self._hook("found", node, node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in _FRAME_BOUND:
            name = node.func.id
            self.generic_visit(node)
            if name in ("eval", "exec"):
                check = self._hook("check_eval", node)
                both = ast.copy_location(ast.Tuple([check, node], ast.Load()), node)
                index = self._constant(1, node)
                return ast.copy_location(ast.Subscript(both, index, ast.Load()), node)
            if name in ("locals", "vars", "dir") and not (node.args or node.keywords):
                if not self._scopes or self._scopes[-1] is None:  # a class's own are the namespace
                    return self._hook("own_names", node, node)
            return node
        args = [self.visit(a) for a in node.args]
        keywords = [ast.copy_location(self._keyword(k), k) for k in node.keywords]
        if name_of_stop(node.func):
            # the debugger stops where it is called from: it is called in place
            stop = self._hook("stop", node.func, self.visit(node.func))
            return ast.copy_location(ast.Call(stop, args, keywords), node)
        if isinstance(node.func, ast.Attribute):
            one = len(args) == 1 and not keywords and not isinstance(args[0], ast.Starred)
            hook = self._hook(
                "method_of_one" if one else "method",
                node,
                self.visit(node.func.value),
                self._constant(self._mangled(node.func.attr), node.func),
            )
        else:
            hook = self._hook("call", node, self.visit(node.func))
        hook.args.extend(args)
        hook.keywords = keywords
        return hook

    def _keyword(self, node: ast.keyword) -> ast.keyword:
        value = self.visit(node.value)
        return ast.keyword(node.arg, value if node.arg else self._hook("mapping", value, value))

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        values = [
            self.visit(v) if k is not None else self._hook("mapping", v, self.visit(v))
            for k, v in zip(node.keys, node.values, strict=True)
        ]
        keys = [None if k is None else self.visit(k) for k in node.keys]
        return ast.copy_location(ast.Dict(keys, values), node)

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._hook("iterate", node.value, node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            name = self._constant(self._mangled(node.attr), node)
            return self._hook("attr", node, node.value, name)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return self._hook("getitem", node, node.value, subscript_index(node.slice))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._hook(OPERATORS[type(node.op)].name, node, node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        op = OPERATORS.get(type(node.op))
        if op is not None and not isinstance(node.operand, ast.Constant):
            return self._hook(op.name, node, node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1:
            self.generic_visit(node)
            return self._compare(node.ops[0], node.left, node.comparators[0], node)
        return self._chain(node, self.visit(node.left), node.ops, node.comparators)

    def _compare(self, op: ast.cmpop, left: ast.expr, right: ast.expr, at: ast.AST) -> ast.expr:
        known = OPERATORS.get(type(op))
        if known is not None:
            return self._hook(known.name, at, left, right)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self._hook("contains", at, left, right)
            if isinstance(op, ast.In):
                return found
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), at)
        return ast.copy_location(ast.Compare(left, [op], [right]), at)

    def _chain(
        self, at: ast.Compare, left: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr]
    ) -> ast.expr:
        """``a < b < c`` as ``a < b and b < c``, with b evaluated once and c only if needed."""
        if len(ops) == 1:
            return self._compare(ops[0], left, self.visit(rest[0]), at)
        middle = rest[0]
        if self._without_walrus:
            held = self._temporary()
            arguments = ast.arguments([], [ast.arg(held)], None, [], [], None, [])
            then = self._chain(at, self._name(held, ast.Load(), at), ops[1:], rest[1:])
            later = ast.copy_location(ast.Lambda(arguments, then), at)
            first = ast.Lambda(
                ast.arguments([], [ast.arg("a"), ast.arg("b")], None, [], [], None, []),
                self._compare(
                    ops[0], self._name("a", ast.Load(), at), self._name("b", ast.Load(), at), at
                ),
            )
            compare = ast.copy_location(first, at)
            return self._hook("compare_then", at, compare, left, self.visit(middle), later)
        held = self._kept_temporary()
        keep = ast.NamedExpr(self._name(held, ast.Store(), at), self.visit(middle))
        one = self._compare(ops[0], left, ast.copy_location(keep, middle), at)
        two = self._chain(at, self._name(held, ast.Load(), at), ops[1:], rest[1:])
        return ast.copy_location(ast.BoolOp(ast.And(), [one, two]), at)

    def _comprehension(self, node: Any) -> Any:
        in_class = bool(self._scopes) and self._scopes[-1] is not None
        self._without_walrus += in_class  # the language has no `:=` in these places
        self.generic_visit(node)
        self._without_walrus -= in_class
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        self.generic_visit(node)
        node.value = self._hook("iterate", node.value, node.value)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self._without_walrus += 1
        node.iter = self.visit(node.iter)
        self._without_walrus -= 1
        node.target = self.visit(node.target)
        node.ifs = [self.visit(condition) for condition in node.ifs]
        if not node.is_async:
            hook = "iterate" if isinstance(node.target, ast.Name) else "iterate_deep"
            node.iter = self._hook(hook, node.iter, node.iter)
        return node


def _is_private(name: str) -> bool:
    """Whether Python mangles an attribute name, which is then left to Python in the right class."""
    return name.startswith("__") and not name.endswith("__")


def subscript_index(node: ast.expr) -> ast.expr:
    """A subscript's index as an expression that is valid anywhere: slices become calls."""
    if isinstance(node, ast.Slice):
        parts = [
            p if p is not None else ast.Constant(None) for p in (node.lower, node.upper, node.step)
        ]
        call = ast.Call(ast.Name(PREFIX + "slice", ast.Load()), parts, [])
        return ast.copy_location(call, node)
    if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
        return ast.copy_location(
            ast.Tuple([subscript_index(e) for e in node.elts], ast.Load()), node
        )
    return node
