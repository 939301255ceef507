"""``@reversible``: functions that run backwards."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from fwdad.errors import AliasedArgumentError, IrreversibleError, UnsupportedTypeError
from fwdad.reversible.adjoint import AdjointWriter
from fwdad.reversible.calls import is_value
from fwdad.reversible.check import check
from fwdad.reversible.expressions import infer_kinds
from fwdad.reversible.invert import inverted_program
from fwdad.reversible.kinds import Function, Kind, Other, kind_of
from fwdad.reversible.lines import make_function
from fwdad.reversible.numbers import ExactNumber, Logarithmic, value_of
from fwdad.reversible.parse import parse
from fwdad.reversible.places import text
from fwdad.reversible.program import (
    Block,
    Call,
    Program,
    local_names,
    root_of,
    walk,
    written_places,
)
from fwdad.reversible.records import flat_kinds, flat_values, flattened, rebuilt, variables
from fwdad.reversible.show import show_program
from fwdad.reversible.source import Writer
from fwdad.reversible.syntax import location, outside


@dataclass(eq=False)
class Written:
    """A program written out for some kinds, in one direction.

    Attributes
    ----------
    name : str
        The function's.
    code : str
        Its source.
    function : callable or None
        None while it is being written.
    calls : list of Written
        What it calls.
    """

    name: str
    code: str = ""
    function: Any = None
    calls: list[Written] = field(default_factory=list)
    links: list[tuple[dict[str, Any], str]] = field(default_factory=list)


class Definition:
    """A program, its world, and what was written of it: shared by a function and its inverse."""

    def __init__(self, f: FunctionType, *, checked: bool, tolerance: float) -> None:
        self.f = f
        self.checked = checked
        self.tolerance = tolerance
        self.forward = parse(f)
        check(self.forward)
        name = f"{f.__name__}_inverse"
        self.backward = inverted_program(self.forward, name)
        self.local = local = local_names(self.forward)
        self.updates: dict[Any, set[str]] = {}
        self.guess: tuple[Any, set[str]] | None = None
        self.free = sorted(self.forward.names - local)
        self.namespace: dict[str, Any] = {"__name__": f.__module__}
        self.written: dict[Any, Written] = {}
        self.refresh()

    def refresh(self) -> None:
        """Look up what the user's names mean now."""
        missing = object()
        for name in self.free:
            value = outside(self.f, name, missing)
            if value is not missing:
                self.namespace[name] = value

    def updated(self, kinds: tuple[Kind, ...]) -> set[int]:
        """The positions of the values that are updated, among those that its source is given."""
        known = dict(zip(self.forward.params, kinds, strict=True))
        written = self.updated_names(functions_among(known))
        found = [
            (p, v) for p in self.forward.params for v, k in variables(p, known[p]) if is_value(k)
        ]
        return {at for at, (p, _) in enumerate(found) if p in written}

    def updated_names(self, functions: tuple[tuple[str, Any], ...]) -> set[str]:
        """The parameters that are updated, where some are functions.

        A function that calls itself updates what it updates if its calls update nothing, and what
        follows from that.
        """
        known = self.updates.get(functions)
        if known is not None:
            return known
        if self.guess is not None:  # functions that call one another: anything may be updated
            return set(self.forward.params)
        self.refresh()
        self.guess = functions, set()
        try:
            while True:
                found = self.written_by(self.forward.body, dict(functions))
                found &= set(self.forward.params)
                if found == self.guess[1]:
                    break
                self.guess = functions, found
        finally:
            self.guess = None
        self.updates[functions] = found
        return found

    def meaning(self, node: ast.expr) -> Any:
        """What a name of the world outside means; None if it means nothing."""
        try:
            return eval(text(node), self.namespace)  # noqa: S307  (a name in the user's source)
        except NameError:
            return None

    def written_by(self, block: Block, functions: dict[str, Any]) -> set[str]:
        """The variables that a block updates."""
        found: set[str] = set()
        for s in walk(block):
            if not isinstance(s, Call):
                found |= {root_of(p) for p in written_places(s)}
                continue
            f = functions.get(text(s.function)) or self.meaning(s.function)
            if not isinstance(f, Reversible):
                continue  # refused when the call is written
            params = f.definition.forward.params
            given = {}
            for p, a in zip(params, s.args, strict=False):
                value = functions.get(text(a)) if isinstance(a, ast.Name) else None
                if value is None and root_of(a) not in self.local:
                    value = self.meaning(a)
                if value is not None:
                    given[p] = value
            key = tuple(given.items())
            again = f.definition is self and self.guess is not None and self.guess[0] == key
            names = self.guess[1] if again and self.guess else f.definition.updated_names(key)
            for p, a in zip(params, s.args, strict=False):
                if p in names:
                    found |= {root_of(place) for place in s.places(a)}
        return found

    def source(self, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Written:
        """The function that runs for these kinds of arguments."""
        key = (kinds, inverse, adjoint)
        found = self.written.get(key)
        if found is None:
            found = self._write(key, kinds, inverse, adjoint)
        return found

    def _write(self, key: Any, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Written:
        program = self.backward if inverse else self.forward
        if len(kinds) != len(program.params):
            message = (
                f"{self.forward.name} takes {len(program.params)} arguments "
                f"({', '.join(program.params)}); {len(kinds)} came"
            )
            raise TypeError(message)
        name = program.name + ("_adjoint" if adjoint else "")
        written = self.written[key] = Written(name)
        try:
            self._fill(written, program, kinds, adjoint)
        except BaseException:
            del self.written[key]
            raise
        return written

    def _fill(
        self, written: Written, program: Program, kinds: tuple[Kind, ...], adjoint: bool
    ) -> None:
        known = dict(zip(program.params, kinds, strict=True))
        program, forward = flattened(program, known), flattened(self.forward, known)
        for name, kind in known.items():
            if isinstance(kind, (Function, Other)):
                self.namespace[name] = kind.value
        options = {"checked": self.checked, "tolerance": self.tolerance}
        namespace = dict(self.namespace)
        reader = Writer(forward, known, namespace, None, **options)  # type: ignore[arg-type]
        infer_kinds(forward, reader)
        namespace = dict(self.namespace)
        called = functools.partial(self._called, written, namespace)
        make = AdjointWriter if adjoint else Writer
        w = make(program, known, namespace, called, **options)  # type: ignore[arg-type]
        functions = {n: k.value for n, k in known.items() if isinstance(k, Function)}
        w.written = lambda block: self.written_by(block, functions)
        values = [p for p in program.params if is_value(known[p])]
        updated = self.updated(kinds)
        answer = [p for k, p in enumerate(values) if k in updated and not known[p].is_array]
        params = list(values)
        helpers = ""
        if isinstance(w, AdjointWriter):
            bars = [w.bars[p] for p in values if known[p].active]
            answer += [w.bars[p] for p in values if known[p].active and not known[p].is_array]
            params += bars
            w.block_back(program.body)
            helpers = "".join(w.helpers)
        else:
            w.block(program.body)
        if answer:
            w.line(f"return {', '.join(answer)}")
        elif all(line.lstrip().startswith("#") for line in w.lines):
            w.line("pass")
        body = "\n".join(w.lines)
        code = f"def {written.name}({', '.join(params)}):\n{body}\n"
        written.function = make_function(code, written.name, namespace)
        written.code = helpers + code
        for there, name in written.links:
            there[name] = written.function

    def whole(self, kinds: tuple[Kind, ...], inverse: bool, adjoint: bool) -> Written:
        """The same without effects: what is updated is copied, and that alone is answered.

        With ``adjoint`` it takes all values and the cotangents of those that are updated, and
        answers those of all numbers and arrays that have one.
        """
        key = (kinds, inverse, adjoint, "whole")
        found = self.written.get(key)
        if found is not None:
            return found
        inner = self.source(kinds, inverse, adjoint)
        code = inner.code[inner.code.index(f"def {inner.name}(") :]
        node = ast.parse(code).body[0]
        params = [a.arg for a in node.args.args]  # type: ignore[attr-defined]
        last = node.body[-1]  # type: ignore[attr-defined]
        values = flat_kinds(kinds)
        updated = self.updated(kinds)
        count = len(values)
        lines = [
            f"    {params[k]} = {params[k]}.copy()" for k in sorted(updated) if values[k].is_array
        ]
        given = params[:count]
        answer = [params[k] for k in sorted(updated)]
        if adjoint:
            active = [k for k, kind in enumerate(values) if kind.active]
            answer = params[count:]
            for k, bar in zip(active, answer, strict=True):
                if k not in updated:
                    lines.append(f"    {bar} = {_zero(values[k], params[k])}")
                    continue
                given.append(bar)
                if values[k].is_array:
                    lines.append(f"    {bar} = {bar}.copy()")
        call = f"{inner.name}({', '.join(params)})"
        if isinstance(last, ast.Return) and last.value is not None:
            call = f"{ast.unparse(last.value).strip('()')} = {call}"
        lines += [f"    {call}", f"    return ({', '.join(answer)}{',' if answer else ''})"]
        name = f"{inner.name}_of_copies"
        code = f"def {name}({', '.join(given)}):\n" + "\n".join(lines) + "\n"
        namespace = {"__name__": self.f.__module__, "np": np, inner.name: inner.function}
        made = self.written[key] = Written(name, code)
        made.function = make_function(code, name, namespace)
        return made

    def _called(
        self,
        caller: Written,
        namespace: dict[str, Any],
        s: Call,
        kinds: list[Kind],
        inverse: bool,
        writer: Writer,
        *,
        adjoint: bool = False,
    ) -> tuple[str, set[int]]:
        """What a call in a program calls: the name of its function, and what it updates."""
        try:
            f = self._function(s.function, writer)
        except NameError as error:
            raise IrreversibleError(str(error), location(self.forward.filename, s.node)) from None
        if not isinstance(f, Reversible):
            what = ast.unparse(s.function)
            message = (
                f"'{what}' is no reversible function: as a statement only those, registered "
                "instructions and the words of the language can be called"
            )
            raise IrreversibleError(message, location(self.forward.filename, s.node))
        inverse ^= f.inverse
        definition = f.definition
        definition.refresh()
        written = definition.source(tuple(kinds), inverse, adjoint)
        caller.calls.append(written)
        name = writer.names.fresh(written.name)
        namespace[name] = written.function
        if written.function is None:
            written.links.append((namespace, name))
        return name, definition.updated(tuple(kinds))

    def _function(self, node: ast.expr, writer: Writer) -> Any:
        if isinstance(node, ast.Name) and node.id in writer.env:
            return writer.env[node.id].value
        return writer.outside(node)


def _zero(kind: Kind, name: str) -> str:
    """The source of a cotangent of zero."""
    if kind.is_array:
        return f"np.zeros_like({name})"
    return "0j" if kind.is_complex else "0.0"


def functions_among(known: dict[str, Kind]) -> tuple[tuple[str, Any], ...]:
    """The parameters that are functions, and the functions."""
    return tuple((n, k.value) for n, k in known.items() if isinstance(k, Function))


class Reversible:
    """A reversible function: made by :func:`reversible`.

    Calling it answers the updated arguments, a tuple unless there is one; ``~f`` undoes it.

    Attributes
    ----------
    definition : Definition
        Shared with the inverse.
    inverse : bool
        Whether this is the inverse of what was written.
    """

    def __init__(self, definition: Definition, inverse: bool, other: Reversible | None) -> None:
        self.definition = definition
        self.inverse = inverse
        functools.update_wrapper(self, definition.f)
        if inverse:
            self.__name__ = self.program.name
        self._other = other if other is not None else Reversible(definition, not inverse, self)

    @property
    def __loss__(self) -> Callable[..., Any]:
        """The function whose value is the loss alone: what gradients are taken of."""
        return Loss(self)

    @property
    def program(self) -> Program:
        """What it does."""
        return self.definition.backward if self.inverse else self.definition.forward

    def __invert__(self) -> Reversible:
        return self._other

    def __show__(self) -> str:
        """What ``show`` answers: the program."""
        return show_program(self.program)

    def __repr__(self) -> str:
        return f"<reversible function {self.__name__}>"

    def __call__(self, *args: Any, inplace: bool = False) -> Any:
        """Update the arguments, and answer them.

        Parameters
        ----------
        *args : object
            Numbers, arrays, records of them, functions: one for each parameter.
        inplace : bool, default False
            Whether the caller's arrays are updated, too: at the end, when nothing can fail any
            more. They are copied in any case.

        Returns
        -------
        tuple or object
            All arguments in their order, new where they were updated; one alone as it is.
        """
        self.definition.refresh()
        kinds = tuple(kind_of(a) for a in args)
        written = self.definition.source(kinds, self.inverse, False)
        values = flat_values(args, kinds)
        flat = flat_kinds(kinds)
        updated = self.definition.updated(kinds)
        self._check_apart(values, flat, updated)
        given = [v.copy() if k.is_array else v for v, k in zip(values, flat, strict=True)]
        new = written.function(*given)
        places = [k for k in sorted(updated) if not flat[k].is_array]
        for k, value in zip(places, new if len(places) > 1 else (new,), strict=False):
            given[k] = value
        if inplace:
            for k, (a, b) in enumerate(zip(values, given, strict=True)):
                if flat[k].is_array:
                    a[...] = b
                    given[k] = a
        result = rebuilt(args, kinds, iter(given))
        return result[0] if len(result) == 1 else tuple(result)

    def _check_apart(self, values: list[Any], kinds: list[Kind], updated: set[int]) -> None:
        """Raise if an array that is updated shares memory with another."""
        arrays = [k for k, kind in enumerate(kinds) if kind.is_array]
        for k in updated & set(arrays):
            for j in arrays:
                if j != k and np.may_share_memory(values[j], values[k]):
                    message = (
                        f"two arguments of {self.__name__} share memory, and it updates one of "
                        "them: give it a copy"
                    )
                    raise AliasedArgumentError(message)


class Loss:
    """A reversible function's first parameter after the call.

    Parameters
    ----------
    f : Reversible
        The function.
    """

    def __init__(self, f: Reversible) -> None:
        self.f = f
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args: Any) -> Any:
        """The loss."""
        return self.pick(self.f(*args), lambda f, x: f(x))

    @staticmethod
    def pick(result: Any, call: Callable[[Any, Any], Any]) -> Any:
        """The loss among what the function answers, as a float.

        Parameters
        ----------
        result : object
            The answer.
        call : callable
            ``call(f, x)`` calls a function where the answer was made: in a trace, on duals.
        """
        loss = result[0] if isinstance(result, tuple) else result
        if isinstance(loss, Logarithmic):
            return call(value_of, loss.kept)
        return loss.kept if isinstance(loss, ExactNumber) else loss


def reversible(
    f: Callable[..., Any] | None = None, *, check: bool = True, tolerance: float = 1e-8
) -> Any:
    """Make a function reversible: a decorator.

    Parameters
    ----------
    f : function
        Its body is read, never run: each statement must be one of the language's (see the page on
        reversible programs).
    check : bool, default True
        Whether run-time checks are made. Without them a program that breaks its promises has an
        inverse that is wrong without a word.
    tolerance : float, default 1e-8
        How far a float may be from the value with which it is freed, over ``max(1, |value|)``.

    Returns
    -------
    Reversible

    Raises
    ------
    IrreversibleError
        If a statement has no inverse; with file, line and variable.
    """
    if f is None:
        return functools.partial(reversible, check=check, tolerance=tolerance)
    if not isinstance(f, FunctionType):
        message = f"@reversible takes a function that 'def' defines; a {type(f).__name__} came"
        raise UnsupportedTypeError(message)
    return Reversible(Definition(f, checked=check, tolerance=tolerance), False, None)
