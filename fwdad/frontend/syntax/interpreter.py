"""The interpreter, which evaluates a function's ``ast`` on symbols; statements are here."""

from __future__ import annotations

import ast
import contextlib
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, type_in_words
from fwdad.frontend.calls import containers
from fwdad.frontend.calls.kinds import CONTAINERS
from fwdad.frontend.syntax import context_managers, generators, growing, growing_use, iteration
from fwdad.frontend.syntax.control import branch
from fwdad.frontend.syntax.exceptions import Exceptions
from fwdad.frontend.syntax.frame import FLOW, Frame
from fwdad.frontend.syntax.iterators import Iterator
from fwdad.frontend.syntax.matching import Matcher
from fwdad.frontend.syntax.operators import OPERATORS
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import Maybe
from fwdad.ir.symbol import UNBOUND, Symbol


class Interpreter(Exceptions):
    """The tracer of one program."""

    def container_method(self, owner: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Call a method of a list, dict, set or deque."""
        return containers.call_method(self, owner, name, args, kwargs)

    def generator(self, frame: Frame, node: Any, key: Any) -> Any:
        """The result of a call of a generator function."""
        run = generators.executed(self, frame, node)
        return Iterator(self, generators.resumed(self, frame, key, run))

    def attribute_of_iterator(self, o: Any, name: str) -> Any:
        """A generator's ``send`` and the like."""
        return generators.attribute(self, o, name)

    def missing(self, o: Any, key: Any) -> Any:
        """The item that a ``defaultdict`` makes for a missing key."""
        return containers.missing(self, o, key)

    def run_block(self, statements: Sequence[ast.stmt]) -> None:
        """Execute statements; after a possible jump the rest is under a branch."""
        for k, statement in enumerate(statements):
            self.run(statement)
            stopped = self.stopped()
            if stopped is True:
                return
            if stopped is not False:
                rest = statements[k + 1 :]
                if rest:
                    go_on = functools.partial(self.run_block, rest)
                    branch(self.recorder, stopped, self.has_returned, go_on)
                return

    def has_returned(self) -> None:
        """Bind the returned value as present, on a path where only ``return`` can have jumped."""
        held = self.frame.locals
        if held["$break"] is False and held["$continue"] is False:
            value = held.get("$value")
            self.recorder.journal.bind(held, "$return", True)
            if isinstance(value, Maybe):
                self.recorder.journal.bind(held, "$value", value.value)

    def stopped(self) -> Any:
        """Whether a jump has been made in this frame: a bool, or a symbol of one."""
        return self._any_of([self.frame.locals.get(name, False) for name in FLOW])

    def _any_of(self, flags: list[Any]) -> Any:
        """Whether any of several flags is set: a bool, or a symbol of one."""
        if any(flag is True for flag in flags):
            return True
        symbolic = [flag for flag in flags if flag is not False]
        if not symbolic:
            return False
        return functools.reduce(
            lambda a, b: self.recorder.apply(operator.or_, (a, b), {}), symbolic
        )

    def run(self, node: ast.stmt) -> None:
        """Execute one statement."""
        handle = getattr(self, f"run_{type(node).__name__}", None)
        self.at(node)
        self.frame.statement = node
        if handle is None:
            outside = ": define it outside" if isinstance(node, ast.ClassDef) else ""
            message = f"a `{_keyword(node)}` statement cannot be traced{outside}"
            raise UntraceableError(message, self.location())
        handle(node)

    def run_Expr(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def run_Pass(self, node: ast.Pass) -> None:
        """Do nothing."""

    def run_Assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)

    def run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))

    def run_AugAssign(self, node: ast.AugAssign) -> None:
        function = OPERATORS[type(node.op)]
        target = node.target
        if isinstance(target, ast.Name):
            held = self.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            value = self.evaluate(node.value)
            self.at(node)
            if _is_memory(held):
                self.update(held, Ellipsis, function, value)
            else:
                self.assign(target, self.augmented(function, held, value))
        elif isinstance(target, ast.Subscript):
            o, index = self.evaluate(target.value), self.evaluate_index(target.slice)
            if _is_memory(o):
                value = self.evaluate(node.value)
                self.at(node)
                self.update(o, index, function, value)
                return
            held = self.subscript(o, index)
            value = self.evaluate(node.value)
            self.at(node)
            if not _is_memory(held):
                self.set_subscript(o, index, self.augmented(function, held, value))
                return
            self.update(held, Ellipsis, function, value)
            if self.python_method(o, "__setitem__") is not None:
                self.set_subscript(o, index, held)  # as Python does: it may have been a copy
        else:
            assert isinstance(target, ast.Attribute)
            o, name = self.evaluate(target.value), self.mangled(target.attr)
            held = self.attribute(o, name)
            value = self.evaluate(node.value)
            self.at(node)
            if not _is_memory(held):
                self.set_attribute(o, name, self.augmented(function, held, value))
                return
            self.update(held, Ellipsis, function, value)
            self.set_updated(o, name, held)

    def augmented(self, function: Callable[..., Any], held: Any, value: Any) -> Any:
        """``held op= value`` for anything but an array."""
        name = function.__name__.strip("_")
        method = self.python_method(held, f"__i{name}__")
        if method is not None:
            made = self.call(method, (held, value), {})
            if made is not NotImplemented:
                return made
        if isinstance(held, growing.Items) and function is operator.add:
            growing_use.extend(self, held, value)
            return held
        if isinstance(held, (list, dict, set)):
            self.may_change(held)
            self.recorder.journal.touch(held)
            if isinstance(held, list):
                value = (
                    self.known(value) if function is operator.mul else iteration.items(self, value)
                )
            in_place = getattr(operator, "i" + name)
            return in_place(held, value)
        return self.binary(function, held, value)

    def update(self, a: Any, index: Any, function: Callable[..., Any], value: Any) -> None:
        """``a[index] op= value`` for an array."""
        whole = function is operator.floordiv and a.dtype.kind == "f"  # of which no update is known
        if function is operator.matmul or whole:  # NumPy computes the whole product first
            self.recorder.store(a, index, self.augmented(function, self.subscript(a, index), value))
            return
        try:
            self.recorder.update(self.recorder.as_symbol(a), index, function, value)
        except IndexError as error:
            raise AlwaysRaises(error) from error

    def run_Delete(self, node: ast.Delete) -> None:
        for target in _flat(node.targets):
            if isinstance(target, ast.Name):
                self.recorder.journal.bind(self.frame.locals, target.id, UNBOUND)
            elif isinstance(target, ast.Subscript):
                o, index = self.evaluate(target.value), self.evaluate_index(target.slice)
                self.delete_subscript(o, index)
            else:
                assert isinstance(target, ast.Attribute)
                o = self.evaluate(target.value)
                self.at(target)
                self.delete_attribute(o, self.mangled(target.attr))

    def delete_subscript(self, o: Any, index: Any) -> None:
        """``del o[index]``."""
        method = self.python_method(o, "__delitem__")
        if method is not None:
            self.call(method, (o, index), {})
            return
        if isinstance(o, growing.Items):
            o.refused("`del` of an item of")
        if not isinstance(o, CONTAINERS):
            message = f"`del` of an item of {type_in_words(o)} cannot be traced"
            raise UntraceableError(message, self.location())
        self.may_change(o)
        self.recorder.journal.touch(o)
        self.native(operator.delitem, o, self.known(index))

    def run_Return(self, node: ast.Return) -> None:
        value = self.evaluate(node.value) if node.value is not None else None
        if self.depth == 1:
            self.returned = self.location_of(node)
        self.recorder.journal.bind(self.frame.locals, "$value", value)
        self.recorder.journal.bind(self.frame.locals, "$return", True)

    def run_Break(self, node: ast.Break) -> None:
        self.recorder.journal.bind(self.frame.locals, "$break", True)

    def run_Continue(self, node: ast.Continue) -> None:
        self.recorder.journal.bind(self.frame.locals, "$continue", True)

    def run_If(self, node: ast.If) -> None:
        condition = self.truth(self.evaluate(node.test))
        self.at(node)
        branch(
            self.recorder,
            condition,
            lambda: self.run_block(node.body),
            lambda: self.run_block(node.orelse),
        )

    def run_Match(self, node: ast.Match) -> None:
        self._cases(self.evaluate(node.subject), node.cases)

    def _cases(self, x: Any, cases: list[ast.match_case]) -> None:
        if not cases:
            return
        case, *later = cases
        matcher = Matcher(self)
        fits = matcher.match(case.pattern, x)

        def run() -> None:
            for name, value in matcher.names.items():
                self.bind_name(name, value)
            if case.guard is None:
                self.run_block(case.body)
                return
            guard = self.truth(self.evaluate(case.guard))
            branch(
                self.recorder,
                guard,
                lambda: self.run_block(case.body),
                lambda: self._cases(x, later),
            )

        branch(self.recorder, fits, run, lambda: self._cases(x, later))

    def run_FunctionDef(self, node: ast.FunctionDef) -> None:
        made: Any = self.closure(node)
        for decorator in reversed(node.decorator_list):
            made = self.call(self.evaluate(decorator), (made,), {})
        self.recorder.journal.bind(self.frame.locals, node.name, made)

    def run_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            module = self.native(__import__, alias.name)
            if alias.asname:
                for part in alias.name.split(".")[1:]:
                    module = getattr(module, part)
            self.recorder.journal.bind(
                self.frame.locals, alias.asname or alias.name.split(".")[0], module
            )

    def run_ImportFrom(self, node: ast.ImportFrom) -> None:
        names = [a.name for a in node.names]
        where = (node.module or "", self.frame.globals, None, names, node.level)
        module = self.native(__import__, *where)
        for alias in node.names:
            name = alias.asname or alias.name
            if not hasattr(module, alias.name):
                message = f"cannot import name {alias.name!r} from {module.__name__!r}"
                raise AlwaysRaises(ImportError, (message,))
            self.recorder.journal.bind(self.frame.locals, name, getattr(module, alias.name))

    def run_Nonlocal(self, node: ast.Nonlocal) -> None:
        """Skip a declaration."""

    def run_Global(self, node: ast.Global) -> None:
        """Skip a declaration."""

    def run_With(self, node: ast.With) -> None:
        with contextlib.ExitStack() as stack:
            for item in node.items:
                stack.enter_context(context_managers.entered(self, item, node))
            self.run_block(node.body)

    # -- assignment

    def assign(self, target: ast.AST, value: Any) -> None:
        """Bind a target to a value."""
        if isinstance(target, ast.Name):
            self.bind_name(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value)
        elif isinstance(target, ast.Subscript):
            o, index = self.evaluate(target.value), self.evaluate_index(target.slice)
            self.at(target)
            self.set_subscript(o, index, value)
        elif isinstance(target, ast.Attribute):
            o = self.evaluate(target.value)
            self.at(target)
            self.set_attribute(o, self.mangled(target.attr), value)
        else:
            message = "this target of an assignment cannot be traced"
            raise UntraceableError(message, self.place_of(target))

    def bind_name(self, name: str, value: Any) -> None:
        """Bind a local name, or one of an enclosing traced function."""
        home = self.frame.home(name)
        if home is None:
            message = (
                f"`{name}` is a global name, or one of a function that is not traced: assigning to "
                "it cannot be traced. Pass it as an argument and return it"
            )
            raise UntraceableError(message, self.location())
        if type(value) is Symbol and value.value.name is None:
            value.value.name = name
        self.recorder.journal.bind(home.locals, name, value)

    def _unpack(self, target: ast.Tuple | ast.List, value: Any) -> None:
        names = target.elts
        starred = [k for k, t in enumerate(names) if isinstance(t, ast.Starred)]
        items = iteration.items(self, value)
        if starred:
            (k,) = starred
            after = len(names) - k - 1
            middle = self.recorder.journal.fresh(list(items[k : len(items) - after]))
            items = [*items[:k], middle, *items[len(items) - after :]]
        if len(items) != len(names):
            few = len(items) < len(names)
            what = "not enough values to unpack" if few else "too many values to unpack"
            raise AlwaysRaises(ValueError, (f"{what} (expected {len(names)})",))
        for t, item in zip(names, items, strict=True):
            self.assign(t.value if isinstance(t, ast.Starred) else t, item)


def _is_memory(x: Any) -> bool:
    return (type(x) is Symbol and x.is_array) or isinstance(x, np.ndarray)


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    """The targets of ``del a, (b, c)``, one by one."""
    found: list[ast.expr] = []
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            found.extend(_flat(target.elts))
        else:
            found.append(target)
    return found


def _keyword(node: ast.stmt) -> str:
    return {
        "AsyncFunctionDef": "async def",
        "ClassDef": "class",
        "AsyncFor": "async for",
        "TryStar": "except*",
    }.get(type(node).__name__, type(node).__name__.lower())
