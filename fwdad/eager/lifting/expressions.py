"""Expressions of a function's syntax tree, with hooks in place of what could meet a dual."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.core.debuggers import name_of_stop
from fwdad.core.operators import OPERATORS
from fwdad.eager.lifting.lifter import Lifter
from fwdad.eager.lifting.nodes import constant, function_of, hook, name_of, subscript_index

# these read the caller's frame: called in place
_FRAME_BOUND = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "__import__"}


class Expressions:
    """Lifts expressions."""

    def __init__(self, lifter: Lifter) -> None:
        self.lifter = lifter
        self.scopes = lifter.scopes
        self._without_walrus = 0

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self.scopes.declared[-1]:
            return hook("found", node, node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in _FRAME_BOUND:
            name = node.func.id
            self.lifter.generic_visit(node)
            if name in ("eval", "exec"):
                check = hook("check_eval", node)
                both = ast.copy_location(ast.Tuple([check, node], ast.Load()), node)
                index = constant(1, node)
                return ast.copy_location(ast.Subscript(both, index, ast.Load()), node)
            if name in ("locals", "vars", "dir") and not (node.args or node.keywords):
                if not self.scopes.in_class:  # a class's own are the namespace
                    return hook("own_names", node, node)
            return node
        args = [self.lifter.visit(a) for a in node.args]
        keywords = [ast.copy_location(self._keyword(k), k) for k in node.keywords]
        if name_of_stop(node.func):
            # the debugger stops where it is called from: it is called in place
            stop = hook("stop", node.func, self.lifter.visit(node.func))
            return ast.copy_location(ast.Call(stop, args, keywords), node)
        if isinstance(node.func, ast.Attribute):
            one = len(args) == 1 and not keywords and not isinstance(args[0], ast.Starred)
            call = hook(
                "method_of_one" if one else "method",
                node,
                self.lifter.visit(node.func.value),
                constant(self.scopes.mangled(node.func.attr), node.func),
            )
        else:
            call = hook("call", node, self.lifter.visit(node.func))
        call.args.extend(args)
        call.keywords = keywords
        return call

    def _keyword(self, node: ast.keyword) -> ast.keyword:
        value = self.lifter.visit(node.value)
        return ast.keyword(node.arg, value if node.arg else hook("mapping", value, value))

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        values = [
            self.lifter.visit(v) if k is not None else hook("mapping", v, self.lifter.visit(v))
            for k, v in zip(node.keys, node.values, strict=True)
        ]
        keys = [None if k is None else self.lifter.visit(k) for k in node.keys]
        return ast.copy_location(ast.Dict(keys, values), node)

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.lifter.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = hook("iterate", node.value, node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.lifter.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            name = constant(self.scopes.mangled(node.attr), node)
            return hook("attr", node, node.value, name)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.lifter.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return hook("getitem", node, node.value, subscript_index(node.slice))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.lifter.generic_visit(node)
        return hook(OPERATORS[type(node.op)].name, node, node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.lifter.generic_visit(node)
        op = OPERATORS.get(type(node.op))
        if op is not None and not isinstance(node.operand, ast.Constant):
            return hook(op.name, node, node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1:
            self.lifter.generic_visit(node)
            return self._compare(node.ops[0], node.left, node.comparators[0], node)
        return self._chain(node, self.lifter.visit(node.left), node.ops, node.comparators)

    def _compare(self, op: ast.cmpop, left: ast.expr, right: ast.expr, at: ast.AST) -> ast.expr:
        known = OPERATORS.get(type(op))
        if known is not None:
            return hook(known.name, at, left, right)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = hook("contains", at, left, right)
            if isinstance(op, ast.In):
                return found
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), at)
        return ast.copy_location(ast.Compare(left, [op], [right]), at)

    def _chain(
        self, at: ast.Compare, left: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr]
    ) -> ast.expr:
        """``a < b < c`` as ``a < b and b < c``, with b evaluated once and c only if needed."""
        if len(ops) == 1:
            return self._compare(ops[0], left, self.lifter.visit(rest[0]), at)
        middle = rest[0]
        if self._without_walrus:
            held = self.scopes.temporary()
            then = self._chain(at, name_of(held, ast.Load(), at), ops[1:], rest[1:])
            later = function_of([held], then, at)
            a, b = (name_of(name, ast.Load(), at) for name in "ab")
            compare = function_of(["a", "b"], self._compare(ops[0], a, b, at), at)
            return hook("compare_then", at, compare, left, self.lifter.visit(middle), later)
        held = self.scopes.kept_temporary()
        keep = ast.NamedExpr(name_of(held, ast.Store(), at), self.lifter.visit(middle))
        one = self._compare(ops[0], left, ast.copy_location(keep, middle), at)
        two = self._chain(at, name_of(held, ast.Load(), at), ops[1:], rest[1:])
        return ast.copy_location(ast.BoolOp(ast.And(), [one, two]), at)

    def visit_any_comprehension(self, node: Any) -> Any:
        in_class = self.scopes.in_class
        self._without_walrus += in_class  # the language has no `:=` in these places
        self.lifter.generic_visit(node)
        self._without_walrus -= in_class
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        self.lifter.generic_visit(node)
        node.value = hook("iterate", node.value, node.value)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self._without_walrus += 1
        node.iter = self.lifter.visit(node.iter)
        self._without_walrus -= 1
        node.target = self.lifter.visit(node.target)
        node.ifs = [self.lifter.visit(condition) for condition in node.ifs]
        if not node.is_async:
            name = "iterate" if isinstance(node.target, ast.Name) else "iterate_deep"
            node.iter = hook(name, node.iter, node.iter)
        return node
