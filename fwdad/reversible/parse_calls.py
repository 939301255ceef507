"""Calls in a reversible function: ancillas, stacks, instructions, and functions with inverses."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from fwdad.reversible import words
from fwdad.reversible.containers import CONTAINERS
from fwdad.reversible.instructions import instruction_of
from fwdad.reversible.invert import inverted_block
from fwdad.reversible.names import Names
from fwdad.reversible.places import text
from fwdad.reversible.program import Allocate, Block, Call, Free, Instruct, Statement, Variable
from fwdad.reversible.stack import placed_at, pushed
from fwdad.reversible.syntax import beginning

AROUND: dict[Any, Any] = {}
"""For a reversible function what its calls check, and whether it is an inverse of that order."""


class Calls(Names):
    """Reads expression statements, and what begins and ends ancillas."""

    def _allocate(self, node: ast.Assign, target: ast.expr, value: ast.Call) -> Statement | Block:
        (began,) = self.given(words.ancilla, value, "fwdad.ancilla takes one value")
        if not isinstance(target, ast.Name):
            message = f"an ancilla is a name of its own; '{text(target)}' is not"
            raise self.refuse(message, target)
        name = target.id
        if name in self.scope() or name in self.parameters():
            message = f"'{name}' has a value already"
            raise self.refuse(message, target)
        made = self._container(began)
        if made is not None:
            return self._begin_container(node, name, made, began)
        variable = self.live[-1][name] = Variable(name)
        return Allocate(node, variable, began)

    def _container(self, value: ast.expr) -> type | None:
        """The class, if an expression makes an ancilla of several variables."""
        meant = self.meaning(value.func) if isinstance(value, ast.Call) else None
        return meant if isinstance(meant, type) and meant in CONTAINERS else None

    def _with_room(self, value: ast.expr, cls: type) -> ast.expr:
        """The expression of a container, with the capacity that it has now if it gives none."""
        if not isinstance(value, ast.Call):
            return value
        bound = inspect.signature(cls).bind(
            *value.args, **{k.arg or "": k.value for k in value.keywords}
        )
        given = bound.arguments.get("capacity")
        if given is not None and not (isinstance(given, ast.Constant) and given.value is None):
            return value
        self.grows = True
        bound.arguments["capacity"] = ast.Constant(self.room)
        keywords = [ast.keyword(name, e) for name, e in bound.arguments.items()]
        return placed_at(ast.Call(value.func, [], keywords), value)

    def _begin_container(self, node: ast.Assign, name: str, cls: type, value: ast.expr) -> Block:
        """A stack or a dictionary is several variables: its memory and its count."""
        value = self._with_room(value, cls)
        parts = {f: self.fresh(f"{name}_{f}") for f in CONTAINERS[cls]}
        self.own[name] = cls, parts
        self.locals |= set(parts.values())
        found: Block = []
        for f, part in parts.items():
            variable = self.live[-1][part] = Variable(part)
            found.append(Allocate(node, variable, beginning(value, f)))
        return found

    def _free(self, node: ast.Expr, call: ast.Call) -> Statement | Block:
        message = "fwdad.free takes an ancilla and the value that it must have: free(t, 0.0)"
        ends, value = self.given(words.free, call, message)
        if not isinstance(ends, ast.Name):
            raise self.refuse(message, call)
        name = ends.id
        if name in self.own and self._container(value) is self.own[name][0]:
            cls, parts = self.own[name]
            value = self._with_room(value, cls)
            if all(part in self.live[-1] for part in parts.values()):
                del self.own[name]
                self.ended.add(name)
                return [
                    Free(node, self.live[-1].pop(part), beginning(value, f))
                    for f, part in reversed(parts.items())
                ]
        variable = self.live[-1].pop(name, None)
        if variable is None:
            if any(name in names for names in self.live):
                message = f"ancilla '{name}' began outside of this block: free it there"
            else:
                message = f"'{name}' is no ancilla of this block, or it is freed already"
            raise self.refuse(message, call)
        return Free(node, variable, value)

    def _move(self, node: ast.Expr, call: ast.Call, *, push: bool) -> Block:
        """``push(s, v)`` and ``pop(s, v)``, which undo one another."""
        word = "push" if push else "pop"
        message = f"fwdad.{word} takes a stack and a place: {word}(s, v)"
        stack, place = self.given(words.push, call, message)
        if not isinstance(stack, (ast.Name, ast.Attribute)):
            raise self.refuse(message, node)
        self.place(place)
        self.place(stack)
        fields = self.fields(stack)
        block = pushed(node, text(stack), fields("values"), fields("count"), place)
        return block if push else inverted_block(block)

    def _expr(self, node: ast.Expr) -> Statement | Block:
        call = node.value
        if not isinstance(call, ast.Call):
            message = "an expression by itself does nothing here"
            raise self.refuse(message, node)
        function, inverse = call.func, False
        if isinstance(function, ast.UnaryOp) and isinstance(function.op, ast.Invert):
            function, inverse = function.operand, True
        meant = self.meaning(function)
        if meant is words.free:
            return self._free(node, call)
        if meant in (words.push, words.pop):
            return self._move(node, call, push=(meant is words.push) != inverse)
        instruction = instruction_of(meant)
        if instruction is not None:
            message = f"{text(function)} takes {instruction.arity} arguments"
            args = self.given(meant, call, message)
            if len(args) != instruction.arity:
                raise self.refuse(message, call)
            for a in args[: instruction.updated]:
                self.place(a)
            return Instruct(node, text(function), instruction, args, inverse)
        around = AROUND.get(meant) if callable(meant) else None
        if around is None:
            return self._call(node, function, call, inverse)
        args = self.given(meant, call, f"{text(function)} takes other arguments")
        plain = ast.copy_location(ast.Call(function, args, []), call)
        made = self._call(node, function, plain, inverse)
        return self._checked(node, made, args, around, inverse)

    def _checked(
        self, node: ast.Expr, made: Block, args: list[ast.expr], around: Any, inverse: bool
    ) -> Block:
        """A call of a function of the library, with what must hold before and after it."""
        rule, backwards = around
        for a in (args[0], args[-1]):
            self.place(a)
        before, after = rule(node, args[0], self.fields(args[0]), args[1:])
        if backwards != inverse:
            before, after = after[::-1], before[::-1]
        return [*before, *made, *after]

    def _call(self, node: ast.Expr, function: ast.expr, call: ast.Call, inverse: bool) -> Block:
        """A call; an argument that is no place is an ancilla around it."""
        before: Block = []
        after: Block = []
        places: list[ast.expr] = []
        if any(isinstance(a, ast.Starred) for a in call.args) or not all(
            k.arg for k in call.keywords
        ):
            raise self.refuse("no call here has * or **: its arguments are written out", call)
        args = [*call.args, *(k.value for k in call.keywords)]
        own: dict[str, Any] = {
            a.id: self.own[a.id] for a in args if isinstance(a, ast.Name) and a.id in self.own
        }
        for a in args:
            if isinstance(a, ast.Name) and a.id in self.ended and a.id not in self.own:
                message = f"'{a.id}' has no value here: it has been freed"
                raise self.refuse(message, a)
            if self._is_place(a) or self.is_function(a) or self._may_be_function(a):
                places.append(a)
                continue
            variable = Variable(self.fresh("value"))
            name = ast.copy_location(ast.Name(variable.name, ast.Load()), a)
            before.append(Allocate(a, variable, a))
            after.append(Free(a, variable, a))
            places.append(name)
        keywords = tuple(k.arg for k in call.keywords if k.arg)
        method = isinstance(function, ast.Attribute) and self._is_place(function.value)
        owner = function.value if method else None  # type: ignore[attr-defined]
        made = Call(node, function, places, inverse, keywords, owner, own=own)
        return [*before, made, *after]

    def _may_be_function(self, node: ast.expr) -> bool:
        """Whether an argument is ``~g`` of a parameter, which may be a function."""
        inverted = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
        return inverted and self._is_place(node.operand)  # type: ignore[attr-defined]
