"""From a function's source to a reversible program."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

from fwdad.eager.lifting.source import find_source
from fwdad.eager.lifting.why_missing import why_missing
from fwdad.errors import IrreversibleError, Location
from fwdad.reversible.language import keywords, nodes
from fwdad.reversible.language.call_parser import CallParser, Contains
from fwdad.reversible.language.places import load, text
from fwdad.reversible.language.program import (
    Block,
    Compute,
    Define,
    Flip,
    For,
    If,
    Program,
    Statement,
    Swap,
    Unchecked,
    Update,
    Variable,
    While,
)
from fwdad.reversible.language.purity import check_repeatable
from fwdad.reversible.language.scope import Scope
from fwdad.reversible.language.syntax import ContainerFields, Replace, is_docstring, stored

_UPDATES = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitXor: "^"}
_FLIPS: dict[type, str] = {ast.USub: "-", ast.Invert: "~", ast.Not: "not "}


def read(f: FunctionType) -> ast.FunctionDef:
    """The definition of a function under ``@reversible``; raises if its source is not found."""
    source = find_source(f)
    filename = f.__code__.co_filename
    if source is None or not isinstance(source.node, ast.FunctionDef):
        why = f": {why_missing(f)}" if source is None else ""
        message = (
            f"@reversible reads the source of a function that 'def' defines; that of {f.__name__} "
            f"is not found{why}"
        )
        raise IrreversibleError(message, Location(filename, f.__code__.co_firstlineno, 1))
    return source.node


def parse(f: FunctionType, node: ast.FunctionDef, room: int) -> Program:
    """Read a function under ``@reversible``, with the meaning that names from outside have now.

    ``room`` is the capacity of stacks and dictionaries without one of their own.
    """
    return _Parser(f, node, room).program()


class _Parser:
    """Reads statements: blocks, assignments, branches and loops."""

    def __init__(self, f: FunctionType, node: ast.FunctionDef, room: int) -> None:
        self.node = node
        self.scope = Scope(f, node, f.__code__.co_filename, room)
        self.calls = CallParser(self.scope)

    def program(self) -> Program:
        """The whole function."""
        a, scope = self.node.args, self.scope
        if a.vararg or a.kwarg:
            message = "a reversible function cannot have * or ** parameters: name each of them"
            raise scope.refuse(message, self.node)
        params = scope.parameters
        if "inplace" in params:
            message = (
                "a parameter cannot be called 'inplace': every call has an option of that name"
            )
            raise scope.refuse(message, self.node)
        scope.locals |= set(params)
        scope.names |= set(params)
        for n in self.node.body:
            check_repeatable(n, scope.meaning, scope.refuse)
        body = [Contains(scope).visit(nodes.copy_of(n)) for n in self.node.body]
        if body and isinstance(body[-1], ast.Return):
            self._check_return(body[-1], params)
            body.pop()
        program = Program(self.node.name, params, [], scope.filename, scope.names)
        program.body = self.block(body)
        program.grows = scope.grows
        return program

    def _check_return(self, node: ast.Return, params: list[str]) -> None:
        value = node.value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return
        returned = value.elts if isinstance(value, ast.Tuple) else [value]
        if [text(g) for g in returned] != params:
            message = (
                "a reversible function returns all its parameters in their order "
                f"({', '.join(params)}), or nothing: it ends with that 'return', or without one"
            )
            raise self.scope.refuse(message, node)

    # -- blocks

    def block(self, source: list[ast.stmt]) -> Block:
        """The statements of a block; a name for a value has the statements after it as its body."""
        block: Block = []
        source = list(source)
        for k in range(len(source)):
            node, known = source[k], set(self.scope.containers)
            if isinstance(node, ast.Pass) or is_docstring(node):
                continue
            statement = self.statement(node)
            if isinstance(statement, Define):
                self.scope.defined.append(statement.variable.name)
                statement.body = self.block(source[k + 1 :])
                self.scope.defined.pop()
                return [*block, statement]
            block.extend(statement if isinstance(statement, list) else [statement])
            source[k + 1 :] = self._with_fields(source[k + 1 :], known)
        return block

    def _with_fields(self, source: list[ast.stmt], known: set[str]) -> list[ast.stmt]:
        """Statements with variables for the fields of ancillas that have begun since."""
        new: dict[str, Any] = {
            name: self.scope.containers[name][1] for name in self.scope.containers.keys() - known
        }
        return [ContainerFields(new).visit(nodes.copy_of(n)) for n in source] if new else source

    def inner(self, source: list[ast.stmt], node: ast.AST) -> Block:
        """A block in which its ancillas end."""
        self.scope.live.append({})
        block = self.block(source)
        left = self.scope.live.pop()
        if left:
            message = (
                f"ancilla '{next(iter(left))}' is not freed at the end of this block: add "
                "fwdad.reversible.free"
            )
            raise self.scope.refuse(message, node)
        return block

    def statement(self, node: ast.stmt) -> Statement | Block:
        """The statement, or several, that a node of the source means."""
        read = self._READERS.get(type(node))
        if read is None:
            message = (
                f"'{type(node).__name__.lower()}' has no inverse: it cannot be used in a "
                "reversible function"
            )
            raise self.scope.refuse(message, node)
        return read(self, node)

    # -- statements

    def _return(self, node: ast.Return) -> Statement:
        message = "'return' is allowed only at the end of a reversible function"
        raise self.scope.refuse(message, node)

    def _augmented_assign(self, node: ast.AugAssign) -> Statement:
        op = _UPDATES.get(type(node.op))
        if op is None:
            message = "this operator has no inverse; those that have one are += -= *= /= ^="
            raise self.scope.refuse(message, node)
        return Update(node, self.scope.place(node.target), op, node.value)

    def _annotated_assign(self, node: ast.AnnAssign) -> Statement | Block:
        if node.value is None:
            return []
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self._assign(plain)

    def _assign(self, node: ast.Assign) -> Statement | Block:
        if len(node.targets) > 1:
            message = "a chained assignment has no inverse here: assign to one target at a time"
            raise self.scope.refuse(message, node)
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple):
            return self._swap(node, target, value)
        if isinstance(value, ast.Call) and self.scope.meaning(value.func) is keywords.ancilla:
            return self.calls.allocate(node, target, value)
        op = _FLIPS.get(type(value.op)) if isinstance(value, ast.UnaryOp) else None
        if isinstance(value, ast.UnaryOp) and op and text(value.operand) == text(target):
            return Flip(node, self.scope.place(target), op)
        if isinstance(target, ast.Name):
            if self.scope.has_value(target.id):
                message = (
                    f"assigning to '{target.id}' loses its value: write '{target.id} += ...', or "
                    "begin another variable with fwdad.reversible.ancilla"
                )
                raise self.scope.refuse(message, node)
            return Define(node, Variable(target.id), value, [])
        message = f"assigning to '{text(target)}' loses its value: write '{text(target)} += ...'"
        raise self.scope.refuse(message, node)

    def _swap(self, node: ast.Assign, target: ast.Tuple, value: ast.expr) -> Statement:
        left = target.elts
        right = value.elts if isinstance(value, ast.Tuple) else []
        if len(left) == 2 and [text(e) for e in right] == [text(e) for e in reversed(left)]:
            return Swap(node, self.scope.place(left[0]), self.scope.place(left[1]))
        message = (
            "an assignment to several places has an inverse only if it is a swap, 'a, b = b, a'"
        )
        raise self.scope.refuse(message, node)

    def _if(self, node: ast.If) -> Statement:
        pre, post = self.scope.conditions(node.test)
        body = self.inner(node.body, node)
        return If(node, pre, post, body, self.inner(node.orelse, node))

    def _while(self, node: ast.While) -> Statement:
        if node.orelse:
            message = "a loop in a reversible function cannot have an 'else'"
            raise self.scope.refuse(message, node)
        pre, post = self.scope.conditions(node.test)
        return While(node, pre, post, self.inner(node.body, node))

    def _for(self, node: ast.For) -> Statement:
        if node.orelse:
            message = "a loop in a reversible function cannot have an 'else'"
            raise self.scope.refuse(message, node)
        if not isinstance(node.target, ast.Name):
            message = "a loop in a reversible function has one name as its variable"
            raise self.scope.refuse(message, node.target)
        name = node.target.id
        if self.scope.has_value(name):
            message = (
                f"'{name}' already has a value, which the loop would lose: choose another name"
            )
            raise self.scope.refuse(message, node.target)
        over, backwards = node.iter, False
        if isinstance(over, ast.Call) and self.scope.meaning(over.func) is reversed and over.args:
            over, backwards = over.args[0], True
        if (
            isinstance(over, ast.Call)
            and self.scope.meaning(over.func) is range
            and not over.keywords
        ):
            return self._for_range(node, name, over, backwards)
        if not self.scope.is_place(over):
            message = "a reversible function can loop only over a range or an array"
            raise self.scope.refuse(message, over)
        # The element is the array's own, by its index.
        index = self.scope.fresh(f"{name}_index")
        element = ast.Subscript(nodes.copy_of(over), ast.Name(index, ast.Load()), ast.Load())
        body = [Replace(name, element).visit(nodes.copy_of(s)) for s in node.body]
        for s in body:
            ast.fix_missing_locations(s)
        length = nodes.call("len", load(over))
        zero = ast.Constant(0)
        loop = For(node, Variable(index), zero, length, 1, [], backwards)
        loop.body = self._loop_body(loop, body, node)
        if name in {n.id for s in node.body for n in stored(s)}:
            message = f"the loop variable '{name}' is changed in the body of its loop"
            raise self.scope.refuse(message, node)
        return loop

    def _for_range(self, node: ast.For, name: str, over: ast.Call, backwards: bool) -> Statement:
        zero: ast.expr = ast.Constant(0)
        one: ast.expr = ast.Constant(1)
        if not 1 <= len(over.args) <= 3:
            message = "range takes one to three arguments"
            raise self.scope.refuse(message, over)
        start, stop, step = (
            (zero, over.args[0], one) if len(over.args) == 1 else (*over.args, one)[:3]
        )
        try:
            by = ast.literal_eval(step)
        except ValueError:
            by = 0
        if type(by) is not int or by == 0:
            message = "the step of a range must be an int other than 0, written as a literal"
            raise self.scope.refuse(message, step)
        loop = For(node, Variable(name), start, stop, by, [], backwards)
        loop.body = self._loop_body(loop, node.body, node)
        return loop

    def _loop_body(self, loop: For, body: list[ast.stmt], node: ast.For) -> Block:
        self.scope.live.append({loop.variable.name: loop.variable})
        block = self.inner(body, node)
        self.scope.live.pop()
        return block

    def _with(self, node: ast.With) -> Statement | Block:
        if len(node.items) > 1:  # one in the other
            first, *others = node.items
            inner = ast.copy_location(ast.With(others, node.body), node)
            node = ast.copy_location(ast.With([first], [inner]), node)
        context = node.items[0].context_expr
        meant = self.scope.meaning(context.func) if isinstance(context, ast.Call) else None
        if node.items[0].optional_vars is not None:
            meant = None  # none of them gives anything a name
        if meant is keywords.unchecked:
            return Unchecked(node, self.block(node.body))
        if meant is keywords.compute:
            return self._compute(node)
        if meant is keywords.copy_out:
            message = "copy_out() must be the last statement of a block under compute()"
            raise self.scope.refuse(message, node)
        message = (
            "in a reversible function 'with' opens compute(), copy_out() or unchecked(), "
            "without 'as'"
        )
        raise self.scope.refuse(message, node)

    def _opens(self, node: ast.With, keyword: Any) -> bool:
        """Whether a block begins with a keyword of the language."""
        e = node.items[0].context_expr
        return isinstance(e, ast.Call) and self.scope.meaning(e.func) is keyword

    def _expression(self, node: ast.Expr) -> Statement | Block:
        return self.calls.call_statement(node)

    def _compute(self, node: ast.With) -> Statement:
        last = node.body[-1]
        inside: list[ast.stmt] = []
        body = list(node.body)
        if isinstance(last, ast.With) and self._opens(last, keywords.copy_out):
            inside = last.body
            body.pop()
        self.scope.live.append({})
        known = set(self.scope.containers)
        statement = Compute(node, self.block(body), [])
        inside = self._with_fields(inside, known)
        statement.inside = self.inner(inside, last)
        self.scope.live.pop()  # what is still live is undone with the block
        return statement

    _READERS: ClassVar[dict[type[ast.stmt], Callable[[_Parser, Any], Statement | Block]]] = {
        ast.AnnAssign: _annotated_assign,
        ast.Assign: _assign,
        ast.AugAssign: _augmented_assign,
        ast.Expr: _expression,
        ast.For: _for,
        ast.If: _if,
        ast.Return: _return,
        ast.While: _while,
        ast.With: _with,
    }
