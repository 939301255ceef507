"""``@reversible``: functions that run backwards."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from fwdad.errors import IrreversibleError, UnsupportedTypeError
from fwdad.reversible.adjoint import AdjointWriter
from fwdad.reversible.check import check
from fwdad.reversible.invert import inverted_program
from fwdad.reversible.kinds import Kind, kind_of
from fwdad.reversible.parse import location, outside, parse
from fwdad.reversible.program import Call, Program, local_names
from fwdad.reversible.source import (
    Writer,
    infer_kinds,
    is_value,
    make_function,
    updated_parameters,
)


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
        local = local_names(self.forward)
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
        for name, kind in known.items():
            if not is_value(kind):
                self.namespace[name] = kind.value
        options = {"checked": self.checked, "tolerance": self.tolerance}
        namespace = dict(self.namespace)
        reader = Writer(self.forward, known, namespace, None, **options)  # type: ignore[arg-type]
        infer_kinds(self.forward, reader)
        namespace = dict(self.namespace)
        called = functools.partial(self._called, written, namespace)
        make = AdjointWriter if adjoint else Writer
        w = make(program, known, namespace, called, **options)  # type: ignore[arg-type]
        updated = updated_parameters(program)
        values = [p for p in program.params if is_value(known[p])]
        answer = [
            p
            for k, p in enumerate(program.params)
            if k in updated and p in values and not known[p].is_array
        ]
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
        """The same without effects: arrays are copied, and all arguments answered.

        With ``adjoint`` the cotangents alone are answered, those of numbers and arrays.
        """
        key = (kinds, inverse, adjoint, "whole")
        found = self.written.get(key)
        if found is not None:
            return found
        inner = self.source(kinds, inverse, adjoint)
        code = inner.code[inner.code.index(f"def {inner.name}(") :]
        node = ast.parse(code).body[0]
        assert isinstance(node, ast.FunctionDef)
        params = [a.arg for a in node.args.args]
        last = node.body[-1]
        values = [k for k in kinds if is_value(k)]
        both = [*values, *(k for k in values if k.active)] if adjoint else values
        lines = [
            f"    {p} = {p}.copy()" for p, k in zip(params, both, strict=True) if k.is_array
        ]
        call = f"{inner.name}({', '.join(params)})"
        if isinstance(last, ast.Return) and last.value is not None:
            call = f"{ast.unparse(last.value).strip('()')} = {call}"
        answer = params[len(values) :] if adjoint else params
        lines += [f"    {call}", f"    return ({', '.join(answer)}{',' if answer else ''})"]
        name = f"{inner.name}_of_copies"
        code = f"def {name}({', '.join(params)}):\n" + "\n".join(lines) + "\n"
        namespace = {"__name__": self.f.__module__, inner.name: inner.function}
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
        return name, updated_parameters(definition.forward)

    def _function(self, node: ast.expr, writer: Writer) -> Any:
        if isinstance(node, ast.Name) and node.id in writer.env:
            return writer.env[node.id].value
        return writer.outside(node)


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

    def __repr__(self) -> str:
        return f"<reversible function {self.__name__}>"

    def __call__(self, *args: Any, inplace: bool = False) -> Any:
        self.definition.refresh()
        kinds = tuple(kind_of(a) for a in args)
        written = self.definition.source(kinds, self.inverse, False)
        given = [
            np.array(a) if k.is_array else a
            for a, k in zip(args, kinds, strict=True)
        ]
        new = written.function(*(a for a, k in zip(given, kinds, strict=True) if is_value(k)))
        result = self._result(given, kinds, new)
        if inplace:
            for a, b, k in zip(args, given, kinds, strict=True):
                if k.is_array:
                    a[...] = b
        return result

    def _result(self, given: list[Any], kinds: tuple[Kind, ...], new: Any) -> Any:
        updated = updated_parameters(self.program)
        places = [
            k for k in sorted(updated) if is_value(kinds[k]) and not kinds[k].is_array
        ]
        values = new if len(places) > 1 else (new,)
        result = list(given)
        for k, value in zip(places, values, strict=False):
            result[k] = value
        return result[0] if len(result) == 1 else tuple(result)


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
        return self.pick(self.f(*args))

    @staticmethod
    def pick(result: Any) -> Any:
        """The loss among what the function answers."""
        return result[0] if isinstance(result, tuple) else result


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
