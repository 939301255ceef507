"""Calls in a reversible function: ancillas, stacks, instructions, and functions with inverses."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from fwdad.reversible.containers.container import CONTAINERS
from fwdad.reversible.language import keywords
from fwdad.reversible.language.container_statements import contains_key, pushed
from fwdad.reversible.language.instructions import instruction_of
from fwdad.reversible.language.invert import inverted_block
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Call,
    Free,
    Instruct,
    Statement,
    Variable,
)
from fwdad.reversible.language.scope import Scope
from fwdad.reversible.language.syntax import beginning, field_of, placed_at

Contract = Callable[
    [ast.AST, ast.expr, Callable[[str], ast.expr], list[ast.expr]], tuple[Block, Block]
]
"""The conditions before and after a call: of its node, a container, its fields, other arguments."""

_CONTRACTS: dict[Any, tuple[Contract, bool]] = {}


def register_contract(function: Any, contract: Contract, *, backwards: bool = False) -> None:
    """Have calls of a reversible function of the library check what must hold around them.

    With ``backwards`` the function is the inverse of the one that the contract describes.
    """
    _CONTRACTS[function] = contract, backwards


class CallParser:
    """Reads statements that are calls, and what begins and ends ancillas."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def allocate(self, node: ast.Assign, target: ast.expr, value: ast.Call) -> Statement | Block:
        """``v = ancilla(value)``."""
        (began,) = self.scope.arguments(keywords.ancilla, value, "ancilla takes one value")
        if not isinstance(target, ast.Name):
            message = f"an ancilla must be a name of its own; '{text(target)}' is not"
            raise self.scope.refuse(message, target)
        name = target.id
        if self.scope.has_value(name):
            message = f"'{name}' already has a value: begin the ancilla under another name"
            raise self.scope.refuse(message, target)
        container = self._container(began)
        if container is not None:
            return self._begin_container(node, name, container, began)
        variable = self.scope.live[-1][name] = Variable(name)
        return Allocate(node, variable, began)

    def _container(self, value: ast.expr) -> type | None:
        """The class, if an expression makes an ancilla of several variables."""
        meant = self.scope.meaning(value.func) if isinstance(value, ast.Call) else None
        return meant if isinstance(meant, type) and meant in CONTAINERS else None

    def _with_room(self, value: ast.expr, cls: type) -> ast.expr:
        """The expression of a container, with the capacity that it has now if it gives none."""
        if not isinstance(value, ast.Call):
            return value
        bound = inspect.signature(cls).bind(
            *value.args, **{k.arg or "": k.value for k in value.keywords}
        )
        capacity = bound.arguments.get("capacity")
        if capacity is not None and not (
            isinstance(capacity, ast.Constant) and capacity.value is None
        ):
            return value
        self.scope.grows = True
        bound.arguments["capacity"] = ast.Constant(self.scope.room)
        arguments = [ast.keyword(name, e) for name, e in bound.arguments.items()]
        return placed_at(ast.Call(value.func, [], arguments), value)

    def _begin_container(self, node: ast.Assign, name: str, cls: type, value: ast.expr) -> Block:
        """A stack or a dictionary is several variables: its memory and its count."""
        value = self._with_room(value, cls)
        parts = {f: self.scope.fresh(f"{name}_{f}") for f in CONTAINERS[cls]}
        self.scope.containers[name] = cls, parts
        self.scope.locals |= set(parts.values())
        allocations: Block = []
        for f, part in parts.items():
            variable = self.scope.live[-1][part] = Variable(part)
            allocations.append(Allocate(node, variable, beginning(value, f)))
        return allocations

    def _free(self, node: ast.Expr, call: ast.Call) -> Statement | Block:
        message = "free takes an ancilla and the value that it must have: free(t, 0.0)"
        ends, value = self.scope.arguments(keywords.free, call, message)
        if not isinstance(ends, ast.Name):
            raise self.scope.refuse(message, call)
        name = ends.id
        if (
            name in self.scope.containers
            and self._container(value) is self.scope.containers[name][0]
        ):
            cls, parts = self.scope.containers[name]
            value = self._with_room(value, cls)
            if all(part in self.scope.live[-1] for part in parts.values()):
                del self.scope.containers[name]
                self.scope.ended.add(name)
                return [
                    Free(node, self.scope.live[-1].pop(part), beginning(value, f))
                    for f, part in reversed(parts.items())
                ]
        variable = self.scope.live[-1].pop(name, None)
        if variable is None:
            if any(name in names for names in self.scope.live):
                message = f"ancilla '{name}' began outside this block: free it there"
            else:
                message = f"'{name}' is not an ancilla of this block, or has already been freed"
            raise self.scope.refuse(message, call)
        return Free(node, variable, value)

    def _move(self, node: ast.Expr, call: ast.Call, *, push: bool) -> Block:
        """``push(s, v)`` and ``pop(s, v)``, which undo one another."""
        word = "push" if push else "pop"
        message = f"fwdad.{word} takes a stack and a place: {word}(s, v)"
        stack, place = self.scope.arguments(keywords.push, call, message)
        if not isinstance(stack, (ast.Name, ast.Attribute)):
            raise self.scope.refuse(message, node)
        self.scope.place(place)
        self.scope.place(stack)
        fields = self.scope.fields(stack)
        block = pushed(node, text(stack), fields("values"), fields("count"), place)
        return block if push else inverted_block(block)

    def call_statement(self, node: ast.Expr) -> Statement | Block:
        """A call that is a statement."""
        call = node.value
        if not isinstance(call, ast.Call):
            message = (
                "an expression alone has no effect here: write an update, or call a reversible "
                "function"
            )
            raise self.scope.refuse(message, node)
        function, inverse = call.func, False
        if isinstance(function, ast.UnaryOp) and isinstance(function.op, ast.Invert):
            function, inverse = function.operand, True
        meant = self.scope.meaning(function)
        if meant is keywords.free:
            return self._free(node, call)
        if meant in (keywords.push, keywords.pop):
            return self._move(node, call, push=(meant is keywords.push) != inverse)
        instruction = instruction_of(meant)
        if instruction is not None:
            message = f"{text(function)} takes {instruction.arity} arguments"
            args = self.scope.arguments(meant, call, message)
            if len(args) != instruction.arity:
                raise self.scope.refuse(message, call)
            for a in args[: instruction.updated]:
                self.scope.place(a)
            return Instruct(node, text(function), instruction, args, inverse)
        contract = _CONTRACTS.get(meant) if callable(meant) else None
        if contract is None:
            return self._call(node, function, call, inverse)
        args = self.scope.arguments(meant, call, f"{text(function)} cannot take these arguments")
        plain = ast.copy_location(ast.Call(function, args, []), call)
        block = self._call(node, function, plain, inverse)
        return self._checked(node, block, args, contract, inverse)

    def _checked(
        self, node: ast.Expr, block: Block, args: list[ast.expr], contract: Any, inverse: bool
    ) -> Block:
        """A call of a function of the library, with what must hold before and after it."""
        rule, backwards = contract
        for a in (args[0], args[-1]):
            self.scope.place(a)
        before, after = rule(node, args[0], self.scope.fields(args[0]), args[1:])
        if backwards != inverse:
            before, after = after[::-1], before[::-1]
        return [*before, *block, *after]

    def _call(self, node: ast.Expr, function: ast.expr, call: ast.Call, inverse: bool) -> Block:
        """A call; an argument that is no place is an ancilla around it."""
        before: Block = []
        after: Block = []
        places: list[ast.expr] = []
        if any(isinstance(a, ast.Starred) for a in call.args) or not all(
            k.arg for k in call.keywords
        ):
            raise self.scope.refuse(
                "a call here cannot have * or **: write out its arguments", call
            )
        args = [*call.args, *(k.value for k in call.keywords)]
        containers: dict[str, Any] = {
            a.id: self.scope.containers[a.id]
            for a in args
            if isinstance(a, ast.Name) and a.id in self.scope.containers
        }
        for a in args:
            if (
                isinstance(a, ast.Name)
                and a.id in self.scope.ended
                and a.id not in self.scope.containers
            ):
                message = f"'{a.id}' has no value here: it has been freed"
                raise self.scope.refuse(message, a)
            if self.scope.is_place(a) or self.scope.is_function(a) or self._may_be_function(a):
                places.append(a)
                continue
            variable = Variable(self.scope.fresh("value"))
            name = ast.copy_location(ast.Name(variable.name, ast.Load()), a)
            before.append(Allocate(a, variable, a))
            after.append(Free(a, variable, a))
            places.append(name)
        named = tuple(k.arg for k in call.keywords if k.arg)
        method = isinstance(function, ast.Attribute) and self.scope.is_place(function.value)
        owner = function.value if method else None  # type: ignore[attr-defined]
        statement = Call(node, function, places, inverse, named, owner, fields=containers)
        return [*before, statement, *after]

    def _may_be_function(self, node: ast.expr) -> bool:
        """Whether an argument is ``~g`` of a parameter, which may be a function."""
        inverted = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
        return inverted and self.scope.is_place(node.operand)  # type: ignore[attr-defined]


class Contains(ast.NodeTransformer):
    """The question whether a dictionary has a key, in its fields."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """What ``contains(d, key)`` means."""
        self.generic_visit(node)
        if self.scope.meaning(node.func) is not keywords.contains:
            return node
        message = "contains takes a dictionary and a key: contains(d, key)"
        d, key = self.scope.arguments(keywords.contains, node, message)
        return placed_at(contains_key(lambda name: field_of(d, name), key), node)
