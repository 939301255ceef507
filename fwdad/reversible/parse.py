"""From a function's source to a reversible program."""

from __future__ import annotations

import ast
import copy
import inspect
from types import FunctionType
from typing import Any

from fwdad.builder.source import find_source
from fwdad.errors import IrreversibleError, Location
from fwdad.reversible import words
from fwdad.reversible.containers import CONTAINERS
from fwdad.reversible.instructions import instruction_of
from fwdad.reversible.invert import inverted_block
from fwdad.reversible.places import text
from fwdad.reversible.program import (
    Allocate,
    Block,
    Call,
    Compute,
    Define,
    Flip,
    For,
    Free,
    If,
    Instruct,
    Program,
    Statement,
    Swap,
    Unchecked,
    Update,
    Variable,
    While,
)
from fwdad.reversible.stack import field_of, placed_at, pushed
from fwdad.reversible.syntax import (
    Contains,
    OwnFields,
    Replace,
    beginning,
    is_docstring,
    location,
    outside,
    stored,
)

_UPDATES = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitXor: "^"}
_FLIPS: dict[type, str] = {ast.USub: "-", ast.Invert: "~", ast.Not: "not "}
_MISSING = object()

AROUND: dict[Any, Any] = {}
"""For a reversible function what its calls check, and whether it is an inverse of that order."""


def read(f: FunctionType) -> ast.FunctionDef:
    """The definition of a function under ``@reversible``.

    Raises
    ------
    IrreversibleError
        If its source is not found.
    """
    source = find_source(f)
    filename = f.__code__.co_filename
    if source is None or not isinstance(source.node, ast.FunctionDef):
        message = (
            f"@reversible reads the source of a function that 'def' defines; that of {f.__name__} "
            "is not found"
        )
        raise IrreversibleError(message, Location(filename, f.__code__.co_firstlineno, 1))
    return source.node


def parse(f: FunctionType, node: ast.FunctionDef, room: int) -> Program:
    """Read a function under ``@reversible``, with the meaning that names from outside have now.

    Parameters
    ----------
    f : function
        The function.
    node : ast.FunctionDef
        Its definition.
    room : int
        How many numbers stacks and dictionaries have room for that have no capacity.

    Returns
    -------
    Program

    Raises
    ------
    IrreversibleError
        If a statement is not one of the language; with its place.
    """
    return _Parser(f, node, f.__code__.co_filename, room).program()


class _Parser:
    def __init__(self, f: FunctionType, node: ast.FunctionDef, filename: str, room: int) -> None:
        self.room = room
        self.grows = False
        self.f = f
        self.node = node
        self.filename = filename
        self.names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        self.locals = {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.live: list[dict[str, Variable]] = [{}]
        self.defined: list[str] = []
        self.count = 0
        self.own: dict[str, tuple[type, dict[str, str]]] = {}  # ancillas of several variables
        self.ended: set[str] = set()  # those of them that have been freed

    def refuse(self, message: str, node: ast.AST) -> IrreversibleError:
        return IrreversibleError(message, location(self.filename, node))

    def program(self) -> Program:
        a = self.node.args
        if a.vararg or a.kwarg:
            message = "a reversible function takes named parameters only: no * and no **"
            raise self.refuse(message, self.node)
        params = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        if "inplace" in params:
            message = "a parameter cannot be called 'inplace': that is an option of every call"
            raise self.refuse(message, self.node)
        self.locals |= set(params)
        self.names |= set(params)
        body = [Contains(self).visit(copy.deepcopy(n)) for n in self.node.body]
        if body and isinstance(body[-1], ast.Return):
            self._check_return(body[-1], params)
            body.pop()
        program = Program(self.node.name, params, [], self.filename, self.names)
        program.body = self.block(body)
        program.grows = self.grows
        return program

    def _check_return(self, node: ast.Return, params: list[str]) -> None:
        value = node.value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return
        given = value.elts if isinstance(value, ast.Tuple) else [value]
        if [text(g) for g in given] != params:
            message = (
                "a reversible function ends with 'return' of all its parameters in their order "
                f"({', '.join(params)}), or without one"
            )
            raise self.refuse(message, node)

    # -- blocks

    def block(self, nodes: list[ast.stmt]) -> Block:
        """The statements of a block; a name for something has what follows it for a body."""
        found: Block = []
        nodes = list(nodes)
        for k in range(len(nodes)):
            node, known = nodes[k], set(self.own)
            if isinstance(node, ast.Pass) or is_docstring(node):
                continue
            made = self.statement(node)
            if isinstance(made, Define):
                self.defined.append(made.variable.name)
                made.body = self.block(nodes[k + 1 :])
                self.defined.pop()
                return [*found, made]
            found.extend(made if isinstance(made, list) else [made])
            nodes[k + 1 :] = self._with_own(nodes[k + 1 :], known)
        return found

    def _with_own(self, nodes: list[ast.stmt], known: set[str]) -> list[ast.stmt]:
        """Statements with variables for the fields of ancillas that have begun since."""
        new: dict[str, Any] = {name: self.own[name][1] for name in self.own.keys() - known}
        return [OwnFields(new).visit(copy.deepcopy(n)) for n in nodes] if new else nodes

    def inner(self, nodes: list[ast.stmt], node: ast.AST) -> Block:
        """A block whose ancillas end in it."""
        self.live.append({})
        made = self.block(nodes)
        left = self.live.pop()
        if left:
            message = f"ancilla '{next(iter(left))}' is not freed at the end of this block"
            raise self.refuse(message, node)
        return made

    def statement(self, node: ast.stmt) -> Statement | Block:
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is None:
            message = f"'{type(node).__name__.lower()}' has no inverse: it cannot be used here"
            raise self.refuse(message, node)
        return read(node)

    # -- statements

    def _return(self, node: ast.Return) -> Statement:
        message = "'return' stands at the end of a reversible function only"
        raise self.refuse(message, node)

    def _augassign(self, node: ast.AugAssign) -> Statement:
        op = _UPDATES.get(type(node.op))
        if op is None:
            message = "this update has no inverse; those that have one are += -= *= /= ^="
            raise self.refuse(message, node)
        return Update(node, self.place(node.target), op, node.value)

    def _annassign(self, node: ast.AnnAssign) -> Statement | Block:
        if node.value is None:
            return []
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self._assign(plain)

    def _assign(self, node: ast.Assign) -> Statement | Block:
        if len(node.targets) > 1:
            message = "one assignment at a time has an inverse here"
            raise self.refuse(message, node)
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple):
            return self._swap(node, target, value)
        if isinstance(value, ast.Call) and self.meaning(value.func) is words.ancilla:
            return self._allocate(node, target, value)
        op = _FLIPS.get(type(value.op)) if isinstance(value, ast.UnaryOp) else None
        if isinstance(value, ast.UnaryOp) and op and text(value.operand) == text(target):
            return Flip(node, self.place(target), op)
        if isinstance(target, ast.Name):
            if target.id in self.scope() or target.id in self.parameters():
                message = (
                    f"assigning to '{target.id}' loses its value: write '{target.id} += ...', or "
                    "begin another variable with fwdad.ancilla"
                )
                raise self.refuse(message, node)
            return Define(node, Variable(target.id), value, [])
        message = f"assigning to '{text(target)}' loses its value: write '{text(target)} += ...'"
        raise self.refuse(message, node)

    def _swap(self, node: ast.Assign, target: ast.Tuple, value: ast.expr) -> Statement:
        left = target.elts
        right = value.elts if isinstance(value, ast.Tuple) else []
        if len(left) == 2 and [text(e) for e in right] == [text(e) for e in reversed(left)]:
            return Swap(node, self.place(left[0]), self.place(left[1]))
        message = "of assignments to several places only 'a, b = b, a' has an inverse here"
        raise self.refuse(message, node)

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

    def given(self, function: Any, call: ast.Call, message: str) -> list[ast.expr]:
        """The arguments of a call in the order of the parameters."""
        stars = any(isinstance(a, ast.Starred) for a in call.args)
        named = {k.arg: k.value for k in call.keywords if k.arg is not None}
        if stars or len(named) != len(call.keywords):
            raise self.refuse("no call here has * or **: its arguments are written out", call)
        try:
            bound = inspect.signature(function).bind(*call.args, **named)
        except TypeError as error:
            raise self.refuse(f"{message} ({error})", call) from None
        return list(bound.arguments.values())

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

    def fields(self, owner: ast.expr) -> Any:
        """A function of a field's name: its expression."""
        own = self.own.get(owner.id) if isinstance(owner, ast.Name) else None
        if own is None:
            return lambda name: placed_at(field_of(owner, name), owner)
        return lambda name: placed_at(ast.Name(own[1][name], ast.Load()), owner)

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

    def _if(self, node: ast.If) -> Statement:
        pre, post = self.conditions(node.test)
        body = self.inner(node.body, node)
        return If(node, pre, post, body, self.inner(node.orelse, node))

    def _while(self, node: ast.While) -> Statement:
        if node.orelse:
            message = "a loop of a reversible function has no 'else'"
            raise self.refuse(message, node)
        pre, post = self.conditions(node.test)
        return While(node, pre, post, self.inner(node.body, node))

    def _for(self, node: ast.For) -> Statement:
        if node.orelse:
            message = "a loop of a reversible function has no 'else'"
            raise self.refuse(message, node)
        if not isinstance(node.target, ast.Name):
            message = "a loop has one name for what it goes through"
            raise self.refuse(message, node.target)
        name = node.target.id
        if name in self.scope() or name in self.parameters():
            message = f"'{name}' has a value already: the loop would lose it"
            raise self.refuse(message, node.target)
        over, backwards = node.iter, False
        if isinstance(over, ast.Call) and self.meaning(over.func) is reversed and over.args:
            over, backwards = over.args[0], True
        if isinstance(over, ast.Call) and self.meaning(over.func) is range and not over.keywords:
            return self._for_range(node, name, over, backwards)
        if not self._is_place(over):
            message = "a loop goes through a range or an array"
            raise self.refuse(message, over)
        # The element is the array's own, by its index.
        index = self.fresh(f"{name}_index")
        element = ast.Subscript(copy.deepcopy(over), ast.Name(index, ast.Load()), ast.Load())
        body = [Replace(name, element).visit(copy.deepcopy(s)) for s in node.body]
        for s in body:
            ast.fix_missing_locations(s)
        length = ast.parse(f"len({text(over)})", mode="eval").body
        zero = ast.Constant(0)
        made = For(node, Variable(index), zero, length, 1, [], backwards)
        made.body = self._loop_body(made, body, node)
        if name in {n.id for s in node.body for n in stored(s)}:
            message = f"the loop's own '{name}' is changed in its body"
            raise self.refuse(message, node)
        return made

    def _for_range(self, node: ast.For, name: str, over: ast.Call, backwards: bool) -> Statement:
        zero: ast.expr = ast.Constant(0)
        one: ast.expr = ast.Constant(1)
        if not 1 <= len(over.args) <= 3:
            message = "range takes one to three arguments"
            raise self.refuse(message, over)
        start, stop, step = (
            (zero, over.args[0], one) if len(over.args) == 1 else (*over.args, one)[:3]
        )
        try:
            by = ast.literal_eval(step)
        except ValueError:
            by = 0
        if type(by) is not int or by == 0:
            message = "the step of a range is a number other than 0, written out"
            raise self.refuse(message, step)
        made = For(node, Variable(name), start, stop, by, [], backwards)
        made.body = self._loop_body(made, node.body, node)
        return made

    def _loop_body(self, made: For, body: list[ast.stmt], node: ast.For) -> Block:
        self.live.append({made.variable.name: made.variable})
        found = self.inner(body, node)
        self.live.pop()
        return found

    def _with(self, node: ast.With) -> Statement | Block:
        if len(node.items) > 1:  # one in the other
            first, *others = node.items
            inner = ast.copy_location(ast.With(others, node.body), node)
            node = ast.copy_location(ast.With([first], [inner]), node)
        if node.items[0].optional_vars is not None:
            message = "one of fwdad.compute(), copy_out(), unchecked() opens a block here"
            raise self.refuse(message, node)
        word = node.items[0].context_expr
        meant = self.meaning(word.func) if isinstance(word, ast.Call) else None
        if meant is words.unchecked:
            return Unchecked(node, self.block(node.body))
        if meant is words.compute:
            return self._compute(node)
        if meant is words.copy_out:
            message = "fwdad.copy_out() stands at the end of a block under fwdad.compute()"
            raise self.refuse(message, node)
        message = "one of fwdad.compute(), copy_out(), unchecked() opens a block here"
        raise self.refuse(message, node)

    def _compute(self, node: ast.With) -> Statement:
        last = node.body[-1]
        inside: list[ast.stmt] = []
        body = list(node.body)
        if isinstance(last, ast.With) and self._is_word(last, words.copy_out):
            inside = last.body
            body.pop()
        self.live.append({})
        known = set(self.own)
        made = Compute(node, self.block(body), [])
        inside = self._with_own(inside, known)
        made.inside = self.inner(inside, last)
        self.live.pop()  # what is still live is undone with the block
        return made

    # -- parts

    def _is_word(self, node: ast.With, word: Any) -> bool:
        e = node.items[0].context_expr
        return isinstance(e, ast.Call) and self.meaning(e.func) is word

    def conditions(self, test: ast.expr) -> tuple[ast.expr, ast.expr]:
        if isinstance(test, ast.Call) and self.meaning(test.func) is words.cond:
            message = "fwdad.cond takes the condition before and the condition after"
            pre, post = self.given(words.cond, test, message)
            return pre, post
        return test, test

    def place(self, node: ast.expr) -> ast.expr:
        if not self._is_place(node):
            message = f"'{text(node)}' is no place that can be updated"
            raise self.refuse(message, node)
        return node

    def _is_place(self, node: ast.expr) -> bool:
        inner = node
        while isinstance(inner, (ast.Subscript, ast.Attribute)):
            inner = inner.value
        return (
            isinstance(inner, ast.Name) and inner.id in self.locals and not self.is_function(node)
        )

    def is_function(self, node: ast.expr) -> bool:
        """Whether an argument is a function of the world outside."""
        return callable(self.meaning(node))

    def scope(self) -> set[str]:
        return {name for names in self.live for name in names} | set(self.defined)

    def parameters(self) -> set[str]:
        a = self.node.args
        return {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)}

    def fresh(self, name: str) -> str:
        while name in self.names:
            self.count += 1
            name = f"{name}_{self.count}"
        self.names.add(name)
        return name

    def meaning(self, node: ast.expr) -> Any:
        """What a name of the world outside refers to now, or a mark that there is nothing."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            f = self.meaning(node.operand)
            return ~f if callable(f) and hasattr(f, "__invert__") else _MISSING
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            return _MISSING if owner is _MISSING else getattr(owner, node.attr, _MISSING)
        if not isinstance(node, ast.Name) or node.id in self.locals:
            return _MISSING
        return outside(self.f, node.id, _MISSING)
